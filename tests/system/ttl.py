#!/usr/bin/python3
"""ttl.py - the end of a lease's time: told before, kept by the broker, by the cloud when the broker is down, never twice"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Tap, until  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402

venv.enter("ttl")
t = Tap()
SLACK_MS = 15 * 60000
SWITCHES = {"shadeform", "aws"}  # these end a machine by themselves


def events(b, what, lease=None):
    got = b.ask("events", {"limit": 1000, **({"lease": lease} if lease else {})})["events"]
    return [e for e in got if e["what"] == what]


def pass_by(world, b, minutes):
    for _ in range(minutes // 10):
        world.advance(b, 600)


def told(world, b):
    x = world.rent(b, "told", "shadeform")
    pass_by(world, b, 40)
    world.look(1)
    t.eq(events(b, "expiring", x), [], "twenty minutes before its end nothing is said")
    world.advance(b, 360)
    until(lambda: events(b, "expiring", x), 10, "the warning")
    t.eq((b.lease(x)["state"], len(events(b, "expiring", x))), ("ready", 1), "a quarter of an hour before it is, once")
    world.advance(b, 900)
    lease = b.wait_state(x, "released", seconds=20)
    t.eq(lease["cause"]["code"], "ttl", "and then it is over, and why")
    t.eq(world.machines(), {}, "with its machine")


def extended(world, b):
    x = world.rent(b, "moved", "shadeform")
    kill = lambda: next(iter(world.machines().values()))["kill_at_ms"]
    t.ok(abs(kill() - b.lease(x)["expires_ms"] - SLACK_MS) < 2000, "the cloud is told to end it a quarter of an hour after its time")
    b.accepted("extend", {"key": "x", "lease": x, "ttl_ms": 3 * HOUR_MS})
    until(lambda: abs(kill() - b.lease(x)["expires_ms"] - SLACK_MS) < 2000, 10, "the switch moved")
    t.ok(b.lease(x)["expires_ms"] > world.clock.now_ms() + 2.9 * HOUR_MS, "more time moves the switch with it")
    pass_by(world, b, 120)
    world.look(1)
    t.eq((b.lease(x)["state"], len(world.machines())), ("ready", 1), "and its first end ends nothing")
    b.accepted("release", {"key": "xr", "lease": x})
    b.wait_state(x, "released")


def down(world, b):
    leases = {n: world.rent(b, f"down-{n}", n) for n in NAMES}
    of = {b.lease(x)["node"]: n for n, x in leases.items()}
    b.kill()
    world.clock.advance(80 * 60)
    left = until(lambda: (lambda names: names if not names & SWITCHES else None)({of[m] for m in world.machines()}), 10, "the switches")
    t.eq(left, set(NAMES) - SWITCHES, "with the broker down a cloud with a kill switch ends its machine")
    b.start()
    for n, x in leases.items():
        b.wait_state(x, *(("released", "lost") if n in SWITCHES else ("released",)), seconds=30)
    t.eq(world.machines(), {}, "a broker that is back ends the others")


def back(world, b):
    """A machine that was proven gone is there again."""
    x = world.rent(b, "back", "shadeform")
    cloud, ident = world.clouds["shadeform"], next(iter(world.machines().values()))["id"]
    b.accepted("release", {"key": "br", "lease": x})
    b.wait_state(x, "released")
    cloud.control("POST", "/machines", {"twin_of": ident})
    until(lambda: events(b, "reappeared"), 20, "the alarm")
    until(lambda: not world.machines(), 20, "it is removed")
    lease = b.wait_state(x, "released", seconds=20)
    t.ok(True, "a machine that shows up again after its end is an alarm, and removed")
    t.ok(lease["spent_udollar"] < 10000, f"its lease is over again and costs what it did: {json.dumps(lease['spent_udollar'])} micro-dollars")


def main():
    with Four() as world, world.broker() as b:
        world.listed(b)
        for fn in (told, extended, down, back):
            t.run(fn, world, b)
    t.done()


main()
