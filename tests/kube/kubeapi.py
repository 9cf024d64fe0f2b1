"""kubeapi.py - the few lines of a Kubernetes client that the stand-ins need

Standard library and PyYAML only, one connection a request; every request has a deadline.
"""
import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import yaml

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(Exception):
    def __init__(self, status, body):
        self.status, self.body = status, body
        super().__init__(f"{status}: {body.get('message') if isinstance(body, dict) else body}")


def named(items, name):
    return next(i for i in items if i["name"] == name)


class Api:
    """One user of one API server, from kubeconfig text."""

    def __init__(self, kubeconfig, timeout=10):
        conf = yaml.safe_load(kubeconfig)
        ctx = named(conf["contexts"], conf["current-context"])["context"]
        cluster = named(conf["clusters"], ctx["cluster"])["cluster"]
        user = named(conf["users"], ctx["user"])["user"]
        self.server, self.timeout = cluster["server"], timeout
        self.token = user.get("token")
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=ca)
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                                urllib.request.HTTPSHandler(context=self.tls)).open
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as f:
                f.write(base64.b64decode(user["client-certificate-data"]))
                f.write(base64.b64decode(user["client-key-data"]))
                f.flush()
                self.tls.load_cert_chain(f.name)

    def call(self, method, path, body=None, kind="application/json", **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        req = urllib.request.Request(self.server + path, method=method)
        if body is not None:
            req.data = json.dumps(body).encode()
            req.add_header("Content-Type", kind)
        if self.token:
            req.add_header("Authorization", "Bearer " + self.token)
        try:
            with self.open(req, timeout=self.timeout) as r:
                text = r.read()
        except urllib.error.HTTPError as e:
            text = e.read()
            try:
                text = json.loads(text)
            except ValueError:
                text = text.decode(errors="replace")
            raise ApiError(e.code, text) from None
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def get(self, path, **q):
        return self.call("GET", path, **q)

    def find(self, path):
        """The object, or None when it is not there."""
        try:
            return self.get(path)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    def create(self, path, body):
        return self.call("POST", path, body)

    def ensure(self, path, body):
        """Create it, or leave the one that is there."""
        try:
            return self.create(path, body)
        except ApiError as e:
            if e.status != 409:
                raise
            return self.get(f"{path}/{body['metadata']['name']}")

    def merge(self, path, body):
        return self.call("PATCH", path, body, kind=MERGE)

    def delete(self, path, **q):
        try:
            return self.call("DELETE", path, **q)
        except ApiError as e:
            if e.status != 404:
                raise
            return None


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def kubeconfig(server, ca_pem, cluster, user, **auth):
    """Kubeconfig text; auth is what stands in the user entry, as bytes for the *_data members."""
    entry = {k.replace("_", "-"): b64(v) if isinstance(v, bytes) else v for k, v in auth.items()}
    return yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": cluster,
        "clusters": [{"name": cluster, "cluster": {"server": server,
                                                   "certificate-authority-data": b64(ca_pem)}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "users": [{"name": user, "user": entry}],
    })
