"""hyperstack_plugin.py - the Hyperstack plugin in its real host, against the fake cloud with all its faults"""
import base64
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
import hyperstack_catalog
from plugin_cloud import (KEY, PUBLIC_KEY, PluginCloud, check_doubts, check_lost, check_manual, check_refusals, how, offers,
                          same, start_creates)
from provider_harness import OWNER, Provider, Skip, tap

CPU, H100, A6000 = "NORWAY-1|n1-cpu-small", "CANADA-1|n3-H100x1", "NORWAY-1|n3-RTX-A6000x1"
REGIONS = sorted(name for name, _ in hyperstack_catalog.REGIONS)
IP = 6700


class Cloud(PluginCloud):
    name, offer = "hyperstack", CPU

    def judge(self, counters):
        assert counters.get("power", 0) == 0, "a GET that stops machines was sent"

    def running(self, *args, **more):
        """A machine that is up, and has its address."""
        m = self.create(*args, **more).machines[0]
        self.wait("ACTIVE")
        self.fake.post("advance", {"seconds": 5})
        return m


def every(word):
    return {region: word for region in REGIONS}


# ---- catalog

def test_catalog():
    """flavors, prices and stock are joined by the GPU's name"""
    with Cloud() as c:
        r = c.call("list_offers", {"offer_ref": None, "disk_gib": 0})
        same(how(r), every("complete"))
        got = {o["offer_ref"]: o for o in r.offers}
        same(len(got), len(hyperstack_catalog.FLAVORS) - 1, "all but the managed one")
        assert not any(ref.endswith("k8s") for ref in got), got
        o = got[H100]
        same((o["gpu_name"], o["gpu_count"], o["vram_mib"], o["ram_mib"], o["vcpus"], o["disk_gib"]),
             ("H100-80G-PCIe", 1, 80 * 1024, 180 * 1024, 28, 100))
        same((o["price_udollar"], o["price_ip_udollar"], o["stock"], o["availability"]), (1900000, IP, 12, "available"))
        same((o["scope"], o["region"], o["country"], o["cloud"], o["fabric"], o["kind"], o["market"], o["arch"], o["interconnect"]),
             ("CANADA-1", "CANADA-1", "CA", "hyperstack", "hyperstack", "vm", "on-demand", "x86_64", "pcie"))
        same((o["image"], o["driver"]), ("Ubuntu Server 24.04 LTS R570 CUDA 12.8", "570"))
        same(got["CANADA-1|n3-H100x2"]["price_udollar"], 3800000, "per GPU")
        same((got["CANADA-1|n3-H100x2"]["availability"], got["CANADA-1|n3-H100x2"]["stock"]), ("low", 2))
        same((got["CANADA-1|n3-H100x4"]["availability"], got["CANADA-1|n3-H100x4"]["stock"]), ("none", 0))
        same(got["CANADA-1|n3-H100x8-NVLink"]["interconnect"], "nvlink")
        same(got["CANADA-1|n3-L40x1"]["availability"], "none", "a size that is not counted cannot start")
        same((got["CANADA-1|n3-L40x1"]["vram_mib"], got["CANADA-1|n3-L40x1"]["ram_mib"]), (48 * 1024, 59904))
        h200 = got["US-1|n3-H200x8-SXM5"]
        assert "price_udollar" not in h200, "a GPU that is not in the price book has no price"
        same((h200["vram_mib"], h200["interconnect"], h200["driver"]), (141 * 1024, "sxm5", "590"))
        cpu = got[CPU]
        same((cpu["gpu_count"], "gpu_name" in cpu, cpu["price_udollar"], "stock" in cpu), (0, False, 4 * 10000 + 4 * 5000, False))
        same((cpu["image"], cpu["availability"]), ("Ubuntu Server 24.04 LTS (Noble Numbat)", "available"))


def test_requote():
    """one offer is quoted again under the same reference"""
    with Cloud() as c:
        for ref in offers(c):
            same(list(offers(c, ref)), [ref])
        same(offers(c, "NOWHERE-9|n3-H100x1"), {})
        same(offers(c, "CANADA-1|n9-nothing"), {})
        same(c.call("list_offers", {"offer_ref": "nonsense"}).kind, "invalid")


def test_images():
    """the operator's images come first, where they are offered and allowed"""
    wish = ["nothing", "Ubuntu Server 24.04 LTS R590 CUDA 13.1", "Ubuntu Server 22.04 LTS R535 CUDA 12.2 with Docker"]
    with Cloud(images=wish) as c:
        got = offers(c)
        same(got["US-1|n3-H200x8-SXM5"]["image"], wish[1])
        same((got[H100]["image"], got[H100]["driver"]), (wish[2], "535"))
        same(c.create(H100).kind, "ok")
        same(c.truth()[0]["request"]["image_name"], wish[2])
        same(c.create(H100, token="t2", name="n2", image="Ubuntu Server 22.04 LTS R570 CUDA 12.8").kind, "ok")
        same(c.truth()[1]["request"]["image_name"], "Ubuntu Server 22.04 LTS R570 CUDA 12.8")
        same(c.create(H100, token="t3", name="n3", image=wish[1]).kind, "invalid", "bound to another flavor")
    with Cloud(lawful=False) as c:
        for catalog in ([], [{"region_name": "CANADA-1", "images": [None, 7, {}, {"name": "Debian 12"}]}]):
            c.fake.post("catalog", dict(hyperstack_catalog.everything(), images=catalog))
            r = c.call("list_offers", {"offer_ref": None})
            same((r.offers, r.kind), ([], "unavailable"), "nothing boots without an image")


def test_odd_rows():
    """odd rows, unknown regions and unknown GPUs never break a listing"""
    good = hyperstack_catalog.flavors()[0]

    def row(**more):
        return dict(good["flavors"][0], **more)

    odd = [None, 7, "x", [], {}, row(name=None), row(name="a|b"), row(name="x" * 300), row(gpu_count=None),
           row(gpu_count=-1), row(gpu_count="1"), row(gpu_count=10 ** 9), row(region_name="a\nb")]
    fine = [row(name="n-odd", ram=None, cpu="4", disk=-1, stock_available=None, labels=None, features=None),
            row(name="n-new", gpu="B900-512G-SXM9"), row(name="n-spot", labels=[{"id": 1, "label": "Spot VM"}])]
    groups = [None, 3, {}, {"gpu": "x", "flavors": None}, dict(good, flavors=odd + fine)]
    groups.append({"gpu": "H100-80G-PCIe", "region_name": "NORWAY-1", "flavors": [row(name="n-bare", gpu=None, region_name=None)]})
    mars = row(name="n-mars", region_name="MARS-1")
    groups.append({"gpu": "H100-80G-PCIe", "region_name": "MARS-1", "flavors": [mars]})
    catalog = hyperstack_catalog.everything()
    catalog["images"].append(dict(catalog["images"][0], region_name="MARS-1", images=[dict(
        catalog["images"][0]["images"][0], region_name="MARS-1")]))
    catalog["flavors"] = groups + catalog["flavors"]
    catalog["stocks"] = [None, {"region": "CANADA-1", "models": None}, {"region": "CANADA-1", "models": [None, 7]}] + catalog["stocks"]
    with Cloud(lawful=False) as c:
        c.fake.post("catalog", catalog)
        r = c.call("list_offers", {"offer_ref": None})
        same((r.kind, how(r)), ("ok", dict(every("complete"), **{"MARS-1": "complete"})))
        got = {o["offer_ref"]: o for o in r.offers}
        same(len(got), len(hyperstack_catalog.FLAVORS) - 1 + 5)
        strange = got["CANADA-1|n-odd"]
        same([k in strange for k in ("ram_mib", "vcpus", "disk_gib")], [False] * 3)
        new = got["CANADA-1|n-new"]
        same(("price_udollar" in new, new["vram_mib"], new["availability"]), (False, 512 * 1024, "available"))
        same(got["CANADA-1|n-spot"]["market"], "spot")
        same((got["NORWAY-1|n-bare"]["gpu_name"], got["NORWAY-1|n-bare"]["stock"]), ("H100-80G-PCIe", 100))
        same(got["MARS-1|n-mars"]["scope"], "MARS-1")


def test_prices():
    """numbers and numeric text are prices; all else, zero too, is not known"""
    catalog = hyperstack_catalog.everything()
    with Cloud(lawful=False) as c:
        for value, want in ((2.5, 2500000), ("2.500000000", 2500000), ("2.5E0", 2500000), ("0.58", 580000), (3, 3000000), (0, None),
                            ("0E-9", None), (-1, None), ("-1", None), ("", None), ("nan", None), ("inf", None), (None, None),
                            ("2,5", None), (True, None), (1e300, None), ([], None)):
            catalog["pricebook"] = [None, 4, {"name": "H100-80G-PCIe", "value": value}]
            c.fake.post("catalog", catalog)
            same(offers(c, H100)[H100].get("price_udollar"), want, repr(value))
        same(c.create(H100).kind, "capacity", "what has no price is not rented")
    catalog["pricebook"] = [
        {"name": "H100-80G-PCIe", "value": 1, "start_time": "2001-01-01T00:00:00", "end_time": "2002-01-01T00:00:00"},
        {"name": "H100-80G-PCIe", "value": 2, "start_time": "2100-01-01T00:00:00Z", "end_time": None},
        {"name": "H100-80G-PCIe", "value": 3, "start_time": "2001-01-01T00:00:00", "end_time": "2100-01-01T00:00:00"}]
    with Cloud() as c:
        c.fake.post("catalog", catalog)
        same(offers(c, H100)[H100]["price_udollar"], 3000000, "the price of today")


def test_lists_that_lie():
    """repeated, shuffled and unreadable catalogs"""
    with Cloud() as c:
        whole = offers(c)
        for endpoint in ("flavors", "pricebook", "stocks", "images", "regions"):
            kinds = ["garbage", "status-false", "broken"]  # the last is tried again until the call ends
            if endpoint == "flavors":
                kinds += ["nulls", "truncated", "short-body", "drop", "throttled", "huge"]
            for kind in ("duplicate-rows", "shuffle"):
                c.fake.fault(endpoint, kind)
                r = c.call("list_offers", {"offer_ref": None})
                same({o["offer_ref"]: o for o in r.offers}, whole, "%s %s" % (endpoint, kind))
                same(len(r.offers), len(whole))
            for kind in kinds:
                c.fake.fault(endpoint, kind, times=-1)
                r = c.call("list_offers", {"offer_ref": None}, deadline_ms=400)
                same(r.offers, [], "%s %s" % (endpoint, kind))
                assert r.kind in ("unavailable", "rate-limited", "cancelled"), "%s %s: %r" % (endpoint, kind, r)
                assert "complete" not in how(r).values(), r.scopes
                c.fake.calm()


# ---- one machine

def test_rent():
    """a create carries everything, the machine walks to running, a remove leaves nothing"""
    data = "#cloud-config\nruncmd: [true]\n"
    ports = [{"proto": "tcp", "from": 8080, "to": 8090, "cidr": "198.51.100.0/24"}, {"proto": "udp", "from": 51820, "to": 51820, "cidr": "::/0"}]
    with Cloud(args=["--keep-addresses"]) as c:
        r = c.create(H100, user_data=base64.b64encode(data.encode()).decode(), user_data_kind="cloud", ports=ports)
        same(r.kind, "ok", r.text)
        m = r.machines[0]
        same((m["state"], m["scope"], m["price_udollar"]), ("creating", "CANADA-1", 1900000 + IP))
        sent = c.truth()[0]["request"]
        same((sent["environment_name"], sent["flavor_name"], sent["count"], sent["assign_floating_ip"]),
             ("default-CANADA-1", "n3-H100x1", 1, True))
        same((sent["name"], sent["user_data"], sent["enable_port_randomization"]), ("lease-1", data, False))
        same(sorted(sent["labels"]), sorted(["gpubroker-owner=" + OWNER, "gpubroker-lease=1", "gpubroker-token=tok-1"]))
        same([(x["ethertype"], x["protocol"], x["remote_ip_prefix"], x["port_range_min"], x["port_range_max"])
              for x in sent["security_rules"]],
             [("IPv4", "tcp", "0.0.0.0/0", 22, 22), ("IPv4", "tcp", "198.51.100.0/24", 8080, 8090), ("IPv6", "udp", "::/0", 51820, 51820)])
        key = next(k for k in c.fake.get("keys") if k["name"] == sent["key_name"])
        same((key["public_key"], key["environment"]["name"]), (PUBLIC_KEY, "default-CANADA-1"))
        c.wait("ACTIVE")
        c.fake.post("advance", {"seconds": 5})
        now = c.get(m).machines[0]
        same((now["state"], now["ssh_port"], now["ssh_user"], now["raw_state"]), ("running", 22, "ubuntu", "ACTIVE"))
        assert now["address"].startswith("203.0.113."), now
        same(now["tags"]["gpubroker-token"], "tok-1")
        listed = c.call("list").machines[0]
        same((listed["price_udollar"], listed["instance_type"], listed["address"]), (1900000 + IP, "n3-H100x1", now["address"]))
        same(len(c.fake.get("addresses")), 1)
        same(c.remove(m).kind, "ok")
        same(c.get(m).machines[0]["state"], "deleting")
        same(c.remove(m).kind, "ok", "removed once more while it goes")
        c.wait("gone")
        same(c.get(m).kind, "not-found")
        same(c.remove(m).kind, "ok", "a machine that is gone can be removed")
        same(c.fake.get("addresses"), [], "no address is left behind")
        same(c.fake.get("counters")["delete"], 1)


def test_ready():
    """running has an address only once it is attached; a machine that is off still bills"""
    with Cloud() as c:
        c.fake.post("config", {"delays": {"attach": 3600}})
        m = c.create().machines[0]
        c.wait("ACTIVE")
        now = c.get(m).machines[0]
        same((now["state"], now.get("address")), ("running", None), "ATTACHING is no address")
        c.fake.post("advance", {"seconds": 3700})
        assert c.get(m).machines[0]["address"]
        for status, state in (("SHUTOFF", "stopped"), ("HIBERNATED", "stopped"), ("STOPPING", "stopping"), ("HARD_REBOOT", "running"),
                              ("ERROR", "error"), ("SOMETHING_NEW", "unknown"), ("", "unknown")):
            c.fake.post("machines/" + m["id"], {"do": "status", "status": status or " "})
            same(c.get(m).machines[0]["state"], state, status)
            same(len(c.find().machines), 1, status)
        same(c.fake.get("bill")["running"], 1, "and off it bills")
        for fields, state in (({"vm_state": "building"}, "creating"), ({"vm_state": "error"}, "error"), ({"vm_state": "new"}, "unknown")):
            c.fake.post("machines/" + m["id"], {"do": "status", "status": "ACTIVE"})
            c.fake.fault("info", "set", fields=fields)
            same(c.get(m).machines[0]["state"], state, fields)
        c.fake.post("machines/" + m["id"], {"do": "fail"})
        c.fake.post("machines/" + m["id"], {"do": "status", "status": None})
        same(c.get(m).machines[0]["state"], "error")
        same(c.remove(m).kind, "ok", "what failed is removed like all else")


def test_price_cap():
    """a machine that became dearer, its address counted, is refused before anything is sent"""
    with Cloud() as c:
        r = c.create(CPU, max_price_udollar=60000 + IP - 1)
        same(r.kind, "capacity")
        assert "0.066700" in r.text and "0.066699" in r.text, r.text
        same(c.fake.get("counters").get("create", 0), 0)
        same(c.create(CPU, max_price_udollar=60000 + IP).kind, "ok")


def test_refused_here():
    """what needs no create is refused without one"""
    huge = base64.b64encode(b"#" * 49150).decode()
    with Cloud() as c:
        same(c.create("nonsense").kind, "invalid")
        same(c.create(CPU, ssh_public_keys=[]).kind, "invalid")
        same(c.create(CPU, image="windows").kind, "invalid")
        assert c.create(CPU, user_data=huge, user_data_kind="cloud").kind in ("invalid", "unsupported")
        same(c.create(CPU, user_data=base64.b64encode(b"#!\xff\xfe").decode(), user_data_kind="script").kind, "invalid")
        same(c.create(CPU, ports=[{"proto": "icmp", "from": 1, "to": 1, "cidr": "0.0.0.0/0"}]).kind, "invalid")
        same(c.create("CANADA-1|n3-H100x4").kind, "capacity", "out of stock")
        same(c.create("CANADA-1|n9-nothing").kind, "capacity", "not sold any more")
        same(c.create("US-1|n3-H200x8-SXM5").kind, "capacity", "no price")
        for bad in ("", "a/../b", "x?y", "../keypairs", "-1", "1" * 30):
            same(c.call("get", {"ref": {"id": bad, "scope": "CANADA-1"}}).kind, "invalid", bad)
            same(c.call("remove", {"ref": {"id": bad, "scope": "CANADA-1"}}).kind, "invalid", bad)
        same([r for r in c.fake.get("requests") if r["method"] != "GET"], [])
        same(c.create(CPU, user_data=base64.b64encode(b"#" * 49149).decode(), user_data_kind="cloud").kind, "ok", "the most that fits")


def test_money():
    """no money is a quota, before the create and after it; the balance is told"""
    with Cloud() as c:
        probe = c.call("probe")
        same((probe.kind, probe.value["account"], probe.value["balance_udollar"]), ("ok", "ops@example.org", 100000000))
        c.fake.fault("create", "no-money")
        same(c.create().kind, "quota")
        c.fake.fault("credit", "forbidden")
        same(c.call("probe").kind, "ok", "who may not see the balance may still rent")
        c.fake.fault("credit", "forbidden")
        same(c.create().kind, "ok")
        c.fake.post("credit", {"credit": 0})
        sent = c.fake.get("counters")["create"]
        r = c.create(token="tok-2", name="lease-2")
        same((r.kind, c.fake.get("counters")["create"]), ("quota", sent))
        same(c.call("probe").value["balance_udollar"], 0)


def body(text, reason=None):
    return dict({"status": False, "message": text}, **({"error_reason": reason} if reason else {}))


REFUSALS = [
    ({"kind": "out-of-stock"}, "capacity"),
    ({"kind": "no-money"}, "quota"),
    ({"kind": "unauthorized"}, "auth"),
    ({"kind": "forbidden"}, "auth"),
    ({"kind": "throttled", "retry_after": 1}, "rate-limited"),
    ({"kind": "throttled"}, "rate-limited"),
    ({"kind": "status", "status": 402, "body": body("Payment required")}, "quota"),
    ({"kind": "status", "status": 400, "body": body("flavor_name is wrong", "bad_request")}, "invalid"),
    ({"kind": "status", "status": 422, "body": None}, "invalid"),
    ({"kind": "status", "status": 404, "body": body("Environment not found", "not_found")}, "invalid"),
    ({"kind": "status", "status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "unavailable"),
    ({"kind": "status", "status": 200, "body": body("Insufficient balance to create the resource", "bad_request")}, "quota"),
    ({"kind": "status", "status": 200, "body": body("Flavor is out of stock")}, "capacity"),
    ({"kind": "status", "status": 200, "body": body("Forbidden", "forbidden")}, "auth"),
    ({"kind": "status", "status": 200, "body": body("name is too long", "bad_request")}, "invalid"),
]


def test_refusals():
    """each refusal of a create has its kind, and made nothing"""
    def look(fault, r):
        if fault["kind"] == "throttled":
            same(r.retry_after_ms, fault.get("retry_after", 20) * 1000)
        elif fault["kind"] == "no-money":
            same((r.code, r.http_status), ("bad_request", 400))
    with Cloud() as c:
        check_refusals(c, REFUSALS, look)


def test_doubt():
    """a create without a definitive answer is unknown, is sent once, and find adopts exactly one machine"""
    doubts = [{"kind": "lost-reply"}, {"kind": "bad-gateway"}, {"kind": "garbage"}, {"kind": "truncated"},
              {"kind": "short-body"}, {"kind": "nulls"}, {"kind": "huge"}, {"kind": "hang", "seconds": 3}, {"kind": "empty-list"},
              {"kind": "set", "fields": {"id": 0}}, {"kind": "reply", "status": 504, "body": "<html>"},
              {"kind": "reply", "status": 200, "body": body("Something went wrong")},
              {"kind": "reply", "status": 200, "body": body("Something went wrong", "server_error")}]
    with Cloud() as c:
        check_doubts(c, doubts)


def test_lost():
    """a create that left nothing is unknown too; a machine that shows late is found once it shows"""
    with Cloud() as c:
        check_lost(c)


def test_same_name():
    """a name that is taken is a conflict: find knows whether by us"""
    with Cloud() as c:
        same(c.create().kind, "ok")
        same(c.create().kind, "conflict")
        same(len(c.find().machines), 1)
        same(len(c.truth()), 1)


def test_refused_late():
    """accepted, then failed: an error state, removed like all else"""
    with Cloud() as c:
        c.fake.fault("create", "late-error", details="No valid host")
        m = c.create().machines[0]
        c.wait("ERROR")
        now = c.get(m).machines[0]
        same((now["state"], now["raw_state"]), ("error", "ERROR"))
        same(c.remove(m).kind, "ok")
        c.wait("gone")


# ---- places and keys

def test_environments():
    """a region without an environment gets one, once; the operator's own are taken where configured"""
    with Cloud() as c:
        for i, fault in enumerate(("lost-reply", "bad-gateway", None)):
            if fault:
                c.fake.fault("environment-add", fault)
            same(c.create("US-1|n3-A100x1", token="t%d" % i, name="n%d" % i).kind, "ok")
        same([e["region"] for e in c.fake.get("environments") if e["name"] == "default-US-1"], ["US-1"])
        same(c.fake.get("counters")["environment-add"], 1)
        c.fake.fault("environments", "broken", times=-1)
        assert c.create(token="t9", name="n9", deadline_ms=400).kind in ("unavailable", "cancelled")
    with Cloud(environments=["nothing", "default-NORWAY-1"]) as c:
        same(c.create(CPU).kind, "ok")
        r = c.create(H100, token="t2", name="n2")
        same(r.kind, "invalid")
        assert "CANADA-1" in r.text, r.text
        same(c.fake.get("counters").get("environment-add", 0), 0)


def test_keys():
    """one key in an environment after ten creates at once, whatever happens to the answers"""
    with Cloud() as c:
        c.fake.fault("keys", "delay", seconds=0.3, times=3)
        start_creates(c, 10)
        same(len(c.fake.get("keys")), 1)
        same(c.create(H100, token="other", name="other").kind, "ok")
        same(sorted(k["environment"]["name"] for k in c.fake.get("keys")), ["default-CANADA-1", "default-NORWAY-1"])
        same(len({k["name"] for k in c.fake.get("keys")}), 2, "names may have to be unique in all of the account")
    for kind in ("lost-reply", "bad-gateway", "garbage", "status-false", "hang"):
        with Cloud() as c:
            c.fake.fault("key-add", kind, seconds=0.5)
            r = c.create()
            if kind == "status-false":
                assert r.kind in ("unavailable", "unknown"), r
                same(c.fake.get("counters").get("create", 0), 0, "no key, no machine")
                continue
            same((kind, r.kind), (kind, "ok"), r.text)
            same(len(c.fake.get("keys")), 1, kind)


# ---- reads that fail, and absence

def test_no_absence():
    """no failed, partial or foreign answer proves that a machine is gone"""
    with Cloud() as c:
        m = c.create().machines[0]
        for kind in ("nulls", "garbage", "truncated", "short-body", "broken", "status-false", "drop", "throttled", "unauthorized",
                     "forbidden", "not-found", "huge", "empty-list"):
            c.fake.fault("list", kind, times=-1, bytes=10 << 20)
            r = c.call("list", {}, deadline_ms=400)
            same(len(r.machines), 0, kind)
            assert "complete" not in how(r).values(), "%s: %r" % (kind, r.scopes)
            assert r.kind not in ("not-found", "unknown", "internal"), r
            c.fake.calm()
            if kind == "empty-list":
                continue
            c.fake.fault("info", kind, times=-1, bytes=10 << 20)
            r = c.call("get", Provider.ref(m), deadline_ms=400)
            same(r.machines, [], kind)
            assert r.kind not in ("ok", "not-found", "unknown", "internal"), "%s: %r" % (kind, r)
            c.fake.calm()
        c.fake.fault("list", "set", fields={"id": None})
        same(how(c.call("list"))["CANADA-1"], "complete", "a doubt stays in its region")
        c.fake.fault("info", "set", fields={"id": 4711})
        same(c.get(m).kind, "unavailable", "an answer about something else")
        for kind in ("broken", "empty-list", "nulls"):
            c.fake.fault("regions", kind, times=-1)
            r = c.call("list", {}, deadline_ms=400)
            assert r.kind in ("unavailable", "cancelled") and not r.scopes, "%s: %r" % (kind, r)
            c.fake.calm()


def test_doubtful_rows():
    """rows that lost their labels, id or region prove nothing in their region"""
    with Cloud(lawful=False) as c:
        c.fake.post("machines", {"name": "other", "tags": []})
        c.fake.fault("create", "lost-reply")
        same(c.create().kind, "unknown")
        for fields in ({"labels": None}, {"labels": None, "name": None}):
            c.fake.fault("list", "set", fields=fields)
            r = c.find()
            same((r.kind, r.machines, how(r)["NORWAY-1"], how(r)["US-1"]), ("ok", [], "partial", "complete"), fields)
        c.fake.fault("list", "set", fields={"id": "x"})
        same(set(how(c.find()).values()), {"partial"}, "rows that are one another")
        c.fake.fault("list", "set", fields={"environment": None})
        r = c.find()
        same((r.machines, set(how(r).values())), ([], {"partial"}), "a row of no region may be of any")
        c.fake.fault("list", "set", fields={"labels": None})
        r = c.call("find", {"token": "tok-2", "name": "lease-2", "scope": None})
        same(how(r), every("complete"), "another name is no doubt")
        r = c.find(scope="NORWAY-1")
        same((len(r.machines), how(r)), (1, {"NORWAY-1": "complete"}))
        r = c.find(scope="CANADA-1")
        same((len(r.machines), how(r)), (0, {"CANADA-1": "complete"}))


def test_pages():
    """every page is read, however long the service cuts them; a list that ends early is partial"""
    for page_max in (1, 2, 7, 100):
        with Cloud(args=["--page-max", str(page_max)]) as c:
            for i in range(5):
                c.fake.post("machines", {"name": "f%d" % i, "tags": ["gpubroker-lease=%d" % i]})
            r = c.call("list")
            same((len(r.machines), how(r)), (5, every("complete")), page_max)
    with Cloud() as c:
        for i in range(205):
            c.fake.post("machines", {"name": "f%d" % i, "tags": ["gpubroker-lease=%d" % i]})
        same(len(c.call("list").machines), 205)
        same(c.fake.get("counters")["list"], 3)
        c.fake.fault("list", "partial-list", keep=3, times=-1)
        r = c.call("list")
        same((len(r.machines), how(r)), (9, every("partial")), "three of each page")


def test_gone():
    """a machine is gone when the cloud says so twice: 404 and a whole list without it"""
    with Cloud() as c:
        m = c.create().machines[0]
        c.fake.fault("info", "not-found")
        same(c.get(m).kind, "unavailable", "the list still has it")
        c.fake.post("machines/" + m["id"], {"do": "vanish"})
        same(c.get(m).kind, "not-found")
        c.create(token="tok-2", name="lease-2")
        c.fake.fault("list", "partial-list", keep=0, times=-1)
        same(c.get(m).kind, "unavailable", "a list that is not whole")


def test_remove():
    """removals: refused while it is built, doubt is unknown, absence is fine"""
    with Cloud() as c:
        c.fake.post("config", {"delays": {"BUILD": 3600}})
        m = c.create().machines[0]
        r = c.remove(m)
        same((r.kind, r.http_status), ("unavailable", 400), "being created")
        assert "being created" in r.text, r.text
        c.fake.post("advance", {"seconds": 3700})
        c.wait("ACTIVE")
        c.fake.post("advance", {"seconds": 5})
        for kind, want in (("drop", "unknown"), ("broken", "unknown"), ("unauthorized", "auth"), ("throttled", "rate-limited"),
                           ("status-false", "unknown"), ("not-found", "ok"), ("lost-reply", "unknown")):
            c.fake.fault("delete", kind)
            same(c.remove(m).kind, want, kind)
        c.wait("gone")
        same(c.remove(m).kind, "ok")
    with Cloud() as c:
        for i, kind in enumerate(("drop", "broken", "forbidden", "not-found", "lost-reply", "status-false")):
            m = c.create(token="t%d" % i, name="n%d" % i).machines[0]
            c.wait("ACTIVE")
            c.fake.post("advance", {"seconds": 5})
            c.fake.fault("detach", kind)
            same(c.remove(m).kind, "ok", "an address that is not detached does not keep the machine: " + kind)
        c.wait("gone", 6)
    with Cloud(args=["--keep-addresses"]) as c:
        c.fake.post("config", {"delays": {"attach": 600}})
        m = c.create().machines[0]
        c.wait("ACTIVE")
        same([c.get(m).machines[0].get("address"), len(c.fake.get("addresses"))], [None, 1])
        same(c.remove(m).kind, "ok")
        same(c.fake.get("addresses"), [], "an address that is being attached is not left behind")


# ---- the account of several

def test_foreign():
    """machines of others are never shown nor touched"""
    with Cloud() as c:
        for tags in (["mine"], [], ["owner=x", "gpubroker"], ["gpubroker-owner"]):
            c.fake.post("machines", {"name": "lease-1", "tags": tags})
        c.create(name="lease-9")
        r = c.call("list")
        same([m["tags"]["gpubroker-token"] for m in r.machines], ["tok-1"])
        same(len(c.find("tok-1").machines), 1)
        same(c.find("tok-other").machines, [], "a name alone does not make it ours")
        same(len(c.call("find", {"token": "", "name": "lease-1", "scope": None}).machines), 4, "by name")
        c.fake.post("machines", {"name": "b", "tags": ["gpubroker-owner=another", "gpubroker-lease=9"]})
        same(sorted(m["tags"]["gpubroker-owner"] for m in c.call("list").machines), sorted(["another", OWNER]))
        c.wait("ACTIVE")
        same(c.remove(r.machines[0]).kind, "ok")
        same({q["path"].split("/")[4] for q in c.fake.get("requests") if q["endpoint"] in ("delete", "detach")}, {r.machines[0]["id"]})
        assert not any(m["ended_ms"] for m in c.fake.get("machines") if m["foreign"])


def test_console():
    """the console's text, once the cloud has it"""
    with Cloud() as c:
        m = c.running()
        c.fake.post("faults", {"on": "log", "kind": "set", "fields": {"logs": None}, "times": 2})
        r = c.call("console_log", Provider.ref(m))
        same((r.kind, r.value["text"]), ("ok", "booting lease-1\nUbuntu login:\n"))
        c.fake.fault("log-request", "not-found")
        same(c.call("console_log", Provider.ref(m)).kind, "not-found")


def test_credentials():
    """a wrong key is an auth failure everywhere, and is never shown"""
    with Cloud(key="canary-wrong-key") as c:
        for call, args in (("probe", {}), ("list_offers", {"offer_ref": None}), ("list", {})):
            same(c.call(call, args).kind, "auth", call)
        same(c.create().kind, "auth")
    with Cloud() as c:
        c.fake.fault("me", "status", status=400, body={"message": "no such key: " + KEY})
        assert KEY not in c.call("probe").text
    for options, word in (({}, "api_key"), ({"endpoint": "ftp://x"}, "endpoint"), ({"ssh_from": "everywhere"}, "ssh_from")):
        p = Provider("hyperstack", options=options, secrets={"api_key": "k"} if options else {}, ready=False)
        same(p.ready["kind"], "invalid")
        assert word in p.ready["text"], p.ready
        p.close()


def test_ssh_from():
    """port 22 is open to the configured network alone"""
    with Cloud(ssh_from="192.0.2.0/24") as c:
        c.create()
        same([x["remote_ip_prefix"] for x in c.truth()[0]["request"]["security_rules"]], ["192.0.2.0/24"])


def test_spec():
    """all this traffic keeps to the cloud's own OpenAPI file"""
    with Cloud() as c:
        why_not = c.fake.get("state")["spec"]
        if why_not:
            raise Skip(why_not)
        offers(c), c.call("probe")
        m = c.running("US-1|n3-A100x1", user_data="I2Nsb3VkLWNvbmZpZwo=", user_data_kind="cloud")
        c.get(m), c.find(), c.call("list"), c.call("console_log", Provider.ref(m)), c.remove(m)


def test_manual():
    """the manual names exactly the options that the plugin has"""
    check_manual("hyperstack")


if __name__ == "__main__":
    tap(globals())
