"""h2server.py - a small HTTP/2 server on the h2 package that does what it is told, frame by frame

    with H2Server(handler, tls=(cert, key)) as server:    # without tls: prior knowledge, as http:// means it

handler(exchange) runs when a request has ended (with early=True: when its headers came) and says how it goes on:
reply, reset, goaway, drop, or nothing at all.  server.requests has what came, by connection.
"""
import collections
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

Seen = collections.namedtuple("Seen", "connection method path length")


class Exchange:
    def __init__(self, link, stream, headers):
        self.link, self.stream, self.length = link, stream, 0
        self.method, self.path = headers[":method"], headers[":path"]

    def reply(self, status=200, headers=(), body=b"", trailers=None, interim=None):
        """trailers: a dict behind the body; a reply without body and trailers is one block of headers."""
        c = self.link.h2
        for code in interim or ():
            c.send_headers(self.stream, [(":status", str(code)), ("x-interim", "1")])
        c.send_headers(self.stream, [(":status", str(status)), *dict(headers).items()], end_stream=not body and trailers is None)
        if body or trailers is not None:
            self.link.pending[self.stream] = [body, trailers]
        self.link.flush()

    def part(self, status, body):
        """Headers and some of a body that does not end."""
        self.link.h2.send_headers(self.stream, [(":status", str(status))])
        self.link.h2.send_data(self.stream, body)

    def reset(self, code):
        self.link.h2.reset_stream(self.stream, code)

    def goaway(self, last, code=h2.errors.ErrorCodes.NO_ERROR):
        """last: the highest stream that is answered.  h2 itself would send nothing after a GOAWAY."""
        self.link.raw += b"\0\0\x08\x07\0\0\0\0\0" + last.to_bytes(4, "big") + int(code).to_bytes(4, "big")

    def drop(self):
        self.link.open = False


class Link(threading.Thread):
    """One connection."""

    def __init__(self, server, sock, number):
        super().__init__(daemon=True)
        self.server, self.sock, self.number = server, sock, number
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.exchanges, self.pending, self.raw, self.open = {}, {}, b"", True

    def run(self):
        try:
            if self.server.context:
                self.sock = self.server.context.wrap_socket(self.sock, server_side=True)
            self.h2.initiate_connection()
            self.send()
            while self.open:
                data = self.sock.recv(65536)
                if not data:
                    break
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.send()
        except (OSError, h2.exceptions.ProtocolError) as e:
            self.server.errors.append(repr(e))
        finally:
            self.sock.close()

    def send(self):
        self.sock.sendall(self.h2.data_to_send() + self.raw)
        self.raw = b""

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            self.exchanges[stream] = Exchange(self, stream, dict(event.headers))
            if self.server.early:
                self.handle(stream)
        elif isinstance(event, h2.events.DataReceived):
            self.exchanges[stream].length += len(event.data)
            if not self.server.early:
                self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamEnded) and not self.server.early:
            self.handle(stream)
        elif isinstance(event, h2.events.WindowUpdated):
            self.flush()

    def handle(self, stream):
        x = self.exchanges[stream]
        with self.server.lock:
            self.server.requests.append(Seen(self.number, x.method, x.path, x.length))
        self.server.handler(x)

    def flush(self):
        """As much of every body as its window takes."""
        for stream, (body, trailers) in list(self.pending.items()):
            while body:
                n = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
                if n <= 0:
                    break
                self.h2.send_data(stream, body[:n], end_stream=n == len(body) and trailers is None)
                body = body[n:]
            if body:
                self.pending[stream][0] = body
                continue
            if trailers is not None:
                self.h2.send_headers(stream, list(trailers.items()), end_stream=True)
            del self.pending[stream]


class H2Server:
    def __init__(self, handler, tls=None, early=False):
        self.handler, self.early, self.requests, self.errors = handler, early, [], []
        self.lock, self.context = threading.Lock(), None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
            self.context.set_alpn_protocols(["h2"])
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = "%s://localhost:%d" % ("https" if tls else "http", self.sock.getsockname()[1])

    def accept(self):
        number = 0
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            number += 1
            Link(self, sock, number).start()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
