"""double.py - an API server in one file, for machines where the real one cannot be built

What it keeps of the real one: TLS with client certificates and bootstrap tokens (a deleted or expired one is
refused), CRD schemas with strict field validation, status subresources, resourceVersion conflicts, finalizers,
eviction with PodDisruptionBudgets, graceful pod deletion, server-side apply that does not touch what is equal.
"""
import base64
import copy
import datetime
import http.server
import json
import ssl
import threading
import time
import urllib.parse
import uuid

import fieldcheck

# (group, plural): (version, kind, namespaced)
RESOURCES = {
    ("", "namespaces"): ("v1", "Namespace", False), ("", "nodes"): ("v1", "Node", False),
    ("", "pods"): ("v1", "Pod", True), ("", "secrets"): ("v1", "Secret", True),
    ("", "services"): ("v1", "Service", True), ("", "configmaps"): ("v1", "ConfigMap", True),
    ("", "endpoints"): ("v1", "Endpoints", True), ("", "events"): ("v1", "Event", True),
    ("", "serviceaccounts"): ("v1", "ServiceAccount", True),
    ("apps", "daemonsets"): ("v1", "DaemonSet", True), ("apps", "deployments"): ("v1", "Deployment", True),
    ("apps", "statefulsets"): ("v1", "StatefulSet", True), ("batch", "jobs"): ("v1", "Job", True),
    ("coordination.k8s.io", "leases"): ("v1", "Lease", True),
    ("policy", "poddisruptionbudgets"): ("v1", "PodDisruptionBudget", True),
    ("storage.k8s.io", "storageclasses"): ("v1", "StorageClass", False),
    ("storage.k8s.io", "csidrivers"): ("v1", "CSIDriver", False),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("v1", "CustomResourceDefinition", False),
    ("rbac.authorization.k8s.io", "clusterroles"): ("v1", "ClusterRole", False),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): ("v1", "ClusterRoleBinding", False),
}
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
           409: "Conflict", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests",
           503: "ServiceUnavailable"}


class Refused(Exception):
    def __init__(self, code, message, reason=None, **details):
        super().__init__(message)
        self.body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                     "message": message, "reason": reason or REASONS.get(code, ""), "code": code}
        if details:
            self.body["details"] = details


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(old, patch):
    """RFC 7396; lists of things with a name, a key or a type are merged by it, as a strategic patch does."""
    if isinstance(patch, dict) and isinstance(old, dict):
        out = dict(old)
        for k, v in patch.items():
            if v is None:
                out.pop(k, None)
            else:
                out[k] = merge(out.get(k, {} if isinstance(v, dict) else None), v)
        return out
    return copy.deepcopy(patch)


def strategic(old, patch):
    if isinstance(patch, dict) and isinstance(old, dict):
        return {**merge(old, {k: v for k, v in patch.items() if not isinstance(v, (dict, list))}),
                **{k: strategic(old.get(k), v) for k, v in patch.items() if isinstance(v, (dict, list))}}
    if isinstance(patch, list) and isinstance(old, list):
        for key in ("type", "name", "key"):
            if patch and all(isinstance(p, dict) and key in p for p in patch):
                fresh = {p[key]: p for p in patch}
                kept = [strategic(o, fresh.pop(o.get(key))) if o.get(key) in fresh else o for o in old]
                return kept + list(fresh.values())
    return copy.deepcopy(patch)


def matches(labels, selector):
    for term in filter(None, selector.split(",")):
        key, found, want = term.replace("==", "=").partition("=")
        if key.endswith("!"):
            if labels.get(key[:-1]) == want:
                return False
        elif key.startswith("!"):
            if key[1:] in labels:
                return False
        elif (labels.get(key) != want) if found else key not in labels:
            return False
    return True


def field_matches(obj, selector):
    for term in filter(None, selector.split(",")):
        path, _, want = term.replace("==", "=").partition("=")
        value = obj
        for step in path.split("."):
            value = (value or {}).get(step)
        if str(value or "") != want:
            return False
    return True


class Store:
    def __init__(self):
        self.lock, self.rv, self.objects = threading.RLock(), 1, {}
        self.crds = {}  # (group, plural) -> {version: schema}, kind, namespaced
        for ns in ("default", "kube-system", "kube-node-lease", "kube-public"):
            self.put(("", "namespaces", "", ns), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})

    def put(self, key, obj):
        self.rv += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.rv)
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", now())
        self.objects[key] = obj
        if key[1] == "customresourcedefinitions":
            spec = obj["spec"]
            self.crds[(spec["group"], spec["names"]["plural"])] = (
                {v["name"]: v["schema"]["openAPIV3Schema"] for v in spec["versions"] if v["served"]},
                spec["names"]["kind"], spec["scope"] == "Namespaced")
            obj["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        return obj


class Request:
    """One request, already authenticated: path -> group, version, resource, namespace, name, subresource."""

    def __init__(self, store, path, query):
        self.store, self.query = store, query
        parts = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
        self.group, self.version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (
            parts[1], parts[2], parts[3:])
        self.ns = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            self.ns, rest = rest[1], rest[2:]
        self.plural = rest[0] if rest else ""
        self.name = rest[1] if len(rest) > 1 else ""
        self.sub = "/".join(rest[2:])
        crd = store.crds.get((self.group, self.plural))
        if crd and self.version in crd[0]:
            self.schema, self.kind, self.namespaced = crd[0][self.version], crd[1], crd[2]
        elif RESOURCES.get((self.group, self.plural), ("",))[0] == self.version:
            _, self.kind, self.namespaced = RESOURCES[(self.group, self.plural)]
            self.schema = fieldcheck.BUILTIN.get(self.kind, {})
        else:
            raise Refused(404, "the server could not find the requested resource")
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version

    def key(self, name=None):
        return (self.group, self.plural, self.ns if self.namespaced else "", name or self.name)

    def show(self, obj):
        return {**obj, "apiVersion": self.api_version, "kind": self.kind}

    def current(self):
        obj = self.store.objects.get(self.key())
        if obj is None:
            raise Refused(404, f'{self.plural} "{self.name}" not found', name=self.name, kind=self.plural)
        return obj

    def validate(self, obj):
        unknown, invalid = [], []
        if obj.get("kind", self.kind) != self.kind or obj.get("apiVersion", self.api_version) != self.api_version:
            raise Refused(400, f"the object provided is of kind {obj.get('kind')}, not {self.kind}")
        fieldcheck.check(obj, self.schema, "", unknown, invalid)
        if unknown and self.query.get("fieldValidation") == "Strict":
            raise Refused(400, "strict decoding error: " + ", ".join(f'unknown field "{u}"' for u in unknown))
        if invalid:
            raise Refused(422, f'{self.kind} "{self.name}" is invalid: ' + "; ".join(invalid))

    def list(self):
        items = []
        for key, obj in sorted(self.store.objects.items()):
            if key[:2] == (self.group, self.plural) and (not self.ns or key[2] == self.ns):
                labels = obj["metadata"].get("labels", {})
                if matches(labels, self.query.get("labelSelector", "")) and \
                        field_matches(obj, self.query.get("fieldSelector", "")):
                    items.append(obj)
        start = int(self.query.get("continue", 0))
        limit = int(self.query.get("limit", 0)) or len(items)
        meta = {"resourceVersion": str(self.store.rv)}
        if start + limit < len(items):
            meta["continue"] = str(start + limit)
        return {"kind": self.kind + "List", "apiVersion": self.api_version, "metadata": meta,
                "items": items[start:start + limit]}

    def create(self, obj):
        if self.sub == "eviction":
            return self.evict(obj)
        name = obj.setdefault("metadata", {}).get("name")
        if not name and "generateName" in obj["metadata"]:
            name = obj["metadata"]["name"] = obj["metadata"]["generateName"] + uuid.uuid4().hex[:5]
        if not name:
            raise Refused(422, f"{self.kind} is invalid: metadata.name: Required value")
        self.name = name
        self.validate(obj)
        if self.namespaced:
            if ("", "namespaces", "", self.ns) not in self.store.objects:
                raise Refused(404, f'namespaces "{self.ns}" not found')
            obj["metadata"]["namespace"] = self.ns
        if self.key() in self.store.objects:
            raise Refused(409, f'{self.plural} "{name}" already exists', reason="AlreadyExists")
        if (self.group, self.plural) in self.store.crds:
            obj.pop("status", None)
        if self.kind == "Secret":
            for k, v in obj.pop("stringData", {}).items():
                obj.setdefault("data", {})[k] = base64.b64encode(v.encode()).decode()
        obj["metadata"].update(generation=1)
        if self.query.get("dryRun") == "All":
            return 201, self.show(obj)
        return 201, self.show(self.store.put(self.key(), self.show(obj)))

    def evict(self, body):
        pod = self.current()
        if body.get("kind") != "Eviction" or body.get("apiVersion") != "policy/v1":
            raise Refused(400, "no Eviction of policy/v1")
        self_sub, labels = self.sub, pod["metadata"].get("labels", {})
        for key, pdb in self.store.objects.items():
            want = pdb.get("spec", {}).get("selector", {}).get("matchLabels", {}) if \
                key[1] == "poddisruptionbudgets" and key[2] == self.ns else None
            if want is not None and want.items() <= labels.items() and \
                    pdb.get("status", {}).get("disruptionsAllowed", 0) < 1:
                raise Refused(429, "Cannot evict pod as it would violate the pod's disruption budget.",
                              retryAfterSeconds=1)
        self.sub = ""
        self.delete(body.get("deleteOptions", {}))
        self.sub = self_sub
        return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def replace(self, new):
        old = self.current()
        want = new.get("metadata", {}).get("resourceVersion")
        if want and want != old["metadata"]["resourceVersion"]:
            raise Refused(409, f'Operation cannot be fulfilled on {self.plural} "{self.name}": the object has been '
                               "modified; please apply your changes to the latest version and try again")
        custom = (self.group, self.plural) in self.store.crds
        if self.sub == "status":
            new = {**old, "status": new.get("status", {})}
        elif custom or self.plural in ("nodes", "pods"):
            new = {**new, **({"status": old["status"]} if "status" in old else {})}
            if "status" not in old:
                new.pop("status", None)
        self.validate(new)
        kept = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "namespace", "resourceVersion",
                "deletionGracePeriodSeconds")
        new["metadata"] = {**new["metadata"], **{k: old["metadata"][k] for k in kept if k in old["metadata"]}}
        if new == old:
            return 200, self.show(old)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            return 200, self.show(self.store.objects.pop(self.key()))
        return 200, self.show(self.store.put(self.key(), new))

    def patch(self, body, kind):
        if kind == "application/apply-patch+yaml":
            return self.apply(body)
        old = self.current()
        if kind == "application/merge-patch+json":
            return self.replace(merge(old, body))
        if kind == "application/strategic-merge-patch+json":
            if (self.group, self.plural) in self.store.crds:
                raise Refused(415, "strategic merge patch is not supported for custom resources")
            return self.replace(strategic(old, body))
        raise Refused(415, f"the body of the request was in an unknown format: {kind}")

    def apply(self, body):
        manager = self.query.get("fieldManager")
        if not manager:
            raise Refused(400, "fieldManager is required for apply patch")
        self.validate(body)
        if body["metadata"].get("name") != self.name:
            raise Refused(400, "metadata.name should match the URL")
        field = {"manager": manager, "operation": "Apply", "apiVersion": self.api_version}
        old = self.store.objects.get(self.key())
        if old is None:
            body["metadata"]["managedFields"] = [field]
            return self.create(body)
        new = strategic(old, body)
        if new == {k: v for k, v in old.items()}:
            return 200, self.show(old)
        fields = [f for f in old["metadata"].get("managedFields", []) if f["manager"] != manager]
        new["metadata"]["managedFields"] = fields + [field]
        return self.replace(new)

    def delete(self, options):
        obj = self.current()
        grace = options.get("gracePeriodSeconds", self.query.get("gracePeriodSeconds"))
        meta = obj["metadata"]
        if options.get("preconditions", {}).get("uid", meta["uid"]) != meta["uid"]:
            raise Refused(409, "Precondition failed: UID in precondition does not match")
        waits = meta.get("finalizers") or (
            self.kind == "Pod" and obj.get("spec", {}).get("nodeName") and str(grace) != "0"
            and obj.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
        if not waits:
            del self.store.objects[self.key()]
            self.orphans(meta["uid"])
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 200}
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = now()
            self.store.put(self.key(), obj)
        return 200, self.show(obj)

    def orphans(self, uid):
        """What the garbage collector does, at once."""
        for key, obj in list(self.store.objects.items()):
            if any(o.get("uid") == uid for o in obj["metadata"].get("ownerReferences", ())):
                self.store.objects.pop(key, None)


class Double:
    """authority signs the server and its clients; token is the administrator's bearer token, or None."""

    def __init__(self, address, port, authority, name, faults=None):
        self.store, self.faults = Store(), faults or (lambda path: None)
        self.kubelet = {}  # node name -> callable () -> (status, text), set by tests in this process
        cert, key = authority.issue(name + "-server", "/CN=kube-apiserver", "serverAuth",
                                    [f"IP:{address}", "IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes"])
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        tls.load_verify_locations(authority.cert)
        tls.verify_mode = ssl.CERT_OPTIONAL

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def process_request_thread(self, request, client):
                try:
                    request.settimeout(30)
                    request = tls.wrap_socket(request, server_side=True)
                except OSError:
                    request.close()
                    return
                super().process_request_thread(request, client)

            def handle_error(self, request, client):
                pass  # a client that goes away is no news

        self.server = Server((address, port), self.handler())
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def user(self, request):
        cert = request.connection.getpeercert()
        if cert:
            names = dict(pair for rdn in cert["subject"] for pair in rdn)
            return names.get("commonName"), [names.get("organizationName", "")]
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        ident, _, secret = token.partition(".")
        data = self.store.objects.get(("", "secrets", "kube-system", "bootstrap-token-" + ident), {}).get("data", {})
        data = {k: base64.b64decode(v).decode() for k, v in data.items()}
        if kind != "Bearer" or not secret or data.get("token-secret") != secret or \
                data.get("usage-bootstrap-authentication") != "true" or \
                data.get("expiration", "9") <= now():
            raise Refused(401, "Unauthorized")
        return "system:bootstrap:" + ident, ["system:bootstrappers"]

    def discovery(self, path):
        groups = {}
        for (group, plural), (version, kind, namespaced) in RESOURCES.items():
            groups.setdefault(group, {}).setdefault(version, []).append((plural, kind, namespaced))
        for (group, plural), (versions, kind, namespaced) in self.store.crds.items():
            for version in versions:
                groups.setdefault(group, {}).setdefault(version, []).append((plural, kind, namespaced))

        def describe(group):
            versions = [{"groupVersion": f"{group}/{v}", "version": v}
                        for v in sorted(groups[group], reverse=True)]
            return {"name": group, "versions": versions, "preferredVersion": versions[0]}

        if path == "/version":
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.4", "platform": "linux/amd64"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [describe(g) for g in groups if g]}
        parts = path.strip("/").split("/")
        group = "" if parts[0] == "api" else parts[1]
        if len(parts) == 2 and group in groups and group:
            return {"kind": "APIGroup", "apiVersion": "v1", **describe(group)}
        version = parts[1] if not group else parts[2] if len(parts) == 3 else None
        if version in groups.get(group, {}):
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version if not group else
                    f"{group}/{version}", "resources": [
                        {"name": p, "singularName": "", "namespaced": n, "kind": k,
                         "verbs": ["create", "delete", "get", "list", "patch", "update"]}
                        for p, k, n in groups[group][version]]}
        raise Refused(404, "the server could not find the requested resource")

    def answer(self, method, path, query, body, kind, request):
        if path in ("/healthz", "/readyz", "/livez"):
            return 200, "ok"
        if path != "/version":
            self.user(request)
        parts = path.strip("/").split("/")
        if method == "GET" and (path == "/version" or len(parts) <= (2 if parts[0] == "api" else 3)):
            return 200, self.discovery(path)
        with self.store.lock:
            r = Request(self.store, path, query)
            if r.sub.startswith("proxy") or r.sub == "log":
                return self.through(r)
            if method == "GET":
                return 200, r.show(r.current()) if r.name else r.list()
            if method == "POST":
                return r.create(body)
            if method == "PUT":
                return r.replace(body)
            if method == "PATCH":
                return r.patch(body, kind)
            if method == "DELETE" and r.name:
                return r.delete(body or {})
        raise Refused(405, "the server does not allow this method on the requested resource")

    def through(self, r):
        """What goes through the tunnel to a kubelet: works while the node's lease is fresh."""
        node = r.current()
        ready = any(c.get("type") == "Ready" and c.get("status") == "True"
                    for c in node.get("status", {}).get("conditions", ()))
        if not ready or node["metadata"].get("annotations", {}).get("double/kubelet") == "unreachable":
            raise Refused(503, "error trying to reach service: No agent available")
        return 200, "ok"

    def handler(double):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def handle_any(self):
                path, _, query = self.path.partition("?")
                query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                kind = self.headers.get("Content-Type", "").split(";")[0]
                try:
                    fault = double.faults(path) or {}
                    if fault.get("delay"):
                        time.sleep(fault["delay"])
                    if fault.get("status"):
                        raise Refused(fault["status"], "a fault was asked for")
                    try:
                        body = json.loads(raw) if raw else None
                    except ValueError as e:
                        raise Refused(400, f"the body is no JSON: {e}") from None
                    code, value = double.answer(self.command, path, query, body, kind, self)
                except Refused as e:
                    code, value = e.body["code"], e.body
                with double.store.lock:
                    text = value.encode() if isinstance(value, str) else json.dumps(value).encode()
                self.send_response(code)
                self.send_header("Content-Type", "text/plain" if isinstance(value, str) else "application/json")
                if code == 429:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        return Handler
