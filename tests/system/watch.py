#!/usr/bin/python3
"""watch.py - machines that go by themselves: what ends a lease, what does not, and what is left in the cluster

Everything real but the cloud, k0s and the API server, which fail on demand.
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import Broker, Cloud, Tap, spoke, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("machines that go by themselves", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")


def nodes(c):
    return [n["metadata"]["name"] for n in c.hosted["api"].get("/api/v1/nodes")["items"]]


def rent(b, key, where="spoke-a"):
    return b.accepted("rent", {"key": key, "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}]}, "cluster": where})["lease"]


def ready(b, key, where="spoke-a"):
    x = rent(b, key, where)
    return x, b.wait_state(x, "ready")


def release(b, x):
    b.accepted("release", {"key": f"r-{x}", "lease": x, "drain": False})
    b.wait_state(x, "released")


def lists(cloud, n=2):
    """The cloud was asked for its list that many times more."""
    seen = cloud.control("GET", "/counters").get("list", 0)
    cloud.control("GET", f"/wait?endpoint=list&count={seen + n}&timeout=30")


def hide(cloud):
    """The machines live on, and the cloud denies them."""
    cloud.faults({"on": "list", "kind": "empty-list", "times": -1}, {"on": "info", "kind": "not-found", "times": -1})


def vanish(c, cloud, m, name):
    """The machine ends, and so do the heartbeats of its kubelet, of which controllers make what they do make."""
    cloud.control("POST", f"/machines/{m['id']}", {"do": "vanish"})
    until(lambda: node.find(m["node"]["ip"]) is None, 30, "the machine ends")
    c.hosted["api"].merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}})


def events(b, x):
    return [e["what"] for e in b.ask("events", {"lease": x, "limit": 1000})["events"]]


def veto(b, cloud, c):
    x, lease = ready(b, "veto")
    hide(cloud)
    until(lambda: b.logged("what=gone-but-ready"), 30, "the alarm")
    lists(cloud)
    t.eq((b.lease(x)["state"], nodes(c)), ("ready", [lease["node"]]), "a Node that is Ready vetoes what the cloud says, twice")
    cloud.control("DELETE", "/faults")
    lists(cloud)
    t.eq((b.lease(x)["state"], "lost" in events(b, x)), ("ready", False), "and when the cloud shows it again nothing has happened")
    release(b, x)


def lost(b, cloud, c):
    x, lease = ready(b, "lost")
    [m] = cloud.machines()
    vanish(c, cloud, m, lease["node"])
    now = b.wait_state(x, "lost")
    t.eq((now["cause"]["code"], now["price_udollar"]), ("machine-gone", 0), "a machine that has gone ends its lease, and what it costs")
    until(lambda: not nodes(c), 20, "its Node goes")
    t.eq(nodes(c), [], "its Node is deleted")
    spent = now["spent_udollar"]
    t.eq(b.lease(x)["spent_udollar"], spent, "nothing is spent after that")


def deletion_fails(b, cloud, c):
    x, lease = ready(b, "fails")
    [m] = cloud.machines()
    with open(c.info["faults"], "w") as f:
        json.dump({"http": [{"path": f"/api/v1/nodes/{lease['node']}", "status": 503}]}, f)
    cloud.control("POST", f"/machines/{m['id']}", {"do": "vanish"})
    b.wait_state(x, "lost")
    until(lambda: b.logged("what=node-left"), 60, "the alarm")
    t.eq(nodes(c), [lease["node"]], "a Node that cannot be deleted at the loss stays, and that is told")
    b.restart()
    t.eq(b.lease(x)["state"], "lost", "after a restart")
    os.unlink(c.info["faults"])
    until(lambda: not nodes(c), 30, "the Node goes")
    t.eq((nodes(c), b.lease(x)["cause"]["code"]), ([], "machine-gone"), "it is deleted as soon as that works, and the cause stays")
    until(lambda: b.logged("node.forgotten"), 20, "the token goes, too")
    b.restart()
    t.eq(b.ask("leases")["leases"], [], "then the lease is over")


def unreadable(b, cloud, c):
    x, lease = ready(b, "unreadable")
    [m] = cloud.machines()
    os.chmod(c.info["management"]["kubeconfig"], 0o644)
    cloud.control("POST", f"/machines/{m['id']}", {"do": "vanish"})
    now = b.wait_state(x, "lost", "degraded")
    t.eq((now["state"], now["cause"]["code"], now.get("failure")), ("lost", "machine-gone", None),
         "a kubeconfig that cannot be read does not hide why the lease ended")
    os.chmod(c.info["management"]["kubeconfig"], 0o600)
    until(lambda: not nodes(c), 30, "the Node goes")
    t.eq(nodes(c), [], "and the Node is deleted when it can be read again")


def release_fails(b, cloud, c):
    x, lease = ready(b, "release")
    with open(c.info["faults"], "w") as f:
        json.dump({"http": [{"path": f"/api/v1/nodes/{lease['node']}", "status": 503}]}, f)
    release(b, x)
    t.eq((cloud.machines(), nodes(c)), ([], [lease["node"]]), "a release does not wait for a cluster that does not answer")
    os.unlink(c.info["faults"])
    until(lambda: not nodes(c), 30, "the Node goes")
    t.eq(nodes(c), [], "and its Node is deleted later")


def interrupted(b, cloud, c):
    x, lease = ready(b, "halt")
    [m] = cloud.machines()
    cloud.control("POST", f"/machines/{m['id']}", {"do": "status", "status": "error", "details": "the host failed"})
    until(lambda: "interrupted" in events(b, x), 30, "interrupted")
    cloud.control("POST", f"/machines/{m['id']}", {"do": "status", "status": None})
    now = b.wait_state(x, "released")
    t.eq(now["cause"]["code"], "interrupted", "a machine that stopped bills on, and is released")
    until(lambda: not nodes(c), 20, "the Node goes")
    t.eq((nodes(c), cloud.machines()), ([], []), "with its Node and what is left of it")


def many(b, cloud):
    xs = [rent(b, f"many-{i}", "none") for i in range(3)]
    for x in xs:
        b.wait_state(x, "ready")
    hide(cloud)
    until(lambda: b.logged("what=frozen"), 30, "the alarm")
    lists(cloud, 4)
    t.eq([b.lease(x)["state"] for x in xs], ["ready"] * 3, "when many are missing at once none is ended")
    cloud.control("DELETE", "/faults")
    lists(cloud)
    ids = {m["name"]: m["id"] for m in cloud.machines()}
    cloud.control("POST", f"/machines/{ids[b.lease(xs[0])['node']]}", {"do": "vanish"})
    b.wait_state(xs[0], "lost")
    t.eq([b.lease(x)["state"] for x in xs[1:]], ["ready"] * 2, "and one that goes alone ends alone")
    for x in xs[1:]:
        release(b, x)


def main():
    with tempfile.TemporaryDirectory() as d, cluster.Clusters("double", d, "10.77.0.1") as c:
        os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": c.info["k0s_version"].replace("-k0s", "+k0s")})
        with Cloud("shadeform", *HOOKS) as cloud, \
                Broker(cloud.provider(), clusters=[spoke(c.info)], limits={"removals_per_round": 2},
                       times="lag=0,gone=200,poll=50,retry_min=30,retry_max=400,ssh_retry=100,stable=200,create=5000,call=5000,"
                             "listing=5000,restart=50") as b:
            b.offers_there()
            for test in (veto, lost, deletion_fails, unreadable, release_fails, interrupted):
                t.run(test, b, cloud, c)
            t.run(many, b, cloud)
    t.done()


main()
