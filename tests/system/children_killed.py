#!/usr/bin/python3
"""children_killed.py - each kind of child, and the daemon, killed, stopped and hung up on in each state of a lease

A life is two leases in one broker, rented together and released one after the other.  The first one's events say in
which state it is; as it enters one of the life's states a signal goes to one process.  Then: each lease has had one
machine at a time, is ready with one, ends as released with none; both are served, and questions are answered at once
meanwhile.

  KILL  the process is gone        STOP  it hangs for good (the daemon: longer than its calls may take)
  HUP   only the daemon knows it (reload); a child takes no notice

$GPUB_KILL=ssh,STOP runs these lives only.
"""
import contextlib
import os
import queue
import re
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
import pool  # noqa: E402
from broker import Broker, Cloud, Tap, spoke, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("children killed", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

WORKERS = 3
TIMES = ("poll=50,gone=60,retry_min=30,retry_max=400,ssh_retry=100,stable=200,create=2500,call=8000,restart=50,lag=1000,grace=200,"
         "ping=500")  # a child that hangs shows by its silence, long before the deadline of a call
HUNG = 3     # seconds: longer than a create may take
LIFE = 90    # seconds that none takes
WITH = [("ordering", "reachable", "verifying", "draining"), ("booting", "joining", "ready", "releasing")]
ALONE = ("ordering", "booting", "reachable", "ready", "draining", "releasing")
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def lives():
    for whom in ("shadeform", "ssh", "kube", "daemon"):
        for how in ("KILL", "STOP"):
            for states in WITH:
                yield whom, how, "spoke-a", states
            if whom != "kube":
                yield whom, how, "none", ALONE
        yield whom, "HUP", "spoke-a", WITH[0] + WITH[1]


class Life:
    def __init__(self, b, cloud, n, whom, how, where, states):
        self.b, self.cloud, self.n, self.whom, self.how, self.cluster = b, cloud, n, whom, how, where
        self.todo, self.hit, self.pids = list(states), [], []
        self.state, self.since, self.start = {}, 0, time.monotonic()
        self.story = []
        self.before = {m["id"] for m in cloud.control("GET", "/machines")}

    # ---- what happens

    def follow(self):
        self.sock = self.b.dealer()
        self.rid = self.b.send("events", {"since": self.since, "follow": True}, self.sock)

    def next(self):
        """Waits for the next events and keeps each lease's state; a signal goes out as a state begins."""
        if time.monotonic() > self.start + LIFE:
            raise TimeoutError(f"not over in {LIFE} s")
        r = self.b.recv(self.rid, 500, self.sock)
        if not r:
            if self.b.try_ask("ping", {}, 2000) is None:
                raise TimeoutError("no answer to a ping in 2 s")
            return
        assert r[0] != "error", r
        for e in r[1]["events"]:
            self.since = max(self.since, e["seq"])
            if "lease" in e:
                self.tell(f"{e['lease']} {e['state']}")
                self.state[e["lease"]] = e["state"]
                if e["lease"] == self.first and e["state"] in self.todo:
                    self.todo.remove(e["state"])
                    self.strike(e["state"])
                    return

    def tell(self, text):
        self.story.append(f"{time.monotonic() - self.start:.1f} {text}")

    def reach(self, lease, wanted):
        over = {"failed-kept", "failed-empty", "lost", "leaked", "degraded", "released", "ready"} - {wanted}
        while self.state.get(lease) != wanted:
            self.next()
            now = self.state.get(lease)
            if now in over and not (wanted == "released" and now == "ready"):
                raise AssertionError(f"{lease} is {now}, not {wanted}: {self.b.lease(lease).get('cause')}")

    # ---- what is done to it

    def pid(self):
        """Of the process that serves this role now, out of the log."""
        if self.whom == "daemon":
            return self.b.proc.pid
        with open(self.b.log) as f:
            started = re.findall(rf"child\.start name={self.whom} pid=(\d+)$", f.read(), re.M)
        return int(started[-1])

    def strike(self, state):
        self.hit.append(state)
        pid = self.pid()
        self.tell(f"{self.how} {self.whom}")
        try:
            os.kill(pid, getattr(signal, "SIG" + self.how))
        except ProcessLookupError:  # it died of the last hit, and its successor is to come
            return
        self.pids.append(pid)
        if self.whom != "daemon":
            return
        if self.how == "KILL":
            self.b.proc.wait(10)
            self.sock.close(0)
            self.b.start()
            self.follow()
        elif self.how == "STOP":
            time.sleep(HUNG)
            os.kill(pid, signal.SIGCONT)

    # ---- what has to hold

    def machines(self):
        return [m for m in self.cloud.control("GET", "/machines") if m["id"] not in self.before and not m["foreign"]]

    def one_at_a_time(self):
        now = self.cloud.control("GET", "/state")["now_ms"]
        by = {}
        for m in self.machines():
            by.setdefault(m["name"].rsplit("-", 1)[0], []).append((m["created_ms"], m["ended_ms"] or now, m["name"]))
        for name, spans in by.items():
            spans.sort()
            for (_, end, a), (start, _, b) in zip(spans, spans[1:]):
                assert start >= end, f"{name} had {a} and {b} at once"
        return by

    def alive(self):
        return sorted(m["name"].rsplit("-", 1)[0] for m in self.machines() if not m["ended_ms"])

    def rent(self, k):
        return self.b.accepted("rent", {"key": f"{self.n}-{k}", "name": f"n{self.n}-{k}", "filter": H100, "cluster": self.cluster})["lease"]

    def release(self, lease):
        self.b.accepted("release", {"key": f"r-{lease}", "lease": lease})

    def undisturbed(self):
        """A child that was hung up on is the same as before; a child that hangs is replaced while its lease is ready."""
        if self.how == "HUP" and self.whom != "daemon":
            assert len(set(self.pids)) == 1 and self.pid() == self.pids[0], f"HUP ended a child: {self.pids}"
        elif self.hit[-1:] == ["ready"] and self.whom == "shadeform":
            until(lambda: self.pid() != self.pids[-1], 10, f"a new {self.whom}")

    def go(self):
        self.since = self.b.ask("ping")["seq"]
        self.first = None
        self.follow()
        self.first = self.rent(1)
        second = self.rent(2)
        self.reach(self.first, "ready")
        self.undisturbed()
        self.reach(second, "ready")
        assert self.b.lease(self.first)["state"] == "ready", "no longer ready"
        got = self.alive()
        assert len(got) == 2 and len(set(got)) == 2, f"machines of two ready leases: {got}"
        self.release(self.first)
        self.reach(self.first, "released")
        assert self.b.lease(second)["state"] == "ready", "the other lease is no longer ready"
        assert len(self.alive()) == 1, f"machines after the first release: {self.alive()}"
        self.release(second)
        self.reach(second, "released")
        assert not self.alive(), f"machines after both releases: {self.alive()}"
        assert not self.todo, f"never in {self.todo}"
        self.undisturbed()
        return self.one_at_a_time()


class Worker(threading.Thread):
    """A broker, a cloud and machines of its own; takes lives until there are none."""

    def __init__(self, name, c, folder, todo, done):
        super().__init__(name=f"w{name}")
        version = c.info["k0s_version"].replace("-k0s", "+k0s")
        self.clusters, self.todo, self.out = [spoke(c.info)], todo, done
        self.machines = pool.make(os.path.join(folder, f"pool-{name}"), 3, version)

    def run(self):
        with Cloud("shadeform", *pool.HOOKS, env={"GPUB_POOL": self.machines}) as cloud:
            cloud.faults({"on": "create", "kind": "delay", "seconds": 0.3, "times": -1})
            while True:
                try:
                    n, life = self.todo.get_nowait()
                except queue.Empty:
                    return
                started, made, why = time.monotonic(), 0, None
                try:
                    made = self.live(cloud, n, life)
                except Exception as e:
                    why = f"{type(e).__name__}: {str(e)[:3000]}".replace("\n", " | ")
                    for m in cloud.machines():
                        cloud.control("POST", f"/machines/{m['id']}", {"do": "end"})
                    until(lambda: not any(m["taken"] for m in pool.read(self.machines)), 30, "the machines are free again")
                self.out.append((life, made, time.monotonic() - started, why))

    def live(self, cloud, n, life):
        with Broker(cloud.provider(), clusters=self.clusters, times=TIMES) as b:
            b.offers_there()
            one = Life(b, cloud, n, *life)
            try:
                return sum(len(spans) for spans in one.go().values())
            except Exception as e:
                raise RuntimeError(f"{e} [{', '.join(one.story)}]") from e


def main():
    only = os.environ.get("GPUB_KILL", ",").split(",")
    todo, done = queue.Queue(), []
    for n, life in enumerate(lives()):
        if only[0] in ("", life[0]) and only[1] in ("", life[1]):
            todo.put((n, life))
    count, started = todo.qsize(), time.monotonic()
    with contextlib.ExitStack() as stack:
        d = stack.enter_context(tempfile.TemporaryDirectory())
        c = stack.enter_context(cluster.Clusters("double", d, "10.77.0.1"))
        workers = [Worker(i, c, d, todo, done) for i in range(min(WORKERS, count))]
        print(f"# machines after {time.monotonic() - started:.0f} s")
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    for (whom, how, where, states), made, seconds, why in sorted(done, key=lambda x: x[0][:3]):
        t.ok(not why, f"{how} of {whom} in {' '.join(states)}{'' if where == 'none' else ', joined'}: "
                      + (why or f"{made} machines, {seconds:.0f} s"))
    t.eq(len(done), count, "every life came to its end")
    print(f"# {time.monotonic() - started:.0f} s")
    t.done()


main()
