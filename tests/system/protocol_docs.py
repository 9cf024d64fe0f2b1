#!/usr/bin/python3
"""protocol_docs.py - docs/protocol.md and the daemon's table of verbs name the same verbs; so with error codes"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
SRC = os.environ.get("GPUB_SRCDIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
n = bad = 0


def same(got, want, name):
    global n, bad
    n += 1
    bad += got != want
    print(f"{'ok' if got == want else 'not ok'} {n} - {name}")
    if got != want:
        print(f"# only in the page: {sorted(got - want)}\n# only in the code: {sorted(want - got)}")


def read(path):
    with open(os.path.join(SRC, path)) as f:
        return f.read()


page, code = read("docs/protocol.md"), read("core/api.c")
reads, rest = page.split("## Mutations")
mutations = rest.split("## FILTER")[0]
rows = set(re.findall(r"^\| `([a-z.-]+)` \|", reads.split("## Reads")[1] + mutations, re.M))
admin = set(re.findall(r"`([a-z.-]+)`", re.search(r"^\*admin\*: (.*?)\.$", mutations, re.M | re.S).group(1)))
verbs = set(re.findall(r'^  \{ "([a-z.-]+)",', code.split("} verbs[] = {")[1].split("};")[0], re.M))
same(rows | admin, verbs, "the verbs of the page are those of the daemon")
codes = set(re.findall(r"`([a-z-]+)`", "".join(line.split("|")[1] for line in page.split("## Errors")[1].splitlines() if line.startswith("| `"))))
schema = set(json.loads(read("docs/schema/error.json"))["properties"]["code"]["enum"])
same(codes, schema, "the error codes of the page are those of the schema")
print(f"1..{n}")
sys.exit(bad != 0)
