#!/usr/bin/python3
"""kube_pods.py - the network matrix on two nodes of a real API server: what holds passes, what is broken has its row

The containers are processes of this machine (tests/kube/fakepods.py); what they say comes through the API server.
"""
import http.server
import json
import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kube")]
import cluster  # noqa: E402
import fakenode  # noqa: E402
import fakepods  # noqa: E402
from kube_runner import Bench, enter_namespace, eventually  # noqa: E402
from sandbox import done, ok, skip  # noqa: E402

SMI = """#!/bin/sh
case $1 in
--query-gpu*) echo "NVIDIA H100 80GB HBM3, 81559, 570.195.03"; echo "NVIDIA H100 80GB HBM3, 81559, 570.195.03" ;;
*) echo "| NVIDIA-SMI 570.195.03    Driver Version: 570.195.03    CUDA Version: 12.8     |" ;;
esac
"""
NODE, PEER, BEYOND = "198.51.100.2{}", "198.51.100.3{}", "198.51.100.9{}"
NAMESPACES = "/api/v1/namespaces"


class Egress(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def serve(address):
    server = http.server.ThreadingHTTPServer((address, 0), Egress)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return f"http://{address}:{server.server_address[1]}/"


def tests(b):
    return [n for n in b.hosted.get(NAMESPACES, labelSelector="gpubroker.io/test")["items"]
            if "deletionTimestamp" not in n["metadata"]]


def verify(b, plane=None, gpus=2, **args):
    v = b.value("verify", node="m-1", gpu={"count": gpus, "stable_ms": 200}, timeout_ms=45000, deadline_ms=60000,
                network=True, plane={"test_egress": b.egress, **(plane or {})}, **args)
    return v, {r["row"]: r for r in v.get("rows", [])}


def sound(b):
    v, rows = verify(b)
    ok(v.get("code") == "ok", "a sound pair of nodes", v)
    for row, what in ((7, "the GPUs in a container"), (8, "pod to pod"), (9, "host to pod"), (10, "each CoreDNS"),
                      (11, "the Service"), (13, "egress")):
        ok(rows[row]["result"] == "pass", f"passes: {what}", rows[row])
    ok(rows[14]["result"] == "not-tested" and "storage_class" in rows[14]["text"], "storage is not tested without a class")
    ok("2x NVIDIA H100 80GB HBM3, 81559 MiB, driver 570.195.03, CUDA 12.8" in rows[7]["text"], "the GPUs are told", rows[7])
    ok(len(v["node"]["gpu_pod"]["gpus"]) == 2 and v["node"]["gpu_pod"]["cuda"] == "12.8", "and stand in the answer", v["node"])
    ok("same node and on m-2" in rows[9]["text"], "the host reached both nodes", rows[9])
    ok(tests(b) == [], "nothing is left in the cluster")


def broken(b):
    """Each fault alone: the row that fails, its code, what it says; the others still pass."""
    b.peer.pods.unreachable = BEYOND.format(1)
    v, rows = verify(b)
    ok(v.get("code") == "pod-network-blocked" and "nothing reaches a pod on m-2" in rows[8]["text"], "pods of the other node are out of reach", rows[8])
    ok(rows[9]["result"] == "fail" and "none on m-2" in rows[9]["text"], "for the host, too", rows[9])
    ok(rows[10]["result"] == rows[13]["result"] == "pass", "the rest works")
    b.peer.pods.unreachable = None
    b.peer.pods.free.insert(0, BEYOND.format(2))  # nobody has it: the server cannot begin
    v, rows = verify(b)
    ok(v.get("code") == "test-pod-failed" and "the pod on m-2" in rows[8]["text"] and rows[13]["result"] == "pass",
       "a second node whose pod does not come up", rows[8])
    b.peer.pods.drop = 2
    v, rows = verify(b)
    ok(v.get("code") == "service-loss" and "of 20 requests" in rows[11]["text"] and rows[8]["result"] == "pass",
       "a Service that loses every second connection", rows[11])
    b.peer.pods.drop = 0
    b.hosted.merge("/api/v1/namespaces/kube-system/pods/coredns-2/status", {"status": {
        "podIP": BEYOND.format(9), "podIPs": [{"ip": BEYOND.format(9)}]}})
    v, rows = verify(b)
    ok(v.get("code") == "dns-half" and BEYOND.format(9) in rows[10]["text"] and "198.51.100.53" not in rows[10]["text"],
       "one of two CoreDNS pods is not reached, and it is named", rows[10])
    b.hosted.merge("/api/v1/namespaces/kube-system/pods/coredns-2/status", {"status": {
        "podIP": "198.51.100.54", "podIPs": [{"ip": "198.51.100.54"}]}})
    v, rows = verify(b, plane={"test_egress": f"http://{b.address}:1/"})
    ok(v.get("code") == "egress-blocked" and rows[13]["result"] == "fail" and rows[11]["result"] == "pass", "no way out", rows[13])
    b.node.pods.images_missing = {"example/none:1"}
    v, rows = verify(b, plane={"test_image": "example/none:1"})
    ok(v.get("code") == "test-image-pull" and rows[7]["result"] == "pass", "an image that does not come has its own code", rows[8])
    b.node.pods.gpus_busy = True
    v, rows = verify(b)
    ok(v.get("code") == "ok" and rows[7]["result"] == "not-tested" and "other pods" in rows[7]["text"],
       "GPUs that others use are not tested", rows[7])
    b.node.pods.gpus_busy = False
    ok(tests(b) == [], "nothing is left of any of them")


def alone(b):
    b.peer.stop()
    b.hosted.delete("/api/v1/nodes/m-2")
    v, rows = verify(b)
    ok(v.get("code") == "ok" and rows[8]["result"] == rows[11]["result"] == "not-tested" and rows[9]["result"] == "pass",
       "one node alone: what needs a second one is not tested", rows)
    v, rows = verify(b, gpus=0)
    ok(rows[7]["result"] == "not-tested", "nor GPUs where none was bought", rows[7])


def left(b):
    """A cancelled call cleans up; what a killed one left goes an hour later."""
    b.node.pods.images_missing = set()
    call = b.begin("verify", node="m-1", gpu={"count": 2, "stable_ms": 200}, timeout_ms=45000, deadline_ms=60000,
                   network=True, plane={"test_egress": b.egress})
    ok(eventually(lambda: tests(b)), "a run has begun")
    b.kube.cancel(call)
    ok(b.kube.wait(call, 40).get("kind") == "cancelled", "it is cancelled")
    ok(tests(b) == [], "and takes its namespace along")
    b.hosted.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "gpubroker-test-young", "labels": {"gpubroker.io/test": "network"}}})
    verify(b)
    ok([n["metadata"]["name"] for n in tests(b)] == ["gpubroker-test-young"], "another's run that is young stays")


def storage(b):
    b.hosted.create("/apis/storage.k8s.io/v1/storageclasses", {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "example.org/none"})
    v, rows = verify(b, plane={"storage_class": "fast"})
    ok(rows[14]["result"] == "pass", "a volume is written and read", rows[14])


def coredns(b, name, address):
    path = "/api/v1/namespaces/kube-system/pods"
    b.hosted.create(path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"k8s-app": "kube-dns"}},
                           "spec": {"nodeName": "m-1", "containers": [{"name": "c", "image": "example/coredns:1"}]}})
    b.hosted.merge(f"{path}/{name}/status", {"status": {"podIP": address, "podIPs": [{"ip": address}], "conditions": [
        {"type": "Ready", "status": "True"}]}})
    fakepods.Dns(address).start()


def main():
    address = enter_namespace()
    why = fakepods.missing() or (None if cluster.binaries() else "needs a real kube-apiserver: tests/kube/build.sh")
    if why or address.startswith("127."):
        skip("network matrix", why or "no network namespace")
        done()
    with tempfile.TemporaryDirectory(prefix="gpub-kube-") as d, cluster.Clusters("real", d, address, k0smotron_major=2) as c:
        b = Bench(c, address)
        b.egress = serve(address)
        token = None
        b.value("mint", machine="m-1", labels={})
        token = b.kube.secrets[b.last, "token"].decode()
        b.node = fakenode.FakeNode(token, "m-1", gpus=2, kubelet=address)
        b.peer = fakenode.FakeNode(token, "m-2", gpus=2, kubelet=address)
        for node, pool in ((b.node, NODE), (b.peer, PEER)):
            for i in range(10):
                fakepods.own(pool.format(i))
            node.pods = fakepods.Pods(node, [pool.format(i % 10) for i in range(200)], SMI)
            node.start()
        ok(b.node.registered.wait(15) and b.peer.registered.wait(15), "two nodes are there")
        coredns(b, "coredns-1", "198.51.100.53")
        coredns(b, "coredns-2", "198.51.100.54")
        service = b.hosted.create("/api/v1/namespaces/kube-system/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns"},
            "spec": {"selector": {"k8s-app": "kube-dns"}, "ports": [{"port": 53, "protocol": "UDP"}]}})
        fakepods.Dns(service["spec"]["clusterIP"]).start()
        for fn in (sound, storage, broken, left, alone):
            try:
                fn(b)
            except Exception as e:  # noqa: BLE001: it has failed, and the next one still runs
                ok(False, f"{fn.__name__}: {type(e).__name__}: {e}"[:400])
        b.node.stop()
        b.kube.close()
    done()


main()
