#!/usr/bin/python3
"""sweep.py - kill -9 at every commit and at every frame of a rent and of its release

One run rents and releases.  It is repeated with the daemon killed just before and just after its N-th commit, at its
N-th frame to a child, and with the child killed there instead, for N = 1, 2, ... until a run gets through unharmed.
After each kill the daemon is started again and the same commands are sent again with the same keys.  Then: one
machine while the lease is ready, none afterwards, and never two at once.

$GPUB_SWEEP_CLUSTER=1 joins a cluster too.  $GPUB_SWEEP_FROM, $GPUB_SWEEP_POINT narrow it down.
"""
import contextlib
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import Broker, Cloud, Refused, Tap, spoke  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("kill sweep", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "pool_hook.py")
MACHINES = 3  # a lease may have one that goes and one that comes
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
JOIN = os.environ.get("GPUB_SWEEP_CLUSTER") == "1"
LIMIT = 400  # no run of a rent and a release has so many points


class Run:
    """One rent and release; the daemon may die at any moment and is started again."""

    def __init__(self, b, cloud, clusters, n):
        self.b, self.cloud, self.clusters, self.n, self.deaths = b, cloud, clusters, n, 0

    def alive(self):
        if self.b.proc.poll() is not None:
            self.deaths += 1
            self.b.start(GPUB_TEST_KILL="")

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


def sweep(b, cloud, clusters, point, suffix, serial):
    killed, machines = 0, 0
    for n in range(int(os.environ.get("GPUB_SWEEP_FROM", 1)), LIMIT):
        before = len(cloud.control("GET", "/machines"))
        b.stop()
        try:
            b.start(wait=False, GPUB_TEST_KILL=f"{point}:{n}{suffix}")
            run = Run(b, cloud, clusters, f"{serial}-{point}-{n}{suffix}")
            run.go()
        except Exception as e:
            t.ok(False, f"killed at {point}:{n}{suffix}: {type(e).__name__}: {str(e)[:1500]}".replace("\n", " | "))
            for m in cloud.machines():
                cloud.control("POST", f"/machines/{m['id']}", {"do": "end"})
            return
        machines = max(machines, len(cloud.control("GET", "/machines")) - before)
        if not (run.deaths or b.logged("child.down")):
            break
        killed += 1
    t.ok(killed > 5, f"{point}{suffix}: killed at {killed} points; at most {machines} machines were made for one lease")
    mine = [m for m in cloud.control("GET", "/machines") if not m["foreign"]]
    t.eq([m["id"] for m in mine if not m["ended_ms"]], [], f"{point}{suffix}: nothing is left")


def pool(folder, k0s_version):
    """Boots the machines that the cloud will rent out, and tells the hook where they are."""
    want = {"user": "shadeform", "ssh_public_keys": [], "gpus": {"count": 1, "name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559}}
    if k0s_version:
        want["k0s_version"] = k0s_version
    path = os.path.join(folder, "pool")
    with open(path, "w") as f:
        json.dump([{**node.create(dict(want)), "taken": None} for _ in range(MACHINES)], f)
    os.environ["GPUB_POOL"] = path


def main():
    points = [("commit", ""), ("commit", "+"), ("frame", ""), ("frame", "+"), ("child-frame", "")]
    if os.environ.get("GPUB_SWEEP_POINT"):
        points = [tuple(os.environ["GPUB_SWEEP_POINT"].split(","))]
    with contextlib.ExitStack() as stack:
        clusters, version = [], None
        d = stack.enter_context(tempfile.TemporaryDirectory())
        if JOIN:
            c = stack.enter_context(cluster.Clusters("double", d, "10.77.0.1"))
            version = c.info["k0s_version"].replace("-k0s", "+k0s")
            clusters = [spoke(c.info)]
        pool(d, version)
        cloud = stack.enter_context(Cloud("shadeform", *HOOKS))
        b = stack.enter_context(Broker(cloud.provider(offers_every="60s", reconcile_every="60s"), clusters=clusters))
        b.offers_there()
        for i, (point, suffix) in enumerate(points):
            sweep(b, cloud, clusters, point, suffix, i)
    t.done()


main()
