#!/usr/bin/python3
"""boot_log.py - `logs X --boot`: the cloud's console before SSH, the machine's own log after, and a clear no for neither"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nodes"), HERE]
import node  # noqa: E402
from broker import Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("boot logs", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")
TOKEN = "abc123.0123456789abcdef"
# A boot that says a lot: a token, a line that never ends, bytes that are no text, and more than is wanted.
WRITES = ("{ i=0; while [ $i -lt 3000 ]; do echo noise $i; i=$((i + 1)); done; head -c 90000 /dev/zero | tr '\\0' x;"
          " echo; echo 'token %s'; printf '\\377\\033[31mred\\n'; echo the last word; } >/var/log/cloud-init-output.log" % TOKEN)


def rent(b, key):
    return b.accepted("rent", {"key": key, "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}]}})["lease"]


def refused(b, x):
    try:
        return b.ask("logs", {"lease": x, "boot": True})
    except Refused as e:
        return e.code, str(e)


def console(b, cloud):
    x = rent(b, "console")
    b.wait_state(x, "booting")
    until(lambda: cloud.machines() and cloud.machines()[0].get("state", "ACTIVE") and
          b.lease(x)["step"]["name"] == "ssh", 30, "the broker knocks at a machine that never answers")
    code, out, err = b.cli("logs", x, "--boot")
    t.eq((code, [line.split(None, 1) for line in out.splitlines()]),
         (0, [["console", f"booting {b.lease(x)['node']}"], ["console", "Ubuntu login:"]]), "before SSH it is the cloud's console")
    cloud.faults({"on": "log-request", "kind": "not-found"})
    got = refused(b, x)
    t.ok(got[0] == "failed" and "boot log" in got[1], f"a console that cannot be read says so: {got}")
    b.accepted("release", {"key": "rc", "lease": x})
    b.wait_state(x, "released", "failed-empty")
    t.eq(refused(b, x)[0], "conflict", "after the machine there is none")


def neither(b, cloud):
    x = rent(b, "neither")
    b.wait_state(x, "booting")
    got = refused(b, x)
    t.ok(got[0] == "conflict" and "no console" in got[1], f"neither SSH nor a console: {got}")
    b.accepted("release", {"key": "rn", "lease": x})
    b.wait_state(x, "released", "failed-empty")


def machine(b):
    x = rent(b, "machine")
    b.wait_state(x, "ready")
    got = b.ask("logs", {"lease": x, "boot": True})
    t.eq(got["source"], "machine", "after SSH it is the machine's own")
    lines = [(line["step"], line["text"]) for line in got["lines"]]
    t.ok(len(lines) <= 200 and max(len(text) for _, text in lines) <= 400, f"{len(lines)} lines, none longer than 400")
    t.eq(lines[-1 - len([s for s, _ in lines if s == "bootstrap"])], ("cloud-init", "the last word"), "to the last word of the boot")
    t.ok(any(s == "bootstrap" and "gpu" in text for s, text in lines), "and what the broker's own script wrote")
    t.ok(any(text.startswith("token ") for _, text in lines) and TOKEN not in json.dumps(got), "without the token in it")
    t.ok(all(ord(c) >= 32 and ord(c) != 127 for _, text in lines for c in text), "and without control characters")
    code, out, err = b.cli("logs", x, "--boot")
    t.ok(code == 0 and "cloud-init" in out and "the last word" in out, "the CLI shows it")
    b.accepted("release", {"key": "rm", "lease": x, "drain": False})
    b.wait_state(x, "released")


def main():
    with Cloud("hyperstack") as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(console, b, cloud)
    with Cloud("shadeform") as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(neither, b, cloud)
    os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"after": WRITES})
    with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider()) as b:
        b.offers_there()
        t.run(machine, b)
    t.done()


main()
