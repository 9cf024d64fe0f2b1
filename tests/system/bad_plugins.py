#!/usr/bin/python3
"""bad_plugins.py - each misbehaving plugin beside a good one: the broker and the good one serve on

No machine is booted: what is asked is whether anybody else notices, and whether `providers` says what happened.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import TIMES, Broker, Tap, until  # noqa: E402

t = Tap()
SOON_MS = 2000  # for answers from memory, on a machine that is busy with other tests

# plugin, the state that is reached, what `providers` says then (a part of it)
PLUGINS = [
    ("crashes-in-list", ("down", "quarantined", "up", "starting"), "signal"),
    ("hangs-in-create", ("up",), None),
    ("prints", ("up",), None),
    ("garbage", ("up",), None),
    ("emits-forever", ("up",), None),
    ("slow", ("up",), None),
    ("writes", ("up",), None),
    ("old-abi", ("down", "quarantined", "starting"), "ABI"),
    ("too-small", ("down", "quarantined", "starting"), "struct"),
    ("lacks-remove", ("down", "quarantined", "starting"), "remove"),
    ("no-entry", ("down", "quarantined", "starting"), "gpub_provider_entry"),
]


def served(b, name):
    """What everybody asks for, while the bad one does what it does."""
    worst = 0
    for verb, body in (("ping", {}), ("leases", {}), ("offers", {"filter": {}}), ("providers", {})) * 10:
        began = time.monotonic()
        r = b.try_ask(verb, body, 10000)
        worst = max(worst, time.monotonic() - began)
        if not r or r[0] != "final":
            t.ok(False, f"{name}: {verb} is answered")
            return
    t.ok(worst * 1000 < SOON_MS, f"{name}: ping, leases, offers and providers are answered ({worst * 1000:.0f} ms at worst)")


def good_life(b, name):
    """Create, look, remove at the good one."""
    a = b.accepted("rent", {"key": "k", "filter": {"gpu": [{"model": "L40S"}]}})
    lease = b.wait_state(a["lease"], "booting", "reachable")
    t.eq(lease["attempts"][0]["state"], "created", f"{name}: the good one rents")
    b.accepted("release", {"key": "r", "lease": a["lease"]})
    until(lambda: b.lease(a["lease"])["state"] in ("released", "failed-empty"), 15, "released")
    t.ok(True, f"{name}: and releases")


def said(b, name, states, text):
    def look():
        p = next(p for p in b.ask("providers")["providers"] if p["name"] == "bad")
        told = not text or text in json.dumps(p)
        return p if p["state"] in states and told else None
    try:
        p = until(look, 10, name)
        t.ok(True, f"{name}: providers says {p['state']}{', ' + repr(text) if text else ''}")
    except TimeoutError:
        t.ok(False, f"{name}: providers says {states} and {text!r}")
        print("# " + json.dumps(b.ask("providers")["providers"]))


def beside(name, states, text):
    providers = ({"name": "good", "plugin": "good", "address": "192.0.2.1", "offers_every": "1s", "reconcile_every": "1s"},
                 {"name": "bad", "plugin": name, "offers_every": "1s", "reconcile_every": "1s",
                  **({"secrets": {"api_key": "canary-key-0123456789"}} if name == "prints" else {})})
    with Broker(*providers, times=TIMES + ",lag=500,listing=1500") as b:
        b.offers_there()
        served(b, name)
        said(b, name, states, text)
        good_life(b, name)
        served(b, name)
        t.ok(b.proc.poll() is None, f"{name}: gpubrokerd lives")
        t.ok(not b.logged("canary"), f"{name}: no secret in the log")


def main():
    for row in PLUGINS:
        t.run(beside, *row)
    t.done()


main()
