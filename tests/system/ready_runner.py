#!/usr/bin/python3 -I
"""ready_runner.py - stands in for gpubroker-runner: every machine is what was paid for, at once

For tests of the books, which want thousands of leases and no machine.  It answers what docs/children.md says of the
ssh runner; of the kube runner no more than a cluster of a machine's own needs.  To make one takes WORK_S.
"""
import json
import select
import socket
import struct
import sys
import time

HELLO, CONFIG, READY, CALL, SECRET, ITEM, ACK, RESULT, CANCEL, LOG, PING = range(1, 12)
HEADER = struct.Struct("<IIHH")
WORK_S = 0.2
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "R" * 43


def answer(call):
    value = {"hostkey": HOST_KEY, "user": "root", "facts": {}}
    if call["call"] == "run":
        value.update(code="ok", step="done", log_tail=[])
    elif call["call"] == "render":
        value = {"part": "device-plugin", "text": "none"}
    return {"kind": "ok", "value": value}


def seconds(call):
    return WORK_S if call["args"].get("script") == "standalone" else 0


def main():
    s = socket.socket(fileno=3)

    def send(kind, call, body):
        text = json.dumps(body).encode()
        s.sendall(HEADER.pack(len(text), call, kind, 0) + text)

    def secret(call, name):
        text = name.encode() + b"\0none"
        s.sendall(HEADER.pack(len(text), call, SECRET, 0) + text)

    def read(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                sys.exit(0)
            data += more
        return data

    def take_due():
        while later and later[0][0] <= time.monotonic():
            send(RESULT, *later.pop(0)[1:])

    later = []  # (when, call, answer), in that order: all that takes time takes the same
    send(HELLO, 0, {"role": sys.argv[1].lstrip("-"), "wire": [1, 1], "version": "0", "pid": 0})
    while True:
        while later and not select.select([s], [], [], max(0, later[0][0] - time.monotonic()))[0]:
            take_due()
        n, call, kind, _ = HEADER.unpack(read(HEADER.size))
        body = read(n)
        if kind == CONFIG:
            send(READY, 0, {"kind": "ok"})
        elif kind == CALL:
            asked = json.loads(body)
            for name in ("ca", "cert", "key") if asked["call"] == "kubeconfig" else ():
                secret(call, name)
            if seconds(asked):
                later.append((time.monotonic() + seconds(asked), call, answer(asked)))
            else:
                send(RESULT, call, answer(asked))
        elif kind == PING:
            send(PING, 0, {})
        take_due()


main()
