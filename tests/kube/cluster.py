"""cluster.py - a management cluster and a hosted control plane, real or double, ready for a broker

  with Clusters("auto", folder, "127.0.0.1") as c:
      c.info["management"]["kubeconfig"]

Two API servers (one etcd, two prefixes), the CRDs, one Cluster with its Secrets and Services, the operator's
stand-in, and a listener where the tunnel of the real one would be.
"""
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time

import yaml

import certs
import double
import k0smotron
import kubeapi

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE, NAME, VERSION = "spokes", "spoke-a", "v1.34.4-k0s.0"


def binaries():
    """Where the real binaries are, or None."""
    r = subprocess.run([HERE / "build.sh", "--where"], capture_output=True, text=True)
    return pathlib.Path(r.stdout.strip()) if r.returncode == 0 and r.stdout.strip() else None


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def wait(what, test, seconds=60):
    """Polls until test() is true; whatever it raises counts as not yet."""
    end, last = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            if test():
                return
        except (OSError, kubeapi.ApiError) as e:
            last = e
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not within {seconds} s ({last})")


class Etcd:
    def __init__(self, folder, binary):
        self.url = f"http://127.0.0.1:{free_port('127.0.0.1')}"
        peer = f"http://127.0.0.1:{free_port('127.0.0.1')}"
        with open(folder / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                [binary, "--data-dir", folder / "etcd", "--listen-client-urls", self.url, "--advertise-client-urls",
                 self.url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", "default=" + peer, "--unsafe-no-fsync"], stdout=log, stderr=log)


class Real:
    """One kube-apiserver process."""

    def __init__(self, folder, binary, etcd, address, port, authority, name):
        self.port = port
        cert, key = authority.issue(name + "-server", "/CN=kube-apiserver", "serverAuth",
                                    [f"IP:{address}", "IP:127.0.0.1", "IP:10.96.0.1", "DNS:localhost"])
        kcert, kkey = authority.issue(name + "-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet",
                                      "clientAuth")
        sa = folder / f"{name}-sa.key"
        certs.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", sa)
        args = {
            "etcd-servers": etcd.url, "etcd-prefix": "/" + name, "bind-address": address, "secure-port": port,
            "advertise-address": "192.0.2.1" if address.startswith("127.") else address,
            "tls-cert-file": cert, "tls-private-key-file": key, "client-ca-file": authority.cert,
            "kubelet-preferred-address-types": "InternalIP,Hostname",  # as k0s sets it
            "kubelet-client-certificate": kcert, "kubelet-client-key": kkey,
            "enable-bootstrap-token-auth": "true", "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc", "service-account-key-file": sa,
            "service-account-signing-key-file": sa, "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": "ServiceAccount", "endpoint-reconciler-type": "none",
            "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
            "enable-priority-and-fairness": "false", "profiling": "false",
        }
        with open(folder / f"{name}.log", "ab") as log:
            self.process = subprocess.Popen([binary] + [f"--{k}={v}" for k, v in args.items()],
                                            stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "2"})

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Tunnel(threading.Thread):
    """Accepts on the konnectivity port and says nothing, as a TLS server waiting for its peer does."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.listener = socket.create_server((address, 0))
        self.port, self.accepted = self.listener.getsockname()[1], []
        self.start()

    def run(self):
        try:
            while True:
                self.accepted = self.accepted[-16:] + [self.listener.accept()[0]]
        except OSError:
            pass

    def stop(self):
        self.listener.close()


class Clusters:
    def __init__(self, mode, folder, address="127.0.0.1", k0smotron_major=2):
        self.dir, self.address = pathlib.Path(folder), address
        self.dir.mkdir(parents=True, exist_ok=True)
        self.bin = None if mode == "double" else binaries()
        if mode == "real" and not self.bin:
            raise SystemExit("no real kube-apiserver: run tests/kube/build.sh first")
        self.mode = "real" if self.bin else "double"
        self.api_versions = ["v1beta1"] if k0smotron_major == 1 else ["v1beta2", "v1beta1"]
        self.faults, self.parts = self.dir / "faults.json", []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for part in reversed(self.parts):
            part.stop()
        self.parts = []

    def server(self, name):
        """Starts one API server; returns what the outside needs to know of it."""
        authority = certs.Authority(self.dir / name, name + "-ca")
        if self.bin:
            server = Real(self.dir, self.bin / "kube-apiserver", self.etcd, self.address, free_port(self.address),
                          authority, name)
        else:
            server = double.Double(self.address, 0, authority, name, self.http_fault)
        self.parts.append(server)
        url = f"https://{self.address}:{server.port}"
        cert, key = authority.issue(name + "-admin", "/O=system:masters/CN=admin", "clientAuth")
        conf = kubeapi.kubeconfig(url, authority.pem, name, name + "-admin",
                                  client_certificate_data=cert.read_bytes(), client_key_data=key.read_bytes())
        path = self.dir / f"{name}.kubeconfig"
        path.write_text(conf)
        path.chmod(0o600)
        api = kubeapi.Api(conf)
        return {"server": server, "url": url, "ca": authority, "kubeconfig": str(path), "text": conf, "api": api}

    def http_fault(self, path):
        """{"http": [{"path": "/api/v1/nodes", "status": 503, "delay": 1}]} in the faults file: double only."""
        try:
            rules = json.loads(self.faults.read_text()).get("http", [])
        except (OSError, ValueError):
            return None
        return next((r for r in rules if path.startswith(r["path"])), None)

    def start(self):
        if self.bin:
            self.etcd = Etcd(self.dir, self.bin / "etcd")
            self.etcd.stop = lambda: Real.stop(self.etcd)
            self.parts.append(self.etcd)
        self.management, self.hosted = self.server("management"), self.server("hosted")
        for side in (self.management, self.hosted):
            wait("API server ready", lambda s=side: s["api"].get("/readyz") == "ok", 120)
            wait("kube-system", lambda s=side: s["api"].find("/api/v1/namespaces/kube-system"), 60)
        self.tunnel = Tunnel(self.address)
        self.parts.append(self.tunnel)
        self.allow_bootstrap()
        self.install_crds()
        self.describe_cluster()
        operator = k0smotron.Operator(self.management["api"], self.hosted["api"], self.hosted["url"],
                                      self.hosted["ca"].pem, self.api_versions[0], self.faults)
        operator.start()
        self.parts.append(operator)
        self.info = {
            "mode": self.mode, "dir": str(self.dir), "namespace": NAMESPACE, "control_plane": NAME,
            "k0s_version": VERSION.replace("-k0s", "+k0s"), "k0smotron": self.api_versions,
            "management": {k: self.management[k] for k in ("kubeconfig", "url")},
            "hosted": {k: self.hosted[k] for k in ("kubeconfig", "url")},
            "api_host": self.address, "api_port": self.hosted["server"].port,
            "konnectivity_host": self.address, "konnectivity_port": self.tunnel.port,
            "faults": str(self.faults)}

    def allow_bootstrap(self):
        """Nodes of a test may do all: their authentication is what is tested."""
        if self.mode == "real":
            self.hosted["api"].ensure("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "test-bootstrap"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "Group", "name": "system:bootstrappers",
                              "apiGroup": "rbac.authorization.k8s.io"}]})

    def install_crds(self):
        api = self.management["api"]
        for path in sorted((HERE / "crds").glob("*.yaml")):
            crd = yaml.safe_load(path.read_text())
            versions = [v for v in crd["spec"]["versions"] if v["name"] in self.api_versions]
            versions[0]["storage"] = True
            crd["spec"]["versions"] = versions
            api.ensure("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for plural in ("clusters", "jointokenrequests"):
            for version in self.api_versions:
                wait(f"{plural} served", lambda p=plural, v=version:
                     api.get(f"/apis/k0smotron.io/{v}/{p}")["kind"], 60)

    def describe_cluster(self):
        api, version = self.management["api"], self.api_versions[0]
        api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        path = f"/apis/k0smotron.io/{version}/namespaces/{NAMESPACE}/clusters"
        api.ensure(path, {
            "apiVersion": "k0smotron.io/" + version, "kind": "Cluster", "metadata": {"name": NAME}, "spec": {
                "version": VERSION, "externalAddress": self.address,
                "service": {"type": "LoadBalancer", "apiPort": self.hosted["server"].port,
                            "konnectivityPort": self.tunnel.port},
                "persistence": {"type": "pvc"},
                "k0sConfig": {"apiVersion": "k0s.k0sproject.io/v1beta1", "kind": "ClusterConfig", "spec": {
                    "network": {"provider": "calico", "calico": {"mode": "vxlan", "overlay": "Always"}}}}}})
        stamp = k0smotron.stamp()
        status = {"ready": True, "reconciliationStatus": "Reconciliation successful"} if version == "v1beta1" else {
            "replicas": 1, "readyReplicas": 1, "conditions": [
                {"type": t, "status": "True", "reason": "Ok", "message": "", "lastTransitionTime": stamp}
                for t in ("Available", "ControlPlaneFunctional", "KubeconfigSecretAvailable")]}
        api.merge(f"{path}/{NAME}/status", {"status": status})
        secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
        api.ensure(secrets, {
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": NAME + "-kubeconfig"}, "stringData": {"value": self.hosted["text"]}})
        api.ensure(secrets, {
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": NAME + "-ca"}, "stringData": {"tls.crt": self.hosted["ca"].pem.decode(),
                                                               "tls.key": "not needed here"}})
        ports = [{"name": "api", "port": self.hosted["server"].port, "protocol": "TCP"},
                 {"name": "konnectivity", "port": self.tunnel.port, "protocol": "TCP"}]
        services = f"/api/v1/namespaces/{NAMESPACE}/services"
        api.ensure(services, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"kmc-{NAME}-lb"},
                              "spec": {"type": "LoadBalancer", "ports": ports, "selector": {"app": "k0smotron"}}})
        if not self.address.startswith("127."):
            api.merge(f"{services}/kmc-{NAME}-lb/status",
                      {"status": {"loadBalancer": {"ingress": [{"ip": self.address}]}}})


def tls_answers(host, port):
    """For tests: whether something speaks TLS there."""
    ctx = ssl.create_default_context()
    ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), 2) as s, ctx.wrap_socket(s):
        return True
