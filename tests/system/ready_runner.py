#!/usr/bin/python3 -I
"""ready_runner.py - stands in for gpubroker-runner: every machine is what was paid for, at once

For tests of the books, which want thousands of leases and no machine.  It answers what docs/children.md says of the
ssh runner; of the kube runner it has nothing to say.
"""
import json
import socket
import struct
import sys

HELLO, CONFIG, READY, CALL, SECRET, ITEM, ACK, RESULT, CANCEL, LOG, PING = range(1, 12)
HEADER = struct.Struct("<IIHH")
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "R" * 43


def answer(call):
    value = {"hostkey": HOST_KEY, "user": "root", "facts": {}}
    if call["call"] == "run":
        value.update(code="ok", step="done", log_tail=[])
    return {"kind": "ok", "value": value}


def main():
    s = socket.socket(fileno=3)

    def send(kind, call, body):
        text = json.dumps(body).encode()
        s.sendall(HEADER.pack(len(text), call, kind, 0) + text)

    def read(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                sys.exit(0)
            data += more
        return data

    send(HELLO, 0, {"role": sys.argv[1].lstrip("-"), "wire": [1, 1], "version": "0", "pid": 0})
    while True:
        n, call, kind, _ = HEADER.unpack(read(HEADER.size))
        body = read(n)
        if kind == CONFIG:
            send(READY, 0, {"kind": "ok"})
        elif kind == CALL:
            send(RESULT, call, answer(json.loads(body)))
        elif kind == PING:
            send(PING, 0, {})


main()
