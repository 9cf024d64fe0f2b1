#!/usr/bin/python3
"""machine_hook.py - what the fake clouds call to boot a real machine with the GPUs that were ordered

  machine_hook.py create|destroy      JSON on stdin, as tests/clouds/fake.py sends it

$GPUB_HOOK_EXTRA is a JSON object that is merged into what node.py gets: faults, k0s, sudo, ...
"""
import json
import os
import subprocess
import sys

NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes", "node.py")
NAMES = {"H100": "NVIDIA H100 80GB HBM3", "A100_80G": "NVIDIA A100-SXM4-80GB", "A100": "NVIDIA A100-SXM4-40GB",
         "RTX4090": "NVIDIA GeForce RTX 4090", "4090": "NVIDIA GeForce RTX 4090", "L40S": "NVIDIA L40S",
         "A6000": "NVIDIA RTX A6000", "B200": "NVIDIA B200"}

want = json.load(sys.stdin)
if sys.argv[1] == "create":
    c = want.get("configuration") or {}
    model, count = c.get("gpu_type", ""), c.get("num_gpus", 0)
    gpus = {"count": count, "name": NAMES.get(model, "NVIDIA " + model),
            "memory_mib": int(c.get("vram_per_gpu_in_gb", 0) * 1024 * 0.99)}
    extra = json.loads(os.environ.get("GPUB_HOOK_EXTRA") or "{}")
    gpus.update(extra.pop("gpus", {}))
    order = {"user": "shadeform", "ssh_public_keys": want.get("ssh_public_keys", []), "gpus": gpus, **extra}
else:
    order = want.get("node") or want
sys.exit(subprocess.run(["/usr/bin/python3", NODE, sys.argv[1]], input=json.dumps(order), text=True).returncode)
