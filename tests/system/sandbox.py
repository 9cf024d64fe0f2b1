"""TAP lines, and a place of their own for tests that need sshd or whole machines: new namespaces, as root."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = os.path.join(HERE, "..", "nodes", "node.py")
count = bad = 0


def ok(passed, name, *facts):
    global count, bad
    count += 1
    bad += not passed
    print(f"{'' if passed else 'not '}ok {count} - {name}", flush=True)
    if not passed:
        for fact in facts:
            print("# " + str(fact)[:3000].replace("\n", "\n# "), flush=True)
    return passed


def same(got, want, name, *facts):
    return ok(got == want, name, f"got:  {got!r}", f"want: {want!r}", *facts)


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def done():
    print(f"1..{count}", flush=True)
    sys.exit(1 if bad else 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}", flush=True)
    sys.exit(0)


def enter():
    """Run this test again in namespaces of its own: only loopback there, /run empty, all ends with it.

    root's home is an empty folder for whoever logs in: what a developer's .bashrc does is no part of a test.
    """
    if os.environ.get("GPUB_SANDBOX"):
        subprocess.run("mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir /run/sshd /run/home && "
                       "sed 's#^root:.*#root:x:0:0:root:/run/home:/bin/bash#' /etc/passwd >/run/passwd && "
                       "mount --bind /run/passwd /etc/passwd && ip link set lo up", shell=True, check=True)
        return
    if os.geteuid() != 0:
        skip_all("not root")
    for tool in ("unshare", "sshd", "ssh-keygen", "ip"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip_all(tool + " is not installed")
    env = dict(os.environ, GPUB_SANDBOX="1", PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    if subprocess.run(argv[:7] + ["true"], stderr=subprocess.DEVNULL).returncode:
        skip_all("namespaces are not allowed here")
    sys.exit(subprocess.call(argv, env=env))


def enter_with_nodes():
    """The same with a bridge, for machines that create() makes."""
    if os.environ.get("GPUB_NODES"):
        return
    if os.environ.get("GPUB_TEST_NODES") != "1":
        skip_all("GPUB_TEST_NODES=1 is not set: whole machines take minutes")
    spec = importlib.util.spec_from_file_location("node", NODE)
    node = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(node)
    why = node.missing()
    if why:
        skip_all(why)
    sys.exit(subprocess.call([sys.executable, NODE, "run", "--", sys.executable, *sys.argv]))


def node(*argv, data=None):
    r = subprocess.run([sys.executable, NODE, *argv], input=json.dumps(data) if data is not None else "",
                       capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"node.py {argv[0]}: {r.stderr[-500:]}")
    return r.stdout


def until(test, seconds=10):
    """The first true value of test(), asked again and again; None when the time is up."""
    end = time.monotonic() + seconds
    while True:
        value = test()
        if value or time.monotonic() > end:
            return value or None
        time.sleep(0.02)


def new_key(folder, name, kind="ed25519"):
    """(path, private key bytes, public line)"""
    path = os.path.join(folder, name)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", path], check=True)
    return path, open(path, "rb").read(), open(path + ".pub").read().strip()


def scratch():
    return tempfile.mkdtemp(prefix="gpub-ssh-")
