#!/usr/bin/python3
"""restore.py - a backup of yesterday under a cloud of today, a clone, and books that were lost

In all three a machine carries our mark and a lease number that the books never gave out: nothing ends by itself until
an operator has looked.  The machines are a fake cloud's and never answer SSH, which is all it takes.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import BUILD, TIMES, Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def backup(b, to, code=0):
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config, "--backup", to], env=b.environment(),
                       capture_output=True, text=True, timeout=30)
    t.eq(r.returncode, code, f"gpubrokerd --backup {os.path.basename(to)}: {code} {r.stderr.strip()}")


def put(b, books):
    """What docs/operations.md tells to do, the daemon being down."""
    for rest in ("gpubroker.db-wal", "gpubroker.db-shm"):
        if os.path.exists(f"{b.state}/{rest}"):
            os.unlink(f"{b.state}/{rest}")
    shutil.copy(books, f"{b.state}/gpubroker.db")
    os.chmod(f"{b.state}/gpubroker.db", 0o600)


def rent(b, key, ttl_ms=3600000):
    b.offers_there()
    lease = b.accepted("rent", {"key": key, "filter": H100, "ttl_ms": ttl_ms})["lease"]
    b.wait_state(lease, "booting")
    return lease


def frozen(b):
    return until(lambda: b.ask("ping").get("frozen"), what="a freeze")


def events(b, what):
    return [e for e in b.ask("events", {"limit": 1000})["events"] if e.get("what") == what]


def old(b, cloud):
    """Leases: one that goes on, one that was released since the backup, one that was rented since."""
    copy = os.path.join(b.dir, "yesterday.db")
    stays, goes = rent(b, "stays", 20000), rent(b, "goes")
    backup(b, copy)
    t.eq(os.stat(copy).st_mode & 0o777, 0o600, "a backup is its owner's alone")
    backup(b, "/nowhere/books", 1)
    b.accepted("release", {"key": "r", "lease": goes})
    b.wait_state(goes, "failed-empty", "released")
    newer = rent(b, "newer")
    t.eq(len(cloud.machines()), 2, "two machines: one of before the backup, one of after it")
    b.stop()
    put(b, copy)
    b.start()
    t.eq(frozen(b), "books-old", "the restored books are seen to be old")
    t.eq(len(events(b, "books-old")), 1, "with an alarm")
    until(lambda: b.ask("orphans")["orphans"], what="orphans")
    orphans = b.ask("orphans")["orphans"]
    t.eq([o["name"].split("-")[2] for o in orphans], [newer], "what was rented since is an orphan, shown")
    until(lambda: b.lease(goes)["state"] == "pending" and "old" in b.lease(goes)["step"]["text"], 30, "the end of what is gone")
    t.eq(len(cloud.machines()), 2, "what was released since is found gone, and is not rented again")
    until(lambda: b.ask("ping")["now_ms"] > b.lease(stays)["expires_ms"] + 1500, 40, "the end of the lease that stays")
    t.eq(b.lease(stays)["state"], "booting", "its time is over, and still it does not end by itself")
    t.eq(len(cloud.machines()), 2, "nor does the orphan")
    b.restart()
    t.eq(frozen(b), "books-old", "a restart does not thaw it")
    for lease in (stays, goes):
        b.accepted("release", {"key": f"r-{lease}", "lease": lease})
        b.wait_state(lease, "failed-empty", "released")
    t.eq([m["name"].split("-")[2] for m in cloud.machines()], [newer], "a release by hand goes on")
    orphan, = cloud.machines()
    cloud.control("POST", f"/machines/{orphan['id']}", {"do": "end"})
    b.ask("providers.check", {"provider": "shadeform"})
    until(lambda: not b.ask("orphans")["orphans"], what="no orphans")
    b.ask("resume", {"provider": "broker"})
    t.ok("frozen" not in b.ask("ping"), "resume broker thaws it")
    again = rent(b, "again")
    t.ok(int(again[1:]) > int(newer[1:]), f"no number is given out twice: {again} after {newer}")
    b.accepted("release", {"key": "r3", "lease": again})
    b.wait_state(again, "failed-empty", "released")
    t.eq(cloud.machines(), [], "and all is gone")


def clone(b, cloud):
    """The whole folder copied, and both run."""
    with Broker(cloud.provider(), times=b.times) as other:
        other.stop()
        first = rent(b, "before")
        b.stop()
        shutil.rmtree(other.state)
        shutil.copytree(b.state, other.state)
        b.start()
        newer = rent(b, "after")
        other.start()
        t.eq(frozen(other), "books-old", "a clone notices the machines of the original")
        t.ok(other.ask("ping")["instance"] == b.ask("ping")["instance"], "which have the same mark")
        until(lambda: [o for o in other.ask("orphans")["orphans"] if o["name"].split("-")[2] == newer], what="the orphan")
        t.eq(len(cloud.machines()), 2, "it ends none of them")
        other.stop()
    t.ok("frozen" not in b.ask("ping"), "the original goes on")
    for lease in (first, newer):
        b.accepted("release", {"key": f"c-{lease}", "lease": lease})
        b.wait_state(lease, "failed-empty", "released")


def lost(b, cloud):
    """The books are gone; the mark beside them is not."""
    lease = rent(b, "lost")
    mine = b.ask("ping")["instance"]
    b.stop()
    for name in os.listdir(b.state):
        if name.startswith("gpubroker.db"):
            os.unlink(f"{b.state}/{name}")
    b.start()
    t.eq(b.ask("ping")["instance"], mine, "with the books gone the mark is still ours")
    t.eq(frozen(b), "books-old", "empty books with marked machines around freeze")
    until(lambda: b.ask("orphans")["orphans"], what="orphans")
    t.eq(len(cloud.machines()), 1, "and the machine is not touched")
    b.offers_there()
    t.ok(int(rent(b, "fresh")[1:]) > int(lease[1:]), "new numbers are above those that machines carry")


def main():
    with Cloud("shadeform") as cloud, Broker(cloud.provider(), times=TIMES + ",lag=300") as b:
        b.offers_there()
        for fn in (old, clone, lost):
            t.run(fn, b, cloud)
    t.done()


main()
