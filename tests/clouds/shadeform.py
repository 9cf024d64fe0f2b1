"""shadeform.py - a fake of the Shadeform API; control calls and faults: see fake.py

What the real service does beyond its specification is done here too: nulls before active, a private_key in the list of
keys, 409 OUT_OF_STOCK for a region that does not exist, an empty answer to delete.
"""
import base64
import uuid
from datetime import datetime, timezone

import shadeform_catalog
from fake import Cloud, Reply, main
from machines import Machine

MANAGED_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIManagedManagedManagedManagedManagedManagedMan shadeform"
NULLABLE = ("Ip", "SshPort", "ActiveAt", "DeletedAt", "LaunchConfiguration", "AutoDelete", "Alert", "CloudAssignedId")


def rfc3339(t):
    return None if t is None else datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_rfc3339(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def dollars(udollar):
    return ("%.6f" % (udollar / 1e6)).rstrip("0").rstrip(".")


def error(status, text, code=None):
    return Reply(status, {"error_code": code, "error": text} if code else {"message": text})


class Shadeform(Cloud):
    name, prefix, spec_file, ssh_user = "shadeform", "/v1", "shadeform-openapi.yaml", "shadeform"
    phases = ["creating", "pending_provider", "pending"]
    delays = {"creating": 0.1, "pending_provider": 0.1, "pending": 0.2, "deleting": 0.3}
    presets = {
        "out-of-stock": (409, {"error_code": "OUT_OF_STOCK",
                               "error": "No capacity left for this instance type in the chosen region"}, {}),
        "no-money": (400, {"message": "Insufficient balance: please add funds to your wallet"}, {}),
        "unauthorized": (401, {"message": "Invalid API key"}, {}),
        "forbidden": (403, {"message": "Forbidden"}, {}),
        "throttled": (429, {"message": "Too many requests"}, {}),
        "not-found": (404, {"message": "not found"}, {}),
        "broken": (500, b"error", {"Content-Type": "text/plain"}),
    }

    def __init__(self, options):
        super().__init__(options)
        self.keys = {}
        self.add_key("Shadeform Managed Key", MANAGED_KEY, private_key="-----BEGIN FAKE PRIVATE KEY-----canary")

    def default_catalog(self):
        return shadeform_catalog.rows()

    def spec_tweaks(self, document):
        schemas = document["components"]["schemas"]
        for name in NULLABLE:
            schemas[name]["nullable"] = True
        del schemas["Status"]["enum"]  # grew twice in a year
        config = schemas["InstanceTypeConfiguration"]
        for name in ("launch_configuration", "auto_delete", "alert"):
            for holder in ("Instance", "InstanceInfoResponse", "UpdateRequest"):
                prop = schemas[holder]["properties"]
                if name in prop:
                    prop[name] = {"anyOf": [prop[name], {"type": "object", "nullable": True}]}
        config["required"].remove("gpu_manufacturer")
        schemas["InstanceConfiguration"]["required"].remove("gpu_manufacturer")

    def authorised(self, request):
        return request.headers.get("X-API-KEY") == self.options.api_key

    # ---- catalog

    def types(self, request):
        rows = self.catalog["instance_types"]
        want_available = request.query.get("available")
        out = []
        for row in rows:
            if not all(self.matches(row, k, v) for k, v in request.query.items()):
                continue
            if want_available in ("true", "false"):
                want = want_available == "true"
                seats = [a for a in row["availability"] if a["available"] is want]
                if not seats:
                    continue
                row = dict(row, availability=seats)
            out.append(row)
        return Reply(200, {"instance_types": out})

    @staticmethod
    def matches(row, key, value):
        if key in ("cloud", "shade_instance_type"):
            return row.get(key) == value
        if key in ("num_gpus", "gpu_type"):
            return str(row["configuration"].get(key)) == value
        if key == "region":
            return any(a.get("region") == value for a in row["availability"])
        return True

    def seat(self, body):
        """The catalog row and availability entry that a create names."""
        rental = body.get("rental_type", "on_demand")
        for row in self.catalog["instance_types"]:
            if (row["cloud"], row["shade_instance_type"]) == (body["cloud"], body["shade_instance_type"]):
                for a in row["availability"]:
                    if a["region"] == body["region"] and a.get("rental_type", "on_demand") == rental:
                        return row, a
                return row, None
        return None, None

    # ---- machines

    def create(self, request):
        body = request.body
        if not isinstance(body, dict):
            return error(400, "invalid request body")
        if any(not isinstance(body.get(k), str) or not body[k] for k in ("cloud", "region", "shade_instance_type", "name")):
            return error(400, "cloud, region, shade_instance_type and name are required")
        row, seat = self.seat(body)
        spot = body.get("rental_type") == "spot"
        if row and spot and not any(a.get("rental_type") == "spot" for a in row["availability"]):
            return error(400, "instance type does not support spot")
        if not seat or not seat["available"]:
            return self.preset("out-of-stock", {})
        if body.get("os") not in [None] + row["configuration"]["os_options"]:
            return error(400, "os %s is not supported by this instance type" % body["os"])
        key = self.keys.get(body["ssh_key_id"]) if "ssh_key_id" in body else self.default_key()
        if not key:
            return error(400, "ssh key not found")
        return Reply(200, {"id": self.start(request, row, seat, key).id})

    def start(self, request, row, seat, key):
        body = request.body
        price = int(round(float(seat["hourly_price"]) * 1e6)) if "hourly_price" in seat else row["hourly_price"] * 10000
        m = Machine(self.park, body["name"], list(body.get("tags") or []), price, request=body)
        wrong = request.fault("wrong-gpu")
        m.extra.update(row=row, spot=body.get("rental_type") == "spot", key=key["id"],
                       os=body.get("os") or row["configuration"]["os_options"][0],
                       configuration=dict(wrong["configuration"]) if wrong else {}, fields={})
        for name in ("launch_configuration", "auto_delete", "alert", "envs", "volume_mount", "volume_ids"):
            if body.get(name) is not None:
                m.extra["fields"][name] = body[name]
        self.arm_switch(m)
        launch = body.get("launch_configuration") or {}
        script = launch.get("script_configuration", {}).get("base64_script") if launch.get("type") == "script" else None
        if script is not None:
            base64.b64decode(script, validate=True)
        config = self.configuration(m)
        gpus = {"count": config["num_gpus"], "name": shadeform_catalog.smi_name(config["gpu_type"]),
                "memory_mib": config["vram_per_gpu_in_gb"] * 1024}
        m.hook = {"gpus": gpus if gpus["count"] else {}, "type": body["shade_instance_type"], "region": body["region"], "image": m.extra["os"],
                  "configuration": config, "ssh_public_keys": [key["public_key"]],
                  "user_data": script, "user_data_kind": "script" if script else "none"}
        return self.park.add(m, request.faults)

    def arm_switch(self, m):
        when = (m.extra["fields"].get("auto_delete") or {}).get("date_threshold")
        m.kill_at = from_rfc3339(when) if when else None

    def add_foreign(self, wanted):
        row = self.catalog["instance_types"][0]
        m = Machine(self.park, wanted.get("name", "by-hand"), wanted.get("tags", ["mine"]), row["hourly_price"] * 10000,
                    foreign=True)
        m.extra.update(row=row, spot=False, key=self.default_key()["id"], os=row["configuration"]["os_options"][0],
                       configuration={}, fields={})
        return self.park.add(m)

    def configuration(self, m):
        c = {k: v for k, v in m.extra["row"]["configuration"].items() if k != "os_options"}
        return {**c, "os": m.extra["os"], **m.extra["configuration"]}

    def shown(self, m):
        row, active = m.extra["row"], m.active is not None
        body = m.request or {}
        return {
            "id": m.id, "cloud": row["cloud"], "region": body.get("region", row["availability"][0]["region"]),
            "shade_instance_type": row["shade_instance_type"], "cloud_instance_type": row["cloud_instance_type"],
            "cloud_assigned_id": str(m.created)[-6:] if active else None, "shade_cloud": True, "name": m.name,
            "configuration": self.configuration(m), "ip": m.node["ip"] if active else None,
            "ssh_user": m.node["user"] if active else self.ssh_user, "ssh_port": m.node["port"] if active else None,
            "status": m.status,
            "status_details": m.details or ("" if active else "Instance created, waiting on provider to spin up instance"),
            "cost_estimate": dollars(m.cost_udollar()), "hourly_price": row["hourly_price"],
            "rental_terms": {"rental_type": "spot" if m.extra["spot"] else "on_demand",
                             "hourly_price": dollars(m.price_udollar), "ending_at": None},
            "launch_configuration": m.extra["fields"].get("launch_configuration"), "tags": m.tags,
            "active_at": rfc3339(m.active), "created_at": rfc3339(m.created), "deleted_at": rfc3339(m.ended),
            "boot_time": row.get("boot_time", {}),
        }

    def info(self, request):
        m = self.park.all.get(request.params["id"])
        if not m or not m.visible():
            return self.preset("not-found", {})
        more = {k: v for k, v in m.extra["fields"].items()}
        return Reply(200, dict(self.shown(m), ssh_key_id=m.extra["key"], **{k: v for k, v in more.items()
                                                                          if k != "launch_configuration"}))

    def instances(self, request):
        return Reply(200, {"instances": [self.shown(m) for m in self.park.all.values() if m.visible()]})

    def one(self, request):
        m = self.park.all.get(request.params["id"])
        return m if m and not m.gone else None

    def delete(self, request):
        m = self.one(request)
        if not m:
            return self.preset("not-found", {})
        self.park.end(m)
        return Reply(200)

    def update(self, request):
        m = self.one(request)
        if not m:
            return self.preset("not-found", {})
        for name, value in (request.body or {}).items():
            if name == "name":
                m.name = value
            elif name == "tags":
                m.tags = value or []
            elif value is None:
                m.extra["fields"].pop(name, None)
            else:
                m.extra["fields"][name] = value
        self.arm_switch(m)
        return Reply(200)

    def restart(self, request):
        return Reply(200) if self.one(request) else self.preset("not-found", {})

    # ---- keys

    def default_key(self):
        return next(k for k in self.keys.values() if k["is_default"])

    def add_key(self, name, public_key, **more):
        key = dict({"id": str(uuid.uuid4()), "name": name, "public_key": public_key, "is_default": not self.keys}, **more)
        self.keys[key["id"]] = key
        return key

    def key_list(self, request):
        return Reply(200, {"ssh_keys": list(self.keys.values())})

    def key_add(self, request):
        body = request.body or {}
        if any(k["name"] == body.get("name") for k in self.keys.values()):
            return error(400, "ssh key name must be unique")
        if len(str(body.get("public_key")).split()) < 2:
            return error(400, "public_key is not valid")
        return Reply(200, {"id": self.add_key(body["name"], body["public_key"])["id"]})

    def key_info(self, request):
        key = self.keys.get(request.params["id"])
        return Reply(200, key) if key else self.preset("not-found", {})

    def key_default(self, request):
        if request.params["id"] not in self.keys:
            return self.preset("not-found", {})
        for key in self.keys.values():
            key["is_default"] = key["id"] == request.params["id"]
        return Reply(200)

    def key_delete(self, request):
        key = self.keys.get(request.params["id"])
        if not key:
            return self.preset("not-found", {})
        used = any(m.extra["key"] == key["id"] and not m.gone for m in self.park.all.values())
        if key["is_default"] or "private_key" in key or used:
            return error(400, "ssh key is in use")
        del self.keys[key["id"]]
        return Reply(200)

    def control_get_keys(self, request):
        """GET /_fake/keys: this cloud's keys, without the private one."""
        return [{k: v for k, v in key.items() if k != "private_key"} for key in self.keys.values()]


ID = r"/(?P<id>[^/]+)"
Shadeform.routes = [
    ("GET", "/instances", "list", Shadeform.instances),
    ("GET", "/instances/types", "types", Shadeform.types),
    ("POST", "/instances/create", "create", Shadeform.create),
    ("GET", "/instances" + ID + "/info", "info", Shadeform.info),
    ("POST", "/instances" + ID + "/delete", "delete", Shadeform.delete),
    ("POST", "/instances" + ID + "/update", "update", Shadeform.update),
    ("POST", "/instances" + ID + "/restart", "restart", Shadeform.restart),
    ("GET", "/sshkeys", "keys", Shadeform.key_list),
    ("POST", "/sshkeys/add", "key-add", Shadeform.key_add),
    ("GET", "/sshkeys" + ID + "/info", "key-info", Shadeform.key_info),
    ("POST", "/sshkeys" + ID + "/setdefault", "key-default", Shadeform.key_default),
    ("POST", "/sshkeys" + ID + "/delete", "key-delete", Shadeform.key_delete),
]

if __name__ == "__main__":
    main(Shadeform, __doc__.splitlines()[0])
