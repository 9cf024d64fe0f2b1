"""abi.py - the plugin ABI: what an old plugin, a new plugin and a new host see of each other's structs

Old plugins are built from the frozen headers of tests/old.  The future is made of the present header, every struct of
which grows by one member: plugins built from that run on this host, and a host built from that runs this build's plugins.
The flags are this build's, so that in a sanitizer build all of it is checked.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import BUILD, FAKES, KEY, SRC, cases, clean, conform, judge
from provider_harness import tap

HEADER = os.path.join(SRC, "sdk", "gpubroker", "provider.h")
FROZEN = sorted(glob.glob(os.path.join(SRC, "tests", "old", "abi*", "gpubroker", "provider.h")))
STRUCT = re.compile(r"^struct (gpub_\w+) \{(.*?)^\};", re.M | re.S)
CASES = ["table", "probe", "wrong-key", "offers", "requote", "life", "create-limits", "not-after", "console", "rate-limited",
         "leaks"]
PLUGINS = {
    "shadeform": ["plugins/shadeform/*.c", "plugins/*.c"],
    "hyperstack": ["plugins/hyperstack/*.c", "plugins/*.c"],
    "static": ["plugins/static/*.c", "plugins/*.c"],
}
LIBS = ["jansson", "libcurl", "libcrypto"]


def read(path):
    with open(path) as f:
        return f.read()


def make_variable(name):
    return re.search(r"^%s = (.*)$" % name, read(os.path.join(BUILD, "Makefile")), re.M).group(1)


def libraries():
    return shlex.split(subprocess.run(["pkg-config", "--libs", *LIBS], capture_output=True, text=True, check=True).stdout)


def compile_with(header, sources, output, *flags):
    """header: the folder in which gpubroker/provider.h is."""
    files = [f for pattern in sources for f in sorted(glob.glob(os.path.join(SRC, pattern)))]
    argv = [*shlex.split(make_variable("CC")), *shlex.split(make_variable("CFLAGS")), "-Wno-error", "-w", "-std=gnu11", "-fPIC",
            "-fvisibility=hidden", "-DHAVE_CONFIG_H", "-D_GNU_SOURCE", '-DPROVIDERDIR="/nowhere"',
            *(["-fno-sanitize-recover=all"] if "-fsanitize" in make_variable("CFLAGS") else []),
            "-I" + header, "-I" + SRC, "-I" + BUILD, *flags, *files,
            os.path.join(BUILD, ".libs", "libbase.a"), *libraries(), "-lpthread", "-ldl", "-lm", "-o", output]
    p = subprocess.run(argv, capture_output=True, text=True)
    assert p.returncode == 0, p.stderr[-3000:]


def grown(folder):
    """The present header, every struct but gpub_kv, which is frozen for ever, with a member more."""
    def grow(m):
        return m.group(0) if m.group(1) == "gpub_kv" else m.group(0)[:-2] + "  uint64_t grown_;\n};"

    text, n = STRUCT.subn(grow, read(HEADER))
    assert n > 15, n
    os.makedirs(os.path.join(folder, "gpubroker"))
    with open(os.path.join(folder, "gpubroker", "provider.h"), "w") as f:
        f.write(text)
    return folder


def run_on_this_host(header, folder):
    for name, sources in PLUGINS.items():
        plugin = os.path.join(folder, name + ".so")
        compile_with(header, sources, plugin, "-shared")
        clean(judge(name, *cases(*CASES), plugin=plugin), "offers", "life")


# ---- the header as text

def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def members(text):
    """{struct: {member: its declaration}}"""
    found = {}
    for name, body in STRUCT.findall(without_comments(text)):
        found[name] = {}
        for declaration in filter(None, (" ".join(d.split()) for d in body.split(";"))):
            m = re.search(r"\(\*(\w+)\)", declaration) or re.search(r"(\w+)(?:\[\d+\])?$", declaration)
            found[name][m.group(1)] = declaration
    return found


def values(text):
    joined = without_comments(text).replace("\\\n", " ")
    return {name: " ".join(value.split()) for name, value in re.findall(r"^#\s*define (GPUB_\w+)[ (](.*)$", joined, re.M)}


def offsets(header, structs):
    """What the compiler makes of it: {"struct.member": (offset, size)}"""
    lines = ['  printf ("%s.%s %%zu %%zu\\n", offsetof (struct %s, %s), sizeof ((struct %s *) 0)->%s);' % (s, m, s, m, s, m)
             for s in structs for m in structs[s]]
    program = "#include <stdio.h>\n#include <gpubroker/provider.h>\nint main (void)\n{\n%s\n}\n" % "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-x", "c", "-", "-I", os.path.dirname(os.path.dirname(header)), "-o", folder + "/a"],
                       input=program, text=True, check=True)
        out = subprocess.run([folder + "/a"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: tuple(line.split()[1:]) for line in out.splitlines()}


def test_append_only():
    """every member of a frozen header is where it was and what it was, every value too"""
    now, now_values = members(read(HEADER)), values(read(HEADER))
    assert FROZEN, "no frozen header"
    for path in FROZEN:
        old = members(read(path))
        assert len(old) > 15 and old["gpub_provider"]["remove"].startswith("int32_t (*remove)"), old.keys()
        for name in old:
            for member, declaration in old[name].items():
                assert now[name].get(member) == declaration, (path, name, member, now[name].get(member))
        was, is_ = offsets(path, old), offsets(HEADER, old)
        assert was == is_, {k: (v, is_.get(k)) for k, v in was.items() if is_.get(k) != v}
        assert now["gpub_kv"] == old["gpub_kv"], "gpub_kv is frozen for ever"
        for name, value in values(read(path)).items():
            assert now_values.get(name) == value or name == "GPUB_ABI", (path, name, value, now_values.get(name))


def test_this_gate():
    """a member put in between, one that changed its type and a value that moved would be seen"""
    text = read(HEADER)
    inserted = re.sub(r"(?=  const char \*token; +/\* unique)", "  const char *extra;\n", text)
    retyped = text.replace("uint32_t retry_after_ms; /* 0 when", "uint64_t retry_after_ms; /* 0 when")
    moved = re.sub(r"GPUB_E_AUTH +2", "GPUB_E_AUTH 3", text)
    assert text not in (inserted, retyped, moved)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "gpubroker"))
        path = os.path.join(folder, "gpubroker", "provider.h")
        with open(path, "w") as f:
            f.write(inserted)
        old = members(text)
        assert offsets(path, old) != offsets(HEADER, old)
    assert members(retyped)["gpub_error"] != old["gpub_error"]
    assert values(text)["GPUB_E_AUTH"] == "2" and values(moved)["GPUB_E_AUTH"] == "3"


def test_languages():
    """the header is C99, C11 and C++, pedantically"""
    for language, standards in (("c", ("c99", "c11", "c17")), ("c++", ("c++11", "c++17"))):
        for std in standards:
            p = subprocess.run(["cc", "-x", language, "-std=" + std, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                "-I" + os.path.join(SRC, "sdk"), "-"], input="#include <gpubroker/provider.h>\n"
                               "int f (void);\nint f (void) { return GPUB_OK; }\n", text=True, capture_output=True)
            assert p.returncode == 0, (std, p.stderr)


def test_old_plugins():
    """the template, built from the frozen header of this ABI, passes on the present host"""
    abi = values(read(HEADER))["GPUB_ABI"].rstrip("u")
    with tempfile.TemporaryDirectory() as folder:
        plugin = os.path.join(folder, "acme.so")
        compile_with(os.path.join(SRC, "tests", "old", "abi" + abi), ["sdk/template/*.c"], plugin, "-shared")
        fake = "exec %s %s --api-key %s" % (sys.executable, os.path.join(SRC, "sdk", "template", "acme_cloud.py"), KEY)
        clean(conform("--config", os.path.join(SRC, "sdk", "template", "acme.conf"), "--fake", fake, *cases(*CASES), plugin,
                      env={"ACME_KEY": KEY, "GPUB_FAKE_DIR": FAKES}), "offers", "life", "not-after")


def test_grown_plugins():
    """plugins of tomorrow, every struct of which is a member longer, pass on this host"""
    with tempfile.TemporaryDirectory() as folder:
        run_on_this_host(grown(os.path.join(folder, "sdk")), folder)


def test_grown_host():
    """the plugins of this build pass on a host of tomorrow, every struct of which is a member longer"""
    with tempfile.TemporaryDirectory() as folder:
        compile_with(grown(os.path.join(folder, "sdk")), ["sdk/host/*.c"], os.path.join(folder, "gpubroker-provider"))
        for name in PLUGINS:
            clean(judge(name, *cases(*CASES), env={"GPUB_LIBEXECDIR": folder}), "offers", "life")


def test_other_abi():
    """a plugin of another ABI is refused, with both numbers"""
    v = conform(os.path.join(BUILD, ".libs", "old-abi.so"))
    assert v.status == 2 and re.search(r"ABI is \d+, this host's is \d+", v.error), v


if __name__ == "__main__":
    tap(globals())
