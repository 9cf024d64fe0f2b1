"""nebius_wire.py - the wire of the fake Nebius: TLS, gRPC, the token exchange, and a line that can be cut

gRPC is served by grpcio with TLS on an inner port; a forwarder in front of it passes bytes on, and cuts the connection
of one call when a reply is to be lost.
"""
import base64
import http.server
import json
import os
import random
import select
import socket
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse
from concurrent import futures

import grpc
import nebius_api
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from google.protobuf import json_format

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kube"))
import certs  # noqa: E402

CODES = {c.name: c for c in grpc.StatusCode}
N = nebius_api.message


# ---- answers

class Reply:
    """What a call is answered: a message, or a code with details; raw bytes instead of the message; or nothing."""

    def __init__(self, status=None, body=None, headers=None):
        self.message, self.raw = body, None
        self.code, self.text, self.details, self.trailers = status or "OK", "", [], dict(headers or {})
        self.close = False
        self.late = False  # an error after the headers; else it is all there is (Trailers-Only)

    status = property(lambda self: self.code)

    def bytes(self):
        return self.raw if self.raw is not None else self.message.SerializeToString()

    def status_bytes(self):
        status = N("google.rpc.Status")(code=CODES[self.code].value[0], message=self.text)
        for d in self.details:
            status.details.add().Pack(d)
        return status.SerializeToString()


def refusal(code, text="", *details, **trailers):
    r = Reply(code)
    r.text, r.details, r.trailers = text, list(details), {k.replace("_", "-"): v for k, v in trailers.items()}
    return r


def service_error(code, retry=0, **details):
    return N("nebius.common.v1.ServiceError")(service="compute", code=code, retry_type=retry, **details)


# ---- faults that change an answer

def on_items(change):
    def act(reply, f):
        if "items" in reply.message.DESCRIPTOR.fields_by_name:
            items = change(list(reply.message.items), f)
            del reply.message.items[:]
            reply.message.items.extend(items)
    return act


def set_fields(reply, f):
    """{"status.state": 77} on the message itself, and on each of its items."""
    rows = list(reply.message.items) if "items" in reply.message.DESCRIPTOR.fields_by_name else [reply.message]
    for row in rows:
        for path, value in f["fields"].items():
            *parents, last = path.split(".")
            at = row
            for name in parents:
                at = getattr(at, name)
            setattr(at, last, value)


def lost(reply, f):
    reply.close = True


def hang(reply, f):
    time.sleep(f.get("seconds", 60))
    reply.close = True


def code_after(reply, f):
    reply.code, reply.text, reply.late = f.get("code", "UNAVAILABLE"), f.get("message", "try again"), True


def garbage(reply, f):
    reply.raw = b"\xff\xff\xff" + os.urandom(64)


def huge(reply, f):
    reply.raw = b"\x0a" + b"\xff" * 4 + b"\x07" + bytes(f.get("bytes", 20 << 20))


def truncated(reply, f):
    whole = reply.bytes()
    reply.raw = whole[:len(whole) - 3] if len(whole) > 8 else b"\x0a\x7f"


def bomb(reply, f):
    """Two bytes an item: small on the wire, large in memory."""
    reply.raw = b"\x0a\x00" * (5 << 20)


def empty(reply, f):
    reply.raw = b""


AFTER = {
    "lost-reply": lost, "hang": hang, "short-body": lost, "bad-gateway": code_after, "code-after": code_after, "garbage": garbage, "huge": huge, "truncated": truncated,
    "bomb": bomb, "empty": empty, "set": set_fields,
    "empty-list": on_items(lambda rows, f: []),
    "partial-list": on_items(lambda rows, f: rows[:f.get("keep", len(rows) // 2)]),
    "duplicate-rows": on_items(lambda rows, f: [r for r in rows for _ in range(2)]),
    "shuffle": on_items(lambda rows, f: random.sample(rows, len(rows))),
}


# ---- gRPC

class Call(grpc.GenericRpcHandler):
    """Every method there is and is not; the cloud answers with a Reply."""

    def __init__(self, answer, forwarder):
        self.answer, self.forwarder = answer, forwarder

    def service(self, details):
        def unary(raw, context):
            reply = self.answer(details.method, dict(details.invocation_metadata), raw, context)
            if reply.close:
                self.forwarder.cut(context.peer())
                context.abort(grpc.StatusCode.UNAVAILABLE, "nobody hears this")
            context.set_trailing_metadata(tuple(reply.trailers.items()))
            if reply.code == "OK" or reply.late:
                context.send_initial_metadata((("x-request-id", "req-%08x" % random.getrandbits(32)),))
            if reply.code != "OK":
                context.set_trailing_metadata((*reply.trailers.items(), ("grpc-status-details-bin", reply.status_bytes())))
                context.abort(CODES[reply.code], reply.text)
            return reply.bytes()

        return grpc.unary_unary_rpc_method_handler(unary)


class Forwarder(socketserver.ThreadingTCPServer):
    """Passes connections on to the inner port; cut() ends the one that a call came over."""

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def __init__(self, bind, port, inner):
        self.inner, self.pairs, self.lock = inner, {}, threading.Lock()
        super().__init__((bind, port), self.Line)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def cut(self, peer):
        with self.lock:
            pair = self.pairs.get(int(peer.rsplit(":", 1)[1]), ())
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    class Line(socketserver.BaseRequestHandler):
        def handle(self):
            other = socket.create_connection(("127.0.0.1", self.server.inner))
            number, pair = other.getsockname()[1], (self.request, other)
            with self.server.lock:
                self.server.pairs[number] = pair
            try:
                while True:
                    for s in select.select(pair, [], [])[0]:
                        data = s.recv(1 << 16)
                        if not data:
                            return
                        pair[s is self.request].sendall(data)
            finally:
                with self.server.lock:
                    del self.server.pairs[number]
                other.close()


def serve_grpc(answer, bind, port, authority):
    key, cert = reversed(authority)
    server = grpc.server(futures.ThreadPoolExecutor(32), options=[("grpc.max_send_message_length", -1),
                                                                  ("grpc.max_receive_message_length", -1)])
    credentials = grpc.ssl_server_credentials([(open(key, "rb").read(), open(cert, "rb").read())])
    inner = server.add_secure_port("127.0.0.1:0", credentials)
    forwarder = Forwarder(bind, port, inner)
    server.add_generic_rpc_handlers((Call(answer, forwarder),))
    server.start()
    return server, forwarder


# ---- the token exchange

def b64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Account:
    """A service account with an authorized key; only its public half judges."""

    def __init__(self):
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public, self.id, self.kid = private.public_key(), "serviceaccount-e00robot", "publickey-e00one"
        pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                    serialization.NoEncryption()).decode()
        self.credentials = {"subject-credentials": {"type": "JWT", "alg": "RS256", "private-key": pem, "kid": self.kid,
                                                    "iss": self.id, "sub": self.id}}

    def wrong(self, jwt, now):
        """Why this assertion is no good, or None."""
        try:
            head, body, signature = jwt.split(".")
            header, claims = json.loads(b64(head)), json.loads(b64(body))
            self.public.verify(b64(signature), (head + "." + body).encode(), padding.PKCS1v15(), hashes.SHA256())
        except (ValueError, InvalidSignature) as e:
            return "assertion: %s" % type(e).__name__
        if (header.get("alg"), header.get("typ"), header.get("kid")) != ("RS256", "JWT", self.kid):
            return "header %r" % header
        if (claims.get("iss"), claims.get("sub")) != (self.id, self.id):
            return "claims %r" % claims
        if not claims["iat"] <= now + 5 or not now < claims["exp"] <= claims["iat"] + 300:
            return "assertion is not valid now"
        return None


FORM = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}


def serve_tokens(exchange, metadata, bind, authority):
    """exchange(jwt) -> (status, body) at /oauth2/token/exchange over TLS; metadata() over plain HTTP."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_POST(self):
            form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
            jwt = form.pop("subject_token", "")
            if self.path != "/oauth2/token/exchange" or form != FORM or \
                    self.headers["content-type"] != "application/x-www-form-urlencoded":
                self.send(400, {"error": "invalid_request", "error_description": "form %r" % form})
            else:
                self.send(*exchange(jwt))

        def do_GET(self):
            good = self.path == "/v1/iam/sa/token" and (self.headers["metadata"] or "").lower() == "true"
            self.send(*metadata() if good else (404, {}))

        def send(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            if not isinstance(sys.exc_info()[1], OSError):
                super().handle_error(request, client_address)

    cert, key = authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    tls, plain = Server((bind, 0), Handler), Server((bind, 0), Handler)
    tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
    for s in (tls, plain):
        threading.Thread(target=s.serve_forever, daemon=True).start()
    return tls, plain


def authority(folder):
    """(CA file, (certificate file, key file))"""
    ca = certs.Authority(folder, "fake-nebius")
    return str(ca.cert), tuple(str(p) for p in ca.issue("server", "/CN=127.0.0.1", "serverAuth", ["IP:127.0.0.1"]))


def as_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
