#!/usr/bin/python3
"""start.py - start the test clusters, print one line of JSON about them, run until stdin ends or a signal

  start.py [--real|--double] [--dir DIR] [--address 127.0.0.1] [--k0smotron 1|2]

Without --real or --double: real when tests/kube/build.sh has been run, else the double.  A launcher keeps the other
end of a pipe on stdin: when it dies, so does the cluster.
"""
import argparse
import json
import os
import pathlib
import select
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--real", dest="mode", action="store_const", const="real", default="auto")
    p.add_argument("--double", dest="mode", action="store_const", const="double")
    p.add_argument("--dir")
    p.add_argument("--address", default="127.0.0.1")
    p.add_argument("--k0smotron", type=int, choices=(1, 2), default=2)
    a = p.parse_args()
    r, w = os.pipe()
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: os.write(w, b"x"))
    with tempfile.TemporaryDirectory(prefix="gpub-kube-") as scratch:
        with cluster.Clusters(a.mode, a.dir or scratch, a.address, a.k0smotron) as c:
            print(json.dumps(c.info), flush=True)
            watched = [r] if sys.stdin.isatty() else [r, 0]
            while True:
                ready = select.select(watched, [], [])[0]
                if r in ready or not os.read(0, 4096):
                    return


main()
