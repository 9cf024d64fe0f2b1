#!/usr/bin/python3
"""Every failure code with a hint is in docs/operations.md with the same hint, and none is there that has none"""
import os
import re

src = os.environ.get("GPUB_SRCDIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
code = open(os.path.join(src, "core", "hints.c"), encoding="utf-8").read()
table = {m[1]: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', m[2]))
         for m in re.finditer(r'\{ "([a-z0-9-]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}', code)}
page = open(os.path.join(src, "docs", "operations.md"), encoding="utf-8").read().split("## Failure codes", 1)[1]
told = dict(re.findall(r"^\| ([a-z0-9-]+) \| (.*) \|$", page, re.M))
told.pop("code", None)

missing, invented = sorted(table.keys() - told.keys()), sorted(told.keys() - table.keys())
other = sorted(c for c in table.keys() & told.keys() if table[c] != told[c])
print("1..4")
print("%s 1 - hints were found: %d" % ("ok" if len(table) > 20 else "not ok", len(table)))
print("%s 2 - all are in docs/operations.md %s" % ("not ok" if missing else "ok", " ".join(missing)))
print("%s 3 - none is there that the broker does not have %s" % ("not ok" if invented else "ok", " ".join(invented)))
print("%s 4 - with the same words %s" % ("not ok" if other else "ok", " ".join(other)))
