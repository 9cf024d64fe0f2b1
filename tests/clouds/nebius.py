"""nebius.py - a fake of the Nebius API: gRPC over TLS; control calls: see fake.py

It runs itself inside the venv of tests/venv.py.  Its first line has, besides url and control, "provider": what the
plugin is to be configured with (endpoint, token_url, ca_file, secrets), and vm_token_url, its metadata service.

What the real service does is done here too: a new machine is first STOPPED and reconciling; a create that finds no
capacity is accepted, fails in its operation, and leaves a stopped machine; names are unique in a project; the same
idempotency key is answered with the same operation; lists are cut into pages, of ten where nobody asks.

Control calls of its own: GET /_fake/disks · POST /_fake/disks {"labels", "age_s", "project"}: a disk without a machine ·
POST /_fake/tokens {}: every token so far is refused · GET /_fake/operations · POST /_fake/catalog (nebius_catalog.py).
--keep-disks: a managed disk outlives its machine.

Faults of its own, besides preset codes: code {"code", "message"} and code-after, no-stock quota bad-request throttled
{"retry_after"} unauthenticated denied, bomb, empty, and on create late-error {"in": "operation" | "instance"}.
"""
import base64
import email
import json
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import venv  # noqa: E402

if sys.prefix != venv.path():
    if not venv.python():
        sys.exit("nebius.py: no Python packages: run tests/venv.py make")
    os.execv(venv.python(), [venv.python(), *sys.argv])

import fake  # noqa: E402
import faults  # noqa: E402
import nebius_api  # noqa: E402
import nebius_catalog  # noqa: E402
import nebius_wire as wire  # noqa: E402
import yaml  # noqa: E402
from machines import Machine  # noqa: E402
from nebius_wire import N, Reply, refusal, service_error  # noqa: E402

STATES = {"CREATING": 1, "UPDATING": 2, "STARTING": 3, "RUNNING": 4, "STOPPING": 5, "STOPPED": 6, "DELETING": 7, "ERROR": 8}
LABEL = (r"[a-z][_\-a-z0-9]{0,62}", r"[_\-a-z0-9]{0,63}")
LIFE_S = 43200


def violation(kind, **fields):
    return service_error({"not_enough_resources": "NotEnoughResources", "quota_failure": "QuotaFailure"}[kind],
                         **{kind: {"violations": [fields]}})


def authorized_keys(user_data):
    """The SSH keys that cloud-init would put in, merged part by part as it does."""
    parts, keys = [user_data], []
    if user_data.startswith(("Content-Type:", "MIME-Version:")):
        parts = [p.get_payload(decode=True).decode() for p in email.message_from_string(user_data).walk()
                 if p.get_content_type() == "text/cloud-config"]
    for part in parts:
        if part.startswith("#cloud-config"):
            config = yaml.safe_load(part) or {}
            appends = any(m.get("name") == "list" and "append" in m.get("settings", ()) for m in config.get("merge_how", ()))
            mine = config.get("ssh_authorized_keys", [])
            keys = keys + mine if appends or not keys else mine
    return keys


class Nebius(fake.Cloud):
    name, ssh_user = "nebius", "ubuntu"
    phases, running, ending, error = ["STOPPED", "STARTING"], "RUNNING", "DELETING", "FAILED"
    delays = {"STOPPED": 0.1, "STARTING": 0.2, "DELETING": 0.3}
    own_faults = tuple(wire.AFTER)
    presets = {
        "no-stock": lambda f: refusal("RESOURCE_EXHAUSTED", "the platform is out", violation(
            "not_enough_resources", resource_type="compute.instance.gpu.h100", message="no room in the region")),
        "quota": lambda f: refusal("RESOURCE_EXHAUSTED", "", violation(
            "quota_failure", quota="compute.instance.gpu.h100", message="limit of 8 reached", limit="8", requested="9")),
        "throttled": lambda f: refusal("RESOURCE_EXHAUSTED", "slow down", service_error("TooManyRequests", 1,
                                       too_many_requests={"violation": "rate"}),
                                       grpc_retry_pushback_ms=str(int(1000 * f.get("retry_after", 3)))),
        "bad-request": lambda f: refusal("INVALID_ARGUMENT", "100%\u00fc wrong", service_error("BadRequest", 3, bad_request={
            "violations": [{"field": "spec.preset", "message": "unknown preset"}]})),
        "unauthenticated": lambda f: refusal("UNAUTHENTICATED", "token is not valid"),
        "denied": lambda f: refusal("PERMISSION_DENIED", "no permission", service_error("PermissionDenied", 3,
                                    permission_denied={"resource_id": "project"})),
        "code": lambda f: refusal(f["code"], f.get("message", "")),
        "unauthorized": lambda f: refusal("UNAUTHENTICATED", "token is not valid"),
        "not-found": lambda f: refusal("NOT_FOUND", "no such thing"),
        "broken": lambda f: refusal("INTERNAL", "internal error"),
        "out-of-stock": lambda f: Nebius.presets["no-stock"](f),
    }

    def __init__(self, options):
        self.account, self.tokens, self.numbers = wire.Account(), {}, 0
        self.disks, self.operations, self.by_key = {}, {}, {}
        self.folder = tempfile.TemporaryDirectory(prefix="fake-nebius-")
        super().__init__(options)

    def default_catalog(self):
        return nebius_catalog.everything()

    def preset(self, kind, fault):
        return self.presets[kind](fault)

    def no_route(self, request):
        return refusal("UNIMPLEMENTED", "no such method")

    # ---- one call from the wire to its answer

    def rpc(self, path, headers, raw, context):
        request = fake.Request("POST", path, {}, headers, b"")
        try:
            request.message = nebius_api.method(path)[0].FromString(raw)
            request.body = wire.as_json(request.message)
        except KeyError:
            request.message = None
        return self.serve(request)

    def route(self, request):
        for _, path, endpoint, handler in self.routes:
            if path == request.path:
                request.endpoint = endpoint
                return handler
        return None

    def answer(self, request, handler):
        if not handler:
            return self.no_route(request)
        reply = faults.before(self, request)
        if reply:
            return reply
        if not self.authorised(request):
            return self.unauthorised()
        with self.lock:
            self.settle()
            reply = handler(self, request)
            self.settle()
            self.changed.notify_all()
        for f in request.faults:
            if f["kind"] in wire.AFTER:
                wire.AFTER[f["kind"]](reply, f)
        return reply

    def unauthorised(self):
        return self.preset("unauthenticated", {})

    def authorised(self, request):
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return token == self.options.api_key or self.tokens.get(token, 0) > self.park.now()

    def exchange(self, jwt):
        self.counters["exchange"] = self.counters.get("exchange", 0) + 1
        armed = self.faults.take("exchange")
        if armed and armed[0]["kind"] == "unauthorized":
            return 401, {"error": "invalid_client"}
        if armed:
            return armed[0].get("status", 503), {"error": "server_error"}
        wrong = self.account.wrong(jwt, self.park.now())
        if wrong:
            return 401, {"error": "invalid_grant", "error_description": wrong}
        return 200, {"access_token": self.issue(), "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                     "token_type": "Bearer", "expires_in": self.options.token_life}

    def metadata(self):
        self.counters["metadata"] = self.counters.get("metadata", 0) + 1
        return 200, {"access_token": self.issue(), "expires_at": time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.park.now() + self.options.token_life))}

    def issue(self):
        token = "canary-token-%d-%s" % (len(self.tokens), os.urandom(8).hex())
        self.tokens[token] = self.park.now() + self.options.token_life
        return token

    def next_id(self, kind):
        self.numbers += 1
        return "%s-e00%05d" % (kind, self.numbers)

    def page(self, request, answer, items):
        """Ten where nobody asks for more; never more than --page-max."""
        size = min(request.message.page_size or 10, self.options.page_max)
        start = int(request.message.page_token or 0)
        answer.items.extend(items[start:start + size])
        if start + size < len(items):
            answer.next_page_token = str(start + size)
        return Reply(body=answer)

    def answer_of(self, request):
        return nebius_api.method(request.path)[1]()

    # ---- iam and vpc

    def container(self, row):
        ident, region, state = row
        return {"metadata": {"id": ident, "parent_id": nebius_catalog.TENANT, "name": "default-" + region},
                "status": {"region": region, "container_state": state, "suspension_state": 1}}

    def tenants(self, request):
        row = N("nebius.iam.v1.Container")(metadata={"id": nebius_catalog.TENANT, "name": "acme"})
        return self.page(request, self.answer_of(request), [row])

    def projects(self, request):
        if request.message.parent_id != nebius_catalog.TENANT:
            return refusal("NOT_FOUND", "no such tenant")
        C = N("nebius.iam.v1.Container")
        return self.page(request, self.answer_of(request), [C(**self.container(p)) for p in self.catalog["projects"]])

    def project(self, request):
        row = self.project_row(request.message.id)
        return Reply(body=N("nebius.iam.v1.Container")(**self.container(row))) if row else self.preset("denied", {})

    def project_row(self, ident):
        return next((p for p in self.catalog["projects"] if p[0] == ident), None)

    def subnets(self, request):
        S, at = N("nebius.vpc.v1.Subnet"), request.message.parent_id
        rows = [S(metadata={"id": "vpcsubnet-%s-%d" % (at, n), "parent_id": at, "name": name}, status={"state": state})
                for n, (name, state) in enumerate([("default-subnet-old", 3), ("mine", 2), ("default-subnet-x", 2)])]
        return self.page(request, self.answer_of(request), rows)

    # ---- what is sold

    def presets_of(self, platform):
        return next(([*p] for p in self.catalog["platforms"] if p[0] == platform), None)

    def preset_row(self, region, platform, preset):
        if platform not in self.catalog["sold"].get(region, ()):
            return None
        return next((x for x in self.presets_of(platform)[3] if x[0] == preset), None)

    def platforms(self, request):
        P, at, rows = N("nebius.compute.v1.Platform"), request.message.parent_id, []
        project = self.project_row(at)
        if not project:
            return self.preset("denied", {})
        for name in self.catalog["sold"].get(project[1], ()):
            _, memory, spot, presets = self.presets_of(name)
            rows.append(P(metadata={"id": "computeplatform-" + name, "name": name}, status={"allowed_for_preemptibles": spot}, spec={
                "gpu_memory_gigabytes": memory, "presets": [{"name": n, "resources": {
                    "vcpu_count": c, "memory_gibibytes": r, "gpu_count": g}} for n, g, c, r in presets]}))
        return self.page(request, self.answer_of(request), rows)

    def advice(self, request):
        A, rows = N("nebius.capacity.v1.ResourceAdvice"), []
        if request.message.parent_id != nebius_catalog.TENANT or not self.catalog["advice"]:
            return self.preset("denied", {})
        stock = {tuple(s[:3]): s[3:] for s in self.catalog["stock"]}
        level = lambda s: {"data_state": s[0], "available": s[1], "availability_level": s[2]}
        for region, names in self.catalog["sold"].items():
            for fabric in nebius_catalog.FABRICS.get(region, []):
                for name in names:
                    _, memory, spot, presets = self.presets_of(name)
                    for n, g, c, r in presets:
                        od, pre = stock.get((region, name, n), ((1, 8, 1), (1, 8, 1)))
                        if fabric == "fabric-6":
                            od = pre = (1, 0, 4)
                        status = {"on_demand": level(od), **({"preemptible": level(pre)} if spot else {})}
                        rows.append(A(spec={"region": region, "fabric": fabric, "compute_instance": {
                            "platform": name, "gpu_memory_gigabytes": memory, "preset": {"name": n, "resources": {
                                "vcpu_count": c, "memory_gibibytes": r, "gpu_count": g}}}}, status=status))
        return self.page(request, self.answer_of(request), rows)

    def images(self, request):
        I, rows = N("nebius.compute.v1.Image"), []
        for family, arch, recommended, driver, state, deprecated, gib in self.catalog["images"]:
            status = {"state": state, "min_disk_size_bytes": gib << 30}
            if deprecated:
                status["image_family_deprecation"] = {"deprecated_at": {"seconds": 1000}}
            rows.append(I(metadata={"id": "computeimage-" + family, "name": family,
                                    "labels": {"nvidia_gpu_drivers": driver} if driver else {}},
                          spec={"image_family": family, "cpu_architecture": arch, "recommended_platforms": recommended}, status=status))
        return self.page(request, self.answer_of(request), rows)

    def price_of(self, spec):
        row = next((p for p in self.catalog["prices"] if p[:2] == [spec.resources.platform, spec.resources.preset]), None)
        return row and row[3 if spec.HasField("preemptible") else 2]

    def estimate(self, request):
        spec, price = request.message.resource_spec, None
        kind = spec.WhichOneof("resource_spec")
        if kind == "compute_instance_spec":
            price = self.price_of(spec.compute_instance_spec.spec)
        elif kind == "compute_disk_spec":
            d = spec.compute_disk_spec.spec
            price = "%.6f" % (float(self.catalog["disk_gib"]) * d.size_gibibytes) if d.type == 1 else None
        if price is None:
            return refusal("NOT_FOUND", "no price")
        a = self.answer_of(request)
        a.hourly_cost.general.total.cost = price
        a.hourly_cost.general.total.cost_rounded = "%.2f" % float(price)
        return Reply(body=a)

    # ---- create

    def operation(self, ident, done=False):
        op = N("nebius.common.v1.Operation")(id=self.next_id("computeoperation"), resource_id=ident, created_by="robot")
        op.created_at.FromSeconds(int(self.park.now()))
        if done:
            op.status.SetInParent()
        self.operations[op.id] = op
        return op

    def create(self, request):
        message, key = request.message, request.headers.get("x-idempotency-key", "")
        if not re.fullmatch("[A-Za-z0-9-]{16,64}", key):
            return refusal("INVALID_ARGUMENT", "x-idempotency-key %r" % key)
        before = self.by_key.get(key)
        if before:
            if before[0] != message.SerializeToString(deterministic=True):
                return refusal("INVALID_ARGUMENT", "the idempotency key belongs to another request")
            return Reply(body=self.operations[before[1]])
        wrong = self.wrong(message)
        if wrong:
            return refusal("INVALID_ARGUMENT", wrong, service_error("BadRequest", 3, bad_request={
                "violations": [{"field": "spec", "message": wrong}]}))
        taken = self.named(message.metadata.parent_id, message.metadata.name)
        if taken:
            return refusal("ALREADY_EXISTS", "instance exists", service_error(
                "ResourceAlreadyExists", 3, resource_already_exists={"resource_id": taken.id}))
        m = self.start(request)
        op = self.operation(m.id)
        m.extra["operation"] = op.id
        self.by_key[key] = (message.SerializeToString(deterministic=True), op.id)
        return Reply(body=N("nebius.common.v1.Operation").FromString(op.SerializeToString()))

    def named(self, project, name):
        return next((m for m in self.park.all.values() if not m.gone and m.name == name and m.extra["project"] == project), None)

    def wrong(self, message):
        meta, spec = message.metadata, message.spec
        project = self.project_row(meta.parent_id)
        if not project:
            return "project %r" % meta.parent_id
        if not self.preset_row(project[1], spec.resources.platform, spec.resources.preset):
            return "preset %s %s" % (spec.resources.platform, spec.resources.preset)
        if not re.fullmatch("[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", spec.hostname) or meta.name != spec.hostname:
            return "hostname %r" % spec.hostname
        for labels in (meta.labels, spec.boot_disk.managed_disk.labels):
            if not all(re.fullmatch(LABEL[0], k) and re.fullmatch(LABEL[1], v) for k, v in labels.items()):
                return "labels %r" % dict(labels)
        return self.wrong_parts(meta.parent_id, spec)

    def wrong_parts(self, project, spec):
        if len(spec.network_interfaces) != 1:
            return "network_interfaces"
        nic, disk = spec.network_interfaces[0], spec.boot_disk
        if nic.subnet_id != "vpcsubnet-%s-2" % project or not re.fullmatch("[0-9a-z][0-9a-z-]{0,59}", nic.name):
            return "subnet_id %r, name %r" % (nic.subnet_id, nic.name)
        if not nic.HasField("ip_address") or not nic.HasField("public_ip_address"):
            return "ip_address and public_ip_address are messages that must be there"
        managed = disk.managed_disk
        if disk.attach_mode != 2 or not managed.name or managed.spec.type != 1 or not 1 <= managed.spec.size_gibibytes <= 8192:
            return "boot_disk"
        image = next((i for i in self.catalog["images"] if i[0] == managed.spec.source_image_family.image_family), None)
        if not image or image[4] != 2 or image[5] or managed.spec.source_image_family.parent_id:
            return "image family not found"
        if image[1] == 2 and not spec.resources.platform.startswith("gpu-gb"):
            return "image is of another architecture"
        if managed.spec.size_gibibytes < image[6]:
            return "disk is smaller than its image"
        if len(spec.cloud_init_user_data) > 32768 or spec.recovery_policy != 1:
            return "cloud_init_user_data or recovery_policy"
        return None

    def start(self, request):
        message = request.message
        spec, project = message.spec, self.project_row(message.metadata.parent_id)
        platform, preset = spec.resources.platform, spec.resources.preset
        disk_gib = spec.boot_disk.managed_disk.spec.size_gibibytes
        price = round(1e6 * (float(self.price_of(spec) or 0) + float(self.catalog["disk_gib"]) * disk_gib))
        m = Machine(self.park, message.metadata.name, ["%s=%s" % kv for kv in sorted(message.metadata.labels.items())], price,
                    request=request.body, ident=self.next_id("computeinstance"))
        m.extra.update(project=project[0], region=project[1], message=message, configuration={})
        disk = {"id": self.next_id("computedisk"), "project": project[0], "labels": dict(spec.boot_disk.managed_disk.labels),
                "name": spec.boot_disk.managed_disk.name, "gib": disk_gib, "machine": m.id, "created": self.park.now()}
        self.disks[disk["id"]] = m.extra["disk"] = disk
        memory, (_, gpus, _, _) = self.presets_of(platform)[1], self.preset_row(project[1], platform, preset)
        wrong = request.fault("wrong-gpu")
        gpus = {"count": gpus, "name": nebius_catalog.SMI.get(platform, "NVIDIA " + platform), "memory_mib": int(memory * 1020),
                **(wrong["configuration"] if wrong else {})}
        data = spec.cloud_init_user_data
        # what tests/system/machine_hook.py boots
        configuration = {"gpu_type": gpus["name"].removeprefix("NVIDIA "), "num_gpus": gpus["count"], "vram_per_gpu_in_gb": memory}
        m.hook = {"gpus": gpus if gpus["count"] else {}, "type": platform, "region": project[1], "configuration": configuration,
                  "image": spec.boot_disk.managed_disk.spec.source_image_family.image_family,
                  "ssh_public_keys": authorized_keys(data), "user_data": base64.b64encode(data.encode()).decode(),
                  "user_data_kind": "cloud"}
        late = request.fault("late-error")
        m.extra["late"] = late.get("in", "operation") if late else None
        return self.park.add(m, request.faults)

    # ---- life

    def settle(self):
        self.park.settle()
        for m in self.park.all.values():
            op = self.operations.get(m.extra.get("operation"))
            if op and not op.HasField("status"):
                self.settle_operation(m, op)
        for d in list(self.disks.values()):
            m = self.park.all.get(d["machine"])
            if m and m.gone and not self.options.keep_disks:
                del self.disks[d["id"]]

    def settle_operation(self, m, op):
        if m.failed is not None and m.extra["late"] != "instance":
            op.status.code, op.status.message = 8, m.details or "no capacity"
            op.status.details.add().Pack(violation("not_enough_resources", resource_type="gpu", message=m.details))
        elif m.failed is not None or m.active is not None or m.ended or m.gone:
            op.status.SetInParent()

    def shown(self, m):
        vm = N("nebius.compute.v1.Instance")()
        request = m.extra.get("message")
        if request:
            vm.metadata.CopyFrom(request.metadata)
            vm.spec.CopyFrom(request.spec)
        vm.metadata.id, vm.metadata.parent_id, vm.metadata.name = m.id, m.extra["project"], m.name
        vm.metadata.created_at.FromSeconds(int(m.created))
        status = "STOPPED" if m.failed is not None and not m.ended else m.status
        vm.status.state = status if isinstance(status, int) else STATES[status]
        vm.status.reconciling = m.failed is None and m.stuck is None and m.status in ("STOPPED", "STARTING", "DELETING")
        nic = vm.status.network_interfaces.add(name="eth0")
        nic.ip_address.address = "10.0.0.14/32"
        if m.active is not None and m.node and status == "RUNNING":
            nic.public_ip_address.address = m.node["ip"] + "/32"
        if "disk" in m.extra:
            vm.status.disk_attachments.add(id=m.extra["disk"]["id"], name=m.extra["disk"]["name"], is_managed=True)
        return vm

    def one(self, ident):
        m = self.park.all.get(ident)
        return m if m and m.visible() else None

    def info(self, request):
        m = self.one(request.message.id)
        return Reply(body=self.shown(m)) if m else self.missing(request.message.id)

    def missing(self, ident):
        return refusal("NOT_FOUND", "not found", service_error("ResourceNotFound", 3, resource_not_found={"resource_id": ident}))

    def by_name(self, request):
        m = self.named(request.message.parent_id, request.message.name)
        return Reply(body=self.shown(m)) if m and m.visible() else self.missing(request.message.name)

    def instances(self, request):
        if not self.project_row(request.message.parent_id):
            return self.preset("denied", {})
        rows = [self.shown(m) for m in self.park.all.values() if m.visible() and m.extra["project"] == request.message.parent_id]
        return self.page(request, self.answer_of(request), rows)

    def delete(self, request):
        m = self.one(request.message.id)
        if not m:
            return self.missing(request.message.id)
        if m.ended:
            return refusal("ABORTED", "another operation runs", service_error(
                "OperationConflict", 2, operation_conflict={"conflicting_operation_id": "x", "resource_id": m.id}))
        m.stuck = None
        self.park.end(m)
        return Reply(body=self.operation(m.id))

    def operation_get(self, request):
        op = self.operations.get(request.message.id)
        return Reply(body=op) if op else self.missing(request.message.id)

    # ---- disks

    def disk_shown(self, d):
        m = self.park.all.get(d["machine"])
        there = m is not None and not m.gone
        disk = N("nebius.compute.v1.Disk")(metadata={"id": d["id"], "parent_id": d["project"], "name": d["name"], "labels": d["labels"]},
                                           spec={"size_gibibytes": d["gib"], "type": 1},
                                           status={"state": 2, "size_bytes": d["gib"] << 30, "managed_by": d["machine"] or "",
                                                   "read_write_attachment": d["machine"] if there else ""})
        disk.metadata.created_at.FromSeconds(int(d["created"]))
        return disk

    def disk_get(self, request):
        d = self.disks.get(request.message.id)
        return Reply(body=self.disk_shown(d)) if d else self.missing(request.message.id)

    def disk_list(self, request):
        rows = [self.disk_shown(d) for d in self.disks.values() if d["project"] == request.message.parent_id]
        return self.page(request, self.answer_of(request), rows)

    def disk_delete(self, request):
        d = self.disks.get(request.message.id)
        if not d:
            return self.missing(request.message.id)
        if self.disk_shown(d).status.read_write_attachment:
            return refusal("FAILED_PRECONDITION", "disk is attached", service_error(
                "BadResourceState", 3, bad_resource_state={"resource_id": d["id"], "message": "attached"}))
        del self.disks[d["id"]]
        return Reply(body=self.operation(d["id"], done=True))

    # ---- control

    def add_foreign(self, wanted):
        project = self.project_row(wanted.get("project", "project-e00north"))
        m = Machine(self.park, wanted.get("name", "by-hand"), wanted.get("tags", ["mine=yes"]), 1000000, foreign=True,
                    ident=self.next_id("computeinstance"))
        meta = N("nebius.compute.v1.CreateInstanceRequest")(metadata={"labels": dict(t.split("=", 1) for t in m.tags)})
        m.extra.update(project=project[0], region=project[1], message=meta, configuration={}, late=None)
        return self.park.add(m)

    def control_post_machines(self, request, which=None):
        if which and (request.body or {}).get("do") == "preempt":
            self.park.all[which].stuck = "STOPPED"  # it stays, with its disk
            return None
        return super().control_post_machines(request, which)

    def control_get_disks(self, request):
        return [dict(d, attached=bool(self.disk_shown(d).status.read_write_attachment)) for d in self.disks.values()]

    def control_post_disks(self, request):
        want = request.body
        d = {"id": self.next_id("computedisk"), "project": want.get("project", "project-e00north"), "labels": want.get("labels", {}),
             "name": want.get("name", "left"), "gib": want.get("gib", 100), "machine": want.get("machine"),
             "created": self.park.now() - want.get("age_s", 3600)}
        self.disks[d["id"]] = d
        return {"id": d["id"]}

    def control_post_tokens(self, request):
        self.tokens.clear()

    def control_get_operations(self, request):
        return [wire.as_json(op) for op in self.operations.values()]


def method(service, name, endpoint, handler):
    return "POST", "/nebius.%s/%s" % (service, name), endpoint, handler


Nebius.routes = [
    method("iam.v1.TenantService", "List", "tenants", Nebius.tenants),
    method("iam.v1.ProjectService", "List", "projects", Nebius.projects),
    method("iam.v1.ProjectService", "Get", "project", Nebius.project),
    method("vpc.v1.SubnetService", "List", "subnets", Nebius.subnets),
    method("compute.v1.PlatformService", "List", "platforms", Nebius.platforms),
    method("capacity.v1.ResourceAdviceService", "List", "advice", Nebius.advice),
    method("compute.v1.ImageService", "ListPublic", "images", Nebius.images),
    method("billing.v1alpha1.CalculatorService", "Estimate", "estimate", Nebius.estimate),
    method("compute.v1.InstanceService", "Create", "create", Nebius.create),
    method("compute.v1.InstanceService", "Get", "info", Nebius.info),
    method("compute.v1.InstanceService", "GetByName", "by-name", Nebius.by_name),
    method("compute.v1.InstanceService", "List", "list", Nebius.instances),
    method("compute.v1.InstanceService", "Delete", "delete", Nebius.delete),
    method("common.v1.OperationService", "Get", "operation", Nebius.operation_get),
    method("compute.v1.DiskService", "Get", "disk", Nebius.disk_get),
    method("compute.v1.DiskService", "List", "disks", Nebius.disk_list),
    method("compute.v1.DiskService", "Delete", "disk-delete", Nebius.disk_delete),
    ("POST", "", "exchange", None),
]


def main():
    p = fake.options(__doc__.splitlines()[0])
    p.add_argument("--page-max", type=int, default=1000, help="rows of a page, whatever is asked for")
    p.add_argument("--keep-disks", action="store_true", help="a managed disk outlives its machine")
    p.add_argument("--token-life", type=int, default=LIFE_S, help="seconds that a token is good for")
    opt = p.parse_args()
    cloud = Nebius(opt)
    ca, pair = wire.authority(cloud.folder.name)
    grpc_server, forwarder = wire.serve_grpc(cloud.rpc, opt.bind, opt.port, pair)
    tls, plain = wire.serve_tokens(cloud.exchange, cloud.metadata, opt.bind, pair)
    control = fake.serve(cloud, opt.bind, 0)
    url = "https://%s:%d" % (opt.bind, forwarder.port)
    exchange = "https://%s:%d/oauth2/token/exchange" % (opt.bind, tls.server_port)
    print(json.dumps({
        "url": url, "control": "http://%s:%d%s" % (opt.bind, control.server_port, fake.CONTROL), "ca_file": ca,
        "vm_token_url": "http://%s:%d/v1/iam/sa/token" % (opt.bind, plain.server_port),
        "provider": {"endpoint": url, "ca_file": ca, "token_url": exchange,
                     "secrets": {"credentials": json.dumps(cloud.account.credentials)}}}), flush=True)
    fake.wait_for_the_end(opt.stay)
    grpc_server.stop(0)


if __name__ == "__main__":
    main()
