#!/usr/bin/python3
"""rent_hyperstack.py - a whole broker rents at Hyperstack: a machine with a real sshd behind the cloud's public address

Traps on the way: the machine is ACTIVE before its address is, and may not be deleted while it is built.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), HERE]
import node  # noqa: E402
from broker import Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("life of a lease at Hyperstack", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy", "--keep-addresses")


def nothing_left(cloud, what):
    until(lambda: not cloud.machines(), 20, "machines end")
    t.eq(cloud.machines(), [], f"{what}: no machine is left")
    t.eq(cloud.control("GET", "/addresses"), [], f"{what}: no public address is left")
    t.eq(cloud.control("GET", "/bill")["rate_udollar"], 0, f"{what}: nothing bills")


def life(b, cloud):
    code, out, err = b.cli("rent", "--gpu", "H100", "--name", "one", "--open", "8080/198.51.100.0/24")
    if not t.ok(code == 0, "rent ends well"):
        print("# " + (out + err).replace("\n", "\n# "))
        return
    lease = b.lease("one")
    [machine] = cloud.machines()
    t.eq((lease["state"], lease["machine"]["state"], lease["machine"]["address"]), ("ready", "running", machine["node"]["ip"]),
         "the lease has the machine and its address")
    t.eq(machine["request"]["flavor_name"], "n3-H100x1", "the cheapest that fits")
    t.eq([(r["port_range_min"], r["remote_ip_prefix"]) for r in machine["request"]["security_rules"]],
         [(22, "0.0.0.0/0"), (8080, "198.51.100.0/24")], "its ports are open")
    t.eq(b.cli("release", "one")[0], 0, "release ends well")
    nothing_left(cloud, "released")


def refused_delete(b, cloud):
    cloud.control("POST", "/config", {"delays": {"BUILD": 600}})
    a = b.accepted("rent", {"key": "two", "name": "two", "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}]}})
    cloud.control("GET", "/wait?endpoint=create&count=2&timeout=20")
    b.accepted("release", {"key": "r2", "lease": "two"})
    cloud.control("GET", "/wait?endpoint=delete&count=3&timeout=20")
    t.eq(len(cloud.machines()), 1, "a delete is refused while the machine is built, and asked for again")
    cloud.control("POST", "/config", {"delays": {"BUILD": 0.2}})
    cloud.control("POST", "/advance", {"seconds": 700})
    t.eq(b.wait_state(a["lease"], "released", "failed-empty")["cause"]["code"], "released", "until it is granted")
    nothing_left(cloud, "cancelled")


def lost_reply(b, cloud):
    cloud.faults({"on": "create", "kind": "lost-reply"})
    a = b.accepted("rent", {"key": "three", "name": "three", "filter": {"gpu": [{"model": "A100", "min": 1, "max": 1}]}})
    b.wait_state(a["lease"], "ready")
    t.eq(len(cloud.machines()), 1, "a create whose answer was lost made one machine, and it is ours")
    t.eq(b.cli("release", "three")[0], 0, "release ends well")
    nothing_left(cloud, "lost reply")


def no_money(b, cloud):
    cloud.control("POST", "/credit", {"credit": 0})
    code, out, _ = b.cli("rent", "--gpu", "L40", "--name", "four", "--json")
    t.eq(code in (3, 4), True, "without money nothing is rented")
    code, out, _ = b.cli("rent", "--gpu", "H100", "--name", "five", "--json")
    t.eq(code, 4, "every offer was refused")
    t.ok("quota" in out, "and says that it is the account")
    nothing_left(cloud, "no money")


def main():
    with Cloud("hyperstack", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        for test in (life, refused_delete, lost_reply, no_money):
            t.run(test, b, cloud)
    t.done()


main()
