#!/usr/bin/python3
"""books.py - books that cannot be used stop the start, with the reason and the remedy; nothing is begun in their place

Also: a WAL left by kill -9, an older version migrated forward, and a request that fails in the store alone.
"""
import base64
import json
import os
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import BUILD, SRC, Broker, Refused, Tap, until  # noqa: E402

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


def user_data(b):
    """It may hold anything, so it stays only as long as another machine may be started with it."""
    canary = base64.b64encode(b"#!/bin/sh\n: canary-user-data-51c7\n").decode()
    lease = b.accepted("rent", {"key": "u", "filter": H100, "user_data": canary})["lease"]
    b.wait_state(lease, "booting")
    t.ok(canary in repr(sql(b, "SELECT doc FROM lease")), "user data is in the books while the rent may need it")
    b.accepted("release", {"key": "ur", "lease": lease})
    b.wait_state(lease, "failed-empty", "released")
    b.stop()
    left = [name for name in os.listdir(b.state) if os.path.isfile(f"{b.state}/{name}")
            and canary.encode() in open(f"{b.state}/{name}", "rb").read()]
    t.eq(left, [], "and in no byte of them afterwards")
    b.start()


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


# ---- a request that fails in the store ----

FAIL = "BEGIN SELECT RAISE (ABORT, 'planted'); END"


def together(b, *bodies):
    """Sends them so that they arrive in few turns; the first reply to each."""
    sock = b.dealer()
    try:
        ids = [b.send("rent", {"single": True, **body}, sock) for body in bodies]
        got = {}
        while len(got) < len(ids):
            if not sock.poll(10000):
                raise TimeoutError("no answer")
            _, kind, rid, body = sock.recv_multipart()
            got[rid.decode()] = (kind.decode(), json.loads(body))
        return [got[i] for i in ids]
    finally:
        sock.close(0)


def undone_rent(b):
    pid = b.proc.pid
    sql(b, f"CREATE TRIGGER planted BEFORE INSERT ON lease WHEN NEW.name = 'poison' {FAIL}")
    replies = together(b, {"filter": H100, "name": "good1"}, {"filter": H100, "name": "poison"}, {"filter": H100, "name": "good2"})
    t.eq([kind for kind, _ in replies], ["accepted", "error", "accepted"], "one of three rents fails in the store, alone")
    bad = replies[1][1]
    t.ok(bad["code"] == "internal" and "planted" in bad["message"] and bad["retryable"], f"it is told: {bad['message']}")
    one, two = (int(r[1]["lease"][1:]) for r in (replies[0], replies[2]))
    t.eq(two, one + 1, "its number is used by the next one")
    names = {x["name"] for x in b.ask("leases")["leases"]}
    t.ok({"good1", "good2"} <= names and "poison" not in names, "its lease is nowhere")
    feed = b.ask("events", {"limit": 1000})["events"]
    t.ok(all(e["lease"] != f"l{two}" or e["seq"] for e in feed if e.get("lease")), "the feed has what happened")
    seqs = [e["seq"] for e in feed]
    t.eq(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "without a gap")
    sql(b, "DROP TRIGGER planted")
    again = b.accepted("rent", {"filter": H100, "name": "poison"})
    t.eq(again["lease"], f"l{two + 1}", "the same request works once the store does")
    t.eq(b.proc.pid, pid, "the daemon went on")
    t.ok(b.proc.poll() is None and b.logged("request.undone"), "and the log has it")


def undone_release(b):
    lease = b.wait_state("good1", "booting")["id"]
    before = b.lease(lease)
    waiting = b.send("wait", {"lease": lease})
    sql(b, f"CREATE TRIGGER planted BEFORE INSERT ON event WHEN NEW.topic LIKE '%{lease}.releasing' {FAIL}")
    try:
        b.accepted("release", {"key": "r1", "lease": lease})
        t.ok(False, "a release whose event cannot be written is refused")
    except Refused as e:
        t.eq(e.code, "internal", "a release whose event cannot be written is refused")
    after = b.lease(lease)
    same = ("state", "expires_ms", "deadline_ms", "price_udollar", "cause", "node", "machine")
    t.eq([after.get(k) for k in same], [before.get(k) for k in same], "the lease is as it was")
    t.eq(after["attempt"]["state"], before["attempt"]["state"], "and so is its attempt")
    t.eq([o["verb"] for o in after.get("operations", [])], [o["verb"] for o in before.get("operations", [])], "without a release")
    sql(b, "DROP TRIGGER planted")
    b.accepted("release", {"key": "r1", "lease": lease})
    b.wait_state(lease, "failed-empty", "released")
    kind, body = b.recv(waiting)
    while kind == "progress":
        kind, body = b.recv(waiting)
    t.ok(kind in ("final", "error"), "who waited before still hears of the end")
    b.kill()
    b.start()
    t.ok(b.lease(lease)["state"] in ("failed-empty", "released"), "the books say the same after a restart")


def undone_read(b):
    lease = b.lease("good1")["id"]
    doc, = sql(b, f"SELECT doc FROM lease WHERE number = {lease[1:]}")[0]
    sql(b, f"UPDATE lease SET doc = '[]' WHERE number = {lease[1:]}")
    kind, body = b.try_ask("lease", {"lease": lease})
    t.ok((kind, body["code"]) == ("error", "internal") and f"lease {lease} cannot be read" in body["message"],
         f"an old lease that cannot be read is an error, not an absence: {body.get('message')}")
    t.ok(b.ask("leases")["leases"] is not None, "and the daemon goes on")
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    db.execute(f"UPDATE lease SET doc = ? WHERE number = {lease[1:]}", (doc,))
    db.commit()
    db.close()
    t.eq(b.lease(lease)["id"], lease, "until it can")


def main():
    with Broker(GOOD) as b:
        os.chmod(b.dir, 0o711)
        b.offers_there()
        for fn in (left_behind, user_data, second):
            t.run(fn, b)
        b.stop()
        for fn in (damaged, other_versions, unreadable, rights, older):
            t.run(fn, b)
        b.start()
        until(lambda: b.ask("offers", {"filter": H100})["matched"], what="offers")
        for fn in (undone_rent, undone_release, undone_read):
            t.run(fn, b)
    t.done()


main()
