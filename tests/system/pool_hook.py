#!/usr/bin/python3
"""pool_hook.py - create and destroy of a fake cloud, on machines that are booted already

  pool_hook.py create|destroy     JSON on stdin, as tests/clouds/fake.py sends it; $GPUB_POOL is a file with one JSON
                                  object a machine: {"name", "ip", "port", "user", "taken": id or null}

A sweep needs hundreds of machines; booting each would take hours.
"""
import fcntl
import json
import os
import subprocess
import sys

NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nodes", "node.py")
want = json.load(sys.stdin)


def on(name, command, text=""):
    subprocess.run(["/usr/bin/python3", NODE, "exec", name, "sh", "-c", command], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)


with open(os.environ["GPUB_POOL"], "r+") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    pool = json.load(f)
    if sys.argv[1] == "create":
        m = next((m for m in pool if not m["taken"]), None)
        if not m:
            sys.exit("the pool is empty")
        m["taken"] = want["id"]
    else:
        m = next((m for m in pool if m["taken"] == want["id"]), None)
        if not m:
            sys.exit(0)
        m["taken"] = None
    f.seek(0)
    f.truncate()
    json.dump(pool, f)
    f.flush()
    home = f"/home/{m['user']}"
    if sys.argv[1] == "create":
        on(m["name"], f"cat > {home}/.ssh/authorized_keys", "\n".join(want["ssh_public_keys"]) + "\n")
        print(json.dumps({k: m[k] for k in ("ip", "port", "user")}))
    else:
        # What a provider's re-imaging does: nothing of the last tenant is left.
        on(m["name"], f": > {home}/.ssh/authorized_keys; systemctl stop k0sworker 2>/dev/null; k0s reset >/dev/null 2>&1;"
                      " rm -rf /etc/k0s /var/lib/k0s /var/lib/gpubroker-node /run/gpubroker")
