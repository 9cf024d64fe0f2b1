"""broker.py - a whole broker for tests: gpubrokerd with its children, fakes of clouds, the CLI

    with Cloud("shadeform") as cloud, Broker(cloud.provider(), clusters=...) as b:
        code, out = b.cli("rent", "--gpu", "H100", "--json")

Everything lives in a folder of its own and ends with the `with`.  Waits are for conditions, with a deadline.
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

import zmq

SRC = os.environ.get("GPUB_SRCDIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("GPUB_BUILDDIR") or SRC
TIMES = "poll=50,gone=60,retry_min=30,retry_max=400,ssh_retry=100,stable=200,create=5000,call=5000,listing=5000,restart=50"
KEY = "canary-api-key-8d1f"


def until(fn, seconds=20, what="condition"):
    """The first true answer of fn, asked until the time is over."""
    end = time.monotonic() + seconds
    while True:
        got = fn()
        if got:
            return got
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Cloud:
    """A fake cloud as a process; control() speaks to it."""

    def __init__(self, name, *argv, env=None):
        self.name, self.argv, self.env = name, argv, {**os.environ, **(env or {})}

    def __enter__(self):
        self.proc = subprocess.Popen(
            ["/usr/bin/python3", f"{SRC}/tests/clouds/{self.name}.py", "--api-key", KEY, *self.argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        line = json.loads(self.proc.stdout.readline())
        self.url, self.base = line["url"], urllib.parse.urlparse(line["control"])
        self.own = line.get("provider", {"endpoint": self.url, "secrets": {"api_key": KEY}})
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait(10)

    def control(self, method, path, body=None):
        c = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=30)
        c.request(method, self.base.path + path, json.dumps(body) if body is not None else None)
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status >= 400:
            raise RuntimeError(f"{method} {path}: {r.status} {data[:200]}")
        return json.loads(data) if data else None

    def faults(self, *faults):
        self.control("POST", "/faults", list(faults))

    def machines(self):
        """The machines of ours that exist (and bill, or will)."""
        return [m for m in self.control("GET", "/machines") if not m["foreign"] and not m["ended_ms"]]

    def provider(self, **more):
        return {"name": self.name, "plugin": self.name, **self.own, "offers_every": "1s", "reconcile_every": "1s", **more}


def setting(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{ " + " ".join(f"{k} = {setting(v)};" for k, v in value.items()) + " }"
    if isinstance(value, list):
        inner = ", ".join(setting(v) for v in value)
        return f"( {inner} )" if value and isinstance(value[0], dict) else f"[ {inner} ]"
    return json.dumps(value)


class Broker:
    def __init__(self, *providers, clusters=(), uids=None, env=None, defaults=None, limits=None, times=TIMES, broker=None):
        self.providers, self.clusters, self.uids = list(providers), list(clusters), uids
        self.env, self.defaults, self.limits, self.times = env or {}, defaults or {}, limits or {}, times
        self.broker = broker or {}
        self.dir = tempfile.mkdtemp(prefix="gpub-")
        self.endpoint, self.proc, self.ctx = f"ipc://{self.dir}/run/bus", None, zmq.Context()
        self.log = os.path.join(self.dir, "log")
        self.state = os.path.join(self.dir, "state")
        self.config = os.path.join(self.dir, "gpubroker.conf")
        self.sock = None
        self.write_config()

    def write_config(self):
        os.makedirs(f"{self.dir}/keys", exist_ok=True)
        providers = []
        for p in self.providers:
            p = dict(p)
            for option, value in p.pop("secrets", {}).items():
                path = f"{self.dir}/keys/{p['name']}.{option}"
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                    f.write(value)
                p[f"{option}_file"] = path
            providers.append(p)
        uids = self.uids or [{"uid": os.geteuid(), "rights": "admin", "principal": "tester"}]
        top = {
            "broker": {"name": "test", "state_dir": self.state, "run_dir": f"{self.dir}/run", "log_level": "debug",
                       **self.broker},
            "bus": {"requests": [self.endpoint], "events": [f"ipc://{self.dir}/run/events"], "uids": uids},
            "defaults": {"cluster": "none", "ttl": "1h", "deadline": "2m", **self.defaults},
            "limits": self.limits, "providers": providers, "clusters": list(self.clusters)}
        with open(os.open(self.config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            for name, value in top.items():
                if value:
                    f.write(f"{name}: {setting(value)};\n")
        os.makedirs(f"{self.dir}/run", exist_ok=True)

    def environment(self, **more):
        libs = [f"{BUILD}/.libs", f"{BUILD}/tests/bad/.libs"]
        return {**os.environ, "GPUB_LIBEXECDIR": BUILD, "GPUB_PROVIDER_PATH": ":".join(libs),
                "GPUB_TEST_TIMES": self.times, "GPUBROKER_ENDPOINT": self.endpoint, **self.env, **more}

    def start(self, wait=True, **env):
        self.out = open(self.log, "ab")
        self.mark = self.out.tell()
        self.proc = subprocess.Popen([f"{BUILD}/gpubrokerd", "--config", self.config], stdout=self.out,
                                     stderr=self.out, env=self.environment(**env))
        if wait:
            self.wait_up()
        return self

    def wait_up(self, seconds=20):
        def up():
            if self.proc.poll() is not None:
                raise RuntimeError(f"gpubrokerd ended with {self.proc.returncode}: {self.tail()}")
            return self.try_ask("ping", {}, 500)
        return until(up, seconds, "gpubrokerd answers")

    def tail(self, n=2000):
        with open(self.log, "rb") as f:
            return f.read().decode(errors="replace")[-n:]

    def logged(self, text):
        """Is that in the log of the process that was started last?"""
        with open(self.log, "rb") as f:
            f.seek(self.mark)
            return text.encode() in f.read()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind:
            sys.stderr.write("".join("# " + line + "\n" for line in self.tail(6000).splitlines()))
        self.stop()
        self.close()
        self.ctx.destroy(0)
        if not os.environ.get("GPUB_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)
        else:
            sys.stderr.write(f"# kept {self.dir}\n")

    def stop(self, how=signal.SIGTERM, seconds=15):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(how)
            try:
                self.proc.wait(seconds)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
                raise
        return self.proc.returncode if self.proc else None

    def kill(self):
        self.stop(signal.SIGKILL)

    def restart(self, **env):
        if self.proc.poll() is None:
            self.stop()
        return self.start(**env)

    def children(self, program=""):
        """The pids of its children whose command line has that in it."""
        with open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children") as f:
            pids = f.read().split()
        found = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    if program in f.read():
                        found.append(int(pid))
            except FileNotFoundError:  # it ended meanwhile
                pass
        return found

    # ---- requests: GPUB/1 by hand ----

    def close(self):
        if self.sock:
            self.sock.close(0)
            self.sock = None

    def dealer(self):
        s = self.ctx.socket(zmq.DEALER)
        s.linger = 0
        s.connect(self.endpoint)
        return s

    def send(self, verb, body, sock=None):
        rid = uuid.uuid4().hex
        if not self.sock:
            self.sock = self.dealer()
        (sock or self.sock).send_multipart([b"GPUB/1", verb.encode(), rid.encode(), json.dumps(body).encode()])
        return rid

    def recv(self, rid, ms=20000, sock=None):
        """(kind, body) of the next reply to that request, or None."""
        sock, end = sock or self.sock, time.monotonic() + ms / 1000
        while sock.poll(max(0, int((end - time.monotonic()) * 1000))):
            _, kind, got, body = sock.recv_multipart()
            if got.decode() == rid:
                return kind.decode(), json.loads(body)
        return None

    def try_ask(self, verb, body, ms=20000):
        sock = self.dealer()
        try:
            rid = self.send(verb, body, sock)
            while True:
                r = self.recv(rid, ms, sock)
                if r is None or r[0] in ("final", "error"):
                    return r
        finally:
            sock.close(0)

    def ask(self, verb, body=None, ms=20000):
        """The final's body; an error raises."""
        r = self.try_ask(verb, body or {}, ms)
        if r is None:
            raise TimeoutError(f"{verb}: no answer in {ms} ms; {self.tail()}")
        if r[0] == "error":
            raise Refused(r[1])
        return r[1]

    def accepted(self, verb, body, ms=20000):
        """Sends a mutation that wants one reply; the accepted's body, or Refused."""
        sock = self.dealer()
        try:
            r = self.recv(self.send(verb, {"single": True, **body}, sock), ms, sock)
        finally:
            sock.close(0)
        if r is None:
            raise TimeoutError(f"{verb}: no answer")
        if r[0] == "error":
            raise Refused(r[1])
        return r[1]

    def lease(self, x):
        return self.ask("lease", {"lease": x})["lease"]

    def wait_state(self, x, *states, seconds=60):
        def look():
            lease = self.lease(x)
            return lease if lease["state"] in states else None
        try:
            return until(look, seconds, f"{x} is {' or '.join(states)}")
        except TimeoutError as e:
            raise TimeoutError(f"{e}; it is {json.dumps(self.lease(x))[:1500]}") from None

    def offers_there(self, seconds=20):
        return until(lambda: self.ask("offers", {"filter": {}})["matched"], seconds, "offers")

    def cli(self, *argv, timeout=120, stdin=None, env=None):
        r = subprocess.run([f"{BUILD}/gpubroker-cli", *argv], capture_output=True, text=True, timeout=timeout,
                           input=stdin, env={**self.environment(), **(env or {})})
        return r.returncode, r.stdout, r.stderr


def spoke(info, **more):
    """A cluster of the configuration for what tests/kube/cluster.py started."""
    return {"name": "spoke-a", "type": "k0smotron", "kubeconfig_file": info["management"]["kubeconfig"],
            "namespace": info["namespace"], "control_plane": info["control_plane"],
            "k0s_version": info["k0s_version"].replace("-k0s", "+k0s"), "cni": "calico-vxlan",
            "gpu_stack": "device-plugin", "allow_private": True, **more}


class Refused(Exception):
    def __init__(self, body):
        super().__init__(f"{body['code']}: {body['message']}")
        self.code, self.body = body["code"], body


class Tap:
    """TAP lines; run(fn) makes an exception a failure of its own."""

    def __init__(self):
        self.n = self.bad = 0

    def ok(self, good, name):
        self.n += 1
        self.bad += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {name}", flush=True)
        return good

    def eq(self, got, want, name):
        if not self.ok(got == want, name):
            print(f"# got:  {got!r}\n# want: {want!r}", flush=True)

    def skip(self, name, why):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {why}", flush=True)

    def run(self, fn, *args):
        try:
            fn(*args)
        except Exception as e:  # a test that stumbles has failed, and the next one still runs
            self.ok(False, f"{fn.__name__}: {type(e).__name__}: {str(e)[:600]}".replace("\n", " "))

    def done(self):
        print(f"1..{self.n}", flush=True)
        sys.exit(1 if self.bad else 0)
