"""The bus as other languages see it: pyzmq alone, and the two examples of docs/examples."""
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import zmq
except ImportError:
    print("1..0 # SKIP python3-zmq is not installed")
    sys.exit(0)

BUILD = Path(os.environ.get("GPUB_BUILDDIR", "."))
EXAMPLES = Path(os.environ.get("GPUB_SRCDIR", ".")) / "docs" / "examples"
PATIENCE_S = 30
n = bad = 0


def ok(passed, name):
    global n, bad
    n += 1
    bad += not passed
    print("%sok %d - %s" % ("" if passed else "not ", n, name), flush=True)


def socket(kind, endpoint):
    s = zmq.Context.instance().socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    s.setsockopt(zmq.RCVTIMEO, PATIENCE_S * 1000)
    s.connect(endpoint)
    return s


def test_req(endpoint):
    s = socket(zmq.REQ, endpoint)
    s.send_multipart([b"GPUB/1", b"ping", b"a", b"{}"])
    magic, kind, request_id, body = s.recv_multipart()
    ok((magic, kind, request_id) == (b"GPUB/1", b"final", b"a"), "REQ gets four frames")
    ok(json.loads(body)["epoch"] == 1, "the fourth is JSON")
    s.send_multipart([b"GPUB/1", b"rent", b"b", b'{"key":"k"}'])
    ok(s.recv_multipart()[1] == b"accepted", "REQ gets accepted of a mutation")
    s.send_multipart([b"GPUB/1", b"nonsense", b"c", b"{}"])
    ok(json.loads(s.recv_multipart()[3])["code"] == "unknown-verb", "and goes on after it")


def test_dealer(endpoint):
    s = socket(zmq.DEALER, endpoint)
    ids = [b"%d" % i for i in range(50)]
    for i in ids:
        s.send_multipart([b"GPUB/1", b"ping", i, b"{}"])
    ok([s.recv_multipart()[2] for _ in ids] == ids, "50 requests on the way are answered in order")


def test_rent(environment):
    done = subprocess.run([sys.executable, EXAMPLES / "rent.py"], env=environment, capture_output=True, text=True,
                          timeout=PATIENCE_S)
    kinds = [line.split()[0] for line in done.stdout.splitlines()]
    ok(kinds == ["accepted", "progress", "final"] and done.returncode == 0, "rent.py rents: %s" % kinds)


def test_events(environment):
    child = subprocess.Popen([sys.executable, EXAMPLES / "events.py"], env=environment, stdout=subprocess.PIPE, text=True)
    seen = [int(child.stdout.readline().split()[0]) for _ in range(60)]
    child.terminate()
    child.wait(PATIENCE_S)
    ok(seen == list(range(1, 61)), "events.py shows every event once, in order, though one of three is not published")


server = subprocess.Popen([BUILD / "bus-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
address = server.stdout.readline().strip()
try:
    ok(address.startswith("ipc://"), "a bus at %s" % address)
    test_req(address)
    test_dealer(address)
    test_rent({**os.environ, "GPUBROKER_ENDPOINT": address})
    test_events({**os.environ, "GPUBROKER_ENDPOINT": address})
finally:
    server.stdin.close()
    server.wait(PATIENCE_S)
print("1..%d" % n)
sys.exit(bad != 0)
