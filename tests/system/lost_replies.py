#!/usr/bin/python3
"""lost_replies.py - everything a cloud's API can do wrong around a rent: one wanted machine, and the books know why

Most machines here never answer SSH: what is asked is what was ordered, not what was delivered.  One boots for real.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), HERE]
import node  # noqa: E402
from broker import TIMES, Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("lost replies", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
FAST = TIMES + ",lag=1200,create=2000"
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
n = 0


def attempts(b, x):
    return [(a["state"], (a.get("reason") or {}).get("code")) for a in b.lease(x)["attempts"]]


def wanted(cloud, lease):
    return [m for m in cloud.machines() if m["name"] in {a["machine_name"] for a in lease["attempts"]}]


def forget_failures(b):
    """Failure memory outlives a rent; the next case wants every offer."""
    b.stop()
    import sqlite3
    db = sqlite3.connect(f"{b.state}/gpubroker.db" if os.path.exists(f"{b.state}/gpubroker.db") else
                         next(os.path.join(b.state, f) for f in os.listdir(b.state) if f.endswith((".db", ".sqlite"))))
    db.execute("delete from meta where key = 'memory'")
    db.commit()
    db.close()
    b.start()
    b.offers_there()


def case(b, cloud, name, faults, tries, seconds=20):
    """Rent with these faults; until one machine boots. tries: (state, code) of each attempt, in order."""
    global n
    n += 1
    cloud.control("DELETE", "/faults")
    cloud.faults(*faults)
    a = b.accepted("rent", {"key": f"k{n}", "name": f"case-{n}", "filter": H100})
    try:
        until(lambda: attempts(b, a["lease"]) == tries and b.lease(a["lease"])["state"] == "booting", seconds, name)
    except TimeoutError:
        pass
    lease = b.lease(a["lease"])
    t.eq(attempts(b, a["lease"]), tries, f"{name}: the attempts say so, in order")
    t.eq(len(wanted(cloud, lease)), 1, f"{name}: one machine")
    t.eq(len(cloud.machines()), 1, f"{name}: and no other")
    b.accepted("release", {"key": f"r{n}", "lease": a["lease"]})
    b.wait_state(a["lease"], "released", "failed-empty", seconds=20)
    t.eq(cloud.machines(), [], f"{name}: none is left after the release")
    cloud.control("DELETE", "/faults")
    return lease


OK = ("created", None)


def ordering(b, cloud):
    create = lambda kind, **more: [{"on": "create", "kind": kind, **more}]
    case(b, cloud, "reply lost", create("lost-reply"), [OK])
    case(b, cloud, "502 after the effect", create("bad-gateway"), [OK])
    case(b, cloud, "reply past the deadline", create("hang", seconds=6), [OK])
    case(b, cloud, "garbage for an answer", create("garbage"), [OK])
    case(b, cloud, "truncated answer", create("truncated"), [OK])
    case(b, cloud, "dropped before the effect", create("drop"), [("gone", "not-created"), OK])
    case(b, cloud, "seen late, reply lost", create("late", seconds=0.8) + create("lost-reply"), [OK])
    case(b, cloud, "asked late, seen late, reply lost",
         [{"on": "types", "kind": "delay", "seconds": 0.7, "times": -1}] + create("late", seconds=0.8) + create("lost-reply"), [OK])
    case(b, cloud, "throttled", create("throttled", retry_after=1), [OK])
    case(b, cloud, "500 before the effect", create("broken"), [("gone", "not-created"), OK])


def next_offer(b, cloud):
    lease = case(b, cloud, "out of stock", [{"on": "create", "kind": "out-of-stock"}], [("refused", "OUT_OF_STOCK"), OK])
    t.ok(lease["attempts"][0]["offer"]["id"] != lease["attempts"][1]["offer"]["id"], "and the next one is another offer")
    forget_failures(b)
    case(b, cloud, "out of stock after it was accepted", [{"on": "create", "kind": "late-error", "seconds": 0.3}],
         [("gone", "machine-error"), OK])
    forget_failures(b)


def exhausted(b, cloud):
    cloud.faults({"on": "create", "kind": "out-of-stock", "times": -1})
    code, out, err = b.cli("rent", "--gpu", "H100:1", "--json")
    doc = json.loads(out)
    t.eq(code, 4, "all out of stock: exit 4")
    t.eq(doc.get("code") or doc.get("error", {}).get("code"), "offers-exhausted", "with that code")
    lease = b.ask("leases", {"all": True})["leases"]
    last = max(lease, key=lambda x: x["created_ms"])
    t.eq({c for _, c in attempts(b, last["id"])}, {"OUT_OF_STOCK"}, "and every attempt its reason")
    t.eq(last["state"], "failed-empty", "nothing was rented")
    code, out, err = b.cli("rent", "--gpu", "H100:1", "--json")
    t.eq(code, 3, "again at once: the memory knows, exit 3")
    t.ok("capacity-memory" in out, "and says so")
    cloud.control("DELETE", "/faults")
    forget_failures(b)


def no_money(b, cloud):
    cloud.faults({"on": "create", "kind": "no-money", "times": -1})
    code, out, err = b.cli("rent", "--gpu", "H100:1", "--json")
    t.eq(code, 4, "no money: exit 4")
    t.ok("nsufficient" in out + err, "in the words of the cloud")
    t.eq(cloud.machines(), [], "and no machine")
    cloud.control("DELETE", "/faults")
    forget_failures(b)


def price_raised(b, cloud):
    rows = cloud.control("GET", "/catalog")
    dear = json.loads(json.dumps(rows))
    for row in dear["instance_types"]:
        if row["shade_instance_type"] == "H100":
            row["hourly_price"] = 999
    b.cli("providers", "pause", "shadeform")
    b.cli("providers", "resume", "shadeform")
    b.offers_there()
    a = None
    before = cloud.control("GET", "/counters").get("create", 0)
    for _ in range(20):  # the listing of each second must not come between
        cloud.control("POST", "/catalog", rows)
        until(lambda: any(o["price_udollar"] == 2050000 for o in b.ask("offers", {"filter": H100})["offers"]), 10, "the old price")
        cloud.control("POST", "/catalog", dear)
        try:
            a = b.accepted("rent", {"key": f"p{os.urandom(4).hex()}", "filter": {**H100, "max_price_udollar": 3000000}})
            break
        except Refused:
            continue
    lease = b.wait_state(a["lease"], "failed-empty")
    t.eq(cloud.control("GET", "/counters").get("create", 0), before, "a price raised before the create: nothing is ordered")
    t.eq(lease["cause"]["code"], "no-offer", "and the lease says that no offer fits")
    t.ok("price" in json.dumps(b.ask("logs", {"lease": a["lease"]})), "with the new price in its log")
    cloud.control("POST", "/catalog", rows)
    until(lambda: any(o["price_udollar"] == 2050000 for o in b.ask("offers", {"filter": H100})["offers"]), 10, "the old price")


def unauthorised(b, cloud):
    cloud.faults({"on": "*", "kind": "unauthorized", "times": -1})
    until(lambda: b.ask("providers")["providers"][0].get("error"), 10, "failing")
    p = b.ask("providers")["providers"][0]
    t.eq(p["error"]["kind"], "auth", "a refused key: the provider says so")
    code, out, _ = b.cli("rent", "--gpu", "H100:1", "--json")
    t.eq(code, 3, "its offers are out: exit 3")
    t.ok("provider-down" in out, "with that reason")
    cloud.control("DELETE", "/faults")
    b.cli("providers", "check", "shadeform")
    until(lambda: b.try_ask("offers", {"filter": H100})[1].get("matched"), 10, "offers are back")
    t.ok(True, "a key that works again brings them back")


def odd_gets(b, cloud):
    """While it boots the cloud answers nonsense; nothing comes of it."""
    for kind in ("garbage", "huge", "truncated", "short-body", "nulls", "broken", "not-found"):
        cloud.faults({"on": "info", "kind": kind, "times": 2, "skip": 1})
    case(b, cloud, "nonsense while booting", [{"on": "info", "kind": k, "times": 1} for k in
                                             ("garbage", "huge", "truncated", "short-body", "nulls", "broken", "not-found")], [OK])


def duplicates(b, cloud):
    """The cloud makes two of one request: as a proxy that repeats a POST would."""
    cloud.faults({"on": "create", "kind": "lost-reply"}, {"on": "list", "kind": "delay", "seconds": 0.1, "times": 3})
    a = b.accepted("rent", {"key": "dup", "name": "dup", "filter": H100})
    until(lambda: cloud.machines(), 10, "the first")
    first = cloud.machines()[0]
    cloud.control("POST", "/machines", {"twin_of": first["id"]})
    t.eq(len(cloud.machines()), 2, "two machines of one request")
    until(lambda: len(cloud.machines()) == 1, 20, "the second one is removed")
    lease = b.wait_state(a["lease"], "booting")
    until(lambda: sorted(x["state"] for x in b.lease("dup")["attempts"]) == ["created", "gone"], 20, "books")
    t.ok(("gone", "duplicate") in attempts(b, "dup"), "and the books call it a duplicate")
    b.accepted("release", {"key": "dupr", "lease": a["lease"]})
    b.wait_state(a["lease"], "released", "failed-empty")
    t.eq(cloud.machines(), [], "none of the two is left")


def ready(b, cloud):
    a = b.accepted("rent", {"key": "ready", "name": "ready", "filter": H100})
    b.wait_state(a["lease"], "ready")
    odd = [{"kind": "status", "status": 503, "body": "sorry"}, {"kind": "empty-list"}, {"kind": "truncated"}, {"kind": "huge"},
           {"kind": "nulls"}, {"kind": "duplicate-rows"}, {"kind": "set", "fields": {"status": "levitating"}}]
    for fault in odd:
        cloud.faults({"on": "list", "times": 2, **fault})
        seen = cloud.control("GET", "/counters").get("list", 0)
        cloud.control("GET", f"/wait?endpoint=list&count={seen + 3}&timeout=15")
        t.eq(b.lease("ready")["state"], "ready", f"a list with {fault['kind']} {fault.get('status', '')} changes nothing")
    t.eq(len(cloud.machines()), 1, "one machine, still")
    bill = cloud.control("GET", "/bill")
    cost = b.ask("cost", {})
    t.ok(abs(bill["total_udollar"] - cost["total_udollar"]) < 10000, f"the cost is the cloud's bill, within a cent "
         f"({bill['total_udollar']} and {cost['total_udollar']})")
    t.eq(cost["rate_udollar"], bill["rate_udollar"], "and so is the rate")
    m = cloud.machines()[0]
    cloud.control("POST", f"/machines/{m['id']}", {"do": "vanish"})
    lease = b.wait_state(a["lease"], "lost")
    t.eq(lease["cause"]["code"], "machine-gone", "deleted by hand: lost, and why")
    t.eq(b.ask("cost", {})["rate_udollar"], 0, "it costs nothing any more")
    code, out, _ = b.cli("show", a["lease"], "--json")
    t.eq((code, json.loads(out)["lease"]["state"] if "lease" in json.loads(out) else json.loads(out)["state"]), (0, "lost"), "show tells it")


def preempted(b, cloud):
    a = b.accepted("rent", {"key": "pre", "name": "pre", "filter": H100})
    b.wait_state(a["lease"], "ready")
    cloud.control("POST", f"/machines/{cloud.machines()[0]['id']}", {"do": "preempt"})
    lease = b.wait_state(a["lease"], "lost", "released")
    t.ok(lease["cause"]["code"] in ("machine-gone", "interrupted"), "preempted: over, and why")
    t.eq(cloud.machines(), [], "nothing is left")
    alarms = [e for e in b.ask("events", {"lease": a["lease"], "limit": 1000})["events"]]
    t.ok(any("lost" in json.dumps(e) or "interrupted" in json.dumps(e) for e in alarms), "an event tells it")


def main():
    with Cloud("shadeform") as cloud, Broker(cloud.provider(), times=FAST) as b:
        b.offers_there()
        for fn in (ordering, odd_gets, next_offer, exhausted, no_money, price_raised, unauthorised, duplicates):
            t.run(fn, b, cloud)
        for v in cloud.control("GET", "/state")["violations"]:
            t.ok(False, f"violation of the API: {v}")
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider(), times=FAST) as b:
        b.offers_there()
        for fn in (ready, preempted):
            t.run(fn, b, cloud)
    t.done()


main()
