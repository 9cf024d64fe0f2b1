#!/usr/bin/python3
"""upkeep.py - reload, pause, restart and odd requests, on a cloud without network

Freed memory is poisoned in the broker (MALLOC_PERTURB_): what is used after a reload freed it shows.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
HUGE = 2**63 - 1


def provider(b, name="good"):
    return next(p for p in b.ask("providers")["providers"] if p["name"] == name)


def refused(b, verb, body, words):
    try:
        b.accepted(verb, {"key": f"odd-{t.n}", **body})
        t.ok(False, f"refused: {verb} {body}")
    except Refused as e:
        t.ok(e.code == "bad-request" and words in e.body["message"], f"{verb}: {e.body['message']}")


def reload(b):
    b.ask("reload")
    calls = provider(b)["calls"]
    until(lambda: provider(b)["calls"] > calls + 1, what="a provider that goes on after a reload")
    t.eq(provider(b)["state"], "up", "a reload leaves providers as they are")
    t.ok(b.ask("offers", {"filter": H100})["matched"], "and their offers")


def new_providers(b):
    """A reload starts what is new; what cannot be started is told, and costs nobody else anything."""
    fault = f"{b.dir}/faults.json"
    with open(fault, "w") as f:
        f.write("{}")
    good = dict(b.providers[0])
    b.providers += [{**good, "name": "second", "faults_file": fault}, {**good, "name": "third", "key_file": f"{b.dir}/nowhere"}]
    b.write_config()
    told = b.ask("reload")
    t.eq((told["started"], [f["provider"] for f in told["failed"]]), (["second"], ["third"]), "a reload says what it started, and what not")
    t.ok("nowhere" in told["failed"][0]["message"], f"and why: {told['failed'][0]['message']}")
    until(lambda: provider(b, "second")["state"] == "up" and provider(b, "second")["offers"]["count"], 20, "the new one is up")
    t.eq(provider(b, "second").get("error"), None, "the new one lists offers; its option that is named like a secret is none")
    t.eq((provider(b)["state"], [p["name"] for p in b.ask("providers")["providers"]]), ("up", ["good", "second"]), "the old one goes on")
    b.providers[2].pop("key_file")
    b.write_config()
    t.eq(b.ask("reload"), {"started": ["third"], "failed": []}, "put right, the other is started as well")
    b.restart()
    until(lambda: provider(b, "second")["state"] == "up", 20, "it is up again")
    t.eq(provider(b, "second").get("error"), None, "and at a start its option is none, too")
    del b.providers[1:]
    b.write_config()
    try:
        b.ask("reload")
        t.ok(False, "a provider that was removed is refused")
    except Refused as e:
        t.ok("needs a restart" in str(e), f"a provider that was removed is refused: {e}")
    b.restart()


def pause(b):
    b.ask("pause", {"provider": "good"})
    b.restart()
    t.eq(provider(b)["state"], "paused", "a pause outlives a restart")
    b.ask("resume", {"provider": "good"})
    b.restart()
    t.ok(provider(b)["state"] != "paused", "so does its end")
    b.offers_there()


def odd(b):
    refused(b, "rent", {"filter": H100, "ttl_ms": HUGE}, "ttl_ms is 9223372036854775807")
    refused(b, "rent", {"filter": H100, "deadline_ms": 0}, "deadline_ms is 0")
    refused(b, "rent", {"filter": H100, "on_failure": {"action": "keep", "keep_ms": -1}}, "keep_ms is -1")
    refused(b, "rent", {"filter": H100, "on_failure": {"action": "kept"}}, "'kept' is neither keep nor release")
    refused(b, "rent", {"filter": H100, "on_failure": {"action": "keep", "hold": 1}}, "unknown member 'hold'")
    refused(b, "rent", {"filter": H100, "open": [{"proto": "tcp", "from": 90, "to": 80, "cidr": "0.0.0.0/0"}]}, "90-80")
    refused(b, "rent", {"filter": H100, "open": [80]}, "'open': element 0")
    refused(b, "rent", {"filter": {**H100, "max_price_udollar": HUGE}}, "'max_price_udollar' is")
    kind, body = b.try_ask("lease", {"lease": "ü" * 59})
    t.ok(kind == "error" and body.get("message", "").startswith("no lease 'ü"), "a text cut within a letter is still told")
    kind, body = b.try_ask("lease", {"lease": "x" + "ü" * 59})
    t.ok(kind == "error" and body.get("message", "").startswith("no lease 'xü"), "wherever the cut falls")


def waits(b):
    a = b.accepted("rent", {"key": "w", "filter": H100})
    lease = a["lease"]
    b.wait_state(lease, "booting")
    refused(b, "extend", {"lease": lease, "ttl_ms": HUGE}, "ttl_ms is")
    refused(b, "release", {"lease": lease, "drain_timeout_ms": -5}, "drain_timeout_ms is -5")
    kind, body = b.try_ask("wait", {"key": "w", "timeout_ms": 50})
    t.eq((kind, body["code"]), ("error", "timeout"), "a wait by key waits")
    t.eq(b.accepted("rent", {"key": "w", "filter": H100}), a, "a repeated key says the same again")
    until_ms = b.accepted("extend", {"key": "x", "lease": lease, "ttl_ms": 7200000})["expires_ms"]
    b.ask("wait", {"key": "x", "timeout_ms": 5000})
    t.eq(b.lease(lease)["expires_ms"], until_ms, "extend moves the end")
    os.kill(b.children("gpubroker-provider")[0], signal.SIGSTOP)
    until_ms = b.accepted("extend", {"key": "x2", "lease": lease, "ttl_ms": 9000000})["expires_ms"]
    b.kill()
    b.start()
    t.eq(b.ask("wait", {"key": "x2", "timeout_ms": 15000})["operation"]["state"], "done", "one that was cut off is done again")
    t.eq(b.lease(lease)["expires_ms"], until_ms, "and moves the end")
    b.accepted("release", {"key": "r", "lease": lease})
    b.wait_state(lease, "failed-empty")
    kind, body = b.try_ask("wait", {"key": "w", "timeout_ms": 5000})
    t.eq((kind, body["code"]), ("error", "cancelled"), "the wait for a rent that was released ends with its fate")
    b.accepted("release", {"key": "r2", "lease": lease})
    t.eq(b.ask("wait", {"key": "r2", "timeout_ms": 5000})["operation"]["state"], "done", "releasing again is no error")


def first_listing(cloud, b):
    """Who asks while a provider's first listing fails is told to come again, not that there is nothing."""
    cloud.control("GET", "/wait?endpoint=types&count=1&timeout=20")
    os.kill(b.children("gpubroker-provider")[0], signal.SIGKILL)
    told = set()

    def rent():
        try:
            return b.accepted("rent", {"key": "f", "filter": H100})
        except Refused as e:
            told.add(e.code)
    lease = until(rent, 20, "an offer")["lease"]
    t.eq(told, {"busy"}, "until a provider that died listed its offers, the answer is busy")
    b.accepted("release", {"key": "rf", "lease": lease})
    b.wait_state(lease, "released", "failed-empty")


def main():
    with Cloud("shadeform") as cloud:
        cloud.faults({"on": "types", "kind": "hang", "seconds": 5}, {"on": "types", "kind": "delay", "seconds": 1, "skip": 1})
        with Broker(cloud.provider()) as b:
            t.run(first_listing, cloud, b)
    good = {"name": "good", "plugin": "good", "offers_every": "1s", "reconcile_every": "1s"}
    with Broker(good, env={"MALLOC_PERTURB_": "165"}) as b:
        b.offers_there()
        for fn in (reload, new_providers, pause, odd, waits):
            t.run(fn, b)
    t.done()


main()
