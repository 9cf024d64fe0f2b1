#!/usr/bin/python3
"""rent_join.py - rent, join a hosted control plane, prove it, release: everything real but the cloud and k0s"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import TIMES, Broker, Cloud, Tap, spoke  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("rent, join, release", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def nodes(c):
    return {n["metadata"]["name"]: n for n in c.hosted["api"].get("/api/v1/nodes")["items"]}


def life(b, cloud, c):
    code, out, err = b.cli("rent", "--gpu", "H100", "--cluster", "spoke-a", "--name", "one")
    print("# " + (out + err).replace("\n", "\n# "))
    t.eq(code, 0, "rent ends well")
    lease = b.lease("one")
    t.eq(lease["state"], "ready", "the lease is ready")
    n = nodes(c)
    t.eq(list(n), [lease["node"]], "one Node, with the machine's name")
    labels = n[lease["node"]]["metadata"]["labels"]
    t.eq(labels.get("nvidia.com/gpu.product"), "NVIDIA-H100-80GB", "with its GPU as a label")
    t.eq(n[lease["node"]]["status"]["allocatable"]["nvidia.com/gpu"], "1", "and one GPU to allocate")
    code, out, err = b.cli("release", "one")
    t.eq(code, 0, "release ends well")
    t.eq(b.lease("one")["state"], "released", "the lease is released")
    t.eq(nodes(c), {}, "no Node is left")
    t.eq(cloud.machines(), [], "no machine is left")


def without_gpu(b, cloud, c):
    code, out, err = b.cli("rent", "--gpu", "none", "--cluster", "spoke-a", "--name", "cpu", "--json")
    t.eq(code, 0, "a machine without GPU joins too")
    labels = nodes(c)[b.lease("cpu")["node"]]["metadata"]["labels"]
    t.eq([k for k in labels if k.startswith("nvidia.com/")], [], "without labels of a GPU")
    t.eq(b.cli("release", "cpu", "--no-drain")[0], 0, "and is released without draining")
    t.eq((nodes(c), cloud.machines()), ({}, []), "leaving nothing")


def later(b, cloud, c):
    """A machine that was rented alone joins a cluster afterwards, and is looked at again."""
    t.eq(b.cli("rent", "--gpu", "H100", "--cluster", "none", "--name", "late")[0], 0, "rented outside of any cluster")
    t.eq(nodes(c), {}, "it is no Node")
    t.eq(b.cli("join", "late", "--cluster", "spoke-a")[0], 0, "then joined")
    t.eq(list(nodes(c)), [b.lease("late")["node"]], "it is one")
    code, out, err = b.cli("verify", "late", "--json")
    t.eq(code, 0, "verified again")
    t.ok("node-ready" in out, "with the rows of the verification")
    code, out, err = b.cli("verify", "late", "--network", "--json")
    t.ok(code == 1 and "gpu-pod-failed" in out, "with pods that nobody runs here: its code, and nothing hangs")
    t.eq(b.lease("late")["state"], "degraded", "the lease is degraded, not ended")
    left = [n for n in c.hosted["api"].get("/api/v1/namespaces")["items"]
            if n["metadata"]["name"].startswith("gpubroker-test-") and "deletionTimestamp" not in n["metadata"]]
    t.eq(left, [], "and its namespace is gone")
    t.eq(b.cli("retry", "late")[0], 0, "it recovers")
    secrets = c.management["api"].get(f"/api/v1/namespaces/{c.info['namespace']}/secrets")["items"]
    t.eq([x["metadata"]["name"] for x in secrets if "token" in x.get("data", {})], [], "no join token is left")
    t.eq(b.cli("release", "late")[0], 0, "and released")
    t.eq((nodes(c), cloud.machines()), ({}, []), "leaving nothing")


def main():
    mode = os.environ.get("GPUB_TEST_KUBE", "auto")
    with tempfile.TemporaryDirectory() as d, cluster.Clusters(mode, d, "10.77.0.1") as c:
        print(f"# API servers: {c.info['mode']}")
        os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": c.info["k0s_version"].replace("-k0s", "+k0s")})
        with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider(), clusters=[spoke(c.info)],
                                                                times=TIMES + ",verify=8000") as b:
            b.offers_there()
            t.run(life, b, cloud, c)
            t.run(without_gpu, b, cloud, c)
            t.run(later, b, cloud, c)
    t.done()


main()
