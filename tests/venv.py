#!/usr/bin/python3
"""venv.py - the Python packages that the fakes of Nebius and AWS stand on, cached outside the tree

    tests/venv.py make     builds it, once per content of requirements.txt; prints its python
    tests/venv.py path     prints where it is or will be

A test begins with `venv.enter()`: it goes on inside the venv, or says why not and is skipped by name.
"""
import fcntl
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WANT = os.path.join(HERE, "requirements.txt")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpubroker-tests")


def path():
    with open(WANT, "rb") as f:
        return os.path.join(CACHE, "venv-" + hashlib.sha256(f.read()).hexdigest()[:12])


def python():
    """The venv's interpreter, or None when it is not there."""
    at = path()
    return f"{at}/bin/python3" if os.path.exists(f"{at}/complete") else None


def make():
    at = path()
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{CACHE}/venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if python():
            return at
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", at], check=True, cwd="/")
        subprocess.run([f"{at}/bin/pip", "install", "-q", "--disable-pip-version-check", "-r", WANT], check=True)
        with open(f"{at}/complete", "w"):
            pass
    return at


def enter(what):
    """Runs the calling script inside the venv; without one the test is skipped, named `what`."""
    at = path()
    if sys.prefix == at:
        return
    if not python():
        print(f"ok 1 - {what} # SKIP no Python packages: run tests/venv.py make\n1..1")
        sys.exit(0)
    script = os.path.abspath(sys.argv[0])
    os.execv(f"{at}/bin/python3", [f"{at}/bin/python3", script, *sys.argv[1:]])


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        print(f"{make()}/bin/python3")
    elif sys.argv[1:] == ["path"]:
        print(path())
    else:
        sys.exit(__doc__)
