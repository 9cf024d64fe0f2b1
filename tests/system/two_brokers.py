#!/usr/bin/python3
"""two_brokers.py - brokers that share every account: neither touches what the other rented, and neither does a clone"""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Tap  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402

venv.enter("two brokers")
t = Tap()


def names(b, leases):
    return {b.lease(x)["node"] for x in leases}


def strangers(world, a, b):
    """Two of one name, with the same lease numbers in the same accounts."""
    mine = {n: [world.rent(a, f"a-{n}", n)] for n in NAMES}
    theirs = {n: [world.rent(b, f"b-{n}", n)] for n in NAMES}
    ours, others = names(a, sum(mine.values(), [])), names(b, sum(theirs.values(), []))
    world.look()
    t.eq(set(world.machines()), ours | others, "each has its machine at each cloud")
    for x, of, who in ((a, others, "the first"), (b, ours, "the second")):
        t.eq(x.ask("orphans", {})["orphans"], [], f"{who} has no orphans")
        found = x.ask("orphans", {"all": True})["orphans"]
        t.eq(({o["name"] for o in found}, {o["mark"] for o in found}), (of, {"other-broker"}), f"{who} sees the other's for what they are")
    for x in sum(mine.values(), []):
        a.accepted("release", {"key": f"r-{x}", "lease": x})
    for x in sum(mine.values(), []):
        a.wait_state(x, "released")
    world.look()
    t.eq(set(world.machines()), others, "what one releases are its own alone")
    t.eq({b.lease(x)["state"] for x in sum(theirs.values(), [])}, {"ready"}, "the other's are ready, as before")


def clone(world, a, others):
    """The books of an hour ago, started beside the original: it sees machines of a later number, and ends nothing."""
    kept = [world.rent(a, f"kept-{n}", n) for n in NAMES]
    a.stop()
    twin = world.broker()
    shutil.copytree(a.state, twin.state)
    a.start()
    later = [world.rent(a, f"later-{n}", n) for n in NAMES]
    for x in kept + later:
        a.accepted("extend", {"key": f"x-{x}", "lease": x, "ttl_ms": 10 * HOUR_MS})
    alive = names(a, kept + later)
    with twin:
        world.look()
        for _ in range(9):
            world.clock.advance(600)
            world.look(1)
        t.ok(twin.ask("ping").get("frozen"), f"an hour later the clone's leases are over, and it is frozen: {twin.ask('ping').get('frozen')}")
        t.eq({twin.lease(x)["state"] for x in kept}, {"ready"}, "it ends none of them")
        t.eq(set(world.machines()), alive | others, "no machine was touched")
        for x in kept + later:
            if a.lease(x)["state"] != "ready":
                t.ok(False, f"the original's lease {x} is {a.lease(x)['state']}")
        t.eq({o["name"] for o in twin.ask("orphans", {})["orphans"]}, names(a, later), "what was rented since is an orphan there")
        code, _, err = twin.cli("orphans", "release", f"{NAMES[0]}/{world.machines()[a.lease(later[0])['node']]['id']}", "--yes")
        t.ok(code != 0 and "cannot be believed" in err, f"which it refuses to release, too: {err.strip()[:120]}")
    t.eq(set(world.machines()), alive | others, "all are there when it is stopped")


def main():
    with Four() as world, world.broker() as a, world.broker() as b:
        world.listed(a)
        world.listed(b)
        t.run(strangers, world, a, b)
        for x in b.ask("leases", {})["leases"]:  # they outlive the hours that are to pass
            b.accepted("extend", {"key": f"e-{x['id']}", "lease": x["id"], "ttl_ms": 20 * HOUR_MS})
        t.run(clone, world, a, {x["node"] for x in b.ask("leases", {})["leases"]})
    t.done()


main()
