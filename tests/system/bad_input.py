#!/usr/bin/python3
"""bad_input.py - what people and programs get wrong: each a clear answer, nothing lost, nothing rented

No machine is needed: the cloud is a fake that boots nothing, so leases stay on their way.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from broker import BUILD, Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}


def check_config(text, env):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "g.conf")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(text)
        r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", path, "--check-config"], capture_output=True, text=True,
                           env=env, timeout=30)
        return r.returncode, (r.stdout + r.stderr).replace(d + "/", "")


def config(b):
    env = b.environment()
    code, text = check_config('broker: { name = "x"; };\ndefaults: { max_prize = 4.0; };\n', env)
    t.eq((code, "g.conf:2" in text, "'max_price'" in text), (2, True, True), "a typo has file, line and the right name")
    code, text = check_config('providers: ( { name = "s"; plugin = "shadeform"; api_kee_file = "/k"; endpont = "x"; } );\n', env)
    t.eq(code, 2, f"an option that the plugin does not have is refused: {text.strip()[:120]}")
    code, text = check_config('providers: ( { name = "s"; plugin = "shadefrom"; } );\n', env)
    t.eq((code, "shadefrom" in text), (2, True), "a plugin that is not there is named")
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config, "--check-config"], capture_output=True, text=True, env=env,
                       timeout=30)
    t.eq(r.returncode, 0, "the configuration that runs is good")


def second_daemon(b):
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config], capture_output=True, text=True, env=b.environment(),
                       timeout=30)
    t.eq((r.returncode, "another gpubrokerd" in r.stderr), (1, True), "a second daemon on one state_dir is refused")
    t.ok(b.ask("ping"), "and the first goes on")


def words(b, cloud):
    code, out, err = b.cli("rent", "--gpu", "H1000", "--no-wait")
    t.eq((code, "did you mean" in err), (2, True), "an unknown GPU is refused with a suggestion")
    code, out, err = b.cli("rent", "--gpu", "H100", "--max-price", "0.01", "--no-wait")
    t.eq((code, "$" in err), (3, True), "an impossible price is exit 3, with the nearest price")
    code, out, err = b.cli("rent", "--gpu", "H100", "--max-price", "0.01", "--dry-run", "--json")
    details = json.loads(out)["error"]["details"] if "error" in json.loads(out) else json.loads(out)["details"]
    t.ok(len(details) > 3 and all(d["code"] and d["text"] for d in details), "and a reason for each offer")
    for body, why in (({"key": "a", "filter": H100, "clutser": "x"}, "'clutser'"), ({"key": "a"}, "'filter'"),
                      ({"filter": H100}, "key"), ({"key": "a", "filter": {"gpu": "H100"}}, "gpu"),
                      ({"key": "a", "filter": H100, "name": "No Such_Name"}, "name"),
                      ({"key": "a", "filter": H100, "ttl_ms": -1}, "ttl_ms")):
        try:
            b.accepted("rent", body)
            t.ok(False, f"refused: {why}")
        except Refused as e:
            t.eq((e.code, why in e.body["message"]), ("bad-request", True), f"refused, naming {why}")
    try:
        b.ask("lease-s")
        t.ok(False, "an unknown verb is refused")
    except Refused as e:
        t.eq((e.code, "'leases'" in e.body["message"]), ("unknown-verb", True), "an unknown verb is refused, with the nearest")
    t.eq(b.cli("release", "nobody")[0], 10, "an unknown lease is exit 10")
    t.eq(b.ask("leases", {"all": True})["leases"], [], "none of it left a lease")
    t.eq(cloud.control("GET", "/counters").get("create", 0), 0, "or asked for a machine")


def stranger(b):
    if os.geteuid() != 0:
        t.skip("another uid is denied", "not root")
        return
    os.chmod(b.dir, 0o755)
    os.chmod(f"{b.dir}/run", 0o755)
    os.chmod(f"{b.dir}/run/bus", 0o666)
    r = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", f"{BUILD}/gpubroker-cli",
                        "--endpoint", b.endpoint, "ping"], capture_output=True, text=True, timeout=60)
    t.eq(r.returncode, 5, f"another uid is denied even when it may open the socket: {r.stderr.strip()[:100]}")


def limits(b):
    results, lock = [], threading.Lock()

    def rent(i):
        try:
            sock = b.dealer()
            r = b.recv(b.send("rent", {"key": f"p{i}", "filter": H100, "single": True}, sock), 20000, sock)
            sock.close(0)
            with lock:
                results.append(r[1].get("code", "accepted"))
        except Exception as e:
            results.append(repr(e))

    threads = [threading.Thread(target=rent, args=(i,)) for i in range(10)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.eq(sorted(results), ["accepted"] * 3 + ["limit"] * 7, "ten rents at once never pass a cap of three")
    for lease in b.ask("leases")["leases"]:
        b.accepted("release", {"key": f"r-{lease['id']}", "lease": lease["id"]})
        b.wait_state(lease["id"], "released", "failed-empty")
    t.eq(b.accepted("rent", {"key": "after", "filter": H100})["lease"][0], "l", "then there is room again")


def names_and_ends(b, cloud):
    b.accepted("release", {"key": "r-after", "lease": b.ask("leases")["leases"][-1]["id"]})
    first = b.accepted("rent", {"name": "twice", "filter": H100})["lease"]
    t.eq(b.accepted("rent", {"name": "twice", "filter": H100})["lease"], first, "the same words under one name are one lease")
    try:
        b.accepted("rent", {"name": "twice", "filter": {"gpu": [{"model": "A100"}]}})
        t.ok(False, "other words under that name are a conflict")
    except Refused as e:
        t.eq(e.code, "conflict", "other words under that name are a conflict")
    b.wait_state(first, "booting")
    lease = b.accepted("release", {"key": "e1", "lease": "twice"})["lease"]
    b.wait_state(lease, "released", "failed-empty")
    t.eq(b.accepted("release", {"key": "e2", "lease": lease})["lease"], lease, "released twice is no error")
    second = b.accepted("rent", {"name": "twice", "filter": H100})["lease"]
    t.ok(second != first, "the name is free again")
    b.accepted("release", {"key": "e3", "lease": second})
    b.wait_state(second, "released", "failed-empty")
    op = b.accepted("rent", {"key": "c", "filter": H100})
    b.accepted("cancel", {"key": "c2", "operation": op["operation"]})
    b.wait_state(op["lease"], "released", "failed-empty")
    t.eq(b.lease(op["lease"])["cause"]["code"], "cancelled", "a rent can be cancelled by its operation")
    short = b.accepted("rent", {"key": "ttl", "filter": H100, "ttl_ms": 1500})["lease"]
    b.wait_state(short, "released", "failed-empty")
    t.eq(b.lease(short)["cause"]["code"], "ttl", "what outlives its TTL is released")
    until(lambda: not cloud.machines(), 20, "no machine")
    t.ok(True, "and nothing is left")


def extend(b, cloud):
    lease = b.accepted("rent", {"key": "x", "filter": H100, "ttl_ms": 3600000})["lease"]
    b.wait_state(lease, "booting")
    kill = cloud.machines()[0]["kill_at_ms"]
    cloud.faults({"on": "update", "kind": "status", "status": 503, "body": "no", "times": 8})
    rid = b.send("extend", {"key": "x1", "lease": lease, "ttl_ms": 7200000})
    while True:
        kind, body = b.recv(rid, 30000)
        if kind in ("final", "error"):
            break
    t.eq((kind, b.lease(lease)["expires_ms"] < kill), ("error", True), "the books do not move when the cloud's kill switch did not")
    cloud.control("DELETE", "/faults")
    b.accepted("extend", {"key": "x2", "lease": lease, "ttl_ms": 7200000})
    until(lambda: cloud.machines()[0]["kill_at_ms"] > kill + 3000000, 20, "the kill switch moves")
    until(lambda: b.lease(lease)["expires_ms"] > kill + 2000000, 20, "the books follow")
    t.ok(True, "then both move, the cloud's first")
    b.accepted("release", {"key": "x3", "lease": lease})
    b.wait_state(lease, "released", "failed-empty")


def reload(b):
    """A key that was changed in its file is used after SIGHUP; a file that cannot be read changes nothing."""
    path = f"{b.dir}/keys/shadeform.api_key"
    with open(path) as f:
        right = f.read()

    def put(text, name, good):
        with open(path, "w") as f:
            f.write(text)
        b.proc.send_signal(signal.SIGHUP)
        until(lambda: ("error" not in b.ask("providers")["providers"][0]) == good, 30, name)
        t.ok(True, name)

    put("wrong", "a wrong key in the file is noticed after SIGHUP", False)
    put(right, "and the right one again", True)
    with open(b.config) as f:
        text = f.read()
    with open(b.config, "w") as f:
        f.write(text.replace("defaults:", "defalts:"))
    b.proc.send_signal(signal.SIGHUP)
    until(lambda: b.logged("reload.refused"), 10, "the refusal")
    t.ok(b.ask("ping"), "a broken file changes nothing")
    with open(b.config, "w") as f:
        f.write(text)


def main():
    with Cloud("shadeform") as cloud, Broker(cloud.provider(), limits={"leases": 3}) as b:
        b.offers_there()
        t.run(config, b)
        t.run(second_daemon, b)
        t.run(words, b, cloud)
        t.run(stranger, b)
        t.run(limits, b)
        t.run(names_and_ends, b, cloud)
        t.run(extend, b, cloud)
        t.run(reload, b)
    t.done()


main()
