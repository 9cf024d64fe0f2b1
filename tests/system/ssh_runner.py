#!/usr/bin/python3
"""ssh_runner.py - the ssh runner against plain sshd, and against servers that mean harm"""
import atexit
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sandbox  # noqa: E402
from runner_client import Runner  # noqa: E402
from sandbox import ok, same  # noqa: E402

sandbox.enter()
folder = sandbox.scratch()
atexit.register(shutil.rmtree, folder, True)
_, client, client_pub = sandbox.new_key(folder, "client")
_, stranger, _ = sandbox.new_key(folder, "stranger")
host_path, _, host_pub = sandbox.new_key(folder, "host")
ecdsa_path, _, ecdsa_pub = sandbox.new_key(folder, "host-ecdsa", "ecdsa")
_, _, other_pub = sandbox.new_key(folder, "other")
host_pub, ecdsa_pub, other_pub = (" ".join(k.split()[:2]) for k in (host_pub, ecdsa_pub, other_pub))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sshd(name, keys=(host_path,), **options):
    port = free_port()
    with open(f"{folder}/{name}.keys", "w") as f:
        f.write(client_pub + "\n")
    options = {"Port": port, "ListenAddress": "127.0.0.1", "AuthorizedKeysFile": f"{folder}/{name}.keys",
               "StrictModes": "no", "UsePAM": "no", "PidFile": "none", "PermitRootLogin": "prohibit-password",
               "PasswordAuthentication": "no", "MaxStartups": "500", "LogLevel": "VERBOSE", **options}
    with open(f"{folder}/{name}.conf", "w") as f:
        f.writelines(f"{k} {v}\n" for k, v in options.items())
        f.writelines(f"HostKey {k}\n" for k in keys)
    subprocess.Popen([shutil.which("sshd"), "-D", "-f", f"{folder}/{name}.conf", "-E", f"{folder}/{name}.log"])

    def answers():
        try:
            return socket.create_connection(("127.0.0.1", port), 1).recv(4) == b"SSH-"
        except OSError:
            return False

    assert sandbox.until(answers), name
    return port


def hostile(serve):
    """A server that does what serve(connection) does, to everybody, for ever."""
    s = socket.create_server(("127.0.0.1", 0), backlog=100)

    def one(c):
        try:
            serve(c)
        except OSError:
            pass

    def accept():
        while True:
            threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return s.getsockname()[1]


def target(port, users=("root",), hostkey=None, host="127.0.0.1"):
    t = {"host": host, "port": port, "users": list(users)}
    return {**t, "hostkey": hostkey} if hostkey else t


def is_code(result, code, name, kind="unavailable"):
    return same((result or {}).get("code"), code, name, result) and same(result["kind"], kind, name + ": the kind")


def stall(c):
    time.sleep(120)


def flood(bytes_):
    def serve(c):
        while True:
            c.sendall(bytes_)
    return serve


def banner_then(rest):
    def serve(c):
        c.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        rest(c)
    return serve


IGNORE = (12).to_bytes(4, "big") + bytes([6, 2]) + (1).to_bytes(4, "big") + b"x" + bytes(6)
good = sshd("good", keys=(ecdsa_path, host_path))
r = Runner("ssh", [("ssh_key", client)])

# --------------------------------------------------------------------------------------- configuration, arguments
same(r.hello["role"], "ssh", "hello names the role")
same(r.ready, {"kind": "ok"}, "a key makes it ready")
for secrets, why in (([], "no key"), ([("ssh_key", b"-----BEGIN RSA PRIVATE KEY-----\n")], "no OpenSSH key")):
    broken = Runner("ssh", secrets)
    same(broken.ready["kind"], "invalid", f"{why}: not ready")
    broken.close()

for args, word in (
        ({"target": target(good), "script": "worker; reboot"}, "script"),
        ({"target": target(good), "script": "check", "params": {"a b": "c"}}, "NAME_1"),
        ({"target": target(good), "script": "check", "params": {"A": 1}}, "string"),
        ({"target": target(good), "script": "check", "hash": "$(id)"}, "hash"),
        ({"target": target(good, ["root -o x"]), "script": "check"}, "user"),
        ({"target": target(good, []), "script": "check"}, "users"),
        ({"target": {"host": "h", "users": ["root"], "hots": 1}, "script": "check"}, "hots"),
        ({"target": target(good, host="a/b@c"), "script": "check"}, "address")):
    got = r.call("run", args)
    ok(got["kind"] == "invalid" and word in got["text"], f"refused: {word}", got)
same(r.call("reboot", {"target": target(good)})["kind"], "unsupported", "an unknown call is unsupported")

# ------------------------------------------------------------------------------------------------------- probing
got = r.call("probe", {"target": target(good)})
value = got.get("value", {})
same(got["kind"], "ok", "probe", got)
same(value.get("hostkey"), host_pub, "the ed25519 host key is preferred and returned")
same(value.get("user"), "root", "the user that worked is returned")
same(value["facts"].get("kernel"), os.uname().release, "facts: kernel")
same(value["facts"].get("uid"), "0", "facts: uid")
ok(int(value["facts"]["mem_mib"]) > 0 and value["facts"]["marker"] == "absent", "facts: memory, marker", value)
same(r.call("probe", {"target": target(good, hostkey=host_pub + " a comment")})["kind"], "ok", "the pinned key is accepted")
got = r.call("probe", {"target": target(good, hostkey=ecdsa_pub)})
same(got.get("value", {}).get("hostkey"), ecdsa_pub, "a pin of another type asks for that type", got)
is_code(r.call("probe", {"target": target(good, hostkey=other_pub)}), "hostkey-mismatch", "another key of the same type", "conflict")
is_code(r.call("probe", {"target": target(sshd("ed-only"), hostkey=ecdsa_pub)}), "hostkey-mismatch",
        "a server that lost its pinned key type", "conflict")
got = r.call("run", {"target": target(good), "script": "check", "params": {"GPU_COUNT": "0"}})
same(got.get("value", {}).get("code"), "os-unsupported", "a run without systemd says so", got)
same(got["value"]["retryable"], False, "and that it will not get better")

# ------------------------------------------------------------------------------------------------- users and keys
wrong = Runner("ssh", [("ssh_key", stranger)])
port = sshd("many")
got = wrong.call("probe", {"target": target(port, ["root", "a1", "b2", "c3", "d4", "e5"])})
is_code(got, "ssh-auth", "a key that nobody accepts")
log = open(f"{folder}/many.log").read()
tried = [u for u in ("root", "a1", "b2", "c3", "d4", "e5") if f"user {u} " in log or f" {u} 127" in log]
same(tried, ["root", "a1", "b2", "c3"], "four users are tried, in order, and no more", log)
wrong.close()
same(r.call("probe", {"target": target(good, ["nobody-here", "root"])})["value"]["user"], "root", "the second user works")
is_code(r.call("probe", {"target": target(sshd("trap", ForceCommand="echo Please login as the user ubuntu; exit 142"))}),
        "ssh-auth", "a login that only prints a banner is no login")

# ------------------------------------------------------------------------------------- no server, no name, no answer
is_code(r.call("probe", {"target": target(free_port())}), "ssh-refused", "a closed port")
is_code(r.call("probe", {"target": target(22, host="no-such-host.invalid")}), "ssh-dns", "a name that does not resolve")
subprocess.run("ip link add void type bridge && ip addr add 10.78.0.1/24 dev void && ip link set void up && "
               "ip neigh add 10.78.0.9 lladdr 02:00:00:00:00:09 dev void", shell=True, check=True)
silent = r.start("probe", {"target": target(22, host="10.78.0.9")})

# ---------------------------------------------------------------------------------------- servers that mean harm
harm = {
    "no banner": stall,
    "endless banner lines": flood(b"hello there\r\n" * 1000),
    "one endless line": flood(b"x" * 65536),
    "banner, then silence": banner_then(stall),
    "banner, then noise": banner_then(flood(os.urandom(65536))),
    "banner, then endless ignored packets": banner_then(flood(IGNORE * 2000)),
    "banner, then goodbye": banner_then(lambda c: c.close()),
}
calls = {name: [r.start("probe", {"target": target(hostile(serve))}) for _ in range(5)] for name, serve in harm.items()}
got = r.call("probe", {"target": target(good)}, seconds=60)
ok(got and got["kind"] == "ok" and not any(i in r.results for i in calls["no banner"]),
   "a good node is served while bad ones rage and stall", got)
slow = r.start("probe", {"target": target(hostile(stall))})
short = r.start("probe", {"target": target(hostile(stall))}, deadline_ms=700)
is_code(r.wait(short, 60), "ssh-timeout", "a call ends at its own deadline")
ok("deadline" in r.results[short]["text"], "and says so", r.results[short])
r.cancel(slow)
same((r.wait(slow, 60) or {}).get("kind"), "cancelled", "a cancelled call ends")
for name, ids in calls.items():
    results = [r.wait(i, 90) for i in ids]
    codes = {(x or {}).get("code") for x in results}
    ok(codes <= {"ssh-timeout", "ssh-closed", "ssh-output"} and None not in codes, f"{name}: an error of its own call", results[0])
is_code(r.wait(silent, 60), "ssh-timeout", "an address that does not answer")

# ------------------------------------------------------------------------------------ nodes that print too much
def script(name, text):
    path = f"{folder}/{name}.sh"
    with open(path, "w") as f:
        f.write(text)
    return "/bin/sh " + path


got = r.call("probe", {"target": target(sshd("yes", ForceCommand=script("yes", "exec yes")))})
is_code(got, "ssh-output", "output without end")
got = r.call("probe", {"target": target(sshd("line", ForceCommand=script("line",
             'head -c 300000 /dev/zero | tr "\\0" x; echo; sh -c "$SSH_ORIGINAL_COMMAND"; exit 0')))})
same(got["kind"], "ok", "one huge line costs that line only", got)
liar = script("liar", 'echo "$SSH_ORIGINAL_COMMAND" | sed "s/.*echo \\(hello=[0-9a-f]*\\).*/\\1/"; '
              'printf "os=\\377\\376bad\\033[31m\\n"; echo os=second; echo nonsense=1; echo "not a line"; '
              'printf "kernel=caf\\303\\251\\n"; i=0; while [ $i -lt 40 ]; do echo "gpu=$i, u, n, 1, d"; i=$((i+1)); done; '
              'printf "hostname="; head -c 5000 /dev/zero | tr "\\0" h; echo; echo done=1')
got = r.call("probe", {"target": target(sshd("liar", ForceCommand=liar))})
facts = got.get("value", {}).get("facts", {})
same(facts.get("os"), "??bad?[31m", "bytes that are no text are replaced; the first value stays", got)
same(facts.get("kernel"), "caf\u00e9", "UTF-8 stays")
ok("nonsense" not in facts and len(facts["gpus"]) == 32 and len(facts["hostname"]) <= 1024,
   "unknown keys go, lists and lines are bounded", len(facts["gpus"]), len(facts["hostname"]))
got = r.call("probe", {"target": target(sshd("early", ForceCommand=script("early",
             'echo "$SSH_ORIGINAL_COMMAND" | sed "s/.*echo \\(hello=[0-9a-f]*\\).*/\\1/"; echo os=x')))})
is_code(got, "ssh-closed", "an answer without its last line is no answer")

# ------------------------------------------------------------------------------------------------ a full house
many = [r.start("probe", {"target": target(hostile(stall) if i % 9 == 0 else good)}, deadline_ms=14000 if i % 9 == 0 else 60000) for i in range(72)]
kinds = [r.wait(i, 90)["kind"] for i in many]
ok(kinds.count("ok") == 64 and kinds.count("unavailable") == 8, "more calls than slots: each ends as its own node deserves", kinds)
ok(r.process.poll() is None, "one process served them all")
same(r.close(), 0, "it ends with the daemon's end of the socket")
sandbox.done()
