#!/usr/bin/python3
"""spending.py - what the books say was spent is what the clouds bill, to the cent, whatever happens to a machine

Three hours pass at once: the fakes are advanced, the broker starts again with a clock that is as much ahead.
"""
import datetime
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import schemas  # noqa: E402
from broker import TIMES, Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
HOURS = 3
LONG = 30 * 24 * 3600 * 1000
DAY = 24 * 3600 * 1000
FIRST = (DAY - HOURS * 3600 * 500 - int(time.time() * 1000)) % DAY  # the broker's clock begins at half past ten in the evening
LATER = FIRST + HOURS * 3600 * 1000


def rent(b, key, provider, model="H100", **more):
    return b.accepted("rent", {"key": key, "ttl_ms": 0, "deadline_ms": LONG, **more, "filter": {
        "gpu": [{"model": model, "min": 1, "max": 1}], "provider": [provider]}})["lease"]


def cost(b, **body):
    got = b.ask("cost", body)
    for row in got["rows"]:
        schemas.check("cost", row)
    return {r["key"]: r for r in got["rows"]}, got


def bill(cloud):
    return cloud.control("GET", "/bill")["total_udollar"]


def cents(got, want, name):
    if not t.ok(abs(got - want) < 10000, f"{name}: ${got / 1e6:.4f}, the cloud says ${want / 1e6:.4f}"):
        print(f"# {got} {want}")


def second(b, x):
    """That lease boots on its second attempt."""
    def look():
        lease = b.lease(x)
        return lease["state"] == "booting" and lease["attempt"]["number"] == 2
    until(look, 20, f"the second attempt of {x}")


def lives(b, one, two):
    """A failover, a late refusal, one that is kept, one that is leaked, one that is simply there."""
    one.faults({"on": "create", "kind": "late-error", "details": "out of stock", "seconds": 0.3, "times": 1})
    late = rent(b, "late", "shadeform")
    second(b, late)
    two.faults({"on": "create", "kind": "out-of-stock", "times": 1})
    over = rent(b, "over", "hyperstack", "A100")
    second(b, over)
    kept = rent(b, "kept", "shadeform", deadline_ms=3000, on_failure={"action": "keep", "keep_ms": LONG})
    plain = rent(b, "plain", "hyperstack", owner="somebody")
    leaked = rent(b, "leaked", "shadeform")
    for x in (plain, leaked):
        b.wait_state(x, "booting")
    b.wait_state(kept, "failed-kept")
    for c, n in ((one, 3), (two, 2)):
        until(lambda: c.control("GET", "/bill")["running"] == n, 20, "all of them bill")
    one.faults({"on": "delete", "kind": "status", "status": 500, "body": "no", "times": -1})
    b.accepted("release", {"key": "rl", "lease": leaked})
    b.wait_state(leaked, "leaked")
    return late, over, kept, plain, leaked


def check(b, kept, leaked):
    code, out, _ = b.cli("leases", "--check")
    t.ok(code == 1 and kept in out and leaked in out and "booting" not in out, "leases --check shows what is kept or leaked, and exits with 1")
    code, out, _ = b.cli("leases", "--check", "--json")
    t.ok(code == 1 and out.count('"id":"l') + out.count('"id": "l') >= 2, "with --json, too")


def three_hours(b, one, two):
    middle = b.ask("ping")["now_ms"]
    b.stop()
    for c in (one, two):
        c.control("POST", "/advance", {"seconds": HOURS * 3600})
    b.start(GPUB_TEST_CLOCK_OFFSET_MS=str(LATER))
    b.ask("resume", {"provider": "broker"})
    return middle


def compare(b, one, two, when):
    rows, sums = cost(b, by="provider")
    for c in (one, two):
        cents(rows[c.name]["spent_udollar"], bill(c), f"{when}, {c.name}")
    t.eq(sums["total_udollar"], sum(r["spent_udollar"] for r in rows.values()), "the total is the sum")
    return rows, sums


def ways(b, middle, sums):
    """The same money, cut in other ways."""
    for by in ("owner", "provider", "gpu", "day"):
        rows, got = cost(b, by=by)
        t.ok(abs(got["total_udollar"] - sums["total_udollar"]) < 10000 and
             abs(sum(r["spent_udollar"] for r in rows.values()) - got["total_udollar"]) <= len(rows), f"by {by}: {sorted(rows)}")
    rows, _ = cost(b, by="owner")
    t.eq({k: r["leases"] for k, r in rows.items()}, {"tester": 4, "somebody": 1}, "a lease counts once, whatever it took")
    t.ok({"H100", "A100"} <= {k.split("-")[0].split(" ")[0] for k in cost(b, by="gpu")[0]}, "GPUs are there")
    t.ok(all(re.fullmatch(r"\d{4}-\d\d-\d\d", k) for k in cost(b, by="day")[0]), "days are days")
    now = b.ask("ping")["now_ms"]
    half = cost(b, since_ms=(middle + now) // 2)[1]["total_udollar"]
    want = sums["rate_udollar"] * (now - middle) / 2 / 3600000
    t.ok(abs(half - want) < 20000, f"since the middle half of it was spent: ${half / 1e6:.4f} of ${want / 1e6:.4f}")
    t.eq(cost(b, since_ms=now + 3600000)[1]["total_udollar"], 0, "since the future nothing")
    days = cost(b, by="day")[0]
    t.eq(sorted(days), [datetime.datetime.fromtimestamp(x / 1000, datetime.timezone.utc).strftime("%Y-%m-%d") for x in (now - DAY, now)],
         "it is midnight in between")
    t.ok(all(abs(r["spent_udollar"] / sums["total_udollar"] - 0.5) < 0.01 for r in days.values()), "and each day has its half")
    t.eq([r["rate_udollar"] for _, r in sorted(days.items())], [0, sums["rate_udollar"]], "only today goes on")


def ends(b, one, two, leases):
    one.control("DELETE", "/faults")
    for x in leases[:-1]:
        b.accepted("release", {"key": f"end-{x}", "lease": x})
    for x in leases:
        b.wait_state(x, "released", "failed-empty")
    for c in (one, two):
        until(lambda: c.control("GET", "/bill")["running"] == 0, 10, "nothing bills")
    rows, sums = compare(b, one, two, "at the end")
    t.eq(sums["rate_udollar"], 0, "nothing is spent any more")
    b.restart(GPUB_TEST_CLOCK_OFFSET_MS=str(LATER))
    t.eq(cost(b, by="provider")[1]["total_udollar"], sums["total_udollar"], "nor after a restart")
    code, out, err = b.cli("leases", "--check")
    t.eq((code, out), (0, ""), "leases --check is content")


def balance(b, two):
    """An alarm when it is low, one, and again after it recovered."""
    def told(what):
        return sum(e["what"] == what for e in b.ask("events", {"limit": 1000})["events"])

    def settle(dollars):
        two.control("POST", "/credit", {"credit": dollars})
        until(lambda: next(p for p in b.ask("providers")["providers"] if p["name"] == "hyperstack").get("probe", {})
              .get("balance_udollar") == dollars * 1000000, 10, "the new balance is known")

    t.eq(told("balance-low"), 0, "100 dollars are enough")
    settle(49)
    t.eq(told("balance-low"), 1, "49 are not")
    t.eq(told("balance-recovered"), 0, "yet")
    settle(48)
    b.restart(GPUB_TEST_CLOCK_OFFSET_MS=str(LATER))
    settle(47)
    t.eq(told("balance-low"), 1, "which is said once, not for each dollar or restart")
    settle(80)
    t.eq((told("balance-low"), told("balance-recovered")), (1, 1), "it recovers")
    settle(10)
    t.eq(told("balance-low"), 2, "and runs dry again")


def main():
    with Cloud("shadeform") as one, Cloud("hyperstack") as two:
        with Broker(one.provider(), two.provider(balance_alarm=50.0), times=TIMES + f",boot={LONG},probe=300",
                    env={"GPUB_TEST_CLOCK_OFFSET_MS": str(FIRST)}) as b:
            b.offers_there()
            until(lambda: all(p["offers"]["count"] for p in b.ask("providers")["providers"]), 20, "both have offers")
            t.eq(cost(b)[1], {"rows": [], "total_udollar": 0, "rate_udollar": 0}, "nothing was spent yet")
            leases = lives(b, one, two)
            check(b, leases[2], leases[4])
            middle = three_hours(b, one, two)
            rows, sums = compare(b, one, two, "after three hours")
            t.ok(sums["total_udollar"] > 20000000, f"that is real money: ${sums['total_udollar'] / 1e6:.2f}")
            t.run(ways, b, middle, sums)
            t.run(ends, b, one, two, leases)
            t.run(balance, b, two)
    t.done()


main()
