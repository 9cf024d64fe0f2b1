#!/usr/bin/python3
"""Rent the cheapest machine with one H100 for two hours, wait until it is ready.  Needs only pyzmq."""
import json, os, sys, uuid
import zmq

broker = zmq.Context().socket(zmq.DEALER)
broker.setsockopt(zmq.LINGER, 0)
broker.setsockopt(zmq.RCVTIMEO, 3600 * 1000)
broker.connect(os.environ.get("GPUBROKER_ENDPOINT", "ipc:///run/gpubroker/bus"))

# The key makes it safe to send this again, from anywhere: it is the same machine, never a second one.
want = {"key": str(uuid.uuid4()), "filter": {"gpu": [{"model": "H100"}]}, "ttl_ms": 2 * 3600 * 1000}
broker.send_multipart([b"GPUB/1", b"rent", b"1", json.dumps(want).encode()])
kind = b"accepted"
while kind in (b"accepted", b"progress"):
    _, kind, _, body = broker.recv_multipart()
    print(kind.decode(), body.decode(), flush=True)
sys.exit(kind != b"final")
