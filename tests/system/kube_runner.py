#!/usr/bin/python3
"""gpubroker-runner --kube against API servers: a real one where tests/kube/build.sh has built it, else the double.

GPUB_TEST_KUBE=real|double chooses.  Runs in a network namespace of its own, with an address that is not loopback:
a real API server does not go to a kubelet on loopback, and 198.51.100.0/24 counts as public.
"""
import base64
import gzip
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "kube")]
import certs  # noqa: E402
import cluster  # noqa: E402
import fakenode  # noqa: E402
import kubeapi  # noqa: E402
import runner_client  # noqa: E402
from sandbox import done, ok, skip  # noqa: E402

PUBLIC = "198.51.100.10"
MODE = os.environ.get("GPUB_TEST_KUBE", "auto")
def enter_namespace():
    """Starts again inside a new network namespace; "127.0.0.1" when there can be none."""
    if os.environ.get("GPUB_KUBE_NS"):
        return os.environ["GPUB_KUBE_NS"]
    unshare, ip = shutil.which("unshare"), shutil.which("ip", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    args = [unshare, "-n"] if os.geteuid() == 0 else [unshare, "-rn"]
    up = f"{ip} link set lo up && {ip} address add {PUBLIC}/32 dev lo"
    if unshare and ip and subprocess.run(args + ["sh", "-c", up], capture_output=True).returncode == 0:
        os.environ["GPUB_KUBE_NS"] = PUBLIC
        os.execv(unshare, args + ["sh", "-c", up + ' && exec "$@"', "sh", sys.executable, *sys.argv])
    return "127.0.0.1"


class Kube(runner_client.Runner):
    def __init__(self):
        super().__init__("kube")

    def begin(self, name, args, conf, deadline_ms=30000):
        call, self.next = self.next, self.next + 1
        self.items[call] = []
        if conf is not None:
            self.send(runner_client.SECRET, call, b"kubeconfig\0" + conf.encode())
        self.send(runner_client.CALL, call,
                  json.dumps({"call": name, "deadline_ms": deadline_ms, "args": args}).encode())
        return call


class Bench:
    """One pair of clusters and one runner on them."""

    def __init__(self, clusters, address):
        self.c, self.address = clusters, address
        self.conf = clusters.management["text"]
        self.hosted, self.management = clusters.hosted["api"], clusters.management["api"]
        self.kube = Kube()
        self.plane = {"name": "spoke-a", "type": "k0smotron", "namespace": cluster.NAMESPACE,
                      "control_plane": cluster.NAME, "k0s_version": clusters.info["k0s_version"],
                      "cni": "calico-vxlan", "cross_node": "required", "gpu_stack": "device-plugin",
                      "allow_private": address.startswith("127.")}
        self.path = (f"/apis/k0smotron.io/{clusters.api_versions[0]}/namespaces/{cluster.NAMESPACE}/clusters/"
                     f"{cluster.NAME}")

    def begin(self, name, conf=None, deadline_ms=30000, plane=None, **args):
        return self.kube.begin(name, {"cluster": {**self.plane, **(plane or {})}, **args}, conf or self.conf,
                               deadline_ms)

    def ask(self, name, **kw):
        self.last = self.begin(name, **kw)
        return self.kube.wait(self.last, 60)

    def value(self, name, **kw):
        r = self.ask(name, **kw)
        if r.get("kind") != "ok":
            print(f"# {name}: {r}")
        return r.get("value", {})

    def faults(self, **kw):
        tmp = self.c.faults.with_suffix(".tmp")
        tmp.write_text(json.dumps(kw))
        tmp.rename(self.c.faults)

    def codes(self, **kw):
        return sorted({f["code"] for f in self.value("lint", **kw).get("findings", [])})


def eventually(test, seconds=20):
    try:
        cluster.wait("", test, seconds)
        return True
    except TimeoutError:
        return False


def lint(b):
    v = b.value("lint")
    ok(v.get("findings") == [], "a sound cluster has no findings", v)
    ok(v.get("api_port") == b.c.info["api_port"] and v.get("konnectivity_port") == b.c.info["konnectivity_port"]
       and v.get("api_host") == b.address and v.get("nodes") == 0, "lint tells addresses and node count", v)
    ok(v.get("cni") == "calico-vxlan" and v.get("api_version") == b.c.api_versions[0],
       "lint reads the CNI and discovers the API version", v)
    ok("cluster-absent" in b.codes(plane={"control_plane": "nope"}), "a Cluster that is not there is a finding")
    ok("version-skew" in b.codes(plane={"k0s_version": "v1.35.1+k0s.0"}), "a worker newer than its control plane")
    ok(b.codes(plane={"k0s_version": "v1.34.1-k0s.0"}) == ["version-differs"], "an older worker is only warned of")
    ok("version-unknown" in b.codes(plane={"k0s_version": "latest"}), "a worker version that is none")
    ok("cni-mismatch" in b.codes(plane={"cni": "cilium"}), "a configured CNI that is not the real one")


def lint_cluster(b):
    """Each fault of the Cluster object: the patch, the code, the severity."""
    network = {"k0sConfig": {"spec": {"network": {"provider": "kuberouter", "calico": None}}}}
    overlay = {"k0sConfig": {"spec": {"network": {"calico": {"overlay": "CrossSubnet"}}}}}
    cases = [
        ({"version": None}, {}, "version-unpinned", "error"),
        ({"version": "v1.30.1-k0s.0"}, {}, "version-skew", "error"),
        ({"service": {"type": "ClusterIP"}}, {}, "service-cluster-ip", "error"),
        ({"persistence": {"type": "emptyDir"}}, {}, "persistence-emptydir", "warning"),
        (network, {"cni": "kuberouter"}, "cni-unsafe", "error"),
        (network, {"cni": "kuberouter", "cross_node": "optional"}, "cni-unsafe", "warning"),
        (overlay, {}, "cni-overlay", "error"),
        ({"externalAddress": "10.9.8.7"}, {"allow_private": False}, "address-private", "error"),
        ({"service": {"konnectivityPort": 1}}, {}, "konnectivity-unreachable", "warning"),
        ({"service": {"konnectivityPort": b.c.info["api_port"]}}, {}, "konnectivity-port", "error"),
        ({"service": {"apiPort": 1}}, {}, "api-unreachable", "error"),
    ]
    before = b.management.get(b.path)["spec"]
    for patch, plane, code, severity in cases:
        b.management.merge(b.path, {"spec": patch})
        found = b.value("lint", plane=plane, deadline_ms=20000).get("findings", [])
        ok(any(f["code"] == code and f["severity"] == severity for f in found), f"lint: {code} is an {severity}", found)
        obj = b.management.get(b.path)
        obj["spec"] = before
        b.management.call("PUT", b.path, obj)
    ok(b.codes() == [], "and none is left when the Cluster is sound again")
    b.hosted.create("/apis/storage.k8s.io/v1/storageclasses", {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com"})
    ok(b.codes() == ["csi-foreign"], "lint: a storage class of another cloud is a warning")
    b.hosted.delete("/apis/storage.k8s.io/v1/storageclasses/gp3")


def mint(b):
    labels = {"gpubroker/lease": "7"}
    before = time.time() * 1000
    v = b.value("mint", machine="m-1", labels=labels, expiry_s=600)
    token = b.kube.secrets.get((b.last, "token"), b"").decode()
    ok(token and v.get("token_id") and v.get("server") == b.c.hosted["url"], "a token is issued", v)
    ok(abs(v.get("expires_ms", 0) - before - 600000) < 20000, "it ends when it was asked to", v)
    ok(v.get("ca_pem", "").startswith("-----BEGIN CERTIFICATE"), "with the CA that signs the API server")
    jtr = b.management.get(b.path.rsplit("/", 2)[0] + "/jointokenrequests/m-1")
    ok(jtr["metadata"]["labels"].get("gpubroker/lease") == "7"
       and jtr["metadata"]["labels"].get("app.kubernetes.io/managed-by") == "gpubroker", "the request has our labels")
    secret = b.management.get(f"/api/v1/namespaces/{cluster.NAMESPACE}/secrets/m-1")
    ok(secret["metadata"]["labels"].get("gpubroker/lease") == "7", "and so has the Secret")
    ok(token not in json.dumps([b.kube.results, b.kube.items, b.kube.logs]), "no frame but the SECRET has the token")
    again = b.value("mint", machine="m-1", labels=labels)
    ok(again.get("token_id") == v.get("token_id"), "asked again while it lives: the same token")
    b.hosted.delete("/api/v1/namespaces/kube-system/secrets/bootstrap-token-" + v["token_id"])
    fresh = b.value("mint", machine="m-1", labels=labels)
    ok(fresh.get("token_id") not in (None, v["token_id"]), "asked again when it is used up: a fresh one")
    return b.kube.secrets[b.last, "token"].decode(), fresh["token_id"]


def mint_faults(b):
    other = certs.Authority(b.c.dir / "other", "other-ca").pem.decode()
    cases = [
        ({"role": "controller"}, "token-role"), ({"ca": other}, "token-ca-stale"),
        ({"garbage": "no token"}, "token-base64"), ({"garbage": "bm8gZ3ppcA=="}, "token-gzip"),
        ({"server": f"https://{b.address}:1"}, "token-port"),
        ({"server": f"http://{b.address}:{b.c.info['api_port']}"}, "token-yaml"),
    ]
    if not b.plane["allow_private"]:
        cases.append(({"server": f"https://10.1.2.3:{b.c.info['api_port']}"}, "address-private"))
    for fault, code in cases:
        b.faults(**fault)
        r = b.ask("mint", machine="m-bad")
        ok(r.get("kind") == "invalid" and r.get("code") == code and (b.last, "token") not in b.kube.secrets,
           f"mint refuses: {code}", r)
        b.faults()
        path = b.path.rsplit("/", 2)[0] + "/jointokenrequests/m-bad"
        ok(eventually(lambda: not b.management.find(path)), f"and lets no such token live: {code}")
    b.faults(never_ready=True)
    r = b.ask("mint", machine="m-slow", deadline_ms=1500)
    ok(r.get("kind") == "unavailable" and r.get("code") == "token-not-issued", "mint: no token in time", r)
    b.faults(delay_s=1)
    ok(b.value("mint", machine="m-slow").get("token_id"), "the same request goes on where it was")
    b.faults()
    r = b.ask("mint", machine="../secrets/x")
    ok(r.get("kind") == "invalid", "a machine name that is a path is refused", r)
    path = b.path.rsplit("/", 2)[0] + "/jointokenrequests"
    spec = {"clusterName": cluster.NAME} if b.c.api_versions[0] == "v1beta2" else {
        "clusterRef": {"name": cluster.NAME, "namespace": cluster.NAMESPACE}}
    b.management.create(path, {"apiVersion": "k0smotron.io/" + b.c.api_versions[0], "kind": "JoinTokenRequest",
                               "metadata": {"name": "theirs"}, "spec": spec})
    for call in ("mint", "invalidate"):
        r = b.ask(call, machine="theirs")
        ok(r.get("code") == "token-request-foreign", f"{call} leaves another's JoinTokenRequest alone", r)


def one_shot(b, token, ident):
    joined = kubeapi.Api(gzip.decompress(base64.b64decode(token)).decode())
    ok(joined.get("/api/v1/nodes")["kind"] == "NodeList", "the token lets a node in")
    ok(b.ask("invalidate", machine="m-1").get("kind") == "ok", "invalidate")
    ok(not b.hosted.find("/api/v1/namespaces/kube-system/secrets/bootstrap-token-" + ident),
       "when it returns, the token is gone from the hosted cluster")

    def refused():
        try:
            joined.get("/api/v1/nodes")
        except kubeapi.ApiError as e:
            return e.status == 401
    ok(eventually(refused, 20), "and lets nobody in any more (a real server caches an answer for ten seconds)")
    ok(b.ask("invalidate", machine="m-1").get("kind") == "ok", "invalidate when nothing is left")
    ok(b.ask("invalidate", machine="m-1", plane={"control_plane": "nope"}).get("kind") == "ok",
       "invalidate when the control plane is gone")


def manifests(b):
    path = "/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin-daemonset"
    ok(b.value("manifests", plane={"gpu_stack": "none"}).get("applied") == [] and not b.hosted.find(path),
       "gpu_stack none applies nothing")
    ok(len(b.value("manifests").get("applied", [])) == 1, "the device plug-in is applied")
    ds = b.hosted.get(path)
    pod = ds["spec"]["template"]["spec"]
    ok(pod["containers"][0]["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"
       and pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
       and pod["volumes"][0]["hostPath"]["path"] == "/var/lib/kubelet/device-plugins", "pinned, selected, mounted", pod)
    ok(b.value("manifests").get("applied") == []
       and b.hosted.get(path)["metadata"]["resourceVersion"] == ds["metadata"]["resourceVersion"],
       "a second time nothing is touched")
    image = "registry.example/k8s-device-plugin:v0.20.0"
    b.value("manifests", plane={"device_plugin_image": image})
    ok(b.hosted.get(path)["spec"]["template"]["spec"]["containers"][0]["image"] == image, "the image can be set")
    b.hosted.delete(path)
    theirs = {**ds, "metadata": {"name": "nvidia-device-plugin", "namespace": "default"}}
    theirs.pop("status", None)
    b.hosted.create("/apis/apps/v1/namespaces/default/daemonsets", theirs)
    v = b.value("manifests")
    ok(v.get("applied") == [] and v.get("findings", [{}])[0].get("code") == "device-plugin-foreign"
       and not b.hosted.find(path), "another's device plug-in is left alone, and no second one put beside it", v)
    b.hosted.delete("/apis/apps/v1/namespaces/default/daemonsets/nvidia-device-plugin")


def rendered(b):
    """What `clusters render` prints is taken by a strict API server (nothing is kept)."""
    for version in b.c.api_versions:
        obj = yaml.safe_load(b.value("render", part="cluster", params={"api": version})["text"])
        obj["metadata"]["name"] = "rendered"
        path = f"/apis/k0smotron.io/{version}/namespaces/{cluster.NAMESPACE}/clusters"
        got = b.management.call("POST", path, obj, dryRun="All", fieldValidation="Strict")
        ok(got["spec"]["service"]["konnectivityPort"] == 8132, f"a Cluster of {version} is accepted")
    dcgm = next(yaml.safe_load_all(b.value("render", part="dcgm-exporter")["text"]))
    got = b.hosted.call("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", dcgm, dryRun="All",
                        fieldValidation="Strict")
    ok(got["metadata"]["name"] == "dcgm-exporter", "and so is dcgm-exporter")


def verify(b, node):
    def check(timeout_ms=800, **kw):
        args = {"node": node.name_, "gpu": {"count": 2, "stable_ms": 500}, "timeout_ms": timeout_ms, **kw}
        v = b.value("verify", **args)
        return v, {r["row"]: r for r in v.get("rows", [])}

    v, rows = check(15000, labels={"gpubroker/lease": "7", "topology.kubernetes.io/region": "eu"},
                    since_ms=int(time.time() * 1000))
    ok(v.get("code") == "ok", "a sound node is verified", v)
    ok(rows[1]["result"] == rows[2]["result"] == rows[6]["result"] == rows[12]["result"] == "pass", "row by row", rows)
    ok(rows[5]["result"] == "not-tested" and rows[7]["result"] == "not-tested", "what was not tried is not a pass")
    ok(v["node"]["allocatable_gpus"] == 2 and v["node"]["kubelet_version"] == node.version, "and it is described", v)
    ok(b.hosted.get("/api/v1/nodes/" + node.name_)["metadata"]["labels"].get("gpubroker/lease") == "7",
       "missing labels were set")
    steps = [i["progress"]["step"] for i in b.kube.items[b.last]]
    ok("node-ready" in steps and "gpus" in steps, "progress was told", steps)

    def failing(code, row, change, back, **kw):
        change()
        ok(eventually(lambda: not node.pending()), f"the node is made wrong: {code}")
        v, rows = check(**kw)
        ok(v.get("code") == code and rows[row]["result"] == "fail", f"verify fails with {code}", v.get("code"),
           rows.get(row))
        back()
        eventually(lambda: not node.pending())

    def condition(name, status, good):
        return (lambda: node.conditions.update({name: status}), lambda: node.conditions.update({name: good}))

    def field(name, value):
        good = getattr(node, name)
        return (lambda: setattr(node, name, value), lambda: setattr(node, name, good))

    failing("node-not-ready", 1, *condition("Ready", "False", "True"))
    failing("node-pressure", 4, *condition("DiskPressure", "True", "False"))
    failing("gpu-count", 6, *field("gpus", 1))
    failing("gpu-missing", 6, *field("gpus", 0))
    failing("version-skew", 3, *field("version", "v1.35.0+k0s"))
    v, rows = check(since_ms=int(time.time() * 1000) + 300000)
    ok(v.get("code") == "node-old" and rows[2]["result"] == "fail", "verify fails with node-old", v)
    v, rows = check(gpu={"count": 2, "stable_ms": 60000})
    ok(v.get("code") == "gpu-unstable", "verify waits until the count is stable", v)
    v, rows = check(gpu={"count": 0})
    ok(v.get("code") == "ok" and rows[6]["result"] == "not-tested", "a machine without GPU is verified too", v)
    v = b.value("verify", node="absent", timeout_ms=500)
    ok(v.get("code") == "node-missing", "verify fails with node-missing", v)
    lease_stale(b, node, check)
    dns(b, check)
    kubelet(b, node, check)


def lease_stale(b, node, check):
    node.renew = False
    eventually(lambda: not node.pending())
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + node.name_
    b.hosted.merge(path, {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    v, _ = check()
    ok(v.get("code") == "lease-stale", "verify fails with lease-stale, though the Node says Ready", v)
    node.renew = True
    eventually(lambda: not node.pending())


def dns(b, check):
    path = "/api/v1/namespaces/kube-system/pods"
    b.hosted.create(path, pod("coredns-1", "kube-system", None, {"k8s-app": "kube-dns"}))
    v, _ = check()
    ok(v.get("code") == "dns-down", "verify fails with dns-down", v)
    b.hosted.merge(path + "/coredns-1/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    v, rows = check(5000)
    ok(v.get("code") == "ok" and rows[5]["result"] == "pass", "one Ready CoreDNS pod is enough", v)
    b.hosted.delete(path + "/coredns-1", gracePeriodSeconds=0)


def kubelet(b, node, check):
    path = "/api/v1/nodes/" + node.name_
    if b.c.mode == "double":
        b.hosted.merge(path, {"metadata": {"annotations": {"double/kubelet": "unreachable"}}})
    else:
        node.port += 1
        eventually(lambda: not node.pending())
    v, rows = check(3000)
    ok(v.get("code") == "kubelet-unreachable" and rows[12]["result"] == "fail", "verify fails with kubelet-unreachable",
       v)
    if b.c.mode == "double":
        b.hosted.merge(path, {"metadata": {"annotations": {"double/kubelet": None}}})
    else:
        node.port -= 1
        eventually(lambda: not node.pending())


def pod(name, namespace, node, labels=None, **meta):
    spec = {"containers": [{"name": "c", "image": "example/none:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, **meta}}


def place(b, p):
    path = f"/api/v1/namespaces/{p['metadata']['namespace']}/pods"
    b.hosted.create(path, p)
    b.hosted.merge(f"{path}/{p['metadata']['name']}/status", {"status": {"phase": "Running"}})
    return f"{path}/{p['metadata']['name']}"


def drain(b, node):
    n = node.name_
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "0" * 8, "controller": True}]
    plain = place(b, pod("plain", "default", n))
    daemon = place(b, pod("daemon", "default", n, ownerReferences=owner))
    mirror = place(b, pod("mirror", "default", n, annotations={"kubernetes.io/config.mirror": "x"}))
    guarded = place(b, pod("guarded", "default", n, {"app": "guarded"}))
    pdbs = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "g"},
              "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}
    b.hosted.create(pdbs, budget)
    v = b.value("drain", node=n, timeout_ms=3000)
    ok(v.get("left") == 1 and v.get("blocked") == ["default/guarded"], "a budget keeps its pod until the deadline", v)
    ok(b.hosted.get("/api/v1/nodes/" + n)["spec"].get("unschedulable") is True, "the node is cordoned")
    ok(not b.hosted.find(plain) and b.hosted.find(daemon) and b.hosted.find(mirror),
       "pods are evicted, DaemonSet and mirror pods are not")
    call = b.begin("drain", node=n, timeout_ms=25000)
    ok(b.kube.pump(lambda: b.kube.items[call], 15), "a drain that waits says so")
    b.hosted.delete(pdbs + "/g")
    r = b.kube.wait(call, 25)
    ok(r and r.get("value", {}).get("left") == 0 and not b.hosted.find(guarded), "it goes on when the budget allows", r)
    place(b, pod("guarded", "default", n, {"app": "guarded"}))
    b.hosted.create(pdbs, budget)
    v = b.value("drain", node=n, timeout_ms=1500, force=True)
    ok(v.get("left") == 0 and not b.hosted.find(guarded), "force deletes what a budget keeps", v)
    b.hosted.delete(pdbs + "/g")
    node.stop()
    b.hosted.merge("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + n,
                   {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    place(b, pod("late", "default", n))
    start = time.monotonic()
    v = b.value("drain", node=n, timeout_ms=20000)
    ok(v.get("node_alive") is False and v.get("evicted") == 1 and time.monotonic() - start < 10,
       "the pods of a dead node are not waited for", v)
    h = b.value("health", nodes=[n, "absent"]).get("nodes", {})
    ok(h.get(n, {}).get("allocatable_gpus") == 2 and h.get("absent", {}).get("missing") is True, "health", h)
    ok(b.ask("delete_node", node=n).get("kind") == "ok" and not b.hosted.find("/api/v1/nodes/" + n), "delete_node")
    ok(b.ask("delete_node", node=n).get("kind") == "ok", "delete_node when it is gone")
    ok(b.value("drain", node=n, timeout_ms=2000).get("left") == 0, "drain when it is gone")
    r = b.ask("drain", node="a/../../x")
    ok(r.get("kind") == "invalid", "a node name that is a path is refused", r)


def links(b):
    """Credentials and links that do not work, and calls that must not disturb one another."""
    stale = kubeapi.kubeconfig(b.c.management["url"], b.c.management["ca"].pem, "m", "u",
                               token="abcdef.0123456789abcdef")
    r = b.ask("lint", conf=stale)
    ok(r.get("kind") == "auth" and r.get("code") == "kube-401", "a stale kubeconfig is an auth error", r)
    wrong = kubeapi.kubeconfig(b.c.management["url"], certs.Authority(b.c.dir / "other", "other-ca").pem, "m", "u",
                               token="abcdef.0123456789abcdef")
    r = b.ask("lint", conf=wrong)
    ok(r.get("kind") == "unavailable" and r.get("code") == "kube-tls", "another CA is a TLS error", r)
    down = kubeapi.kubeconfig(f"https://{b.address}:1", b.c.management["ca"].pem, "m", "u", token="x")
    r = b.ask("lint", conf=down)
    ok(r.get("kind") == "unavailable" and r.get("code") == "kube-connect", "an API that is down is unavailable", r)
    r = b.ask("lint", conf="users: [")
    ok(r.get("kind") == "invalid" and "kubeconfig" in r.get("text", ""), "a broken kubeconfig is named as such", r)
    r = b.ask("explode")
    ok(r.get("kind") == "unsupported", "a call that there is not", r)
    with socket.create_server((b.address, 0)) as hole:
        conf = kubeapi.kubeconfig(f"https://{b.address}:{hole.getsockname()[1]}", b.c.management["ca"].pem, "m", "u",
                                  token="x")
        hung = [b.begin("lint", conf=conf, deadline_ms=20000) for _ in range(8)]
        ok(b.value("health", nodes=["absent"]).get("nodes") and not any(h in b.kube.results for h in hung),
           "eight calls on a server that hangs hold up nobody")
        start = time.monotonic()
        for h in hung:
            b.kube.cancel(h)
        ended = [b.kube.wait(h, 10) for h in hung]
        ok(all(r and r["kind"] == "cancelled" for r in ended) and time.monotonic() - start < 6, "CANCEL ends them",
           ended)
        start = time.monotonic()
        r = b.ask("lint", conf=conf, deadline_ms=1000)
        ok(r.get("kind") == "unavailable" and time.monotonic() - start < 5, "a deadline ends a call", r)


def plain_cluster(b):
    """type kubeconfig: the cluster itself, where we issue the tokens."""
    plane = {"type": "kubeconfig", "allow_private": True, "k0s_version": "v1.34.4+k0s.0"}
    v = b.value("lint", conf=b.c.hosted["text"], plane=plane)
    ok([f["code"] for f in v.get("findings", [])] == ["not-k0s"] and v.get("server") == b.c.hosted["url"],
       "a cluster of type kubeconfig is linted", v)
    v = b.value("lint", conf=b.c.hosted["text"], plane={**plane, "k0s_version": None})
    ok("version-unpinned" in [f["code"] for f in v.get("findings", [])], "it does not say which k0s it runs", v)
    conf = yaml.safe_load(b.c.hosted["text"])
    del conf["clusters"][0]["cluster"]["certificate-authority-data"]
    v = b.value("lint", conf=yaml.safe_dump(conf), plane=plane)
    ok("ca-absent" in [f["code"] for f in v.get("findings", [])], "a kubeconfig without a CA makes no join token", v)
    v = b.value("lint", conf=b.c.hosted["text"], plane={**plane, "k0s_version": "v1.36.1+k0s.0"})
    ok([f["code"] for f in v.get("findings", [])] == ["version-skew", "not-k0s"], "its version is asked of itself", v)
    ok(b.value("health", conf=b.c.hosted["text"], plane=plane, nodes=["x"]).get("nodes", {}).get("x", {}).get("missing"),
       "and its nodes are there directly")
    bootstrap(b, plane)
    r = b.ask("lint", plane={"namespace": "../x"})
    ok(r.get("kind") == "invalid", "a namespace that is a path is refused", r)


def bootstrap(b, plane):
    secrets = "/api/v1/namespaces/kube-system/secrets"
    where = dict(conf=b.c.hosted["text"], plane=plane)

    def ours():
        return b.hosted.get(secrets, labelSelector="gpubroker.io/machine=m-1")["items"]

    before = time.time() * 1000
    v = b.value("mint", machine="m-1", labels={"gpubroker.io/lease": "l7"}, expiry_s=600, **where)
    token = b.kube.secrets[b.last, "token"].decode()
    ok(abs(v["expires_ms"] - before - 600000) < 5000 and v["server"] == b.c.hosted["url"] and
       v["ca_pem"].encode() == b.c.hosted["ca"].pem, "a token is made, with its end, address and CA", v)
    [s] = ours()
    data = {k: base64.b64decode(x).decode() for k, x in s["data"].items()}
    ok(s["type"] == "bootstrap.kubernetes.io/token" and s["metadata"]["name"] == "bootstrap-token-" + v["token_id"] and
       data["token-id"] == v["token_id"] and len(data["token-secret"]) == 16 and
       data["usage-bootstrap-authentication"] == "true" and "usage-bootstrap-signing" not in data, "as a Secret of the type that counts", s)
    ok(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(v["expires_ms"] / 1000)) == data["expiration"], "which says when it ends")
    ok(s["metadata"]["labels"].get("gpubroker.io/lease") == "l7", "and whose it is")
    text = gzip.decompress(base64.b64decode(token, validate=True)).decode()
    conf = yaml.safe_load(text)
    ok(conf["users"] == [{"name": "kubelet-bootstrap", "user": {"token": f"{data['token-id']}.{data['token-secret']}"}}] and
       conf["current-context"] == "k0s" and [c["name"] for c in conf["clusters"]] == ["k0s"], "the join token is a worker's kubeconfig")
    ok(kubeapi.Api(text).get("/api/v1/nodes")["kind"] == "NodeList", "which lets a node in")
    ok(token not in json.dumps([b.kube.results, b.kube.items, b.kube.logs]) and
       data["token-secret"] not in json.dumps([b.kube.results, b.kube.items, b.kube.logs]), "no frame but the SECRET has it")
    again = b.value("mint", machine="m-1", **where)
    ok((again["token_id"], len(ours())) == (v["token_id"], 1), "asked again while it lives: the same")
    b.hosted.merge(f"{secrets}/{s['metadata']['name']}", {"data": {"expiration": kubeapi.b64(time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 30)))}})
    fresh = b.value("mint", machine="m-1", **where)
    ok(fresh["token_id"] != v["token_id"] and [x["metadata"]["name"] for x in ours()] == ["bootstrap-token-" + fresh["token_id"]],
       "one that is nearly over is replaced, and goes")
    other = b.value("mint", machine="m-2", **where)
    b.hosted.ensure(secrets, {"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "metadata": {
        "name": "bootstrap-token-theirs"}, "stringData": {"token-id": "theirs", "token-secret": "0123456789abcdef"}})
    ok(b.ask("invalidate", machine="m-1", **where).get("kind") == "ok" and ours() == [], "invalidate ends it")
    ok(all(b.hosted.find(f"{secrets}/bootstrap-token-{x}") for x in (other["token_id"], "theirs")), "and no other")
    ok(b.ask("invalidate", machine="m-1", **where).get("kind") == "ok", "also when there is none")
    b.ask("invalidate", machine="m-2", **where)
    b.hosted.delete(secrets + "/bootstrap-token-theirs")
    if not b.address.startswith("127."):
        return
    r = b.ask("mint", conf=b.c.hosted["text"], plane={**plane, "allow_private": False}, machine="m-1")
    ok(r.get("code") == "address-private" and ours() == [], "an address that machines cannot reach makes no token", r)


def http_faults(b):
    if b.c.mode != "double":
        skip("a server that answers 503", "only the double has faults on demand")
        return
    b.faults(http=[{"path": "/api/v1/nodes", "status": 503}])
    r = b.ask("health", nodes=["a"])
    ok(r.get("kind") == "unavailable", "a node that cannot be asked about is not a missing one", r)
    b.faults()


def whole(mode, address):
    with tempfile.TemporaryDirectory(prefix="gpub-kube-") as d, \
            cluster.Clusters(mode, d, address, k0smotron_major=2) as c:
        print(f"# {c.mode} API server at {address}, k0smotron {', '.join(c.api_versions)}")
        b = Bench(c, address)
        ok(b.kube.hello["role"] == "kube" and b.kube.ready == {"kind": "ok"}, "the runner says who it is")
        lint(b)
        lint_cluster(b)
        token, ident = mint(b)
        node = fakenode.FakeNode(token, "m-1", gpus=2, kubelet=address if c.mode == "real" and
                                 not address.startswith("127.") else None)
        node.start()
        ok(node.registered.wait(15), "a node registers with the token")
        if c.mode == "real" and address.startswith("127."):
            skip("verify and drain", "no network namespace: a real API server reaches no kubelet on loopback")
        else:
            manifests(b)
            rendered(b)
            verify(b, node)
            drain(b, node)
        node.stop()
        one_shot(b, token, ident)
        mint_faults(b)
        links(b)
        plain_cluster(b)
        http_faults(b)
        ok(b.kube.close() == 0, "the runner ends when the daemon goes")


def old_api(mode, address):
    with tempfile.TemporaryDirectory(prefix="gpub-kube-") as d, \
            cluster.Clusters(mode, d, address, k0smotron_major=1) as c:
        print(f"# {c.mode} API server, k0smotron {', '.join(c.api_versions)}")
        b = Bench(c, address)
        lint(b)
        token, ident = mint(b)
        one_shot(b, token, ident)
        b.management.merge(b.path + "/status", {"status": {"ready": False, "reconciliationStatus": "no storage"}})
        ok("cluster-not-ready" in b.codes(), "v1beta1: a Cluster that is not ready is a finding")
        b.kube.close()


def main():
    address = enter_namespace()
    if MODE != "double" and not cluster.binaries():
        skip("a real kube-apiserver", "not built: tests/kube/build.sh builds it where there is a Go toolchain")
    whole(MODE, address)
    old_api(MODE, address)
    done()


if __name__ == "__main__":
    main()
