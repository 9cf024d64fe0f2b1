#!/usr/bin/python3
"""full_disk.py - a disk that fills up under the books: what is rented can still be released, nothing new is begun

The state folder is a small tmpfs of its own, which takes root.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import Broker, Refused, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
GOOD = {"name": "good", "plugin": "good", "offers_every": "1s", "reconcile_every": "60s"}
SIZE = 96 << 20
OVER = ("failed-empty", "released")


def fill(path):
    """Takes what is left, to the last byte."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 20, 4096, 1):
            try:
                while os.write(fd, b"x" * size):
                    pass
            except OSError:
                pass
    finally:
        os.close(fd)


def rent(b, key):
    lease = b.accepted("rent", {"key": key, "filter": H100})["lease"]
    b.wait_state(lease, "booting")
    return lease


def told(b, what):
    return [e for e in b.ask("events", {"limit": 1000})["events"] if e.get("what") == what]


def fills_up(b, page):
    ballast, filler = f"{b.state}/ballast", f"{b.state}/filler"
    t.ok(os.stat(ballast).st_blocks * 512 >= 32 << 20, "with room on the disk the ballast is there, with real blocks")
    t.eq(os.stat(ballast).st_mode & 0o777, 0o600, "for its owner alone")
    leases = [rent(b, f"k{i}") for i in range(4)]
    pid = b.proc.pid
    fill(filler)
    until(lambda: not os.path.exists(ballast), 10, "the ballast given up")
    until(lambda: told(b, "disk-full"), 10, "the alarm")
    t.eq(len(told(b, "disk-full")), 1, "a full disk gives up the ballast and raises one alarm")
    until(lambda: os.path.exists(page) and "disk-full" in open(page).read(), 10, "the operator's program")
    t.ok(b.logged("alarm what=disk-full"), "in the log and at the operator's program, too")
    try:
        rent(b, "new")
        t.ok(False, "a new rent is refused")
    except Refused as e:
        t.ok(e.code == "busy" and e.body["retryable"] and b.state in e.body["message"], f"a new rent is refused: {e.body['message']}")
    t.eq(b.accepted("rent", {"key": "k0", "filter": H100})["lease"], leases[0], "a repeated one is answered as before")
    for lease in leases[:2]:
        b.accepted("release", {"key": f"r-{lease}", "lease": lease})
        b.wait_state(lease, *OVER)
    t.eq(b.proc.pid, pid, "releases commit, and the daemon goes on")
    b.kill()
    b.start()
    t.ok(told(b, "disk-full") and all(b.lease(x)["state"] in OVER for x in leases[:2]), "a restart on the full disk has all of it")
    b.accepted("release", {"key": "third", "lease": leases[2]})
    b.wait_state(leases[2], *OVER)
    os.unlink(filler)
    until(lambda: told(b, "disk-room"), 10, "the end of it")
    t.ok(os.path.exists(ballast), "with room again the ballast is made again")
    b.offers_there()
    leases.append(rent(b, "new"))
    t.ok(True, "and the same rent works")
    return leases[3:]


def to_the_brim(b, leases):
    """The ballast's room is taken, too: nothing can be committed."""
    filler, more = f"{b.state}/filler", f"{b.state}/more"
    fill(filler)
    until(lambda: not os.path.exists(f"{b.state}/ballast"), 10, "the ballast given up")
    fill(more)

    def release():
        try:
            b.accepted("release", {"key": "brim", "lease": leases[0]}, 500)
        except (Refused, TimeoutError):
            pass
        fill(more)
        return b.proc.poll() is not None
    until(release, 30, "the end of the daemon")
    t.eq(b.proc.returncode, 1, "a turn that cannot be committed ends the daemon with 1")
    t.ok(b.logged("store.failed") and b.logged("make room"), "the log says why, and what to do")
    try:
        b.start()
        t.ok(False, "it does not start without room for its books")
    except RuntimeError as e:
        t.ok(b.proc.returncode == 1 and "make room" in str(e), "it does not start without room for its books, and says so")
    os.unlink(filler)
    os.unlink(more)
    b.start()
    t.ok({x["id"] for x in b.ask("leases")["leases"]} <= set(leases), "with room the books are as they were committed")
    for lease in leases:
        b.accepted("release", {"key": "brim" if lease == leases[0] else f"r-{lease}", "lease": lease})
        b.wait_state(lease, *OVER)
    t.ok(True, "and everything can be released")


def main():
    if os.geteuid() != 0:
        t.skip("full disk", "needs root for a tmpfs")
        t.done()
    b = Broker(GOOD)
    script, page = f"{b.dir}/notify", f"{b.dir}/page"
    with open(os.open(script, os.O_WRONLY | os.O_CREAT, 0o700), "w") as f:
        f.write(f'#!/bin/sh\necho "$1 $2" >> {page}\n')
    b.broker["notify_command"] = script
    b.write_config()
    os.mkdir(b.state, 0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "gpubroker-test", b.state], check=True)
    try:
        with b:
            b.offers_there()
            try:
                to_the_brim(b, fills_up(b, page))
            except Exception as e:
                t.ok(False, f"{type(e).__name__}: {str(e)[:600]}".replace("\n", " "))
            b.stop()
            subprocess.run(["umount", b.state], check=True)
    finally:
        if os.path.ismount(b.state):
            subprocess.run(["umount", "-l", b.state])
    t.done()


main()
