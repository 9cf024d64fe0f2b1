"""provider_harness.py - drives one provider plugin through the real gpubroker-provider

    cloud = HttpServer(handler)
    with Provider("shadeform", options={"endpoint": cloud.url}, secrets={"api_key": b"k"}) as p:
        r = p.call("list_offers", {"offer_ref": None})
        assert r.kind == "ok" and r.offers[0]["gpu_name"] == "H100"

Every wait is bounded.  The daemon's side of docs/children.md, for tests: ACKs are sent at once unless
on_item says otherwise.  tap() collects test functions and prints TAP.
"""
import http.server
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback

BUILD = os.environ.get("GPUB_BUILDDIR", os.getcwd())
HOST = os.environ.get("GPUB_PROVIDER_HOST", os.path.join(BUILD, "gpubroker-provider"))
KINDS = ["", "hello", "config", "ready", "call", "secret", "item", "ack", "result", "cancel", "log"]
CODE = {name: n for n, name in enumerate(KINDS)}
WANT_ACK = 1
OWNER = "6c1f3a52-6d39-4f0e-8b64-0f1b1ad4a3aa"
PATIENCE = float(os.environ.get("GPUB_TEST_PATIENCE", "20"))


class Died(Exception):
    """The process ended, or its socket did, before what was waited for."""


class Result:
    """One call's end and all that came before it."""

    def __init__(self):
        self.kind = None
        self.text = self.code = self.request_id = ""
        self.http_status = self.retry_after_ms = 0
        self.value = {}
        self.offers, self.machines, self.resources, self.scopes = [], [], [], []
        self.items = 0

    def _item(self, body):
        self.items += 1
        self.offers += body.get("offers", [])
        self.machines += body.get("machines", [])
        if "resource" in body:
            self.resources.append(body["resource"])
        if "scope" in body:
            self.scopes.append(body["scope"])

    def _end(self, body):
        for key, value in body.items():
            setattr(self, key, value)

    def __repr__(self):
        return "<%s %r code=%r status=%s value=%r>" % (self.kind, self.text, self.code, self.http_status, self.value)


def plugin_file(name):
    """The .so of a bare name in the build tree: a private copy, so that a lax umask does not matter."""
    if "/" in name:
        return name
    for folder in os.environ.get("GPUB_PROVIDER_PATH", os.path.join(BUILD, ".libs")).split(":"):
        path = os.path.join(folder, name + ".so")
        if os.path.exists(path):
            return path
    return name


class Provider:
    def __init__(self, plugin, options=None, secrets=None, http=None, state_dir=None, name=None, ready=True):
        self.logs, self.results, self.done = [], {}, set()
        self.on_item = None  # function(call id, body) -> False to withhold the ACK
        self.hello = self.ready = None
        self._buf, self._next, self._status = b"", 1, None
        self._dir = tempfile.mkdtemp(prefix="gpub-provider-")
        self.state_dir = state_dir or os.path.join(self._dir, "state")
        self.plugin = os.path.join(self._dir, os.path.basename(plugin_file(plugin)))
        if os.path.exists(plugin_file(plugin)):
            shutil.copy(plugin_file(plugin), self.plugin)
            os.chmod(self.plugin, 0o755)
        else:
            self.plugin = plugin
        ours, theirs = socket.socketpair()
        self.sock = ours
        self.pid = os.posix_spawn(HOST, [HOST], dict(os.environ),
                                  file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)])
        theirs.close()
        self._pidfd = os.pidfd_open(self.pid)
        for key, value in (secrets or {}).items():
            self._send("secret", 0, key.encode() + b"\0" + (value if isinstance(value, bytes) else value.encode()))
        self._send("config", 0, {"name": name or plugin.split("/")[-1].removesuffix(".so"), "plugin": self.plugin,
                                 "owner": OWNER, "state_dir": self.state_dir, "options": options or {},
                                 "http": http or {}})
        self._pump(lambda: self.ready is not None)
        if ready and self.ready["kind"] != "ok":
            raise AssertionError("not ready: %r" % self.ready)

    # -- frames --

    def _send(self, kind, call, body=b"", flags=0):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            self.sock.sendall(struct.pack("<IIHH", len(body), call, CODE[kind], flags) + body)
        except OSError as e:
            raise Died(str(e)) from e

    def _frame(self):
        if len(self._buf) < 12:
            return None
        size, call, kind, flags = struct.unpack_from("<IIHH", self._buf)
        assert size <= 256 * 1024, "frame of %d bytes" % size
        if len(self._buf) < 12 + size:
            return None
        body, self._buf = self._buf[12:12 + size], self._buf[12 + size:]
        return KINDS[kind], call, flags, json.loads(body)

    def _handle(self, kind, call, flags, body):
        if kind == "hello":
            self.hello = body
        elif kind == "ready":
            self.ready = body
        elif kind == "log":
            self.logs.append(body)
        elif kind == "item":
            assert call not in self.done, "an item after its result"
            self.results[call]._item(body)
            agreed = self.on_item is None or self.on_item(call, body) is not False
            if flags & WANT_ACK and agreed:
                self._send("ack", call, {})
        elif kind == "result":
            assert call not in self.done, "two results of one call"
            self.done.add(call)
            self.results[call]._end(body)
        else:
            raise AssertionError("unexpected frame " + kind)

    def _pump(self, until, timeout=None):
        end = time.monotonic() + (PATIENCE if timeout is None else timeout)
        while not until():
            frame = self._frame()
            if frame:
                self._handle(*frame)
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError("nothing came in time")
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Died("the provider process closed its end")
            self._buf += data

    # -- calls --

    def start(self, call, args=None, deadline_ms=15000):
        """Sends a call and returns its id."""
        number = self._next
        self._next += 1
        self.results[number] = Result()
        self._send("call", number, {"call": call, "deadline_ms": deadline_ms, "args": args or {}})
        return number

    def wait(self, number, timeout=None):
        self._pump(lambda: number in self.done, timeout)
        return self.results[number]

    def cancel(self, number):
        self._send("cancel", number, {})

    def call(self, call, args=None, deadline_ms=15000, timeout=None):
        return self.wait(self.start(call, args, deadline_ms), timeout)

    def create(self, offer_ref, name="lease-1", token="tok-1", max_price_udollar=10 ** 9, **more):
        args = {"offer_ref": offer_ref, "max_price_udollar": max_price_udollar, "token": token, "name": name,
                "tags": {"gpubroker-owner": OWNER, "gpubroker-lease": "1", "gpubroker-token": token},
                "ssh_public_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFak t"]}
        args.update(more)
        deadline_ms = args.pop("deadline_ms", 15000)
        return self.call("create", args, deadline_ms)

    @staticmethod
    def ref(machine, token=None, **more):
        """The REF of an emitted machine, as the daemon would remember it."""
        ref = {k: machine[k] for k in ("id", "scope", "name", "plugin_data", "created_ms", "resources") if k in machine}
        if token:
            ref["token"] = token
        ref.update(more)
        return {"ref": ref}

    def wait_log(self, event, timeout=None):
        self._pump(lambda: any(l["event"] == event for l in self.logs), timeout)
        return [l for l in self.logs if l["event"] == event]

    # -- the end --

    def wait_exit(self, timeout=None):
        """Exit status as waitstatus_to_exitcode: negative for a signal."""
        if self._status is None:
            if not select.select([self._pidfd], [], [], PATIENCE if timeout is None else timeout)[0]:
                raise TimeoutError("the process does not end")
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def hang_up(self):
        """No more work will come; answers can still be read."""
        self.sock.shutdown(socket.SHUT_WR)

    def kill(self):
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait_exit()

    def close(self):
        try:
            self.sock.close()
            try:
                return self.wait_exit()
            except TimeoutError:
                self.kill()
                raise
        finally:
            os.close(self._pidfd)
            shutil.rmtree(self._dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.kill()
        self.close()


# ---- a local cloud ----

class Request:
    def __init__(self, method, path, headers, body, connection):
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.connection = connection  # counts connections: two requests with one number shared one

    @property
    def json(self):
        return json.loads(self.body)


DROP = object()  # close the connection without an answer


class HttpServer:
    """handler(request) -> (status, headers, body) with body bytes, text or something to dump as JSON; or one of
    DROP (close without an answer), ("raw", bytes) (these bytes, then close) and ("raw", bytes, True) (and leave
    the connection open); or a wait on an Event inside the handler for slowness."""



    def __init__(self, handler):
        self.handler, self.requests = handler, []
        self._lock, self._connections = threading.Lock(), 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                with outer._lock:
                    outer._connections += 1
                    self.number = outer._connections

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def do(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                request = Request(self.command, self.path, self.headers, body, self.number)
                with outer._lock:
                    outer.requests.append(request)
                self.answer(outer.handler(request))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do

            def answer(self, reply):
                if reply is DROP:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if reply[0] == "raw":
                    self.wfile.write(reply[1])
                    self.wfile.flush()
                    self.close_connection = len(reply) < 3
                    return
                status, headers, body = reply
                if not isinstance(body, (bytes, str)):
                    body, headers = json.dumps(body), {"Content-Type": "application/json", **headers}
                if isinstance(body, str):
                    body = body.encode()
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- TAP ----

class Skip(Exception):
    pass


def tap(namespace, argv=None):
    """Runs every test_* function of a module in order; names on the command line choose some."""
    chosen = (sys.argv if argv is None else argv)[1:]
    tests = [(n, f) for n, f in namespace.items() if n.startswith("test_") and (not chosen or n in chosen)]
    bad = 0
    print("1..%d" % len(tests), flush=True)
    for number, (name, function) in enumerate(tests, 1):
        title = (function.__doc__ or name).strip().splitlines()[0]
        try:
            function()
            print("ok %d - %s" % (number, title), flush=True)
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (number, title, why), flush=True)
        except Exception:
            bad += 1
            print("not ok %d - %s" % (number, title))
            for line in traceback.format_exc().splitlines():
                print("# " + line, flush=True)
    sys.exit(bad != 0)
