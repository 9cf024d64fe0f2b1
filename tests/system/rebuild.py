#!/usr/bin/python3
"""rebuild.py - lost books are made again from the marks in two clouds, and everything can then be released

No machine boots: the rents get as far as machines that exist and bill.
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import schemas  # noqa: E402
from broker import BUILD, Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
OTHER = "00000000-1111-4222-8333-444444444444"


def rent(b, key, provider):
    return b.accepted("rent", {"key": key, "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}], "provider": [provider]}})["lease"]


def books(b):
    """{machine id: (lease, token, name)} of what the store holds as not over."""
    db = sqlite3.connect(f"file:{b.state}/gpubroker.db?mode=ro", uri=True)
    try:
        return {id: (lease, token, name) for lease, id, token, name in db.execute(
            "SELECT lease, json_extract(doc, '$.machine.id'), json_extract(doc, '$.token'), json_extract(doc, '$.name') "
            "FROM attempt WHERE json_extract(doc, '$.state') NOT IN ('gone', 'refused')")}
    finally:
        db.close()


def lose(b, *more):
    for name in ("gpubroker.db", "gpubroker.db-wal", "gpubroker.db-shm", *more):
        if os.path.exists(f"{b.state}/{name}"):
            os.unlink(f"{b.state}/{name}")


def rebuild(b, *argv, times=None):
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config, *argv], capture_output=True, text=True, timeout=60,
                       env={**b.environment(), **({"GPUB_TEST_TIMES": times} if times else {})})
    return r.returncode, r.stdout, r.stderr


def alive(*clouds):
    return {m["id"]: m for c in clouds for m in c.control("GET", "/machines") if not m["ended_ms"] and not m["gone_ms"]}


def lost(b, one, two):
    """The database is lost, the file with the installation's UUID is not."""
    leases = [rent(b, f"k{i}", p) for i, p in enumerate(("shadeform", "hyperstack", "shadeform"))]
    for x in leases:
        b.wait_state(x, "booting")
    strangers = [c.control("POST", "/machines", {"name": "theirs", "tags": tags})["id"] for c, tags in (
        (one, [f"gpubroker-owner={OTHER}", "gpubroker-lease=1", "gpubroker-token=x"]), (two, ["mine"]))]
    before = books(b)
    t.eq(sorted(before), sorted(set(alive(one, two)) - set(strangers)), "three machines exist and are in the books")
    b.kill()
    lose(b)
    code, out, err = rebuild(b, "--rebuild")
    t.eq(code, 0, f"rebuild: {out[-300:]}{err[-600:] if code else ''}")
    t.ok("3 leases in the books" in out and "other-broker shadeform/" in out, "it tells what it found")
    t.eq(books(b), before, "the books have the same machines, lease numbers, tokens and names")
    code, out, _ = rebuild(b, "--rebuild")
    t.eq((code, books(b)), (0, before), "a second run changes nothing")
    t.eq(set(alive(one, two)), set(before) | set(strangers), "no machine was touched")
    return leases, before, strangers


def serves(b, one, two, leases, before, strangers):
    made = {i: m["created_ms"] for i, m in alive(one, two).items()}
    b.start()
    t.ok(b.ask("ping")["epoch"] > 1000000, "clients see that it is another life")
    t.eq(b.ask("ping").get("frozen"), "books-old", "nothing ends by itself until a person says so")
    for x in leases:
        lease = schemas.check("lease", b.lease(x))
        id = lease["machine"]["id"]
        t.eq((lease["state"], lease["owner"], lease["cause"]["code"], before[id][0]), ("degraded", "rebuilt", "rebuilt", lease["number"]),
             f"{x} is degraded")
        t.ok("expires_ms" not in lease and abs(lease["created_ms"] - made[id]) < 2000, "without an end, since the machine was made")
    b.offers_there()
    b.ask("resume", {"provider": "broker"})
    for c in (one, two):
        b.ask("providers.check", {"provider": c.name})
    until(lambda: all(p["calls"] >= 4 and p["in_flight"] == 0 for p in b.ask("providers")["providers"]), 20, "lists")
    t.eq(b.ask("orphans")["orphans"], [], "nothing is an orphan")
    t.eq([b.lease(x)["state"] for x in leases], ["degraded"] * 3, "and nothing ended, though the clock goes on")
    new = rent(b, "new", "shadeform")
    t.ok(int(new[1:]) > int(leases[-1][1:]), f"a new lease has a number of its own: {new}")
    b.wait_state(new, "booting")
    for x in (*leases, new):
        b.accepted("release", {"key": f"r{x}", "lease": x})
    for x in leases:
        b.wait_state(x, "released")
    b.wait_state(new, "failed-empty")
    t.eq(set(alive(one, two)), set(strangers), "everything can be released, and only what is ours")


def all_lost(b, one, two):
    """So is the UUID: it is given by hand."""
    owner = b.ask("ping")["instance"]
    x = rent(b, "again", "shadeform")
    b.wait_state(x, "booting")
    before = books(b)
    b.kill()
    shutil.rmtree(b.state)
    code, _, err = rebuild(b, "--rebuild")
    t.ok(code == 3 and "--instance" in err, f"without it nothing is done: {err}")
    t.ok(not os.path.exists(f"{b.state}/instance"), "and no new one is invented")
    for argv in (["--rebuild", "--instance", "x"], ["--rebuild", "--instance", owner + "0"], ["--instance", owner],
                 ["--rebuild", "--instance", owner.upper()]):
        code, _, err = rebuild(b, *argv)
        t.ok(code == 2 and "UUID" in err, f"{argv[:2]} is refused")
    one.faults({"on": "list", "kind": "status", "status": 503, "body": "no", "times": -1})
    code, out, err = rebuild(b, "--rebuild", "--instance", owner, times="listing=1500")
    t.ok(code == 1 and "shadeform was not listed whole" in out and "run it again" in out, f"a cloud that does not answer: {out}{err[-200:]}")
    one.control("DELETE", "/faults")
    code, out, _ = rebuild(b, "--rebuild", "--instance", str(uuid.uuid4()))
    t.eq(code, 3, "another UUID than the one of the folder is refused")
    code, out, _ = rebuild(b, "--rebuild")
    t.eq((code, books(b)), (0, before), "the next run finds it")
    b.start()
    b.accepted("release", {"key": "ra", "lease": x})
    b.wait_state(x, "released")
    t.ok(not set(before) & set(alive(one, two)), "and it can be released")


def main():
    with Cloud("shadeform") as one, Cloud("hyperstack") as two, Broker(one.provider(), two.provider()) as b:
        b.offers_there()
        until(lambda: all(p["offers"]["count"] for p in b.ask("providers")["providers"]), 20, "both have offers")
        found = lost(b, one, two)
        t.run(serves, b, one, two, *found)
        t.run(all_lost, b, one, two)
    t.done()


main()
