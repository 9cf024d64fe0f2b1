"""acme_cloud.py - a fake of Acme's API for `make check`

What every fake needs (server, control calls, faults, machines with a clock) is in gpubroker's fake.py; here stands only
what is Acme's: paths, bodies, errors.  writing-a-provider.md lists the control calls, for a fake in another language.
"""
import os
import sys

sys.path.insert(0, os.environ["GPUB_FAKE_DIR"])
from fake import Cloud, Reply, main
from machines import Machine

TYPES = [
    {"name": "cpu-2", "gpu": None, "vcpus": 2, "ram_gib": 8, "disk_gib": 40, "price": "0.05",
     "regions": [{"name": "eu", "stock": 500}]},
    {"name": "l40s-1", "gpu": {"model": "L40S", "count": 1, "vram_gib": 48}, "vcpus": 16, "ram_gib": 96, "disk_gib": 200,
     "price": "0.85", "regions": [{"name": "eu", "stock": 500}, {"name": "us", "stock": 0}]},
    {"name": "h100-8", "gpu": {"model": "H100", "count": 8, "vram_gib": 80}, "vcpus": 192, "ram_gib": 1800,
     "disk_gib": 2000, "price": "17.60", "regions": [{"name": "us", "stock": 500}]},
]
PAGE = 20


def error(status, code, message, **headers):
    return Reply(status, {"code": code, "message": message}, headers)


class Acme(Cloud):
    name, prefix, ssh_user = "acme", "/v1", "root"
    phases, running, ending, error = ["provisioning"], "active", "deleting", "failed"
    delays = {"provisioning": 0.1, "deleting": 0.1}
    presets = {  # name of a fault: how Acme says it
        "unauthorized": (401, {"code": "bad_key", "message": "unknown API key"}, {}),
        "throttled": (429, {"code": "slow_down", "message": "too many requests"}, {}),
        "broken": (500, {"code": "oops", "message": "internal error"}, {}),
        "out-of-stock": (409, {"code": "out_of_stock", "message": "no such server is free"}, {}),
        "not-found": (404, {"code": "not_found", "message": "no such server"}, {}),
    }

    def default_catalog(self):
        return TYPES

    def authorised(self, request):
        return request.headers.get("Authorization") == "Bearer " + self.options.api_key

    def page(self, request, name, rows):
        n = int(request.query.get("page", 1))
        more = len(rows) > n * PAGE
        return Reply(200, {name: rows[(n - 1) * PAGE:n * PAGE], "next_page": n + 1 if more else None})

    def account(self, request):
        return Reply(200, {"name": "acme-test"})

    def types(self, request):
        return self.page(request, "types", self.catalog)

    def shown(self, m):
        want = m.request or {}
        return {"id": m.id, "name": m.name, "status": m.status, "labels": m.tags, "type": want.get("type", "cpu-2"),
                "region": want.get("region", "eu"), "address": m.node["ip"] if m.active else None, "error": m.details,
                "created_ms": int(m.created * 1000), "delete_at_ms": int(m.kill_at * 1000) if m.kill_at else None}

    def servers(self, request):
        return self.page(request, "servers", [self.shown(m) for m in self.park.all.values() if m.visible()])

    def create(self, request):
        body = request.body
        if not isinstance(body, dict) or not body.get("client_token") or not body.get("name"):
            return error(422, "bad_request", "client_token and name are required")
        for m in self.park.all.values():
            if m.request and m.request["client_token"] == body["client_token"]:
                return Reply(200, self.shown(m)) if m.request == body else \
                    error(409, "token_reused", "client_token was used for another server")
        row = next((t for t in self.catalog if t["name"] == body.get("type")), None)
        region = next((r for r in row["regions"] if r["name"] == body.get("region")), None) if row else None
        if not region or region["stock"] <= 0:
            return self.preset("out-of-stock", {})
        m = Machine(self.park, body["name"], dict(body.get("labels", {})), round(float(row["price"]) * 1e6), request=body)
        m.kill_at = body["delete_at_ms"] / 1000 if body.get("delete_at_ms") else None
        return Reply(201, self.shown(self.park.add(m, request.faults)))

    def one(self, request):
        m = self.park.all.get(request.params["id"])
        return m if m and not m.gone else None

    def show(self, request):
        m = self.one(request)
        return Reply(200, self.shown(m)) if m else self.preset("not-found", {})

    def change(self, request):
        m = self.one(request)
        if m:
            m.kill_at = request.body["delete_at_ms"] / 1000
        return Reply(200, self.shown(m)) if m else self.preset("not-found", {})

    def delete(self, request):
        m = self.one(request)
        if m:
            self.park.end(m)
        return Reply(204) if m else self.preset("not-found", {})

    def add_foreign(self, wanted):
        return self.park.add(Machine(self.park, wanted.get("name", "by-hand"), {"team": "other"}, 50000, foreign=True))


ID = r"/(?P<id>[^/]+)"
Acme.routes = [
    ("GET", "/account", "account", Acme.account),
    ("GET", "/types", "types", Acme.types),
    ("GET", "/servers", "list", Acme.servers),
    ("POST", "/servers", "create", Acme.create),
    ("GET", "/servers" + ID, "info", Acme.show),
    ("PATCH", "/servers" + ID, "update", Acme.change),
    ("DELETE", "/servers" + ID, "delete", Acme.delete),
]

if __name__ == "__main__":
    main(Acme, __doc__.splitlines()[0])
