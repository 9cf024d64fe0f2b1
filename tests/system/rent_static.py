#!/usr/bin/python3
"""rent_static.py - a machine one owns is rented, joined, released, cleaned, and rented again"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import BUILD, Broker, Refused, Tap  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("a machine of one's own", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])


def machine(k0s_version):
    want = {"user": "ubuntu", "k0s_version": k0s_version,
            "gpus": {"count": 2, "name": "NVIDIA L40S", "memory_mib": 46068}}
    r = subprocess.run(["/usr/bin/python3", node.__file__, "create"], input=json.dumps(want), text=True,
                       capture_output=True, check=True)
    return json.loads(r.stdout)


def on(m, script, stdin=None):
    r = subprocess.run(["/usr/bin/python3", node.__file__, "exec", m["name"], "sh", "-c", script], input=stdin, text=True,
                       capture_output=True, check=True)
    return r.stdout


def authorise(m, b):
    """What the manual tells the owner of a machine to do."""
    with open(f"{b.state}/ssh_key.pub", encoding="utf8") as f:
        on(m, "d=/home/ubuntu/.ssh; mkdir -p $d; cat >> $d/authorized_keys; chown -R ubuntu: $d; chmod 700 $d; "
              "chmod 600 $d/authorized_keys", f.read())


def life(b, c, m, round_):
    name = f"turn-{round_}"
    code, out, err = b.cli("rent", "--gpu", "L40S:2", "--cluster", "spoke-a", "--name", name)
    if not t.ok(code == 0, f"{name}: rent ends well"):
        print("# " + (out + err).replace("\n", "\n# "))
        return
    lease = b.lease(name)
    t.eq((lease["state"], lease["machine"]["address"]), ("ready", m["ip"]), f"{name}: it is the machine of the configuration")
    t.eq([n["metadata"]["name"] for n in c.hosted["api"].get("/api/v1/nodes")["items"]], [lease["node"]],
         f"{name}: it is the cluster's one node")
    try:
        b.accepted("rent", {"key": f"second-{round_}", "filter": {"gpu": [{"model": "L40S", "min": 1, "max": 0}]}})
        t.ok(False, f"{name}: nobody else gets it")
    except Refused as e:
        t.eq(e.code, "no-offer", f"{name}: nobody else gets it")
    code, out, err = b.cli("release", name)
    if not t.ok(code == 0, f"{name}: release ends well"):
        print("# " + (out + err).replace("\n", "\n# "))
    b.wait_state(name, "released")
    t.eq(c.hosted["api"].get("/api/v1/nodes")["items"], [], f"{name}: no node is left")
    t.eq(on(m, "systemctl is-active k0sworker || true").strip(), "inactive", f"{name}: no worker runs on it")
    b.offers_there()


def rebuilt(b, c, m):
    """The books are lost while it is a node: the machine is not free, and is cleaned before it is."""
    code, _, _ = b.cli("rent", "--gpu", "L40S:2", "--cluster", "spoke-a", "--name", "lost")
    x = b.lease("lost")["id"]
    b.kill()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{b.state}/gpubroker.db{end}"):
            os.unlink(f"{b.state}/gpubroker.db{end}")
    r = subprocess.run([f"{BUILD}/gpubrokerd", "--config", b.config, "--rebuild"], capture_output=True, text=True, env=b.environment())
    t.eq((code, r.returncode, "1 leases in the books" in r.stdout), (0, 0, True), "its lease is made again from its mark")
    b.start()
    t.eq((b.lease(x)["state"], b.lease(x)["machine"]["address"]), ("degraded", m["ip"]), "with the machine")
    code, out, err = b.cli("release", x)
    t.eq((code, b.lease(x)["state"]), (0, "released"), "and can be released")
    t.eq(on(m, "systemctl is-active k0sworker || true").strip(), "inactive", "the machine was cleaned first")
    b.offers_there()
    t.ok(True, "and is on offer again")


def main():
    mode = os.environ.get("GPUB_TEST_KUBE", "auto")
    with tempfile.TemporaryDirectory() as d, cluster.Clusters(mode, d, "10.77.0.1") as c:
        version = c.info["k0s_version"].replace("-k0s", "+k0s")
        m = machine(version)
        lab = {"name": "lab", "plugin": "static", "offers_every": "1s", "reconcile_every": "1s",
               "hosts": [{"address": m["ip"], "user": "ubuntu", "gpu": "L40S", "gpus": 2, "vram_gib": 48, "price": 0}]}
        spoke = {"name": "spoke-a", "type": "k0smotron", "kubeconfig_file": c.info["management"]["kubeconfig"],
                 "namespace": c.info["namespace"], "control_plane": c.info["control_plane"], "k0s_version": version,
                 "cni": "calico-vxlan", "gpu_stack": "device-plugin", "allow_private": True}
        with Broker(lab, clusters=[spoke]) as b:
            b.offers_there()
            authorise(m, b)
            for round_ in (1, 2):
                t.run(life, b, c, m, round_)
            t.run(rebuilt, b, c, m)
    t.done()


main()
