"""faults.py - what can go wrong between a cloud and its client, on demand

Listed at the top of fake.py.  A fault says when (endpoint, skip, times) and what; here is how each is acted out.
"""
import json
import os
import random
import time

ON_CREATE = {"late", "late-error", "wrong-gpu", "slow-boot", "preempted"}


class Faults:
    def __init__(self, cloud):
        self.cloud, self.armed = cloud, []

    def arm(self, fault):
        endpoints = {r[2] for r in self.cloud.routes} | {"*"}
        kinds = ON_CREATE | set(BEFORE) | set(AFTER) | set(self.cloud.presets) | set(self.cloud.own_faults)
        if fault["on"] not in endpoints:
            raise ValueError("no endpoint %r among %s" % (fault["on"], sorted(endpoints)))
        if fault["kind"] not in kinds:
            raise ValueError("no fault %r among %s" % (fault["kind"], sorted(kinds)))
        self.armed.append(dict({"times": 1, "skip": 0}, **fault))

    def take(self, endpoint):
        """The faults of this call, counted down."""
        hit = []
        for f in [f for f in self.armed if f["on"] in ("*", endpoint)]:
            if f["skip"] > 0:
                f["skip"] -= 1
                continue
            hit.append(f)
            f["times"] -= f["times"] > 0
            if f["times"] == 0:
                self.armed.remove(f)
        return hit


def new_reply(like, status, body, headers=None):
    return type(like)(status, body, headers)


def before(cloud, request):
    """Faults that come before the effect: an answer that replaces it, or None."""
    for f in request.faults:
        if f["kind"] in cloud.presets:
            return cloud.preset(f["kind"], f)
        if f["kind"] in BEFORE:
            reply = BEFORE[f["kind"]](cloud, f)
            if reply:
                return reply
    return None


def after(request, reply):
    for f in request.faults:
        if f["kind"] in AFTER:
            AFTER[f["kind"]](reply, f)
    return reply


# ---- before

def status(cloud, f):
    reply = cloud.no_route(None)
    reply.status, reply.body, reply.headers = f["status"], f.get("body"), dict(f.get("headers", {}))
    return reply


def drop(cloud, f):
    reply = cloud.no_route(None)
    reply.close = True
    return reply


def delay(cloud, f):
    time.sleep(f["seconds"])


BEFORE = {"status": status, "drop": drop, "delay": delay}


# ---- after

def lost_reply(reply, f):
    reply.close = True


def hang(reply, f):
    time.sleep(f.get("seconds", 60))
    reply.close = True


def other_reply(reply, f):
    reply.status, reply.body = f.get("status", 200), f.get("body")


def bad_gateway(reply, f):
    reply.status, reply.headers = 502, {"Content-Type": "text/html"}
    reply.body = b"<html><h1>502 Bad Gateway</h1></html>"


def garbage(reply, f):
    reply.body = b"\x00\xff{[" + os.urandom(64)


def huge(reply, f):
    n = f.get("bytes", 10 << 20)
    reply.body = b'{"x":"' + b"a" * (n - 8) + b'"}'


def truncated(reply, f):
    whole = reply.bytes()
    reply.body = whole[:len(whole) // 2]


def short_body(reply, f):
    truncated(reply, f)
    reply.promise = len(reply.body) + 1


def nulls(reply, f):
    keep = set(f.get("keep", ()))

    def blank(x, name=None):
        if name in keep:
            return x
        if isinstance(x, dict):
            return {k: blank(v, k) for k, v in x.items()}
        return [blank(v) for v in x] if isinstance(x, list) else None

    reply.body = blank(reply.body)


def set_fields(reply, f):
    def walk(x):
        if isinstance(x, dict):
            return {k: f["fields"][k] if k in f["fields"] else walk(v) for k, v in x.items()}
        return [walk(v) for v in x] if isinstance(x, list) else x

    reply.body = walk(reply.body)


def on_lists(change):
    """Apply to every list directly in the answer, or to the answer that is one."""
    def act(reply, f):
        body = json.loads(json.dumps(reply.body))
        if isinstance(body, list):
            reply.body = change(body, f)
        elif isinstance(body, dict):
            reply.body = {k: change(v, f) if isinstance(v, list) else v for k, v in body.items()}

    return act


AFTER = {
    "lost-reply": lost_reply,
    "hang": hang,
    "reply": other_reply,
    "bad-gateway": bad_gateway,
    "garbage": garbage,
    "huge": huge,
    "truncated": truncated,
    "short-body": short_body,
    "nulls": nulls,
    "set": set_fields,
    "empty-list": on_lists(lambda rows, f: []),
    "partial-list": on_lists(lambda rows, f: rows[:f.get("keep", len(rows) // 2)]),
    "duplicate-rows": on_lists(lambda rows, f: [r for r in rows for _ in range(2)]),
    "shuffle": on_lists(lambda rows, f: random.sample(rows, len(rows))),
}
