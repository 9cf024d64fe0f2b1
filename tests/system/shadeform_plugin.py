"""shadeform_plugin.py - the Shadeform plugin in its real host, against the fake cloud with all its faults"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
import shadeform_catalog
from plugin_cloud import (KEY, PUBLIC_KEY, PluginCloud, check_doubts, check_lost, check_manual, check_refusals, offers,
                          same, start_creates)
from provider_harness import OWNER, Provider, Skip, tap

CPU = "hyperstack|oslo-norway-1|cpu_mini|on_demand|ubuntu22.04"
SPOT = "hyperstack|montreal-canada-2|A100_80G|spot|ubuntu22.04_cuda12.6_shade_os"


class Cloud(PluginCloud):
    name, offer, secrets = "shadeform", CPU, (KEY, "PRIVATE KEY", "canary")


# ---- catalog

def test_catalog():
    """the whole catalog, on-demand and spot apart"""
    with Cloud() as c:
        got = offers(c)
        want = sum(len(row["availability"]) for row in shadeform_catalog.rows()["instance_types"])
        same(len(got), want, "offers")
        spot = got[SPOT]
        same((spot["market"], spot["price_udollar"]), ("spot", 985000))
        assert "spot" in spot["caps"]
        plain = got[SPOT.replace("|spot|", "|on_demand|")]
        same((plain["market"], plain["price_udollar"]), ("on-demand", 1400000))
        assert "spot" not in plain["caps"]
        same((plain["gpu_name"], plain["gpu_count"], plain["vram_mib"], plain["ram_mib"], plain["disk_gib"]),
             ("A100_80G", 1, 80 * 1024, 120 * 1024, 850))
        same((plain["cloud"], plain["fabric"], plain["country"], plain["scope"]),
             ("hyperstack", "hyperstack", "CA", "account"))
        same((plain["boot_min_ms"], plain["boot_max_ms"]), (180000, 900000))


def test_kinds():
    """every deployment type, CPU machines, ARM, sold out"""
    with Cloud() as c:
        by = {(o["cloud"], o["instance_type"], o["region"]): o for o in offers(c).values() if o["market"] == "on-demand"}
        box = by["runpod", "RTX4090", "any"]
        same(box["kind"], "container")
        assert "hosts-kubernetes" not in box["caps"]
        metal = by["excesssupply", "H100_sxm5x8", "wichita-usa-1"]
        same((metal["kind"], "hosts-kubernetes" in metal["caps"]), ("baremetal", True))
        cpu = by["hyperstack", "cpu_mini", "oslo-norway-1"]
        same((cpu["gpu_count"], "gpu_name" in cpu, cpu["price_udollar"]), (0, False, 350000))
        same(by["lambdalabs", "GH200", "wichita-usa-1"]["arch"], "aarch64")
        same(by["nebius", "H200", "paris-france-2"]["arch"], "x86_64")
        same(by["hyperstack", "H100x8_nvlink", "montreal-canada-2"]["availability"], "none")
        same(by["hyperstack", "H100x8_nvlink", "montreal-canada-2"]["interconnect"], "nvlink")


def test_requote():
    """one offer is quoted again under the same reference"""
    with Cloud() as c:
        for ref in offers(c):
            same(list(offers(c, ref)), [ref])
        same(offers(c, CPU.replace("oslo", "nowhere")), {})
        same(offers(c, CPU.replace("ubuntu22.04", "ubuntu16.04")), {}, "an image that is not offered")
        same(c.call("list_offers", {"offer_ref": "nonsense"}).kind, "invalid")


def test_odd_rows():
    """odd rows never break a listing"""
    rows = shadeform_catalog.rows()["instance_types"][:2]
    good = dict(rows[1])

    def bent(**more):
        return dict(json.loads(json.dumps(good)), **more)

    def seat(**more):
        return bent(cloud="odd", availability=[dict(good["availability"][0], **more)])

    odd = [None, 7, "x", [], {}, {"cloud": None}, bent(availability=None), bent(availability=[None, 3, {}]),
           bent(configuration=None), bent(cloud="a|b"), bent(cloud="x" * 600), bent(shade_instance_type=None),
           seat(rental_type="weekly"), seat(region=None), seat(rental_type=None, hourly_price="1.00")]
    unpriced = [bent(cloud="p%d" % i, hourly_price=p, availability=good["availability"][:1]) for i, p in enumerate((None, "205", 2.05, 0, -1, 10 ** 15))]
    unpriced += [seat(rental_type="spot", hourly_price=p, region="r%d" % i)
                 for i, p in enumerate((None, "", "-1", "1e3", "nan", 150))]
    sparse = bent(cloud="sparse", deployment_type="lambda", boot_time=None,
                  configuration={"gpu_type": None, "num_gpus": None, "os_options": None})
    with Cloud(lawful=False) as c:
        c.fake.post("catalog", {"instance_types": rows + odd + unpriced + [sparse]})
        got = offers(c)
        named = [o for o in got.values() if o["cloud"] == "hyperstack"]
        same(len(named), len(rows[0]["availability"]) + len(good["availability"]), "good rows")
        for o in got.values():
            if o["cloud"].startswith("p") or o["market"] == "spot" and o["cloud"] == "odd":
                assert "price_udollar" not in o, o
        strange = next(o for o in got.values() if o["cloud"] == "sparse")
        assert "gpu_count" not in strange and "hosts-kubernetes" not in strange["caps"], strange
        assert any(l["event"] == "shadeform.catalog.odd" for l in c.plugin.logs), c.plugin.logs


def test_lists_that_lie():
    """repeated, shuffled and unreadable catalogs"""
    with Cloud() as c:
        whole = offers(c)
        c.fake.fault("types", "duplicate-rows")
        r = c.call("list_offers", {"offer_ref": None})
        same(len(r.offers), len(whole), "a repeated row is one offer")
        c.fake.fault("types", "shuffle")
        same(offers(c), whole)
        for kind in ("nulls", "garbage", "truncated", "short-body", "broken", "drop", "throttled", "huge"):
            c.fake.fault("types", kind, times=-1, bytes=10 << 20)
            r = c.call("list_offers", {"offer_ref": None}, deadline_ms=500)
            same((len(r.offers), [s["how"] for s in r.scopes]), (0, ["failed"]), kind)
            assert r.kind in ("unavailable", "rate-limited", "cancelled"), "%s: %r" % (kind, r)
            c.fake.calm()


# ---- one machine

def test_rent():
    """a create carries everything, the machine walks to running, a remove ends it"""
    script = "#!/bin/sh\necho hi\n"
    import base64
    with Cloud() as c:
        r = c.create(SPOT, user_data=base64.b64encode(script.encode()).decode(), user_data_kind="script",
                     not_after_ms=4102444800001)
        same(r.kind, "ok", r.text)
        m = r.machines[0]
        same((m["state"], m["scope"], m["price_udollar"]), ("creating", "account", 985000))
        sent = c.truth()[0]["request"]
        same(sent["rental_type"], "spot")
        same(sent["shade_cloud"], True)
        same(sorted(sent["tags"]), sorted(["gpubroker-owner=" + OWNER, "gpubroker-lease=1", "gpubroker-token=tok-1"]))
        same(sent["auto_delete"], {"date_threshold": "2100-01-01T00:00:01Z"})
        same(base64.b64decode(sent["launch_configuration"]["script_configuration"]["base64_script"]).decode(), script)
        key = next(k for k in c.fake.get("keys") if k["id"] == sent["ssh_key_id"])
        same(key["public_key"], PUBLIC_KEY)
        c.wait("active")
        now = c.get(m).machines[0]
        same((now["state"], now["ssh_port"], now["ssh_user"], now["price_udollar"]), ("running", 22, "shadeform", 985000))
        assert now["address"].startswith("203.0.113."), now
        same(now["not_after_ms"], 4102444801000)
        same(now["tags"]["gpubroker-token"], "tok-1")
        same(c.remove(m).kind, "ok")
        same(c.get(m).machines[0]["state"], "deleting")
        c.wait("gone")
        same(c.get(m).kind, "not-found")
        same(c.remove(m).kind, "ok", "a machine that is gone can be removed")


def test_price_cap():
    """a machine that became dearer is refused before anything is sent"""
    with Cloud() as c:
        r = c.create(CPU, max_price_udollar=349999)
        same(r.kind, "capacity")
        assert "0.350000" in r.text and "0.349999" in r.text, r.text
        same(c.create(SPOT, max_price_udollar=984999).kind, "capacity")
        same(c.fake.get("counters").get("create", 0), 0)
        same(c.create(CPU, max_price_udollar=350000).kind, "ok")


def test_refused_here():
    """what needs no answer of the cloud is refused without asking it"""
    with Cloud() as c:
        same(c.create("nonsense").kind, "invalid")
        same(c.create(CPU, ssh_public_keys=[]).kind, "invalid")
        same(c.create(CPU, user_data="I2Nsb3VkLWNvbmZpZwo=", user_data_kind="cloud").kind, "unsupported")
        same(c.create(CPU, ports=[{"proto": "tcp", "from": 80, "to": 80, "cidr": "0.0.0.0/0"}]).kind, "unsupported")
        same(c.create(CPU, image="windows").kind, "invalid")
        for bad in ("", "a/../b", "x?y", "../instances"):
            same(c.call("get", {"ref": {"id": bad, "scope": "account"}}).kind, "invalid", bad)
            same(c.call("remove", {"ref": {"id": bad, "scope": "account"}}).kind, "invalid", bad)
        same([r for r in c.fake.get("requests") if r["method"] == "POST"], [])


REFUSALS = [
    ({"kind": "out-of-stock"}, "capacity"),
    ({"kind": "no-money"}, "quota"),
    ({"kind": "unauthorized"}, "auth"),
    ({"kind": "forbidden"}, "auth"),
    ({"kind": "throttled", "retry_after": 1}, "rate-limited"),
    ({"kind": "status", "status": 402, "body": {"message": "Payment Required"}}, "quota"),
    ({"kind": "status", "status": 403, "body": {"error": {"message": "your wallet is empty"}}}, "quota"),
    ({"kind": "status", "status": 409, "body": {"error": {"code": "OUT_OF_STOCK"}}}, "capacity"),
    ({"kind": "status", "status": 409, "body": "no JSON"}, "capacity"),
    ({"kind": "status", "status": 400, "body": {"message": "name is too long"}}, "invalid"),
    ({"kind": "status", "status": 422, "body": None}, "invalid"),
    ({"kind": "status", "status": 404, "body": None}, "invalid"),
    ({"kind": "status", "status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "unavailable"),
]


def test_refusals():
    """each refusal of a create has its kind, and made nothing"""
    def look(fault, r):
        if "retry_after" in fault:
            same(r.retry_after_ms, 1000)
        elif fault["kind"] == "out-of-stock":
            same((r.code, r.http_status), ("OUT_OF_STOCK", 409))
    with Cloud() as c:
        check_refusals(c, REFUSALS, look)


def test_doubt():
    """a create without a definitive answer is unknown, is sent once, and find adopts exactly one machine"""
    doubts = [{"kind": "lost-reply"}, {"kind": "bad-gateway"}, {"kind": "garbage"}, {"kind": "truncated"},
              {"kind": "short-body"}, {"kind": "nulls"}, {"kind": "huge"}, {"kind": "hang", "seconds": 3},
              {"kind": "reply", "status": 200, "body": {"id": "../x"}},
              {"kind": "reply", "status": 504, "body": "<html>"}]
    with Cloud() as c:
        check_doubts(c, doubts)


def test_lost():
    """a create that left nothing is unknown too; a machine that shows late is found once it shows"""
    with Cloud() as c:
        check_lost(c)


def test_refused_late():
    """refused after it was accepted, reclaimed, stuck in a status that nobody knows"""
    with Cloud() as c:
        c.fake.fault("create", "late-error", details="Out of stock in region")
        m = c.create().machines[0]
        c.wait("error")
        now = c.get(m).machines[0]
        same((now["state"], now["fail_kind"], now["fail_text"]), ("error", "capacity", "Out of stock in region"))
        m = c.create(SPOT, token="tok-2").machines[0]
        c.wait("active")
        c.fake.post("machines/" + m["id"], {"do": "preempt"})
        now = c.get(m).machines[0]
        same((now["state"], now["fail_kind"], now["fail_text"]), ("deleting", "capacity", "preempted"))
        m = c.create(token="tok-3").machines[0]
        c.fake.post("machines/" + m["id"], {"do": "status", "status": "hibernating"})
        same(c.get(m).machines[0]["state"], "unknown")
        same([x["raw_state"] for x in c.find("tok-3").machines], ["hibernating"])
        c.fake.post("machines/" + m["id"], {"do": "status", "status": "deleted"})
        same(c.get(m).kind, "not-found")


def test_kill_switch():
    """the cloud ends the machine at not_after, which can be moved and taken away"""
    with Cloud() as c:
        now_ms = c.fake.get("state")["now_ms"]
        m = c.create(not_after_ms=now_ms + 3600 * 1000).machines[0]
        c.wait("active")
        same(c.call("set_not_after", dict(Provider.ref(m), ms=now_ms + 7200 * 1000)).kind, "ok")
        c.fake.post("advance", {"seconds": 3700})
        same(c.get(m).machines[0]["state"], "running")
        c.fake.post("advance", {"seconds": 3700})
        c.wait("gone")
        same(c.get(m).kind, "not-found")
        m = c.create(token="tok-2", not_after_ms=now_ms + 10 ** 8).machines[0]
        same(c.call("set_not_after", dict(Provider.ref(m), ms=0)).kind, "ok")
        same(c.truth()[-1]["kill_at_ms"], None)
        for fault, kind in (("lost-reply", "unknown"), ("not-found", "not-found"), ("throttled", "rate-limited")):
            c.fake.fault("update", fault)
            same(c.call("set_not_after", dict(Provider.ref(m), ms=now_ms + 10 ** 8)).kind, kind, fault)


# ---- reads that fail, and absence

def test_no_absence():
    """no failed, partial or foreign answer proves that a machine is gone"""
    with Cloud() as c:
        m = c.create().machines[0]
        for kind in ("nulls", "garbage", "truncated", "short-body", "broken", "drop", "throttled", "unauthorized",
                     "forbidden", "not-found", "huge"):
            c.fake.fault("list", kind, times=-1)
            r = c.call("list", {}, deadline_ms=500)
            same(len(r.machines), 0, kind)
            assert [s["how"] for s in r.scopes] in (["failed"], ["partial"]), "%s: %r" % (kind, r.scopes)
            assert r.kind not in ("not-found", "unknown", "internal"), r
            c.fake.calm()
            c.fake.fault("info", kind, times=-1)
            r = c.call("get", Provider.ref(m), deadline_ms=500)
            same(r.machines, [], kind)
            assert r.kind not in ("ok", "not-found", "unknown", "internal"), "%s: %r" % (kind, r)
            c.fake.calm()
        c.fake.fault("list", "set", fields={"id": ""})
        same([s["how"] for s in c.call("list").scopes], ["partial"])
        c.fake.fault("info", "set", fields={"id": "another"})
        same(c.get(m).kind, "unavailable", "an answer about something else")


def test_no_tags():
    """a list that lost its tags proves no absence of what has the name"""
    with Cloud(lawful=False) as c:
        c.fake.post("machines", {"name": "other", "tags": []})
        c.fake.fault("create", "lost-reply")
        same(c.create().kind, "unknown")
        for fields in ({"tags": None}, {"tags": None, "name": None}):
            c.fake.fault("list", "set", fields=fields)
            r = c.find()
            same((r.kind, r.machines, [s["how"] for s in r.scopes]), ("ok", [], ["partial"]), fields)
        c.fake.fault("list", "set", fields={"tags": None})
        r = c.call("find", {"token": "tok-2", "name": "lease-2", "scope": None})
        same([s["how"] for s in r.scopes], ["complete"], "another name is no doubt")
        same(len(c.find().machines), 1)


def test_gone():
    """a machine is gone when the cloud says so twice: 404 and a whole list without it"""
    with Cloud() as c:
        m = c.create().machines[0]
        c.fake.fault("info", "not-found")
        same(c.get(m).kind, "unavailable", "the list still has it")
        c.fake.post("machines/" + m["id"], {"do": "vanish"})
        same(c.get(m).kind, "not-found")


def test_remove():
    """removals: doubt is unknown, absence is fine"""
    with Cloud() as c:
        m = c.create().machines[0]
        for kind, want in (("drop", "unknown"), ("broken", "unknown"), ("unauthorized", "auth"), ("throttled", "rate-limited"),
                           ("not-found", "ok"), ("lost-reply", "unknown")):
            c.fake.fault("delete", kind)
            same(c.remove(m).kind, want, kind)
        c.wait("gone")
        same(c.remove(m).kind, "ok")


# ---- the account of several

def test_foreign():
    """machines of others are never shown nor touched"""
    with Cloud() as c:
        for tags in (["mine"], [], ["owner=x", "gpubroker"], ["gpubroker-owner"]):
            c.fake.post("machines", {"name": "lease-1", "tags": tags})
        c.create()
        r = c.call("list")
        same([m["tags"]["gpubroker-token"] for m in r.machines], ["tok-1"])
        same(len(c.find("tok-1").machines), 1)
        same(c.find("tok-other").machines, [], "a name alone does not make it ours")
        same(len(c.call("find", {"token": "", "name": "lease-1", "scope": None}).machines), 5, "by name")
        other = c.fake.post("machines", {"name": "b", "tags": ["gpubroker-owner=another", "gpubroker-lease=9"]})["id"]
        same(sorted(m["tags"]["gpubroker-owner"] for m in c.call("list").machines), sorted(["another", OWNER]))
        c.remove(r.machines[0])
        posts = [q["path"] for q in c.fake.get("requests") if q["endpoint"] in ("delete", "update", "restart")]
        same(posts, ["/v1/instances/%s/delete" % r.machines[0]["id"]])
        assert not any(m["ended_ms"] for m in c.fake.get("machines") if m["foreign"]), other


def test_keys():
    """one key in the account after ten creates at once, whatever happens to the answers"""
    with Cloud() as c:
        c.fake.fault("keys", "delay", seconds=0.3, times=3)
        start_creates(c, 10)
        same(len(c.fake.get("keys")), 2, "the account's own and ours")
        same(len({m["request"]["ssh_key_id"] for m in c.truth()}), 1)
    for kind in ("lost-reply", "bad-gateway", "garbage", "nulls", "hang"):
        with Cloud() as c:
            c.fake.fault("key-add", kind, seconds=0.5)
            r = c.create()
            same((kind, r.kind), (kind, "ok"), r.text)
            same(len(c.fake.get("keys")), 2, kind)
    with Cloud() as c:
        c.fake.fault("key-add", "broken")
        assert c.create().kind in ("unavailable", "unknown")
        same(c.fake.get("counters").get("create", 0), 0, "no key, no machine")


def test_credentials():
    """a wrong key is an auth failure everywhere, and is never shown"""
    with Cloud(key="canary-wrong-key") as c:
        same(c.call("probe").kind, "auth")
        same(c.call("list_offers", {"offer_ref": None}).kind, "auth")
        same(c.call("list").kind, "auth")
        same(c.create().kind, "auth")
    with Cloud() as c:
        r = c.call("probe")
        same(r.kind, "ok")
        c.fake.fault("list", "status", status=400, body={"message": "no such key: " + KEY})
        assert KEY not in c.call("probe").text
    p = Provider("shadeform", options={}, ready=False)
    same(p.ready["kind"], "invalid")
    assert "api_key" in p.ready["text"], p.ready
    p.close()


def test_spec():
    """all this traffic keeps to the cloud's own OpenAPI file"""
    with Cloud() as c:
        why_not = c.fake.get("state")["spec"]
        if why_not:
            raise Skip(why_not)
        offers(c)
        m = c.create(SPOT, not_after_ms=4102444800000).machines[0]
        c.wait("active")
        c.get(m), c.find(), c.call("list"), c.remove(m)


def test_manual():
    """the manual names exactly the options that the plugin has"""
    check_manual("shadeform")


if __name__ == "__main__":
    tap(globals())
