"""pool.py - machines that are booted once and rented out by a fake cloud many times, through pool_hook.py"""
import concurrent.futures
import fcntl
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes")]
import node  # noqa: E402

HOOK = os.path.join(HERE, "pool_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")  # $GPUB_POOL: what make returned


def make(path, machines, k0s_version):
    """Boots so many and writes where they are to path, which it returns."""
    want = {"user": "shadeform", "ssh_public_keys": [],
            "gpus": {"count": 1, "name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559}}
    if k0s_version:
        want["k0s_version"] = k0s_version
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        made = list(two.map(lambda _: node.create(dict(want)), range(machines)))
    with open(path, "w") as f:
        json.dump([{**m, "taken": None} for m in made], f)
    return path


def read(path):
    """The machines; "taken" is the id of the one that has it, or None."""
    with open(path) as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        return json.load(f)
