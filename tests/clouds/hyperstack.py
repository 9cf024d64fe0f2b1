"""hyperstack.py - a fake of the Hyperstack API; control calls and faults: see fake.py

What the real service does beyond its specification is done here too: nulls for what is not there yet, prices as text,
GETs that stop machines, ACTIVE before the address is attached, a delete that is refused while a machine is built.

Control calls of its own: GET /_fake/addresses (public addresses that bill, with the machine they are at or were left
by), POST /_fake/credit {"credit": dollars}.  --keep-addresses: an address that was not detached outlives its machine.
"""
import base64
from datetime import datetime, timezone

import fake
import hyperstack_catalog
from fake import Cloud, Reply
from machines import Machine

NULLABLE = {
    "Instance_Fields": ("fixed_ip", "floating_ip", "floating_ip_status", "contract_id", "callback_url", "labels",
                        "port_randomization_status"),
    "Flavor_Fields": ("display_name", "gpu"), "Flavor_Item_Get_Response": ("gpu",), "Instance_Flavor_Fields": ("gpu",),
    "New_Model_Response": ("planned_7_days", "planned_30_days", "planned_100_days"),
    "PricebookModel": ("start_time", "end_time"), "FlavorRestrictions": ("restriction_type",),
    "Security_Rules_Fields_for_Instance": ("port_range_min", "port_range_max"),
    "Instances": ("page", "page_size"), "Environments": ("page", "page_size"), "Keypairs": ("page", "page_size"),
}
VM_STATES = {"CREATING": "building", "BUILD": "building", "ACTIVE": "active", "ERROR": "error", "SHUTOFF": "stopped",
             "STOPPING": "active", "STARTING": "stopped", "HIBERNATED": "shelved_offloaded", "DELETING": "active"}
PROTOCOLS = ("tcp", "udp", "icmp", "any")
USER_DATA_MAX = 65535 * 3 // 4


def stamp(t):
    return datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def refusal(status, text, reason="bad_request"):
    return Reply(status, {"status": False, "message": text, "error_reason": reason})


def good(**payload):
    return Reply(200, {"status": True, "message": "OK", **payload})


class Hyperstack(Cloud):
    name, prefix, spec_file, ssh_user = "hyperstack", "/v1", "hyperstack-openapi.yaml", "ubuntu"
    phases, running, ending, error = ["CREATING", "BUILD"], "ACTIVE", "DELETING", "ERROR"
    delays = {"CREATING": 0.1, "BUILD": 0.2, "DELETING": 0.3, "attach": 0.1}
    presets = {
        "out-of-stock": (400, {"status": False, "message": "Flavor is out of stock in this region",
                               "error_reason": "bad_request"}, {}),
        "no-money": (400, {"status": False, "message": "Insufficient balance to create the resource",
                           "error_reason": "bad_request"}, {}),
        "status-false": (200, {"status": False, "message": "Something went wrong", "error_reason": "server_error"}, {}),
        "unauthorized": (401, {"status": False, "message": "Unauthorized", "error_reason": "unauthorized"}, {}),
        "forbidden": (403, {"status": False, "message": "Forbidden", "error_reason": "forbidden"}, {}),
        "throttled": (429, {"message": "Too many requests"}, {}),
        "not-found": (404, {"status": False, "message": "not found", "error_reason": "not_found"}, {}),
        "broken": (500, {"message": "Internal Server Error"}, {}),
    }

    def __init__(self, options):
        self.environments, self.keypairs, self.credit, self.last_id = [], [], 100.0, 29000
        for region, _ in hyperstack_catalog.REGIONS[:2]:
            self.add_environment("default-" + region, region)
        super().__init__(options)

    def default_catalog(self):
        return hyperstack_catalog.everything()

    def spec_tweaks(self, document):
        schemas = document["components"]["schemas"]
        for holder, names in NULLABLE.items():
            for name in names:
                schemas[holder]["properties"][name]["nullable"] = True
        schemas["Create_Security_Rule_Payload"]["required"].remove("virtual_machine_id")  # not even a property
        for name in ("value", "original_value"):
            schemas["PricebookModel"]["properties"][name] = {}

    def authorised(self, request):
        return request.headers.get("api_key") == self.options.api_key

    def no_route(self, request):
        return self.preset("not-found", {})

    def invalid(self, text):
        return refusal(400, text)

    def next_id(self):
        self.last_id += 1
        return self.last_id

    # ---- account and catalog

    def me(self, request):
        return good(user={"email": "ops@example.org", "username": "ops", "name": "Ops", "created_at": "2026-02-03T10:00:00"})

    def show_credit(self, request):
        return good(data={"credit": self.credit, "threshold": 0.0, "can_create_instance": self.credit > 0})

    def in_region(self, request, rows):
        want = request.query.get("region")
        return [r for r in rows if want is None or isinstance(r, dict) and r.get("region_name") == want]

    def regions(self, request):
        return good(regions=self.catalog["regions"])

    def flavors(self, request):
        return good(data=self.in_region(request, self.catalog["flavors"]))

    def pricebook(self, request):
        return Reply(200, self.catalog["pricebook"])

    def stocks(self, request):
        return Reply(200, {"stocks": self.catalog["stocks"]})

    def images(self, request):
        return good(images=self.in_region(request, self.catalog["images"]))

    def flavor(self, region, name):
        return next((f for g in self.catalog["flavors"] for f in g["flavors"]
                     if f["region_name"] == region and f["name"] == name), None)

    def price_of(self, name):
        return next((float(p["value"]) for p in self.catalog["pricebook"] if p["name"] == name), 0.0)

    def price_udollar(self, flavor):
        if flavor["gpu_count"]:
            dollars = self.price_of(flavor["gpu"]) * flavor["gpu_count"]
        else:
            dollars = self.price_of("vCPU (cpu-only-flavors)") * flavor["cpu"] + \
                self.price_of("RAM (cpu-only-flavors)") * flavor["ram"]
        return round(dollars * 1e6)

    def paged(self, request, name, rows):
        """Rows are cut into pages only for those who ask for pages."""
        q = request.query
        if "page" not in q and "pageSize" not in q:
            return good(count=len(rows), page=None, page_size=None, **{name: rows})
        page, size = int(q.get("page", 1)), min(int(q.get("pageSize", 20)), self.options.page_max)
        return good(count=len(rows), page=page, page_size=size, **{name: rows[(page - 1) * size:page * size]})

    # ---- environments and keypairs

    def add_environment(self, name, region):
        e = {"id": self.next_id(), "name": name, "region": region, "created_at": "2026-02-03T10:00:00",
             "features": {"network_optimised": False, "green_status": "GREEN"}}
        self.environments.append(e)
        return e

    def environment(self, name):
        return next((e for e in self.environments if e["name"] == name), None)

    def environment_list(self, request):
        return self.paged(request, "environments", self.environments)

    def environment_add(self, request):
        body = request.body
        if self.environment(body["name"]):
            return refusal(409, "Environment %s already exists" % body["name"], "already_exist")
        if body["region"] not in [r["name"] for r in self.catalog["regions"]] or len(body["name"]) > 50:
            return refusal(400, "no such region")
        return good(environment=self.add_environment(body["name"], body["region"]))

    def key_list(self, request):
        return self.paged(request, "keypairs", self.keypairs)

    def key_add(self, request):
        body = request.body
        e = self.environment(body["environment_name"])
        if not e:
            return refusal(404, "Environment not found", "not_found")
        if any(k["name"] == body["name"] and k["environment"]["name"] == e["name"] for k in self.keypairs):
            return refusal(409, "Keypair %s already exists" % body["name"], "already_exist")
        if len(body["public_key"].split()) < 2 or len(body["name"]) > 50:
            return refusal(400, "public_key is not valid")
        self.keypairs.append({"id": self.next_id(), "name": body["name"], "public_key": body["public_key"],
                              "environment": {k: e[k] for k in ("id", "name", "region")}, "fingerprint": "aa:bb",
                              "created_at": stamp(self.park.now())})
        return good(keypair=self.keypairs[-1])

    def key_delete(self, request):
        before = len(self.keypairs)
        self.keypairs = [k for k in self.keypairs if str(k["id"]) != request.params["id"]]
        return good() if len(self.keypairs) < before else self.preset("not-found", {})

    # ---- create

    def create(self, request):
        body = request.body
        e = self.environment(body["environment_name"])
        if not e:
            return refusal(404, "Environment not found", "not_found")
        flavor = self.flavor(e["region"], body["flavor_name"])
        key = next((k for k in self.keypairs if (k["name"], k["environment"]["name"]) == (body["key_name"], e["name"])), None)
        wrong = self.wrong(body, e["region"], flavor, key)
        if wrong:
            return refusal(400, wrong)
        if any(m.name == body["name"] and not m.gone for m in self.park.all.values()):
            return refusal(409, "Virtual machine %s already exists" % body["name"], "already_exist")
        if self.credit <= 0:
            return self.preset("no-money", {})
        if not flavor["stock_available"] or self.stock(e["region"], flavor) == 0:
            return self.preset("out-of-stock", {})
        return good(instances=[self.shown(self.start(request, e, flavor, key))])

    def wrong(self, body, region, flavor, key):
        if not flavor or flavor["name"].endswith("k8s"):
            return "Flavor %s does not exist" % body["flavor_name"]
        if not key:
            return "Keypair %s does not exist" % body["key_name"]
        if body["count"] != 1 or not 1 <= len(body["name"]) <= 50 or any(" " in l for l in body.get("labels") or []):
            return "count, name or labels are not valid"
        if len((body.get("user_data") or "").encode()) > USER_DATA_MAX:
            return "user_data is too long"
        for rule in body.get("security_rules") or []:
            if rule["protocol"] not in PROTOCOLS or rule["direction"] not in ("ingress", "egress") or \
                    rule["ethertype"] != ("IPv6" if ":" in rule["remote_ip_prefix"] else "IPv4"):
                return "security rule is not valid"
        image = next((i for g in self.in_region_of(region) for i in g["images"] if i["name"] == body.get("image_name")), None)
        if not image:
            return "Image %s does not exist" % body.get("image_name")
        only = [f["flavor_name"] for f in image["flavor_restrictions"]["compatible_flavors"]]
        if image["flavor_restrictions"]["restriction_type"] == "hard" and flavor["name"] not in only:
            return "Image is not compatible with the flavor"
        return None

    def in_region_of(self, region):
        return [g for g in self.catalog["images"] if g["region_name"] == region]

    def stock(self, region, flavor):
        for s in self.catalog["stocks"]:
            for m in s["models"] if s["region"] == region else []:
                if m["model"] == flavor["gpu"]:
                    return m["configurations"].get("%dx" % flavor["gpu_count"], 0)
        return None

    def start(self, request, environment, flavor, key):
        body = request.body
        address = round(self.price_of("PublicIP") * 1e6) if body.get("assign_floating_ip") else 0
        m = Machine(self.park, body["name"], list(body.get("labels") or []), self.price_udollar(flavor) + address, request=body,
                    ident=str(self.next_id()))
        m.extra.update(environment=environment, flavor=flavor, key=key["name"], detached=not body.get("assign_floating_ip"),
                       rules=list(body.get("security_rules") or []), configuration={})
        wrong = request.fault("wrong-gpu")
        gpu, count = flavor["gpu"] or "", flavor["gpu_count"]
        delivered = {"gpu_type": hyperstack_catalog.SMI.get(gpu, gpu), "num_gpus": count,
                     "vram_per_gpu_in_gb": hyperstack_catalog.VRAM.get(gpu, 0), **(wrong["configuration"] if wrong else {})}
        gpus = {"count": count, "name": "NVIDIA " + delivered["gpu_type"], "memory_mib": delivered["vram_per_gpu_in_gb"] * 1024}
        data = body.get("user_data")
        m.hook = {"gpus": gpus if count else {}, "type": flavor["name"], "region": environment["region"],
                  "image": body["image_name"], "configuration": delivered, "ssh_public_keys": [key["public_key"]],
                  "user_data": base64.b64encode(data.encode()).decode() if data else None,
                  "user_data_kind": "none" if not data else "script" if data.startswith("#!") else "cloud"}
        return self.park.add(m, request.faults)

    def add_foreign(self, wanted):
        e = self.environment(wanted.get("environment", "default-CANADA-1"))
        flavor = self.flavor(e["region"], "n1-cpu-small")
        m = Machine(self.park, wanted.get("name", "by-hand"), wanted.get("tags", ["mine"]), self.price_udollar(flavor),
                    foreign=True, ident=str(self.next_id()))
        m.extra.update(environment=e, flavor=flavor, key="theirs", detached=False, rules=[], configuration={})
        return self.park.add(m)

    # ---- one machine

    def address_of(self, m):
        """(address, status): ACTIVE comes first, the address a moment later."""
        if m.extra["detached"] or m.active is None or self.park.now() < m.active:
            return None, None
        if self.park.now() < m.active + self.delays["attach"]:
            return m.node["ip"], "ATTACHING"
        return m.node["ip"], "ATTACHED"

    def shown(self, m):
        e, f, body = m.extra["environment"], m.extra["flavor"], m.request or {}
        ip, ip_status = self.address_of(m)
        return {
            "id": int(m.id), "name": m.name, "status": m.status, "vm_state": VM_STATES.get(m.status, "active"),
            "power_state": {"ACTIVE": "RUNNING", "SHUTOFF": "SHUTDOWN"}.get(m.status, "NOSTATE"),
            "environment": dict(e, org_id=3971), "image": {"name": body.get("image_name", "Ubuntu")},
            "flavor": {k: f[k] for k in ("id", "name", "cpu", "ram", "disk", "ephemeral", "gpu", "gpu_count")},
            "keypair": {"name": m.extra["key"]}, "fixed_ip": "10.0.0.14" if m.active else None, "floating_ip": ip,
            "floating_ip_status": ip_status, "port_randomization": body.get("enable_port_randomization", True),
            "port_randomization_status": None, "requires_public_ip": not m.extra["detached"], "locked": False, "os": "ubuntu",
            "labels": m.tags, "contract_id": None, "callback_url": None, "volume_attachments": [], "features": {},
            "security_rules": [dict({"port_range_min": None, "port_range_max": None}, **r, id=n + 1, status="SUCCESS",
                                    created_at=stamp(m.created)) for n, r in enumerate(m.extra["rules"])],
            "created_at": stamp(m.created)}

    def one(self, request):
        m = self.park.all.get(request.params["id"])
        return m if m and m.visible() else None

    def info(self, request):
        m = self.one(request)
        return good(instance=self.shown(m)) if m else self.preset("not-found", {})

    def instances(self, request):
        q = request.query
        rows = [self.shown(m) for m in self.park.all.values() if m.visible()]
        want = q.get("environment")
        if want:
            exact = q.get("exact_environment_match") == "true"
            rows = [r for r in rows if (r["environment"]["name"] == want if exact else want in r["environment"]["name"])]
        return self.paged(request, "instances", rows)

    def delete(self, request):
        m = self.one(request)
        if not m:
            return self.preset("not-found", {})
        if m.status in self.phases:
            return refusal(400, "VM %s is currently being created and cannot be deleted yet" % m.name)
        self.park.end(m)
        return good()

    def detach(self, request):
        m = self.one(request)
        if not m:
            return self.preset("not-found", {})
        if m.extra["detached"] or m.active is None:
            return refusal(400, "VM has no public IP")
        m.extra["detached"] = True
        return good()

    def power(self, request):
        m = self.one(request)
        if not m:
            return self.preset("not-found", {})
        m.stuck = {"stop": "SHUTOFF", "hibernate": "HIBERNATED"}.get(request.params["action"])
        return good()

    def log_request(self, request):
        return good(request_id=self.next_id()) if self.one(request) else self.preset("not-found", {})

    def log_text(self, request):
        m = self.one(request)
        return good(logs="booting %s\nUbuntu login:\n" % m.name) if m else self.preset("not-found", {})

    # ---- control

    def control_get_keys(self, request):
        return self.keypairs

    def control_get_addresses(self, request):
        kept = self.options.keep_addresses
        return [{"ip": m.node["ip"], "machine": m.id, "foreign": m.foreign} for m in self.park.all.values()
                if self.address_of(m)[0] and (kept or not m.gone)]

    def control_post_credit(self, request):
        self.credit = float(request.body["credit"])

    def control_get_environments(self, request):
        return self.environments


VM = "/core/virtual-machines"
ID = r"/(?P<id>[0-9]+)"
Hyperstack.routes = [
    ("GET", "/auth/me", "me", Hyperstack.me),
    ("GET", "/billing/user-credit/credit", "credit", Hyperstack.show_credit),
    ("GET", "/core/regions", "regions", Hyperstack.regions),
    ("GET", "/core/flavors", "flavors", Hyperstack.flavors),
    ("GET", "/pricebook", "pricebook", Hyperstack.pricebook),
    ("GET", "/core/stocks", "stocks", Hyperstack.stocks),
    ("GET", "/core/images", "images", Hyperstack.images),
    ("GET", "/core/environments", "environments", Hyperstack.environment_list),
    ("POST", "/core/environments", "environment-add", Hyperstack.environment_add),
    ("GET", "/core/keypairs", "keys", Hyperstack.key_list),
    ("POST", "/core/keypairs", "key-add", Hyperstack.key_add),
    ("DELETE", "/core/keypair" + ID, "key-delete", Hyperstack.key_delete),
    ("GET", VM, "list", Hyperstack.instances),
    ("POST", VM, "create", Hyperstack.create),
    ("GET", VM + ID, "info", Hyperstack.info),
    ("DELETE", VM + ID, "delete", Hyperstack.delete),
    ("POST", VM + ID + "/detach-floatingip", "detach", Hyperstack.detach),
    ("GET", VM + ID + "/(?P<action>start|stop|hard-reboot|hibernate|hibernate-restore)", "power", Hyperstack.power),
    ("POST", VM + ID + "/logs", "log-request", Hyperstack.log_request),
    ("GET", VM + ID + "/logs", "log", Hyperstack.log_text),
]


def main():
    p = fake.options(__doc__.splitlines()[0])
    p.add_argument("--page-max", type=int, default=100, help="rows of a page, whatever is asked for")
    p.add_argument("--keep-addresses", action="store_true", help="an address outlives its machine unless it is detached")
    fake.run(Hyperstack, p.parse_args())


if __name__ == "__main__":
    main()
