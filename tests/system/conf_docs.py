#!/usr/bin/python3
"""Every setting that gpubrokerd reads is in gpubroker.conf(5) and in the example, and every one told of is read."""
import glob
import os
import re

src = os.environ.get("GPUB_SRCDIR", ".")
read = set()
for path in glob.glob(os.path.join(src, "core", "conf*.c")):
    text = open(path, encoding="utf-8").read()
    read |= set(re.findall(r'\{\s*"([a-z0-9_]+)",\s*(?:FIELD|JSON|conf_read)_\w+', text))
pod = open(os.path.join(src, "docs", "gpubroker.conf.pod"), encoding="utf-8").read()
told = set(re.findall(r"B<([a-z0-9_]+)>", pod)) | set(re.findall(r"^=head2 ([a-z]+)$", pod, re.M))

missing = sorted(read - told)
invented = sorted(name for name in told - read if re.match("[a-z]+_", name))
print("1..4")
print("%s 1 - settings were found: %d" % ("ok" if len(read) > 60 else "not ok", len(read)))
print("%s 2 - all of them are documented %s" % ("not ok" if missing else "ok", " ".join(missing)))
print("%s 3 - none is documented that is not read %s" % ("not ok" if invented else "ok", " ".join(invented)))
example = open(os.path.join(src, "docs", "examples", "gpubroker.conf"), encoding="utf-8").read()
either = re.compile(r"_(env|credential)$|^user$|^replay$|^record$")
absent = sorted(name for name in read if not re.search(r"\b%s\b" % name, example) and not either.search(name))
print("%s 4 - the example shows them %s" % ("not ok" if absent else "ok", " ".join(absent)))
