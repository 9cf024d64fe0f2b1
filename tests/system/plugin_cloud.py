"""plugin_cloud.py - a plugin in its real host against its cloud's fake, and what every such test asks of it"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
from fake import Control
from provider_harness import HOST, Provider, plugin_file

KEY = "canary-api-key-4711"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFak t"


def same(got, want, what=""):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


class PluginCloud:
    """The fake and the plugin together; at the end nothing may have shown a secret or broken the specification."""
    name = offer = None       # of the plugin; what create takes unless it is told
    secrets = (KEY, "canary")  # never shown

    def __init__(self, key=KEY, args=(), lawful=True, **options):
        self.lawful = lawful  # False: the test itself breaks the specification
        self.fake = Control(self.name, "--api-key", KEY, *args)
        self.results = []
        self.plugin = self.start_plugin(key, options)

    def start_plugin(self, key, options):
        return Provider(self.name, options=dict({"endpoint": self.fake.url}, **options),
                        secrets={"api_key": key + "\n"}, http={"rate": 1000.0, "burst": 1000})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        shown = json.dumps(self.plugin.logs) + repr([vars(r) for r in self.results])
        violations = self.fake.get("state")["violations"]
        counters = self.fake.get("counters")
        self.plugin.__exit__(kind)
        self.fake.__exit__()
        if kind is None:
            assert not violations or not self.lawful, violations
            self.judge(counters)
            for secret in self.secrets:
                assert secret not in shown, "%s was shown" % secret

    def judge(self, counters):
        """What else has to hold of the requests that the fake counted."""

    def keep(self, result):
        self.results.append(result)
        return result

    def call(self, *args, **more):
        return self.keep(self.plugin.call(*args, **more))

    def create(self, ref=None, **more):
        return self.keep(self.plugin.create(ref or self.offer, **more))

    def find(self, token="tok-1", scope=None):
        return self.call("find", {"token": token, "name": "lease-1", "scope": scope})

    def get(self, machine):
        return self.call("get", Provider.ref(machine))

    def remove(self, machine):
        return self.call("remove", Provider.ref(machine))

    def truth(self):
        return [m for m in self.fake.get("machines") if not m["foreign"]]

    def wait(self, status, count=1):
        self.fake.get("wait?status=%s&count=%d&timeout=10" % (status, count))


def how(result):
    return {s["scope"]: s["how"] for s in result.scopes}


def offers(cloud, ref=None):
    r = cloud.call("list_offers", {"offer_ref": ref, "disk_gib": 0})
    same(r.kind, "ok", r.text)
    same(set(how(r).values()), {"complete"})
    return {o["offer_ref"]: o for o in r.offers}


def check_refusals(cloud, refusals, more):
    """Each (fault of a create, kind) is answered so, and made nothing; more(fault, result) looks closer."""
    for fault, kind in refusals:
        cloud.fake.post("faults", dict(fault, on="create", times=1))
        r = cloud.create()
        same((r.kind, r.machines), (kind, []), fault)
        more(fault, r)
        cloud.fake.calm()
    same(cloud.truth(), [])


def check_doubts(cloud, doubts):
    """Each fault leaves a create unknown and a machine behind; it is sent once, and find adopts exactly one."""
    for i, fault in enumerate(doubts):
        token = "tok-%d" % i
        cloud.fake.post("faults", dict(fault, on="create"))
        r = cloud.create(token=token, name="lease-%d" % i, deadline_ms=1500 if fault["kind"] == "hang" else 15000)
        same((r.kind, r.machines), ("unknown", []), fault)
        cloud.fake.fault("list", "duplicate-rows")
        found = cloud.find(token)
        same((found.kind, len(found.machines), set(how(found).values())), ("ok", 1, {"complete"}), fault)
        same(found.machines[0]["name"], "lease-%d" % i)
    same(cloud.fake.get("counters")["create"], len(doubts), "creates that were sent")
    same(len(cloud.truth()), len(doubts))


def check_lost(cloud):
    """A create whose connection broke before the effect is unknown too; a machine that shows late is found then."""
    cloud.fake.fault("create", "drop")
    same(cloud.create(token="tok-x", name="lease-x").kind, "unknown")
    r = cloud.find("tok-x")
    same((r.kind, r.machines, set(how(r).values())), ("ok", [], {"complete"}))
    same(cloud.fake.get("counters")["create"], 1, "a create is never repeated by itself")
    cloud.fake.fault("create", "late", seconds=20)
    same(cloud.create(token="tok-y", name="lease-y").kind, "ok")
    same(cloud.find("tok-y").machines, [])
    cloud.fake.post("advance", {"seconds": 21})
    same(len(cloud.find("tok-y").machines), 1)


def start_creates(cloud, count):
    """So many creates at once, of one key with other comments."""
    calls = [cloud.plugin.start("create", {
        "offer_ref": cloud.offer, "max_price_udollar": 10 ** 9, "token": "t%d" % i, "name": "n%d" % i,
        "tags": {"gpubroker-token": "t%d" % i}, "ssh_public_keys": [PUBLIC_KEY.replace(" t", " t%d" % i)]})
        for i in range(count)]
    same([cloud.keep(cloud.plugin.wait(n)).kind for n in calls], ["ok"] * count)


def check_manual(name):
    """The manual names exactly the options that the plugin has."""
    out = subprocess.run([HOST, "--describe", plugin_file(name)], stdout=subprocess.PIPE, text=True, check=True)
    options = [o["name"] for o in json.loads(out.stdout)["options"]]
    with open(os.path.join(HERE, "..", "..", "plugins", name, "gpubroker-%s.pod" % name)) as f:
        section = f.read().split("=head1 OPTIONS")[1].split("=head1")[0]
    same(sorted(re.findall(r"B<([a-z_]+)>", "".join(re.findall(r"^=item .*", section, re.M)))), sorted(options))
