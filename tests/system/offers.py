#!/usr/bin/python3
"""offers.py - what the broker shows of a cloud: every offer by its schema, every refusal with its reason"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import Broker, Cloud, Refused, Tap, until  # noqa: E402
import schemas  # noqa: E402

t = Tap()


def offers(b, filter, **more):
    return b.ask("offers", {"filter": filter, "limit": 1000, **more})


def refused(b, filter, words):
    try:
        offers(b, filter)
        t.ok(False, f"refused: {filter}")
    except Refused as e:
        t.ok(e.code == "bad-request" and words in e.body["message"], f"{e.body['message']}")


def shown(b, cloud):
    b.offers_there()
    every = offers(b, {"gpu": [], "market": "any"}, explain=True)
    bad = [p for o in every["offers"] for p in schemas.problems("offer", o)]
    bad += [p for r in every["rejected"] for p in schemas.problems("rejection", r)]
    t.eq(bad[:3], [], f"{len(every['offers'])} offers and {len(every['rejected'])} refusals are as their schemas say")
    priced = [o["price_udollar"] for o in every["offers"]]
    t.eq(priced, sorted(priced), "cheapest first")
    t.eq(len({o["id"] for o in every["offers"]}), len(every["offers"]), "ids are unique")
    t.eq(every["matched"] + sum(every["excluded"].values()), every["considered"], "every offer is either taken or excluded")
    t.eq(every["unknown_gpus"], [], "every GPU of the fake catalog is known")


def narrowed(b, cloud):
    h100 = offers(b, {"gpu": [{"model": "H100", "min": 1, "max": 0}]}, explain=True)
    t.ok(h100["offers"] and all(o["gpu"]["family"] == "H100" for o in h100["offers"]), "H100 means every form of it")
    t.ok(all(o["market"] == "on-demand" for o in h100["offers"]), "spot has to be asked for")
    texts = {r["code"]: r["text"] for r in h100["rejected"]}
    t.ok("wanted H100" in texts["gpu-model"], f"gpu-model: {texts['gpu-model']}")
    cheap = offers(b, {"gpu": [{"model": "H100", "min": 1, "max": 0}], "max_price_udollar": 10000})
    t.eq(cheap["offers"], [], "nothing costs a cent")
    t.ok("the cheapest that only its price excludes costs $" in cheap["summary"], cheap["summary"])
    refused(b, {"gpu": [{"model": "H1OO"}]}, "did you mean 'H100'?")
    refused(b, {"provider": ["shadefrom"]}, "did you mean 'shadeform'?")
    refused(b, {"max_prize_udollar": 3}, "did you mean 'max_price_udollar'?")
    refused(b, {"locality": "mars"}, "no locality is called 'mars'")


def failing(b, cloud):
    before = offers(b, {"gpu": []})["matched"]
    cloud.faults({"on": "types", "kind": "status", "status": 503, "body": "sorry", "times": -1})
    first = min(o["age_ms"] for o in offers(b, {"gpu": []})["offers"])
    until(lambda: min(o["age_ms"] for o in offers(b, {"gpu": []})["offers"]) > max(first, 2500), what="the offers age")
    t.eq(offers(b, {"gpu": []})["matched"], before, "a failing listing takes no offer away")
    cloud.control("DELETE", "/faults")
    until(lambda: min(o["age_ms"] for o in offers(b, {"gpu": []})["offers"]) < 1500, what="the offers are fresh again")
    t.ok(True, "and afterwards they are fresh again")


def paused(b, cloud):
    b.ask("pause", {"provider": "shadeform"})
    got = offers(b, {"gpu": []}, explain=True)
    t.eq(list(k for k in got["excluded"] if k.startswith("provider")), ["provider-paused"], "a paused provider says so")
    b.ask("resume", {"provider": "shadeform"})
    t.ok(offers(b, {"gpu": []})["matched"] > 0, "and comes back")


def remembered(b, cloud):
    wish = {"gpu": [{"model": "H100", "min": 1, "max": 0}]}
    best = offers(b, wish)["offers"][0]
    cloud.faults({"on": "create", "kind": "out-of-stock", "times": 1})
    lease = b.accepted("rent", {"key": "m1", "filter": wish})["lease"]
    until(lambda: cloud.machines(), what="the next offer is taken")
    why = [r for r in offers(b, wish, explain=True)["rejected"] if r["offer"]["id"] == best["id"]]
    t.ok(why and why[0]["code"] == "capacity-memory", f"who was out of stock is passed over: {why[0]['text'] if why else why}")
    b.accepted("release", {"key": "m2", "lease": lease})
    until(lambda: not cloud.machines(), what="the machine is gone")
    b.restart()
    b.offers_there()
    why = [r["code"] for r in offers(b, wish, explain=True)["rejected"] if r["offer"]["id"] == best["id"]]
    t.eq(why, ["capacity-memory"], "after a restart too")


with Cloud("shadeform") as cloud, Broker(cloud.provider()) as b:
    for fn in (shown, narrowed, failing, paused, remembered):
        t.run(fn, b, cloud)
t.done()
