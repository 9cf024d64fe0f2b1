#!/usr/bin/python3
"""provider_static.py - the static plugin: one machine, one claim, whatever happens in between"""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from provider_harness import Died, Provider, tap

A = {"address": "10.0.0.5", "user": "ubuntu", "gpu": "L40S", "gpus": 4, "vram_gib": 48, "price": 0, "zone": "dc1",
     "vcpus": 128, "ram_gib": 1024, "disk_gib": 3500, "labels": {"rack": "r7", "gpubroker-token": "forged"}}
B = {"name": "Old-A100", "address": "fd00::7", "port": 2222, "gpu": "A100", "price": 0.4}
C = {"address": "cpu.example.org", "kind": "vm", "arch": "aarch64"}


def static(hosts=(A, B, C), **more):
    return Provider("static", options={"hosts": list(hosts)}, **more)


def offers(p, ref=None):
    r = p.call("list_offers", {"offer_ref": ref})
    assert r.kind == "ok", r
    return {o["offer_ref"]: o for o in r.offers}


def test_offers():
    """each machine is an offer with what is known of it, and no more"""
    with static() as p:
        assert set(p.ready["provider"]["caps"]) == {"idempotent-create", "tags", "hosts-kubernetes", "reused"}, p.ready
        o = offers(p)
        assert set(o) == {"10.0.0.5", "old-a100", "cpu.example.org"}, o
        a, b, c = o["10.0.0.5"], o["old-a100"], o["cpu.example.org"]
        assert a["price_udollar"] == 0, "a price of 0 is known"
        assert (a["gpu_name"], a["gpu_count"], a["vram_mib"], a["ram_mib"]) == ("L40S", 4, 49152, 1048576), a
        assert (a["scope"], a["zone"], a["region"]) == ("dc1", "dc1", "dc1"), a
        assert b["price_udollar"] == 400000 and b["gpu_count"] == 1 and b["kind"] == "baremetal", b
        assert "price_udollar" not in c, "a missing price is not 0"
        assert c["gpu_count"] == 0 and c["kind"] == "vm" and c["arch"] == "aarch64" and "vcpus" not in c, c
        assert c["scope"] == "static" and "zone" not in c, c
        assert set(offers(p, "old-a100")) == {"old-a100"} and offers(p, "gone") == {}
        scopes = p.call("list_offers", {"offer_ref": None}).scopes
        assert sorted((s["scope"], s["how"]) for s in scopes) == [("dc1", "complete"), ("static", "complete")], scopes
        assert p.call("probe").value["text"] == "3 machines, 0 claimed"


def test_life():
    """claim, get, find, list, remove"""
    with static() as p:
        r = p.create("10.0.0.5")
        assert r.kind == "ok" and len(r.machines) == 1, r
        m = r.machines[0]
        assert (m["state"], m["address"], m["ssh_user"], m["ssh_port"]) == ("running", "10.0.0.5", "ubuntu", 22), m
        assert m["name"] == "lease-1" and m["price_udollar"] == 0 and m["created_ms"] > 0, m
        assert m["tags"]["gpubroker-token"] == "tok-1" and m["tags"]["rack"] == "r7", m["tags"]
        ref = p.ref(m, token="tok-1")
        assert p.call("get", ref).machines[0]["address"] == "10.0.0.5"
        assert "10.0.0.5" not in offers(p), "what is claimed is no offer"
        assert p.call("find", {"token": "tok-1"}).machines[0]["id"] == m["id"]
        assert p.call("find", {"token": "tok-1", "scope": "static"}).machines == []
        r = p.call("find", {"token": "nobody's"})
        assert r.machines == [] and all(s["how"] == "complete" for s in r.scopes) and len(r.scopes) == 2, r.scopes
        assert p.call("list").value == {"machines": 1}
        assert p.call("remove", ref).kind == "ok" and p.call("remove", ref).kind == "ok"
        assert p.call("get", ref).kind == "not-found"
        assert "10.0.0.5" in offers(p) and p.call("list").value == {"machines": 0}


def test_claimed_once():
    """a claimed machine is refused, the same token gets the same machine, another offer conflicts"""
    with static() as p:
        first = p.create("old-a100", token="t1").machines[0]
        again = p.create("old-a100", token="t1")
        assert again.kind == "ok" and again.machines[0] == first, again
        assert p.create("old-a100", token="t2").kind == "capacity"
        assert p.create("10.0.0.5", token="t1").kind == "conflict"
        assert p.create("no-such", token="t3").kind == "capacity"
        assert p.create("10.0.0.5", token="t4", user_data="IyE=", user_data_kind="script").kind == "unsupported"
        assert p.call("list").value == {"machines": 1}


def test_price_cap():
    """a machine above the cap is refused"""
    with static() as p:
        assert p.create("old-a100", max_price_udollar=399999).kind == "capacity"
        assert p.create("old-a100", max_price_udollar=400000).kind == "ok"


def test_parallel():
    """of many creates at once for one machine exactly one wins"""
    with static() as p:
        calls = [p.start("create", {"offer_ref": "10.0.0.5", "token": "t%d" % i, "name": "n%d" % i,
                                    "max_price_udollar": 10 ** 9, "tags": {}}) for i in range(16)]
        kinds = sorted(p.wait(c).kind for c in calls)
        assert kinds == ["capacity"] * 15 + ["ok"], kinds
        assert p.call("list").value == {"machines": 1}


def test_other_lease():
    """an old lease can neither see nor free a machine that is another's now"""
    with static() as p:
        old = p.ref(p.create("10.0.0.5", token="old").machines[0], token="old")
        assert p.call("remove", old).kind == "ok"
        new = p.ref(p.create("10.0.0.5", token="new").machines[0], token="new")
        assert p.call("get", old).kind == "not-found" and p.call("remove", old).kind == "ok"
        assert p.call("get", new).kind == "ok", "the new lease has it still"
        by_token = {"ref": {"id": "", "token": "new"}}
        assert p.call("get", by_token).machines[0]["id"] == "10.0.0.5"
        assert p.call("remove", by_token).kind == "ok" and p.call("get", new).kind == "not-found"


def test_removed_from_configuration():
    """a claimed machine that leaves the configuration stays listed, with its zone"""
    with static() as p:
        m = p.create("10.0.0.5").machines[0]
        with static([B], state_dir=p.state_dir) as q:
            r = q.call("list")
            assert r.machines == [m], r.machines
            assert sorted(s["scope"] for s in r.scopes) == ["dc1", "static"], r.scopes
            assert q.call("get", q.ref(m, token="tok-1")).machines == [m]
            assert set(offers(q)) == {"old-a100"}
            assert q.call("remove", q.ref(m, token="tok-1")).kind == "ok"
            assert q.call("list").machines == []


def test_killed_before_the_books():
    """kill -9 while the broker has not yet booked the machine: exactly one claim, found and given again"""
    with static() as p:
        p.on_item = lambda call, body: False
        number = p.start("create", {"offer_ref": "10.0.0.5", "token": "t1", "name": "n", "max_price_udollar": 1,
                                    "tags": {"gpubroker-token": "t1"}})
        p._pump(lambda: p.results[number].machines)
        p.kill()
        with static(state_dir=p.state_dir) as q:
            assert [m["id"] for m in q.call("find", {"token": "t1"}).machines] == ["10.0.0.5"]
            assert q.create("10.0.0.5", token="t2").kind == "capacity"
            assert q.create("10.0.0.5", token="t1").kind == "ok"
            assert q.call("list").value == {"machines": 1}


def test_killed_anywhere():
    """kill -9 at any moment between claims: a machine is never another's, and every token is whole or absent"""
    state = tempfile.mkdtemp(prefix="gpub-static-")
    try:
        owner = {}
        for turn in range(12):
            p = static(state_dir=state)
            for i in range(turn % 4 + 1):
                for host in ("10.0.0.5", "old-a100", "cpu.example.org"):
                    p.start("create", {"offer_ref": host, "token": "%s-%d-%d" % (host, turn, i), "name": "n",
                                       "max_price_udollar": 10 ** 9, "tags": {}})
            try:
                if turn % 3:
                    p._pump(lambda: len(p.done) > turn % 5, 5)
            except (TimeoutError, Died):
                pass
            p.kill()
            p.close()
            with static(state_dir=state) as q:
                claims = q.call("list")
                assert claims.kind == "ok", claims
                ids = [m["id"] for m in claims.machines]
                assert len(ids) == len(set(ids)) and len(ids) + len(offers(q)) == 3, ids
                for host in ids:
                    won = [t for t in range(turn + 1) for i in range(4)
                           if q.call("find", {"token": "%s-%d-%d" % (host, t, i)}).machines]
                    assert len(won) == 1, (host, won)
                    assert owner.setdefault(host, won[0]) == won[0], "the claim went to another token"
                if turn % 4 == 3:
                    for m in claims.machines:
                        q.call("remove", q.ref(m))
                    owner.clear()
    finally:
        shutil.rmtree(state)


def test_damaged_store():
    """a claim that cannot be read fails every zone: nothing is called free or absent"""
    with static() as p:
        p.create("10.0.0.5")
        with open(os.path.join(p.state_dir, "claim.10.0.0.5"), "w", encoding="utf8") as f:
            f.write('{"id":')
        for call, args in (("list", {}), ("list_offers", {"offer_ref": None}), ("find", {"token": "x"})):
            r = p.call(call, args)
            assert r.kind == "internal" and r.machines == [] and r.offers == [], r
            assert {s["how"] for s in r.scopes} == {"failed"}, r.scopes
        assert p.create("10.0.0.5", token="t2").kind == "internal"


def test_bad_configuration():
    """mistakes are refused by name, with the nearest right word"""
    for hosts, says in (([], "list of machines"), ([{"gpu": "H100"}], "'address' is missing"),
                        ([{**A, "gpuss": 1}], "did you mean 'gpus'"), ([{**A, "price": "cheap"}], "'price' must be"),
                        ([{**A, "price": -1}], "'price' must be"), ([A, A], "there twice"),
                        ([{**A, "port": 0}], "'port' must be 1 to 65535"), ([{**A, "address": "a b"}], "DNS name"),
                        ([{**A, "user": "-oProxyCommand=x"}], "login name"), ([{**A, "gpus": "4"}], "an integer"),
                        ([{**A, "kind": "container"}], "'kind' must be"), (["10.0.0.5"], "not a group")):
        with Provider("static", options={"hosts": hosts}, ready=False) as p:
            assert p.ready["kind"] == "invalid" and says in p.ready["text"], (hosts, p.ready)
    with static([{**A, "price": "0.985"}, {**A, "port": 2201}]) as p:
        o = offers(p)
        assert o["10.0.0.5"]["price_udollar"] == 985000 and "10.0.0.5-2201" in o, o


if __name__ == "__main__":
    tap(globals())
