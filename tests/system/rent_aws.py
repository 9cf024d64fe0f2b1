#!/usr/bin/python3
"""rent_aws.py - a whole broker rents at AWS: what goes wrong around a create ends with one machine, and nothing beside it

Most machines here never answer SSH: what is asked is what was ordered.  The last test boots a real one behind the
cloud's public address, let in by the keys that came in its cloud-init data.
"""
import os
import signal
import sqlite3
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), os.path.join(HERE, "..", "clouds"), HERE]
import node  # noqa: E402
from aws import KEY_ID  # noqa: E402
from broker import KEY, TIMES, Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if not WHY and "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
FAST = TIMES + ",lag=1200,create=4000"
A10G = {"gpu": [{"model": "A10G", "min": 1, "max": 1}], "market": "on-demand"}
SPOT = dict(A10G, market="spot", max_price_udollar=2000000)  # without a cap it is the cheapest zone's price
OK = ("created", None)
EMPTY = ("refused", "InsufficientInstanceCapacity")
n = 0


def account(cloud, **more):
    return cloud.provider(secrets={"access_key_id": KEY_ID, "secret_access_key": KEY}, rate=1000, burst=1000, imds=False,
                          **{"regions": ["us-east-1"], **more})


def attempts(b, x):
    return [(a["state"], (a.get("reason") or {}).get("code")) for a in b.lease(x)["attempts"]]


def besides(cloud):
    """(disks, spot requests that could still make a machine or have one, security groups)"""
    return (len(cloud.control("GET", "/volumes")),
            len([s for s in cloud.control("GET", "/spots") if s["state"] in ("open", "active")]), len(cloud.control("GET", "/groups")))


def nothing_left(cloud, what):
    until(lambda: not cloud.machines() and besides(cloud)[:2] == (0, 0), 20, f"{what}: the end")
    t.eq((cloud.machines(), besides(cloud)), ([], (0, 0, 1)), f"{what}: no machine, disk or spot request is left, and one group")


def forget_failures(b):
    """Failure memory outlives a rent; the next case wants every offer."""
    b.stop()
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    db.execute("delete from meta where key = 'memory'")
    db.commit()
    db.close()
    b.start()
    b.offers_there()


def rent(b, key, want=None):
    return b.accepted("rent", {"key": key, "name": key, "filter": want or A10G})["lease"]


def settle(b, cloud, lease, name, tries, spots=0):
    """Until the attempts are these and one machine is there; then released, nothing."""
    try:
        until(lambda: attempts(b, lease) == tries and b.lease(lease)["state"] == "booting", 25, name)
    except TimeoutError:
        pass
    t.eq(attempts(b, lease), tries, f"{name}: the attempts say so, in order")
    t.eq((len(cloud.machines()), besides(cloud)), (1, (1, spots, 1)), f"{name}: one machine with one disk")
    b.accepted("release", {"key": f"r-{name}", "lease": lease})
    b.wait_state(lease, "released", "failed-empty", seconds=20)
    nothing_left(cloud, name)
    cloud.control("DELETE", "/faults")


def case(b, cloud, name, faults, tries, want=None, spots=0):
    global n
    n += 1
    cloud.faults(*faults)
    settle(b, cloud, rent(b, f"case-{n}", want), name, tries, spots)


def create(kind, **more):
    return [{"on": "create", "kind": kind, **more}]


def ordering(b, cloud):
    case(b, cloud, "nothing wrong", [], [OK])
    case(b, cloud, "reply lost", create("lost-reply"), [OK])
    case(b, cloud, "502 after the effect", create("bad-gateway"), [OK])
    case(b, cloud, "reply past the deadline", create("hang", seconds=5), [OK])
    case(b, cloud, "garbage for an answer", create("garbage"), [OK])
    case(b, cloud, "truncated answer", create("truncated"), [OK])
    case(b, cloud, "dropped before the effect", create("drop"), [OK])
    case(b, cloud, "500 before the effect", create("broken"), [OK])
    case(b, cloud, "seen late, reply lost", create("late", seconds=0.8) + create("lost-reply"), [OK])
    case(b, cloud, "no answer at all until it gives up", create("lost-reply", times=4), [OK])
    case(b, cloud, "throttled", create("throttled", retry_after=1), [OK])
    case(b, cloud, "two zones without stock, then the reply lost", create("out-of-stock", times=2) + create("lost-reply", skip=2), [OK])
    case(b, cloud, "reply of the group lost", [{"on": "groups", "kind": "empty-list"}, {"on": "group-make", "kind": "lost-reply"}], [OK])


def spot(b, cloud):
    case(b, cloud, "spot", [], [OK], SPOT, 1)
    case(b, cloud, "spot, reply lost", create("lost-reply"), [OK], SPOT, 1)
    case(b, cloud, "spot, the cheapest zone is empty", create("out-of-stock"), [OK], SPOT, 1)


def under_way(b, cloud, key, seconds=3, skip=0):
    """A rent whose create has had its effect and not its answer."""
    cloud.faults({"on": "create", "kind": "hang", "seconds": seconds, "skip": skip})
    before = cloud.control("GET", "/counters").get("create", 0)
    lease = rent(b, key)
    cloud.control("GET", f"/wait?endpoint=create&count={before + 1 + skip}&timeout=15")
    until(lambda: cloud.machines(), 10, "the effect")
    return lease


def killed(b, cloud):
    cloud.faults(*create("out-of-stock"))
    lease = under_way(b, cloud, "killed", skip=1)
    for pid in b.children("gpubroker-provider"):
        os.kill(pid, signal.SIGKILL)
    settle(b, cloud, lease, "provider killed in the middle", [OK])


def cancelled(b, cloud):
    lease = under_way(b, cloud, "cancelled")
    b.accepted("release", {"key": "r-cancel", "lease": lease})
    b.wait_state(lease, "released", "failed-empty", seconds=30)
    nothing_left(cloud, "cancelled in the middle")


def restarted(b, cloud):
    """The daemon dies while the create is under way, and sends it again after its restart."""
    lease = under_way(b, cloud, "restarted", 2)
    b.kill()
    b.start()
    settle(b, cloud, lease, "daemon killed in the middle", [OK])


def next_offer(b, cloud):
    # g5.xlarge is the only type with one A10G here: the second offer is that of the other market
    forget_failures(b)
    cloud.faults(*create("out-of-stock", times=3))
    lease = rent(b, "empty", dict(A10G, market="any"))
    settle(b, cloud, lease, "no zone has stock", [EMPTY, OK])
    t.ok("capacity-memory" in b.cli("offers", "--gpu", "A10G", "--market", "any", "--explain")[1], "and that offer is avoided for a while")
    forget_failures(b)
    cloud.faults(*create("no-money"))
    lease = rent(b, "quota", dict(A10G, market="any"))
    settle(b, cloud, lease, "quota", [("refused", "VcpuLimitExceeded"), OK])
    forget_failures(b)


def refused_late(b, cloud):
    """Taken, then ended by EC2 for want of stock: over, and nothing is left that could cost."""
    cloud.faults(*create("late-error", seconds=0.3, details="no capacity"))
    lease = rent(b, "late", dict(A10G, market="any"))
    until(lambda: len(attempts(b, lease)) == 2 and attempts(b, lease)[1] == OK, 25, "the next offer")
    until(lambda: attempts(b, lease)[0][0] == "gone", 10, "the end of the first")
    t.ok(True, "no stock after it was accepted: that attempt is over")
    t.eq(len(cloud.machines()), 1, "and the next one has a machine")
    b.accepted("release", {"key": "r-late", "lease": lease})
    b.wait_state(lease, "released", "failed-empty", seconds=20)
    nothing_left(cloud, "refused late")
    forget_failures(b)


def extended(b, cloud):
    """The kill switch in the cloud's hands moves with the lease."""
    lease = rent(b, "extended")
    until(lambda: cloud.machines(), 10, "a machine")
    until(lambda: attempts(b, lease) == [OK], 10, "known")
    before = cloud.machines()[0]["kill_at_ms"]
    t.ok(before and before > b.lease(lease)["expires_ms"], "the machine ends itself, some time after its lease")
    t.eq(b.cli("extend", "extended", "--ttl", "5h")[0], 0, "extend ends well")
    until(lambda: cloud.machines()[0]["kill_at_ms"] > before, 10, "the later end")
    t.ok(cloud.machines()[0]["kill_at_ms"] > b.lease(lease)["expires_ms"], "and it moved with the lease")
    b.accepted("release", {"key": "r-ext", "lease": lease})
    b.wait_state(lease, "released", "failed-empty", seconds=20)
    nothing_left(cloud, "extended")


def stray(b, cloud):
    """A disk that the cloud left behind shows up as an orphan with its price, and is ended by hand."""
    owner = open(f"{b.state}/instance").read().strip()
    mark = {"gpubroker-owner": owner, "gpubroker-lease": "1", "gpubroker-token": "none-of-ours"}
    cloud.control("POST", "/strays", {"kind": "volume", "region": "us-east-1", "tags": mark})
    orphans = until(lambda: b.ask("orphans", {})["orphans"], 20, "the orphan")
    t.eq([o["price_udollar"] for o in orphans], [100 * 110], "a stray disk is an orphan, with its price")
    code, out, err = b.cli("orphans", "release", f"aws/{orphans[0]['id']}", "--yes")
    if not t.ok(code == 0, "it can be released"):
        print("# " + (out + err).replace("\n", "\n# "))
        return
    nothing_left(cloud, "stray disk")


def sick_region(cloud):
    """A region that fails takes neither leases nor offers of the others with it."""
    with Broker(account(cloud, regions=["us-east-1", "eu-west-1"]), times=FAST) as b:
        b.offers_there()
        lease = rent(b, "home")
        until(lambda: attempts(b, lease) == [OK], 15, "rented")
        region = b.lease(lease)["attempts"][0]["offer"]["region"]
        other = "eu-west-1" if region == "us-east-1" else "us-east-1"
        cloud.control("POST", "/sick", {"region": other, "how": "denied"})
        seen = cloud.control("GET", "/counters").get("list", 0)
        cloud.control("GET", f"/wait?endpoint=list&count={seen + 6}&timeout=20")
        t.eq(b.lease(lease)["state"], "booting", "the other region's failure is nothing to this lease")
        until(lambda: region in {o["region"] for o in b.ask("offers", {"filter": {}})["offers"]}, 10, "offers")
        t.ok(True, "and offers of this region are there")
        cloud.control("POST", "/sick", {"region": region, "how": "broken"})
        seen = cloud.control("GET", "/counters").get("list", 0)
        cloud.control("GET", f"/wait?endpoint=list&count={seen + 6}&timeout=20")
        t.eq((b.lease(lease)["state"], len(cloud.machines())), ("booting", 1), "its own region's failure ends nothing")
        cloud.control("POST", "/sick", {"region": None})
        b.accepted("release", {"key": "r-home", "lease": lease})
        b.wait_state(lease, "released", "failed-empty", seconds=20)
        until(lambda: not cloud.machines(), 10, "the end")


def life(b, cloud):
    code, out, err = b.cli("rent", "--gpu", "A10G", "--name", "one", "--open", "8080/198.51.100.0/24")
    if not t.ok(code == 0, "rent ends well"):
        print("# " + (out + err).replace("\n", "\n# "))
        return
    lease = b.lease("one")
    [machine] = cloud.machines()
    t.eq((lease["state"], lease["machine"]["state"], lease["machine"]["address"]), ("ready", "running", machine["node"]["ip"]),
         "the lease has the machine and its address")
    t.eq(machine["request"]["InstanceType"], "g5.xlarge", "the cheapest that fits")
    t.eq(cloud.control("GET", "/groups")[0]["rules"], [["tcp", 22, 22, "0.0.0.0/0"], ["tcp", 8080, 8080, "198.51.100.0/24"]], "its ports are open")
    t.ok(abs(lease["price_udollar"] - machine["price_udollar"]) < 1000, "it costs what the cloud bills")
    t.eq(b.cli("release", "one")[0], 0, "release ends well")
    nothing_left(cloud, "released")


def main():
    with Cloud("aws") as cloud, Broker(account(cloud), times=FAST) as b:
        b.offers_there()
        for test in (ordering, spot, killed, cancelled, restarted, next_offer, refused_late, extended, stray):
            t.run(test, b, cloud)
        for v in cloud.control("GET", "/state")["violations"]:
            t.ok(False, f"violation of the API: {v}")
    with Cloud("aws") as cloud:
        t.run(sick_region, cloud)
    if WHY:
        t.skip("a machine that is real", WHY)
        t.done()
    with Cloud("aws", *HOOKS) as cloud, Broker(account(cloud)) as b:
        b.offers_there()
        t.run(life, b, cloud)
    t.done()


main()
