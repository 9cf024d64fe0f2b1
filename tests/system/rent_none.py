#!/usr/bin/python3
"""rent_none.py - the life of a lease without a cluster, on a fake cloud and a machine with a real sshd

What the cloud's API does wrong must change nothing about what is rented.
"""
import base64
import json
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes"))
import node  # noqa: E402
from broker import BUILD, Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("life of a lease", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
CANARY = base64.b64encode(b"#!/bin/sh\n: canary-user-data-51c7\n").decode()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def in_rows(b):
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    try:
        return [table for table in ("lease", "attempt", "op", "event") for row in db.execute(f"SELECT * FROM {table}")
                if CANARY in repr(row)] + [row for row in db.execute("SELECT * FROM log") if CANARY in repr(row)]
    finally:
        db.close()


def happy(b, cloud):
    want = {"key": "k1", "name": "one", "filter": H100, "user_data": CANARY}
    a = b.accepted("rent", want)
    lease = b.wait_state(a["lease"], "ready")
    t.eq(len(cloud.machines()), 1, "one machine exists")
    t.eq(lease["machine"]["state"], "running", "and the lease knows it")
    t.ok(not in_rows(b), "the user data is in no row of the books any more")
    again = b.accepted("rent", want)
    t.eq(again["lease"], a["lease"], "the same key is the same lease")
    try:
        b.accepted("rent", {"key": "k1", "name": "one", "filter": {"gpu": [{"model": "A100"}]}})
        t.ok(False, "another body under the same key is refused")
    except Refused as e:
        t.eq(e.code, "conflict", "another body under the same key is refused")
    for fault in ({"kind": "status", "status": 503, "body": "sorry"}, {"kind": "empty-list"}, {"kind": "truncated"}):
        cloud.faults({"on": "list", "times": 2, **fault})
        n = cloud.control("GET", "/counters").get("list", 0)
        cloud.control("GET", f"/wait?endpoint=list&count={n + 2}&timeout=15")
        t.eq(b.lease("one")["state"], "ready", f"a list with {fault['kind']} changes nothing")
    b.accepted("release", {"key": "r1", "lease": "one"})
    b.wait_state(a["lease"], "released")
    t.eq(cloud.machines(), [], "nothing is left")


def proven_again(b, cloud):
    """The books are lost; what the mark gives back is proven by retry, whether it works or fails."""
    x = b.accepted("rent", {"key": "p1", "filter": H100})["lease"]
    b.wait_state(x, "ready")
    b.kill()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{b.state}/gpubroker.db{end}"):
            os.unlink(f"{b.state}/gpubroker.db{end}")
    subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config, "--rebuild"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=b.environment(), timeout=60)
    b.start()
    t.eq(b.wait_state(x, "degraded")["cause"]["code"], "rebuilt", "a rebuilt lease is not believed")
    b.accepted("retry", {"key": "p2", "lease": x})
    lease = b.wait_state(x, "ready")
    t.ok(lease["machine"]["hostkey"], "retry proves it: our key opens it, its host key is pinned")
    t.ok("cause" not in lease and "expires_ms" not in lease, "it has no time to live")
    until_ms = b.accepted("extend", {"key": "p3", "lease": x, "ttl_ms": 3600000})["expires_ms"]
    b.ask("wait", {"key": "p3", "timeout_ms": 10000})
    t.eq(b.lease(x)["expires_ms"], until_ms, "until somebody gives it one")
    b.accepted("release", {"key": "p4", "lease": x})
    b.wait_state(x, "released")
    t.eq(cloud.machines(), [], "nothing is left")


def main():
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(happy, b, cloud)
        t.run(proven_again, b, cloud)
    t.done()


main()
