"""gpubroker-cli and replies that never come: asked again with the same key, asked after with wait."""
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import jsonschema  # noqa: F401
    import zmq  # noqa: F401
except ImportError as missing:
    print("1..0 # SKIP %s" % missing)
    sys.exit(0)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import schemas
from fakebroker import Broker

CLI = str(Path(os.environ.get("GPUB_BUILDDIR", ".")) / "gpubroker-cli")
LEASE, OPERATION = (json.loads((schemas.DIR / "examples" / (x + ".json")).read_text()) for x in ("lease", "operation"))
ACCEPTED = ("accepted", {"operation": "op7", "lease": "l42"})
FINAL = ("final", {"operation": OPERATION, "lease": LEASE})
n = bad = 0


def ok(passed, name, *facts):
    global n, bad
    n += 1
    bad += not passed
    print("%sok %d - %s" % ("" if passed else "not ", n, name))
    if not passed:
        for fact in facts:
            print("#", fact)


with Broker() as b:
    b.on["rent"] = lambda _: None if len(b.bodies("rent")) < 2 else [ACCEPTED, FINAL]
    r = subprocess.run([CLI, "rent", "--gpu", "H100"], env=b.env, capture_output=True, text=True, timeout=60)
    sent = b.bodies("rent")
    ok(r.returncode == 0 and len(sent) == 2 and sent[0] == sent[1], "a lost rent is sent again with its key", r, sent)

    b.seen.clear()
    b.on["rent"] = lambda _: [ACCEPTED]
    busy = [("error", {"code": "busy", "message": "later", "retryable": True})]
    b.on["wait"] = lambda _: busy if len(b.bodies("wait")) < 2 else [FINAL]
    r = subprocess.run([CLI, "rent", "--gpu", "H100"], env=b.env, capture_output=True, text=True, timeout=90)
    ok(r.returncode == 0 and len(b.bodies("rent")) == 1 and b.bodies("wait")[0]["operation"] == "op7",
       "a lost final is asked after, and a busy broker asked again", r, b.seen)

    b.on["rent"] = lambda _: [ACCEPTED]
    b.on["wait"] = lambda _: None
    r = subprocess.run([CLI, "rent", "--gpu", "H100"], env=b.env, capture_output=True, text=True, timeout=90)
    ok(r.returncode == 6 and "gpubroker-cli watch l42" in r.stderr, "a broker that stays silent is given up", r)
print("1..%d" % n)
sys.exit(bad != 0)
