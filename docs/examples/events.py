#!/usr/bin/python3
"""Print every event once and in order.  The SUB socket only hints; `events` on the request socket is the truth."""
import json, os
import zmq

context = zmq.Context()
broker = context.socket(zmq.DEALER)
broker.setsockopt(zmq.LINGER, 0)
broker.connect(os.environ.get("GPUBROKER_ENDPOINT", "ipc:///run/gpubroker/bus"))
asked = 0


def ask(verb, body):
    global asked
    asked += 1
    request_id = str(asked).encode()
    broker.send_multipart([b"GPUB/1", verb, request_id, json.dumps(body).encode()])
    while broker.poll(5000):
        _, kind, answers, reply = broker.recv_multipart()
        if answers == request_id:
            if kind == b"error":
                raise SystemExit(reply.decode())
            return json.loads(reply)
    raise SystemExit("the broker does not answer")


def show(event):
    print(event["seq"], event["topic"], event.get("text", ""), flush=True)
    return event["seq"]


def catch_up(last):
    while True:
        reply = ask(b"events", {"since": last, "limit": 100})
        for event in reply["events"]:
            last = show(event)
        if not reply["events"]:
            return reply["epoch"], last


hints = context.socket(zmq.SUB)
hints.setsockopt(zmq.SUBSCRIBE, b"")
for endpoint in ask(b"ping", {})["events"]:
    hints.connect(endpoint)
epoch, last = catch_up(0)
while True:
    if not hints.poll(3000):  # no beat: the broker restarts, or we lost it
        epoch, last = catch_up(last)
        continue
    topic, head, body = hints.recv_multipart()
    head = json.loads(head)
    if head["epoch"] == epoch and head["seq"] == last + 1 and topic != b"beat":
        last = show(json.loads(body))
    elif head["epoch"] != epoch or head["seq"] > last:  # something was missed
        epoch, last = catch_up(last)
