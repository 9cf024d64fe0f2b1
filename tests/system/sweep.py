#!/usr/bin/python3
"""sweep.py - kill -9 at every commit and at every frame of a rent and of its release

One run rents and releases.  It is repeated with the daemon killed just before and just after its N-th commit, at its
N-th frame to a child, and with the child killed there instead, for N = 1, 2, ... until a run gets through unharmed.
After each kill the daemon is started again and the same commands are sent again with the same keys.  Then: one
machine while the lease is ready, none afterwards, and never two at once.

$GPUB_SWEEP_STORE=1 instead makes the N-th write to the books fail with ENOSPC or EIO, or the N-th sync of them: the
daemon exits, and is started again.

$GPUB_SWEEP_CLUSTER=1 joins a cluster too.  $GPUB_SWEEP_STRIDE=4 takes every fourth point, $GPUB_SWEEP_FROM=7 begins
at the seventh, $GPUB_SWEEP_POINT=commit,+ takes one kind only.  Other clouds: sweep_clouds.py.
"""
import contextlib
import os
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
import pool  # noqa: E402
from broker import BUILD, Broker, Cloud, Tap, spoke  # noqa: E402
from kills import Stubborn, Todo  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("kill sweep", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

WORKERS = 3
MACHINES = 2  # a lease may have one that goes and one that comes
STORE = os.environ.get("GPUB_SWEEP_STORE") == "1"
JOIN = os.environ.get("GPUB_SWEEP_CLUSTER") == "1"


class Run(Stubborn):
    """One rent and release; the daemon may die at any moment and is started again."""

    def __init__(self, b, cloud, n):
        super().__init__(b)
        self.cloud, self.n = cloud, n

    def go(self):
        rent = {"key": f"rent-{self.n}", "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}]},
                "cluster": "spoke-a" if JOIN else "none"}
        lease = self.mutate("rent", rent)["lease"]
        self.state(lease, "ready")
        alive = self.cloud.machines()
        assert len(alive) == 1, f"{len(alive)} machines for one ready lease"
        self.mutate("release", {"key": f"release-{self.n}", "lease": lease})
        self.state(lease, "released")
        left = self.cloud.machines()
        assert not left, f"{len(left)} machines left after the release"
        again = self.mutate("rent", rent)
        assert again["lease"] == lease, "the key was forgotten"
        assert not self.cloud.machines(), "a repeated key rented again"


class Worker(threading.Thread):
    """A broker, a cloud and machines of its own; takes points until one is beyond the last."""

    def __init__(self, name, clusters, version, folder):
        super().__init__(name=f"w{name}")
        self.clusters, self.todo = clusters, None
        self.machines = pool.make(os.path.join(folder, f"pool-{name}"), MACHINES, version)

    def run(self):
        with Cloud("shadeform", *pool.HOOKS, env={"GPUB_POOL": self.machines}) as self.cloud:
            with Broker(self.cloud.provider(offers_every="60s", reconcile_every="60s"), clusters=self.clusters) as self.b:
                self.b.offers_there()
                for point in iter(self.todo.take, None):
                    self.kill_at(point)

    def kill_at(self, point):
        before = len(self.cloud.control("GET", "/machines"))
        try:
            self.b.stop()
            self.b.start(wait=False, **faults(point))
            run = Run(self.b, self.cloud, point)
            run.go()
            self.todo.done(point, run.hit(), len(self.cloud.control("GET", "/machines")) - before, None)
        except Exception as e:
            self.todo.done(point, True, 0, f"{type(e).__name__}: {str(e)[:1500]}".replace("\n", " | "))
            for m in self.cloud.machines():
                self.cloud.control("POST", f"/machines/{m['id']}", {"do": "end"})


def faults(point):
    if STORE:
        return {"LD_PRELOAD": f"{BUILD}/.libs/io-fault.so", "GPUB_TEST_IO": str(point)}
    return {"GPUB_TEST_KILL": str(point)}


def main():
    kinds = [("commit", ""), ("commit", "+"), ("frame", ""), ("child-frame", "")]
    if STORE:
        kinds = [("sync", ":EIO"), ("write", ":ENOSPC"), ("write", ":EIO")]
    if os.environ.get("GPUB_SWEEP_POINT"):
        kinds = [tuple((os.environ["GPUB_SWEEP_POINT"] + ",").split(",")[:2])]
    stride = int(os.environ.get("GPUB_SWEEP_STRIDE", 1))
    todo = Todo(kinds, int(os.environ.get("GPUB_SWEEP_FROM", 1)), stride)
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        clusters, version = [], None
        d = stack.enter_context(tempfile.TemporaryDirectory())
        if JOIN:
            c = stack.enter_context(cluster.Clusters("double", d, "10.77.0.1"))
            version = c.info["k0s_version"].replace("-k0s", "+k0s")
            clusters = [spoke(c.info)]
        workers = [Worker(i, clusters, version, d) for i in range(WORKERS)]
        for w in workers:
            w.todo = todo
            w.start()
        for w in workers:
            w.join()
    for kind in kinds:
        t.ok(todo.killed[kind] > 5, f"{kind[0]}{kind[1]}: killed at {todo.killed[kind]} points"
                                    f"; at most {todo.most[kind]} machines were made for one lease")
    t.ok(not todo.bad, f"each of {sum(todo.killed.values())} runs ended with one machine, then none"
         if not todo.bad else f"{len(todo.bad)} runs ended wrong; the first: {todo.bad[0]}")
    print(f"# {time.monotonic() - started:.0f} s")
    t.done()


main()
