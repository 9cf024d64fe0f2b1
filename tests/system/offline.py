#!/usr/bin/python3
"""offline.py - twenty minutes without any network end nothing, and afterwards everything is as before"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Tap, until  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402

venv.enter("offline")
t = Tap()


def states(b, leases):
    return {x: b.lease(x)["state"] for x in leases}


def main():
    with Four() as world, world.broker() as b:
        world.listed(b)
        leases = [world.rent(b, f"{n}-{i}", n, 6 * HOUR_MS) for n in NAMES for i in range(2)]
        before = {n: m["id"] for n, m in world.machines().items()}
        t.eq(len(before), len(leases), "eight machines at four clouds")
        for cloud in world.clouds.values():
            cloud.faults({"on": "*", "kind": "drop", "times": -1})
        for _ in range(10):
            world.clock.advance(120)
            until(lambda: all(p.get("error") for p in b.ask("providers")["providers"]), 30, "each provider fails")
        t.eq(set(states(b, leases).values()), {"ready"}, "twenty minutes later all are ready")
        t.eq(b.ask("offers", {"filter": {}})["matched"], 0, "nothing would be rented from a price that old")
        b.kill()
        b.start()
        t.eq(set(states(b, leases).values()), {"ready"}, "a restart without network changes nothing")
        wanted = leases[0]
        b.accepted("release", {"key": "r", "lease": wanted})
        until(lambda: b.lease(wanted)["state"] in ("draining", "releasing"), 20, "a release that begins")
        for cloud in world.clouds.values():
            cloud.control("DELETE", "/faults")
        b.wait_state(wanted, "released")
        t.ok(True, "a release asked for meanwhile is carried out when the network is back")
        world.look(3)
        t.eq(set(states(b, leases[1:]).values()), {"ready"}, "the others are ready, as before")
        gone = b.lease(wanted)["attempts"][0]["machine_name"]
        t.eq({n: m["id"] for n, m in world.machines().items()}, {n: i for n, i in before.items() if n != gone}, "with the same machines")
        t.eq({n: c.control("GET", "/counters").get("delete", 0) > 0 for n, c in world.clouds.items()},
             {n: n == NAMES[0] for n in NAMES}, "no other cloud was asked to end one")
        until(lambda: all(not p.get("error") for p in b.ask("providers")["providers"]), 30, "no provider fails")
        until(lambda: {o["provider"] for o in b.ask("offers", {"filter": {}, "limit": 500})["offers"]} == set(NAMES), 30, "offers")
        t.ok(True, "and every cloud's offers are back")
    t.done()


main()
