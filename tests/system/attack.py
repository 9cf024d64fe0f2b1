#!/usr/bin/python3
"""attack.py - clocks that jump, old books, hostile requests, killed children: what is rented stays what it was

The cloud is a fake, a machine has a real sshd.
"""
import os
import shutil
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes"))
import node  # noqa: E402
from broker import Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("attacks on a whole broker", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
YEAR = 365 * 24 * 3600 * 1000


def rent(b, key, **more):
    return b.accepted("rent", {"key": key, "filter": H100, **more})["lease"]


def release(b, *leases):
    for x in leases:
        b.accepted("release", {"key": f"r-{x}", "lease": x})
    for x in leases:
        b.wait_state(x, "released")


def ticks(b, n=3):
    """That many beats of the daemon's second are over."""
    start = b.ask("ping")["now_ms"]
    until(lambda: b.ask("ping")["now_ms"] > start + n * 1000, n + 10, "seconds pass")


def clock(b, cloud):
    x = rent(b, "clock", ttl_ms=3600000)
    b.wait_state(x, "ready")
    for offset, what in ((YEAR, "a year forward"), (-YEAR, "a year back")):
        b.restart(GPUB_TEST_CLOCK_OFFSET_MS=str(offset))
        ticks(b)
        t.eq(b.ask("ping").get("frozen"), "clock-jumped", f"a clock {what} is seen")
        t.eq((b.lease(x)["state"], len(cloud.machines())), ("ready", 1), "and ends nothing")
        until(lambda: b.logged("what=clock-jumped"), 5, "the alarm")
        b.stop()
        with open(b.log, "rb") as f:
            f.seek(b.mark)
            t.eq(f.read().count(b"what=clock-jumped"), 1, "one alarm is raised")
    b.start()
    ticks(b, 2)
    t.eq(b.ask("ping").get("frozen"), None, "the right clock thaws it")
    b.restart(GPUB_TEST_CLOCK_OFFSET_MS=str(YEAR))
    b.ask("resume", {"provider": "broker"})
    t.eq(b.ask("ping").get("frozen"), None, "so does the admin")
    b.wait_state(x, "released")
    t.eq(cloud.machines(), [], "and what is overdue then ends")
    b.restart()
    t.eq(b.ask("ping").get("frozen"), "clock-jumped", "back is a jump, too")
    b.ask("resume", {"provider": "broker"})


def copy_books(b, to):
    src, dst = sqlite3.connect(f"{b.state}/gpubroker.db"), sqlite3.connect(to)
    src.backup(dst)
    src.close()
    dst.close()


def old_books(b, cloud):
    b.offers_there()
    kept, gone = rent(b, "kept"), rent(b, "gone")
    b.wait_state(kept, "ready")
    b.wait_state(gone, "ready")
    copy_books(b, f"{b.dir}/old.db")
    release(b, gone)
    late = rent(b, "late")
    b.wait_state(late, "ready")
    before = sorted(m["id"] for m in cloud.machines())
    t.eq(len(before), 2, "two machines exist")
    b.kill()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{b.state}/gpubroker.db{end}"):
            os.unlink(f"{b.state}/gpubroker.db{end}")
    shutil.copy(f"{b.dir}/old.db", f"{b.state}/gpubroker.db")
    b.start()
    b.offers_there()
    until(lambda: b.ask("ping").get("frozen"), 20, "the old books are noticed")
    t.eq(b.ask("ping").get("frozen"), "books-old", "old books freeze")
    orphans = until(lambda: b.ask("orphans")["orphans"], 20, "the orphan")
    t.eq(len(orphans), 1, "what they do not know is an orphan")
    t.eq(b.lease(kept)["state"], "ready", "what they know is ready")
    new = rent(b, "new")
    t.ok(int(new[1:]) > int(late[1:]), f"a new lease is numbered above it: {new} > {late}")
    b.wait_state(new, "ready")
    t.ok(set(before) <= {m["id"] for m in cloud.machines()}, "no machine was ended")
    t.eq(len(cloud.machines()), 3, "nothing was rented twice")
    b.restart()
    t.eq(b.ask("ping").get("frozen"), "books-old", "a restart does not thaw it")
    b.ask("resume", {"provider": "broker"})
    t.eq(b.ask("ping").get("frozen"), None, "the admin does")
    release(b, kept, new)
    t.eq([m["id"] for m in cloud.machines()], [o["id"] for o in orphans], "releases leave the orphan alone")


def main():
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(clock, b, cloud)
        t.run(old_books, b, cloud)
    t.done()


main()
