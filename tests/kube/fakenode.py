"""fakenode.py - a kubelet as its API server sees it: registers with a join token, renews its lease, counts GPUs

In a process: FakeNode(token_text, "m1", gpus=1).start().  On a command line, for machines that have Python and
nothing else (only the standard library, kubeapi.py and PyYAML):
  fakenode.py --token-file F --name N [--gpus 1] [--address A] [--labels k=v,k=v]    until a signal
"""
import argparse
import base64
import datetime
import gzip
import http.server
import pathlib
import ssl
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import certs  # noqa: E402
import kubeapi  # noqa: E402

STRATEGIC = "application/strategic-merge-patch+json"


def micro():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet(http.server.BaseHTTPRequestHandler):
    """GET /healthz and /containerLogs/NAMESPACE/POD/CONTAINER."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        parts, body = self.path.partition("?")[0].split("/"), None
        if self.path == "/healthz":
            body = b"ok"
        elif parts[1] == "containerLogs" and self.server.node.pods:
            body = self.server.node.pods.log(parts[2], parts[3])
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


class FakeNode(threading.Thread):
    """kubelet: an address (not loopback: a real API server refuses to go there) to serve healthz on, or None."""

    def __init__(self, token, name, gpus=1, kubelet=None, labels=None, version="v1.34.4+k0s", resource="nvidia.com/gpu"):
        super().__init__(daemon=True)
        self.api = kubeapi.Api(gzip.decompress(base64.b64decode(token)).decode())
        self.name_, self.gpus, self.version, self.resource = name, gpus, version, resource
        self.labels, self.kubelet, self.port = labels or {}, kubelet, 0
        self.stopping, self.registered = threading.Event(), threading.Event()
        self.conditions = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False",
                           "PIDPressure": "False", "NetworkUnavailable": "False"}
        self.renew, self.told = True, None
        self.pods = None  # a fakepods.Pods that runs their containers

    def wanted(self):
        return (self.gpus, self.version, self.port, self.renew, dict(self.conditions))

    def pending(self):
        """Whether the server has not yet been told of the last change."""
        return self.told != self.wanted()

    def serve_kubelet(self):
        with tempfile.TemporaryDirectory() as d:
            cert, key = certs.Authority(d, "kubelet-ca").issue("kubelet", "/CN=kubelet", "serverAuth")
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(cert, key)
        self.server = http.server.ThreadingHTTPServer((self.kubelet, 0), Kubelet)
        self.server.node = self
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def status(self):
        status = {
            "conditions": [{"type": t, "status": s, "reason": "Fake", "message": "fake " + t,
                            "lastHeartbeatTime": seconds(), "lastTransitionTime": seconds()}
                           for t, s in self.conditions.items()],
            "nodeInfo": {"kubeletVersion": self.version, "kubeProxyVersion": self.version, "osImage": "Debian 12",
                         "containerRuntimeVersion": "containerd://1.7.34", "kernelVersion": "6.1.0", "machineID": "m",
                         "systemUUID": "s", "bootID": "b", "operatingSystem": "linux", "architecture": "amd64"},
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
        if self.gpus is not None:
            status["capacity"][self.resource] = status["allocatable"][self.resource] = str(self.gpus)
        if self.kubelet:
            status["addresses"] = [{"type": "InternalIP", "address": self.kubelet},
                                   {"type": "Hostname", "address": self.name_}]
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": self.port}}
        return status

    def beat(self):
        now = self.wanted()
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        self.api.call("PATCH", f"/api/v1/nodes/{self.name_}/status", {"status": self.status()}, kind=STRATEGIC)
        if now[3]:
            spec = {"holderIdentity": self.name_, "leaseDurationSeconds": 40, "renewTime": micro()}
            self.api.ensure(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                   "metadata": {"name": self.name_, "namespace": "kube-node-lease"}, "spec": spec})
            self.api.merge(f"{path}/{self.name_}", {"spec": spec})
        self.told = now

    def end_pods(self):
        """A kubelet ends the containers of pods that are being deleted, then deletes the pods for good."""
        for pod in self.api.get("/api/v1/pods", fieldSelector="spec.nodeName=" + self.name_)["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                self.api.delete("/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"]),
                                gracePeriodSeconds=0)

    def run(self):
        if self.kubelet:
            self.serve_kubelet()
        labels = {"kubernetes.io/hostname": self.name_, "kubernetes.io/os": "linux", **self.labels}
        self.api.ensure("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
                                          "metadata": {"name": self.name_, "labels": labels}})
        while True:
            try:
                self.beat()
                self.registered.set()
                if self.pods:
                    self.pods.sync()
                self.end_pods()
            except (kubeapi.ApiError, OSError):
                pass  # a node that was deleted, or a server that is away: a kubelet goes on trying
            if self.stopping.wait(0.3):
                break
        if self.pods:
            self.pods.stop()
        if self.kubelet:
            self.server.shutdown()
            self.server.server_close()

    def stop(self):
        self.stopping.set()
        self.join(10)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--token-file", required=True)
    p.add_argument("--name", required=True)
    p.add_argument("--gpus", type=int, default=1)
    p.add_argument("--address")
    p.add_argument("--labels", default="")
    a = p.parse_args()
    labels = dict(pair.split("=", 1) for pair in a.labels.split(",") if pair)
    FakeNode(pathlib.Path(a.token_file).read_text().strip(), a.name, a.gpus, a.address, labels).run()


if __name__ == "__main__":
    main()
