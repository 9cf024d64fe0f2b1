#!/usr/bin/python3
"""bad_machines.py - what a cloud may deliver instead of what was bought: a code, a hint, a price, and no second machine

Every machine here is whole (systemd, sshd) and broken in one way before the broker sees it, or after.
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
from broker import TIMES, Broker, Cloud, Tap, spoke, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("bad machines", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
FAST = TIMES + ",lag=1000"


class Want:
    """What the next machines are like."""

    def __init__(self, folder, **always):
        self.path, self.always = os.path.join(folder, "want.json"), always
        os.environ["GPUB_HOOK_EXTRA"] = "@" + self.path
        self({})

    def __call__(self, *each):
        with open(self.path, "w") as f:
            json.dump([{**self.always, **e} for e in each], f)


def on(machine, command):
    """As root on the machine, past SSH."""
    subprocess.run(["/usr/bin/python3", node.__file__, "exec", machine["node"]["ip"], "--", "sh", "-c", command], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def fake(name, script):
    return f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(script)} > /usr/local/bin/{name}; chmod 755 /usr/local/bin/{name}"


def rent(b, name, *more, gpu="H100:1"):
    code, out, err = b.cli("rent", "--gpu", gpu, "--name", name, "--json", *more)
    return code, json.loads(out)


def cause(lease):
    return (lease.get("cause") or {}).get("code")


def reasons(b, x):
    return [(a.get("reason") or {}).get("code") for a in b.lease(x)["attempts"]]


def other_than_bought(b, cloud, want):
    want({"gpus": {"name": "NVIDIA L4", "memory_mib": 23034}}, {})
    code, _ = rent(b, "swapped")
    t.eq((code, reasons(b, "swapped")), (0, ["gpu-model-mismatch", None]), "another GPU: refused, and the next offer serves")
    t.eq(len(cloud.machines()), 1, "the wrong one was given back")
    b.cli("release", "swapped")
    for name, gpu, change, reason in (("fewer", "RTX4090:8", {"count": 7, "pci": 7}, "gpu-count-mismatch"),
                                      ("absent", "L40S:1", {"count": 0, "pci": 0}, "gpu-absent"),
                                      ("slice", "H200:1", {"memory_mib": 35000}, "gpu-memory-mismatch")):
        want({"gpus": change})
        code, doc = rent(b, name, gpu=gpu)
        lease = next(x for x in b.ask("leases", {"all": True})["leases"] if x.get("name") == name)
        t.eq((code, cause(lease)), (4, "offers-exhausted"), f"{name}: exit 4, no offer is left")
        t.eq(reasons(b, lease["id"]), [reason], f"{name}: {reason}")
        t.ok(reason in json.dumps(b.ask("explain", {"lease": lease["id"]})), f"{name}: explain tells it")
        t.eq(b.cli("rent", "--gpu", gpu, "--dry-run", "--json")[0], 3, f"{name}: that offer is avoided now")
    t.eq(cloud.machines(), [], "no bad machine is left")


# name, what is broken before, the code, how it is mended
KEPT = [
    ("library", {"gpus": {"faults": ["library-mismatch"]}}, "driver-library-mismatch",
     "sed -i s/library-mismatch/fine/ /etc/test-gpus.json"),
    ("clock", {"after": fake("date", 'case "$*" in "+%s%3N"|"+%s%N"|"+%s") exec /bin/date -d "+3 hours" "$@";; esac; exec /bin/date "$@"')
               + "; " + fake("sleep", "exec /bin/sleep 0.01")},  # it waits a minute for the clock to heal
     "clock-skew", "rm /usr/local/bin/date /usr/local/bin/sleep"),
    ("disk", {"after": fake("df", 'echo "Filesystem 1024-blocks Used Available Capacity Mounted on"; echo "/dev/vda1 9000000 8900000 100000 99% /"')},
     "disk-small", "rm /usr/local/bin/df"),
    ("sudo", {"sudo": "password"}, "sudo-password-required",
     "sed -i 's/ALL=(ALL) ALL/ALL=(ALL) NOPASSWD: ALL/' /etc/sudoers.d/90-test"),
]


def kept(b, cloud, want, name, broken, code, mend, *more):
    want(broken)
    exit_code, doc = rent(b, name, *more, "--on-failure", "keep:1h")
    lease = b.lease(name)
    t.eq((exit_code, lease["state"], cause(lease)), (1, "failed-kept", code), f"{name}: exit 1, kept, {code}")
    _, out, _ = b.cli("show", name, "--json")
    shown = json.loads(out)
    failure = shown.get("lease", shown).get("failure") or {}
    t.eq(failure.get("code"), code, f"{name}: show --json has the failure")
    t.ok(failure.get("hint"), f"{name}: with a hint")
    t.ok(failure.get("keep_until_ms"), f"{name}: and until when it is kept")
    rate = b.ask("cost", {})["rate_udollar"]
    t.eq((failure.get("price_udollar"), rate), (2050000, 2050000), f"{name}: and its price, which runs on")
    machine = cloud.machines()[0]
    if name == "library":
        b.cli("retry", name, timeout=60)
        t.eq(b.lease(name)["state"], "failed-kept", f"{name}: a retry before it is mended fails again")
    on(machine, mend)
    exit_code, out, err = b.cli("retry", name, "--json")
    t.eq((exit_code, b.lease(name)["state"]), (0, "ready"), f"{name}: mended, the retry succeeds")
    t.eq([m["id"] for m in cloud.machines()], [machine["id"]], f"{name}: on the same machine, the only one")
    t.eq(b.lease(name).get("failure"), None, f"{name}: and the failure is forgotten")
    b.cli("release", name)
    t.eq(cloud.machines(), [], f"{name}: nothing is left")


def policies(b, cloud, want):
    want({"gpus": {"faults": ["library-mismatch"]}})
    code, _ = rent(b, "dropped", "--on-failure", "release")
    lease = max(b.ask("leases", {"all": True})["leases"], key=lambda x: x["created_ms"])
    t.eq((code, cause(lease)), (1, "driver-library-mismatch"), "on-failure release: exit 1")
    b.wait_state(lease["id"], "failed-empty", "released")
    t.eq(cloud.machines(), [], "and the machine is released")
    code, _ = rent(b, "briefly", "--on-failure", "keep:2s")
    t.eq(b.lease("briefly")["state"], "failed-kept", "keep:2s: kept at first")
    t.eq(len(cloud.machines()), 1, "with its machine")
    b.wait_state("briefly", "failed-empty", "released", seconds=15)
    t.eq(cloud.machines(), [], "and released when the time is over")


def host_key(b, cloud, want):
    want({"gpus": {"faults": ["library-mismatch"]}})
    rent(b, "replaced", "--on-failure", "keep:1h")
    machine = cloud.machines()[0]
    on(machine, "rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; systemctl restart ssh; "
       "sed -i s/library-mismatch/fine/ /etc/test-gpus.json")
    code, out, _ = b.cli("retry", "replaced", "--json")
    lease = b.lease("replaced")
    t.eq((code, lease["state"], cause(lease)), (1, "failed-kept", "hostkey-mismatch"), "another host key at the address: refused")
    t.ok((lease.get("failure") or {}).get("hint"), "with a hint")
    b.cli("release", "replaced")
    t.eq(cloud.machines(), [], "and still it can be released")


def no_ssh(cloud_hooks, want):
    """A boot deadline of its own: a machine that never answers is late."""
    with Cloud("shadeform", *cloud_hooks) as cloud, Broker(cloud.provider(), times=FAST + ",boot=10000") as b:
        b.offers_there()
        want({"after": "systemctl disable -q --now ssh ssh.socket; systemctl mask -q ssh"})
        code, doc = rent(b, "mute", gpu="L40S:1")
        lease = max(b.ask("leases", {"all": True})["leases"], key=lambda x: x["created_ms"])
        why = [a.get("reason") or {} for a in b.lease(lease["id"])["attempts"]]
        t.eq(code, 4, "port 22 closed: exit 4")
        t.eq({w.get("code") for w in why}, {"late-boot"}, "each attempt was late")
        t.ok(all("refused" in w.get("text", "") for w in why), f"and says what SSH said: {why[0]}")
        t.eq(cloud.machines(), [], "no silent machine is left")


def foreign(b, cloud, want):
    unit = r"printf '[Service]\nExecStart=/bin/sleep inf\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/kubelet.service; "
    kept(b, cloud, want, "foreign", {"after": unit + "systemctl enable -q --now kubelet"}, "foreign-kubernetes",
         "systemctl disable -q --now kubelet; rm /etc/systemd/system/kubelet.service; systemctl daemon-reload",
         "--cluster", "spoke-a")


def main():
    with tempfile.TemporaryDirectory() as d, cluster.Clusters("double", d, "10.77.0.1") as c:
        want = Want(d, k0s_version=c.info["k0s_version"].replace("-k0s", "+k0s"))
        with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider(), clusters=[spoke(c.info)], times=FAST) as b:
            b.offers_there()
            for row in KEPT:
                t.run(kept, b, cloud, want, *row)
            for fn in (foreign, policies, host_key, other_than_bought):
                t.run(fn, b, cloud, want)
        t.run(no_ssh, HOOKS, want)
    t.done()


main()
