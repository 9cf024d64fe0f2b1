#!/usr/bin/python3
"""accounts.py - two accounts of one cloud: stock is everybody's, money and quotas are each one's own

No machine here answers SSH: what is asked is where an order goes, and why not elsewhere.
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
    t.skip("accounts", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

ANY = {"gpu": [{"model": "any", "min": 1, "max": 0}]}
MONEY = {"on": "create", "kind": "no-money", "times": -1}
QUOTA = {"on": "create", "kind": "status", "status": 400, "body": {"message": "Instance limit reached for this account"}, "times": -1}
n = 0


def creates(cloud):
    return cloud.control("GET", "/counters").get("create", 0)


def rent(b, a, z, *faults):
    """A rent while account a has these faults: (provider, product, reason) of each attempt; then it is released."""
    global n
    n += 1
    a.control("DELETE", "/faults")
    a.faults(*faults)
    lease = b.accepted("rent", {"key": f"k{n}", "filter": ANY})["lease"]
    b.wait_state(lease, "booting")
    tries = [(x["provider"], "/".join((x["offer"]["cloud"], x["offer"]["region"], x["offer"]["instance_type"])),
              (x.get("reason") or {}).get("code")) for x in b.lease(lease)["attempts"]]
    b.accepted("release", {"key": f"r{n}", "lease": lease})
    b.wait_state(lease, "released", "failed-empty")
    a.control("DELETE", "/faults")
    return tries


def codes(b, provider):
    """Why this account's offers are not taken."""
    rejected = b.ask("offers", {"filter": ANY, "explain": True, "limit": 1000})["rejected"]
    return {r["code"] for r in rejected if r["offer"]["provider"] == provider}


def check(b, *names):
    for name in names:
        b.accepted("providers.check", {"provider": name, "key": f"c{n}-{name}"})


def money(b, a, z):
    tries = rent(b, a, z, MONEY)
    t.eq([x[0] for x in tries], ["a", "z"], "no money: the next order goes to the other account")
    t.eq(tries[0][1], tries[1][1], "for the same product")
    t.eq(creates(a), 1, "one order was enough to know")
    t.ok("balance" in codes(b, "a"), "its offers say so")
    t.ok("balance" not in codes(b, "z"), "the other account's do not")
    t.ok(b.logged('what=out-of-money text="a:'), "there was an alarm")
    t.eq([x[0] for x in rent(b, a, z)], ["z"], "the next rent does not even ask")
    t.eq(creates(a), 1, "no order went there")
    check(b, "a")
    t.eq([x[0] for x in rent(b, a, z)], ["a"], "a check by hand lets it be asked again")


def quota(b, a, z):
    before = creates(a)
    tries = rent(b, a, z, QUOTA)
    t.eq([x[0] for x in tries], ["a", "z"], "no quota: the same product of the other account")
    t.eq(tries[0][1], tries[1][1], "is the next best")
    rest = len(b.ask("offers", {"filter": {**ANY, "provider": ["a"]}})["offers"])
    t.ok(rest > 0, "other types of the account are still offers")
    z.faults({"on": "create", "kind": "out-of-stock", "times": 1})
    tries = rent(b, a, z, {**QUOTA, "times": 1})
    z.control("DELETE", "/faults")
    asked = [x[1].split("/")[2] for x in tries if x[0] == "a"]
    t.ok(creates(a) - before == 2 and len(asked) == 1, f"a second type is refused: {asked}")
    t.eq(b.ask("offers", {"filter": {**ANY, "provider": ["a"], "market": "on-demand"}})["offers"], [],
         "then none of the account's are")
    t.ok("quota" in codes(b, "a"), "for that reason")


def stock(b, a, z):
    tries = rent(b, a, z, {"on": "create", "kind": "out-of-stock", "times": 1})
    t.eq(tries[0][2], "OUT_OF_STOCK", "out of stock at one account")
    t.ok(tries[1][1] != tries[0][1], "is so at the other one: another product is next")


def two(test):
    with Cloud("shadeform") as a, Cloud("shadeform") as z:
        with Broker({**a.provider(), "name": "a"}, {**z.provider(), "name": "z"}) as b:
            until(lambda: all(p["state"] == "up" and p["offers"] for p in b.ask("providers")["providers"]), 20, "offers of both")
            test(b, a, z)


for test in (money, quota, stock):
    t.run(two, test)
t.done()
