#!/usr/bin/python3
"""load.py - a thousand clients, readers that never read, three hundred rents at once: bounded, fair, and all of them right"""
import os
import resource
import sys
import time

import zmq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Refused, Tap, until  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402

venv.enter("load")
t = Tap()
CLIENTS, RENTS, JOINS = 1000, 300, 8
MIB = 1 << 20
GROWTH_MIB = 64


def rss(b):
    with open(f"/proc/{b.proc.pid}/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def contexts():
    """libzmq opens 1,023 sockets in one of them."""
    return [zmq.Context(io_threads=1) for _ in range(2)]


def crowd(b, verb, body):
    """CLIENTS connections, each with one request sent."""
    made = []
    for context in contexts():
        for _ in range(CLIENTS // 2):
            s = context.socket(zmq.DEALER)
            s.linger = 0
            s.connect(b.endpoint)
            made.append((s, b.send(verb, body, s)))
    return made


def leave(made):
    for context in {s.context for s, _ in made}:
        context.destroy(0)


def thousand(b):
    """Each of a thousand gets its answer, or is told when to come again."""
    made = crowd(b, "offers", {"filter": {}})
    kinds = {"final": 0, "busy": 0}
    for s, rid in made:
        got = b.recv(rid, 30000, s)
        if got and got[0] == "error" and got[1]["code"] == "busy" and got[1].get("retry_after_ms", 0) > 0:
            kinds["busy"] += 1
        elif got:
            kinds[got[0]] = kinds.get(got[0], 0) + 1
    t.eq((sum(kinds.values()), set(kinds)), (CLIENTS, {"final", "busy"}), f"a thousand clients are each answered: {kinds}")
    t.ok(kinds["final"] > 0, "some at once, the others are told how long to wait")
    leave(made)


def extended(b, n):
    try:
        return b.accepted("extend", {"key": f"deaf-{n}", "lease": "one", "ttl_ms": HOUR_MS + n * 1000})
    except Refused as e:
        if e.code != "busy":
            raise
        return None


def deaf(b):
    """A thousand follow the events and never read; events come all the while, and the others do not notice."""
    before = rss(b)
    made = crowd(b, "events", {"follow": True, "since": 0, "limit": 1000})
    slowest = 0
    for n in range(60):
        started = time.monotonic()
        until(lambda: b.try_ask("ping", {}, 5000), 20, "ping")
        slowest = max(slowest, time.monotonic() - started)
        until(lambda: extended(b, n), 20, "extend")
    grown = (rss(b) - before) // MIB
    t.ok(grown < GROWTH_MIB, f"memory grew by {grown} MiB with a thousand that do not read, less than {GROWTH_MIB}")
    t.ok(slowest < 2, f"a ping took at most {slowest * 1000:.0f} ms meanwhile")
    leave(made)
    t.ok(b.ask("ping"), "and they may all vanish at once")


def rents(b, world):
    """More than may join at a time, more than one cloud: each is ready in the end, once."""
    before, asked, leases = rss(b), 0, []
    most = 0
    while len(leases) < RENTS:
        body = {"key": f"rent-{len(leases)}", "ttl_ms": HOUR_MS, "cluster": "standalone",
                "filter": {"provider": [NAMES[len(leases) % len(NAMES)]], "max_price_udollar": 6000000}}
        asked += 1
        try:
            leases.append(b.accepted("rent", body)["lease"])
        except Refused as e:
            if e.code != "busy":
                raise
            time.sleep(e.body["retry_after_ms"] / 1000)  # what the broker said
    t.eq(len(set(leases)), RENTS, f"{RENTS} rents are taken, of {asked} that were asked")

    def ready():
        nonlocal most
        now = b.ask("leases", {"limit": 1000})["leases"]
        most = max(most, sum(x["state"] == "joining" and x.get("step", {}).get("name") == "standalone" for x in now))
        return sum(x["state"] == "ready" for x in now) >= RENTS + 1
    started = time.monotonic()
    until(ready, 120, "all are ready")
    t.ok(True, f"all are ready after {time.monotonic() - started:.0f} s")
    t.ok(0 < most <= JOINS, f"at most {most} were joined at a time, {JOINS} may be")
    world.look()
    t.eq(len(world.machines()), RENTS + 1, "with one machine each")
    grown = (rss(b) - before) // MIB
    t.ok(grown < GROWTH_MIB, f"memory grew by {grown} MiB, less than {GROWTH_MIB}")


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with Four() as world, world.broker(more_limits={"joins": JOINS}) as b:
        world.listed(b)
        b.accepted("rent", {"key": "one", "name": "one", "ttl_ms": HOUR_MS, "filter": {"max_price_udollar": 6000000}})
        b.wait_state("one", "ready")
        t.run(thousand, b)
        t.run(deaf, b)
        t.run(rents, b, world)
    t.done()


main()
