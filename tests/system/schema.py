"""Every schema is a valid draft-07 schema, its example fits, and it refuses what it should."""
import copy
import json
import sys
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("1..0 # SKIP python3-jsonschema is not installed")
    sys.exit(0)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import schemas

n = bad = 0


def ok(passed, name):
    global n, bad
    n += 1
    bad += not passed
    print("%sok %d - %s" % ("" if passed else "not ", n, name))


def valid(schema):
    try:
        jsonschema.Draft7Validator.check_schema(schema)
        return True
    except jsonschema.SchemaError as e:
        print("#", e.message)
        return False


for name, schema in schemas.STORE.items():
    kind = name[:-len(".json")]
    ok(valid(schema) and schema["$id"] == name, "%s is a schema" % name)
    if kind == "common":
        continue
    example = json.loads((schemas.DIR / "examples" / name).read_text())
    for p in schemas.problems(kind, example):
        print("#", p)
    ok(not schemas.problems(kind, example), "example of %s fits" % kind)
    odd = dict(example, no_such_member=1)
    ok(schemas.problems(kind, odd), "%s refuses a member it does not know" % kind)
    for member in schema.get("required", []):
        less = {k: v for k, v in example.items() if k != member}
        ok(schemas.problems(kind, less), "%s needs %s" % (kind, member))

lease = json.loads((schemas.DIR / "examples" / "lease.json").read_text())
for path, value in (("price_udollar", 1.95), ("id", "L42"), ("state", "running"), ("expires_ms", "soon")):
    broken = copy.deepcopy(lease)
    broken[path] = value
    ok(schemas.problems("lease", broken), "lease refuses %s = %r" % (path, value))
broken = copy.deepcopy(lease)
broken["attempts"][0]["offer"]["gpu"]["count"] = "1"
ok(any("/attempts/0/offer/gpu/count" in p for p in schemas.problems("lease", broken)), "a fault deep inside is named")
print("1..%d" % n)
sys.exit(bad != 0)
