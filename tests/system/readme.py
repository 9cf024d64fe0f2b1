#!/usr/bin/python3
"""readme.py - the program in README, and the example that it points to, as a reader would run them: to `final`"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), HERE]
import node  # noqa: E402
from broker import SRC, Broker, Cloud, Tap  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("the program in README", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")


def program():
    """The only Python in README; where the broker listens is the one thing that is not so here."""
    with open(f"{SRC}/README.md", encoding="utf8") as f:
        blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
    t.eq(len(blocks), 1, "README has one program")
    t.ok(len(blocks[0].splitlines()) <= 14, "which is short")
    return blocks[0]


def runs(b, cloud, argv, name, stdin=None):
    r = subprocess.run(["/usr/bin/python3", *argv], input=stdin, capture_output=True, text=True, timeout=120, env=b.environment())
    lines = r.stdout.splitlines()
    t.eq(r.returncode, 0, f"{name} ends well")
    if not lines:
        print("# " + r.stderr.replace("\n", "\n# "))
        return
    kinds = [line.split(" ", 1)[0] for line in lines]
    t.ok(kinds[0] == "accepted" and kinds[-1] == "final" and set(kinds[1:-1]) <= {"progress"}, f"{name}: accepted, progress, final")
    lease = json.loads(lines[-1].split(" ", 1)[1])["lease"]
    t.eq((lease["state"], len(cloud.machines())), ("ready", 1), f"{name}: and there is a machine")
    t.ok(lease["expires_ms"] - lease["created_ms"] > 3600000, f"{name}: for two hours")
    b.accepted("release", {"key": f"r-{lease['id']}", "lease": lease["id"]})
    b.wait_state(lease["id"], "released")


def main():
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        text = program()
        t.ok("ipc:///run/gpubroker/bus" in text, "it names where the broker listens")
        t.run(runs, b, cloud, ["-"], "README", text.replace("ipc:///run/gpubroker/bus", b.endpoint))
        t.run(runs, b, cloud, [f"{SRC}/docs/examples/rent.py"], "docs/examples/rent.py")
    t.done()


main()
