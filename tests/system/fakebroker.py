"""A broker of canned answers for tests of clients: GPUB/1 over one ROUTER socket in a thread.

    with Broker() as b:
        b.on["ping"] = lambda body: [("final", {...})]
        run the client with b.env; then look at b.seen, a list of (verb, body)

An answer is a list of (kind, object); a number between them is a pause in seconds; None is silence.
"""
import json
import os
import tempfile
import threading
import time

import zmq


class Broker:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gpubroker-fake-")
        self.endpoint = "ipc://%s/bus" % self.folder
        self.env = dict(os.environ, GPUBROKER_ENDPOINT=self.endpoint, HOME=self.folder)
        self.on = {}
        self.seen = []
        self.faults = []
        self.restart = threading.Event()
        self.context = zmq.Context()
        self.changed = threading.Condition()
        self.stopping = False

    def __enter__(self):
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join(10)
        self.context.term()

    def bodies(self, verb):
        return [body for v, body in list(self.seen) if v == verb]

    def wait_for(self, verb, n=1, seconds=15):
        """The n-th request with this verb; raises when it does not come in time."""
        end = time.monotonic() + seconds
        with self.changed:
            while len(self.bodies(verb)) < n:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError("%s was not asked %d times; seen %s" % (verb, n, [v for v, _ in self.seen]))
                self.changed.wait(left)
        return self.bodies(verb)[n - 1]

    def _serve(self):
        while not self.stopping:
            self.restart.clear()
            with self.context.socket(zmq.ROUTER) as s:
                s.linger = 0
                s.bind(self.endpoint)
                while not self.stopping and not self.restart.is_set():
                    if s.poll(20):
                        self._answer(s, s.recv_multipart())

    def _answer(self, s, frames):
        who, magic, verb, ident, text = frames
        body = json.loads(text)
        if magic != b"GPUB/1" or not 1 <= len(ident) <= 64 or not isinstance(body, dict):
            self.faults.append(frames)
        verb = verb.decode()
        with self.changed:
            self.seen.append((verb, body))
            self.changed.notify_all()
        answers = self.on.get(verb)
        if answers is None:
            answers = lambda _: [("error", {"code": "unknown-verb", "message": "no " + verb, "retryable": False})]
        for answer in answers(body) or []:
            if isinstance(answer, (int, float)):
                time.sleep(answer)
                continue
            kind, obj = answer
            s.send_multipart([who, b"GPUB/1", kind.encode(), ident, json.dumps(obj).encode()])
