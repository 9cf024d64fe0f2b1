"""docs/schema for tests: check("lease", obj) raises AssertionError that names the member that is wrong.

Works with jsonschema 3.2 (Ubuntu 22.04) to 4.x, hence draft-07 and RefResolver.
"""
import json
import os
import warnings
from pathlib import Path

import jsonschema

SRC = Path(os.environ.get("GPUB_SRCDIR", Path(__file__).resolve().parents[2]))
DIR = SRC / "docs" / "schema"
STORE = {p.name: json.loads(p.read_text()) for p in sorted(DIR.glob("*.json"))}


def validator(kind):
    schema = STORE[kind + ".json"]
    with warnings.catch_warnings():  # newer versions call RefResolver deprecated, older have nothing else
        warnings.simplefilter("ignore", DeprecationWarning)
        resolver = jsonschema.RefResolver(kind + ".json", schema, store=STORE)
        return jsonschema.Draft7Validator(schema, resolver=resolver)


def problems(kind, obj):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return ["%s at /%s: %s" % (kind, "/".join(str(x) for x in e.absolute_path), e.message[:300])
                for e in validator(kind).iter_errors(obj)]


def check(kind, obj):
    """Returns obj, so that a test can write lease = check("lease", reply["lease"])."""
    bad = problems(kind, obj)
    assert not bad, "; ".join(bad)
    return obj
