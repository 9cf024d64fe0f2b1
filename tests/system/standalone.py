#!/usr/bin/python3
"""standalone.py - a rented machine becomes a cluster of its own: directly reached, or through a tunnel

The machine is a whole Debian; k0s on it is the stand-in of tests/nodes/k0s, whose API wants the administrator's
certificate.  ssh(1) and the user's own key are real.
"""
import base64
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), HERE]
import node  # noqa: E402
import sandbox  # noqa: E402
from broker import BUILD, Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("standalone clusters", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy", "--keep-addresses")
VERSION = "v1.34.10+k0s.0"
GATEWAY = "10.77.0.1"
FOREIGN = ("printf '[Service]\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n' > /etc/systemd/system/k3s.service; "
           "systemctl enable k3s")


def machine_sh(cloud, command):
    [m] = cloud.machines()
    return subprocess.run(["/usr/bin/python3", node.__file__, "exec", m["node"]["name"], "--", "sh", "-c", command],
                          capture_output=True, text=True, check=True).stdout


def api(conf, path):
    """What a client with that kubeconfig gets: (status, object)."""
    c = yaml.safe_load(conf)
    cluster, user = c["clusters"][0]["cluster"], c["users"][0]["user"]
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as f:
        f.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        f.flush()
        tls.load_cert_chain(f.name)
    try:
        with urllib.request.urlopen(cluster["server"] + path, timeout=10, context=tls) as r:
            return r.status, json.load(r)
    except urllib.error.HTTPError as e:
        return e.code, None


def names(conf):
    c = yaml.safe_load(conf)
    return {c["clusters"][0]["name"], c["users"][0]["name"], c["contexts"][0]["name"], c["current-context"],
            c["contexts"][0]["context"]["cluster"], c["contexts"][0]["context"]["user"]}


def rented(b, name, *more):
    code, out, err = b.cli("rent", "--gpu", "H100", "--name", name, "--cluster", "standalone", *more)
    if not t.ok(code == 0, f"{name}: rent ends well"):
        print("# " + (out + err).replace("\n", "\n# "))
        raise RuntimeError(f"{name} was not rented")
    return b.lease(name)


def tunnel(b, home, pub_key):
    lease = rented(b, "one", "--ssh-key", pub_key + ".pub")
    t.eq((lease["state"], lease["cluster"]), ("ready", "standalone"), "a cluster of its own is ready")
    [m] = b.cloud.machines()
    t.eq([r["port_range_min"] for r in m["request"]["security_rules"]], [22], "nothing but SSH is open")
    env = {"HOME": home}
    code, out, err = b.cli("kubeconfig", "one", env=env)
    path = out.strip().partition("=")[2]
    t.eq((code, path), (0, f"{home}/.kube/gpubroker/gpubroker-one.yaml"), "one file a machine, and its path is told")
    t.ok("gpubroker-cli tunnel one" in err, "and how to reach it")
    t.eq((stat.S_IMODE(os.stat(path).st_mode), stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode)), (0o600, 0o700), "for one's eyes only")
    conf = open(path).read()
    t.eq(names(conf), {"gpubroker-one"}, "every name in it is the machine's")
    t.ok("https://127.0.0.1:16443" in conf, "it goes through the tunnel")
    p = subprocess.Popen([f"{BUILD}/gpubroker-cli", "tunnel", "one", "--identity", pub_key], stderr=subprocess.PIPE, text=True,
                         env={**b.environment(), **env}, start_new_session=True)
    try:
        nodes = until(lambda: answered(conf, "/api/v1/nodes"), 20, "the tunnel carries")
        t.eq((nodes[0], nodes[1]["items"][0]["metadata"]["name"]), (200, lease["node"]), "kubectl's way through the tunnel: the node is there")
        t.eq(nodes[1]["items"][0]["status"]["allocatable"]["nvidia.com/gpu"], "1", "with its GPU")
        code, out, err = b.cli("tunnel", "one", "--identity", pub_key, env=env)
        t.ok(code == 8 and "16443" in err and "--port" in err, "a port that is taken is named")
        [ssh] = open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()
        os.kill(int(ssh), signal.SIGKILL)
        t.eq(until(lambda: answered(conf, "/api/v1/nodes"), 20, "the tunnel is back")[0], 200, "a link that breaks is made again")
    finally:
        os.killpg(p.pid, signal.SIGINT)
        p.wait(10)
    t.eq(p.returncode, 0, "Ctrl-C ends it")
    code, out, _ = b.cli("kubeconfig", "one", "--port", "16555", "-o", "-", env=env)
    t.ok(code == 0 and "https://127.0.0.1:16555" in out, "another port stands in the kubeconfig")


def answered(conf, path):
    try:
        return api(conf, path)
    except (OSError, urllib.error.URLError):
        return None


def again(b):
    """Looked at again: nothing changes on the machine."""
    what = "cat /etc/k0s/k0s.yaml /etc/systemd/system/k0scontroller.service | sha256sum; systemctl show -p ExecMainStartTimestampMonotonic k0scontroller"
    before = machine_sh(b.cloud, what)
    t.eq(b.cli("verify", "one")[0], 0, "verified again")
    t.eq(machine_sh(b.cloud, what), before, "the same files, and no restart")
    t.eq(machine_sh(b.cloud, "ls /etc/k0s").split(), ["containerd.d", "k0s.yaml"], "no join token is there")
    t.eq(b.cli("release", "one")[0], 0, "released")
    until(lambda: not b.cloud.machines(), 20, "the machine ends")


def direct(b, home):
    lease = rented(b, "two", "--open", f"6443/{GATEWAY}/32")
    [m] = b.cloud.machines()
    t.ok((6443, f"{GATEWAY}/32") in [(r["port_range_min"], r["remote_ip_prefix"]) for r in m["request"]["security_rules"]],
         "the API's port is open to the caller alone")
    doc = b.ask("kubeconfig", {"lease": "two"})
    t.eq((doc["mode"], doc["server"]), ("direct", f"https://{lease['machine']['address']}:6443"), "it is reached directly")
    status, nodes = api(doc["kubeconfig"], "/api/v1/nodes")
    t.eq((status, len(nodes["items"])), (200, 1), "with a certificate that covers its address")
    code, out, err = b.cli("kubeconfig", "two", "-o", f"{home}/two.yaml")
    t.eq((code, out.strip()), (0, f"export KUBECONFIG={home}/two.yaml"), "it answers from the user's machine")
    machine_sh(b.cloud, "systemctl stop k0scontroller")
    code, out, err = b.cli("kubeconfig", "two", "-o", f"{home}/two.yaml")
    t.ok(code == 1 and "firewall-blocked" in err and "security group" in err, "and when it does not, that is said")
    t.eq(b.cli("release", "two")[0], 0, "released")
    until(lambda: not b.cloud.machines(), 20, "the machine ends")


def wrong(b):
    for verb, body, code in (("kubeconfig", {"lease": "one"}, "not-found"), ("kubeconfig", {"lease": "l1", "port": 70000}, "bad-request")):
        try:
            b.ask(verb, body)
            t.ok(False, f"{verb} {body} is refused")
        except Refused as e:
            t.ok(e.code in (code, "conflict"), f"{verb} {body} is refused: {e.code}")
    os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": VERSION, "after": FOREIGN})


def foreign(b):
    """A machine that belongs to another Kubernetes: kept with its code, mended by hand, tried again as it is."""
    code, out, err = b.cli("rent", "--gpu", "H100", "--name", "three", "--cluster", "standalone", "--on-failure", "keep:1h")
    t.ok(code == 1 and "foreign-kubernetes" in out + err, "another Kubernetes on it has its code")
    t.eq(b.lease("three")["state"], "failed-kept", "the machine is kept")
    [m] = b.cloud.machines()
    machine_sh(b.cloud, "systemctl disable k3s; rm /etc/systemd/system/k3s.service")
    t.eq(b.cli("retry", "three")[0], 0, "tried again")
    t.eq((b.lease("three")["state"], [x["id"] for x in b.cloud.machines()]), ("ready", [m["id"]]), "on the same machine")
    t.eq(b.cli("release", "three")[0], 0, "released")


def own_machine():
    """A machine that goes on to others afterwards: nothing of the cluster is left on it."""
    m = node.create({"user": "ubuntu", "ssh_public_keys": [], "k0s_version": VERSION,
                     "gpus": {"count": 1, "name": "NVIDIA L40S", "memory_mib": 46068}})

    def on(command):
        return subprocess.run(["/usr/bin/python3", node.__file__, "exec", m["name"], "--", "sh", "-c", command],
                              capture_output=True, text=True, check=True).stdout
    lab = {"name": "lab", "plugin": "static", "offers_every": "1s", "reconcile_every": "1s",
           "hosts": [{"address": m["ip"], "user": "ubuntu", "gpu": "L40S", "gpus": 1, "vram_gib": 48, "price": 0}]}
    with Broker(lab) as b:
        b.offers_there()
        with open(f"{b.state}/ssh_key.pub") as f:
            on(f"echo '{f.read().strip()}' >> /home/ubuntu/.ssh/authorized_keys")
        t.eq(b.cli("rent", "--gpu", "L40S", "--name", "lab", "--cluster", "standalone")[0], 0, "a machine of one's own is one, too")
        t.eq(on("systemctl is-active k0scontroller").strip(), "active", "k0s runs on it")
        t.eq(b.cli("release", "lab")[0], 0, "and released")
        t.eq(on("ls /etc/systemd/system/k0s*.service /var/lib/k0s /etc/k0s/k0s.yaml 2>/dev/null || true"), "", "nothing is left")
    node.destroy(m["name"])


def main():
    os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": VERSION})
    with tempfile.TemporaryDirectory() as home, Cloud("hyperstack", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.cloud = cloud
        key, _, _ = sandbox.new_key(home, "own")
        b.offers_there()
        for fn, args in ((tunnel, (b, home, str(key))), (again, (b,)), (direct, (b, home)), (wrong, (b,))):
            t.run(fn, *args)
    with Cloud("hyperstack", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.cloud = cloud
        b.offers_there()
        t.run(foreign, b)
    t.run(own_machine)
    t.done()


main()
