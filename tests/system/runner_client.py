"""Plays gpubrokerd to a gpubroker-runner: the framing of core/wire.h over a socketpair on fd 3."""
import json
import os
import select
import socket
import struct
import subprocess
import time

HELLO, CONFIG, READY, CALL, SECRET, ITEM, ACK, RESULT, CANCEL, LOG = range(1, 11)
BUILD = os.environ.get("GPUB_BUILDDIR", os.path.join(os.path.dirname(__file__), "..", ".."))


class Runner:
    def __init__(self, role, secrets=(), config=None, env=None):
        ours, theirs = socket.socketpair()

        def on_fd_3():
            os.dup2(theirs.fileno(), 3, inheritable=True)

        self.process = subprocess.Popen([os.path.join(BUILD, "gpubroker-runner"), "--" + role],
                                        preexec_fn=on_fd_3, close_fds=False, env=dict(os.environ, **(env or {})))
        theirs.close()
        self.sock, self.buffer, self.next = ours, b"", 1
        self.results, self.items, self.logs, self.secrets = {}, {}, [], {}
        self.hello = self.ready = None
        for name, value in secrets:
            self.send(SECRET, 0, name.encode() + b"\0" + value)
        self.send(CONFIG, 0, json.dumps(config or {}).encode())
        self.pump(lambda: self.ready, 10)

    def send(self, kind, call, body):
        self.sock.sendall(struct.pack("<IIHH", len(body), call, kind, 0) + body)

    def start(self, name, args, deadline_ms=60000, token=None, **more):
        call, self.next = self.next, self.next + 1
        if token is not None:
            self.send(SECRET, call, b"token\0" + token)
        self.send(CALL, call, json.dumps({"call": name, "deadline_ms": deadline_ms, "args": args, **more}).encode())
        self.items[call] = []
        return call

    def cancel(self, call):
        self.send(CANCEL, call, b"{}")

    def frame(self):
        if len(self.buffer) < 12:
            return False
        n, call, kind, _ = struct.unpack("<IIHH", self.buffer[:12])
        if len(self.buffer) < 12 + n:
            return False
        body, self.buffer = self.buffer[12:12 + n], self.buffer[12 + n:]
        if kind == SECRET:
            name, value = body.split(b"\0", 1)
            self.secrets[call, name.decode()] = value
            return True
        body = json.loads(body)
        if kind == HELLO:
            self.hello = body
        elif kind == READY:
            self.ready = body
        elif kind == RESULT:
            self.results[call] = body
        elif kind == ITEM:
            self.items[call].append(body)
        elif kind == LOG:
            self.logs.append(body)
        return True

    def pump(self, until, seconds):
        """Reads frames until the condition holds; its value, or None when the time is up."""
        end = time.monotonic() + seconds
        while True:
            while self.frame():
                pass
            value = until()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return None
            got = self.sock.recv(1 << 16)
            if not got:
                return until() or None
            self.buffer += got

    def wait(self, call, seconds=90):
        return self.pump(lambda: self.results.get(call), seconds)

    def call(self, name, args, seconds=90, **more):
        return self.wait(self.start(name, args, **more), seconds)

    def close(self):
        self.sock.close()
        return self.process.wait(10)
