#!/usr/bin/python3
"""orphans.py - what no lease accounts for: told apart, ignored, taken over, ended; never what is not ours

Lists are asked for by hand (providers.check), so that nothing is looked at between two steps of a test.  No machine
boots: a rent on this cloud never gets further than booting.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import schemas  # noqa: E402
from broker import Broker, Cloud, Refused, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
OTHER = "00000000-1111-4222-8333-444444444444"


def mark(owner, lease=1, token="feed"):
    return [f"gpubroker-owner={owner}", f"gpubroker-lease={lease}", f"gpubroker-token={token}"]


def add(cloud, name, tags):
    return cloud.control("POST", "/machines", {"name": name, "tags": tags})["id"]


def there(cloud, *ids):
    all = {m["id"]: m for m in cloud.control("GET", "/machines")}
    return [not all[i]["ended_ms"] and not all[i]["gone_ms"] for i in ids]


def deletes(cloud):
    return cloud.control("GET", "/counters").get("delete", 0)


def look(b, cloud):
    """One whole round of the reconciler, begun after this call."""
    n = cloud.control("GET", "/counters").get("list", 0)
    before = provider(b)["calls"]
    b.ask("providers.check", {"provider": cloud.name})
    cloud.control("GET", f"/wait?endpoint=list&count={n + 1}&timeout=10")
    until(lambda: provider(b)["calls"] > before and provider(b)["in_flight"] == 0, 10, "the round is over")


def provider(b):
    return b.ask("providers")["providers"][0]


def thaw(b):
    """What the operator says after a look: a token that the books never gave out freezes them."""
    b.ask("resume", {"provider": "broker"})


def orphans(b, **body):
    return {o.get("name", o["id"]): schemas.check("orphan", o) for o in b.ask("orphans", body)["orphans"]}


def refused(b, verb, body, code):
    try:
        b.accepted(verb, {"key": f"no-{t.n}", **body})
        t.ok(False, f"{verb} {body} is refused")
    except Refused as e:
        t.eq(e.code, code, f"{verb} {str(body)[:100]}: {e.body['message'][:160]}")


def first_lease(b, key="first"):
    """Books that gave out number 1: a mark with it is no news from the future."""
    x = b.accepted("rent", {"key": key, "filter": H100})["lease"]
    b.wait_state(x, "booting")
    b.accepted("release", {"key": f"{key}-r", "lease": x})
    b.wait_state(x, "failed-empty")
    return x


def alarms(b, what):
    return sum(e["what"] == what and e["topic"].startswith("broker.") for e in b.ask("events", {"limit": 1000})["events"])


def told_apart(b, cloud, ids):
    owner = b.ask("ping")["instance"]
    ids.update(ours=add(cloud, "ours", mark(owner)), two=add(cloud, "two", mark(owner, token="f00d")),
               other=add(cloud, "other", mark(OTHER)), part=add(cloud, "part", ["gpubroker-lease=1"]),
               bare=add(cloud, "bare", [f"gpubroker-owner={owner}"]), people=add(cloud, "people", ["mine"]))
    look(b, cloud)
    t.eq(set(orphans(b)), {"ours", "two", "bare"}, "orphans are those with our mark")
    every = orphans(b, all=True)
    t.eq({n: o["mark"] for n, o in every.items()},
         {"ours": "ours", "two": "ours", "bare": "ours", "other": "other-broker", "part": "none"}, "all of them are told apart")
    o = every["ours"]
    t.eq((o["kind"], o["lease_number"], o["owner"], o["ignored"]), ("machine", 1, owner, False), "with kind, number and owner")
    t.ok(o["price_udollar"] > 0 and o["created_ms"] > 0 and o["first_seen_ms"] > 0, "price and times")
    t.ok(not any("token" in json.dumps(o) or "feed" in json.dumps(o) for o in every.values()), "the token stays inside")
    t.eq(alarms(b, "orphans"), 1, "one alarm for all of them")
    t.eq(b.ask("ping").get("frozen"), "books-old", "and the books are not believed until somebody looked")
    thaw(b)


def not_ours(b, cloud, ids):
    before = deletes(cloud)
    for who in ("other", "part", "bare"):
        if who != "bare":
            refused(b, "orphans.ignore", {"provider": "shadeform", "id": ids[who]}, "denied")
        for verb in ("orphans.adopt", "orphans.release"):
            more = {"yes": True} if verb == "orphans.release" else {}
            refused(b, verb, {"provider": "shadeform", "id": ids[who], **more}, "denied")
    odd = [ids["people"], "", "machine:", f"machine:{ids['people']}", f"../{ids['ours']}", ids["ours"] + "/delete", ids["ours"].upper(),
           ids["ours"] + " ", "*", "%", "l1", f"disk:{ids['ours']}", ids["ours"][:8], "a" * 600]
    for id in odd:
        refused(b, "orphans.release", {"provider": "shadeform", "id": id, "yes": True}, "not-found")
    refused(b, "orphans.release", {"provider": "nobody", "id": ids["ours"], "yes": True}, "not-found")
    refused(b, "orphans.release", {"provider": "shadeform", "id": ids["ours"], "yes": "true"}, "bad-request")
    refused(b, "orphans.adopt", {"provider": "shadeform", "id": ids["ours"], "yes": True}, "bad-request")
    t.eq(deletes(cloud), before, "none of that asked the cloud to delete anything")
    t.ok(all(there(cloud, *ids.values())), "everything is there")


def rights(b, cloud, ids):
    b.uids = [{"uid": os.geteuid(), "rights": "rent", "principal": "tester"}]
    b.write_config()
    b.restart()
    for verb in ("orphans", "orphans.adopt", "orphans.release", "orphans.ignore"):
        r = b.try_ask(verb, {"provider": "shadeform", "id": ids["ours"], "key": "k"} if "." in verb else {})
        t.eq((r[0], r[1]["code"]), ("error", "denied"), f"{verb} needs the right to administer")
    b.uids = None
    b.write_config()
    b.restart()
    b.offers_there()
    until(lambda: len(orphans(b)) == 3, 10, "the orphans again")


def remembered(b, cloud, ids):
    before = orphans(b)["ours"]["first_seen_ms"]
    b.ask("orphans.ignore", {"provider": "shadeform", "id": ids["bare"]})
    told = [e["text"] for e in b.ask("events", {"limit": 1000})["events"] if e["what"] == "orphan-ignored"]
    t.eq(told, [f"{ids['bare']} by tester"], "an event says who ignores what")
    b.kill()
    b.start()
    b.offers_there()
    until(lambda: len(orphans(b)) == 3, 10, "the orphans again")
    t.eq(orphans(b)["ours"]["first_seen_ms"], before, "when it was first seen outlives a kill")
    t.eq({n: o["ignored"] for n, o in orphans(b).items()}, {"ours": False, "two": False, "bare": True}, "so does ignore")
    t.eq(alarms(b, "orphans"), 1, "what is known raises no second alarm")
    cloud.faults({"on": "list", "kind": "empty-list", "times": 1})
    look(b, cloud)
    t.eq(orphans(b), {}, "a whole list without them shows none")
    look(b, cloud)
    t.eq((orphans(b)["ours"]["first_seen_ms"], orphans(b)["bare"]["ignored"]), (before, True), "nothing of it is forgotten")
    for fault in ({"kind": "status", "status": 503, "body": "no"}, {"kind": "truncated"}):
        cloud.faults({"on": "list", "times": 1, **fault})
        look(b, cloud)
        t.eq(len(orphans(b)), 3, f"a list with {fault['kind']} takes nothing away")
        cloud.control("DELETE", "/faults")
    code, out, _ = b.cli("orphans", "unignore", f"shadeform/{ids['bare']}")
    t.eq((code, orphans(b)["bare"]["ignored"]), (0, False), "unignore")


def dry(b, cloud, ids):
    before = deletes(cloud)
    code, out, _ = b.cli("orphans")
    t.ok(code == 0 and "AGE" in out and "ours" in out and "other" not in out.replace("other-broker", ""), "the table for people")
    code, out, _ = b.cli("orphans", "--all")
    t.ok(code == 0 and "other-broker" in out, "--all shows what is not ours")
    code, out, _ = b.cli("orphans", "release", f"shadeform/{ids['ours']}")
    t.ok(code == 0 and "would end machine" in out and "$" in out and "--yes" in out, f"release says what it would do: {out}")
    t.eq((deletes(cloud), len(orphans(b)), b.ask("leases")["leases"]), (before, 3, []), "and does nothing")


def changed_hands(b, cloud, ids):
    """Between the list and the release its tags became another's."""
    before, alarmed = deletes(cloud), alarms(b, "not-ours")
    cloud.control("POST", f"/machines/{ids['two']}", {"do": "tags", "tags": mark(OTHER, token="f00d")})
    code, _, err = b.cli("orphans", "release", f"shadeform/{ids['two']}", "--yes")
    t.ok(code == 1 and "no longer carries our mark" in err, f"the release fails: {err}")
    cloud.control("POST", f"/machines/{ids['two']}", {"do": "tags", "tags": []})
    look(b, cloud)
    t.eq(set(orphans(b)), {"ours", "bare"}, "it is no orphan any more")
    t.eq((deletes(cloud), there(cloud, ids["two"])), (before, [True]), "and was not touched")
    t.eq(alarms(b, "not-ours"), alarmed + 1, "an alarm says so")
    t.eq([x["state"] for x in b.ask("leases")["leases"]], [], "no lease is left of it")


def released(b, cloud, ids):
    """Durably: removals fail, the daemon is killed, and yet it ends; others' machines stay."""
    cloud.faults({"on": "delete", "kind": "status", "status": 500, "body": "no", "times": 3})
    x = b.accepted("orphans.release", {"key": "end", "provider": "shadeform", "id": ids["ours"], "yes": True})["lease"]
    b.kill()
    b.start()
    end = b.wait_state(x, "released")
    schemas.check("lease", end)
    t.eq(there(cloud, ids["ours"]), [False], "what was released is gone")
    t.eq(b.accepted("orphans.release", {"key": "end", "provider": "shadeform", "id": ids["ours"], "yes": True})["lease"], x,
         "the same key is the same release")
    t.ok(all(there(cloud, ids["other"], ids["part"], ids["bare"], ids["people"], ids["two"])), "all others are there")
    t.ok(end["spent_udollar"] > 0, "its time in the books was counted")


def killed(b, cloud, ids):
    """The daemon dies before and after its N-th commit; the same command is sent again with the same key."""
    owner, deaths, n = b.ask("ping")["instance"], 0, 0
    strays = {n: add(cloud, f"sweep{n}", mark(owner, token=f"5{n:03}")) for n in range(4, 61, 3)}
    look(b, cloud)
    thaw(b)
    for n, x in strays.items():
        b.stop()
        b.start(wait=False, GPUB_TEST_KILL=f"commit:{n // 2}{'+' if n % 2 else ''}")
        died = False

        def again():
            nonlocal died
            if b.proc.poll() is not None:
                died = True
                b.start()
            try:
                lease = b.accepted("orphans.release", {"key": f"sweep-{n}", "provider": "shadeform", "id": x, "yes": True}, 1000)["lease"]
                return b.lease(lease)["state"] == "released"
            except (Refused, RuntimeError, TimeoutError):  # not listed yet; dead, or dying
                return None
        until(again, 30, f"the release, killed at {n}")
        deaths += died
        if not died and n > 12:
            break
        if there(cloud, x) != [False] or b.ask("cost")["rate_udollar"]:
            t.ok(False, f"killed at commit {n // 2}: gone, and out of the books")
    b.restart()
    for x in strays.values():
        cloud.control("POST", f"/machines/{x}", {"do": "vanish"})
    look(b, cloud)
    t.ok(deaths > 5 and n < 58, f"killed at each of {deaths} points of a release: it always ends, once")
    t.ok(all(there(cloud, ids["other"], ids["part"], ids["bare"], ids["people"], ids["two"])), "and nothing else does")


def adopted(b, cloud, ids):
    id = add(cloud, "stray", mark(b.ask("ping")["instance"], token="cafe"))
    look(b, cloud)
    thaw(b)
    price = orphans(b)["stray"]["price_udollar"]
    code, out, _ = b.cli("orphans", "adopt", f"shadeform/{id}", "--json")
    lease = json.loads(out)["lease"]
    t.eq((code, lease["state"], lease["owner"], lease["price_udollar"]), (0, "degraded", "tester", price), "adopt makes a lease of it")
    t.ok("expires_ms" not in lease, "which never ends by itself")
    t.eq(schemas.check("lease", lease)["machine"]["id"], id, "with its machine")
    b.kill()
    b.start()
    look(b, cloud)
    t.ok("stray" not in orphans(b), "it is no orphan any more, not after a kill either")
    t.eq(b.ask("cost")["rate_udollar"], price, "and is in the books")
    cloud.control("POST", f"/machines/{id}", {"do": "status", "status": "error"})
    for _ in range(2):
        n = cloud.control("GET", "/counters").get("info", 0)
        look(b, cloud)
        cloud.control("GET", f"/wait?endpoint=info&count={n + 1}&timeout=10")
    until(lambda: "stopped" in [s["step"] for s in b.ask("logs", {"lease": lease["id"]})["lines"]], 10, "it is told")
    t.eq((b.lease(lease["id"])["state"], there(cloud, id)), ("degraded", [True]), "one that the cloud stopped is not ended for that")
    cloud.control("POST", f"/machines/{id}", {"do": "status", "status": None})
    twin = add(cloud, "twin", mark(b.ask("ping")["instance"], token="cafe"))
    look(b, cloud)
    t.eq(("twin" in orphans(b), there(cloud, twin)), (True, [True]), "another with its token is not ended for that")
    thaw(b)
    b.accepted("release", {"key": "ra", "lease": lease["id"]})
    b.wait_state(lease["id"], "released")
    t.eq(there(cloud, id, twin), [False, True], "release ends it, and it alone")
    cloud.control("POST", f"/machines/{twin}", {"do": "vanish"})


def by_hand(b, cloud, ids):
    """Somebody ended it at the cloud, after the list."""
    id = add(cloud, "gone", mark(b.ask("ping")["instance"], token="90e"))
    look(b, cloud)
    thaw(b)
    before = deletes(cloud)
    cloud.control("POST", f"/machines/{id}", {"do": "vanish"})
    x = b.accepted("orphans.release", {"key": "hand", "provider": "shadeform", "id": id, "yes": True})["lease"]
    b.wait_state(x, "released")
    t.eq(deletes(cloud), before, "what is gone already needs no removal")


def frozen(b, cloud, ids):
    id = add(cloud, "future", mark(b.ask("ping")["instance"], lease=500, token="beef"))
    look(b, cloud)
    t.eq(b.ask("ping").get("frozen"), "books-old", "a number of the future freezes the books")
    refused(b, "orphans.release", {"provider": "shadeform", "id": id, "yes": True}, "conflict")
    t.ok(b.ask("orphans.adopt", {"key": "fa", "provider": "shadeform", "id": id})["lease"]["id"] == "l500",
         "adopting is allowed, and keeps the number that is free")
    t.eq(there(cloud, id), [True], "nothing was ended")
    b.ask("resume", {"provider": "broker"})
    b.accepted("release", {"key": "fr", "lease": "l500"})
    b.wait_state("l500", "released")


def rule(b, cloud):
    """orphans_release_after: one a round, ours alone, after the grace, never by books or a clock that is not believed."""
    owner = b.ask("ping")["instance"]
    old = add(cloud, "old", mark(owner, lease=70, token="01d"))
    look(b, cloud)
    t.eq(b.ask("ping").get("frozen"), "books-old", "empty books before a machine of ours are frozen")
    b.ask("resume", {"provider": "broker"})
    x = first_lease(b, "second")
    ids = [add(cloud, f"due{i}", mark(owner, int(x[1:]), f"due{i}")) for i in (1, 2)]
    others = [old, add(cloud, "other", mark(OTHER, int(x[1:]), "0ther")), add(cloud, "bare", [f"gpubroker-owner={owner}"]),
              add(cloud, "people", ["mine"]), add(cloud, "ignored", mark(owner, int(x[1:]), "190"))]
    look(b, cloud)
    b.ask("orphans.ignore", {"provider": "shadeform", "id": others[-1]})
    t.eq(sum(there(cloud, *ids)), 2, "the first list ends nothing")
    thaw(b)
    seen = max(o["first_seen_ms"] for o in orphans(b).values())
    until(lambda: b.ask("ping")["now_ms"] >= seen + GRACE, 10, "the grace is over")
    b.restart(GPUB_TEST_CLOCK_OFFSET_MS=str(365 * 24 * 3600 * 1000))
    until(lambda: len(orphans(b)) == 5, 10, "a list by a clock a year ahead")
    t.eq((b.ask("ping").get("frozen"), sum(there(cloud, *ids))), ("clock-jumped", 2), "a wrong clock ends nothing")
    b.restart()
    until(lambda: alarms_of(b, "orphan-released") == 1, 10, "the first round")
    until(lambda: sum(there(cloud, *ids)) == 1, 10, "one is ended")
    look(b, cloud)
    until(lambda: sum(there(cloud, *ids)) == 0, 10, "the next round ends the other")
    for _ in range(2):
        look(b, cloud)
    t.eq(alarms_of(b, "orphan-released"), 2, "one a round, each with an event")
    t.ok(all(there(cloud, *others)), "those of lost books, of others, without a whole mark, of people and ignored stay")


def alarms_of(b, what):
    return sum(e["what"] == what for e in b.ask("events", {"limit": 1000})["events"])


def partial(b, cloud):
    """What is seen in a list that is not whole is not ended."""
    x = b.ask("leases", {"all": True})["leases"][0]["number"]
    id = add(cloud, "late", mark(b.ask("ping")["instance"], x, "1a7e"))
    look(b, cloud)
    thaw(b)
    seen = orphans(b)["late"]["first_seen_ms"]
    until(lambda: b.ask("ping")["now_ms"] >= seen + GRACE, 10, "the grace is over")
    cloud.faults({"on": "list", "kind": "set", "fields": {"id": None}, "times": 1})
    look(b, cloud)
    t.eq(there(cloud, id), [True], "a list with a row that cannot be read ends nothing")
    look(b, cloud)
    until(lambda: there(cloud, id) == [False], 10, "a whole one does")
    t.ok(True, "a whole one does")


def write_strays(b, *strays):
    with open(f"{b.state}/provider/good/strays.new", "w") as f:
        json.dump(strays, f)
    os.rename(f.name, f"{b.state}/provider/good/strays")


def read_strays(b):
    with open(f"{b.state}/provider/good/strays") as f:
        return [s["id"] for s in json.load(f)]


def resources(b):
    """Disks and the like that a cloud shows without a machine."""
    owner = b.ask("ping")["instance"]
    x = b.accepted("rent", {"key": "r", "filter": H100})["lease"]
    b.wait_state(x, "booting")
    machine = b.lease(x)["machine"]["id"]
    token = machine[len("m-"):]  # that is how this cloud names machines

    def stray(kind, id, who=owner, token="d15c"):
        return {"kind": kind, "id": id, "price_udollar": 10000,
                "tags": {"gpubroker-owner": who, "gpubroker-lease": "1", "gpubroker-token": token}}
    write_strays(b, stray("disk", "7"), stray("address", "7"), stray("disk", "8", OTHER), {"kind": "key", "id": "9", "tags": {}},
                 stray("disk", "own", token=token))
    until(lambda: len(orphans(b)) and "own" in [r["id"] for r in b.lease(x)["resources"]], 10, "a list")
    t.eq(sorted((o["kind"], o["id"], o["mark"]) for o in b.ask("orphans", {"all": True})["orphans"]),
         [("address", "7", "ours"), ("disk", "7", "ours"), ("disk", "8", "other-broker"), ("key", "9", "none")],
         "resources are orphans, too, except that of a live lease, which goes with it")
    schemas.check("lease", b.lease(x))
    refused(b, "orphans.release", {"provider": "good", "id": "7", "yes": True}, "conflict")
    for id in ("disk:8", "8", "key:9", "9"):
        refused(b, "orphans.release", {"provider": "good", "id": id, "yes": True}, "denied")
    end = b.accepted("orphans.release", {"key": "d7", "provider": "good", "id": "disk:7", "yes": True})["lease"]
    b.wait_state(end, "released")
    t.eq(json.load(open(f"{b.state}/provider/good/strays"))[0]["kind"], "address", "the disk is gone, the address is not")
    keep = b.accepted("orphans.adopt", {"key": "a7", "provider": "good", "id": "7"})["lease"]
    t.eq(b.lease(keep)["price_udollar"], 10000, "an adopted address bills in the books")
    b.restart()
    b.offers_there()
    until(lambda: provider(b)["calls"] > 3, 10, "a list")
    t.eq(orphans(b), {}, "and is no orphan any more")
    b.accepted("release", {"key": "ra7", "lease": keep})
    b.wait_state(keep, "released")
    t.ok("7" not in read_strays(b), "until it is released")
    b.accepted("release", {"key": "rx", "lease": x})
    b.wait_state(x, "failed-empty")
    t.ok({"8", "9"} <= set(read_strays(b)), "what is not ours is still there")


GRACE = 1500


def main():
    ids = {}
    with Cloud("shadeform") as cloud, Broker(cloud.provider(reconcile_every="1h")) as b:
        b.offers_there()
        first_lease(b)
        for fn in (told_apart, not_ours, rights, remembered, dry, changed_hands, released, killed, adopted, by_hand, frozen):
            t.run(fn, b, cloud, ids)
    with Cloud("shadeform") as cloud, Broker(cloud.provider(reconcile_every="1h"), limits={"removals_per_round": 1},
                                             broker={"orphans_release_after": f"{GRACE}ms"}) as b:
        b.offers_there()
        t.run(rule, b, cloud)
        t.run(partial, b, cloud)
    with Broker({"name": "good", "plugin": "good", "offers_every": "1s", "reconcile_every": "1s"}) as b:
        b.offers_there()
        t.run(resources, b)
    t.done()


main()
