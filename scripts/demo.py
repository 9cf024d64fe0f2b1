#!/usr/bin/python3
"""demo.py - what scripts/demo shows, inside the namespaces that tests/nodes/node.py makes

Real: the daemon and its children, the CLI, SSH, systemd on the machines.  Stand-ins: the clouds (tests/clouds), the GPU
and k0s on the machines (tests/nodes), and the API server unless one was built (tests/kube).
"""
import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "tests" / name) for name in ("kube", "nodes", "system")] + [str(TOP / "tests")]
import cluster  # noqa: E402
import node  # noqa: E402
import venv  # noqa: E402
from broker import BUILD, KEY, TIMES, Broker, Cloud, spoke, until  # noqa: E402

HOOK = TOP / "tests/system/machine_hook.py"
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
GPU = {"count": 4, "name": "NVIDIA L40S", "memory_mib": 46068}


def say(text):
    print(f"\n== {text}", flush=True)


def on_machine(verb, *argv, stdin=""):
    r = subprocess.run(["/usr/bin/python3", node.__file__, verb, *argv], input=stdin, capture_output=True, text=True,
                       timeout=90)
    if r.returncode:
        sys.exit(f"demo: node.py {verb}: {r.stderr.strip()}")
    return r.stdout


def host_of_ours(version):
    """A machine that is there already, as it would stand in the cellar."""
    return json.loads(on_machine("create", stdin=json.dumps(
        {"name": "cellar-1", "user": "ubuntu", "gpus": GPU, "k0s_version": version})))


def lab(host):
    return {"name": "lab", "plugin": "static", "offers_every": "1s", "reconcile_every": "1s", "hosts": [
        {"address": host["ip"], "name": host["name"], "user": "ubuntu", "gpu": "L40S", "gpus": 4, "vram_gib": 48,
         "price": 0.40, "zone": "on-prem-dc1", "disk_gib": 1000}]}


def account(cloud):
    """That of AWS has a pair of keys, and its regions are asked one by one."""
    if cloud.name != "aws":
        return cloud.provider()
    return cloud.provider(regions=["us-east-1"], imds=False,
                          secrets={"access_key_id": "AKIAFAKEFAKEFAKEFAKE", "secret_access_key": KEY})


def clouds(stack):
    """The stand-in for Nebius needs the cloud's own Python package, which scripts/test brings."""
    names = ["shadeform", "hyperstack", "aws"] + ["nebius"] * bool(venv.python())
    return {n: stack.enter_context(Cloud(n, *HOOKS)) for n in names}


def authorize(host, b):
    key = pathlib.Path(b.state, "ssh_key.pub").read_text()
    print(f"$ cat {b.state}/ssh_key.pub >> ~ubuntu/.ssh/authorized_keys    # on {host['name']}")
    on_machine("exec", host["name"], "sh", "-c",
               f"printf '%s' {shlex.quote(key)} >> /home/ubuntu/.ssh/authorized_keys")


class Shell:
    """Commands as one would type them, with their real output."""

    def __init__(self, b):
        self.env = {**os.environ, "GPUBROKER_ENDPOINT": b.endpoint, "PATH": f"{BUILD}:{os.environ['PATH']}"}

    def __call__(self, line, want=0):
        print(f"\n$ {line}", flush=True)
        r = subprocess.run(shlex.split(line), env=self.env, timeout=150, stdin=subprocess.DEVNULL)
        if r.returncode != want:
            raise RuntimeError(f"'{line}' ended with {r.returncode}")


def show_nodes(c):
    print(f"\nGET {c.info['hosted']['url']}/api/v1/nodes")
    found = c.hosted["api"].get("/api/v1/nodes")["items"]
    for n in found:
        ready = any(x["type"] == "Ready" and x["status"] == "True" for x in n["status"]["conditions"])
        labels = n["metadata"]["labels"]
        print(f"  {n['metadata']['name']}  {'Ready' if ready else 'NotReady'}  "
              f"{n['status']['nodeInfo']['kubeletVersion']}  nvidia.com/gpu: {n['status']['allocatable']['nvidia.com/gpu']}  "
              f"{labels.get('nvidia.com/gpu.product', '')}")
    print(f"  {len(found)} node{'s' * (len(found) != 1)}", flush=True)
    return found


def show_machines(there):
    left = [(name, m) for name, cloud in there.items() for m in cloud.machines()]
    print("\nWhat the clouds themselves say is rented and billed:")
    for name, m in left:
        print(f"  {name}  {m['name']}  {m['status']}  ${m['price_udollar'] / 1e6:.2f}/h")
    print(f"  {len(left)} machine{'s' * (len(left) != 1)}", flush=True)
    return left


def tell(b, there, c):
    sh = Shell(b)
    say("what can be rented, all prices included")
    sh("gpubroker-cli providers")
    sh("gpubroker-cli offers --gpu H100 --limit 5")
    sh("gpubroker-cli offers --gpu L40S:4 --limit 3")
    say("the cheapest machine with one H100, as a node of cluster spoke-a; the cheapest cloud says no, so the next one is asked")
    there["hyperstack"].faults({"on": "create", "kind": "out-of-stock", "times": -1})
    sh("gpubroker-cli rent --gpu H100 --max-price 3.50 --cluster spoke-a --ttl 2h --name trainer")
    if not show_nodes(c) or not show_machines(there):
        raise RuntimeError("the node or the machine is not there")
    sh("gpubroker-cli explain trainer")
    say("the same on a host of our own, that no cloud has to be asked for")
    sh("gpubroker-cli rent --gpu L40S:4 --provider lab --cluster spoke-a --ttl 2h --name cellar --quiet")
    show_nodes(c)
    sh("gpubroker-cli leases")
    sh("gpubroker-cli cost --by provider")
    say("and back")
    sh("gpubroker-cli release trainer cellar")
    if show_nodes(c) or show_machines(there):
        raise RuntimeError("something is left")
    sh("gpubroker-cli leases --all")


def main():
    mode = os.environ.get("GPUB_TEST_KUBE", "auto")
    with contextlib.ExitStack() as stack, cluster.Clusters(mode, os.environ["TMPDIR"], "10.77.0.1") as c:
        version = c.info["k0s_version"].replace("-k0s", "+k0s")
        os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": version})
        there = clouds(stack)
        say(f"a broker with {len(there) + 1} providers and a cluster")
        print(f"clouds:     stand-ins for {', '.join(there)}; each machine rented is a real Debian (systemd-nspawn)")
        print("lab:        one more such machine, with the plugin for hosts one owns already")
        print("API server: " + ("kube-apiserver, built from its sources earlier" if c.info["mode"] == "real" else
                                "the double in tests/kube (tests/kube/build.sh makes a real one, given Go)"))
        print("on nodes:   sshd and systemd are real; the GPUs, kubelet and k0s are stand-ins in tests/nodes", flush=True)
        host = host_of_ours(version)
        times = TIMES.replace("call=5000", "call=30000")  # cleaning a host that we keep takes more than a test's five
        with Broker(*map(account, there.values()), lab(host), clusters=[spoke(c.info)], times=times) as b:
            print(f"\n$ gpubrokerd --config {b.config} &")
            authorize(host, b)
            until(lambda: all(p["offers"]["complete"] for p in b.ask("providers")["providers"]), 30, "offers of all")
            tell(b, there, c)
    say("done: two machines were rented, joined, proven, released; nothing is left")


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as e:
    sys.exit(f"demo: {e}")
