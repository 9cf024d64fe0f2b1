#!/usr/bin/python3
"""cross_cloud.py - the cheapest of several clouds wins, the next one is tried, and one cloud's trouble stays its own

No machine here answers SSH: what is asked is what was offered, ordered, refused.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import venv  # noqa: E402
from broker import KEY, SRC, Broker, Cloud, Tap, until  # noqa: E402

venv.enter("several clouds at once")
t = Tap()
NAMES = [n for n in ("shadeform", "hyperstack", "nebius", "aws") if os.path.exists(f"{SRC}/tests/clouds/{n}.py")]
LISTS = {"shadeform": "types", "hyperstack": "flavors", "nebius": "advice", "aws": "types"}


def account(cloud):
    """The fake of AWS signs with a pair of keys and asks each region."""
    if cloud.name != "aws":
        return cloud.provider()
    return cloud.provider(regions=["us-east-1"], secrets={"access_key_id": "AKIAFAKEFAKEFAKEFAKE", "secret_access_key": KEY})


def offers(b, **f):
    got = b.ask("offers", {"filter": f, "limit": 500})
    return got["offers"]


def listed(b):
    until(lambda: all(p["offers"]["complete"] for p in b.ask("providers")["providers"]), 30, "every cloud listed")


def gpu(model, least=1, most=1):
    return {"gpu": [{"model": model, "min": least, "max": most}], "market": "on-demand"}


def ids(found):
    return [o["id"] for o in found]


def everywhere(b):
    """One table of all clouds, cheapest first, whatever they call things."""
    found = offers(b, **gpu("H100", 1, 0))
    t.eq({o["provider"] for o in found}, set(NAMES), "every cloud offers H100s")
    for spelling in ("h100", "NVIDIA H100", "H100 80GB", "nvidia-h100-80gb"):
        t.eq(ids(offers(b, **gpu(spelling, 1, 0))), ids(found), f"'{spelling}' is the same question")
    sxm = offers(b, **gpu("NVIDIA H100 80GB HBM3", 1, 0))
    t.eq(ids(sxm), ids(offers(b, **gpu("H100_sxm5", 1, 0))), "HBM3 is the SXM form, H100_sxm5, too")
    t.ok(0 < len(sxm) < len(found), "which is a part of all H100s")
    one = offers(b, **gpu("H100"))
    t.eq([o["price_udollar"] for o in one], sorted(o["price_udollar"] for o in one), "cheapest first")
    t.ok(all(o["price_udollar"] > 0 for o in found), "none is free: what has no price is not in the order")
    for o in offers(b, **gpu("A100-80GB", 1, 0)):
        if o["gpu"]["vram_gib"] != 80:
            t.ok(False, f"A100-80GB never means {o['gpu']}")
    small = {o["gpu"]["vram_gib"] for o in offers(b, **gpu("A100", 1, 0))}
    t.ok(40 in small and 80 in small, "there are both kinds of A100")
    dry = b.ask("rent", {"dry_run": True, "filter": gpu("H100")})
    t.eq(ids(dry["order"]), ids(one), "a dry run tells that order")
    t.ok(all(r["code"] and r["text"] for r in dry["rejected"]), "and why each other offer was not taken")


def slow(b, clouds):
    """One that answers after half a minute: the others are fresh, and answers come from memory meanwhile."""
    name = "hyperstack"
    clouds[name].faults({"on": LISTS[name], "kind": "delay", "seconds": 30, "times": -1})
    n = clouds[name].control("GET", "/counters")[LISTS[name]]
    clouds[name].control("GET", f"/wait?endpoint={LISTS[name]}&count={n + 1}&timeout=20")
    before = {c: clouds[c].control("GET", "/counters").get(LISTS[c], 0) for c in NAMES if c != name}
    found = offers(b, **gpu("H100", 1, 0))
    t.eq({o["provider"] for o in found}, set(NAMES), "while one cloud is slow, all offers are told from memory")
    clouds["shadeform"].control("GET", f"/wait?endpoint=types&count={before['shadeform'] + 2}&timeout=20")
    until(lambda: min(o["age_ms"] for o in offers(b, **gpu("H100", 1, 0)) if o["provider"] == name)
          > max(o["age_ms"] for o in offers(b, **gpu("H100", 1, 0)) if o["provider"] == "shadeform"), 20, "only its own age")
    t.ok(True, "only its own offers grow old")
    clouds[name].control("DELETE", "/faults")


def unauthorised(b, clouds):
    name = "nebius"
    clouds[name].faults({"on": "*", "kind": "unauthorized", "times": -1})
    until(lambda: all(o["provider"] != name for o in offers(b, **gpu("H100", 1, 0))), 20, "its offers go")
    found = offers(b, **gpu("H100", 1, 0))
    t.eq({o["provider"] for o in found}, set(NAMES) - {name}, "an account that is refused loses its offers, the others keep theirs")
    p = next(p for p in b.ask("providers")["providers"] if p["name"] == name)
    t.eq(p["error"]["kind"], "auth", "and it is said why")
    clouds[name].control("DELETE", "/faults")
    until(lambda: any(o["provider"] == name for o in offers(b, **gpu("H100", 1, 0))), 30, "they come back")
    t.ok(True, "its offers come back with its credentials")


def tried(lease):
    return [(a["provider"], (a.get("reason") or {}).get("kind")) for a in lease["attempts"]]


def lying(b, clouds):
    """The cheapest cloud has stock in its list and none when asked."""
    one = offers(b, **gpu("H100"))
    first, rest = one[0]["provider"], [o for o in one if o["provider"] != one[0]["provider"]]
    clouds[first].faults({"on": "create", "kind": "out-of-stock", "times": -1})
    a = b.accepted("rent", {"key": "lying", "name": "lying", "filter": gpu("H100"), "cluster": "none"})
    lease = b.wait_state(a["lease"], "booting", "reachable", seconds=30)
    t.eq({c for p, c in tried(lease) if p == first}, {"capacity"}, "what was not there is passed over")
    t.eq((lease["attempts"][-1]["provider"], lease["attempts"][-1]["offer"]["id"]), (rest[0]["provider"], rest[0]["id"]),
         "for the cheapest elsewhere")
    t.eq({c: len(clouds[c].machines()) for c in NAMES}, {**dict.fromkeys(NAMES, 0), rest[0]["provider"]: 1}, "one machine, there")
    b.accepted("release", {"key": "lying-r", "lease": "lying"})
    b.wait_state(a["lease"], "released", "failed-empty", seconds=30)
    clouds[first].control("DELETE", "/faults")


def exhausted(b, clouds):
    """All say no: exit 4, every offer in order with its reason."""
    b.stop()
    b.start()  # what the last test taught is still known: start from a fresh memory
    listed(b)
    for cloud in clouds.values():
        cloud.faults({"on": "create", "kind": "out-of-stock", "times": -1})
    code, out, err = b.cli("rent", "--gpu", "L40S", "--name", "none-left", "--cluster", "none", "--json")
    t.eq(code, 4, "every matching offer failed: exit 4")
    lease = b.lease("none-left")
    t.eq({c for _, c in tried(lease)}, {"capacity"}, "each with its reason")
    prices = [a["offer"]["price_udollar"] for a in lease["attempts"]]
    t.eq(prices, sorted(prices), "in the order of their prices")
    told = json.loads(out)["error"]
    t.ok(told["code"] == "offers-exhausted" and len(told["details"]) >= len(prices), "all of them in the answer")
    code, out, err = b.cli("rent", "--gpu", "H100:64", "--cluster", "none")
    t.ok(code == 3 and "gpu-count" in err, "what nobody offers at all is exit 3, with reasons")
    t.eq([len(c.machines()) for c in clouds.values()], [0] * len(NAMES), "no machine anywhere")


def main():
    clouds = {n: Cloud(n) for n in NAMES}
    for cloud in clouds.values():
        cloud.__enter__()
    try:
        with Broker(*(account(c) for c in clouds.values())) as b:
            listed(b)
            for fn, args in ((everywhere, (b,)), (slow, (b, clouds)), (unauthorised, (b, clouds)), (lying, (b, clouds)),
                             (exhausted, (b, clouds))):
                t.run(fn, *args)
    finally:
        for cloud in clouds.values():
            cloud.__exit__()
    t.done()


main()
