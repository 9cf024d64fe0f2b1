#!/usr/bin/python3
"""join_host.py - a machine of the caller's own joins a cluster, and is as it was when it is released

The machine is a real Debian with systemd and sshd; the key is the caller's.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import Broker, Refused, Tap, spoke, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("a host joins", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])


def machine(key, version, **more):
    want = {"user": "ubuntu", "k0s_version": version, "ssh_public_keys": [open(key + ".pub").read()], **more}
    r = subprocess.run(["/usr/bin/python3", node.__file__, "create"], input=json.dumps(want), text=True,
                       capture_output=True, check=True)
    return json.loads(r.stdout)


def on(m, script):
    return subprocess.run(["/usr/bin/python3", node.__file__, "exec", m["name"], "sh", "-c", script], text=True,
                          capture_output=True, check=True).stdout


def nodes(c):
    return {n["metadata"]["name"]: n for n in c.hosted["api"].get("/api/v1/nodes")["items"]}


def keys_on(m):
    return on(m, "cat /home/ubuntu/.ssh/authorized_keys; stat -c '%U %a' /home/ubuntu/.ssh/authorized_keys")


def what_is_on(m):
    """What a release has to undo."""
    return on(m, "systemctl is-active k0sworker; ls /etc/systemd/system/k0sworker.service /var/lib/k0s "
                 "/etc/k0s/join.token /var/lib/gpubroker-node/installed 2>/dev/null; true").split()


def kept_keys(b):
    folder = f"{b.state}/identity"
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def join(b, m, key, *more, host=None):
    code, out, err = b.cli("join", "--host", f"ubuntu@{host or m['ip']}", "--identity", key, "--cluster", "spoke-a", *more)
    if code:
        print("# " + (out + err).replace("\n", "\n# "))
    return code, out


def secret_of(key):
    """A line from the middle of the private key: it must be nowhere."""
    return open(key).read().splitlines()[2].encode()


def nowhere(b, secret, what):
    found = []
    for folder, _, files in os.walk(b.dir):
        for f in files:
            path = os.path.join(folder, f)
            if os.path.isfile(path) and secret in open(path, "rb").read():
                found.append(path)
    t.eq(found, [], what)


def life(b, c, m, key):
    before = keys_on(m)
    code, out = join(b, m, key, "--name", "lab", "--label", "topology.kubernetes.io/zone=on-prem-dc1")
    t.eq(code, 0, "a host joins")
    lease = b.lease("lab")
    t.eq((lease["state"], lease["machine"]["address"], lease["machine"]["provider"]), ("ready", m["ip"], "own"),
         "its lease is ready")
    t.eq((lease["price_udollar"], lease["spent_udollar"], lease.get("expires_ms")), (0, 0, None),
         "costs nothing and does not expire")
    t.eq((lease["machine"]["gpu"], lease["machine"]["gpu_count"]), ("L40S", 2), "its GPUs are those of the probe")
    n = nodes(c)
    t.eq(list(n), [lease["node"]], "it is the cluster's node")
    labels = n[lease["node"]]["metadata"]["labels"]
    t.eq((labels.get("nvidia.com/gpu.product"), labels.get("topology.kubernetes.io/zone"), labels.get("gpubroker.io/provider")),
         ("NVIDIA-L40S-48GB", "on-prem-dc1", "own"), "with the labels of every node, and those that were given")
    t.eq(n[lease["node"]]["status"]["allocatable"]["nvidia.com/gpu"], "2", "and its GPUs")
    t.eq(kept_keys(b), [], "the key is not kept")
    nowhere(b, secret_of(key), "and is in no file of the broker")
    t.eq(b.cli("explain", "lab")[0], 0, "it has nothing to explain, and can be asked")
    code, out = join(b, m, key)
    t.eq((code, out.split()[0]), (0, lease["id"]), "joined again it is the same lease")
    try:
        b.accepted("join", {"key": "other", "host": {"address": m["ip"], "user": "ubuntu"}, "cluster": "spoke-b"})
        t.ok(False, "and it cannot join a second cluster")
    except Refused as e:
        t.eq(e.code, "conflict", "and it cannot join a second cluster")
    on(m, "ip addr add 10.77.0.200/24 dev host0")
    code, out = join(b, m, key, "--name", "alias", "--on-failure", "release", host="10.77.0.200")
    t.eq(code, 1, "under another name for its address it is refused")
    t.eq(b.lease("alias")["cause"]["code"], "host-in-use", "because it is a node already")
    b.wait_state("alias", "failed-empty")
    t.eq((list(nodes(c)), on(m, "systemctl is-active k0sworker").strip()), ([lease["node"]], "active"), "which goes on")
    code, out, err = b.cli("verify", "lab")
    t.eq(code, 0, "and can be reached as before")
    t.eq(b.cli("release", "lab")[0], 0, "it is released")
    t.eq(b.lease("lab")["state"], "released", "to the end")
    t.eq(nodes(c), {}, "no node is left")
    t.eq(what_is_on(m), ["inactive"], "nothing of k0s is left on it")
    t.eq(keys_on(m), before, "and who may log in is as before")


def wrong(b, m, key, other):
    code, out = join(b, m, other, "--name", "stranger")
    t.eq((code, b.lease("stranger")["state"], b.lease("stranger")["cause"]["code"]), (1, "failed-empty", "ssh-auth"),
         "a key that does not open it fails soon")
    t.eq(kept_keys(b), [], "and is dropped")
    for text, what in (("-----BEGIN RSA PRIVATE KEY-----\nabc", "an old format"), ("x" * 9000, "a text that is too long")):
        try:
            b.accepted("join", {"key": what, "host": {"address": m["ip"], "user": "u"}, "cluster": "spoke-a", "identity": text})
            t.ok(False, f"{what} is refused")
        except Refused as e:
            t.ok(e.code == "bad-request" and "abc" not in str(e), f"{what} is refused: {e}")
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", f"{b.dir}/rsa"], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", f"{b.dir}/locked"], check=True)
    for name, word in (("rsa", "ssh-rsa"), ("locked", "passphrase")):
        code, out, err = b.cli("join", "--host", f"u@{m['ip']}", "--identity", f"{b.dir}/{name}", "--cluster", "spoke-a")
        t.ok(code == 2 and word in err, f"a key that cannot be used is refused at once: {word}")


def leftovers(b, c, m, key):
    """What an earlier lease of ours left is removed; somebody else's k0s is not touched."""
    join(b, m, key, "--name", "first")
    b.accepted("release", {"key": "f", "lease": "first", "drain": False})
    b.wait_state("first", "released")
    instance = b.ask("ping")["instance"]
    unit = ("mkdir -p /var/lib/k0s; printf '[Service]\\nExecStart=/bin/sleep --hostname-override=%s 1000\\n' > "
            "/etc/systemd/system/k0sworker.service; systemctl daemon-reload;")
    on(m, unit % "theirs")
    code, out = join(b, m, key, "--name", "foreign", "--on-failure", "release")
    lease = b.lease("foreign")
    t.eq((code, lease["cause"]["code"]), (1, "existing-k0s"), "a k0s of somebody else's is refused")
    b.wait_state("foreign", "failed-empty", "released")
    t.eq(on(m, "cat /etc/systemd/system/k0sworker.service | grep -c theirs; ls -d /var/lib/k0s").split(), ["1", "/var/lib/k0s"],
         "and left as it is")
    old = f"gpub-{instance[:4]}-l999-1"
    on(m, unit % old + f"echo {instance} {old} > /var/lib/gpubroker-node/installed")
    code, out = join(b, m, key, "--name", "second")
    t.eq((code, list(nodes(c))), (0, [b.lease("second")["node"]]), "what an earlier lease of ours left is removed")
    b.accepted("release", {"key": "s", "lease": "second"})
    b.wait_state("second", "released")


def unclean(b, c, m, key):
    """A host whose reset fails is not given back as if nothing were on it."""
    join(b, m, key, "--name", "stuck")
    on(m, "cd /usr/local/bin; mv k0s k0s.real; printf '#!/bin/sh\n[ \"$1\" = reset ] && [ -e /etc/no-reset ] && exit 1\n"
          "exec /usr/local/bin/k0s.real \"$@\"\n' >k0s; chmod 755 k0s; touch /etc/no-reset")
    b.accepted("release", {"key": "stuck", "lease": "stuck", "drain": False})
    b.wait_state("stuck", "released")
    t.eq(what_is_on(m)[0], "inactive", "told not to drain, a release passes over a reset that fails")
    on(m, "rm /etc/no-reset; k0s reset; rm -rf /etc/systemd/system/k0sworker.service /var/lib/gpubroker-node; systemctl daemon-reload;"
          " touch /etc/no-reset")
    join(b, m, key, "--name", "asks")
    b.accepted("release", {"key": "asks", "lease": "asks"})
    until(lambda: b.logged("what=not-clean"), 60, "the alarm")
    t.eq(b.lease("asks")["state"], "draining", "else it asks again, and says so")
    on(m, "rm /etc/no-reset")
    b.wait_state("asks", "released")
    t.eq(what_is_on(m), ["inactive"], "until it is clean")
    on(m, "cd /usr/local/bin; mv k0s.real k0s")


def tokens(c):
    return [s["metadata"]["name"] for s in c.hosted["api"].get("/api/v1/namespaces/kube-system/secrets",
                                                             labelSelector="gpubroker.io/machine")["items"]]


def without_operator(b, c, m, key):
    """A cluster whose tokens the broker makes itself: none outlives the join, and none a join that failed."""
    code, out, err = b.cli("join", "--host", f"ubuntu@{m['ip']}", "--identity", key, "--cluster", "plain", "--name", "plain")
    if not t.ok(code == 0, "a cluster without an operator"):
        print("# " + (out + err).replace("\n", "\n# "))
    t.eq((list(nodes(c)), tokens(c)), ([b.lease("plain")["node"]], []), "has its node, and no token any more")
    b.accepted("release", {"key": "plain", "lease": "plain", "drain": False})
    b.wait_state("plain", "released")
    on(m, "echo '{\"sysinfo\": \"no cgroup\"}' >/etc/test-k0s.json")
    b.accepted("join", {"key": "bad", "name": "bad", "host": {"address": m["ip"], "user": "ubuntu"}, "cluster": "plain",
                        "identity": open(key).read(), "on_failure": {"action": "keep"}})
    until(lambda: tokens(c), 60, "a token is made")
    b.wait_state("bad", "failed-kept", seconds=60)
    until(lambda: not tokens(c), 20, "the token of a join that failed goes")
    t.eq(tokens(c), [], "a join that failed leaves no token, though the machine is kept")
    on(m, "rm /etc/test-k0s.json")
    b.accepted("release", {"key": "bad-r", "lease": "bad"})
    b.wait_state("bad", "failed-empty")


def standalone(b, c, m, key):
    """It can become a cluster of its own as well, and is a bare machine again afterwards."""
    code, out, err = b.cli("join", "--host", f"ubuntu@{m['ip']}", "--identity", key, "--cluster", "standalone", "--name", "alone")
    if not t.ok(code == 0, "a host becomes a cluster of its own"):
        print("# " + (out + err).replace("\n", "\n# "))
    code, out, err = b.cli("kubeconfig", "alone", "-o", "-")
    t.ok(code == 0 and "client-key-data" in out, "with a kubeconfig")
    b.accepted("release", {"key": "alone", "lease": "alone"})
    b.wait_state("alone", "released")
    left = on(m, "systemctl is-active k0scontroller; ls -d /etc/systemd/system/k0scontroller.service /var/lib/k0s "
                 "/etc/k0s/k0s.yaml 2>/dev/null; true").split()
    t.eq(left, ["inactive"], "and nothing of it is left")


def persist(b, fn, seconds, what):
    """The answer of fn, whatever dies meanwhile; how often that was."""
    deaths = 0

    def attempt():
        nonlocal deaths
        if b.proc.poll() is not None:
            deaths += 1
            b.restart()
        try:
            return fn()
        except (TimeoutError, RuntimeError):
            return None
    return until(attempt, seconds, what), deaths


def killed(b, c, m, key):
    """kill -9 at every fifth commit of a life: one lease, one node, a clean host in the end."""
    before, died, wrong = keys_on(m), 0, []
    for n in range(2, 60, 5):
        at = f"commit:{n}"
        b.stop()
        b.start(wait=False, GPUB_TEST_KILL=at)
        body = {"key": at, "host": {"address": m["ip"], "user": "ubuntu"}, "cluster": "spoke-a", "identity": open(key).read()}
        got, deaths = persist(b, lambda: b.accepted("join", body, 1000), 30, "join")

        def state(wanted):
            return persist(b, lambda: (b.try_ask("lease", {"lease": got["lease"]}, 1000) or ("", {}))[1].get("lease", {}).get(
                "state") == wanted, 60, f"{at}: {wanted}")[1]
        deaths += state("ready")
        if len(nodes(c)) != 1 or kept_keys(b):
            wrong.append((at, list(nodes(c)), kept_keys(b)))
        deaths += persist(b, lambda: b.accepted("release", {"key": "r" + at, "lease": got["lease"], "drain": False}, 1000),
                          30, "release")[1]
        deaths += state("released")
        if nodes(c) or what_is_on(m) != ["inactive"] or keys_on(m) != before:
            wrong.append((at, list(nodes(c)), what_is_on(m), keys_on(m)))
        died += deaths > 0
        if not deaths:
            break
    t.ok(died > 5 and not deaths, f"killed at {died} points of a life, to its end")
    t.eq(wrong, [], "each time one node and no key is kept, then nothing is left")


def main():
    mode = os.environ.get("GPUB_TEST_KUBE", "auto")
    with tempfile.TemporaryDirectory() as d, cluster.Clusters(mode, d, "10.77.0.1") as c:
        for name in ("mine", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", f"{d}/{name}"], check=True)
        version = c.info["k0s_version"].replace("-k0s", "+k0s")
        m = machine(f"{d}/mine", version, gpus={"count": 2, "name": "NVIDIA L40S", "memory_mib": 46068})
        plain = {"name": "plain", "type": "kubeconfig", "kubeconfig_file": c.info["hosted"]["kubeconfig"],
                 "k0s_version": version, "gpu_stack": "device-plugin", "allow_private": True}
        alone = {"name": "standalone", "type": "standalone", "k0s_version": version, "gpu_stack": "none"}
        with Broker(clusters=[spoke(c.info), spoke(c.info, name="spoke-b"), plain, alone]) as b:
            t.run(life, b, c, m, f"{d}/mine")
            t.run(wrong, b, m, f"{d}/mine", f"{d}/other")
            t.run(leftovers, b, c, m, f"{d}/mine")
            t.run(without_operator, b, c, m, f"{d}/mine")
            t.run(standalone, b, c, m, f"{d}/mine")
            t.run(unclean, b, c, m, f"{d}/mine")
            t.run(killed, b, c, m, f"{d}/mine")
    t.done()


main()
