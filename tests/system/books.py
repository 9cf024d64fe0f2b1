#!/usr/bin/python3
"""books.py - books that cannot be used stop the start, with the reason and the remedy; nothing is begun in their place

Also: a WAL left by kill -9, an older version migrated forward.
"""
import os
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import BUILD, SRC, Broker, Tap  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
GOOD = {"name": "good", "plugin": "good", "offers_every": "1s", "reconcile_every": "60s"}
NOBODY = 65534
BOOKS = 3  # the exit code


def sql(b, *lines):
    with sqlite3.connect(f"{b.state}/gpubroker.db", isolation_level=None) as db:
        rows = [db.execute(line).fetchall() for line in lines]
    db.close()
    return rows[-1]


def refused(b, name, words, code=BOOKS, user=None):
    """A start that ends by itself, says the words, and touches nothing."""
    path = f"{b.state}/gpubroker.db"
    before = open(path, "rb").read() if os.path.isfile(path) else None
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config], env=b.environment(), capture_output=True, text=True,
                       timeout=30, user=user)
    t.eq(r.returncode, code, f"{name}: exit code {code}")
    t.ok(all(w in r.stderr for w in words), f"{name}: {r.stderr.strip().splitlines()[-1] if r.stderr else 'nothing said'}")
    t.ok(before is None or open(path, "rb").read() == before, f"{name}: the file is as it was")


class Kept:
    """The state folder as it is now, put back afterwards."""

    def __init__(self, b):
        self.b = b

    def __enter__(self):
        shutil.copytree(self.b.state, self.b.state + ".kept", symlinks=True)

    def __exit__(self, *_):
        shutil.rmtree(self.b.state)
        os.rename(self.b.state + ".kept", self.b.state)


def left_behind(b):
    lease = b.accepted("rent", {"key": "a", "filter": H100, "name": "first"})["lease"]
    b.wait_state(lease, "booting")
    b.kill()
    t.ok(os.path.getsize(f"{b.state}/gpubroker.db-wal") > 0, "kill -9 leaves a WAL behind")
    b.start()
    t.eq(b.lease("first")["id"], lease, "and the next start has all that was in it")


def second(b):
    refused(b, "a second daemon", ["lock is held", "stop it first"], code=1)
    t.eq(b.ask("ping")["broker"], "test", "the first one goes on")


def damaged(b):
    path = f"{b.state}/gpubroker.db"
    with Kept(b):
        with open(path, "wb") as f:
            f.write(b"no database at all " * 1000)
        refused(b, "a file that is no database", ["file is not a database", "restore a backup"])
    with Kept(b):
        page, = sql(b, "SELECT rootpage FROM sqlite_schema WHERE name = 'lease'")[0]
        size, = sql(b, "PRAGMA page_size")[0]
        with open(path, "r+b") as f:
            f.seek((page - 1) * size)
            f.write(b"\xff" * size)
        refused(b, "a corrupt page", ["restore a backup"])
    with Kept(b):
        os.truncate(path, os.path.getsize(path) // 2)
        refused(b, "half a file", ["restore a backup"])
    with Kept(b):
        os.unlink(path)
        os.mkdir(path)
        refused(b, "a folder", ["is no file", "move it away"])


def other_versions(b):
    with Kept(b):
        known, = sql(b, "PRAGMA user_version")[0]
        sql(b, f"PRAGMA user_version = {known + 7}")
        refused(b, "books of a newer version", [f"has version {known + 7}", f"knows up to {known}", "install the newer"])
    with Kept(b):
        os.unlink(f"{b.state}/gpubroker.db")
        sql(b, "CREATE TABLE cookies (crumbs)")
        refused(b, "another program's database", ["another program's database", "move it away"])
    with Kept(b):
        with open(f"{b.state}/instance", "w") as f:
            f.write("11111111-2222-4333-8444-555555555555")
        refused(b, "another installation's books", ["belongs to another installation", "restore both"])


def unreadable(b):
    for table, column in (("lease", "number"), ("attempt", "lease")):
        for doc in ('{"number":1,"sta', '{"number":1,"state":"flying"}', "[]"):
            with Kept(b):
                sql(b, f"UPDATE {table} SET doc = '{doc}' WHERE {column} = 1")
                refused(b, f"{table} is {doc}", ["lease l1 cannot be read", "restore a backup"])
    with Kept(b):
        sql(b, "UPDATE op SET running = 1, doc = '{}'")
        refused(b, "an operation without sense", ["operation op1 cannot be read"])


def rights(b):
    path = f"{b.state}/gpubroker.db"
    root = os.geteuid() == 0
    with Kept(b):
        os.chmod(b.state, 0o777)
        refused(b, "a folder that others write", ["can be written by others", "chmod go-w"])
    with Kept(b):
        os.chmod(path, 0o666)
        refused(b, "books that others write", ["gpubroker.db can be written by others"])
    if root:
        with Kept(b):
            os.chown(path, NOBODY, NOBODY)
            refused(b, "books of another user", [f"belongs to uid {NOBODY}", "runs as uid 0"])
    else:
        t.skip("books of another user", "needs root")
    user = NOBODY if root else None
    with Kept(b):
        if root:
            for top, folders, files in os.walk(b.dir):
                for name in [top] + [os.path.join(top, f) for f in files]:
                    os.chown(name, NOBODY, NOBODY)
        os.chmod(path, 0o400)
        refused(b, "a read-only file", ["read-only", "writable for gpubrokerd's user"], user=user)
        os.chmod(path, 0o600)
        os.chmod(b.state, 0o500)
        refused(b, "a read-only folder", ["writable for gpubrokerd's user"], user=user)
        os.chmod(b.state, 0o700)
    if root:
        for top, folders, files in os.walk(b.dir):
            for name in [top] + [os.path.join(top, f) for f in files]:
                os.chown(name, 0, 0)


def older(b):
    with Kept(b):
        os.unlink(f"{b.state}/gpubroker.db")
        os.unlink(f"{b.state}/instance")
        db = sqlite3.connect(f"{b.state}/gpubroker.db")
        with open(f"{SRC}/tests/old/store-v1.sql") as f:
            db.executescript(f.read())
        db.close()
        b.start()
        t.eq(b.lease("old")["id"], "l1", "books of version 1: the lease is there")
        t.eq(b.ask("ping")["instance"], "6b1f3a52-0d0c-4b5e-9a35-1c9d7c1f0e11", "and whose they are")
        b.stop()
        now, = sql(b, "PRAGMA user_version")[0]
        t.ok(now > 1, f"they have version {now} now")
        kept = f"{b.state}/gpubroker.db.v1"
        db = sqlite3.connect(kept)
        t.eq(db.execute("PRAGMA user_version").fetchone()[0], 1, "the old file is kept beside")
        t.eq(db.execute("SELECT count(*) FROM lease").fetchone()[0], 1, "whole")
        db.close()
        t.eq(os.stat(kept).st_mode & 0o777, 0o600, "and for its owner alone")


def main():
    with Broker(GOOD) as b:
        os.chmod(b.dir, 0o711)
        b.offers_there()
        for fn in (left_behind, second):
            t.run(fn, b)
        b.stop()
        for fn in (damaged, other_versions, unreadable, rights, older):
            t.run(fn, b)
    t.done()


main()
