#!/usr/bin/python3
"""Real machines for tests: Debian under systemd-nspawn, with systemd and OpenSSH, inside a network namespace.

  node.py run -- COMMAND...   COMMAND in new network, mount and pid namespaces with a bridge, 10.77.0.1/24;
                              every machine made below it ends with it, also when it is killed
  node.py create              reads a JSON object on stdin, boots a machine, prints {"name","ip","port","user"}
  node.py destroy [NAME|IP]   or a JSON object with "name" or "ip" on stdin; an absent machine is no error
  node.py list                one JSON object a line
  node.py exec NAME CMD...    as root on the machine, past SSH: what a test looks at from behind
  node.py base                builds the cached image (debootstrap, once) and prints where it is
  node.py check               says what this host lacks; 0 when nothing

create and destroy serve as --on-create and --on-delete of the fake clouds.  Members of create's object, all
optional: name, user (root), ssh_public_keys, sudo (nopasswd|password|none), k0s (preinstalled|absent),
k0s_version (else GPUB_K0S_VERSION), gpus {count, name, memory_mib, driver, faults}, user_data (base64; run at boot when it starts with #!).
"""
import base64
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpubroker-tests")
SUITE = "bookworm"
PACKAGES = ("systemd,systemd-sysv,dbus,openssh-server,python3-minimal,python3,sudo,iproute2,procps,kmod,"
            "ca-certificates,curl,openssl")
NET = "10.77.0."
TOOLS = ("systemd-nspawn", "debootstrap", "unshare", "ip", "sshd", "ssh-keygen")


def missing():
    """Why no machine can be made here; None when one can."""
    if os.geteuid() != 0:
        return "not root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for tool in TOOLS:
        if not shutil.which(tool, path=path):
            return f"{tool} is not installed"
    return None


def sh(*argv, **kw):
    return subprocess.run(argv, check=True, **kw)


def lock(path):
    f = open(path, "w")
    fcntl.flock(f, fcntl.LOCK_EX)
    return f


def base():
    """The image, built once; another process that needs it at the same time waits."""
    os.makedirs(CACHE, exist_ok=True)
    image = os.path.join(CACHE, f"{SUITE}-1")
    with lock(os.path.join(CACHE, "lock")):
        if os.path.isdir(image):
            return image
        new = image + ".new"
        shutil.rmtree(new, ignore_errors=True)
        with open(os.path.join(CACHE, "debootstrap.log"), "w") as log:
            sh("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, new, stdout=log, stderr=log,
               stdin=subprocess.DEVNULL)
            sh("chroot", new, "systemctl", "enable", "systemd-networkd", "ssh", stdout=log, stderr=log)
            sh("chroot", new, "systemctl", "disable", "systemd-networkd-wait-online", stdout=log, stderr=log)
        for key in ("rsa", "ecdsa", "ed25519"):
            for end in ("", ".pub"):
                os.unlink(f"{new}/etc/ssh/ssh_host_{key}_key{end}")
        os.rename(new, image)
    return image


def state():
    where = os.environ.get("GPUB_NODES")
    if not where:
        sys.exit("node.py: run me below 'node.py run -- COMMAND'")
    return where


def run(command):
    """The outer half starts the inner one in its namespaces and cleans up after whatever became of it."""
    base()
    where = tempfile.mkdtemp(prefix="gpubroker-nodes-")
    env = dict(os.environ, GPUB_NODES=where, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
            os.path.abspath(__file__), "_inside", *command]
    try:
        child = subprocess.Popen(argv, env=env)
        for s in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, lambda *_: child.kill())
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.kill()
            return 130
    finally:
        clean_cgroups(where)
        shutil.rmtree(where, ignore_errors=True)


def cgroup_of(where, name=""):
    return f"gpub{os.path.basename(where)[16:]}{name and '-' + name}"


def clean_cgroups(where):
    """The mount that the inner half used is gone with it; make one more to remove the empty groups."""
    script = ('mount -t cgroup2 none "$1" && cd "$1" && for g in "$2"*; do '
              'find "$g" -depth -type d -exec rmdir {} + ; done')
    subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", where, cgroup_of(where)],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def inside(command):
    """Namespaces are ours here: a bridge, and cgroup2 alone where the host may have both versions mounted.

    A bridge without an address of its own takes a port's, and another one when that machine ends: what the others
    send is lost until they ask again.
    """
    for argv in (["mount", "--make-rprivate", "/"], ["ip", "link", "set", "lo", "up"],
                 ["ip", "link", "add", "gpub0", "address", "02:00:0a:4d:00:01", "type", "bridge"],
                 ["ip", "addr", "add", NET + "1/24", "dev", "gpub0"], ["ip", "link", "set", "gpub0", "up"],
                 ["umount", "-lR", "/sys/fs/cgroup"], ["mount", "-t", "sysfs", "sysfs", "/sys"],
                 ["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"]):
        sh(*argv)
    try:
        return subprocess.call(command)
    except OSError as e:
        print(f"node.py: {command[0]}: {e.strerror}", file=sys.stderr)
        return 127


# ------------------------------------------------------------------------------------------------ machines

def put(root, path, text, mode=0o644):
    where = root + path
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "w") as f:
        f.write(text)
    os.chmod(where, mode)


def take_number(where):
    with lock(os.path.join(where, "lock")):
        path = os.path.join(where, "next")
        n = int(open(path).read()) if os.path.exists(path) else 11
        with open(path, "w") as f:
            f.write(str(n + 1))
    if n > 250:
        sys.exit("node.py: no address left")
    return n


def add_user(root, want):
    user, keys = want.get("user") or "root", want.get("ssh_public_keys") or []
    home = "/root" if user == "root" else "/home/" + user
    if user != "root":
        sh("chroot", root, "useradd", "-m", "-s", "/bin/bash", user)
        how = want.get("sudo", "nopasswd")
        if how != "none":
            tag = "NOPASSWD: " if how == "nopasswd" else ""
            put(root, "/etc/sudoers.d/90-test", f"{user} ALL=(ALL) {tag}ALL\n", 0o440)
    put(root, home + "/.ssh/authorized_keys", "".join(k.strip() + "\n" for k in keys), 0o600)
    os.chmod(root + home + "/.ssh", 0o700)
    if user != "root":
        sh("chroot", root, "chown", "-R", f"{user}:{user}", home)
        put(root, "/root/.ssh/authorized_keys", "", 0o600)
    return user


def add_gpus(root, gpus):
    """What the machine shows: PCI devices (bound over its /sys at boot), nvidia-smi, the container runtime."""
    pci = root + "/var/lib/test-pci"
    put(root, "/etc/systemd/system/sys-bus-pci-devices.mount",
        "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n"
        "[Mount]\nWhat=/var/lib/test-pci\nWhere=/sys/bus/pci/devices\nType=none\nOptions=bind\n"
        "[Install]\nWantedBy=sysinit.target\n")
    os.makedirs(root + "/etc/systemd/system/sysinit.target.wants", exist_ok=True)
    os.symlink("/etc/systemd/system/sys-bus-pci-devices.mount",
               root + "/etc/systemd/system/sysinit.target.wants/sys-bus-pci-devices.mount")
    put(pci, "/0000:00:00.0/vendor", "0x8086\n")
    put(pci, "/0000:00:00.0/class", "0x060000\n")
    for i in range(int(gpus.get("pci", gpus.get("count", 0)))):
        put(pci, f"/0000:{i + 1:02x}:00.0/vendor", "0x10de\n")
        put(pci, f"/0000:{i + 1:02x}:00.0/class", "0x030200\n")
    if gpus.get("count", 0) and "no-driver" not in gpus.get("faults", []):
        shutil.copy(os.path.join(HERE, "nvidia-smi"), root + "/usr/bin/nvidia-smi")
        os.chmod(root + "/usr/bin/nvidia-smi", 0o755)
    if gpus.get("count", 0) and "no-toolkit" not in gpus.get("faults", []):
        put(root, "/usr/bin/nvidia-container-runtime", "#!/bin/sh\nexit 0\n", 0o755)
    put(root, "/etc/test-gpus.json", json.dumps(gpus))


def add_k0s(root, want):
    """The stand-in says the version it is told to; a real one that GPUB_K0S_BINARY names takes its place."""
    if want.get("k0s", "preinstalled") != "preinstalled":
        return
    real = os.environ.get("GPUB_K0S_BINARY")
    with open(real or os.path.join(HERE, "k0s"), "rb") as f:
        binary = f.read()
    version = want.get("k0s_version") or os.environ.get("GPUB_K0S_VERSION")
    if version and not real:
        binary = re.sub(rb'(?m)^VERSION = .*$', b'VERSION = "%s"' % version.replace("-k0s.", "+k0s.").encode(), binary)
    os.makedirs(root + "/usr/local/bin", exist_ok=True)
    with open(root + "/usr/local/bin/k0s", "wb") as f:
        f.write(binary)
    os.chmod(root + "/usr/local/bin/k0s", 0o755)


def add_user_data(root, want):
    data = base64.b64decode(want.get("user_data") or "")
    if not data.startswith(b"#!"):
        return
    put(root, "/var/lib/boot-script", data.decode("utf-8", "replace"), 0o700)
    put(root, "/etc/systemd/system/boot-script.service",
        "[Unit]\nAfter=network.target\n[Service]\nType=oneshot\nExecStart=/var/lib/boot-script\n"
        "StandardOutput=append:/var/log/cloud-init-output.log\n[Install]\nWantedBy=multi-user.target\n")
    sh("chroot", root, "systemctl", "-q", "enable", "boot-script")


def furnish(root, name, ip, want):
    put(root, "/etc/systemd/network/10-host0.network",
        f"[Match]\nName=host0\n[Network]\nAddress={ip}/24\nGateway={NET}1\nLinkLocalAddressing=no\n")
    put(root, "/etc/hostname", name + "\n")
    put(root, "/etc/hosts", f"127.0.0.1 localhost\n{ip} {name}\n" + want.get("hosts", ""))
    put(root, "/etc/machine-id", "")
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", root + "/etc/ssh/ssh_host_ed25519_key")
    add_k0s(root, want)
    add_user_data(root, want)
    add_gpus(root, want.get("gpus") or {})
    return add_user(root, want)


def boot(where, name):
    """nspawn takes the cgroup it is started in for the machine's own, so each machine gets one."""
    group = "/sys/fs/cgroup/" + cgroup_of(state(), name)
    os.makedirs(group, exist_ok=True)
    argv = ["systemd-nspawn", "-q", "--register=no", "--keep-unit", "-b", "-D", where + "/root",
            "--network-bridge=gpub0", "--machine=" + name, "--resolv-conf=off", "--timezone=off",
            "--console=pipe", "--link-journal=no"]

    def enter():
        os.setsid()
        with open(group + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))

    with open(where + "/console", "w") as console:
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, preexec_fn=enter,
                             env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))
    return p


def wait_for_ssh(p, ip, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if p.poll() is not None:
            return False
        try:
            with socket.create_connection((ip, 22), timeout=1) as s:
                s.settimeout(2)
                if s.recv(4) == b"SSH-":
                    return True
        except OSError:
            time.sleep(0.05)
    return False


def create(want):
    n = take_number(state())
    name = re.sub(r"[^a-z0-9-]", "-", (want.get("name") or f"node{n}").lower())[:60]
    ip, where = NET + str(n), os.path.join(state(), name)
    for d in ("upper", "work", "root"):
        os.makedirs(f"{where}/{d}")
    sh("mount", "-t", "overlay", "overlay", "-o",
       f"lowerdir={base()},upperdir={where}/upper,workdir={where}/work", where + "/root")
    user = furnish(where + "/root", name, ip, want)
    p = boot(where, name)
    about = {"name": name, "ip": ip, "port": 22, "user": user, "pid": p.pid}
    with open(where + "/about.json", "w") as f:
        json.dump(about, f)
    if not want.get("no_wait") and not wait_for_ssh(p, ip):
        sys.stderr.write(open(where + "/console").read()[-2000:])
        destroy(name)
        sys.exit(f"node.py: {name} did not come up")
    about["host_key"] = " ".join(open(where + "/root/etc/ssh/ssh_host_ed25519_key.pub").read().split()[:2])
    return about


def machines():
    for name in sorted(os.listdir(state())):
        path = os.path.join(state(), name, "about.json")
        if os.path.exists(path):
            yield json.load(open(path))


def find(key):
    return next((m for m in machines() if key in (m["name"], m["ip"])), None)


def ended(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def destroy(key):
    m = find(key)
    if not m:
        return
    where = os.path.join(state(), m["name"])
    group = "/sys/fs/cgroup/" + cgroup_of(state(), m["name"])
    try:
        with open(group + "/cgroup.kill", "w") as f:
            f.write("1")
    except OSError:  # kernels before 5.14
        os.kill(m["pid"], signal.SIGKILL)
    end = time.monotonic() + 20
    while not ended(m["pid"]) and time.monotonic() < end:
        time.sleep(0.02)
    subprocess.run(["umount", "-l", where + "/root"], stderr=subprocess.DEVNULL)
    shutil.rmtree(where, ignore_errors=True)


def leader(m):
    """The machine's own pid 1: nspawn's first child."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        text = open(f"/proc/{m['pid']}/task/{m['pid']}/children").read().split()
        if text:
            return text[0]
        time.sleep(0.02)
    sys.exit(f"node.py: {m['name']} is not running")


def enter(key, command):
    m = find(key) or sys.exit(f"node.py: no machine {key}")
    os.execvp("nsenter", ["nsenter", "--target", leader(m), "--all", "--", *command])


def stdin_object():
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    return json.loads(text) if text.strip() else {}


def main(argv):
    verb, rest = (argv[1] if len(argv) > 1 else ""), [a for a in argv[2:] if a != "--"]
    if verb == "run":
        why = missing()
        if why:
            sys.exit("node.py: " + why)
        return run(argv[argv.index("--") + 1:] if "--" in argv else rest)
    if verb == "_inside":
        return inside(argv[2:])
    if verb == "check":
        print(missing() or "ok")
        return 1 if missing() else 0
    if verb == "base":
        print(base())
    elif verb == "create":
        print(json.dumps(create(stdin_object())), flush=True)
    elif verb == "destroy":
        want = {"name": rest[0]} if rest else stdin_object()
        destroy(want.get("ip") or want.get("name") or "")
    elif verb == "list":
        for m in machines():
            print(json.dumps(m))
    elif verb == "exec":
        enter(argv[2], argv[4:] if argv[3] == "--" else argv[3:])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
