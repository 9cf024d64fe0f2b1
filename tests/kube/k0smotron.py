"""k0smotron.py - what the operator does with a Cluster and its JoinTokenRequests, as far as the broker can see

Order matters and is kept: bootstrap token in the hosted cluster, then the Secret, then status.tokenID.  Faults are
read anew in every round from a JSON file, so that a test in another process can change them:
  {"delay_s": 2, "never_ready": true, "fail": true, "role": "controller", "server": "https://10.1.2.3:6443",
   "ca": "PEM of another authority", "garbage": "text to stand where the token would"}
"""
import base64
import datetime
import gzip
import json
import pathlib
import re
import secrets
import string
import threading
import time

import kubeapi

FINALIZER = "k0smotron.io/finalizer"


def stamp(seconds=0):
    t = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return t.strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(text):
    """Seconds of a Go duration; 0 means never."""
    units = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    return sum(float(n) * units[u] for n, u in re.findall(r"([0-9.]+)(h|ms|m|s)", text))


def token_text(server, ca_pem, token, role="worker"):
    name = "kubelet-bootstrap" if role == "worker" else "controller-bootstrap"
    conf = kubeapi.kubeconfig(server, ca_pem, "k0s", name, token=token)
    return base64.b64encode(gzip.compress(conf.encode())).decode()


class Operator(threading.Thread):
    def __init__(self, management, hosted, hosted_server, hosted_ca, version, faults):
        super().__init__(daemon=True)
        self.management, self.hosted = management, hosted
        self.server, self.ca, self.version = hosted_server, hosted_ca, version
        self.faults, self.stopping, self.seen = pathlib.Path(faults), threading.Event(), {}

    def stop(self):
        self.stopping.set()
        self.join(10)

    def run(self):
        path = f"/apis/k0smotron.io/{self.version}/jointokenrequests"
        while not self.stopping.wait(0.1):
            try:
                faults = json.loads(self.faults.read_text() or "{}") if self.faults.exists() else {}
                for jtr in self.management.get(path)["items"]:
                    self.reconcile(jtr, faults)
            except (kubeapi.ApiError, OSError, ValueError):
                pass  # the next round tries again, as the real one does

    def reconcile(self, jtr, faults):
        meta = jtr["metadata"]
        path = f"/apis/k0smotron.io/{self.version}/namespaces/{meta['namespace']}/jointokenrequests/{meta['name']}"
        if "deletionTimestamp" in meta:
            if "tokenID" in jtr.get("status", {}):
                self.hosted.delete("/api/v1/namespaces/kube-system/secrets/bootstrap-token-"
                                   + jtr["status"]["tokenID"])
            # the owner reference: there is no garbage collector here
            self.management.delete(f"/api/v1/namespaces/{meta['namespace']}/secrets/{meta['name']}")
            self.management.merge(path, {"metadata": {"finalizers": None}})
            return
        since = self.seen.setdefault(meta["uid"], time.monotonic())
        if FINALIZER not in meta.get("finalizers", ()):
            self.management.merge(path, {"metadata": {"finalizers": [FINALIZER]}})
        if "tokenID" in jtr.get("status", {}) or faults.get("never_ready"):
            return
        if faults.get("fail"):
            self.status(path, "exec: pod not found")
            return
        if time.monotonic() - since >= faults.get("delay_s", 0):
            self.issue(path, jtr, faults)

    def issue(self, path, jtr, faults):
        meta, spec = jtr["metadata"], jtr["spec"]
        alphabet = string.ascii_lowercase + string.digits
        ident, secret = ("".join(secrets.choice(alphabet) for _ in range(n)) for n in (6, 16))
        life = duration(spec.get("expiry", "0s"))
        data = {"token-id": ident, "token-secret": secret, "description": "Worker bootstrap token",
                "usage-bootstrap-authentication": "true", "usage-bootstrap-api-worker-calls": "true"}
        if life:
            data["expiration"] = stamp(life)
        self.hosted.create("/api/v1/namespaces/kube-system/secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": "bootstrap-token-" + ident, "namespace": "kube-system"}, "stringData": data})
        text = faults.get("garbage") or token_text(
            faults.get("server", self.server), faults.get("ca", "").encode() or self.ca, f"{ident}.{secret}",
            faults.get("role", spec.get("role", "worker")))
        cluster = spec.get("clusterName") or spec["clusterRef"]["name"]
        labels = {**meta.get("labels", {}), "k0smotron.io/cluster": cluster,
                  "k0smotron.io/role": spec.get("role", "worker"), "k0smotron.io/token-request": meta["name"]}
        owner = {"apiVersion": jtr.get("apiVersion", "k0smotron.io/" + self.version), "kind": "JoinTokenRequest",
                 "name": meta["name"], "uid": meta["uid"]}
        self.management.ensure(f"/api/v1/namespaces/{meta['namespace']}/secrets", {
            "apiVersion": "v1", "kind": "Secret", "stringData": {"token": text},
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "labels": labels,
                         "ownerReferences": [owner]}})
        self.status(path, None, ident)

    def status(self, path, failure, ident=None):
        if self.version == "v1beta1":
            status = {"reconciliationStatus": failure or "Reconciliation successful"}
        else:
            status = {"conditions": [{"type": "JoinTokenSecretCreated", "lastTransitionTime": stamp(),
                                      "status": "False" if failure else "True", "message": failure or "",
                                      "reason": "InternalError" if failure else "Created"}]}
        if ident:
            status["tokenID"] = ident
        self.management.merge(path + "/status", {"status": status})
