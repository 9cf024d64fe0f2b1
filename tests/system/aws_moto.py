#!/usr/bin/python3
"""aws_moto.py - the AWS plugin against moto's server: somebody else's idea of the wire, and of a valid signature

moto verifies signatures and policies once its first calls, which make a user, are over.  It has no price list (a small
server here stands in), no client tokens and no capacity; those are the fake's part (aws_plugin.py).
"""
import json
import os
import re
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "clouds")]
import venv

venv.enter("AWS against moto")
from plugin_cloud import how, same  # noqa: E402
from provider_harness import HttpServer, OWNER, Provider, tap  # noqa: E402

UNSIGNED = 3  # calls: make a user, its policy, its key
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["ec2:*", "ssm:*", "sts:*", "pricing:*"], "Resource": "*"}]}


class Moto:
    """moto_server as a process, with one user whose keys are `pair`."""

    def __init__(self, check=True):
        env = dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT=str(UNSIGNED if check else 10 ** 9), PYTHONUNBUFFERED="1")
        self.process = subprocess.Popen([os.path.join(sys.prefix, "bin", "moto_server"), "-H", "127.0.0.1", "-p", "0"], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r"Running on (http://127\.0\.0\.1:\d+)", line)
            if found:
                self.url = found[1]
                break
        else:
            raise RuntimeError("moto_server ended")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # its log must not fill the pipe
        self.unsigned("CreateUser", UserName="gpubroker")
        self.unsigned("PutUserPolicy", UserName="gpubroker", PolicyName="rent", PolicyDocument=json.dumps(POLICY))
        answer = self.unsigned("CreateAccessKey", UserName="gpubroker")
        self.pair = {option: re.search("<%s>([^<]+)<" % name, answer)[1]
                     for option, name in (("access_key_id", "AccessKeyId"), ("secret_access_key", "SecretAccessKey"))}

    def unsigned(self, action, **parameters):
        body = urllib.parse.urlencode({"Action": action, "Version": "2010-05-08", **parameters}).encode()
        head = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"}
        with urllib.request.urlopen(urllib.request.Request(self.url, body, head), timeout=30) as r:
            return r.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)


def product(attributes, unit, dollars):
    return json.dumps({"product": {"attributes": attributes}, "terms": {"OnDemand": {"a": {"priceDimensions": {
        "b": {"unit": unit, "pricePerUnit": {"USD": dollars}}}}}}})


def prices(request):
    disk = any(f["Value"] == "gp3" for f in request.json["Filters"])
    rows = [product({"volumeApiName": "gp3"}, "GB-Mo", "0.08")] if disk else [
        product({"instanceType": t}, "Hrs", d) for t, d in (("g5.xlarge", "1.006"), ("g4dn.xlarge", "0.526"), ("p5.48xlarge", "55.04"))]
    return 200, {}, {"FormatVersion": "aws_v1", "PriceList": rows}


def plugin(moto, shop, secrets=None, **options):
    return Provider("aws", options={"endpoint": moto.url, "endpoints": {"pricing": shop.url}, "regions": ["us-east-1"], "imds": False,
                                    "instance_types": ["g5.xlarge", "g4dn.xlarge", "p5.48xlarge"], "ami_parameter": "", "ami_owner": "099720109477",
                                    "ami_name": "ubuntu/images/hvm-ssd/*", **options},
                    secrets=secrets or moto.pair, http={"rate": 1000.0, "burst": 1000})


def test_signed_life():
    """a machine's whole life with every signature and right verified by moto"""
    with HttpServer(prices) as shop, Moto() as moto, plugin(moto, shop) as p:
        r = p.call("probe")
        same((r.kind, r.value.get("account")), ("ok", "123456789012"), r.text)
        r = p.call("list_offers", {"offer_ref": None}, deadline_ms=60000, timeout=60)
        same((r.kind, how(r)), ("ok", {"us-east-1": "complete"}), r.text)
        got = {o["offer_ref"]: o for o in r.offers}
        g5, p5 = got["us-east-1|g5.xlarge|on-demand"], got["us-east-1|p5.48xlarge|on-demand"]
        same((g5["gpu_name"], g5["gpu_count"], g5["vram_mib"], g5["vcpus"], g5["ram_mib"]), ("A10G", 1, 24576, 4, 16384))
        same((p5["gpu_name"], p5["gpu_count"], p5["ram_mib"]), ("H100", 8, 2048 * 1024))
        r = p.create("us-east-1|g5.xlarge|on-demand", not_after_ms=1900000000000, ports=[{"proto": "tcp", "from": 80, "to": 80, "cidr": "::/0"}])
        same((r.kind, len(r.machines)), ("ok", 1), r.text)
        m = r.machines[0]
        same((m["name"], m["tags"]["gpubroker-owner"], m["not_after_ms"]), ("lease-1", OWNER, 1900000000000))
        now = p.call("get", Provider.ref(m)).machines[0]
        same((now["state"], now["instance_type"]), ("running", "g5.xlarge"))
        assert now["address"], now
        same([x["id"] for x in p.call("list").machines], [m["id"]])
        r = p.call("find", {"token": "tok-1", "name": "lease-1", "scope": None})
        same(([x["id"] for x in r.machines], r.resources, how(r)), ([m["id"]], [], {"us-east-1": "complete"}))
        same(p.call("set_not_after", dict(Provider.ref(m), ms=1900000060000)).kind, "ok")
        same(p.call("get", Provider.ref(m)).machines[0]["not_after_ms"], 1900000060000)
        same(p.create("us-east-1|g5.xlarge|on-demand", token="t2", name="n2", ports=[{"proto": "tcp", "from": 80, "to": 80, "cidr": "::/0"}]).kind,
             "ok", "the group is found again")
        for x in p.call("list").machines:
            same(p.call("remove", Provider.ref(x)).kind, "ok")
        same(p.call("get", Provider.ref(m)).machines[0]["state"], "gone")
        r = p.call("list")
        same((r.machines, r.resources), ([], []))
        same(p.call("get", Provider.ref(dict(m, id="i-0123456789abcdef0", created_ms=1))).kind, "not-found")
        same(p.call("remove", Provider.ref(dict(m, id="i-0123456789abcdef0", created_ms=1))).kind, "ok")


def test_spot_life():
    """spot, likewise"""
    with HttpServer(prices) as shop, Moto() as moto, plugin(moto, shop) as p:
        r = p.create("us-east-1|g5.xlarge|spot", deadline_ms=60000)
        same((r.kind, len(r.machines)), ("ok", 1), r.text)
        same(p.call("remove", Provider.ref(r.machines[0])).kind, "ok")


def test_wrong_secret():
    """moto refuses what a wrong secret signed"""
    with HttpServer(prices) as shop, Moto() as moto, plugin(moto, shop, dict(moto.pair, secret_access_key="wrong")) as p:
        for call in ("list", "probe"):
            r = p.call(call)
            same(r.kind, "auth", r.text)
            assert r.code in ("AuthFailure", "SignatureDoesNotMatch"), r.code


def test_image_parameter():
    """an image that an SSM parameter names, at moto's SSM"""
    with HttpServer(prices) as shop, Moto(check=False) as moto:
        import boto3
        keys = {"endpoint_url": moto.url, "region_name": "us-east-1", "aws_access_key_id": moto.pair["access_key_id"],
                "aws_secret_access_key": moto.pair["secret_access_key"]}
        image = next(i for i in boto3.client("ec2", **keys).describe_images()["Images"] if i["Architecture"] == "x86_64")
        boto3.client("ssm", **keys).put_parameter(Name="/gpu/image", Value=image["ImageId"], Type="String")
        with plugin(moto, shop, ami_parameter="/gpu/image") as p:
            same(p.create("us-east-1|g5.xlarge|on-demand", deadline_ms=60000).kind, "ok")
        [machine] = [i for r in boto3.client("ec2", **keys).describe_instances()["Reservations"] for i in r["Instances"]]
        same((machine["ImageId"], machine["MetadataOptions"]["HttpTokens"]), (image["ImageId"], "required"), "as another client sees it")
        assert {"Key": "gpubroker-token", "Value": "tok-1"} in machine["Tags"]


if __name__ == "__main__":
    tap(globals())
