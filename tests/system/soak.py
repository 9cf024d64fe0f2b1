#!/usr/bin/python3
"""soak.py - a day of four clouds in minutes: many leases, chaos throughout, and a checker that trusts only the clouds

    soak.py [--seed N] [--leases N] [--steps N]          GPUB_KEEP=1 keeps the broker's folder

A step is ten minutes of the day.  In it leases are rented, extended, cancelled and released, machines are reclaimed or
vanish, strangers' machines appear, answers of the clouds are lost, late, empty or garbage, and the daemon and its
providers are killed.  Then the chaos is switched off, all comes to rest, and the clouds' own books are held against
the broker's.  What is done is chosen by the seed alone; when it meets what is not.
"""
import argparse
import contextlib
import json
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Refused, Tap, until  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402
from kills import Stubborn  # noqa: E402

venv.enter("soak over four clouds")
STEP_S = 600
OVER = ("released", "failed-empty", "lost")
RESTING = OVER + ("ready", "degraded", "failed-kept")
OTHER = "00000000-1111-4222-8333-444444444444"
CENT = 10000

# What the answers of a cloud may be like, and those to which of its calls.
FAULTS = (
    ("create", {"kind": "lost-reply"}), ("create", {"kind": "bad-gateway"}), ("create", {"kind": "drop"}),
    ("create", {"kind": "garbage"}), ("create", {"kind": "truncated"}), ("create", {"kind": "out-of-stock"}),
    ("create", {"kind": "late", "seconds": 0.4}), ("create", {"kind": "hang", "seconds": 2.5}),
    ("list", {"kind": "empty-list"}), ("list", {"kind": "partial-list"}), ("list", {"kind": "duplicate-rows"}),
    ("list", {"kind": "shuffle"}), ("list", {"kind": "truncated"}), ("list", {"kind": "broken"}),
    ("list", {"kind": "garbage"}), ("list", {"kind": "drop"}), ("info", {"kind": "broken"}), ("info", {"kind": "garbage"}),
    ("delete", {"kind": "lost-reply"}), ("delete", {"kind": "broken"}), ("delete", {"kind": "bad-gateway"}),
    ("*", {"kind": "throttled", "retry_after": 1}), ("*", {"kind": "broken"}), ("*", {"kind": "drop"}),
    ("*", {"kind": "delay", "seconds": 0.5}),
)


def patient(b, verb, body):
    """An answer of a broker at rest; a checker asks faster than one client may."""
    def ask():
        try:
            return b.ask(verb, body)
        except Refused as e:
            if e.code != "busy":
                raise
            return None
    return until(ask, 60, verb)


class Checker:
    """Holds the clouds' books against ours; it knows what was asked for and what was done to machines."""

    def __init__(self, clouds, quiet=False):
        self.clouds, self.strangers, self.quiet = clouds, [], quiet
        self.harmed, self.unwanted = set(), set()  # names of machines; leases that were to end
        self.differences, self.looked, self.off_udollar = [], 0, 0
        self.over, self.seen_over = {}, set()

    def differ(self, text):
        self.differences.append(text)
        if not self.quiet:
            print(f"# difference: {text}"[:4000], flush=True)

    def leases(self, b):
        """All of the books.  What was over at two looks is not asked for again before the last one."""
        got, cursor = {}, None
        while True:
            r = patient(b, "leases", {"all": True, "limit": 1000, **({"cursor": cursor} if cursor else {})})
            for x in r["leases"]:
                got[x["id"]] = self.over.get(x["id"]) or patient(b, "lease", {"lease": x["id"]})["lease"]
            cursor = r.get("cursor")
            if not cursor:
                return got

    def look(self, b, now_ms, what):
        """Everything is at rest: each machine has its lease, each lease its machine, each dollar its hour."""
        leases, machines = self.leases(b), {}
        self.over = {i: x for i, x in leases.items() if x["state"] in OVER and i in self.seen_over}
        self.seen_over = {i for i, x in leases.items() if x["state"] in OVER}
        for cloud in self.clouds.values():
            for m in cloud.control("GET", "/machines"):
                machines.setdefault(m["name"], []).append({**m, "cloud": cloud.name})
        self.looked += 1
        owner = {a["machine_name"]: x for x in leases.values() for a in x["attempts"]}
        for name, twins in machines.items():
            ours = [m for m in twins if not m["foreign"]]
            alive = [m for m in ours if not m["ended_ms"] and not m["gone_ms"]]
            if len(alive) > 1:
                self.differ(f"{what}: {len(alive)} machines {name} are alive")
            if ours and name not in owner:
                self.differ(f"{what}: {name} at {ours[0]['cloud']} is in no lease")
            if alive and name in owner and owner[name]["state"] in OVER:
                self.differ(f"{what}: {name} at {alive[0]['cloud']} bills, lease {owner[name]['id']} is {owner[name]['state']}")
        for x in leases.values():
            self.one(x, machines, now_ms, what)
        for cloud, ident in self.strangers:
            m = self.clouds[cloud].control("GET", f"/machines/{ident}")[0]
            if m["ended_ms"] or m["gone_ms"]:
                self.differ(f"{what}: a machine of somebody else at {cloud} was ended: {m['name']}")
        return leases

    def one(self, x, machines, now_ms, what):
        alive = [m for a in x["attempts"] for m in machines.get(a["machine_name"], []) if not m["ended_ms"] and not m["gone_ms"]]
        if len(alive) > 1:
            self.differ(f"{what}: lease {x['id']} has {len(alive)} machines")
        if x["state"] not in OVER and len(alive) != 1:
            self.differ(f"{what}: lease {x['id']} is {x['state']} and has {len(alive)} machines")
        names = {a["machine_name"] for a in x["attempts"]}
        due = x["id"] in self.unwanted or bool(names & self.harmed) or (x.get("expires_ms") or now_ms + 1) <= now_ms
        if x["state"] in ("released", "lost") and not due:
            self.differ(f"{what}: lease {x['id']} is {x['state']} and nobody asked for that: {x.get('cause')}")
        for a in x["attempts"]:
            self.money(x, a, machines.get(a["machine_name"], []), what)

    def money(self, x, a, made, what):
        """A cloud bills while a machine runs, the books from its create until it is proven gone: seconds more."""
        bill, books = sum(m["cost_udollar"] for m in made), a.get("spent_udollar", 0)
        self.off_udollar = max(self.off_udollar, abs(books - bill))
        if not -CENT < books - bill < CENT:
            self.differ(f"{what}: {a['machine_name']} cost {bill} micro-dollars, in the books {books}: "
                        f"{json.dumps({k: v for k, v in a.items() if k != 'offer'})}, {json.dumps(made)[:600]}")


class Soak(Stubborn):
    def __init__(self, seed, world, b):
        super().__init__(b)
        self.random, self.world, self.clouds = random.Random(seed), world, world.clouds
        self.checker, self.keys = Checker(world.clouds), 0
        self.count = dict.fromkeys(("rented", "refused", "released", "extended", "harmed", "strangers", "faults", "kills"), 0)

    def mutate(self, verb, body):
        """What is answered; a refusal that stands is an answer, too."""
        self.keys += 1
        try:
            return super().mutate(verb, {"key": f"soak-{self.keys}", **body})
        except Refused as e:
            return e

    # ---- what happens in a step

    def rent(self):
        self.count["rented"] += 1
        hours = self.random.choice((1, 2, 3, 6))
        name = self.random.choice(NAMES)
        market = self.random.choice(("on-demand", "on-demand", "any"))
        got = self.mutate("rent", {"filter": {"market": market, "provider": [name], "max_price_udollar": 6000000},
                                   "ttl_ms": hours * HOUR_MS, "on_failure": {"action": "release"}})
        if isinstance(got, Refused):
            self.count["refused"] += 1
            if got.code != "no-offer":
                self.checker.differ(f"a rent was refused: {got}")

    def living(self):
        return self.persist(lambda: self.b.ask("leases", {"limit": 1000}, 3000), 60, "leases")["leases"]

    def change(self):
        """Somebody changes his mind, at whatever moment of a lease's life."""
        living = self.living()
        if not living:
            return
        x = self.random.choice(living)
        if self.random.random() < 0.6:
            self.checker.unwanted.add(x["id"])
            self.count["released"] += not isinstance(self.mutate("release", {"lease": x["id"]}), Refused)
        else:
            self.count["extended"] += not isinstance(self.mutate("extend", {"lease": x["id"], "ttl_ms": 4 * HOUR_MS}), Refused)

    def harm(self):
        """One machine ends without us."""
        cloud = self.clouds[self.random.choice(NAMES)]
        running = [m for m in cloud.machines() if m["active_ms"]]
        if not running:
            return
        m = self.random.choice(running)
        self.checker.harmed.add(m["name"])
        self.count["harmed"] += 1
        cloud.control("POST", f"/machines/{m['id']}", {"do": self.random.choice(("preempt", "vanish", "end"))})

    def stranger(self, cloud=None):
        """A machine that is none of our business: unmarked, or another broker's."""
        cloud = cloud or self.clouds[self.random.choice(NAMES)]
        tags = self.random.choice((["mine=yes"], [f"gpubroker-owner={OTHER}", "gpubroker-lease=1", "gpubroker-token=feed"]))
        self.count["strangers"] += 1
        ident = cloud.control("POST", "/machines", {"name": f"stranger-{self.count['strangers']}", "tags": tags})["id"]
        self.checker.strangers.append((cloud.name, ident))

    def fault(self):
        on, fault = self.random.choice(FAULTS)
        self.count["faults"] += 1
        self.clouds[self.random.choice(NAMES)].faults({"on": on, "times": self.random.choice((1, 1, 2, 4)), **fault})

    def kill(self):
        """The daemon, now or at one of its next commits or frames; or one of its providers."""
        self.count["kills"] += 1
        how = self.random.choice(("now", "commit", "commit+", "frame", "provider"))
        if how == "provider":
            pids = self.persist(lambda: self.b.children("gpubroker-provider"), 30, "providers")
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(pids), signal.SIGKILL)
            return
        self.b.kill()
        point, suffix = how.rstrip("+"), "+" if how.endswith("+") else ""
        self.b.start(wait=False, **({} if how == "now" else {"GPUB_TEST_KILL": f"{point}:{self.random.randint(1, 40)}{suffix}"}))

    def step(self, rents):
        deeds = [self.rent] * rents + [self.change] * max(1, rents // 2) + [self.fault] * 3 + [self.kill]
        deeds += [self.harm] * (self.random.random() < 0.5) + [self.stranger] * (self.random.random() < 0.3)
        self.random.shuffle(deeds)
        for deed in deeds:
            deed()

    # ---- and what must be true of it

    def rest(self, what, seconds=100):
        """No more chaos: until every lease is where it stays, and every cloud was listed whole since."""
        for cloud in self.clouds.values():
            cloud.control("DELETE", "/faults")
        self.b.restart()
        self.b.ask("resume", {"provider": "broker"})
        state = []

        def resting():
            state[:] = [x for x in self.living() if x["state"] not in RESTING]
            return not state
        try:
            until(resting, seconds, "rest")
        except TimeoutError:
            self.checker.differ(f"{what}: no rest: {json.dumps([self.b.lease(x['id']) for x in state])[:3000]}")
        # What ended without us is seen in the next lists.
        self.world.look()
        until(resting, seconds, f"{what}: rest after the lists")

    def gone(self, what):
        """What was harmed is over in the books, too."""
        left = []

        def seen():
            left[:] = [x for x in self.living() if x["state"] in RESTING and x.get("node") in self.checker.harmed]
            return not left
        try:
            until(seen, 60, "the end of what was harmed")
        except TimeoutError:
            self.checker.differ(f"{what}: the books do not see that it ended: {json.dumps(left)}; "
                                f"{json.dumps(self.b.ask('providers'))}; {json.dumps(self.b.ask('ping'))}")

    def summary(self, seed, steps, seconds):
        c = self.count
        return (f"seed {seed}: {c['rented']} rents ({c['refused']} without an offer), {steps * STEP_S // 60} minutes in "
                f"{seconds:.0f} s, {c['released']} releases, {c['extended']} extends, {c['harmed']} machines ended without us, "
                f"{c['strangers']} of strangers, {c['faults']} faults, {c['kills']} kills, {self.checker.looked} looks at "
                f"all books; {len(self.checker.differences)} differences")


def soak(seed, leases, steps, world, b):
    s, started, clock = Soak(seed, world, b), time.monotonic(), world.clock
    world.listed(b)
    for cloud in world.clouds.values():
        s.stranger(cloud)
    for n in range(steps):
        what = f"seed {seed}, step {n + 1}"
        s.step(leases * (n + 1) // steps - leases * n // steps)
        s.rest(what)
        s.gone(what)
        s.checker.look(b, clock.now_ms(), what)
        clock.advance(STEP_S)
    for x in s.living():
        s.checker.unwanted.add(x["id"])
        s.mutate("release", {"lease": x["id"]})
    s.rest("at the end")
    until(lambda: not s.living(), 60, "no lease is left")
    s.checker.over.clear()
    s.checker.look(b, clock.now_ms(), "at the end")
    for cloud, left in world.strays().items():
        s.checker.differ(f"at the end: {cloud} keeps what is ours: {json.dumps(left)[:300]}")
    for cloud in world.clouds.values():
        for v in cloud.control("GET", "/state")["violations"]:
            s.checker.differ(f"{cloud.name} was asked wrongly: {v}")
    return s, s.summary(seed, steps, time.monotonic() - started)


def sharp(s, b):
    """What the checker says of a stranger's machine that was ended and of one of ours that a released lease left behind."""
    cloud, eye = s.clouds["shadeform"], Checker(s.clouds, quiet=True)
    b.ask("pause", {"provider": cloud.name})  # or the broker would mend it, or one of its lists that is under way
    until(lambda: not next(p for p in b.ask("providers")["providers"] if p["name"] == cloud.name)["in_flight"], 20, "a pause")
    left = [m for m in cloud.control("GET", "/machines") if not m["foreign"]][-1]  # its kill switch has not passed
    cloud.control("POST", "/machines", {"twin_of": left["id"]})
    ended = cloud.control("POST", "/machines", {"name": "theirs", "tags": ["mine=yes"]})["id"]
    cloud.control("POST", f"/machines/{ended}", {"do": "end"})
    eye.strangers, eye.harmed, eye.unwanted = [(cloud.name, ended)], s.checker.harmed, s.checker.unwanted
    eye.look(b, s.world.clock.now_ms(), "sharp")
    return eye.differences


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--leases", type=int, default=60)
    p.add_argument("--steps", type=int, default=6)
    o = p.parse_args()
    t = Tap()
    with Four() as world, world.broker() as b:
        s, text = soak(o.seed, o.leases, o.steps, world, b)
        print(f"# {text}")
        print(f"# of one machine, books and bill were at most {s.checker.off_udollar} micro-dollars apart")
        t.ok(s.count["rented"] - s.count["refused"] > o.leases // 2, "most rents found an offer")
        t.ok(not s.checker.differences, f"no difference between the clouds' books and ours ({len(s.checker.differences)})")
        found = sharp(s, b)
        t.ok(len(found) == 2 and "bills" in found[0] and "somebody else" in found[1], f"what the checker is to find it finds: {found}")
    t.done()


main()
