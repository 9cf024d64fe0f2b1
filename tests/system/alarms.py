#!/usr/bin/python3
"""alarms.py - what an operator sees: clusters looked at, alarms handed on, a rent that never had a chance

No machine is needed: the clusters are the in-tree double, the cloud is a fake that boots nothing.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), HERE]
import cluster  # noqa: E402
from broker import Broker, Cloud, Refused, Tap, spoke, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def looked_at(b, name):
    def look():
        c = next(c for c in b.ask("clusters")["clusters"] if c["name"] == name)
        return c if c["state"] != "unchecked" else None
    return until(look, 20, f"a look at {name}")


def clusters(b):
    good, gone = looked_at(b, "spoke-a"), looked_at(b, "gone")
    t.ok(good["state"] in ("ok", "warnings"), f"a good cluster is {good['state']}")
    t.ok(good.get("server", "").startswith("https://"), "with its address")
    t.eq(gone["state"], "errors" if gone.get("findings") else "unreachable", "one that is not there says so")


def refused_before_money(b, cloud):
    lease = b.accepted("rent", {"key": "g", "filter": H100, "cluster": "gone"})["lease"]
    end = b.wait_state(lease, "failed-empty")
    t.ok(end["cause"]["code"] not in ("no-offer", "offers-exhausted"), f"a bad cluster fails the rent: {end['cause']['code']}")
    t.eq(cloud.control("GET", "/counters").get("create", 0), 0, "before any machine is ordered")


def alarms(b, cloud, folder):
    owner = b.ask("ping")["instance"]
    cloud.control("POST", "/machines", {"name": "stray", "tags": [f"gpubroker-owner={owner}", "gpubroker-lease=999",
                                                                  "gpubroker-token=feed"]})
    path = os.path.join(folder, "page")
    until(lambda: os.path.exists(path) and "orphans" in open(path).read(), 20, "the operator's program")
    t.ok(True, "a machine with our mark and no lease calls notify_command")
    orphans = b.ask("orphans")["orphans"]
    t.eq([o["name"] for o in orphans], ["stray"], "and is listed as an orphan")
    t.eq(len([m for m in cloud.control("GET", "/machines") if not m["ended_ms"]]), 1, "and is not touched")
    pids = b.children()
    until(lambda: not any("Z" in open(f"/proc/{p}/stat").read().split()[2] for p in pids if os.path.exists(f"/proc/{p}/stat")),
          10, "no zombie")
    t.ok(True, "the program leaves no zombie")


def main():
    with tempfile.TemporaryDirectory() as d, cluster.Clusters("double", d, "127.0.0.1") as c:
        script = os.path.join(d, "notify")
        with open(os.open(script, os.O_WRONLY | os.O_CREAT, 0o700), "w") as f:
            f.write(f'#!/bin/sh\necho "$1 $2" >> {d}/page\n')
        gone = spoke(c.info, name="gone", control_plane="nobody")
        with Cloud("shadeform") as cloud:
            b = Broker(cloud.provider(), clusters=[spoke(c.info), gone], broker={"notify_command": script})
            with b:
                b.offers_there()
                t.run(clusters, b)
                t.run(refused_before_money, b, cloud)
                t.run(alarms, b, cloud, d)
    t.done()


main()
