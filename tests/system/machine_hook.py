#!/usr/bin/python3
"""machine_hook.py - what the fake clouds call to boot a real machine with the GPUs that were ordered

  machine_hook.py create|destroy      JSON on stdin, as tests/clouds/fake.py sends it

$GPUB_HOOK_EXTRA is a JSON object that is merged into what node.py gets: k0s, sudo, gpus {faults}, ...; or @FILE, which
holds one, or a list that gives each create its own and repeats the last.  "after" in it is a shell command that is
run on the machine before the cloud shows it.
"""
import fcntl
import json
import os
import subprocess
import sys

NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes", "node.py")
NAMES = {"H100": "NVIDIA H100 80GB HBM3", "A100_80G": "NVIDIA A100-SXM4-80GB", "A100": "NVIDIA A100-SXM4-40GB",
         "RTX4090": "NVIDIA GeForce RTX 4090", "4090": "NVIDIA GeForce RTX 4090", "L40S": "NVIDIA L40S",
         "A6000": "NVIDIA RTX A6000", "B200": "NVIDIA B200"}



def extra():
    """What the test wants of this machine."""
    text = os.environ.get("GPUB_HOOK_EXTRA") or "{}"
    if not text.startswith("@"):
        return json.loads(text)
    with open(text[1:], "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        all = json.load(f)
        if isinstance(all, dict):
            return all
        first = all.pop(0)
        f.seek(0)
        f.truncate()
        json.dump(all or [first], f)
        return first


def run(*argv, text=None):
    return subprocess.run(["/usr/bin/python3", NODE, *argv], input=text, text=True, stdout=subprocess.PIPE)


want = json.load(sys.stdin)
if sys.argv[1] == "create":
    c = want.get("configuration") or {}
    model, count = c.get("gpu_type", ""), c.get("num_gpus", 0)
    gpus = {"count": count, "name": NAMES.get(model, "NVIDIA " + model),
            "memory_mib": int(c.get("vram_per_gpu_in_gb", 0) * 1024 * 0.99)}
    more = extra()
    after = more.pop("after", None)
    gpus.update(more.pop("gpus", {}))
    order = {"user": want.get("user") or "shadeform", "ssh_public_keys": want.get("ssh_public_keys", []), "gpus": gpus, **more}
else:
    order, after = want.get("node") or want, None
got = run(sys.argv[1], text=json.dumps(order))
if after and got.returncode == 0:
    run("exec", json.loads(got.stdout)["name"], "--", "sh", "-c", after, text="")
sys.stdout.write(got.stdout)
sys.exit(got.returncode)
