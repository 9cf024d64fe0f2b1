#!/usr/bin/python3
"""provider_good.py - the host and a well-behaved plugin: every call, once"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from provider_harness import Provider, tap


def test_life_of_a_machine():
    """offers, create, get, find, list, set_not_after, console_log, remove"""
    with Provider("good") as p:
        assert p.ready["provider"]["caps"][0] == "idempotent-create", p.ready
        assert p.hello["role"] == "provider" and p.hello["wire"] == [1, 1], p.hello
        assert p.call("probe").value == {"account": "good", "text": "", "balance_udollar": 100000000}
        r = p.call("list_offers", {"offer_ref": None, "disk_gib": 100})
        assert r.kind == "ok" and r.value == {"offers": 3}, r
        assert r.offers[0]["price_udollar"] == 2100000 and r.offers[0]["market"] == "on-demand", r.offers[0]
        assert "stock" not in r.offers[0], "what is not known is left out"
        assert r.scopes == [{"scope": "good", "how": "complete", "kind": "ok", "text": ""}], r.scopes
        r = p.create("h100", user_data="I2Nsb3VkLWNvbmZpZwo=", user_data_kind="cloud", image=None,
                     ports=[{"proto": "tcp", "from": 6443, "to": 6443, "cidr": "0.0.0.0/0"}])
        assert r.kind == "ok" and r.machines[0]["state"] == "running", r
        ref = p.ref(r.machines[0], token="tok-1")
        assert p.call("get", ref).machines[0]["tags"]["gpubroker-token"] == "tok-1"
        assert len(p.call("find", {"token": "tok-1", "name": "lease-1", "scope": None}).machines) == 1
        assert p.call("find", {"token": "other"}).value == {"machines": 0}
        assert p.call("set_not_after", {**ref, "ms": 1234}).kind == "ok"
        r = p.call("list")
        assert r.machines[0]["not_after_ms"] == 1234 and r.scopes[0]["how"] == "complete"
        assert p.call("console_log", ref).value == {"text": "m-tok-1 booted\n"}
        assert p.create("l40s").kind == "conflict", "same token, other offer"
        assert p.call("remove", ref).kind == "ok" and p.call("remove", ref).kind == "ok"
        assert p.call("get", ref).kind == "not-found"
        p.sock.shutdown(1)
        assert p.wait_exit() == 0


def test_state_survives():
    """machines are still there for the next process"""
    with Provider("good") as p:
        p.create("h100")
        with Provider("good", state_dir=p.state_dir) as q:
            assert q.call("list").value == {"machines": 1}
            assert os.stat(p.state_dir).st_mode & 0o777 == 0o700


if __name__ == "__main__":
    tap(globals())
