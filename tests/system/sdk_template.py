"""sdk_template.py - what an author gets: the SDK installed, the template copied out of the tree, built and judged there"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import BUILD, Verdict, clean
from provider_harness import tap


def run(*argv, cwd=None, env=None):
    """Without what an outer make has in the environment: an author has no such thing."""
    clean_env = {k: v for k, v in os.environ.items()
                 if not k.startswith(("MAKE", "MFLAGS", "GPUB_", "AM_", "CFLAGS", "LDFLAGS", "CPPFLAGS"))}
    p = subprocess.run(argv, cwd=cwd, env=dict(clean_env, **(env or {})), capture_output=True, text=True, timeout=600)
    return p


def ok(p):
    assert p.returncode == 0, (p.args, p.stdout[-3000:], p.stderr[-3000:])
    return p.stdout


class Installed:
    """`make install` of this build below a folder of its own."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="gpub-sdk-")
        ok(run("make", "-s", "install", "DESTDIR=" + self.root, cwd=BUILD))
        with open(os.path.join(BUILD, "Makefile")) as f:
            configured = next(line.split("=", 1)[1].strip() for line in f if line.startswith("prefix ="))
        self.prefix = self.root + configured
        self.pkg_config = "pkg-config --define-variable=prefix=" + self.prefix
        self.env = {"PKG_CONFIG_PATH": os.path.join(self.variable_folder(), "pkgconfig"),
                    "PATH": os.path.join(self.prefix, "bin") + ":" + os.environ["PATH"],
                    "GPUB_LIBEXECDIR": os.path.join(self.prefix, "libexec", "gpubroker")}

    def variable_folder(self):
        for folder, _, files in os.walk(self.root):
            if "gpubroker-sdk.pc" in files:
                return os.path.dirname(folder)
        raise AssertionError("gpubroker-sdk.pc is not installed")

    def variable(self, name):
        return ok(run(*self.pkg_config.split(), "--variable=" + name, "gpubroker-sdk", env=self.env)).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


def make(sdk, folder, *what):
    return run("make", "-s", *what, "PKG_CONFIG=" + sdk.pkg_config, "PYTHON=" + sys.executable, cwd=folder, env=sdk.env)


def test_template():
    """template: copied, built against the installed SDK, judged by the installed kit, installed"""
    with Installed() as sdk, tempfile.TemporaryDirectory() as folder:
        shutil.copytree(sdk.variable("templatedir"), folder, dirs_exist_ok=True)
        built = make(sdk, folder)
        ok(built)
        assert "warning" not in built.stderr, built.stderr
        judged = make(sdk, folder, "check")
        v = Verdict(judged)
        clean(v, "life", "paging", "create-lost", "leaks")
        assert set(v.skipped) == {"options-missing", "console"}, v
        ok(make(sdk, folder, "install"))
        host = os.path.join(sdk.env["GPUB_LIBEXECDIR"], "gpubroker-provider")
        described = json.loads(ok(run(host, "--describe", os.path.join(sdk.variable("providerdir"), "acme.so"))))
        assert described["name"] == "acme" and str(described["abi"]) == sdk.variable("abi"), described


def test_cxx():
    """a plugin in C++ builds against the installed header, too"""
    with Installed() as sdk, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.cc")
        with open(path, "w") as f:
            f.write("#include <gpubroker/provider.h>\n"
                    "const struct gpub_provider *gpub_provider_entry (uint32_t abi) { return abi ? nullptr : nullptr; }\n")
        flags = ok(run(*sdk.pkg_config.split(), "--cflags", "gpubroker-sdk", env=sdk.env)).split()
        ok(run("c++", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", *flags, path, "-o",
               os.path.join(folder, "p.so")))


if __name__ == "__main__":
    tap(globals())
