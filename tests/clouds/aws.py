"""aws.py - a fake of what gpubroker uses of AWS: EC2, SSM, STS, the price list, and the metadata service

Every request's signature is verified from scratch, with this file's own few lines.  Beyond the wire: client tokens are
enforced, a terminated machine stays listed for an hour, capacity differs by zone, wrong parameters are refused and noted
as violations.  The secret of every key is --api-key.

Endpoints for faults: identity regions types offerings spot-prices images parameter products vpcs subnets groups
group-make group-rule create list info delete tag console volumes volume-delete spot-requests spot-cancel imds
Control calls of its own: GET /_fake/groups, /_fake/volumes, /_fake/spots: what exists; POST /_fake/sick
{"region": R or null, "how": "broken" | "denied" | "hang", "seconds": S}: all of that region is; POST /_fake/strays
{"kind": "volume" | "spot", "region", "tags": {...}}; POST /_fake/rotate {"ttl": seconds}: temporary keys so far are
expired, the next ones live so long; POST /_fake/vpcs {"region", "default": bool}.
"""
import base64
import email
import hashlib
import hmac
import json
import re
import time
import urllib.parse
import uuid
from datetime import datetime, timezone
from xml.sax.saxutils import escape

import aws_catalog
import fake
from fake import Cloud, Reply
from machines import Machine

KEY_ID = "AKIAFAKEFAKEFAKEFAKE"
SKEW_S = 300
TERMINATED_S = 3600
JSON_SERVICES = ("ssm", "pricing")
NS = "http://ec2.amazonaws.com/doc/2016-11-15/"
RUN_PARAMETERS = re.compile("|".join((
    "Action|Version|ImageId|InstanceType|MinCount|MaxCount|ClientToken|UserData|InstanceInitiatedShutdownBehavior",
    r"MetadataOptions\.(HttpTokens|HttpEndpoint|HttpPutResponseHopLimit|InstanceMetadataTags)",
    r"NetworkInterface\.1\.(DeviceIndex|SubnetId|SecurityGroupId\.1|AssociatePublicIpAddress|DeleteOnTermination)",
    r"BlockDeviceMapping\.1\.(DeviceName|Ebs\.(VolumeSize|VolumeType|DeleteOnTermination))",
    r"TagSpecification\.\d\.(ResourceType|Tag\.\d+\.(Key|Value))",
    r"InstanceMarketOptions\.(MarketType|SpotOptions\.(SpotInstanceType|InstanceInterruptionBehavior|MaxPrice))")))


def stamp(t):
    return datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ident(prefix):
    return prefix + uuid.uuid4().hex[:17]


def subnet_of(region, zone):
    return "subnet-" + hashlib.sha256((region + zone).encode()).hexdigest()[:17]


def xml(value):
    if isinstance(value, dict):
        return "".join("<%s>%s</%s>" % (k, xml(v), k) for k, v in value.items())
    if isinstance(value, list):
        return "".join("<item>%s</item>" % xml(v) for v in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else escape(str(value))


class Xml(Reply):
    """A dict as a document; its list members become sets of items."""
    root = "Response"

    def __init__(self, root, body):
        super().__init__(200, body, {"Content-Type": "text/xml;charset=UTF-8"})
        self.root = root

    def bytes(self):
        if not isinstance(self.body, dict):
            return super().bytes()
        return ('<?xml version="1.0" encoding="UTF-8"?>\n<%s xmlns="%s"><requestId>%s</requestId>%s</%s>' %
                (self.root, NS, uuid.uuid4(), xml(self.body), self.root)).encode()


class Refusal(Reply):
    """An error, in the dress of the service that was asked."""

    def __init__(self, status, code, text="", service="ec2"):
        super().__init__(status, None)
        self.code, self.text, self.service = code, text or code, service

    def bytes(self):
        if self.body is not None:
            return super().bytes()
        if self.service in JSON_SERVICES:
            return json.dumps({"__type": "com.amazonaws#" + self.code, "message": self.text}).encode()
        error = "<Error><Code>%s</Code><Message>%s</Message></Error>" % (self.code, escape(self.text))
        if self.service == "sts":
            return ("<ErrorResponse>%s<RequestId>req-1</RequestId></ErrorResponse>" % error).encode()
        return ("<Response><Errors>%s</Errors><RequestID>req-1</RequestID></Response>" % error).encode()


def listed(params, stem):
    """The values of stem.1, stem.2, ..."""
    out = []
    while "%s.%d" % (stem, len(out) + 1) in params:
        out.append(params["%s.%d" % (stem, len(out) + 1)])
    return out


def filters(params):
    out, n = {}, 1
    while "Filter.%d.Name" % n in params:
        out[params["Filter.%d.Name" % n]] = listed(params, "Filter.%d.Value" % n)
        n += 1
    return out


def matches(text, patterns):
    return any(re.fullmatch(re.escape(p).replace(r"\*", ".*"), text or "") for p in patterns)


def tagged(tags, wanted):
    """Do these tags satisfy the tag filters among those?"""
    for name, values in wanted.items():
        if name == "tag-key" and not set(values) & set(tags):
            return False
        if name.startswith("tag:") and tags.get(name[4:]) not in values:
            return False
    return True


def tag_set(tags):
    return [{"key": k, "value": v} for k, v in tags.items()]


def tags_of(params, resource):
    """The tags of one TagSpecification."""
    n = 1
    while "TagSpecification.%d.ResourceType" % n in params:
        stem = "TagSpecification.%d.Tag" % n
        if params["TagSpecification.%d.ResourceType" % n] == resource:
            tags, i = {}, 1
            while "%s.%d.Key" % (stem, i) in params:
                tags[params["%s.%d.Key" % (stem, i)]] = params["%s.%d.Value" % (stem, i)]
                i += 1
            return tags
        n += 1
    return {}


def keys_in(user_data):
    """The SSH keys of the cloud-config part, and whether a kill switch is there."""
    keys, switch = [], False
    for part in email.message_from_bytes(user_data).walk():
        text = part.get_payload() if isinstance(part.get_payload(), str) else ""
        if part.get_content_type() == "text/cloud-boothook":
            switch = "gpubroker-not-after" in text
        if "ssh_authorized_keys:" in text and part.get_content_type() == "text/cloud-config":
            keys += [json.loads(line[4:]) for line in text.splitlines() if line.startswith('  - "')]
    return keys, switch


class Aws(Cloud):
    name, prefix, ssh_user = "aws", "", "ubuntu"
    phases, running, ending, error = ["pending"], "running", "shutting-down", "terminated"
    delays = {"pending": 0.2, "shutting-down": 0.3}
    codes = {"out-of-stock": (500, "InsufficientInstanceCapacity"), "no-money": (400, "VcpuLimitExceeded"),
             "unauthorized": (401, "AuthFailure"), "forbidden": (403, "UnauthorizedOperation"),
             "throttled": (503, "RequestLimitExceeded"), "not-found": (400, "InvalidInstanceID.NotFound"),
             "broken": (500, "InternalError"), "expired": (400, "ExpiredToken")}
    presets = {kind: None for kind in codes}

    def __init__(self, options):
        self.tokens, self.groups, self.volumes, self.spots, self.sick = {}, {}, {}, {}, {}
        self.wrongs, self.temporary, self.ttl, self.issued = [], {}, 3600, 0
        self.imds_token = uuid.uuid4().hex
        self.images = {}
        super().__init__(options)

    def default_catalog(self):
        return aws_catalog.everything()

    def preset(self, kind, fault):
        status, code = self.codes[kind]
        reply = Refusal(status, code, fault.get("text", "because of " + kind))
        if fault.get("retry_after"):
            reply.headers["Retry-After"] = str(fault["retry_after"])
        return reply

    def no_route(self, request):
        return Refusal(400, "InvalidAction")

    # ---- who asks

    def verify(self, request):
        """None, or the refusal: signature version 4, from the documentation."""
        m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), "
                         r"Signature=([0-9a-f]{64})", request.headers.get("Authorization") or "")
        if not m:
            return Refusal(403, "MissingAuthenticationToken")
        key, day, region, service, names, signature = m.groups()
        request.region, request.service = region, service
        secret, token, until = self.options.api_key, None, None
        if key != KEY_ID:
            if key not in self.temporary:
                return Refusal(401, "AuthFailure" if service == "ec2" else "InvalidClientTokenId")
            token, until = self.temporary[key]
        must = {"host", "x-amz-date", "content-type"} | ({"x-amz-security-token"} if token else set())
        date = request.headers.get("X-Amz-Date") or ""
        if not must <= set(names.split(";")) or names.split(";") != sorted(names.split(";")) or date[:8] != day:
            return Refusal(403, "IncompleteSignature")
        lines = "".join("%s:%s\n" % (n, " ".join((request.headers.get(n) or "").split())) for n in names.split(";"))
        canonical = "\n".join((request.method, request.path, "", lines, names, hashlib.sha256(request.raw).hexdigest()))
        scope = "%s/%s/%s/aws4_request" % (day, region, service)
        text = "\n".join(("AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        k = b"AWS4" + secret.encode()
        for part in (day, region, service, "aws4_request"):
            k = hmac.new(k, part.encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(hmac.new(k, text.encode(), hashlib.sha256).hexdigest(), signature):
            return Refusal(403, "SignatureDoesNotMatch")
        if token and request.headers.get("X-Amz-Security-Token") != token:
            return Refusal(403, "InvalidClientTokenId")
        if until and self.park.now() > until:
            return Refusal(400, "ExpiredToken")
        signed = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
        if min(abs(signed - self.park.now()), abs(signed - time.time())) > SKEW_S:  # who asks may not have been advanced
            return Refusal(400, "RequestExpired")
        return None

    def authorised(self, request):
        return request.refusal is None

    def unauthorised(self):
        return Refusal(401, "AuthFailure")

    # ---- from the wire to an action

    def route(self, request):
        request.region = request.service = request.refusal = None
        if request.path.startswith("/latest/") or request.path == "/credentials":
            request.endpoint = "imds"
            return Aws.metadata
        request.refusal = self.verify(request)
        if request.service in JSON_SERVICES:
            action = (request.headers.get("X-Amz-Target") or "").split(".")[-1]
            request.params = request.body or {}
        else:
            request.params = dict(urllib.parse.parse_qsl(request.raw.decode(), keep_blank_values=True))
            action = request.params.get("Action", "")
            request.body = request.params  # for the log
        found = next(((e, h) for _, a, e, h in self.routes if a == action), None)
        if not found:
            return None
        request.endpoint, handler = found
        if action == "DescribeInstances" and "InstanceId.1" in request.params:
            request.endpoint = "info"
        return handler

    def answer(self, request, handler):
        sick = self.sick.get(request.region)
        if sick and sick["how"] == "hang":
            time.sleep(sick.get("seconds", 5))
        if sick and request.service == "ec2":
            return self.preset("unauthorized" if sick["how"] == "denied" else "broken", {})
        reply = request.refusal if request.refusal and not request.faults else super().answer(request, handler)
        if isinstance(reply, Refusal) and request.service:
            reply.service = request.service
        return reply

    def bad(self, code, text):
        """The fault of whoever wrote the request."""
        self.wrongs.append("%s: %s" % (code, text))
        return Refusal(400, code, text)

    def paged(self, request, root, name, rows):
        most = min(int(request.params.get("MaxResults", 1000)), self.options.page_max)
        at = int(request.params.get("NextToken", "p0")[1:])
        body = {name: rows[at:at + most]}
        if at + most < len(rows):
            body["nextToken"] = "p%d" % (at + most)
        return Xml(root + "Response", body)

    # ---- the metadata service and containers

    def metadata(self, request):
        now, path = self.park.now(), request.path
        if path == "/latest/api/token":
            return Reply(200, self.imds_token, {"Content-Type": "text/plain"}) if request.method == "PUT" else Reply(405, "no")
        if path == "/credentials":
            if request.headers.get("Authorization") != "container-token":
                return Reply(403, {"code": "AccessDenied"})
        elif request.headers.get("X-aws-ec2-metadata-token") != self.imds_token:
            return Reply(401, "")
        elif path == "/latest/meta-data/iam/security-credentials/":
            return Reply(200, "gpu-role", {"Content-Type": "text/plain"})
        elif not path.endswith("/gpu-role"):
            return Reply(404, "")
        self.issued += 1
        key, token = "ASIAFAKE%012d" % self.issued, "canary-session-%d" % self.issued
        self.temporary[key] = (token, now + self.ttl)
        return Reply(200, {"Code": "Success", "AccessKeyId": key, "SecretAccessKey": self.options.api_key, "Token": token,
                           "Expiration": stamp(now + self.ttl)})

    def identity(self, request):
        return Xml("GetCallerIdentityResponse", {"GetCallerIdentityResult": {
            "Arn": "arn:aws:iam::123456789012:user/gpubroker", "UserId": "AIDAFAKE", "Account": "123456789012"}})

    # ---- catalogue

    def regions(self, request):
        rows = [{"regionName": r, "regionEndpoint": "ec2.%s.amazonaws.com" % r, "optInStatus": "opt-in-not-required"}
                for r in self.catalog["regions"]]
        return self.paged(request, "DescribeRegions", "regionInfo",
                          rows + [{"regionName": "af-south-1", "optInStatus": "not-opted-in"}])

    def asked_types(self, request):
        patterns = filters(request.params).get("instance-type", ["*"])
        names = listed(request.params, "InstanceType")
        return [t for t in self.catalog["types"] if matches(t.get("type"), patterns) and (not names or t["type"] in names)]

    def types(self, request):
        rows = []
        for t in self.asked_types(request):
            row = {"instanceType": t["type"], "bareMetal": t["type"] and t["type"].endswith(".metal"),
                   "supportedUsageClasses": t["classes"], "vCpuInfo": {"defaultVCpus": t["vcpus"]},
                   "memoryInfo": {"sizeInMiB": t["gib"] and t["gib"] * 1024},
                   "processorInfo": {"supportedArchitectures": [t["arch"]], "manufacturer": "AMD"}}
            if t["gpu"]:
                part = aws_catalog.PARTS.get(t["type"])
                gpu = {"name": t["gpu"], "manufacturer": "AMD" if t["gpu"].startswith("Radeon") else "NVIDIA", "count": t["count"], "memoryInfo": {"sizeInMiB": t["mib"]}}
                row["gpuInfo"] = {"gpus": [dict(gpu, **({"gpuPartitionSize": part} if part else {}))],
                                  "totalGpuMemoryInMiB": t["mib"] * t["count"]}
            rows.append(row)
        return self.paged(request, "DescribeInstanceTypes", "instanceTypeSet", rows)

    def offerings(self, request):
        if request.params.get("LocationType") != "availability-zone":
            return self.bad("InvalidParameterValue", "LocationType")
        rows = [{"instanceType": t["type"], "locationType": "availability-zone", "location": request.region + z}
                for t in self.asked_types(request) for z in t["zones"]]
        return self.paged(request, "DescribeInstanceTypeOfferings", "instanceTypeOfferingSet", rows)

    def spot_prices(self, request):
        if "Linux/UNIX" not in listed(request.params, "ProductDescription") or "StartTime" not in request.params:
            return self.bad("InvalidParameterValue", "ProductDescription or StartTime")
        rows = []
        for t in self.asked_types(request):
            for zone, price in t["spot"].items():
                row = {"instanceType": t["type"], "availabilityZone": request.region + zone, "productDescription": "Linux/UNIX"}
                rows.append(dict(row, spotPrice=price, timestamp="2026-11-30T10:00:00.000Z"))
                rows.append(dict(row, spotPrice="0.000100", timestamp="2026-11-01T10:00:00.000Z"))  # long ago
        return self.paged(request, "DescribeSpotPriceHistory", "spotPriceHistorySet", rows)

    def products(self, request):
        if request.region not in ("us-east-1", "eu-central-1", "ap-south-1"):
            return self.bad("UnknownEndpoint", request.region)
        want = {f["Field"]: f["Value"] for f in request.params["Filters"]}
        rows = []
        if want.get("productFamily") == "Storage":
            rows.append(self.product({"volumeApiName": "gp3", "regionCode": want["regionCode"]}, "GB-Mo",
                                     self.catalog["gib_month"]))
        else:
            for t in self.catalog["types"]:
                a = {"instanceType": t["type"], "regionCode": want["regionCode"], "operatingSystem": "Linux", "tenancy": "Shared",
                     "capacitystatus": "Used", "preInstalledSw": "NA", "marketoption": "OnDemand"}
                if t["price"]:
                    rows.append(self.product(a, "Hrs", t["price"]))
                rows.append(self.product(dict(a, marketoption="CapacityBlock"), "Hrs", "0.0000000000"))
        at, most = int(request.params.get("NextToken", "0")), min(request.params.get("MaxResults", 100), self.options.page_max)
        body = {"FormatVersion": "aws_v1", "PriceList": rows[at:at + most]}
        if at + most < len(rows):
            body["NextToken"] = str(at + most)
        return Reply(200, body)

    def product(self, attributes, unit, dollars):
        sku = "SKU" + hashlib.sha256(json.dumps(attributes).encode()).hexdigest()[:12].upper()
        rate = {"unit": unit, "pricePerUnit": {"USD": dollars}, "description": "$%s per %s" % (dollars, unit)}
        return json.dumps({"product": {"productFamily": "Compute Instance", "sku": sku, "attributes": attributes},
                           "terms": {"OnDemand": {sku + ".JRT": {"priceDimensions": {sku + ".JRT.6YS": rate}}}}})

    # ---- images

    def image(self, region, arch):
        known = self.images.setdefault((region, arch), ident("ami-"))
        return {"imageId": known, "name": aws_catalog.IMAGE, "architecture": arch, "imageState": "available",
                "creationDate": "2026-11-01T00:00:00.000Z", "rootDeviceName": "/dev/sda1",
                "blockDeviceMapping": [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": 35, "volumeType": "gp3"}}]}

    def image_list(self, request):
        want, ids = filters(request.params), listed(request.params, "ImageId")
        rows = [self.image(request.region, arch) for arch in ("x86_64", "arm64")]
        old = dict(self.image(request.region, "x86_64"), imageId="ami-0000000000000000a", creationDate="2025-01-01T00:00:00.000Z")
        rows = [r for r in rows + [old] if (not ids or r["imageId"] in ids) and
                all(matches(r[k], want[f]) for f, k in (("name", "name"), ("architecture", "architecture")) if f in want)]
        if ids and not rows:
            return Refusal(400, "InvalidAMIID.NotFound")
        return self.paged(request, "DescribeImages", "imagesSet", rows)

    def parameter(self, request):
        m = re.fullmatch(r"/aws/service/deeplearning/ami/(x86_64|arm64)/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
                         request.params.get("Name", ""))
        if not m:
            return Refusal(400, "ParameterNotFound")
        return Reply(200, {"Parameter": {"Name": request.params["Name"], "Value": self.image(request.region, m[1])["imageId"]}})

    # ---- network

    def vpc_of(self, region):
        return "vpc-" + hashlib.sha256(region.encode()).hexdigest()[:17]

    def vpcs(self, request):
        there = self.catalog["regions"].get(request.region, {}).get("default_vpc")
        return self.paged(request, "DescribeVpcs", "vpcSet", [{"vpcId": self.vpc_of(request.region), "isDefault": True}] if there else [])

    def subnets(self, request):
        if filters(request.params).get("vpc-id") != [self.vpc_of(request.region)]:
            return self.paged(request, "DescribeSubnets", "subnetSet", [])
        rows = [{"subnetId": subnet_of(request.region, z), "availabilityZone": request.region + z, "state": "available",
                 "vpcId": self.vpc_of(request.region), "defaultForAz": True, "availableIpAddressCount": 4091}
                for z in aws_catalog.ZONES]
        rows.insert(0, dict(rows[0], subnetId="subnet-0other", defaultForAz=False))
        return self.paged(request, "DescribeSubnets", "subnetSet", rows)

    def group_list(self, request):
        want = filters(request.params)
        rows = []
        for g in self.groups.values():
            if g["region"] != request.region or g["name"] not in want.get("group-name", [g["name"]]):
                continue
            rows.append({"groupId": g["id"], "groupName": g["name"], "vpcId": self.vpc_of(g["region"]), "tagSet": tag_set(g["tags"]),
                         "ipPermissions": [{"ipProtocol": p, "fromPort": a, "toPort": b, "ipRanges": [{"cidrIp": c}] if ":" not in c else [],
                                            "ipv6Ranges": [{"cidrIpv6": c}] if ":" in c else []} for p, a, b, c in g["rules"]]})
        return self.paged(request, "DescribeSecurityGroups", "securityGroupInfo", rows)

    def group_make(self, request):
        p = request.params
        if any(g["name"] == p["GroupName"] and g["region"] == request.region for g in self.groups.values()):
            return Refusal(400, "InvalidGroup.Duplicate")
        if p.get("VpcId") != self.vpc_of(request.region) or not p.get("GroupDescription"):
            return self.bad("InvalidParameterValue", "CreateSecurityGroup")
        g = {"id": ident("sg-"), "name": p["GroupName"], "region": request.region, "rules": [], "tags": tags_of(p, "security-group")}
        self.groups[g["id"]] = g
        return Xml("CreateSecurityGroupResponse", {"groupId": g["id"], "return": True})

    def group_rule(self, request):
        p, g = request.params, self.groups.get(request.params.get("GroupId"))
        if not g:
            return Refusal(400, "InvalidGroup.NotFound")
        cidr = p.get("IpPermissions.1.IpRanges.1.CidrIp") or p.get("IpPermissions.1.Ipv6Ranges.1.CidrIpv6")
        rule = (p["IpPermissions.1.IpProtocol"], int(p["IpPermissions.1.FromPort"]), int(p["IpPermissions.1.ToPort"]), cidr)
        if rule in g["rules"]:
            return Refusal(400, "InvalidPermission.Duplicate")
        g["rules"].append(rule)
        return Xml("AuthorizeSecurityGroupIngressResponse", {"return": True})

    # ---- create

    def create(self, request):
        p, now = request.params, self.park.now()
        token = (request.region, p.get("ClientToken"))
        if token in self.tokens:
            same, machine = self.tokens[token]
            m = self.park.all[machine]
            if same != p:
                return Refusal(400, "IdempotentParameterMismatch")
            if m.ended:
                return Refusal(400, "IdempotentInstanceTerminated")
            return self.created(m)
        wrong = self.wrong(request, p)
        if wrong:
            return self.bad(*wrong)
        kind = next(t for t in self.catalog["types"] if t["type"] == p["InstanceType"])
        zone = next(z for z in aws_catalog.ZONES if subnet_of(request.region, z) == p["NetworkInterface.1.SubnetId"])
        spot = p.get("InstanceMarketOptions.MarketType") == "spot"
        if zone not in kind["zones"]:
            return Refusal(400, "Unsupported", "not in that zone")
        if zone in kind["empty"]:
            return Refusal(500, "InsufficientInstanceCapacity")
        if ("spot" if spot else "on-demand") not in kind["classes"]:
            return Refusal(400, "Unsupported", "usage class")
        price = float(kind["spot"][zone] if spot else kind["price"])
        if spot and float(p["InstanceMarketOptions.SpotOptions.MaxPrice"]) < price:
            return Refusal(400, "SpotMaxPriceTooLow")
        m = self.start(request, p, kind, zone, spot, price)
        if token[1]:
            self.tokens[token] = (dict(p), m.id)
        return self.created(m)

    def wrong(self, request, p):
        odd = [k for k in p if not RUN_PARAMETERS.fullmatch(k)]
        user_data = base64.b64decode(p.get("UserData", ""))
        images = [self.image(request.region, a)["imageId"] for a in ("x86_64", "arm64")]
        kind = next((t for t in self.catalog["types"] if t["type"] == p.get("InstanceType")), None)
        group = self.groups.get(p.get("NetworkInterface.1.SecurityGroupId.1"))
        tags = {k: v for r in ("instance", "volume", "spot-instances-request") for k, v in tags_of(p, r).items()}
        if odd:
            return "UnknownParameter", odd[0]
        if len(p.get("ClientToken", "")) > 64 or (p.get("MinCount"), p.get("MaxCount")) != ("1", "1"):
            return "InvalidParameterValue", "ClientToken or count"
        if len(user_data) > 16384:
            return "InvalidParameterValue", "User data is limited to 16384 bytes"
        if p.get("ImageId") not in images:
            return "InvalidAMIID.NotFound", p.get("ImageId")
        if not kind or images.index(p["ImageId"]) != (kind["arch"] == "arm64"):
            return "InvalidParameterValue", "type or architecture"
        if not group or group["region"] != request.region:
            return "InvalidGroup.NotFound", "group"
        if p.get("NetworkInterface.1.SubnetId") not in [subnet_of(request.region, z) for z in aws_catalog.ZONES]:
            return "InvalidSubnetID.NotFound", "subnet"
        if any(len(k) > 128 or len(v) > 256 or not re.fullmatch(r"[A-Za-z0-9+\-=.,_:@]+", k) for k, v in tags.items()):
            return "InvalidParameterValue", "tags that the metadata service can show"
        if int(p["BlockDeviceMapping.1.Ebs.VolumeSize"]) < 35:
            return "InvalidBlockDeviceMapping", "smaller than the snapshot"
        return None

    def start(self, request, p, kind, zone, spot, price):
        tags, gib = tags_of(p, "instance"), int(p["BlockDeviceMapping.1.Ebs.VolumeSize"])
        month = float(self.catalog["gib_month"])
        bill = round(price * 1e6) + gib * -int(-(month * 1e6) // 730) + 5000
        m = Machine(self.park, tags.get("Name", ""), ["%s=%s" % x for x in tags.items()], bill, request=dict(p), ident=ident("i-"))
        user_data = base64.b64decode(p.get("UserData", ""))
        keys, switch = keys_in(user_data)
        m.extra.update(region=request.region, zone=zone, type=kind["type"], image=p["ImageId"], tags=tags, switch=switch, spot=None,
                       reason=None)
        self.volumes[ident("vol-")] = {"machine": m.id, "region": request.region, "gib": gib, "tags": tags_of(p, "volume"),
                                       "goes": p.get("BlockDeviceMapping.1.Ebs.DeleteOnTermination") == "true"}
        if spot:
            m.extra["spot"] = ident("sir-")
            self.spots[m.extra["spot"]] = {"machine": m.id, "region": request.region, "cancelled": False,
                                           "tags": tags_of(p, "spot-instances-request")}
        count = kind["count"] or (1 if kind["gpu"] else 0)
        m.hook = {"gpus": {"count": count, "name": "NVIDIA " + kind["gpu"], "memory_mib": kind["mib"]} if count else {},
                  "type": kind["type"], "region": request.region, "image": p["ImageId"], "ssh_public_keys": keys,
                  "configuration": {"gpu_type": kind["gpu"] or "", "num_gpus": count, "vram_per_gpu_in_gb": kind["mib"] / 1024},
                  "user_data": p.get("UserData"), "user_data_kind": "cloud"}
        self.arm_switch(m)
        return self.park.add(m, request.faults)

    def arm_switch(self, m):
        """The machine ends itself at the time of its tag, if its user data says so and EC2 lets that be its end."""
        when = m.extra["tags"].get("gpubroker-not-after")
        ends = (m.request or {}).get("InstanceInitiatedShutdownBehavior") == "terminate"
        m.kill_at = float(when) if when and ends and m.extra["switch"] else None

    def created(self, m):
        return Xml("RunInstancesResponse", {"reservationId": "r-1", "ownerId": "123456789012", "instancesSet": [self.shown(m)]})

    def add_foreign(self, wanted):
        tags = dict(t.partition("=")[::2] for t in wanted.get("tags", ["mine="]))
        tags.setdefault("Name", wanted.get("name", "by-hand"))
        m = Machine(self.park, tags["Name"], wanted.get("tags", []), 1000000, foreign=True, ident=ident("i-"))
        m.extra.update(region=wanted.get("region", "us-east-1"), zone="a", type="g5.xlarge", image="ami-0", tags=tags,
                       switch=False, spot=None, reason=None)
        return self.park.add(m)

    def twin(self, m):
        twin = super().twin(m)
        del self.park.all[twin.id]
        twin.id = ident("i-")
        self.park.all[twin.id] = twin
        return twin

    # ---- machines

    def tidy(self):
        """What ends with a machine; what failed late is terminated by EC2 itself."""
        for m in list(self.park.all.values()):
            if m.failed is not None and not m.ended:
                m.extra["reason"] = ("Server.InsufficientInstanceCapacity", m.details)
                self.park.end(m, m.details)
                m.failed = None
            if m.details == "preempted":
                m.extra["reason"] = ("Server.SpotInstanceTermination", "Spot interruption")
            if m.ended or m.gone:
                self.volumes = {k: v for k, v in self.volumes.items() if v["machine"] != m.id or not v["goes"]}

    def seen(self, m):
        now = self.park.now()
        return now >= m.visible_at and not m.extra.get("vanished") and (m.gone is None or now < m.gone + TERMINATED_S)

    def shown(self, m):
        self.tidy()
        status = "terminated" if m.status == "gone" else m.status
        number = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}.get(status, 99)
        up = m.active is not None and status == "running"
        row = {"instanceId": m.id, "imageId": m.extra["image"], "instanceState": {"code": number, "name": status},
               "privateIpAddress": "172.31.0.9", "instanceType": m.extra["type"], "launchTime": stamp(m.created),
               "placement": {"availabilityZone": m.extra["region"] + m.extra["zone"]}, "architecture": "x86_64",
               "clientToken": (m.request or {}).get("ClientToken"), "tagSet": tag_set(m.extra["tags"]), "rootDeviceName": "/dev/sda1"}
        if up and m.node:
            row["ipAddress"] = m.node["ip"]
        if m.extra["spot"]:
            row.update(instanceLifecycle="spot", spotInstanceRequestId=m.extra["spot"])
        if m.extra["reason"]:
            row["stateReason"] = {"code": m.extra["reason"][0], "message": m.extra["reason"][1]}
        return row

    def instances(self, request):
        want, ids = filters(request.params), listed(request.params, "InstanceId")
        here = [m for m in self.park.all.values() if m.extra["region"] == request.region and self.seen(m)]
        if ids:
            rows = [m for m in here if m.id in ids]
            if len(rows) != len(ids):
                return Refusal(400, "InvalidInstanceID.NotFound")
        else:
            rows = [m for m in here if tagged(m.extra["tags"], want)]
        return self.paged(request, "DescribeInstances", "reservationSet",
                          [{"reservationId": "r-" + m.id[2:], "ownerId": "123456789012", "instancesSet": [self.shown(m)]} for m in rows])

    def delete(self, request):
        m = self.park.all.get(request.params.get("InstanceId.1"))
        if not m or m.extra["region"] != request.region or not self.seen(m):
            return Refusal(400, "InvalidInstanceID.NotFound")
        before = self.shown(m)["instanceState"]
        self.park.end(m, "terminated")
        return Xml("TerminateInstancesResponse", {"instancesSet": [
            {"instanceId": m.id, "currentState": self.shown(m)["instanceState"], "previousState": before}]})

    def tag(self, request):
        m = self.park.all.get(request.params.get("ResourceId.1"))
        if not m:
            return Refusal(400, "InvalidInstanceID.NotFound")
        m.extra["tags"][request.params["Tag.1.Key"]] = request.params["Tag.1.Value"]
        self.arm_switch(m)
        return Xml("CreateTagsResponse", {"return": True})

    def console(self, request):
        m = self.park.all.get(request.params.get("InstanceId"))
        if not m:
            return Refusal(400, "InvalidInstanceID.NotFound")
        text = base64.encodebytes(("booting %s\nubuntu login:\n" % m.name).encode()).decode()
        return Xml("GetConsoleOutputResponse", {"instanceId": m.id, "timestamp": stamp(self.park.now()), "output": text})

    # ---- disks and spot requests

    def volume_state(self, v):
        m = self.park.all.get(v["machine"])
        return "in-use" if m and not m.ended and not m.gone else "available"

    def spot_state(self, s):
        m = self.park.all.get(s["machine"])
        if s["cancelled"]:
            return "cancelled"
        return "open" if not s["machine"] else "active" if m and not m.ended and not m.gone else "closed"

    def resources(self, request, all, prefix, state):
        self.tidy()
        want, ids = filters(request.params), listed(request.params, prefix)
        rows = {k: v for k, v in all.items() if v["region"] == request.region}
        if ids:
            return {k: v for k, v in rows.items() if k in ids}
        wanted = want.get("status") or want.get("state")
        return {k: v for k, v in rows.items() if tagged(v["tags"], want) and (not wanted or state(v) in wanted)}

    def volume_list(self, request):
        rows = self.resources(request, self.volumes, "VolumeId", self.volume_state)
        if "VolumeId.1" in request.params and not rows:
            return Refusal(400, "InvalidVolume.NotFound")
        return self.paged(request, "DescribeVolumes", "volumeSet", [
            {"volumeId": k, "size": v["gib"], "status": self.volume_state(v), "tagSet": tag_set(v["tags"])} for k, v in rows.items()])

    def volume_delete(self, request):
        if not self.volumes.pop(request.params.get("VolumeId"), None):
            return Refusal(400, "InvalidVolume.NotFound")
        return Xml("DeleteVolumeResponse", {"return": True})

    def spot_list(self, request):
        rows = self.resources(request, self.spots, "SpotInstanceRequestId", self.spot_state)
        if "SpotInstanceRequestId.1" in request.params and not rows:
            return Refusal(400, "InvalidSpotInstanceRequestID.NotFound")
        return self.paged(request, "DescribeSpotInstanceRequests", "spotInstanceRequestSet", [
            {"spotInstanceRequestId": k, "state": self.spot_state(v), "type": "one-time", "tagSet": tag_set(v["tags"])}
            for k, v in rows.items()])

    def spot_cancel(self, request):
        s = self.spots.get(request.params.get("SpotInstanceRequestId.1"))
        if not s:
            return Refusal(400, "InvalidSpotInstanceRequestID.NotFound")
        s["cancelled"] = True
        return Xml("CancelSpotInstanceRequestsResponse", {"spotInstanceRequestSet": [
            {"spotInstanceRequestId": request.params["SpotInstanceRequestId.1"], "state": "cancelled"}]})

    # ---- control

    def control_get_state(self, request):
        return dict(super().control_get_state(request), violations=self.validator.violations + self.wrongs)

    def control_post_machines(self, request, which=None):
        if which and request.body.get("do") == "vanish":
            self.park.all[which].extra["vanished"] = True
        return super().control_post_machines(request, which)

    def control_get_groups(self, request):
        return list(self.groups.values())

    def control_get_volumes(self, request):
        self.tidy()
        return [dict(v, id=k, state=self.volume_state(v)) for k, v in self.volumes.items()]

    def control_get_spots(self, request):
        return [dict(s, id=k, state=self.spot_state(s)) for k, s in self.spots.items()]

    def control_post_sick(self, request):
        body = request.body
        self.sick = {body["region"]: body} if body.get("region") else {}

    def control_post_strays(self, request):
        b = request.body
        if b["kind"] == "volume":
            self.volumes[ident("vol-")] = {"machine": "", "region": b["region"], "gib": 100, "tags": b["tags"], "goes": False}
        else:
            self.spots[ident("sir-")] = {"machine": "", "region": b["region"], "cancelled": False, "tags": b["tags"]}

    def control_post_rotate(self, request):
        self.temporary = {k: (t, 0.0001) for k, (t, _) in self.temporary.items()}
        self.ttl = float(request.body.get("ttl", 3600))

    def control_post_vpcs(self, request):
        self.catalog["regions"][request.body["region"]]["default_vpc"] = request.body["default"]


Aws.routes = [(None, action, endpoint, handler) for action, endpoint, handler in (
    ("GetCallerIdentity", "identity", Aws.identity), ("DescribeRegions", "regions", Aws.regions),
    ("DescribeInstanceTypes", "types", Aws.types), ("DescribeInstanceTypeOfferings", "offerings", Aws.offerings),
    ("DescribeSpotPriceHistory", "spot-prices", Aws.spot_prices), ("DescribeImages", "images", Aws.image_list),
    ("GetParameter", "parameter", Aws.parameter), ("GetProducts", "products", Aws.products),
    ("DescribeVpcs", "vpcs", Aws.vpcs), ("DescribeSubnets", "subnets", Aws.subnets),
    ("DescribeSecurityGroups", "groups", Aws.group_list), ("CreateSecurityGroup", "group-make", Aws.group_make),
    ("AuthorizeSecurityGroupIngress", "group-rule", Aws.group_rule), ("RunInstances", "create", Aws.create),
    ("DescribeInstances", "list", Aws.instances), ("", "info", Aws.instances), ("TerminateInstances", "delete", Aws.delete),
    ("CreateTags", "tag", Aws.tag), ("GetConsoleOutput", "console", Aws.console),
    ("DescribeVolumes", "volumes", Aws.volume_list), ("DeleteVolume", "volume-delete", Aws.volume_delete),
    ("DescribeSpotInstanceRequests", "spot-requests", Aws.spot_list),
    ("CancelSpotInstanceRequests", "spot-cancel", Aws.spot_cancel), ("?", "imds", Aws.metadata))]


def main():
    p = fake.options(__doc__.splitlines()[0])
    p.add_argument("--page-max", type=int, default=1000, help="rows of a page, whatever is asked for")
    fake.run(Aws, p.parse_args())


if __name__ == "__main__":
    main()
