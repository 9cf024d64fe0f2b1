"""kit.py - runs gpubroker-conform and reads its TAP"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))  # before the library's module of that name
import venv  # noqa: E402

SRC = os.path.join(HERE, "..", "..")
BUILD = os.environ.get("GPUB_BUILDDIR", os.getcwd())
CONFORM = os.path.join(BUILD, "gpubroker-conform")
FAKES = os.path.join(SRC, "tests", "clouds")
KEY = "canary-api-key-4711"
KEY_ID = "AKIAFAKEFAKEFAKEFAKE"  # of tests/clouds/aws.py
PATIENCE = 900

# Every provider in the tree: its fake (None: machines that it owns, so it is judged live) and its part of the
# configuration.  One line more judges one provider more.
PROVIDERS = {
    "shadeform": ("shadeform.py --api-key " + KEY, 'endpoint = "%{url}"; api_key_env = "KEY"; rate = 1000.0;'),
    "hyperstack": ("hyperstack.py --api-key " + KEY, 'endpoint = "%{url}"; api_key_env = "KEY"; rate = 1000.0;'),
    "aws": ("aws.py --api-key " + KEY, 'endpoint = "%{url}"; access_key_id_env = "KEY_ID"; secret_access_key_env = "KEY"; '
                                       'imds = false; regions = [ "us-east-1" ]; rate = 1000.0;'),
    "nebius": ("nebius.py --api-key " + KEY,
               'endpoint = "%{url}"; ca_file = "%{ca_file}"; token_env = "KEY"; rate = 1000.0; '
               'projects = [ "project-e00north" ];'),
    "static": (None, 'hosts = ( { address = "10.0.0.5"; gpu = "L40S"; price = 0.4; }, '
                     '{ address = "10.0.0.6"; gpu = "L40S"; price = 0.5; }, { address = "10.0.0.7"; price = 0.6; } );'),
}


def why_not(name):
    """Why this provider cannot be judged here, or None."""
    if not os.path.exists(os.path.join(BUILD, ".libs", name + ".so")):
        return "the plugin was not built"
    return "no Python packages: run tests/venv.py make" if name == "nebius" and not venv.python() else None


class Verdict:
    def __init__(self, process):
        self.status, self.text, self.error = process.returncode, process.stdout, process.stderr
        self.passed = set(re.findall(r"^ok \d+ - ([a-z-]+):", self.text, re.M))
        self.failed = set(re.findall(r"^not ok \d+ - ([a-z-]+):", self.text, re.M))
        self.skipped = dict(re.findall(r"^ok \d+ - ([a-z-]+) # SKIP (.*)$", self.text, re.M))

    def __repr__(self):
        return "status %d, stderr %r\n%s" % (self.status, self.error, self.text)


def conform(*args, env=None, timeout=PATIENCE, **how):
    env = {**os.environ, "GPUB_LIBEXECDIR": BUILD, "KEY": KEY, "KEY_ID": KEY_ID, **(env or {})}
    return Verdict(subprocess.run([CONFORM, *args], env=env, capture_output=True, text=True, timeout=timeout, **how))


def judge(name, *args, plugin=None, env=None, options=None):
    """One provider of the tree, by its name in PROVIDERS; args are more of gpubroker-conform's."""
    fake, own = PROVIDERS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "conform.conf")
        with open(path, "w") as f:
            f.write('providers = ( { name = "%s"; %s } );\n' % (name, own if options is None else options))
        mode = ["--fake", "exec %s %s" % (sys.executable, os.path.join(FAKES, fake))] if fake else ["--live", "--budget", "50"]
        if "--replay" in args or "--live" in args:
            mode = []
        return conform("--config", path, *mode, *args, plugin or os.path.join(BUILD, ".libs", name + ".so"), env=env)


def cases(*names):
    return [x for name in names for x in ("--case", name)]


def all_cases():
    return re.findall(r"^([a-z-]+) ", conform("--list").text, re.M)


def clean(v, *must_pass):
    """Nothing failed, and these passed."""
    assert v.status == 0 and not v.failed, v
    assert set(must_pass) <= v.passed, (set(must_pass) - v.passed, v)
