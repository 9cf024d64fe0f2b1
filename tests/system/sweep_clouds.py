#!/usr/bin/python3
"""sweep_clouds.py - kill -9 at the commits and frames of a fail-over, an extension and a release, at each of four clouds

    sweep_clouds.py [--stride N] [--from N] [CLOUD...]       every 7th point of all four unless told otherwise

One run rents; the first offer turns out to be out of stock, the next one becomes a machine; it is extended and
released.  The daemon is killed before and after its N-th commit and at its N-th frame, or its child is there.
Afterwards: one machine while the lease is ready, none after the release, and no disk, address or volume.
"""
import argparse
import os
import sqlite3
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import Tap  # noqa: E402
from four import HOUR_MS, NAMES, Four  # noqa: E402
from kills import Stubborn, Todo  # noqa: E402

venv.enter("kill sweeps of every cloud")
KINDS = (("commit", ""), ("commit", "+"), ("frame", ""), ("child-frame", ""))


class Run(Stubborn):
    def __init__(self, world, b, cloud, point):
        super().__init__(b)
        self.world, self.cloud, self.n = world, cloud, point

    def go(self):
        cloud = self.cloud
        cloud.control("DELETE", "/faults")
        cloud.faults({"on": "create", "kind": "out-of-stock"})
        rent = {"key": f"rent-{self.n}", "ttl_ms": HOUR_MS, "filter": {"max_price_udollar": 6000000}}
        lease = self.mutate("rent", rent)["lease"]
        self.state(lease, "ready")
        assert len(cloud.machines()) == 1, f"{len(cloud.machines())} machines for one ready lease"
        self.mutate("extend", {"key": f"extend-{self.n}", "lease": lease, "ttl_ms": 2 * HOUR_MS})
        self.persist(lambda: self.state(lease, "ready")["expires_ms"] > time.time() * 1000 + 1.9 * HOUR_MS, 30, "the extension")
        self.mutate("release", {"key": f"release-{self.n}", "lease": lease})
        self.state(lease, "released")
        assert not cloud.machines(), f"{len(cloud.machines())} machines left after the release"
        left = self.world.strays().get(cloud.name)
        assert not left, f"left at the cloud: {left}"
        assert self.mutate("rent", rent)["lease"] == lease and not cloud.machines(), "a repeated key rented again"


def forget_failures(b):
    """What was out of stock is remembered beyond its rent; the next run wants every offer."""
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    db.execute("delete from meta where key = 'memory'")
    db.commit()
    db.close()


def sweep(world, name, todo):
    cloud = world.clouds[name]
    with world.broker([name]) as b:
        world.listed(b)
        for point in iter(todo.take, None):
            before = len(cloud.control("GET", "/machines"))
            try:
                b.stop()
                forget_failures(b)
                b.start(wait=False, GPUB_TEST_KILL=str(point))
                run = Run(world, b, cloud, point)
                run.go()
                todo.done(point, run.hit(), len(cloud.control("GET", "/machines")) - before, None)
            except Exception as e:
                todo.done(point, True, 0, f"{name}: {type(e).__name__}: {str(e)[:1500]}".replace("\n", " | "))
                for m in cloud.machines():
                    cloud.control("POST", f"/machines/{m['id']}", {"do": "end"})


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--stride", type=int, default=7)
    p.add_argument("--from", type=int, default=1, dest="first")
    p.add_argument("clouds", nargs="*", default=NAMES)
    o = p.parse_args()
    t = Tap()
    with Four() as world:
        todo = {n: Todo(KINDS, o.first, o.stride) for n in o.clouds}
        threads = [threading.Thread(target=sweep, args=(world, n, todo[n])) for n in o.clouds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name, x in todo.items():
        t.ok(min(x.killed.values()) > 0, f"{name}: killed at {sum(x.killed.values())} points {list(x.killed.values())}, "
                                         f"at most {max(x.most.values())} machines were made for one lease")
        t.ok(not x.bad, f"{name}: each run ended with one machine, then none" if not x.bad
             else f"{name}: {len(x.bad)} runs ended wrong; the first: {x.bad[0][:1000]}")
    t.done()


main()
