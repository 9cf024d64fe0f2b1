"""fake.py - what every fake cloud shares: server, control calls, client; installed for authors of providers, too

A fake is a process:   /usr/bin/python3 tests/clouds/shadeform.py [--port 0] [--api-key KEY] [--nodes FILE] ...
It prints one line when it serves:   {"url": "http://127.0.0.1:PORT/v1", "control": "http://127.0.0.1:PORT/_fake"}
and lives until SIGTERM or until its stdin, when that is a pipe, is closed (--stay: ignore stdin).

Time is the fake's own: wall time plus what was `advance`d.  A machine walks through its cloud's phases by itself,
takes its address from the pool of nodes (or from the --on-create hook, or an invented one of 203.0.113.0/24 when
there is neither), bills from running to ended, and obeys its kill switch.

CONTROL CALLS (JSON in, JSON out, no key; stable)
  GET    /_fake/state                   {"now_ms", "cloud", "spec": null or why requests are not validated, "violations": [...]}
  GET    /_fake/machines                the full truth, ended ones included: [{"id", "name", "status", "details", "foreign",
                                        "tags", "node", "created_ms", "active_ms", "ended_ms", "gone_ms", "kill_at_ms",
                                        "price_udollar", "cost_udollar", "request"}]
  POST   /_fake/machines                add a machine that somebody else made: {"name", "tags": [...]} -> {"id"}; or a second one
                                        of the same create: {"twin_of": ID}
  POST   /_fake/machines/ID             {"do": "preempt" | "vanish" | "fail" | "end" | "status", "status": S, "details": D,
                                        "configuration": {...}}: reclaimed | gone without a trace | error state | as if
                                        deleted by hand | stuck in status S until {"do": "status", "status": null};
                                        {"do": "tags", "tags": [...]}: others now
  GET    /_fake/bill                    {"total_udollar", "rate_udollar", "running": N, "machines": {ID: udollar}}
  GET    /_fake/counters                calls per endpoint since start (answered or not): {"create": 3, ...}
  GET    /_fake/requests[?since=N]      log: [{"n", "endpoint", "method", "path", "query", "body", "status", "faults", "auth"}]
  GET    /_fake/wait?endpoint=E&count=N[&timeout=S]   answers when endpoint E was called N times; 408 when it was not
  GET    /_fake/wait?status=S&count=N[&timeout=S]     answers when N machines of ours are in status S ("gone" too)
  POST   /_fake/faults                  {"on": endpoint or "*", "kind": K, "times": 1 (-1: for ever), "skip": 0, ...} or a list
  GET    /_fake/faults                  those still armed       DELETE /_fake/faults   disarm all
  POST   /_fake/advance                 {"seconds": 3600}
  POST   /_fake/nodes                   {"nodes": [{"ip", "port", "user", "authorized_keys": path or absent}]}: put real
                                        machines in the pool; a create takes one and writes its ssh keys to that file, its
                                        end gives it back and empties the file; when all are taken a machine stays pending
  GET    /_fake/nodes                   the free ones
  GET    /_fake/keys                    the ssh keys of the account, where the cloud keeps some
  GET    /_fake/catalog                 POST /_fake/catalog  replace the catalog, in the cloud's own form
  POST   /_fake/config                  {"delays": {PHASE: seconds, ...}, "lag": seconds}: for machines created from now on

HOOKS: --on-create CMD, --on-active CMD, --on-delete CMD are run by /bin/sh in a thread of their own.  Stdin is
  {"id", "name", "ip": null or the address, "user", "type", "region", "image", "configuration", "gpus": {} or {"count",
  "name", "memory_mib"} as delivered, "ssh_public_keys": [...], "user_data": base64 or null, "user_data_kind": "script" |
  "cloud" | "none", "node": null or what on-create printed}.  on-create prints {"ip", "port", "user"}, and when it fails
  the machine goes to the error state; on-active is where a cloud that runs its start-up script after boot has it run.
  `tests/nodes/node.py create` and `destroy` serve as the first and the last.

FAULTS, for the next `times` calls of an endpoint (after `skip` calls went by unharmed)
  before the effect   status {"status", "body", "headers"} · drop (close, no answer) · delay {"seconds"} ·
                      and each cloud's presets: out-of-stock no-money unauthorized forbidden throttled {"retry_after"}
                      not-found broken
  after the effect    lost-reply (close, no answer) · hang {"seconds"} (then close) · reply {"status", "body"} ·
                      bad-gateway · garbage · huge {"bytes": 10485760} · truncated (JSON cut, length right) ·
                      short-body (length promises more than comes) · nulls {"keep": [names]} · set {"fields": {...}} on
                      every object that has the field · empty-list · partial-list {"keep": N} · duplicate-rows · shuffle
  on create           late {"seconds"}: not in list, find or info until then · late-error {"details", "seconds"}: accepted,
                      then error · wrong-gpu {"configuration": {...}} · slow-boot {"seconds"} · preempted {"seconds"}
"""
import argparse
import copy
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import faults
import spec
from machines import Machine, Park

CONTROL = "/_fake"


class Reply:
    """An answer: body is None, bytes, or something for JSON; close means that nothing is sent."""

    def __init__(self, status=200, body=None, headers=None):
        self.status, self.body, self.headers = status, body, dict(headers or {})
        self.close, self.promise = False, 0

    def bytes(self):
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


class Request:
    def __init__(self, method, path, query, headers, body):
        self.method, self.path, self.query, self.headers, self.raw = method, path, query, headers, body
        self.endpoint, self.params, self.faults = None, {}, []
        try:
            self.body = json.loads(body) if body else None
        except ValueError:
            self.body = None

    def fault(self, kind):
        """The armed fault of this kind that the handler itself must act out, or None."""
        return next((f for f in self.faults if f["kind"] == kind), None)


class Cloud:
    """Subclass: name, prefix, routes [(method, regex, endpoint, handler)], presets, and the methods below."""

    name, prefix, routes, presets, spec_file = "cloud", "/v1", [], {}, None
    phases, running, ending, error = [], "active", "deleting", "error"
    own_faults = ()
    delays = {}

    def __init__(self, options):
        self.options, self.delays = options, dict(self.delays)
        self.catalog = json.load(open(options.catalog)) if options.catalog else self.default_catalog()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.park = Park(self, options)
        self.faults = faults.Faults(self)
        self.counters, self.log = {}, []
        self.validator = spec.load(options.specs, self.spec_file, self.spec_tweaks)

    def default_catalog(self):
        return {}

    def spec_tweaks(self, document):
        """Where what the service really sends differs from its own specification."""

    def authorised(self, request):
        return True

    def unauthorised(self):
        return self.preset("unauthorized", {})

    def no_route(self, request):
        return Reply(404, {"message": "no such path"})

    def invalid(self, text):
        return Reply(400, {"message": text})

    def preset(self, kind, fault):
        status, body, headers = self.presets[kind]
        if kind == "throttled" and fault.get("retry_after"):
            headers = dict(headers, **{"Retry-After": str(fault["retry_after"])})
        return Reply(status, body, headers)

    def add_foreign(self, wanted):
        raise NotImplementedError

    # ---- one request from the wire to its answer

    def route(self, request):
        for method, pattern, endpoint, handler in self.routes:
            m = method == request.method and re.fullmatch(self.prefix + pattern, request.path)
            if m:
                request.endpoint, request.params = endpoint, m.groupdict()
                return handler
        return None

    def serve(self, request):
        handler = self.route(request)
        with self.lock:
            request.faults = self.faults.take(request.endpoint) if handler else []
            entry = self.note(request)
            self.changed.notify_all()
        reply = self.answer(request, handler)
        with self.lock:
            entry["status"] = 0 if reply.close else reply.status
        return reply

    def answer(self, request, handler):
        if not handler:
            return self.no_route(request)
        reply = faults.before(self, request)
        if reply:
            return reply
        if not self.authorised(request):
            return self.unauthorised()
        wrong = self.validator.request(request)
        if wrong:
            return self.invalid(wrong)
        with self.lock:
            self.park.settle()
            reply = handler(self, request)
            self.park.settle()
            self.changed.notify_all()
        self.validator.reply(request, reply)
        return faults.after(request, reply)

    def note(self, request):
        endpoint = request.endpoint or "unknown"
        self.counters[endpoint] = self.counters.get(endpoint, 0) + 1
        entry = {"n": len(self.log), "endpoint": endpoint, "method": request.method, "path": request.path,
                 "query": request.query, "body": request.body, "status": None,
                 "faults": [f["kind"] for f in request.faults], "auth": self.authorised(request)}
        self.log.append(entry)
        return entry

    # ---- control calls

    def control(self, request):
        path = request.path[len(CONTROL):].strip("/").split("/")
        name = request.method.lower() + "_" + path[0]
        call = getattr(self, "control_" + name, None)
        if not call:
            return Reply(404, {"error": "no control call %s %s" % (request.method, request.path)})
        try:
            if name == "get_wait":
                return call(request)
            with self.lock:
                self.park.settle()
                result = call(request, *path[1:])
                self.park.settle()
                self.changed.notify_all()
            return Reply(200, result if result is not None else {})
        except (KeyError, ValueError, TypeError) as e:
            return Reply(400, {"error": "%s: %s" % (type(e).__name__, e)})

    def control_get_state(self, request):
        return {"now_ms": self.park.now_ms(), "cloud": self.name, "spec": self.validator.why_not,
                "violations": self.validator.violations}

    def control_get_machines(self, request, which=None):
        return [m.truth() for m in self.park.all.values() if which in (None, m.id)]

    def control_post_machines(self, request, which=None):
        body = request.body or {}
        if "twin_of" in body:
            return {"id": self.twin(self.park.all[body["twin_of"]]).id}
        if which is None:
            return {"id": self.add_foreign(body).id}
        self.park.order(self.park.all[which], request.body)
        return None

    def twin(self, m):
        """What a create that was carried out twice leaves behind."""
        twin = Machine(self.park, m.name, list(m.tags), m.price_udollar, request=m.request)
        twin.extra, twin.hook = copy.deepcopy(m.extra), m.hook
        return self.park.add(twin)

    def control_get_bill(self, request):
        return self.park.bill()

    def control_get_counters(self, request):
        return self.counters

    def control_get_requests(self, request):
        return self.log[int(request.query.get("since", 0)):]

    def control_get_wait(self, request):
        want, q = int(request.query.get("count", 1)), request.query
        deadline = time.monotonic() + float(q.get("timeout", 10))

        def have():
            self.park.settle()
            if "endpoint" in q:
                return self.counters.get(q["endpoint"], 0)
            return sum(m.status == q["status"] and not m.foreign for m in self.park.all.values())

        with self.changed:
            while have() < want:
                left = deadline - time.monotonic()
                if left <= 0:
                    return Reply(408, {"error": "%d of %d" % (have(), want)})
                self.changed.wait(min(left, 0.05))
        return Reply(200, {})

    def control_post_faults(self, request):
        for f in request.body if isinstance(request.body, list) else [request.body]:
            self.faults.arm(f)

    def control_get_faults(self, request):
        return self.faults.armed

    def control_delete_faults(self, request):
        self.faults.armed.clear()

    def control_post_advance(self, request):
        self.park.offset += float(request.body["seconds"])

    def control_get_nodes(self, request):
        return {"nodes": self.park.nodes}

    def control_post_nodes(self, request):
        self.park.add_nodes(request.body["nodes"])

    def control_get_catalog(self, request):
        return self.catalog

    def control_post_catalog(self, request):
        self.catalog = request.body

    def control_post_config(self, request):
        for phase, seconds in request.body.get("delays", {}).items():
            self.delays[phase]  # a name that does not exist is a mistake of the test
            self.delays[phase] = float(seconds)
        self.park.lag = float(request.body.get("lag", self.park.lag))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: 40 ms otherwise
    cloud = None

    def log_message(self, *args):
        pass

    def handle_one(self):
        url = urllib.parse.urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(self.command, urllib.parse.unquote(url.path),
                          dict(urllib.parse.parse_qsl(url.query)), self.headers, self.rfile.read(length))
        if request.path.startswith(CONTROL + "/"):
            self.send(self.cloud.control(request))
        else:
            self.send(self.cloud.serve(request))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_one

    def send(self, reply):
        if reply.close:
            self.close_connection = True
            return
        body = reply.bytes()
        self.send_response(reply.status)
        if "Content-Type" not in reply.headers and body:
            self.send_header("Content-Type", "application/json")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + reply.promise))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True
        if reply.promise:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that went away is no news
            super().handle_error(request, client_address)


def options(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--bind", default="127.0.0.1")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--api-key", default="test-key")
    p.add_argument("--catalog", help="JSON file in the cloud's own form")
    p.add_argument("--nodes", help='JSON file: [{"ip", "port", "user"}]')
    p.add_argument("--on-create", help="command that boots a machine and prints where it listens")
    p.add_argument("--on-active", help="command run once the machine is active")
    p.add_argument("--on-delete", help="command that ends it")
    p.add_argument("--lag", type=float, default=0, help="seconds until a created machine shows in listings")
    p.add_argument("--specs", default=os.environ.get("GPUB_SPECS"), help="folder with the cloud's OpenAPI file")
    p.add_argument("--stay", action="store_true", help="do not end with stdin")
    return p


def serve(cloud, bind, port):
    """An HTTP server of this cloud (of its control calls alone when it has no routes) in a thread."""
    server = Server((bind, port), type("Handler", (Handler,), {"cloud": cloud}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def wait_for_the_end(stay):
    signal.signal(signal.SIGTERM, lambda *a: os._exit(0))
    signal.signal(signal.SIGINT, lambda *a: os._exit(0))
    while stay or not select.select([0], [], [], 3600)[0] or os.read(0, 4096):
        if stay:
            signal.pause()


def main(cloud_class, description):
    run(cloud_class, options(description).parse_args())


def run(cloud_class, opt):
    cloud = cloud_class(opt)
    server = serve(cloud, opt.bind, opt.port)
    base = "http://%s:%d" % (opt.bind, server.server_port)
    print(json.dumps({"url": base + cloud.prefix, "control": base + CONTROL}), flush=True)
    wait_for_the_end(opt.stay)


# ---- the other side: what tests import

class Control:
    """with Control("shadeform") as fake: fake.post("faults", {...}); fake.get("machines")"""

    def __init__(self, cloud, *args):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), cloud + ".py")
        self.process = subprocess.Popen([sys.executable, script, *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.hello = json.loads(self.process.stdout.readline())
        self.url = self.hello["url"]
        self.base = urllib.parse.urlsplit(self.hello["control"])

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def call(self, method, what, body=None):
        conn = http.client.HTTPConnection(self.base.netloc, timeout=120)
        conn.request(method, "%s/%s" % (self.base.path, what), None if body is None else json.dumps(body))
        answer = conn.getresponse()
        result = json.loads(answer.read() or b"null")
        conn.close()
        if answer.status != 200:
            raise RuntimeError("%s %s: %d %s" % (method, what, answer.status, result))
        return result

    def get(self, what):
        return self.call("GET", what)

    def post(self, what, body):
        return self.call("POST", what, body)

    def fault(self, on, kind, **more):
        return self.post("faults", dict(more, on=on, kind=kind))

    def calm(self):
        return self.call("DELETE", "faults")
