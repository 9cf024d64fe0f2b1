#!/usr/bin/python3
"""hostile.py - requests that mean harm or nothing: each gets one answer, the broker lives, and a refusal leaves no trace

The verbs and their members are read from the daemon's own table, so that a new one is attacked, too.
"""
import json
import os
import random
import re
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import SRC, Broker, Cloud, Tap, until  # noqa: E402
import schemas  # noqa: E402

t = Tap()
SEED = int(os.environ.get("GPUB_SEED", "1"))
rnd = random.Random(SEED)
READS = {"offers": "filter explain limit cursor group_by", "leases": "all owner state limit cursor", "lease": "lease",
         "explain": "lease", "wait": "operation lease key name timeout_ms", "events": "since follow limit lease",
         "logs": "lease boot", "cost": "by since_ms", "ssh-info": "lease"}
FILTER = ("gpu vram_gib total_vram_gib vcpus ram_gib disk_gib market region country provider exclude locality kind arch "
          "interconnect min_driver max_price_udollar max_price_per max_cost_udollar").split()
BIG = 2 ** 63 - 1
SCALARS = [None, True, False, 0, 1, -1, BIG, -BIG - 1, 2 ** 31, 4096, 1e308, -0.5, "", "x", "l1", "op1", "none", "any",
           "x" + "\u00e9" * 200, "xy" + "\U0001f4a9" * 59, "a" * 5000, "../../etc/passwd", "%s%n", "$(reboot)", "a\nb", "\u202e", "l" + "9" * 30,
           "op" + "9" * 30, "H100", "machine", "keep", "18446744073709551615", [], {}]


def value(depth=0):
    r = rnd.random()
    if depth > 3 or r < 0.75:
        return rnd.choice(SCALARS)
    if r < 0.87:
        return [value(depth + 1) for _ in range(rnd.choice((1, 2, 40)))]
    return {rnd.choice(("model", "min", "max", "action", "keep_ms", "from", "to", "proto", "cidr", "u" + "\u00fc" * 70)): value(depth + 1)
            for _ in range(3)}


def table():
    with open(os.path.join(SRC, "core/api.c")) as f:
        code = f.read()
    lists = {name: re.findall(r'\{ "([a-z_]+)", JSON', body) + (["key", "single", "owner"] if "COMMON" in body else [])
             for name, body in re.findall(r"json_member (\w+)\[\] = \{(.*?)\};", code, re.S)}
    verbs = {v: lists.get(m, []) for v, m in re.findall(r'\{ "([a-z.-]+)", +BUS_\w+, +\w+, +\w+, +(\w+)', code)}
    for v, names in READS.items():
        verbs[v] = names.split()
    return verbs


def body_of(members):
    body = {m: value() for m in members if rnd.random() < 0.6}
    if "filter" in members and rnd.random() < 0.8:
        body["filter"] = {m: value() for m in FILTER if rnd.random() < 0.12}
        if rnd.random() < 0.7:
            body["filter"]["gpu"] = [{"model": "H100", **({"min": value()} if rnd.random() < 0.3 else {})}]
    if rnd.random() < 0.8 and "lease" in members:
        body["lease"] = "l1"
    if "key" in members and rnd.random() < 0.8:
        body["key"] = f"k{rnd.random()}"
    if rnd.random() < 0.1:
        body["x" + "\u00e9" * 100] = 1
    body.pop("follow", None)
    body["single"] = True
    return body


def count(b, what):
    db = sqlite3.connect(f"file:{b.state}/gpubroker.db?mode=ro", uri=True)
    try:
        return db.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
    finally:
        db.close()


def fuzz(b):
    verbs, silent, odd, wrong, accepted = table(), [], [], [], 0
    ops = count(b, "op")
    for i in range(int(os.environ.get("GPUB_FUZZ", "3000"))):
        verb = rnd.choice(sorted(verbs))
        body = body_of(verbs[verb])
        if verb == "wait":
            body["timeout_ms"] = rnd.choice((1, -1, BIG, "x", 2.5))
            for name in ("lease", "name", "operation") if body["timeout_ms"] == BIG else ("lease",):
                body.pop(name, None)  # a wait without end that is right is not answered
        text = json.dumps(body)
        if len(text) > 60000:
            continue
        rid = b.send(verb, body)
        r = b.recv(rid, 5000)
        if r is None:
            silent.append((verb, text[:300]))
            if b.proc.poll() is not None or len(silent) > 3:
                break
            continue
        kind, got = r
        accepted += kind == "accepted"
        if kind == "error":
            if schemas.problems("error", got) or not isinstance(got.get("message"), str) or not got["message"]:
                wrong.append((verb, got, text[:300]))
            if got["code"] == "internal":
                odd.append((verb, got, text[:300]))
    t.eq(silent[:3], [], f"every request is answered (GPUB_SEED={SEED})")
    t.eq(odd[:3], [], "none with an internal error")
    t.eq(wrong[:3], [], "every error says what is wrong")
    t.eq(count(b, "op") - ops, accepted, f"operations are stored for the {accepted} that were accepted only")
    t.ok(b.proc.poll() is None and b.ask("ping"), "the broker lives")


def frames(b):
    sock, kinds = b.dealer(), {}
    good = [b"GPUB/1", b"ping", b"id", b"{}"]
    cases = {"nothing": [b""], "one": [b"x"], "three": [*good[:2], b"m"], "nine": [*good[:2], b"n", b"{}"] + [b"x"] * 5,
             "version": [b"GPUB/2", b"ping", b"o", b"{}"],
             "verb": [good[0], b"\xff\xfe", b"v", b"{}"], "id": [*good[:2], b"i" * 65, b"{}"], "empty id": [*good[:2], b"", b"{}"],
             "array": [*good[:2], b"a", b"[]"], "not json": [*good[:2], b"b", b"{"], "twice": [*good[:2], b"c", b'{"a":1,"a":2}'],
             "deep": [*good[:2], b"d", b'{"a":' * 17 + b"1" + b"}" * 17], "wide": [*good[:2], b"e", b'{"a":[' + b"1," * 5000 + b"1]}"],
             "big": [*good[:2], b"f", b'{"a":"' + b"x" * 70000 + b'"}'], "nul": [*good[:2], b"g", b'{"a":"\\u0000"}'],
             "utf-8": [*good[:2], b"h", b'{"a":"\xff"}'], "surrogate": [*good[:2], b"j", b'{"a":"\\ud800"}'],
             "huge number": [*good[:2], b"k", b'{"a":' + b"9" * 400 + b"}"], "verb of 60k": [good[0], b"v" * 60000, b"l", b"{}"]}
    for name, parts in cases.items():
        sock.send_multipart(parts)
    sock.send_multipart([*good[:2], b"last", b"{}"])
    while sock.poll(5000):
        _, kind, rid, _ = sock.recv_multipart()
        kinds.setdefault(rid, []).append(kind)
        if rid == b"last":
            break
    t.eq(kinds.get(b"last"), [b"final"], "after every broken frame a good one is answered")
    t.eq({k.decode(): len(v) for k, v in kinds.items() if len(v) != 1}, {}, "no broken one is answered twice")
    t.eq({k: v for k, v in kinds.items() if k in (b"a", b"b", b"c", b"d", b"e", b"g", b"h", b"j", b"k") and v != [b"error"]}, {},
         "those with an id get an error")
    sock.close(0)


def ghosts(b):
    """Those who follow, wait or flood and vanish."""
    for _ in range(200):
        s = b.dealer()
        b.send("events", {"follow": True}, s)
        b.send("wait", {"operation": "op1"}, s)
        s.close(0)
    b.ask("pause", {"provider": "shadeform"})
    b.ask("resume", {"provider": "shadeform"})
    t.ok(b.ask("ping"), "followers that vanish harm nobody")
    s = b.dealer()
    s.rcvhwm = 1
    for _ in range(300):
        b.send("offers", {"filter": {}, "explain": True, "limit": 1000}, s)
    t.ok(b.ask("ping", {}, 10000), "nor does one that asks and never reads")
    s.close(0)


def flood(b):
    """10,000 dry runs, 500 at a time: each answered, most with an order or busy."""
    sock, answers, left, flying = b.dealer(), {}, 10000, 0
    until(lambda: b.try_ask("rent", {"filter": {"gpu": [{"model": "H100"}]}, "dry_run": True})[0] == "final", 20, "a dry run")
    while left or flying:
        while left and flying < 500:
            b.send("rent", {"filter": {"gpu": [{"model": "H100"}]}, "dry_run": True}, sock)
            left, flying = left - 1, flying + 1
        if not sock.poll(10000):
            break
        _, kind, _, body = sock.recv_multipart()
        name = kind.decode() if kind == b"final" else json.loads(body)["code"]
        answers[name] = answers.get(name, 0) + 1
        flying -= 1
    t.eq((left, flying), (0, 0), f"10,000 dry runs are answered: {answers}")
    t.ok(set(answers) <= {"final", "busy"}, "with an order or busy")
    sock.close(0)


def main():
    with Cloud("shadeform") as cloud, Broker(cloud.provider(), limits={"leases": 3}) as b:
        b.offers_there()
        b.accepted("rent", {"key": "first", "filter": {"gpu": [{"model": "H100"}]}})
        t.run(frames, b)
        t.run(fuzz, b)
        t.run(ghosts, b)
        t.run(flood, b)
        t.ok(not b.logged("runtime error") and not b.logged("Sanitizer"), "no sanitizer has anything to say")
        t.ok(b.ask("ping")["epoch"] == 1, "and it is still the same process")
    t.done()


main()
