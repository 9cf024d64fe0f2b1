#!/usr/bin/python3
"""Every line of docs/what-happens.md names tests that exist and are run"""
import os
import re

src = os.environ.get("GPUB_SRCDIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
run = ""
for folder, _, files in os.walk(src):
    if "local.mk" in files:
        with open(os.path.join(folder, "local.mk"), encoding="utf-8") as f:
            run += f.read()
with open(os.path.join(src, "docs", "what-happens.md"), encoding="utf-8") as f:
    rows = [line for line in f if line.startswith("| ")][1:]


def exists(name):
    path = "tests/unit/" + name if name.endswith(".c") else "tests/system/" + name
    return os.path.exists(os.path.join(src, path)) and path in run


wrong = []
for row in rows:
    names = re.findall(r"`([a-z_]+\.(?:py|c))`", row.rstrip("|\n ").rsplit("|", 1)[1])
    wrong += [n for n in names if not exists(n)] or ([] if names else [row[2:50]])
print("1..2")
print("%s 1 - the page has its lines (%d)" % ("ok" if len(rows) > 35 else "not ok", len(rows)))
print("%s 2 - each line's tests exist and are run %s" % ("not ok" if wrong else "ok", wrong or ""))
