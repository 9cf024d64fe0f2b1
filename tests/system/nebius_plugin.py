#!/usr/bin/python3
"""nebius_plugin.py - the Nebius plugin in its real host, against the fake cloud with all its faults

The fake answers with the message classes of the cloud's own SDK: what it understands is what Nebius would.
"""
import base64
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds"), os.path.join(HERE, "..")]
import venv

venv.enter("the Nebius plugin")

import nebius_catalog
from plugin_cloud import (PUBLIC_KEY, PluginCloud, check_doubts, check_lost, check_manual, check_refusals, how, offers, same,
                          start_creates)
from provider_harness import OWNER, HttpServer, Provider, tap

NORTH, CENTRAL, MOON = "project-e00north", "project-u00central", "project-m00moon"
H100 = NORTH + "|gpu-h100-sxm|1gpu-16vcpu-200gb|on-demand"
SPOT = NORTH + "|gpu-h100-sxm|1gpu-16vcpu-200gb|preemptible"
CPU = NORTH + "|cpu-d3|4vcpu-16gb|on-demand"
GIB = 100  # micro-dollars, as the catalog has it
PROJECTS = [NORTH, CENTRAL, MOON]


class Cloud(PluginCloud):
    name, offer = "nebius", H100
    secrets = ("canary", "PRIVATE KEY", "eyJ")  # tokens, the key, assertions

    def start_plugin(self, key, options):
        own = dict(self.fake.hello["provider"])
        secrets = options.pop("secrets", own.pop("secrets"))
        own.pop("secrets", None)
        ca = options.pop("ca_file", own.pop("ca_file"))
        return Provider("nebius", options={**own, **options}, secrets=secrets,
                        http={"rate": 10000.0, "burst": 10000, "ca_file": ca})

    def running(self, *args, **more):
        m = self.create(*args, **more).machines[0]
        self.wait("RUNNING", len(self.truth()))
        return m

    def asked(self, endpoint):
        return self.fake.get("counters").get(endpoint, 0)

    def last(self, endpoint):
        return [r for r in self.fake.get("requests") if r["endpoint"] == endpoint][-1]


def every(word, **other):
    return {**{p: word for p in PROJECTS}, **other}


# ---- credentials

def test_probe():
    """a service account's key becomes a token, once; the projects are counted over all pages"""
    with Cloud(args=["--page-max", "2"]) as c:
        r = c.call("probe")
        same((r.kind, r.value["account"], r.value["text"]), ("ok", nebius_catalog.TENANT, "3 projects, 0 of them unreadable"), r.text)
        c.call("probe")
        same(c.asked("exchange"), 1, "the token is kept")
        same(c.asked("projects"), 4, "pages of two")


def test_token_revoked():
    """a token that is refused before its time is replaced, and what was asked is asked again"""
    with Cloud() as c:
        c.call("probe")
        c.fake.post("tokens", {})
        same(c.call("probe").kind, "ok")
        same(c.asked("exchange"), 2)
        c.fake.post("tokens", {})
        same(c.create().kind, "ok", "a create, too")
        same((len(c.truth()), c.asked("exchange")), (1, 3))


def test_token_renewed():
    """a short token is renewed before its end; what is refused even with a new one is auth"""
    with Cloud(args=["--token-life", "0"]) as c:
        same(c.call("probe").kind, "auth")
        c.call("probe")
        same(c.asked("exchange"), 4, "nothing that is over is kept")


def test_wrong_key():
    """another account's key is refused as such, and no word of it is shown"""
    with Cloud() as other, Cloud(secrets=other.fake.hello["provider"]["secrets"]) as c:
        r = c.call("probe")
        same(r.kind, "auth", r.text)
        assert "invalid_grant" in r.text and "InvalidSignature" in r.text, r.text
        same(c.call("list").kind, "auth")


def test_bad_credentials():
    """credentials that are none say what is wrong with them, and nothing is asked"""
    for text, word in ((b"", "no credentials"), (b"{}", "subject-credentials"), (b"nonsense", "subject-credentials"),
                       (b'{"subject-credentials":{"alg":"none","iss":"a","sub":"a","kid":"k","private-key":"x"}}', "RS256"),
                       (b'{"subject-credentials":{"iss":"a","sub":"b","kid":"k","private-key":"x"}}', "differ"),
                       (b'{"subject-credentials":{"iss":"a","sub":"a","kid":"k","private-key":"x"}}', "private key")):
        with Cloud(secrets={"credentials": text} if text else {}) as c:
            r = c.call("probe")
            same(r.kind, "auth", text)
            assert word in r.text, (text, r.text)
            same(c.asked("exchange"), 0)


def test_exchange_fails():
    """an exchange that fails for the moment is worth another try; one that is throttled says so"""
    with Cloud() as c:
        c.fake.fault("exchange", "code", code="UNAVAILABLE", status=503)
        same(c.call("probe").kind, "ok", "the host tries again")
        c.fake.post("tokens", {})
        c.fake.fault("exchange", "code", code="UNAVAILABLE", status=429, times=-1)
        same(c.call("probe").kind, "rate-limited")
        c.fake.calm()
        c.fake.fault("exchange", "code", code="UNAVAILABLE", status=500, times=-1)
        same(c.create().kind, "unavailable", "nothing was sent")
        same(c.truth(), [])


def test_fixed_token():
    """a fixed token is used as it is; a wrong one is auth, and is not shown"""
    with Cloud(secrets={"token": "canary-api-key-4711\n"}) as c:
        same(c.call("probe").kind, "ok")
        same(c.asked("exchange"), 0)
    with Cloud(secrets={"token": "canary-api-key-4712"}) as c:
        same(c.call("probe").kind, "auth")
    with Cloud(secrets={"token": "two words"}) as c:
        same(c.call("probe").kind, "auth")


def test_vm_token():
    """on a machine of Nebius the metadata service gives the token, until its end"""
    class Vm(Cloud):
        def start_plugin(self, key, options):
            return super().start_plugin(key, {**options, "vm_token": True, "secrets": {},
                                              "vm_token_url": self.fake.hello["vm_token_url"]})

    with Vm() as c:
        same([c.call("probe").kind for _ in range(2)], ["ok", "ok"])
        same((c.asked("exchange"), c.asked("metadata")), (0, 1))


def test_wrong_server():
    """a certificate that is not trusted, and a server without HTTP/2, are unavailable, not success"""
    with Cloud() as other, Cloud(ca_file=other.fake.hello["provider"]["ca_file"]) as c:
        same(c.call("probe").kind, "unavailable")
    with HttpServer(lambda r: (200, {}, {})) as plain, Cloud(endpoint=plain.url) as c:
        same(c.call("list").kind, "unavailable")
        same(c.create().kind in ("unavailable", "unknown"), True)


# ---- offers

def test_offers():
    """presets of every region, with advice where there is some and the list of platforms where not"""
    with Cloud() as c:
        r = c.call("list_offers", {"offer_ref": None, "disk_gib": 0})
        same((r.kind, how(r)), ("ok", every("complete")), r.text)
        got = {o["offer_ref"]: o for o in r.offers}
        o = got[H100]
        same((o["gpu_name"], o["gpu_count"], o["vram_mib"], o["ram_mib"], o["vcpus"]), ("H100 SXM", 1, 80 * 1024, 200 * 1024, 16))
        same((o["price_udollar"], o["price_disk_gib_udollar"]), (2950000 + 64 * GIB, GIB))
        same((o["disk_gib"], o["disk_max_gib"], o["disk_default_gib"]), (64, 8192, 100))
        same((o["scope"], o["region"], o["country"], o["cloud"], o["market"], o["arch"], o["interconnect"], o["kind"]),
             (NORTH, "eu-north1", "FI", "nebius", "on-demand", "x86_64", "sxm", "vm"))
        same((o["image"], o["driver"], o["availability"], o["stock"]), ("ubuntu24.04-cuda13.0", "580.95.05", "available", 8))
        same((got[SPOT]["price_udollar"], got[SPOT]["market"]), (1250000 + 64 * GIB, "spot"))
        assert "spot" in got[SPOT]["caps"] and "spot" not in o["caps"], o["caps"]
        eight = NORTH + "|gpu-h100-sxm|8gpu-128vcpu-1600gb|"
        same((got[eight + "on-demand"]["availability"], got[eight + "preemptible"]["availability"]), ("none", "low"))
        h200 = "|gpu-h200-sxm|1gpu-16vcpu-200gb|"
        same((got[NORTH + h200 + "on-demand"]["availability"], "stock" in got[NORTH + h200 + "preemptible"]), ("none", False))
        same(got[CENTRAL + h200 + "on-demand"]["availability"], "unknown")
        same((got[CENTRAL + h200 + "preemptible"]["availability"], got[CENTRAL + h200 + "preemptible"]["stock"]),
             ("available", 3), "a level that is new, with a number")
        gb = got[CENTRAL + "|gpu-gb300|4gpu-144vcpu-936gb|on-demand"]
        same((gb["arch"], gb["image"], gb["gpu_name"]), ("aarch64", "ubuntu24.04-cuda13.0-arm64", "GB300"))
        same(got[CENTRAL + "|gpu-rtx6000-a|1gpu-24vcpu-218gb|on-demand"]["gpu_name"], "RTX PRO 6000")
        cpu = got[CPU]
        same((cpu["gpu_count"], cpu.get("gpu_name"), cpu["image"], cpu["price_udollar"]),
             (0, None, "ubuntu24.04-driverless", 100000 + 64 * GIB))
        assert CPU.replace("on-demand", "preemptible") not in got, "not sold"


def test_new_region():
    """a region, a platform and a price that nobody knows are listed as far as they are known"""
    with Cloud() as c:
        got = offers(c)
        moon = got[MOON + "|gpu-h100-sxm|1gpu-16vcpu-200gb|on-demand"]
        same((moon["region"], moon.get("country"), moon["availability"], "stock" in moon), ("moon-base1", None, "unknown", False))
        new = got[MOON + "|gpu-x999-sxm|1gpu-1vcpu-1gb|on-demand"]
        same((new["gpu_name"], "price_udollar" in new), ("X999 SXM", False), "no price is not 0")
        spot = got[MOON + "|gpu-x999-sxm|1gpu-1vcpu-1gb|preemptible"]
        same("price_udollar" in spot, False, "a price of 0 is none")
        same(c.asked("platforms"), 1, "for the region without advice alone")


def test_no_advice():
    """without the right to read advice everything is listed all the same"""
    with Cloud() as c:
        catalog = c.fake.get("catalog")
        catalog["advice"] = False
        c.fake.post("catalog", catalog)
        got = offers(c)
        same(got[H100]["availability"], "unknown")
        same(got[H100]["price_udollar"], 2950000 + 64 * GIB)


def test_prices_cached():
    """each price is asked for once an hour; a re-quote asks anew; a calculator that fails costs prices only"""
    with Cloud() as c:
        first = offers(c)
        asked = c.asked("estimate")
        same(asked, len(first) + len(PROJECTS), "one a preset and market, and one a region for disks")
        offers(c)
        same(c.asked("estimate"), asked)
        catalog = c.fake.get("catalog")
        catalog["prices"] = [[p, n, "5.00", s] if p == "gpu-h100-sxm" else [p, n, o, s] for p, n, o, s in catalog["prices"]]
        c.fake.post("catalog", catalog)
        same(offers(c, H100)[H100]["price_udollar"], 5000000 + 64 * GIB)
    with Cloud() as c:
        c.fake.fault("estimate", "denied", times=-1)
        got = offers(c)
        same((len(got) > 10, [o for o in got.values() if "price_udollar" in o]), (True, []))
        same(c.asked("estimate") <= 3 * 2, True, "it is not asked again and again")
        same([l["level"] for l in c.plugin.logs if l["event"] == "nebius.prices.partial"] != [], True)


def test_requote():
    """one offer by its reference, and what is no reference"""
    with Cloud() as c:
        same(sorted(offers(c, SPOT)), [SPOT])
        same(c.call("list_offers", {"offer_ref": "a|b", "disk_gib": 0}).kind, "invalid")
        same(offers(c, NORTH + "|gpu-none|x|on-demand"), {})


def test_offers_one_region_sick():
    """a project that cannot be read is its own failure"""
    with Cloud(projects=[NORTH, "project-x00gone", MOON]) as c:
        r = c.call("list_offers", {"offer_ref": None, "disk_gib": 0})
        same((r.kind, how(r)), ("ok", {NORTH: "complete", "project-x00gone": "failed", MOON: "complete"}))
        same({o["scope"] for o in r.offers}, {NORTH, MOON})
        same([s["kind"] for s in r.scopes if s["how"] == "failed"], ["auth"])
    with Cloud(projects=["project-x00gone"]) as c:
        same(c.call("list_offers", {"offer_ref": None, "disk_gib": 0}).kind, "auth")


def test_offers_nonsense():
    """answers that are none fail their scope; shuffled and doubled rows change nothing"""
    with Cloud() as c:
        plain = offers(c)
        for kind in ("shuffle", "duplicate-rows"):
            c.fake.fault("images", kind, times=-1)
            c.fake.fault("advice", kind, times=-1)
            c.fake.fault("platforms", kind, times=-1)
            same(offers(c), plain, kind)
            c.fake.calm()
        for kind in ("garbage", "truncated", "huge", "bomb", "lost-reply"):
            c.fake.fault("images", kind, times=-1)
            r = c.call("list_offers", {"offer_ref": None, "disk_gib": 0}, deadline_ms=30000)
            same((r.kind, how(r)), ("unavailable", every("failed")), kind)
            c.fake.calm()
        c.fake.fault("projects", "garbage", times=-1)
        same(c.call("list_offers", {"offer_ref": None, "disk_gib": 0}).kind, "unavailable")


# ---- create

def test_create():
    """what is ordered is what was wished: spec, labels, keys, disk, address"""
    with Cloud() as c:
        data = base64.b64encode(b"#cloud-config\nssh_authorized_keys: [theirs]\npackages: [jq]\n").decode()
        r = c.create(disk_gib=200, user_data=data, user_data_kind="cloud")
        same(r.kind, "ok", r.text)
        m = r.machines[0]
        [t] = c.truth()
        same((m["id"], m["scope"], m["state"], m["price_udollar"], m["instance_type"], m["region"]),
             (t["id"], NORTH, "creating", 2950000 + 200 * GIB, "gpu-h100-sxm.1gpu-16vcpu-200gb", "eu-north1"))
        same(m["price_udollar"], t["price_udollar"])
        same(sorted(t["tags"]), ["gpubroker-lease=1", "gpubroker-owner=" + OWNER, "gpubroker-token=tok-1"])
        spec = t["request"]["spec"]
        same((spec["recovery_policy"], "preemptible" in spec, spec["hostname"]), ("FAIL", False, "lease-1"))
        disk = spec["boot_disk"]["managed_disk"]
        same((disk["spec"]["size_gibibytes"], disk["spec"]["type"], disk["name"]), ("200", "NETWORK_SSD", "lease-1-boot"))
        same(disk["labels"]["gpubroker-token"], "tok-1")
        same("packages: [jq]" in spec["cloud_init_user_data"], True)
        same(c.create(SPOT, token="tok-2", name="lease-2").kind, "ok")
        same("preemptible" in c.truth()[1]["request"]["spec"], True)
        same(c.truth()[0]["request"]["spec"]["network_interfaces"][0]["subnet_id"], "vpcsubnet-%s-2" % NORTH)


def test_create_same():
    """the same create finds its machine; another one under its name is a conflict"""
    with Cloud() as c:
        first = c.create().machines[0]
        same([c.create().machines[0]["id"] for _ in range(2)], [first["id"]] * 2)
        same(c.asked("create"), 1)
        same(c.create(CPU).kind, "conflict", "same token, other machine")
        same(c.create(token="tok-2").kind, "conflict", "same name, other token")
        same(len(c.truth()), 1)
        c.fake.fault("by-name", "not-found")
        same(c.create().machines[0]["id"], first["id"], "its key is answered with the same operation")
        c.fake.fault("by-name", "not-found")
        r = c.create(token="tok-3")
        same(r.kind, "conflict", "the name is taken: %s" % r.text)
        same(len(c.truth()), 1)


def test_create_refused():
    """each refusal is its kind, and made nothing"""
    def more(fault, r):
        if fault["kind"] == "throttled":
            same(r.retry_after_ms, 7000)
        if fault["kind"] == "bad-request":
            same((r.code, "preset" in r.text), ("BadRequest", True), r.text)
        if fault["kind"] == "quota":
            same((r.code, "limit of 8" in r.text), ("QuotaFailure", True), r.text)

    with Cloud() as c:
        check_refusals(c, [
            ({"kind": "no-stock"}, "capacity"), ({"kind": "quota"}, "quota"), ({"kind": "throttled", "retry_after": 7}, "rate-limited"),
            ({"kind": "bad-request"}, "invalid"), ({"kind": "denied"}, "auth"),
            ({"kind": "code", "code": "RESOURCE_EXHAUSTED"}, "capacity"),
            ({"kind": "code", "code": "RESOURCE_EXHAUSTED", "message": "Quota limit exceeded"}, "quota"),
            ({"kind": "code", "code": "FAILED_PRECONDITION", "message": "not enough capacity"}, "capacity"),
            ({"kind": "not-found"}, "invalid"), ({"kind": "code", "code": "UNIMPLEMENTED"}, "unsupported"),
            ({"kind": "code", "code": "UNAVAILABLE"}, "unknown"), ({"kind": "broken"}, "unknown"),
            ({"kind": "code", "code": "ABORTED"}, "unknown"), ({"kind": "code", "code": "DEADLINE_EXCEEDED"}, "unknown")], more)


def test_create_in_doubt():
    """whatever is answered after the effect, find adopts exactly one machine"""
    with Cloud() as c:
        check_doubts(c, [{"kind": "lost-reply"}, {"kind": "code-after", "code": "UNAVAILABLE"}, {"kind": "garbage"},
                         {"kind": "truncated"}, {"kind": "code-after", "code": "INTERNAL"}, {"kind": "huge"},
                         {"kind": "hang", "seconds": 3}])
        for i in range(7):
            again = c.create(token="tok-%d" % i, name="lease-%d" % i)
            same((again.kind, len(again.machines)), ("ok", 1), "sent again, it is found")
        same(len(c.truth()), 7)
    with Cloud() as c:
        check_lost(c)


def test_error_after_headers():
    """an error after the headers carries the cloud's id of the request; one that is all there is has none"""
    with Cloud() as c:
        c.fake.fault("create", "code-after", code="INTERNAL", message="100% \u00fc")
        r = c.create()
        same((r.kind, r.code, "100% \u00fc" in r.text, r.request_id[:4]), ("unknown", "INTERNAL", True, "req-"), r.text)
        c.fake.fault("info", "code", code="PERMISSION_DENIED", times=-1)
        r = c.get(c.find().machines[0])
        same((r.kind, r.code, r.request_id), ("auth", "PERMISSION_DENIED", ""))


def test_create_cancelled():
    """a create that is cancelled in the middle is unknown, and its machine is found"""
    with Cloud() as c:
        c.fake.fault("create", "hang", seconds=3)
        n = c.plugin.start("create", {"offer_ref": H100, "max_price_udollar": 10 ** 9, "token": "tok-1", "name": "lease-1",
                                      "tags": {"gpubroker-token": "tok-1"}, "ssh_public_keys": [PUBLIC_KEY]})
        c.fake.get("wait?status=STOPPED&count=1&timeout=10")
        c.plugin.cancel(n)
        r = c.keep(c.plugin.wait(n))
        same((r.kind, r.machines), ("unknown", []))
        same(len(c.find().machines), 1)


def test_create_killed():
    """a plugin that dies in the middle of a create leaves one machine, and the next one finds it"""
    with Cloud() as c:
        c.fake.fault("create", "hang", seconds=3)
        c.plugin.start("create", {"offer_ref": H100, "max_price_udollar": 10 ** 9, "token": "tok-1", "name": "lease-1",
                                  "tags": {"gpubroker-token": "tok-1"}, "ssh_public_keys": [PUBLIC_KEY]})
        c.fake.get("wait?status=STOPPED&count=1&timeout=10")
        c.plugin.kill()
        c.plugin.close()
        c.plugin = c.start_plugin(None, {})
        same(len(c.find().machines), 1)
        r = c.create(tags={"gpubroker-token": "tok-1"})
        same((r.kind, len(r.machines), len(c.truth())), ("ok", 1, 1), r.text)


def test_create_checks():
    """what needs no cloud to be refused is not asked; a price above the cap is capacity"""
    with Cloud() as c:
        for args, kind in (({"ref": "nonsense"}, "invalid"), ({"ssh_public_keys": []}, "invalid"), ({"disk_gib": 9000}, "invalid"),
                           ({"ports": [{"proto": "tcp", "from": 80, "to": 80, "cidr": "0.0.0.0/0"}]}, "unsupported"),
                           ({"tags": {"UPPER": "x"}}, "invalid"),
                           ({"user_data": base64.b64encode(b"what is this").decode(), "user_data_kind": "cloud"}, "invalid"),
                           ({"user_data": base64.b64encode(b"#!/bin/sh\n\xff\xfe").decode(), "user_data_kind": "script"}, "invalid")):
            same(c.create(**args).kind, kind, args)
        same((c.asked("exchange"), c.asked("create")), (0, 0))
        r = c.create(max_price_udollar=2950000)
        same((r.kind, "2.960000" in r.text or "2.956400" in r.text), ("capacity", True), r.text)
        same(c.create(NORTH.replace("north", "nope") + "|gpu-h100-sxm|1gpu-16vcpu-200gb|on-demand").kind, "auth")
        same(c.create(MOON + "|gpu-x999-sxm|1gpu-1vcpu-1gb|on-demand").kind, "capacity", "no price, no machine")
        same(c.create(image="ubuntu24.04-cuda12").kind, "ok", "another image that fits")
        same(c.create(image="windows", token="t2", name="l2").kind, "invalid")
        same(c.truth()[0]["request"]["spec"]["boot_disk"]["managed_disk"]["spec"]["source_image_family"],
             {"image_family": "ubuntu24.04-cuda12"})


def test_many_creates():
    """creates at once"""
    with Cloud() as c:
        start_creates(c, 8)
        same(len(c.truth()), 8)


# ---- machines

def test_life():
    """stopped and reconciling, starting, running with its address, then gone with its disk"""
    with Cloud() as c:
        c.fake.post("config", {"delays": {"STOPPED": 600, "STARTING": 600}})
        m = c.create().machines[0]
        r = c.get(m)
        same((r.kind, r.machines[0]["state"], r.machines[0]["raw_state"]), ("ok", "creating", "STOPPED, reconciling"))
        c.fake.post("advance", {"seconds": 700})
        same(c.get(m).machines[0]["raw_state"], "STARTING, reconciling")
        c.fake.post("advance", {"seconds": 700})
        up = c.get(m).machines[0]
        same((up["state"], up["address"], up["ssh_user"], up["ssh_port"]), ("running", c.truth()[0]["node"]["ip"], "ubuntu", 22))
        same(up["tags"]["gpubroker-token"], "tok-1")
        same([(x["kind"], x["id"]) for x in up["resources"]], [("disk", c.fake.get("disks")[0]["id"])])
        same(c.remove(up).kind, "ok")
        same(c.remove(up).kind, "ok", "again")
        c.wait("gone")
        same(c.get(up).kind, "not-found")
        same(c.remove(up).kind, "ok", "and when it is gone")
        same(c.fake.get("disks"), [])


def test_late_refusal():
    """no capacity after it was accepted: an error of that kind, in the operation or in the machine alone"""
    for where in ("operation", "instance"):
        with Cloud() as c:
            c.fake.post("faults", {"on": "create", "kind": "late-error", "seconds": 0, "details": "no room", "in": where})
            m = c.create().machines[0]
            c.wait("FAILED")
            r = c.get(m).machines[0]
            same((r["state"], r["fail_kind"]), ("error", "capacity"), where)
            same(("no room" in r["fail_text"]) == (where == "operation"), True, r["fail_text"])
            same(c.remove(r).kind, "ok")
            c.wait("gone")
            same((c.get(m).kind, c.fake.get("disks")), ("not-found", []))


def test_preempted():
    """a machine that ran and was taken back is stopped, not gone; in a list, too"""
    with Cloud() as c:
        m = c.running(SPOT)
        c.fake.post("machines/" + m["id"], {"do": "preempt"})
        r = c.get(m).machines[0]
        same((r["state"], r["fail_kind"], r.get("address")), ("error", "capacity", None))
        c.fake.post("machines/" + m["id"], {"do": "status", "status": 77})
        same([(x["state"], x["raw_state"]) for x in c.call("list").machines], [("unknown", "state 77")], "a state that is new")


def test_operation_purged():
    """a create operation that nobody remembers is no reason to doubt the machine"""
    with Cloud() as c:
        c.fake.post("config", {"delays": {"STOPPED": 600}})
        m = c.create().machines[0]
        c.fake.fault("operation", "not-found", times=-1)
        same(c.get(m).machines[0]["state"], "creating")
        c.fake.fault("info", "set", fields={"status.reconciling": False})
        same(c.get(m).machines[0]["state"], "creating", "young, and not known to have failed")


def test_list():
    """everything with our mark in every project over many pages, and nothing of anybody else's"""
    with Cloud(args=["--page-max", "2"]) as c:
        for i in range(5):
            c.create(CPU, token="t%d" % i, name="n%d" % i)
        c.create(CENTRAL + "|gpu-h200-sxm|1gpu-16vcpu-200gb|on-demand", token="t9", name="n9")
        c.fake.post("machines", {"name": "theirs"})
        c.fake.fault("list", "duplicate-rows", times=2)
        c.fake.fault("list", "shuffle", times=-1)
        r = c.call("list")
        same((r.kind, how(r)), ("ok", every("complete")), r.text)
        same(sorted(m["name"] for m in r.machines), ["n0", "n1", "n2", "n3", "n4", "n9"])
        same({m["name"]: m["scope"] for m in r.machines}["n9"], CENTRAL)
        same(c.find("t9").machines[0]["region"], "us-central1")
        same(how(c.find("t9", scope=NORTH)), {NORTH: "complete"})
        same(c.find("t9", scope=NORTH).machines, [])


def test_list_price():
    """once prices are known, machines in a list have theirs"""
    with Cloud() as c:
        c.create(disk_gib=100)
        same("price_udollar" in c.call("list").machines[0], True, "its create asked for it")
        same(c.call("list").machines[0]["price_udollar"], c.truth()[0]["price_udollar"])


def test_list_failures():
    """a region that fails is failed; rows that cannot be read make a list partial; nothing is absent by mistake"""
    with Cloud() as c:
        c.create()
        c.fake.fault("list", "denied", skip=1)
        r = c.call("list")
        same((r.kind, how(r)), ("ok", every("complete", **{CENTRAL: "failed"})))
        same(len(r.machines), 1)
        c.fake.fault("list", "set", fields={"metadata.id": ""})
        same(how(c.call("list"))[NORTH], "failed", "a row without an id")
        c.fake.fault("disks", "garbage")
        same(how(c.call("list"))[NORTH], "partial", "its machines are known, its disks are not")
        for kind in ("garbage", "huge", "bomb", "truncated", "code"):
            c.fake.fault("list", kind, times=-1, code="UNAVAILABLE")
            r = c.call("list", deadline_ms=30000)
            same((r.kind, how(r), r.machines), ("unavailable", every("failed"), []), kind)
            c.fake.calm()
        c.fake.fault("list", "throttled", times=-1, retry_after=4)
        r = c.call("list")
        same((r.kind, r.retry_after_ms), ("rate-limited", 4000))


def test_unavailable_retried():
    """a read that meets a hiccup is asked again"""
    with Cloud() as c:
        m = c.running()
        c.fake.fault("info", "code", code="UNAVAILABLE", times=2)
        same(c.get(m).machines[0]["state"], "running")
        c.fake.fault("info", "lost-reply")
        same(c.get(m).kind, "ok")


def test_not_found_but_listed():
    """a 404 that the list contradicts proves nothing"""
    with Cloud() as c:
        m = c.running()
        c.fake.fault("info", "not-found", times=-1)
        same(c.get(m).kind, "unavailable")
        c.fake.calm()
        c.fake.post("machines/" + m["id"], {"do": "vanish"})
        c.fake.fault("list", "code", code="UNAVAILABLE", times=-1)
        same(c.get(m).kind, "unavailable", "nor does one without a list")
        c.fake.calm()
        same(c.get(m).kind, "not-found")


def test_remove_refused():
    """a delete that is refused for now is asked for again; a lost answer is unknown"""
    with Cloud() as c:
        m = c.running()
        for fault, kind in (({"kind": "code", "code": "FAILED_PRECONDITION"}, "unavailable"), ({"kind": "code", "code": "ABORTED"}, "unavailable"),
                            ({"kind": "denied"}, "auth"), ({"kind": "throttled"}, "rate-limited"), ({"kind": "lost-reply"}, "unknown")):
            c.fake.post("faults", dict(fault, on="delete"))
            same(c.remove(m).kind, kind, fault)
        same(c.remove(m).kind, "ok", "it is being deleted already")
        c.wait("gone")
        same(c.call("get", {"ref": {"id": "computeinstance-none", "scope": NORTH, "name": "x"}}).kind, "not-found")
        same(c.call("get", {"ref": {"id": "computeinstance-none", "name": "x"}}).kind, "not-found", "in no project")
        same(c.call("remove", {"ref": {"id": "computeinstance-none", "scope": NORTH, "name": "x"}}).kind, "ok")


# ---- disks

def test_disk_stays():
    """a boot disk that outlives its machine keeps it from being over, and goes with the next remove"""
    with Cloud(args=["--keep-disks"]) as c:
        m = c.running()
        up = c.get(m).machines[0]
        ref = Provider.ref(up, token="tok-1")
        same(c.call("remove", ref).kind, "ok")
        c.wait("gone")
        r = c.call("get", ref)
        same((r.kind, r.machines[0]["state"]), ("ok", "deleting"))
        assert "computedisk" in r.machines[0]["raw_state"], r.machines
        same(c.call("remove", ref).kind, "ok")
        same((c.call("get", ref).kind, c.fake.get("disks")), ("not-found", []))


def test_stray_disks():
    """disks of ours without a machine are listed with their price and can be removed; others are left alone"""
    mark = {"gpubroker-owner": OWNER, "gpubroker-lease": "7", "gpubroker-token": "tok-7"}
    with Cloud() as c:
        offers(c)  # prices
        c.running()
        stray = c.fake.post("disks", {"labels": mark, "gib": 100})["id"]
        c.fake.post("disks", {"labels": mark, "age_s": 60, "name": "young"})
        c.fake.post("disks", {"labels": {"a": "b"}, "name": "theirs"})
        [m] = [m for m in c.call("list").machines if m["instance_type"] == "disk"]
        same((m["id"], m["state"], m["price_udollar"], m["tags"]), (stray, "stopped", 100 * GIB, mark))
        same([x["id"] for x in c.find("tok-7").machines], [stray])
        same(c.get(m).machines[0]["id"], stray)
        same(c.remove(m).kind, "ok")
        same((c.get(m).kind, c.remove(m).kind), ("not-found", "ok"))
        same(sorted(d["name"] for d in c.fake.get("disks")), ["lease-1-boot", "theirs", "young"])


def test_manual():
    """the manual page and the plugin agree about options"""
    check_manual("nebius")


tap(globals())
