"""aws_plugin.py - the AWS plugin in its real host, against the fake cloud with all its faults"""
import base64
import email
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
import aws_catalog
from aws import KEY_ID, subnet_of
from plugin_cloud import KEY, PUBLIC_KEY, PluginCloud, check_manual, check_refusals, how, offers, same, start_creates
from provider_harness import OWNER, Provider, tap

G5, SPOT, H100 = "us-east-1|g5.xlarge|on-demand", "us-east-1|g5.xlarge|spot", "us-east-1|p5.48xlarge|on-demand"
IP, GIB, MINIMUM = 5000, 110, 35
PAIR = {"access_key_id": KEY_ID, "secret_access_key": KEY + "\n"}
SECOND = 1000


class Cloud(PluginCloud):
    name, offer = "aws", G5

    def __init__(self, *args, secrets=None, state_dir=None, **options):
        self.pair, self.state_dir = secrets, state_dir
        super().__init__(*args, **options)

    def start_plugin(self, key, options):
        secrets = {"access_key_id": KEY_ID, "secret_access_key": key + "\n"} if self.pair is None else self.pair
        return Provider("aws", options=dict({"endpoint": self.fake.url, "regions": ["us-east-1"]}, **options),
                        secrets=secrets, http={"rate": 1000.0, "burst": 1000}, state_dir=self.state_dir)

    def sent(self):
        """The parameters of each RunInstances."""
        return [q["body"] for q in self.fake.get("requests") if q["endpoint"] == "create"]

    def count(self, endpoint):
        return self.fake.get("counters").get(endpoint, 0)

    def alive(self):
        return [m for m in self.truth() if not m["ended_ms"]]

    def running(self, *args, **more):
        r = self.create(*args, **more)
        same(r.kind, "ok", r.text)
        self.wait("running")
        return r.machines[0]


def zone_of(parameters):
    """The letter of the zone that a RunInstances named, by its subnet."""
    return next(z for z in "abc" if parameters["NetworkInterface.1.SubnetId"] == subnet_of("us-east-1", z))


# ---- catalogue

def test_probe():
    """the account of the keys"""
    with Cloud() as c:
        r = c.call("probe")
        same((r.kind, r.value["account"]), ("ok", "123456789012"), r.text)


def test_catalog():
    """types, zones and prices become offers; what the catalogue gets wrong is put right"""
    with Cloud() as c:
        got = offers(c)
        o = got[G5]
        same((o["gpu_name"], o["gpu_count"], o["vram_mib"], o["ram_mib"], o["vcpus"], o["arch"], o["kind"], o["market"]),
             ("A10G", 1, 24576, 16384, 4, "x86_64", "vm", "on-demand"))
        same((o["price_udollar"], o["price_disk_gib_udollar"], o["price_ip_udollar"], o["disk_gib"], o["disk_default_gib"]),
             (1006000 + MINIMUM * GIB, GIB, IP, MINIMUM, 100))
        same((o["scope"], o["region"], o["country"], o["cloud"], o["image"], o["availability"]),
             ("us-east-1", "us-east-1", "US", "aws", aws_catalog.IMAGE, "unknown"))
        same(got[SPOT]["price_udollar"], 301800 + MINIMUM * GIB, "the cheapest zone, and not a price of long ago")
        same(got["us-east-1|g6.xlarge|spot"]["price_udollar"], 321920 + MINIMUM * GIB, "of the zones that have it")
        same((got["us-east-1|p5en.48xlarge|on-demand"]["gpu_name"], got["us-east-1|p5en.48xlarge|on-demand"]["interconnect"]), ("H200", "sxm5"))
        same(got["us-east-1|p5.4xlarge|on-demand"]["gpu_count"], 1)
        part = got["us-east-1|g6f.large|on-demand"]
        same((part["gpu_name"], part["gpu_count"], part["gpu_denominator"]), ("L4", 1, 8))
        same(got["us-east-1|g5g.xlarge|on-demand"]["arch"], "aarch64")
        assert not any("b300" in ref for ref in got), "a capacity block is not for rent"
        assert not any("t3." in ref for ref in got), "no GPU, and nobody asked"
        assert "us-east-1|p5en.48xlarge|spot" not in got
        assert not any("g4ad" in ref for ref in got), "the image has no driver for it"
    with Cloud(instance_types=["t3.large", "g6*"]) as c:
        same(sorted({ref.split("|")[1] for ref in offers(c)}), ["g6.xlarge", "g6e.xlarge", "g6f.large", "t3.large"])
        same(offers(c)["us-east-1|t3.large|on-demand"]["gpu_count"], 0)


def test_requote():
    """one offer is quoted again under the same reference, at the spot price of now"""
    with Cloud() as c:
        for ref in list(offers(c))[:6]:
            same(list(offers(c, ref)), [ref])
        catalog = c.fake.get("catalog")
        next(t for t in catalog["types"] if t["type"] == "g5.xlarge")["spot"]["c"] = "0.700000"
        c.fake.post("catalog", catalog)
        same(offers(c, SPOT)[SPOT]["price_udollar"], 402400 + MINIMUM * GIB, "another zone is the cheapest now")
        same(offers(c, "us-east-1|x9.large|spot"), {})
        for ref in ("nonsense", "us-east-1|g5.xlarge", "a.b/|g5.xlarge|spot"):
            same(c.call("list_offers", {"offer_ref": ref}).kind, "invalid", ref)


def test_pages():
    """every page is read, however small; pages that do not end are an error"""
    for most in (1, 3):
        with Cloud(args=["--page-max", str(most)]) as c:
            same(len(offers(c)), 23)
            for i in range(5):
                c.fake.post("machines", {"name": "f%d" % i, "tags": ["gpubroker-lease=%d" % i]})
            same(len(c.call("list").machines), 5)
    with Cloud(args=["--page-max", "2"]) as c:
        c.fake.post("faults", {"on": "types", "kind": "set", "fields": {"nextToken": "p2"}, "times": -1})
        r = c.call("list_offers", {"offer_ref": None})
        same((r.kind, r.offers), ("unavailable", []), r.text)


def test_prices():
    """the price list is read once a day, outlives the process, and serves for a week when it cannot be read"""
    with tempfile.TemporaryDirectory() as state, Cloud(state_dir=state) as c:
        offers(c), offers(c)
        same(c.count("products"), 2, "machines and disks, once")
        with Provider("aws", options={"endpoint": c.fake.url, "regions": ["us-east-1"]}, secrets=PAIR, state_dir=state) as p:
            same(len(p.call("list_offers", {"offer_ref": None}).offers), 23)
        same(c.count("products"), 2, "the next process has them, too")
        c.fake.fault("products", "forbidden", times=-1)
        for days, want in ((2, "ok"), (8, "auth")):
            at = int((time.time() - days * 86400) * 1000)
            path = os.path.join(state, "prices-us-east-1")
            with open(path) as f:
                saved = dict(json.load(f), at=at)
            with open(path, "w") as f:
                json.dump(saved, f)
            with Provider("aws", options={"endpoint": c.fake.url, "regions": ["us-east-1"]}, secrets=PAIR, state_dir=state) as p:
                same(p.call("list_offers", {"offer_ref": None}).kind, want, "%d days old" % days)
    with Cloud() as c:
        catalog = c.fake.get("catalog")
        next(t for t in catalog["types"] if t["type"] == "g5.xlarge")["price"] = None
        c.fake.post("catalog", catalog)
        assert "price_udollar" not in offers(c)[G5], "no price is not a price of 0"
        same(c.create().kind, "capacity", "and is not rented")


def test_catalog_lies():
    """a catalogue that cannot be read offers nothing and completes nothing"""
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' \
           '<DescribeInstanceTypesResponse><instanceTypeSet>&b;</instanceTypeSet></DescribeInstanceTypesResponse>'
    flood = "<DescribeInstanceTypesResponse>" + "<a/>" * 700000 + "</DescribeInstanceTypesResponse>"
    with Cloud() as c:
        for fault in ({"kind": "garbage"}, {"kind": "truncated"}, {"kind": "short-body"}, {"kind": "broken"}, {"kind": "huge"},
                      {"kind": "drop"}, {"kind": "throttled"}, {"kind": "nulls"}, {"kind": "reply", "body": bomb},
                      {"kind": "reply", "body": flood}, {"kind": "reply", "body": "<Other/>"}, {"kind": "reply", "body": ""}):
            c.fake.post("faults", dict(fault, on="types", times=-1))
            r = c.call("list_offers", {"offer_ref": None}, deadline_ms=1500)
            c.fake.calm()
            same(r.offers, [], fault["kind"])
            assert r.kind in ("unavailable", "rate-limited", "cancelled"), "%s: %r" % (fault["kind"], r)
            assert "complete" not in how(r).values(), r.scopes
        same(len(offers(c)), 23, "and afterwards all is well")
    for endpoint in ("offerings", "vpcs", "subnets", "products", "images", "spot-prices"):
        with Cloud() as c:
            for kind in ("nulls", "garbage", "truncated"):
                c.fake.fault(endpoint, kind, times=-1)
                r = c.call("list_offers", {"offer_ref": None}, deadline_ms=1500)
                c.fake.calm()
                if (endpoint, kind) != ("spot-prices", "nulls"):  # no price is a fact of spot
                    same((r.kind, how(r)), ("unavailable", {"us-east-1": "failed"}), (endpoint, kind))
            same([o["offer_ref"] for o in offers(c).values() if "price_udollar" not in o], [], endpoint)
    with Cloud(lawful=False) as c:
        catalog = c.fake.get("catalog")
        odd = dict(catalog["types"][0], type="g|x"), dict(catalog["types"][0], type=None), dict(catalog["types"][0], arch="riscv")
        catalog["types"] = list(odd) + catalog["types"] + [catalog["types"][1]]
        c.fake.post("catalog", catalog)
        r = c.call("list_offers", {"offer_ref": None})
        same((r.kind, len(r.offers)), ("ok", 23), "odd and repeated rows are left out")


# ---- regions

ALL = {"regions": list(aws_catalog.REGIONS)}


def test_regions():
    """every region of the account, unless some are configured; one that is sick costs only itself"""
    with Cloud(regions=[]) as c:
        r = c.call("list_offers", {"offer_ref": None})
        same((r.kind, how(r)), ("ok", {x: "complete" for x in aws_catalog.REGIONS}))
    with Cloud(**ALL) as c:
        c.create()
        for sick, kind in (("denied", "auth"), ("broken", "unavailable"), ("hang", "unavailable")):
            c.fake.post("sick", {"region": "eu-west-1", "how": sick, "seconds": 6})
            for call, args in (("list_offers", {"offer_ref": None}), ("list", {}),
                               ("find", {"token": "tok-1", "name": "lease-1", "scope": None})):
                r = c.call(call, args, deadline_ms=6000)
                same((r.kind, how(r)), ("ok", {"us-east-1": "complete", "eu-west-1": "failed", "ap-south-1": "complete"}), (sick, call))
                same(next(s["kind"] for s in r.scopes if s["scope"] == "eu-west-1"), kind, sick)
            same(len(r.machines), 1)
    with Cloud() as c:
        c.fake.post("sick", {"region": "us-east-1", "how": "denied"})
        r = c.call("list")
        same((r.kind, how(r)), ("auth", {"us-east-1": "failed"}), "all that there is")
    with Cloud() as c:
        c.fake.post("vpcs", {"region": "us-east-1", "default": False})
        r = c.call("list_offers", {"offer_ref": None})
        assert r.kind == "invalid" and "default VPC" in r.text and "us-east-1" in r.text, r


# ---- one machine

def parts_of(parameters):
    data = email.message_from_bytes(base64.b64decode(parameters["UserData"]))
    return [(p.get_content_type(), p.get_payload(decode=True).decode()) for p in data.get_payload()]


def test_rent():
    """a create carries everything, the machine walks to running, a remove leaves nothing"""
    ports = [{"proto": "tcp", "from": 8080, "to": 8090, "cidr": "198.51.100.0/24"}, {"proto": "udp", "from": 51820, "to": 51820, "cidr": "::/0"}]
    data = "#cloud-config\nruncmd: [true]\n"
    with Cloud() as c:
        r = c.create(ports=ports, user_data=base64.b64encode(data.encode()).decode(), user_data_kind="cloud", disk_gib=200)
        same(r.kind, "ok", r.text)
        m, [sent] = r.machines[0], c.sent()
        same((m["state"], m["scope"], m["price_udollar"], m["name"]), ("creating", "us-east-1", 1006000 + 200 * GIB + IP, "lease-1"))
        same([sent[k] for k in ("InstanceType", "MinCount", "MaxCount", "InstanceInitiatedShutdownBehavior", "MetadataOptions.HttpTokens",
                                "NetworkInterface.1.AssociatePublicIpAddress", "BlockDeviceMapping.1.Ebs.VolumeSize",
                                "BlockDeviceMapping.1.Ebs.DeleteOnTermination", "BlockDeviceMapping.1.DeviceName")],
             ["g5.xlarge", "1", "1", "terminate", "required", "true", "200", "true", "/dev/sda1"])
        same([t for t, _ in parts_of(sent)], ["text/plain", "text/cloud-config"])
        same(parts_of(sent)[0][1].strip(), data.strip())
        assert PUBLIC_KEY in parts_of(sent)[1][1]
        same(sent["MetadataOptions.HttpPutResponseHopLimit"], "1", "out of the reach of pods")
        for n, resource in ((1, "instance"), (2, "volume")):
            got = {sent["TagSpecification.%d.Tag.%d.Key" % (n, i)]: sent["TagSpecification.%d.Tag.%d.Value" % (n, i)] for i in range(1, 5)}
            same((sent["TagSpecification.%d.ResourceType" % n], got), (resource, {
                "Name": "lease-1", "gpubroker-owner": OWNER, "gpubroker-lease": "1", "gpubroker-token": "tok-1"}))
        [group] = c.fake.get("groups")
        same(group["rules"], [["tcp", 22, 22, "0.0.0.0/0"], ["tcp", 8080, 8090, "198.51.100.0/24"], ["udp", 51820, 51820, "::/0"]])
        same(group["tags"], {"gpubroker-owner": OWNER})
        c.wait("running")
        now = c.get(m).machines[0]
        same((now["state"], now["ssh_user"], now["ssh_port"], now["tags"]["gpubroker-token"]), ("running", "ubuntu", 22, "tok-1"))
        assert now["address"].startswith("203.0.113."), now
        same([(x["id"], x["price_udollar"]) for x in c.call("list").machines], [(m["id"], m["price_udollar"])], "its price is in a tag")
        same(c.remove(m).kind, "ok")
        same(c.remove(m).kind, "ok", "removed once more while it goes")
        c.wait("gone")
        same(c.get(m).machines[0]["state"], "gone", "terminated ones are shown for an hour")
        same(c.call("list").machines, [])
        c.fake.post("advance", {"seconds": 4000})
        old = dict(m, created_ms=m["created_ms"] - 400 * SECOND)
        same(c.get(old).kind, "not-found")
        same(c.remove(old).kind, "ok", "a machine that is gone can be removed")
        same(c.fake.get("volumes"), [], "no disk is left behind")


def test_zones():
    """a zone without stock leads to the next one, each under a token of its own"""
    with Cloud() as c:
        c.fake.fault("create", "out-of-stock", times=2)
        same(c.create().kind, "ok")
        sent = c.sent()
        same((len({s["NetworkInterface.1.SubnetId"] for s in sent}), len({s["ClientToken"] for s in sent})), (3, 3))
        same(len(c.alive()), 1)
        c.fake.fault("create", "out-of-stock", times=-1)
        r = c.create(token="tok-2", name="lease-2")
        same((r.kind, r.code, c.count("create")), ("capacity", "InsufficientInstanceCapacity", 6), "every zone once")
        c.fake.calm()
        c.fake.fault("create", "no-money", times=-1)
        r = c.create(token="tok-3", name="lease-3")
        same((r.kind, r.code, c.count("create")), ("quota", "VcpuLimitExceeded", 7), "a quota is the same in all zones")
        c.fake.calm()
        starts = set()
        for i in range(12):
            same(c.create(token="z%d" % i, name="z%d" % i).kind, "ok")
            starts.add(zone_of(c.sent()[-1]))
        same(starts, set("abc"), "attempts begin in different zones")
    with Cloud() as c:
        same(c.create("us-east-1|g5.48xlarge|on-demand").kind, "ok")
        same(zone_of(c.sent()[0]), "b", "the one that has the type")


def test_spot():
    """spot takes the cheapest zone first, none above the cap, and cancels the request before the machine"""
    rest = 100 * GIB + IP
    with Cloud() as c:
        r = c.create(SPOT, max_price_udollar=301799 + rest)
        same((r.kind, c.count("create")), ("capacity", 0), "above the cap everywhere")
        c.fake.fault("create", "out-of-stock")
        r = c.create(SPOT, max_price_udollar=402400 + rest)
        same((r.kind, r.machines[0]["price_udollar"]), ("ok", 402400 + rest))
        sent = c.sent()
        same([zone_of(s) for s in sent], ["c", "a"])
        same([sent[-1]["InstanceMarketOptions." + k] for k in ("MarketType", "SpotOptions.SpotInstanceType",
             "SpotOptions.InstanceInterruptionBehavior", "SpotOptions.MaxPrice")], ["spot", "one-time", "terminate", "0.402400"])
        c.fake.fault("create", "out-of-stock", times=-1)
        same(c.create(SPOT, token="t2", name="n2", max_price_udollar=402400 + rest).kind, "capacity")
        same(c.count("create"), 4, "the dear zone was not asked")
        c.fake.calm()
        same(c.create(SPOT, token="t0", name="n0").kind, "ok")
        same(c.sent()[-1]["InstanceMarketOptions.SpotOptions.MaxPrice"], "1.006000", "never more than on demand")
        c.remove(c.results[-1].machines[0])
        m = r.machines[0]
        request = c.fake.get("spots")[0]
        same([(x["kind"], x["id"]) for x in m["resources"]], [("spot-request", request["id"])])
        same(request["tags"]["gpubroker-token"], "tok-1")
        before = len(c.fake.get("requests"))
        same(c.remove(m).kind, "ok")
        same([q["endpoint"] for q in c.fake.get("requests?since=%d" % before)], ["spot-cancel", "delete"])
        same(c.fake.get("spots")[0]["state"], "cancelled")
        c.fake.fault("spot-cancel", "broken")
        m = c.create(SPOT, token="t3", name="n3").machines[0]
        same(c.remove(m).kind, "unknown", "asked again")
        c.wait("gone", 3)
        same(c.remove(m).kind, "ok", "a request that fails does not keep its machine")
        m = c.running(SPOT, token="t4", name="n4")
        c.fake.post("machines/" + m["id"], {"do": "preempt"})
        c.wait("gone", 4)
        now = c.get(m).machines[0]
        same((now["state"], now["fail_kind"]), ("gone", "capacity"), "taken back")


def test_price_cap():
    """a machine that became dearer, disk and address counted, is refused before anything is sent"""
    price = 1006000 + 100 * GIB + IP
    with Cloud() as c:
        r = c.create(max_price_udollar=price - 1)
        same((r.kind, c.count("create"), c.count("group-make")), ("capacity", 0, 0))
        assert "1.022000" in r.text and "1.021999" in r.text, r.text
        same(c.create(max_price_udollar=price).kind, "ok")


def test_refused_here():
    """what needs no request is refused without one"""
    big = base64.b64encode(b"#!/bin/sh\n" + b"x" * 16300).decode()
    with Cloud() as c:
        for more, word in (({"offer_ref": "nonsense"}, "no offer"), ({"ssh_public_keys": []}, "SSH public key"),
                           ({"ports": [{"proto": "sctp", "from": 1, "to": 1, "cidr": "0.0.0.0/0"}]}, "ports"),
                           ({"ports": [{"proto": "tcp", "from": 9, "to": 1, "cidr": "0.0.0.0/0"}]}, "ports"),
                           ({"user_data": big, "user_data_kind": "script"}, "16384"), ({"image": "ubuntu"}, "image"),
                           ({"disk_gib": 20000}, "20000"), ({"token": "t" * 65}, "token")):
            ref = more.pop("offer_ref", G5)
            r = c.create(ref, **more)
            same(r.kind, "invalid", (word, r.text))
            assert word in r.text, (word, r.text)
        same(c.create("us-east-1|x9.large|on-demand").kind, "capacity", "sold no more")
        same(c.create("us-east-1|p5en.48xlarge|spot").kind, "capacity", "not in that market")
        same(c.create("us-east-1|p6-b300.48xlarge|on-demand").kind, "capacity", "capacity blocks are not bought")
        same(c.create(image="ami-0000000000000000b").kind, "invalid", "an image that is not there")
        same(c.count("create"), 0)


REFUSALS = [
    ({"kind": "no-money"}, "quota"), ({"kind": "unauthorized"}, "auth"), ({"kind": "forbidden"}, "auth"),
    ({"kind": "throttled", "retry_after": 1}, "rate-limited"), ({"kind": "throttled"}, "rate-limited"),
    ({"kind": "status", "status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "unavailable"),
] + [({"kind": "status", "status": status, "body": "<Response><Errors><Error><Code>%s</Code><Message>m</Message></Error></Errors>"
       "<RequestID>r-7</RequestID></Response>" % code}, kind) for status, code, kind in (
    (400, "InvalidParameterValue", "invalid"), (400, "InstanceLimitExceeded", "quota"), (400, "MaxSpotInstanceCountExceeded", "quota"),
    (400, "OptInRequired", "auth"), (400, "SomethingNew", "invalid"), (400, "InvalidGroup.NotFound", "unavailable"),
    (403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "auth"))]


def test_refusals():
    """each refusal of a create has its kind, and made nothing"""
    def look(fault, r):
        if fault["kind"] == "throttled":
            same(r.retry_after_ms, fault.get("retry_after", 2) * 1000)
        elif "r-7" in str(fault):
            same(r.request_id, "r-7")
            assert r.code in fault["body"] and r.code in r.text, r
    with Cloud() as c:
        check_refusals(c, REFUSALS, look)
        for code in ("IdempotentParameterMismatch", "IdempotentInstanceTerminated"):
            c.fake.fault("create", "status", status=400, body="<Response><Errors><Error><Code>%s</Code></Error></Errors></Response>" % code)
            same(c.create(token="c" + code, name="c").kind, "conflict", code)


# ---- doubt

DOUBTS = [{"kind": "lost-reply"}, {"kind": "bad-gateway"}, {"kind": "garbage"}, {"kind": "truncated"}, {"kind": "short-body"},
          {"kind": "nulls"}, {"kind": "huge"}, {"kind": "empty-list"}, {"kind": "hang", "seconds": 4}, {"kind": "drop"}, {"kind": "broken"},
          {"kind": "set", "fields": {"instanceId": "x"}}, {"kind": "reply", "status": 504, "body": "<html>"}]


def test_doubt():
    """a create without a definite answer is asked again under its token: one machine, and it is known"""
    with Cloud() as c:
        for i, fault in enumerate(DOUBTS):
            c.fake.post("faults", dict(fault, on="create"))
            r = c.create(token="d%d" % i, name="d%d" % i, deadline_ms=6000)
            same((r.kind, len(r.machines)), ("ok", 1), fault)
            same(len(c.alive()), i + 1, fault)
            a, b = c.sent()[-2:]
            same(a, b, "the very same request")
            c.fake.calm()
        same(len({s["ClientToken"] for s in c.sent()}), len(DOUBTS))


def test_lasting_doubt():
    """what stays without an answer is unknown, whatever comes after it, and find has it"""
    with Cloud() as c:
        for i, kind in enumerate(("lost-reply", "bad-gateway", "garbage")):
            c.fake.fault("create", kind, times=-1)
            r = c.create(token="d%d" % i, name="d%d" % i, deadline_ms=3000)
            c.fake.calm()
            same((r.kind, r.machines), ("unknown", []), kind)
            found = c.find("d%d" % i)
            same((found.kind, len(found.machines), how(found)), ("ok", 1, {"us-east-1": "complete"}), kind)
        for i, then in enumerate(("unauthorized", "throttled", "forbidden")):
            c.fake.post("faults", [{"on": "create", "kind": "lost-reply"}, {"on": "create", "kind": then, "skip": 1, "times": -1}])
            same(c.create(token="e%d" % i, name="e%d" % i, deadline_ms=3000).kind, "unknown", then)
            c.fake.calm()
            same(len(c.find("e%d" % i).machines), 1)
        same(len(c.alive()), 6)


def test_crash():
    """a process that dies in a create continues in the same zone under the same token; one machine"""
    for fault, want in (({"kind": "hang", "seconds": 5}, 1), ({"kind": "delay", "seconds": 1}, 1)):
        with tempfile.TemporaryDirectory() as state, Cloud(state_dir=state) as c:
            c.fake.post("faults", [{"on": "create", "kind": "out-of-stock", "times": 2}, dict(fault, on="create", skip=2)])
            args = {"offer_ref": G5, "max_price_udollar": 10 ** 9, "token": "tok-1", "name": "lease-1",
                    "tags": {"gpubroker-token": "tok-1"}, "ssh_public_keys": [PUBLIC_KEY]}
            c.plugin.start("create", args)
            c.fake.get("wait?endpoint=create&count=3&timeout=10")
            c.plugin.kill()
            c.fake.calm()
            c.fake.post("catalog", dict(c.fake.get("catalog"), gib_month="9.0"))  # dearer: no reason to forget what may be there
            time.sleep(fault["seconds"] if fault["kind"] == "delay" else 0)
            with Provider("aws", options={"endpoint": c.fake.url, "regions": ["us-east-1"]}, secrets=PAIR, state_dir=state) as p:
                r = p.call("create", args)
                same((r.kind, len(r.machines)), ("ok", 1), r.text)
                same((len(c.alive()), c.alive()[0]["id"]), (want, r.machines[0]["id"]), fault)
                same(c.sent()[-1], c.sent()[-2], "the very same request")
                r = p.call("create", args)
                same((r.kind, len(c.alive())), ("ok", 1), "and once more")
                same(p.call("create", dict(args, offer_ref=H100)).kind, "conflict", "the token of something else")
                same(p.call("remove", Provider.ref(r.machines[0], token="tok-1")).kind, "ok")
                same([n for n in os.listdir(state) if n.startswith("create-")], [], "removed, the note is gone")
            c.plugin = Provider("aws", options={"endpoint": c.fake.url}, secrets=PAIR)  # for the end of the test


def test_visibility():
    """an id that EC2 does not know yet is not gone; later the same answer is the end"""
    with Cloud() as c:
        c.fake.fault("create", "late", seconds=60)
        m = c.create().machines[0]
        same((c.get(m).kind, c.remove(m).kind, c.find().machines), ("unavailable", "unavailable", []))
        same(len(c.alive()), 1)
        c.fake.post("advance", {"seconds": 61})
        same((c.get(m).kind, len(c.find().machines)), ("ok", 1))
        c.fake.post("machines/" + m["id"], {"do": "vanish"})
        same(c.get(m).kind, "unavailable", "too young")
        old = dict(m, created_ms=m["created_ms"] - 400 * SECOND)
        same((c.get(old).kind, c.remove(old).kind), ("not-found", "ok"))


def test_refused_late():
    """accepted, then no stock: terminated, and why"""
    with Cloud() as c:
        c.fake.fault("create", "late-error", details="no capacity")
        m = c.create().machines[0]
        c.fake.get("wait?endpoint=create&count=1")
        c.call("list")
        c.wait("gone")
        now = c.get(m).machines[0]
        same((now["state"], now["fail_kind"], now["fail_text"]), ("error", "capacity", "no capacity"))
        same(c.remove(m).kind, "ok")
        same(c.get(m).machines[0]["state"], "gone", "removed, it is its end")
        same(c.fake.get("volumes"), [])


def test_states():
    """states that are new are unknown, never an error"""
    with Cloud() as c:
        m = c.running()
        for status, state in (("stopped", "stopped"), ("stopping", "stopping"), ("levitating", "unknown")):
            c.fake.post("machines/" + m["id"], {"do": "status", "status": status})
            same((c.get(m).machines[0]["state"], len(c.find().machines)), (state, 1), status)


# ---- kill switch

def test_kill_switch():
    """user data carries the switch; the tag moves it; the machine then ends by itself"""
    end = int(time.time()) + 3600
    with Cloud() as c:
        m = c.create(not_after_ms=end * SECOND, user_data=base64.b64encode(b"#!/bin/sh\ntrue\n").decode(), user_data_kind="script").machines[0]
        same(m["not_after_ms"], end * SECOND)
        kinds = [t for t, _ in parts_of(c.sent()[0])]
        same(kinds, ["text/cloud-boothook", "text/plain", "text/cloud-config"])
        script = parts_of(c.sent()[0])[0][1]
        assert script.startswith("#!/bin/sh\n") and "echo %d " % end in script, script
        c.wait("running")
        same(c.call("set_not_after", dict(Provider.ref(m), ms=(end + 7200) * SECOND)).kind, "ok")
        same(c.get(m).machines[0]["not_after_ms"], (end + 7200) * SECOND)
        c.fake.post("advance", {"seconds": 3700})
        same(c.get(m).machines[0]["state"], "running", "it was moved")
        c.fake.post("advance", {"seconds": 7300})
        c.wait("gone")
        same(c.fake.get("volumes"), [])
        m = c.create(token="t2", name="n2").machines[0]
        same("not_after_ms" in m, False, "without an end there is no switch")
        same(c.call("set_not_after", dict(Provider.ref(dict(m, id="i-0none")), ms=end * SECOND)).kind, "not-found")


def test_switch_script():
    """the script of the switch, run by a shell with stand-ins: past the tag's time it powers off, before it does not"""
    with Cloud() as c:
        c.create(not_after_ms=5000 * SECOND)
        hook = parts_of(c.sent()[0])[0][1]
    for tag, now, want in (("6000", 5500, False), ("6000", 6000, True), ("", 5500, True), ("", 4000, False), ("<html>", 5500, True),
                           ("4000", 4500, True)):
        with tempfile.TemporaryDirectory() as d:
            bin = os.path.join(d, "bin")
            os.mkdir(bin)
            stands = {"curl": 'case "$*" in *api/token*) echo t;; *) [ -n "%s" ] && echo "%s";; esac' % (tag, tag),
                      "systemctl": 'echo "$@" >>%s/calls' % d, "date": "echo %d" % now}
            for name, text in stands.items():
                with open(os.path.join(bin, name), "w") as f:
                    f.write("#!/bin/sh\n" + text + "\n")
                os.chmod(os.path.join(bin, name), 0o755)
            script = hook.replace("/var/lib/gpubroker", d + "/lib").replace("/run/systemd/system", d + "/units")
            env = dict(os.environ, PATH=bin + ":/usr/bin:/bin")
            subprocess.run(["sh", "-c", script], env=env, check=True, timeout=20)
            subprocess.run(["sh", d + "/lib/expire"], env=env, timeout=20)
            with open(d + "/calls") as f:
                calls = f.read()
            same(("poweroff" in calls, "gpubroker-expire.timer" in calls), (want, True), (tag, now))
            with open(d + "/units/gpubroker-expire.service") as f:
                assert "ExecStart=/bin/sh %s/lib/expire\n" % d in f.read()


def test_user_data():
    """each kind of user data reaches cloud-init as itself"""
    mime = "Content-Type: multipart/mixed; boundary=\"xyz\"\nMIME-Version: 1.0\n\n--xyz\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--xyz--\n"
    with Cloud() as c:
        for i, (data, kinds) in enumerate(((b"#!/bin/sh\n\xc3\xa9\n", ["text/plain", "text/cloud-config"]),
                                           (b"\x1f\x8b\x00binary", ["text/plain", "text/cloud-config"]),
                                           (mime.encode(), ["multipart/mixed", "text/cloud-config"]), (b"", ["text/cloud-config"]))):
            same(c.create(token="u%d" % i, name="u%d" % i, user_data=base64.b64encode(data).decode(), user_data_kind="cloud").kind, "ok")
            message = email.message_from_bytes(base64.b64decode(c.sent()[-1]["UserData"]))
            same([p.get_content_type() for p in message.get_payload()], kinds, data)
            if kinds[0] == "text/plain":
                same(message.get_payload()[0].get_payload(decode=True), data)
            elif data:
                same([p.get_content_type() for p in message.get_payload()[0].get_payload()], ["text/x-shellscript"])
            last = message.get_payload()[-1]
            assert "append" in last["Merge-Type"] and PUBLIC_KEY in last.get_payload()


# ---- security group

def test_group():
    """one group for each set of ports, however many creates want it at once and whatever happens to answers"""
    with Cloud() as c:
        c.fake.fault("groups", "delay", seconds=0.3, times=3)
        start_creates(c, 8)
        same(len(c.fake.get("groups")), 1)
        same(len(c.fake.get("groups")[0]["rules"]), 1)
        port = [{"proto": "tcp", "from": 80, "to": 80, "cidr": "0.0.0.0/0"}]
        same(c.create(token="p1", name="p1", ports=port).kind, "ok")
        same(c.create(token="p2", name="p2", ports=port).kind, "ok")
        same(sorted(len(g["rules"]) for g in c.fake.get("groups")), [1, 2])
    for endpoint in ("group-make", "group-rule"):
        for kind in ("lost-reply", "bad-gateway", "garbage", "broken"):
            with Cloud() as c:
                c.fake.fault(endpoint, kind)
                r = c.create()
                same((r.kind, len(c.fake.get("groups")), c.fake.get("groups")[0]["rules"]), ("ok", 1, [["tcp", 22, 22, "0.0.0.0/0"]]), (endpoint, kind, r.text))
            with Cloud() as c:
                c.fake.fault(endpoint, "forbidden", times=-1)
                same((c.create().kind, c.count("create")), ("auth", 0))
    with Cloud(ssh_from="192.0.2.0/24") as c:
        c.create()
        same(c.fake.get("groups")[0]["rules"], [["tcp", 22, 22, "192.0.2.0/24"]])


# ---- absence

def test_no_absence():
    """no failed, partial or foreign answer proves that a machine is gone"""
    with Cloud() as c:
        m = c.create().machines[0]
        old = dict(m, created_ms=m["created_ms"] - 400 * SECOND)
        for kind in ("nulls", "garbage", "truncated", "short-body", "broken", "drop", "throttled", "unauthorized", "forbidden", "huge"):
            for endpoint, call, args in (("list", "list", {}), ("info", "get", Provider.ref(old))):
                c.fake.fault(endpoint, kind, times=-1)
                r = c.call(call, args, deadline_ms=600)
                c.fake.calm()
                same(r.machines, [], kind)
                assert "complete" not in how(r).values(), "%s: %r" % (kind, r.scopes)
                assert r.kind not in ("not-found", "unknown", "internal") and (r.kind != "ok" or call == "list"), "%s: %r" % (kind, r)
        for status in (200, 404):  # a proxy, a portal: nothing that EC2 said
            for call in ("get", "remove"):
                c.fake.fault("info" if call == "get" else "delete", "status", status=status, body="<html><body>log in</body></html>")
                assert c.call(call, Provider.ref(old)).kind in ("unavailable", "unknown"), (status, call, c.results[-1])
        same(len(c.alive()), 1)
        other = dict(old, id="i-0123456789abcdef0", plugin_data="999999999999")
        for call in ("get", "remove"):
            r = c.call(call, Provider.ref(other))
            same(r.kind, "auth", "of another account, which these keys cannot see")
            assert "999999999999" in r.text and "123456789012" in r.text, r.text
        same(m["plugin_data"], "123456789012")
        for fields in ({"instanceId": "x"}, {"tagSet": None}):
            c.fake.fault("list", "set", fields=fields)
            r = c.call("list")
            same((r.machines, how(r)), ([], {"us-east-1": "partial"}), fields)
        c.fake.fault("info", "set", fields={"instanceId": "i-0other"})
        same(c.get(old).kind, "unavailable", "an answer about something else")
        c.fake.fault("info", "empty-list")
        same(c.get(old).kind, "unavailable", "an empty answer is not 'not found'")
        for endpoint in ("volumes", "spot-requests"):
            c.fake.fault(endpoint, "forbidden")
            r = c.call("list")
            same((how(r), len(r.machines)), ({"us-east-1": "failed"}, 1), endpoint)
        c.fake.fault("list", "duplicate-rows")
        same(len(c.call("list").machines), 1)


def test_remove():
    """removals: doubt is unknown, a refusal is not the end of it, absence is fine"""
    with Cloud() as c:
        m = c.running()
        for kind, want in (("drop", "unknown"), ("broken", "unknown"), ("unauthorized", "auth"), ("throttled", "rate-limited"),
                           ("lost-reply", "unknown")):
            c.fake.fault("delete", kind)
            same(c.remove(m).kind, want, kind)
        c.wait("gone")
        same(c.remove(m).kind, "ok")
        m = c.running(token="t2", name="n2")
        c.fake.fault("delete", "status", status=400, body="<Response><Errors><Error><Code>OperationNotPermitted</Code></Error></Errors></Response>")
        same(c.remove(m).kind, "unavailable", "protected: asked again")
        for ref in ({"id": "i-0/../x", "scope": "us-east-1"}, {"id": m["id"], "scope": "evil.example/"}, {"id": "vol-1", "scope": "us-east-1"}):
            for call in ("get", "remove"):
                same(c.call(call, {"ref": ref}).kind, "invalid", ref)
        same(len(c.alive()), 1)


def test_strays():
    """a disk and a spot request without a machine are shown and can be removed; others' are not touched"""
    mark = {"gpubroker-owner": OWNER, "gpubroker-lease": "7", "gpubroker-token": "tok-1"}
    with Cloud() as c:
        offers(c)
        for kind in ("volume", "spot"):
            c.fake.post("strays", {"kind": kind, "region": "us-east-1", "tags": mark})
            c.fake.post("strays", {"kind": kind, "region": "us-east-1", "tags": {"mine": "yes"}})
        for r in (c.call("list"), c.find()):
            same(sorted((x["kind"], x["billable"], x["price_udollar"], x["tags"]["gpubroker-lease"]) for x in r.resources),
                 [("disk", True, 100 * GIB, "7"), ("spot-request", False, 0, "7")])
            same(how(r), {"us-east-1": "complete"})
        same(c.find("tok-2").resources, [])
        ref = {"ref": {"id": "", "scope": "us-east-1", "resources": [{k: x[k] for k in ("kind", "id", "scope")} for x in r.resources]}}
        same(len(c.call("get", ref).resources), 2)
        same(c.call("remove", ref).kind, "ok")
        same(c.call("get", ref).kind, "not-found")
        same(c.call("remove", ref).kind, "ok", "once more")
        same((len(c.fake.get("volumes")), sorted(s["state"] for s in c.fake.get("spots"))), (1, ["cancelled", "open"]))
        m = c.running(SPOT)
        same(c.call("list").resources, [], "what a machine has is no stray")
        c.remove(m)


def test_foreign():
    """machines of others are never shown nor touched"""
    with Cloud() as c:
        for tags in (["mine=1"], ["owner=x", "gpubroker=1"]):
            c.fake.post("machines", {"name": "lease-1", "tags": tags})
        c.create(name="lease-9")
        r = c.call("list")
        same([m["tags"]["gpubroker-token"] for m in r.machines], ["tok-1"])
        same((len(c.find("tok-1").machines), c.find("tok-other").machines), (1, []))
        same(len(c.call("find", {"token": "", "name": "lease-1", "scope": None}).machines), 2, "by name")
        c.wait("running")
        c.remove(r.machines[0])
        same({q["body"]["InstanceId.1"] for q in c.fake.get("requests") if q["endpoint"] == "delete"}, {r.machines[0]["id"]})
        assert not any(m["ended_ms"] for m in c.fake.get("machines") if m["foreign"])


def test_console():
    """the console's text"""
    with Cloud() as c:
        m = c.running()
        same(c.call("console_log", Provider.ref(m)).value["text"], "booting lease-1\nubuntu login:\n")
        c.fake.fault("console", "set", fields={"output": None})
        same(c.call("console_log", Provider.ref(m)).value["text"], "", "nothing yet")
        c.fake.fault("console", "set", fields={"output": "%%%"})
        same(c.call("console_log", Provider.ref(m)).kind, "ok")


# ---- credentials

def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def test_files():
    """profiles of the shared files, and a credential_process"""
    with tempfile.TemporaryDirectory() as d:
        document = write(d, "doc.json", '{"Version": 1, "AccessKeyId": "%s", "SecretAccessKey": "%s"}' % (KEY_ID, KEY))
        shared = write(d, "credentials", "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n" % (KEY_ID, KEY))
        config = write(d, "config", """[profile p]
credential_process = cat %s
[profile slow]
credential_process = echo canary-shown >&2; cat %s/nothing
[profile odd]
credential_process = echo '{"Version": 2}'
[profile role]
role_arn = arn:aws:iam::1:role/x
[profile flood]
credential_process = head -c 1000000 /dev/zero
""" % (shlex.quote(document), d))
        for profile, want, word in ((None, "ok", ""), ("p", "ok", ""), ("slow", "auth", "exit 1"), ("odd", "auth", "version 1"),
                                    ("role", "auth", "assumes a role"), ("missing", "auth", "'missing'"), ("flood", "auth", "too much")):
            options = {"profile": profile} if profile else {}
            with Cloud(secrets={}, shared_credentials_file=shared, config_file=config, imds=False, **options) as c:
                r = c.call("probe")
                same(r.kind, want, (profile, r.text))
                assert word in r.text, (profile, r.text)
    with Cloud(secrets={}, shared_credentials_file="/nonexistent/a", config_file="/nonexistent/b", imds=False) as c:
        r = c.call("probe")
        assert r.kind == "auth" and "no credentials" in r.text, r
    with Cloud(secrets={"access_key_id": KEY_ID}, imds=False) as c:
        r = c.call("probe")
        assert r.kind == "auth" and "secret_access_key is not" in r.text, r


NO_FILES = {"shared_credentials_file": "/nonexistent/a", "config_file": "/nonexistent/b"}


def test_metadata():
    """keys of a machine's role and of a container's endpoint; renewed before they end and when they are refused"""
    with Cloud(secrets={}, **NO_FILES) as c:
        url = c.fake.url
        for secrets, options in (({}, {"endpoints": {"imds": url}}),
                                 ({"credentials_token": "container-token\n"}, {"credentials_url": url + "/credentials", "imds": False})):
            c.fake.post("rotate", {"ttl": 3600})
            with Provider("aws", options=dict({"endpoint": url, "regions": ["us-east-1"]}, **NO_FILES, **options), secrets=secrets) as p:
                before = c.count("imds")
                for _ in range(3):
                    same(p.call("probe").kind, "ok")
                once = c.count("imds") - before
                assert once in (1, 3), once
                c.fake.post("rotate", {"ttl": 3600})  # what was given out is refused from now on
                r = p.call("probe")
                same((r.kind, c.count("imds") - before), ("ok", 2 * once), r.text)
                c.fake.post("rotate", {"ttl": 60})    # ends sooner than it is renewed before
                same(p.call("probe").kind, "ok")
                seen = c.count("imds")
                same(p.call("probe").kind, "ok")
                same(c.count("imds") - seen, once, "asked for again")
                c.fake.fault("imds", "broken", times=-1)
                same(p.call("probe", deadline_ms=8000).kind, "ok", "a renewal that fails leaves what is still good")
                c.fake.calm()
                assert "canary-session" not in str(p.logs), p.logs
    with Cloud(secrets={}, endpoints={"imds": "http://127.0.0.1:1"}, **NO_FILES) as c:
        same(c.call("probe", deadline_ms=8000).kind, "auth", "not on EC2")
    with Cloud(secrets={}, credentials_url="http://127.0.0.1:1/x", **NO_FILES) as c:
        assert c.call("probe", deadline_ms=4000).kind in ("unavailable", "cancelled"), "an endpoint that is down is no wrong key"


def test_wrong_keys():
    """a wrong secret is an auth failure everywhere, and is never shown"""
    with Cloud(key="canary-wrong-key") as c:
        for call, args in (("probe", {}), ("list_offers", {"offer_ref": None}), ("list", {})):
            r = c.call(call, args)
            same((r.kind, r.code), ("auth", "SignatureDoesNotMatch"), call)
            assert "secret key" in r.text, r.text
        same(c.create().kind, "auth")
    with Cloud() as c:
        c.fake.fault("identity", "status", status=403, body="<ErrorResponse><Error><Code>AccessDenied</Code><Message>no %s</Message>"
                     "</Error></ErrorResponse>" % KEY)
        r = c.call("probe")
        assert r.code == "AccessDenied" and KEY not in r.text, r


def test_clock():
    """a clock that is wrong is called so"""
    for offset, word in ((600, "600 s ahead of"), (-900, "900 s behind")):
        os.environ["GPUB_TEST_CLOCK_OFFSET_MS"] = str(offset * SECOND)
        try:
            with Cloud() as c:
                r = c.call("probe")
        finally:
            del os.environ["GPUB_TEST_CLOCK_OFFSET_MS"]
        same((r.kind, r.code), ("auth", "RequestExpired"))
        number, rest = word.split(" ", 1)
        assert rest in r.text and "clock" in r.text and any(str(int(number) + i) in r.text for i in (-2, -1, 0, 1, 2)), r.text


def test_signed():
    """every request but those for keys is signed, with what it carries"""
    with Cloud(**ALL) as c:
        c.call("probe"), offers(c)
        m = c.running(SPOT)
        c.get(m), c.find(), c.call("list"), c.call("console_log", Provider.ref(m)), c.remove(m)
        same([q["endpoint"] for q in c.fake.get("requests") if not q["auth"]], [])


def test_options():
    """options that cannot be are refused by name"""
    for options, word in (({"regions": ["us east"]}, "regions"), ({"ssh_from": "everywhere"}, "ssh_from"), ({"endpoint": "ftp://x"}, "endpoint"),
                          ({"disk_gib": 0}, "disk_gib")):
        p = Provider("aws", options=options, secrets=PAIR, ready=False)
        same(p.ready["kind"], "invalid", options)
        assert word in p.ready["text"], p.ready
        p.close()


def test_manual():
    """the manual names exactly the options that the plugin has"""
    check_manual("aws")


if __name__ == "__main__":
    tap(globals())
