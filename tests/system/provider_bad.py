#!/usr/bin/python3
"""provider_bad.py - plugins that misbehave, each in one way, and configurations that do"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from provider_harness import HOST, Died, Provider, Skip, plugin_file, tap


def refused(plugin, **more):
    p = Provider(plugin, ready=False, **more)
    status = p.close()
    assert p.ready["kind"] != "ok" and status == 1, (p.ready, status)
    return p.ready


def test_crash():
    """a crash ends the process by its signal; what was said before it arrives"""
    with Provider("crashes-in-list") as p:
        number = p.start("list")
        try:
            p.wait(number)
            raise AssertionError("no crash")
        except Died:
            pass
        assert p.wait_exit() == -signal.SIGABRT
        assert [l["event"] for l in p.logs] == ["bad.crash"]


def test_hang():
    """a call that does not return blocks neither others nor, past its deadline, the end"""
    with Provider("hangs-in-create") as p:
        number = p.start("create", {"offer_ref": "x", "max_price_udollar": 1, "token": "t", "name": "n"}, deadline_ms=500)
        p._pump(lambda: p.results[number].machines)
        p.cancel(number)
        assert p.call("probe").kind == "ok"
        assert number not in p.done
        p.hang_up()
        assert p.wait_exit(10) == 1


def test_prints():
    """prints become log lines, cleaned, without secrets, at most 100 a second and a count of the rest"""
    with Provider("prints", secrets={"api_key": b"canary-key-0123456789"}) as p:
        assert p.call("probe").kind == "ok"
        lines = p.wait_log("log.dropped")
        prints = [l["text"] for l in p.logs if l["event"] == "plugin.print"]
        assert lines[0]["text"].startswith("lines=")
        assert len(prints) <= 210, len(prints)
        assert any(t.startswith("hello from a plugin, key *****") for t in prints), prints[:3]
        assert any("broken \ufffd\ufffd bytes" in t for t in prints), prints[:3]
        assert "canary" not in json.dumps(p.logs)
        assert p.call("probe").kind == "ok"


OFFERS = [("size-0", "0 bytes"), ("size-huge", "bytes; this host knows"), ("no-ref", "offer_ref"),
          ("long-ref", "longer than 512"), ("market", "market 77"), ("price", "absurd"), ("wrong-emit", "a machine in list_offers"),
          ("code", "does not exist"), ("negative", "does not exist")]


def test_garbage_offers():
    """each broken offer fails its call as INTERNAL and says why; the next call is served"""
    with Provider("garbage") as p:
        for how, text in OFFERS:
            r = p.call("list_offers", {"offer_ref": how})
            assert r.kind == "internal" and text in r.text, (how, r)
            assert not r.offers and not r.scopes, "nothing after a breach counts as complete"
        r = p.call("list_offers", {"offer_ref": "bytes"})
        assert r.offers[0]["gpu_name"] == "H\ufffd\ufffd(100\ufffd\ufffd\ufffd\x01", r.offers
        r = p.call("list_offers", {"offer_ref": "long-name"})
        assert r.kind == "ok" and len(r.offers[0]["gpu_name"]) == 256
        r = p.call("list_offers", {"offer_ref": "size-short"})
        assert r.kind == "ok" and "gpu_name" not in r.offers[0], "nothing beyond its size is read"
        r = p.call("list_offers", {"offer_ref": "error"})
        assert r.kind == "quota" and r.text == "no NUL " * 36 + "no ", r


def test_garbage_machines():
    """absurd counts, strides and ids fail the call; an unknown state does not"""
    with Provider("garbage") as p:
        for how in "count", "stride", "null", "data", "no-id":
            r = p.call("find", {"name": how})
            assert r.kind == "internal" and not r.machines, (how, r)
        r = p.call("find", {"name": "fine"})
        assert r.kind == "ok" and r.machines[0]["state"] == "unknown" and r.machines[0]["resources"][0]["id"] == "d1", r
        r = p.call("find", {"name": "tags"})
        assert r.kind == "ok" and r.machines[0]["tags"]["gpubroker-token"] == "v", "our mark survives 200 tags"
        r = p.call("get", {"ref": {"id": "x"}})
        assert r.kind == "internal" and "without a machine" in r.text, r
        assert p.call("console_log", {"ref": {"id": "x"}}).kind == "internal"


def test_flood():
    """an endless listing is bounded by its deadline, in frames that the daemon's parser takes"""
    with Provider("emits-forever") as p:
        frames = []
        p.on_item = lambda call, body: frames.append(len(body["offers"]))
        r = p.call("list_offers", deadline_ms=1000)
        assert r.kind == "cancelled" and max(frames) <= 64, r
        number = p.start("list_offers", deadline_ms=30000)
        p._pump(lambda: p.results[number].items > 3)
        time.sleep(0)
        began = time.monotonic()
        p.cancel(number)
        assert p.wait(number).kind == "cancelled" and time.monotonic() - began < 5


def test_flood_unread():
    """a daemon that does not read stalls the listing, not the process' memory; the deadline still ends it"""
    with Provider("emits-forever") as p:
        number = p.start("list_offers", deadline_ms=1500)
        end = time.monotonic() + 10
        rss = []
        while time.monotonic() < end and len(rss) < 20:
            rss.append(int(open("/proc/%d/statm" % p.pid).read().split()[1]) * 4)
            time.sleep(0.05)
        assert max(rss) < 64 * 1024, "%d KiB" % max(rss)
        assert p.wait(number).kind == "cancelled"


def test_refused_plugins():
    """other ABI, short table, missing call, no plugin, no file: refused with the reason"""
    r = refused("old-abi")
    assert "ABI is 42" in r["text"] and "host's is 1" in r["text"], r
    r = refused("too-small")
    assert "has 96 bytes, the least is 168" in r["text"], r
    assert "'remove'" in refused("lacks-remove")["text"]
    assert "gpub_provider_entry" in refused("no-entry")["text"]
    r = refused("nowhere")
    assert "'nowhere' not found" in r["text"] and "GPUB_PROVIDER_PATH" in r["text"], r


def test_owner():
    """a plugin or folder that others may write is refused"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "good.so")
        shutil.copy(plugin_file("good"), path)
        for mode, what in (0o666, path), (0o664, path):
            os.chmod(path, mode)
            done = subprocess.run([HOST, "--describe", path], capture_output=True, text=True)
            assert done.returncode == 1 and "writable by others" in done.stderr and what in done.stderr, done
        os.chmod(path, 0o644)
        assert subprocess.run([HOST, "--describe", path], capture_output=True).returncode == 0
        os.chmod(folder, 0o777)
        done = subprocess.run([HOST, "--describe", path], capture_output=True, text=True)
        assert done.returncode == 1 and "writable by others" in done.stderr, done
        os.chmod(folder, 0o700)


def test_options():
    """unknown, mistyped, missing and misplaced options are named with their remedy"""
    assert refused("good", options={"adress": "x"})["text"] == "unknown option 'adress', did you mean 'address'?"
    assert refused("good", options={"boot": 5})["text"] == "'boot' must be a duration such as \"90s\", \"5m\" or \"2h\""
    assert refused("good", options={"ssh_port": "22"})["text"] == "'ssh_port' must be an integer"
    assert "api_key_file" in refused("web", options={"api_key": "in the clear"})["text"]
    assert refused("web", secrets={"other": b"x"})["text"] == "the plugin has no secret 'other'"
    assert "must be a list" in refused("good", options={"offers": {"a": 1}})["text"], "the plugin's own check"


def test_bad_calls():
    """calls that do not exist or have wrong arguments are answered"""
    with Provider("good") as p:
        assert p.call("destroy").kind == "unsupported"
        r = p.call("create", {"offer_ref": "h100"})
        assert r.kind == "invalid" and "is missing" in r.text, r
        r = p.create("h100", colour="red")
        assert r.kind == "invalid" and "colour" in r.text, r
        assert p.create("h100", user_data="***", user_data_kind="cloud").kind == "invalid"
        assert p.call("get", {}).kind == "invalid"
    with Provider("slow") as p:
        assert p.call("set_not_after", {"ref": {"id": "x"}, "ms": 1}).kind == "unsupported"


def test_parallel():
    """at most max_parallel calls run at once; the rest wait their turn"""
    with Provider("slow") as p:
        numbers = [p.start("probe") for _ in range(7)]
        accounts = [p.wait(n).value["account"] for n in numbers]
        assert "most=3" in accounts and "most=4" not in accounts, accounts


def test_sleep():
    """cancel and deadline end a sleep at once; a call cancelled in the queue never runs"""
    with Provider("slow") as p:
        busy = [p.start("list", deadline_ms=60000) for _ in range(3)]
        queued = p.start("list", deadline_ms=60000)
        p._pump(lambda: sum(l["event"] == "slow.begin" for l in p.logs) == 3)
        began = time.monotonic()
        for n in [queued] + busy:
            p.cancel(n)
        assert [p.wait(n).kind for n in busy + [queued]] == ["cancelled"] * 4
        assert time.monotonic() - began < 1
        assert "waited for its turn" in p.results[queued].text
        began = time.monotonic()
        assert p.call("list", deadline_ms=300).kind == "cancelled"
        assert time.monotonic() - began < 1.5


def test_ack():
    """a created machine waits for the daemon's ACK, and a cancelled wait ends the call"""
    with Provider("good") as p:
        p.on_item = lambda call, body: False
        number = p.start("create", {"offer_ref": "h100", "max_price_udollar": 10 ** 9, "token": "t", "name": "n"})
        p._pump(lambda: p.results[number].machines)
        assert p.call("probe").kind == "ok" and number not in p.done
        p._send("ack", number, {})
        assert p.wait(number).kind == "ok"


def test_protocol():
    """a frame out of place ends the process"""
    with Provider("good") as p:
        p._send("hello", 0, {})
        assert p.wait_exit() == 2


def test_person():
    """without a socket on fd 3 it says who starts it"""
    done = subprocess.run([HOST], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "gpubrokerd starts this program" in done.stderr, done


def test_describe():
    """--describe prints options, capabilities and version without a configuration"""
    done = subprocess.run([HOST, "--describe", plugin_file("good")], capture_output=True, text=True)
    j = json.loads(done.stdout)
    assert done.returncode == 0 and j["abi"] == 1 and "hosts-kubernetes" in j["caps"], done
    assert [o["name"] for o in j["options"]][:2] == ["offers", "boot"] and j["options"][1]["type"] == "duration"


def test_writes():
    """a plugin writes nothing but its state, where the kernel has Landlock"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "left-behind")
        with Provider("writes", secrets={"path": path}) as p:
            r = p.call("probe")
            if any(l["event"] == "landlock.absent" for l in p.logs):
                raise Skip("no Landlock in this kernel")
            assert r.kind == "ok" and r.value["account"] == "refused" and not os.path.exists(path), r
            assert open(os.path.join(p.state_dir, "kept")).read() == "x"


def test_symbols():
    """a plugin exports one symbol"""
    if not shutil.which("nm"):
        raise Skip("nm(1) is not installed")
    for name in "good", "web", "shadeform":
        path = plugin_file(name)
        if not os.path.exists(path):
            continue
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in out.splitlines()]
        assert names == ["gpub_provider_entry"], (name, names)


if __name__ == "__main__":
    tap(globals())
