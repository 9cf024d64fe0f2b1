"""fake_clouds.py - the fakes themselves: pool, hooks, bill, switches; what other tests take for granted"""
import json
import os
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
from fake import Control
from provider_harness import tap

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFak t"


def ask(fake, path, body=None):
    request = urllib.request.Request(fake.url + path, None if body is None else json.dumps(body).encode(),
                                     {"X-API-KEY": "test-key", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def rent(fake, **more):
    key = next((k["id"] for k in fake.get("keys") if k["name"] == "k"), None) or \
        ask(fake, "/sshkeys/add", {"name": "k", "public_key": KEY})["id"]
    return ask(fake, "/instances/create", dict({
        "cloud": "hyperstack", "region": "oslo-norway-1", "shade_instance_type": "cpu_mini", "shade_cloud": True,
        "name": "n", "ssh_key_id": key}, **more))["id"]


def delete(fake, ident):
    return ask(fake, "/instances/%s/delete" % ident, {})


def wait(fake, status, count=1, timeout=10):
    fake.get("wait?status=%s&count=%d&timeout=%s" % (status, count, timeout))


def eventually(condition, what):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def refused(call, *args):
    try:
        call(*args)
    except RuntimeError:
        return True
    return False


def test_pool():
    """a create takes a real address with its keys, a delete gives it back, a second create waits for it"""
    with Control("shadeform") as fake, tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "authorized_keys")
        fake.post("nodes", {"nodes": [{"ip": "127.0.0.1", "port": 2222, "user": "u", "authorized_keys": keys}]})
        first = rent(fake)
        wait(fake, "active")
        seen = ask(fake, "/instances/%s/info" % first)
        assert (seen["ip"], seen["ssh_port"], seen["ssh_user"]) == ("127.0.0.1", 2222, "u"), seen
        assert open(keys).read().strip() == KEY
        second = rent(fake, name="m")
        assert refused(fake.get, "wait?status=active&count=2&timeout=0.7"), "there is one node only"
        delete(fake, first)
        wait(fake, "gone")
        wait(fake, "active")
        assert ask(fake, "/instances/%s/info" % second)["status"] == "active"
        delete(fake, second)
        assert open(keys).read() == "", "the keys go with the machine"
        assert len(fake.get("nodes")["nodes"]) == 1


def test_hooks():
    """one command boots a machine, one runs its script, one ends it; a boot that fails is an error"""
    with tempfile.TemporaryDirectory() as d:
        boot = "cat >%s/create.json; echo '{\"ip\": \"127.0.0.9\", \"name\": \"box\"}'" % d
        with Control("shadeform", "--on-create", boot, "--on-active", "cat >%s/active.json" % d,
                     "--on-delete", "cat >%s/delete.json" % d) as fake:
            def told(name):
                path = os.path.join(d, name + ".json")
                eventually(lambda: os.path.exists(path) and os.path.getsize(path), "no " + name)
                eventually(lambda: open(path).read().endswith("}"), "half a " + name)
                return json.load(open(path))

            fake.fault("create", "wrong-gpu", configuration={"num_gpus": 1, "gpu_type": "A100_80G"})
            ident = rent(fake, shade_instance_type="H100", launch_configuration={
                "type": "script", "script_configuration": {"base64_script": "IyEvYmluL3NoCg=="}})
            wait(fake, "active")
            got = told("create")
            assert got["ssh_public_keys"] == [KEY] and got["user_data"] == "IyEvYmluL3NoCg==", got
            assert got["gpus"] == {"count": 1, "name": "NVIDIA A100 80GB PCIe", "memory_mib": 80 * 1024}, got
            assert told("active")["ip"] == "127.0.0.9"
            delete(fake, ident)
            assert told("delete")["name"] == "box"
    with Control("shadeform", "--on-create", "exit 1") as fake:
        rent(fake)
        wait(fake, "error")


def test_bill():
    """the bill runs from active to delete, and stops at the kill switch"""
    with Control("shadeform") as fake:
        ident = rent(fake)
        wait(fake, "active")
        fake.post("advance", {"seconds": 7200})
        bill = fake.get("bill")
        assert bill["rate_udollar"] == 350000 and bill["running"] == 1, bill
        assert 700000 <= bill["total_udollar"] < 702000, bill
        delete(fake, ident)
        fake.post("advance", {"seconds": 7200})
        after = fake.get("bill")
        assert after["rate_udollar"] == 0 and after["total_udollar"] < 702000, after
        until = time.gmtime(fake.get("state")["now_ms"] / 1000 + 3600)
        rent(fake, auto_delete={"date_threshold": time.strftime("%Y-%m-%dT%H:%M:%SZ", until)})
        wait(fake, "active")
        fake.post("advance", {"seconds": 36000})
        assert fake.get("bill")["total_udollar"] < after["total_udollar"] + 352000, fake.get("bill")


def test_mistakes():
    """a test that misspells a fault, an endpoint or a machine is told so"""
    with Control("shadeform") as fake:
        assert refused(fake.fault, "creat", "status")
        assert refused(fake.fault, "create", "lost-replies")
        assert refused(fake.post, "machines/nothing", {"do": "preempt"})
        assert refused(fake.post, "config", {"delays": {"nothing": 1}})
        assert refused(fake.get, "nothing")
        fake.fault("list", "broken", skip=1, times=2)
        statuses = []
        for _ in range(4):
            try:
                ask(fake, "/instances")
                statuses.append(200)
            except urllib.error.HTTPError as e:
                statuses.append(e.code)
        assert statuses == [200, 500, 500, 200], statuses
        assert fake.get("counters") == {"list": 4}
        assert [r["faults"] for r in fake.get("requests?since=1")] == [["broken"], ["broken"], []]


if __name__ == "__main__":
    tap(globals())
