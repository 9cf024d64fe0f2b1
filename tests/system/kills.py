"""kills.py - what the sweeps share: points to die at, and a client that goes on whatever dies"""
import threading
import time

from broker import Refused

LIMIT, BAD = 4000, 20  # no run has so many points; nobody reads of so many that ended wrong
HARMLESS = {"LD_PRELOAD": "", "GPUB_TEST_IO": "", "GPUB_TEST_KILL": ""}


class Stubborn:
    """Asks a daemon that may die at any moment, and starts it again."""

    def __init__(self, b):
        self.b, self.deaths = b, 0

    def alive(self):
        if self.b.proc.poll() is not None:
            self.deaths += 1
            self.b.start(**HARMLESS)

    def persist(self, fn, seconds, what):
        """fn until it answers; a dead daemon is started again, a question without an answer asked again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.alive()
            try:
                got = fn()
                if got:
                    return got
            except (TimeoutError, Refused) as e:
                if isinstance(e, Refused) and e.code not in ("busy", "draining", "provider-down"):
                    raise
            except RuntimeError:  # it died while it started
                pass
            time.sleep(0.02)
        raise TimeoutError(f"{what}: not within {seconds} s; {self.b.tail(3000)}")

    def state(self, lease, *wanted):
        def look():
            r = self.b.try_ask("lease", {"lease": lease}, 1000)
            if not r or r[0] != "final":
                return None
            now = r[1]["lease"]
            if now["state"] in ("failed-kept", "failed-empty", "lost", "leaked") and now["state"] not in wanted:
                raise AssertionError(f"{lease} is {now['state']}: {now.get('cause')}")
            return now if now["state"] in wanted else None
        return self.persist(look, 90, f"{lease} {wanted}")

    def mutate(self, verb, body):
        return self.persist(lambda: self.b.accepted(verb, body, 1000), 30, verb)

    def hit(self):
        return self.deaths or self.b.logged("child.down") or self.b.logged("io-fault met")


class Point:
    """The n-th passage of a kind of point; as a text, what GPUB_TEST_KILL and GPUB_TEST_IO take."""

    def __init__(self, kind, n, suffix):
        self.kind, self.n, self.suffix = kind, n, suffix

    def __str__(self):
        return f"{self.kind}:{self.n}{self.suffix}"


class Todo:
    """The points of one kind after the other; a kind is over when a run got through unharmed."""

    def __init__(self, kinds, first, stride):
        self.lock, self.kinds, self.first, self.stride = threading.Lock(), list(kinds), first, stride
        self.next, self.over = {k: first for k in kinds}, set()
        self.killed, self.most, self.bad = {k: 0 for k in kinds}, {k: 0 for k in kinds}, []

    def take(self):
        with self.lock:
            for kind in self.kinds:
                if kind not in self.over and self.next[kind] < LIMIT and len(self.bad) < BAD:
                    n = self.next[kind]
                    self.next[kind] += max(1, self.stride // 4) if kind[0] == "sync" else self.stride
                    return Point(kind[0], n, kind[1])
        return None

    def done(self, point, hit, machines, why):
        kind = (point.kind, point.suffix)
        with self.lock:
            if not hit:
                self.over.add(kind)
                return
            self.killed[kind] += 1
            self.most[kind] = max(self.most[kind], machines)
            if why:
                self.bad.append(f"killed at {point}: {why}")
                print(f"# {self.bad[-1]}", flush=True)
