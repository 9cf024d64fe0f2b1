#!/usr/bin/python3
"""canary.py - secrets, looked for wherever they must not be while a machine is rented, joined and released

The four: the cloud's API key, the broker's SSH key, the client key of the kubeconfig, the join token.
"""
import base64
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "kube"), os.path.join(HERE, "..", "nodes"), HERE]
import cluster  # noqa: E402
import node  # noqa: E402
import zmq  # noqa: E402
from broker import BUILD, KEY, Broker, Cloud, Tap, spoke, until  # noqa: E402

t = Tap()
WHY = node.missing()
if WHY:
    t.skip("canaries", WHY)
    t.done()
if "GPUB_NODES" not in os.environ:
    os.execv("/usr/bin/python3", ["/usr/bin/python3", node.__file__, "run", "--", "/usr/bin/python3", os.path.abspath(__file__)])

HOOK = os.path.join(HERE, "machine_hook.py")
HOOKS = ("--on-create", f"{HOOK} create", "--on-delete", f"{HOOK} destroy")


class Secrets:
    def __init__(self):
        self.all = {"api key": {KEY.encode()}}

    def add(self, what, *forms):
        self.all.setdefault(what, set()).update(f for f in forms if len(f) > 12)

    def add_pem(self, what, pem):
        """A line from the middle, and the whole in base64, each as it would be copied."""
        lines = pem.strip().splitlines()
        self.add(what, lines[len(lines) // 2], base64.b64encode(pem)[60:120])

    def within(self, data):
        return sorted(what for what, forms in self.all.items() for f in forms if f in data)


class Eye(threading.Thread):
    """Looks at every process and at the tokens of the clusters, over and over, while a rent runs."""

    def __init__(self, c, secrets):
        super().__init__(daemon=True)
        self.c, self.secrets, self.end, self.seen, self.found = c, secrets, False, set(), set()

    def run(self):
        while not self.end:
            self.tokens()
            for path in glob.glob("/proc/[0-9]*"):
                self.process(path)

    def process(self, path):
        try:
            argv, env = open(path + "/cmdline", "rb").read(), open(path + "/environ", "rb").read()
        except OSError:
            return
        if b"tests/clouds/" in argv or int(path[6:]) == os.getpid():
            return  # the cloud may know its own key, and so may this test
        self.seen.add(os.path.basename(argv.split(b"\0")[0]).decode(errors="replace"))
        for place, data in (("argv", argv), ("environ", env)):
            self.found |= {(what, place, argv[:60]) for what in self.secrets.within(data)}

    def tokens(self):
        for plane in (self.c.hosted, self.c.management):
            try:
                rows = plane["api"].get("/api/v1/secrets")["items"]
            except Exception:  # a server that is busy is asked again
                continue
            for row in rows:
                data = {k: base64.b64decode(v) for k, v in (row.get("data") or {}).items()}
                if "token-secret" in data:
                    self.secrets.add("join token", data["token-secret"])
                elif "token" in data:
                    self.secrets.add("join token", data["token"][40:100], data["token"][-60:-4])


def kubeconfig_keys(path):
    import yaml
    with open(path) as f:
        for user in yaml.safe_load(f)["users"]:
            for name in ("client-key-data", "token"):
                value = user["user"].get(name)
                if value:
                    yield base64.b64decode(value) if name == "client-key-data" else value.encode()


def children(b):
    pids, out = [b.proc.pid], []
    while pids:
        pid = pids.pop()
        out.append(pid)
        pids += [int(x) for x in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return out


def on(lease, command):
    return subprocess.run(["/usr/bin/python3", node.__file__, "exec", lease["machine"]["address"], "--", "bash", "-c", command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


def listen(b, into):
    s = b.ctx.socket(zmq.SUB)
    s.linger = 0
    s.connect(f"ipc://{b.dir}/run/events")
    s.setsockopt(zmq.SUBSCRIBE, b"")
    end = zmq.Poller()
    end.register(s, zmq.POLLIN)
    while not into["end"]:
        if end.poll(100):
            into["data"] += b"\n".join(s.recv_multipart()) + b"\n"
    s.close(0)


def replies(b, x):
    out = b""
    for verb, body in (("lease", {"lease": x}), ("leases", {"all": True}), ("explain", {"lease": x}), ("logs", {"lease": x}),
                       ("providers", {}), ("clusters", {}), ("cost", {}), ("events", {"limit": 1000}), ("offers", {"filter": {}}),
                       ("ssh-info", {"lease": x}), ("orphans", {}), ("ping", {})):
        r = b.try_ask(verb, body)
        t.ok(r and (r[0] == "final" or verb == "ssh-info"), f"{verb} answers")
        out += json.dumps(r).encode()
    return out


def state_files(b):
    return {p: open(p, "rb").read() for p in glob.glob(f"{b.state}/**", recursive=True)
            if os.path.isfile(p) and os.path.basename(p) != "ssh_key"}


def life(b, cloud, c, secrets, eye):
    heard = {"data": b"", "end": False}
    ear = threading.Thread(target=listen, args=(b, heard), daemon=True)
    ear.start()
    eye.start()
    code, out, err = b.cli("rent", "--gpu", "H100", "--cluster", "spoke-a", "--name", "one", "--json")
    said = (out + err).encode()
    t.eq(code, 0, "a rent with a cluster")
    lease = b.lease("one")
    said += replies(b, "one")
    t.eq(sorted(secrets.all), ["api key", "client key", "join token", "ssh key"], "there are canaries of all four kinds")
    places = "/var/log /etc /tmp /run/log /home /root /var/tmp"
    data = on(lease, "journalctl --no-pager -o export 2>/dev/null; tar -c -C / --ignore-failed-read " + places + " 2>/dev/null; "
                     "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null")
    t.ok(len(data) > 10000, f"the machine was looked through ({len(data)} bytes)")
    t.eq(secrets.within(data), [], "no secret in the machine's logs, journal, /etc, homes or processes")
    for pid in children(b):
        limits = open(f"/proc/{pid}/limits").read()
        name = open(f"/proc/{pid}/comm").read().strip()
        t.ok(re.search(r"Max core file size +0 +0 ", limits), f"{name}: no core dump")
    for path, data in state_files(b).items():
        t.eq(secrets.within(data), [], f"no secret in {os.path.relpath(path, b.state)} while ready")
    code, out, err = b.cli("release", "one", "--json")
    t.eq(code, 0, "its release")
    eye.end = heard["end"] = True
    eye.join()
    ear.join()
    said += (out + err).encode() + replies(b, "one")
    t.eq(eye.found, set(), "no secret in any argv or environment")
    t.ok({"gpubroker-provider", "gpubroker-runner"} <= eye.seen, "and the children were among what was looked at")
    t.ok(len(heard["data"]) > 500, "events came")
    t.eq(secrets.within(heard["data"]), [], "no secret in them")
    t.eq(secrets.within(said), [], "no secret in any answer")
    with open(b.log, "rb") as f:
        log = f.read()
    t.ok(b"lease" in log, "the log was written, at level debug")
    t.eq(secrets.within(log), [], "no secret in it")
    for path, data in state_files(b).items():
        t.eq(secrets.within(data), [], f"no secret in {os.path.relpath(path, b.state)} after the release")


def refused_key(b, cloud, secrets):
    """A cloud that answers with the key in its text: an error text is a way out, too."""
    cloud.faults({"on": "*", "kind": "status", "status": 401, "body": {"message": f"invalid key {KEY}, X-API-KEY: {KEY}"}, "times": -1})
    until(lambda: b.ask("providers")["providers"][0].get("error"), 20, "failing")
    out = json.dumps(b.ask("providers")).encode() + json.dumps(b.ask("events", {"limit": 1000})).encode()
    t.eq(secrets.within(out), [], "a key that the cloud repeats in its error is not repeated")
    with open(b.log, "rb") as f:
        t.eq(secrets.within(f.read()), [], "nor logged")


def undumpable():
    """As another user: what is not dumpable belongs to root in /proc."""
    b = Broker({"name": "lab", "plugin": "good"}, uids=[{"uid": 0, "rights": "admin", "principal": "tester"}])
    try:
        for path, folders, files in os.walk(b.dir):
            for p in [path, *(os.path.join(path, f) for f in files)]:
                os.chown(p, 65534, 65534)
        out = open(b.log, "ab")
        b.out, b.mark = out, 0
        b.proc = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"{BUILD}/gpubrokerd", "--config",
                                   b.config], stdout=out, stderr=out, env=b.environment())
        b.wait_up()
        until(lambda: len(children(b)) >= 4, 10, "children")
        for pid in children(b):
            name = open(f"/proc/{pid}/comm").read().strip()
            t.eq((os.stat(f"/proc/{pid}").st_uid, os.stat(f"/proc/{pid}/environ").st_uid), (65534, 0) if os.stat(f"/proc/{pid}").st_uid
                 else (0, 0), f"{name}: not dumpable")
            t.ok("Uid:\t65534" in open(f"/proc/{pid}/status").read(), f"{name}: of another user")
    finally:
        b.stop()
        b.close()
        shutil.rmtree(b.dir, ignore_errors=True)


def main():
    mode = os.environ.get("GPUB_TEST_KUBE", "auto")
    secrets = Secrets()
    with tempfile.TemporaryDirectory() as d, cluster.Clusters(mode, d, "10.77.0.1") as c:
        for pem in kubeconfig_keys(c.info["management"]["kubeconfig"]):
            secrets.add_pem("client key", pem) if b"\n" in pem else secrets.add("client key", pem)
        os.environ["GPUB_HOOK_EXTRA"] = json.dumps({"k0s_version": c.info["k0s_version"].replace("-k0s", "+k0s")})
        with Cloud("shadeform", *HOOKS) as cloud, Broker(cloud.provider(), clusters=[spoke(c.info)]) as b:
            secrets.add_pem("ssh key", open(f"{b.state}/ssh_key", "rb").read())
            t.eq([secrets.within(open(p, "rb").read()) for p in (f"{b.state}/ssh_key", c.info["management"]["kubeconfig"],
                 f"{b.dir}/keys/shadeform.api_key")], [["ssh key"], ["client key"], ["api key"]], "the search finds them where they live")
            b.offers_there()
            t.run(life, b, cloud, c, secrets, Eye(c, secrets))
            t.run(refused_key, b, cloud, secrets)
    t.run(undumpable)
    t.done()


main()
