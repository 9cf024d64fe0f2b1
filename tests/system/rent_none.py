#!/usr/bin/python3
"""rent_none.py - the life of a lease without a cluster, on a fake cloud and a machine with a real sshd

What the cloud's API does wrong must change nothing about what is rented.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes"))
import node  # noqa: E402
from broker import Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("life of a lease", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def happy(b, cloud):
    a = b.accepted("rent", {"key": "k1", "name": "one", "filter": H100})
    lease = b.wait_state(a["lease"], "ready")
    t.eq(len(cloud.machines()), 1, "one machine exists")
    t.eq(lease["machine"]["state"], "running", "and the lease knows it")
    again = b.accepted("rent", {"key": "k1", "name": "one", "filter": H100})
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


def main():
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(happy, b, cloud)
    t.done()


main()
