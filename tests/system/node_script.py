#!/usr/bin/python3
"""node_script.py - check, worker and leave on whole machines: every failure by its code, and what must never be

Each row of the tables breaks one thing on a machine that is otherwise fit, runs the script, and mends it again.
"""
import base64
import functools
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import ssl
import sys
import threading

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in ("../kube", ".")]  # both have a schema.py
import sandbox  # noqa: E402
from runner_client import Runner  # noqa: E402
from sandbox import ok, same  # noqa: E402

sandbox.enter_with_nodes()
import cluster  # noqa: E402

folder = pathlib.Path(sandbox.scratch())
_, key, pub = sandbox.new_key(folder, "client")
VERSION = "v1.34.10+k0s.0"
K0S = os.path.join(sandbox.HERE, "..", "nodes", "k0s")
H100 = {"count": 2, "name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559, "driver": "570.195.03"}


class Machine:
    def __init__(self, **want):
        want = {"ssh_public_keys": [pub], "user": "ubuntu", "k0s_version": VERSION, "gpus": H100, **want}
        self.__dict__.update(json.loads(sandbox.node("create", data=want)))
        self.gpus = want["gpus"]
        self.target = {"host": self.ip, "users": ["root", self.user], "hostkey": self.host_key}

    def sh(self, command):
        return sandbox.node("exec", self.name, "--", "bash", "-c", command)

    def put(self, path, text, mode="644"):
        data = base64.b64encode(text.encode()).decode()
        self.sh(f"mkdir -p $(dirname {path}); echo {data} | base64 -d > {path}; chmod {mode} {path}")

    def show_gpus(self, **change):
        self.put("/etc/test-gpus.json", json.dumps({**self.gpus, **change}))

    def destroy(self):
        sandbox.node("destroy", self.name)


class Files(http.server.SimpleHTTPRequestHandler):
    """What K0S_URL serves; a file named slow-* comes only when `go` is set."""
    go, asked = threading.Event(), threading.Event()

    def do_GET(self):
        if "/slow-" in self.path:
            Files.asked.set()
            Files.go.wait(60)
        try:
            super().do_GET()
        except BrokenPipeError:
            pass  # a run that was killed asks no more

    def log_message(self, *args):
        pass


def serve_files():
    www = folder / "www"
    www.mkdir()
    text = open(K0S).read()
    for name in ("k0s", "slow-k0s"):
        (www / f"{name}-{VERSION}-amd64").write_text(text)
    (www / "sha256sums.txt").write_text(f"{digest(text)} *k0s-{VERSION}-amd64\n")
    server = http.server.ThreadingHTTPServer(("10.77.0.1", 0), functools.partial(Files, directory=str(www)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://10.77.0.1:{server.server_address[1]}"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


tokens = 0


def mint(c):
    """A join token of the hosted cluster, the way the kube runner asks for one."""
    global tokens
    tokens += 1
    api, base = c.management["api"], "/apis/k0smotron.io/v1beta2/namespaces/spokes/jointokenrequests"
    api.create(base, {"apiVersion": "k0smotron.io/v1beta2", "kind": "JoinTokenRequest",
                      "metadata": {"name": f"n{tokens}", "namespace": "spokes"},
                      "spec": {"clusterName": "spoke-a", "expiry": "10m", "role": "worker"}})
    secret = sandbox.until(lambda: api.find(f"/api/v1/namespaces/spokes/secrets/n{tokens}"), 20)
    return base64.b64decode(secret["data"]["token"])


def invalidate(c, token):
    ident = re.search(r"([a-z0-9]{6})\.[a-z0-9]{16}", gzip.decompress(base64.b64decode(token)).decode()).group(1)
    c.hosted["api"].delete(f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{ident}")


def secrets_of(token):
    """Every spelling of the token that must never be found: whole, and the secret half inside."""
    inner = gzip.decompress(base64.b64decode(token)).decode()
    return [token.decode()[:60], re.search(r"[a-z0-9]{6}\.([a-z0-9]{16})", inner).group(1)]


runner = Runner("ssh", [("ssh_key", key)])
files = serve_files()


def run(m, script, params, token=None, r=None, seconds=200):
    result = (r or runner).call("run", {"target": m.target, "script": script, "params": params}, token=token,
                                seconds=seconds, deadline_ms=seconds * 1000)
    if not result or result["kind"] != "ok":
        raise AssertionError(f"run {script}: {result}")
    return result["value"]


def fails(m, code, change, before="true", after="true", script="worker", base=None, token=None, r=None):
    m.sh(before)
    value = run(m, script, {**(base or {}), **change}, token, r)
    same(value["code"], code, f"{code}: {value['text']}", json.dumps(value)[:3000])
    ok(value["text"] and any(code in line for line in value["log_tail"]) or code == "sudo-password-required",
       f"{code}: it comes with words and the last log lines", value["log_tail"])
    m.sh(after)
    return value


# ------------------------------------------------------------------------------------------ what is wrong with it

def fake(name, text):
    return f"printf '%s\\n' '#!/bin/sh' {text!r} > /usr/local/sbin/{name}; chmod 755 /usr/local/sbin/{name}"


def hardware(m):
    base = {"GPU_COUNT": "2", "GPU_PATTERN": "H100", "GPU_MEM_MIB": "75000", "DRIVER_WAIT_S": "0", "SMI_TIMEOUT_S": "2",
            "FABRIC_WAIT_S": "0"}
    value = run(m, "check", base)
    same(value["code"], "ok", "the machine is what was bought", value)
    facts = value["facts"]
    same((facts["gpu_smi"], facts["gpu_names"], facts["gpu_mem_mib"], facts["driver"], facts["user"]),
         ("2", "NVIDIA H100 80GB HBM3;NVIDIA H100 80GB HBM3", "81559", "570.195.03", "ubuntu"), "its facts come along")
    same(facts["changed"], "0", "a check changes nothing")
    pci = "/var/lib/test-pci"
    fail = functools.partial(fails, m, script="check", base=base)
    fail("gpu-absent", {}, f"mv {pci}/0000:01:00.0 {pci}/0000:02:00.0 /root", f"mv /root/0000:0* {pci}")
    fail("gpu-count-mismatch", {}, f"mv {pci}/0000:01:00.0 /root", f"mv /root/0000:0* {pci}")
    fail("gpu-model-mismatch", {"GPU_PATTERN": "H200"})
    fail("gpu-memory-mismatch", {"GPU_MEM_MIB": "90000"})
    fail("driver-old", {"MIN_DRIVER": "580.10"})
    for code, faults in (("gpu-hang", "hang"), ("driver-library-mismatch", "library-mismatch"),
                         ("driver-missing", "not-loaded"), ("fabric-manager", "fabric")):
        m.show_gpus(faults=[faults])
        fail(code, {})
    m.show_gpus(count=1)
    fail("gpu-count-mismatch", {})
    m.show_gpus(faults=["not-loaded"])
    fail("driver-reboot-needed", {}, "touch /run/reboot-required", "rm /run/reboot-required")
    fail("driver-secureboot", {}, fake("mokutil", "echo SecureBoot enabled") + ";" +
         fake("dmesg", "echo Loading of module with unavailable key: Key was rejected by service"), "rm /usr/local/sbin/*")
    m.show_gpus()
    value = fail("xid", {}, fake("dmesg", "echo \"NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\""),
                 "rm /usr/local/sbin/dmesg")
    same(value["retryable"], False, "xid: not to be tried again")
    fail("disk-small", {"DISK_GIB": "1000000"})
    skewed = Runner("ssh", [("ssh_key", key)], env={"GPUB_TEST_CLOCK_OFFSET_MS": "3600000"})
    value = fail("clock-skew", {}, r=skewed)
    same(value["retryable"], True, "clock-skew: may be tried again")
    skewed.close()


def preflight(m, c, base, token):
    fail = functools.partial(fails, m, base=base, token=token)
    fail("hostname-invalid", {"NODE_NAME": "Local_Host"})
    fail("parameter", {"K0S_VERSION": "latest"})
    fail("parameter", {"LABELS": "a=b --data-dir=/x"})
    fail("token-invalid", {}, token=b"bm8gdG9rZW4gYXQgYWxs")
    fail("foreign-kubernetes", {}, "printf '[Service]\\nExecStart=/bin/sleep inf\\n[Install]\\nWantedBy=multi-user.target\\n'"
         " > /etc/systemd/system/k3s.service; systemctl -q enable --now k3s", "systemctl -q disable --now k3s; rm /etc/systemd/system/k3s.service")
    conf = json.dumps({"clusters": [{"cluster": {"certificate-authority-data": base64.b64encode(b"OTHER CA").decode()}}]}, indent=1)
    m.put("/var/lib/k0s/kubelet.conf", conf)
    fail("existing-k0s", {}, after="rm -r /var/lib/k0s")
    fail("cgroup-v1", {"K0S_VERSION": "v1.35.4+k0s.0"},
         fake("stat", "case $*/ in *cgroup/) echo tmpfs ;; *) exec /usr/bin/stat \"$@\" ;; esac"), "rm /usr/local/sbin/stat")
    fail("ro-usr", {}, "mkdir -p /usr/libexec; mount --bind /usr/libexec /usr/libexec; mount -o remount,ro,bind /usr/libexec", "umount /usr/libexec")
    fail("port-in-use", {}, "systemd-run -q --unit=squatter python3 -m http.server 10250; until ss -Hltn | grep -q :10250; do sleep .1; done",
         "systemctl stop squatter")
    fail("ipv6-only", {}, "ip route del default", "ip route add default via 10.77.0.1")
    fail("cidr-overlap", {"POD_CIDR": "10.77.0.0/16"})
    fail("dns", {"API_HOST": "api.no-such.invalid"})
    fail("egress", {"API_PORT": "1"})
    fail("egress-konnectivity", {"KONNECTIVITY_PORT": "1"})
    fail("api-x509", {"API_PORT": str(strange_tls())})


def strange_tls():
    """A TLS server that the token's CA did not sign."""
    pem = folder / "strange.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=10.77.0.1",
                    "-addext", "subjectAltName=IP:10.77.0.1", "-keyout", pem, "-out", f"{pem}.crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{pem}.crt", pem)
    server = http.server.ThreadingHTTPServer(("10.77.0.1", 0), Files)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def packages(m, base, token):
    """The toolkit is missing, and packages cannot be had (there is no mirror in this network)."""
    m.sh("rm -f /usr/bin/nvidia-container-runtime; echo 'deb http://10.77.0.1:1/ x main' > /etc/apt/sources.list")
    fails(m, "toolkit-missing", {}, base=base, token=token)
    hold = ("python3 -c 'import fcntl, time; f = open(\"/var/lib/dpkg/lock-frontend\", \"w\"); fcntl.lockf(f, fcntl.LOCK_EX); "
            "open(\"/run/held\", \"w\"); time.sleep(300)'")
    fails(m, "apt-lock-timeout", {"APT_WAIT_S": "2"}, f"systemd-run -q --unit=holder {hold}; until [ -e /run/held ]; do sleep .1; done",
          "systemctl stop holder", base=base, token=token)
    m.put("/usr/bin/nvidia-container-runtime", "#!/bin/sh\n", "755")


def binaries(m, base, token):
    url, good = files + "/k0s-%v-%a", digest(open(K0S).read())
    m.sh("rm -f /usr/local/bin/k0s")
    fail = functools.partial(fails, m, base=base, token=token)
    fail("k0s-download", {"K0S_URL": files + "/nothing-%v-%a", "K0S_SHA256_AMD64": good})
    fail("k0s-checksum", {"K0S_URL": url, "K0S_SHA256_AMD64": "0" * 64})
    same(m.sh("ls /usr/local/bin").strip(), "", "nothing that failed its checksum stays")
    m.put("/etc/test-k0s.json", '{"sysinfo": "4.19 is too old"}')
    value = fail("k0s-sysinfo", {"K0S_URL": url, "K0S_SHA256_AMD64": good}, after="rm /etc/test-k0s.json")
    ok("4.19 is too old" in value["text"], "k0s-sysinfo: with k0s's own words", value["text"])
    ok(m.sh("k0s version").strip() == VERSION and oct(0o755)[2:] == m.sh("stat -c %a /usr/local/bin/k0s").strip(),
       "the binary was downloaded, checked and put in place")
    fail("token-missing", {}, token=None)


def joining(m, base, token, c):
    fail = functools.partial(fails, m, base={**base, "CRASH_LIMIT": "1", "WAIT_S": "30"})
    gone = mint(c)
    invalidate(c, gone)
    value = fail("token-expired", {}, token=gone)
    ok("joined" in m.sh("cat /etc/k0s/join.token") and value["retryable"], "token-expired: a new token may follow, the old one is gone")
    for code, crash in (("k0s-crash-loop", "the moon is full"), ("containerd-config", "containerd:configSnippets: bad")):
        m.put("/etc/test-k0s.json", json.dumps({"crash": crash}))
        value = fail(code, {}, "journalctl -q --rotate --vacuum-time=1s >/dev/null 2>&1", "rm /etc/test-k0s.json", token=token)
        ok(crash in value["text"], f"{code}: with k0s's own words", value["text"])
    m.put("/etc/test-k0s.json", '{"no_join": true}')
    fail("join-timeout", {"WAIT_S": "2"}, "journalctl -q --rotate --vacuum-time=1s >/dev/null 2>&1",
         "rm /etc/test-k0s.json", token=token)
    same(m.sh("systemctl is-active k0sworker; true").strip(), "inactive", "a join that failed leaves no loop behind")


# -------------------------------------------------------------------------------------------- what must always hold

FINGERPRINT = ("find /etc /usr/local /root /home /var/lib/k0s /var/lib/gpubroker-node -type f ! -name bootstrap.status "
               "! -path '*/__pycache__/*' -exec sha256sum {} + 2>/dev/null | sort; find /etc/k0s /var/lib/k0s /usr/local/bin "
               "-printf '%m %u %p\\n' | sort; systemctl show -p NRestarts,ActiveEnterTimestamp,MainPID k0sworker")


def found(m, words):
    pattern = " ".join(f"-e {w}" for w in words)
    return m.sh(f"grep -rlF {pattern} /etc /var /run /tmp /root /home /opt /usr/local /dev/shm 2>/dev/null; "
                f"journalctl --no-pager -o verbose 2>/dev/null | grep -cF {pattern} | grep -v '^0$'; true").strip()


def happy(m, c, base):
    token = mint(c)
    watching, argv = threading.Event(), []

    def watch():
        while not watching.is_set():
            argv.append(m.sh("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '"))

    t = threading.Thread(target=watch)
    t.start()
    value = run(m, "worker", base, token)
    watching.set()
    t.join()
    same(value["code"], "ok", "the machine joins", value)
    steps = [i["progress"]["step"] for i in runner.items[runner.next - 1] if i["progress"]["state"] == "ok"]
    same(steps, ["lock", "preflight", "gpu", "runtime", "k0s", "install", "start", "join", "clean"], "step by step")
    node = sandbox.until(lambda: c.hosted["api"].find("/api/v1/nodes/lease-1"), 10)
    same(node["metadata"]["labels"].get("gpubroker.io/lease"), "7", "the Node has its labels")
    words = secrets_of(token)
    same(found(m, words), "", "the token is nowhere on the machine afterwards")
    ok(argv and not any(w in a for a in argv for w in words), f"nor in any argv or environment, {len(argv)} looks")
    said = json.dumps([runner.results, runner.items, runner.logs])
    ok(not any(w in said for w in words), "nor in anything the runner said")
    same(m.sh("stat -c %a /etc/k0s/join.token /var/log/gpubroker-bootstrap.log").split(), ["600", "600"], "modes are 0600")
    ok('version = 2' in m.sh("cat /etc/k0s/containerd.d/10-gpubroker-nvidia.toml"), "k0s 1.34 gets drop-in version 2")
    before = m.sh(FINGERPRINT)
    value = run(m, "worker", base, mint(c))
    same((value["code"], value["facts"]["changed"]), ("ok", "0"), "a second run is fine")
    same(m.sh(FINGERPRINT), before, "and changes nothing: files, modes, the service's start and pid")
    probe = runner.call("probe", {"target": m.target})["value"]["facts"]
    same((probe["marker"], probe["marker_hash"], probe["lock"], probe["unit"], probe["kubeconf"], probe["node_name"]),
         ("ok", value["hash"], "free", "active", "present", "lease-1"), "a probe sees all that", probe)
    invalidate(c, token)
    m.sh("systemctl restart k0sworker")
    ok(sandbox.until(lambda: "active" == m.sh("systemctl is-active k0sworker; true").strip()), "k0s restarts without its token")


def leaving(m):
    keys = m.sh("cat /home/ubuntu/.ssh/authorized_keys")
    value = run(m, "leave", {"NODE_NAME": "lease-1", "RESET": "1"})
    same((value["code"], value["facts"]["kubeconf"], value["facts"]["unit"]), ("ok", "absent", "absent"), "leave")
    same(m.sh("ls -A /var/lib/k0s /etc/k0s/join.token /etc/systemd/system/k0sworker.service 2>/dev/null; true").strip(), "",
         "nothing of the cluster stays")
    same(m.sh("cat /home/ubuntu/.ssh/authorized_keys"), keys, "authorized_keys stay")
    value = run(m, "leave", {"NODE_NAME": "lease-1", "RESET": "1"})
    same((value["code"], value["facts"]["changed"]), ("ok", "0"), "leave again changes nothing")


def dropped(m, c, base):
    """The broker dies while k0s is being downloaded; another one attaches, and nothing runs twice."""
    m.sh("rm -f /usr/local/bin/k0s")
    params = {**base, "K0S_URL": files + "/slow-k0s-%v-%a", "K0S_SHA256_AMD64": digest(open(K0S).read())}
    args = {"target": m.target, "script": "worker", "params": params}
    token, first = mint(c), Runner("ssh", [("ssh_key", key)])
    call = first.start("run", args, token=token, deadline_ms=120000)
    ok(first.pump(lambda: Files.asked.is_set(), 20) or Files.asked.wait(20), "a run is in the middle of a download")
    first.process.kill()
    first.process.wait()
    probe = runner.call("probe", {"target": m.target})["value"]["facts"]
    same((probe["marker"], probe["lock"]), ("running", "held"), "a probe sees that it goes on without a broker")
    call = runner.start("run", args, token=token, deadline_ms=120000)
    ok(runner.pump(lambda: runner.items[call], 20), "a second broker attaches")
    Files.go.set()
    value = runner.wait(call, 100)["value"]
    same(value["code"], "ok", "and learns how it ended", value)
    same(m.sh("journalctl --no-pager -o cat | grep -c 'Started gpubroker-bootstrap-worker'; grep -c '== k0s$' /var/log/gpubroker-bootstrap.log").split(),
         ["1", "1"], "it ran once")


def interrupted(m, c, base):
    Files.go.clear()
    Files.asked.clear()
    m.sh("rm -f /usr/local/bin/k0s")
    params = {**base, "K0S_URL": files + "/slow-k0s-%v-%a", "K0S_SHA256_AMD64": digest(open(K0S).read())}
    call = runner.start("run", {"target": m.target, "script": "worker", "params": params}, token=mint(c), deadline_ms=120000)
    Files.asked.wait(30)
    m.sh("systemctl kill -s KILL 'gpubroker-bootstrap-*'")
    value = runner.wait(call, 60)["value"]
    same((value["code"], value["retryable"]), ("interrupted", True), "a run that is killed is reported", value)
    probe = runner.call("probe", {"target": m.target})["value"]["facts"]
    same((probe["marker"], probe["lock"]), ("running", "free"), "its marker says running, the lock tells otherwise")
    Files.go.set()
    same(run(m, "worker", params, mint(c))["code"], "ok", "the next run mends it")


def locked(m):
    m.sh("systemd-run -q --unit=other flock /run/lock/gpubroker-bootstrap.lock sleep 300; "
         "until ! flock -n /run/lock/gpubroker-bootstrap.lock true; do sleep .1; done")
    call = runner.start("run", {"target": m.target, "script": "check", "params": {"GPU_COUNT": "0"}}, deadline_ms=100000)
    ok(runner.pump(lambda: any(i["progress"]["state"] == "wait" for i in runner.items[call]), 30), "two runs never race: the second waits")
    m.sh("systemctl stop other")
    same((runner.wait(call, 60) or {}).get("value", {}).get("code"), "ok", "and goes on when the first is gone")


def keys(m):
    mine = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAITest somebody"
    for i in range(2):
        value = run(m, "check", {"GPU_COUNT": "0", "SSH_KEYS": mine + "\n"})
        same(value["facts"]["changed"], "1" if i == 0 else "0", f"the user's key, run {i + 1}")
    lines = m.sh("cat /home/ubuntu/.ssh/authorized_keys").split("\n")
    ok(lines.count(mine) == 1 and pub in lines, "it is there once, beside ours", lines)
    same(m.sh("stat -c '%U %a' /home/ubuntu/.ssh/authorized_keys").strip(), "ubuntu 600", "owner and mode stay")


def versions(c, base):
    """What depends on the k0s version: the drop-in's shape, and what takes the token's place."""
    for version, shape in (("v1.35.1+k0s.0", "version = 2"), ("v1.36.3+k0s.0", "version = 3")):
        m = Machine(k0s_version=version)
        value = run(m, "worker", {**base, "K0S_VERSION": version.replace("+", "-"), "NODE_NAME": "v" + version[3:5]}, mint(c))
        same(value["code"], "ok", f"{version} joins", value)
        ok(shape in m.sh("cat /etc/k0s/containerd.d/10-gpubroker-nvidia.toml"), f"{version}: drop-in {shape}")
        m.sh("systemctl restart k0sworker")
        same(m.sh("sleep 1; systemctl show -p NRestarts --value k0sworker").strip(), "0", f"{version} restarts with what is left of the token")
        m.destroy()
    m = Machine(gpus={}, user="root")
    value = run(m, "worker", {**base, "GPU_COUNT": "0", "NODE_NAME": "cpu"}, mint(c))
    same((value["code"], value["facts"]["dropin"], value["user"]), ("ok", "absent", "root"), "a machine without GPU joins, without drop-in")
    m.destroy()


def sudo():
    m = Machine(sudo="password")
    value = run(m, "check", {"GPU_COUNT": "0"})
    same((value["code"], value["retryable"]), ("sudo-password-required", False), "sudo that wants a password", value)
    facts = runner.call("probe", {"target": m.target})["value"]["facts"]
    same((facts["sudo"], facts["uid"], facts["gpu_smi"]), ("password-required", "1000", "2"), "a probe works without root")
    m.destroy()


def main():
    with cluster.Clusters("double", folder / "kube", "10.77.0.1") as c:
        base = {"NODE_NAME": "lease-1", "K0S_VERSION": VERSION, "GPU_COUNT": "2", "GPU_PATTERN": "H100", "GPU_MEM_MIB": "75000",
                "API_HOST": "10.77.0.1", "API_PORT": str(c.info["api_port"]), "KONNECTIVITY_HOST": "10.77.0.1",
                "KONNECTIVITY_PORT": str(c.info["konnectivity_port"]), "LABELS": "gpubroker.io/lease=7,nvidia.com/gpu.present=true"}
        m, token = Machine(), mint(c)
        hardware(m)
        keys(m)
        locked(m)
        preflight(m, c, base, token)
        packages(m, base, token)
        binaries(m, base, token)
        joining(m, base, token, c)
        happy(m, c, base)
        leaving(m)
        m.destroy()
        m = Machine()
        dropped(m, c, base)
        leaving(m)
        interrupted(m, c, base)
        m.destroy()
        versions(c, base)
        sudo()
    runner.close()


try:
    main()
except Exception as e:  # noqa: BLE001: what went wrong belongs into the TAP stream
    import traceback
    ok(False, f"the test itself: {e}", traceback.format_exc())
finally:
    shutil.rmtree(folder, ignore_errors=True)
sandbox.done()
