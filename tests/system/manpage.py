"""gpubroker-cli(1), gpubrokerd(8) and gpubroker.conf(5) name exactly what the programs know."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

SRC = Path(os.environ.get("GPUB_SRCDIR", "."))
CLI = str(Path(os.environ.get("GPUB_BUILDDIR", ".")) / "gpubroker-cli")
n = bad = 0


def same(known, told, name):
    global n, bad
    n += 1
    passed = known == told and known
    bad += not passed
    print("%sok %d - %s" % ("" if passed else "not ", n, name))
    for word in sorted(known - told):
        print("# not in the manual:", word)
    for word in sorted(told - known):
        print("# only in the manual:", word)


def items(pod, section):
    """The =item lines of a =head1 section."""
    text = re.split(r"^=head1 ", (SRC / "docs" / pod).read_text(), flags=re.M)
    part = [t for t in text if t.startswith(section + "\n")][0]
    return re.findall(r"^=item (.*)$", part, flags=re.M)


tables = json.loads(subprocess.run([CLI, "help", "--json"], capture_output=True, text=True, check=True).stdout)["commands"]
told = {w for line in items("gpubroker-cli.pod", "COMMANDS") for w in re.findall(r"B<([a-z]+)>", line.split("[")[0])}
same({c["name"] for c in tables}, told - {"bash", "zsh"}, "commands")
told = {w for line in items("gpubroker-cli.pod", "OPTIONS") for w in re.findall(r"B<(--?[a-z0-9-]+)>", line)}
same({o for c in tables for o in c["options"]}, told, "options")
codes = set(re.findall(r"EXIT_[A-Z_]+,", (SRC / "cli/cli.h").read_text()))
same({str(i) for i in range(len(codes))}, set(re.findall(r"B<(\d+)>", "\n".join(items("gpubroker-cli.pod", "EXIT STATUS")))),
     "exit codes")

known = set(re.findall(r'\{ "([a-z-]+)",\s*(?:required|no)_argument', (SRC / "core/main.c").read_text()))
told = {w for line in items("gpubrokerd.pod", "OPTIONS") for w in re.findall(r"B<--([a-z-]+)>", line)}
same(known, told, "options of the daemon")

# a field table's rows are { "name", FIELD_… } or, for what goes to the provider host, { "name", JSON_… }
code = "\n".join(p.read_text() for p in sorted((SRC / "core").glob("conf*.c")))
known = set(re.findall(r'\{ "([a-z0-9_]+)",\s*(?:FIELD|JSON)_', code))
pod = (SRC / "docs/gpubroker.conf.pod").read_text()
told = {w for w in re.findall(r"B<([a-z0-9_]+)>", pod) if not w.startswith("_")}
same(known, told, "settings")
print("1..%d" % n)
sys.exit(bad != 0)
