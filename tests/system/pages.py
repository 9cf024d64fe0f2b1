#!/usr/bin/python3
"""pages.py - listings of thousands: leases, events and offers, page by page, while they change"""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import Broker, Refused, Tap, until  # noqa: E402

t = Tap()
LIVING, ENDED, OFFERS = 2500, 1500, 250
SIZES = {"gpu_name": "NVIDIA L40S", "gpu_count": 1, "vram_mib": 46068, "vcpus": 16, "ram_mib": 131072, "disk_gib": 200}


def offers(first, count):
    # The plugin lists one scope, "good", and takes an offer's region for its scope.
    return [{"offer_ref": f"o{i}", "region": "good", "price": round(1 + i / 1000, 3), **SIZES} for i in range(first, first + count)]


def seed(b):
    """Copies of one lease that was rented and released: ended ones, and living ones that nobody has to care for."""
    lease = b.accepted("rent", {"key": "one", "filter": {"gpu": [{"model": "L40S", "min": 1, "max": 1}]}})["lease"]
    b.wait_state(lease, "booting")
    b.accepted("release", {"key": "two", "lease": lease})
    b.wait_state(lease, "released", "failed-empty")
    b.stop()
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    owner, doc = db.execute("select owner, doc from lease").fetchone()
    first = json.loads(doc)
    for n in range(first["number"] + 1, LIVING + ENDED + 1):
        living = n % 8 < 5  # the two kinds stand mixed
        one = {**first, "number": n, "expires_ms": 0, **({"state": "ready", "ended_ms": 0} if living else {})}
        db.execute("insert into lease values (?, ?, null, ?, ?, ?)", (n, owner, int(not living), one["ended_ms"], json.dumps(one)))
    db.commit()
    db.close()
    b.start()


def pages(b, verb, member, body):
    """Every page; none may say that there is a next one for ever."""
    got, cursor = [], None
    for _ in range(5000):
        reply = b.ask(verb, {**body, **({"cursor": cursor} if cursor else {})})
        got.append(reply[member])
        cursor = reply.get("cursor")
        if not cursor:
            return got
    raise AssertionError(f"{verb}: pages without an end")


def flat(got):
    return [x for page in got for x in page]


def same(got, want, name):
    """Like t.eq, of lists that are too long to be shown."""
    at = next((i for i, (x, y) in enumerate(zip(got, want)) if x != y), min(len(got), len(want)))
    if not t.ok(got == want, name):
        print(f"# {len(got)} rows, wanted {len(want)}; from row {at} on {got[at:at + 5]}, wanted {want[at:at + 5]}")


def numbers(leases):
    return [x["number"] for x in leases]


def leases(b):
    living = [n for n in range(2, LIVING + ENDED + 1) if n % 8 < 5]
    ended = [n for n in range(LIVING + ENDED, 1, -1) if n % 8 >= 5] + [1]
    t.eq(len(b.ask("leases")["leases"]), 100, "a page of the living has a hundred, unless it is told")
    for limit in (1000, 7):
        got = pages(b, "leases", "leases", {"limit": limit})
        same(numbers(flat(got)), living, f"the living, in pages of {limit}: each once, in order")
        t.ok(all(len(p) <= limit for p in got), "no page is longer")
    for limit in (1000, 13):
        got = pages(b, "leases", "leases", {"all": True, "limit": limit})
        same(numbers(flat(got)), living + ended, f"all, in pages of {limit}: the ended ones behind, newest first")
        t.ok(all(len(p) <= limit for p in got), "no page is longer")
    got = pages(b, "leases", "leases", {"all": True, "state": b.lease("l1")["state"], "limit": 50})
    t.eq(len(flat(got)), len(ended), "of one state: every one")
    got = pages(b, "leases", "leases", {"all": True, "state": "released", "limit": 50})
    t.ok(len(got) > 10 and not flat(got), "of a state that none has: empty pages to the end")
    t.eq(flat(pages(b, "leases", "leases", {"all": True, "owner": "nobody"})), [], "of somebody who has none: none")
    for cursor in ("living", "living:x", "ended:-1", "x:1", "12"):
        try:
            b.ask("leases", {"cursor": cursor})
            t.ok(False, f"'{cursor}' is refused")
        except Refused as e:
            t.eq(e.code, "bad-request", f"'{cursor}' is refused")


def changing(b):
    first = b.ask("leases", {"limit": 10})
    seen = numbers(first["leases"])
    going = [seen[3], seen[-1] + 1]
    for n in going:
        b.accepted("release", {"key": f"go-{n}", "lease": f"l{n}"})
        b.wait_state(f"l{n}", "failed-empty")
    rest = pages(b, "leases", "leases", {"limit": 1000, "cursor": first["cursor"]})
    stayed = [n for n in range(2, LIVING + ENDED + 1) if n % 8 < 5 and n not in going]
    same([n for n in seen + numbers(flat(rest)) if n not in going], stayed, "what lives through all pages is in one of them")


def cli(b):
    def count(*argv):
        code, out, err = b.cli("leases", "--json", *argv)
        return code, len(json.loads(out)["leases"])
    t.eq(count(), (0, len(living_now(b))), "the CLI follows the pages")
    t.eq(count("--all"), (0, LIVING + ENDED), "through the ended ones")
    t.eq(count("--limit", "150"), (0, 150), "as far as it is told")
    code, out, err = b.cli("leases", "--jsonl", "--all")
    t.eq(len(out.splitlines()), LIVING + ENDED, "one a line, too")


def living_now(b):
    return flat(pages(b, "leases", "leases", {"limit": 1000}))


def events(b):
    for _ in range(150):
        b.ask("pause", {"provider": "good"})
        b.ask("resume", {"provider": "good"})
    last = b.ask("ping")["seq"]
    t.ok(last > 300, f"there are {last} events")
    seqs, since = [], 0
    while True:
        got = b.ask("events", {"since": since, "limit": 64})["events"]
        seqs += [e["seq"] for e in got]
        if len(got) < 64:
            break
        since = seqs[-1]
    same(seqs, list(range(1, len(seqs) + 1)), "page by page: without a gap")
    sock = b.dealer()
    rid, seqs = b.send("events", {"since": 0, "follow": True, "limit": 50}, sock), []
    b.ask("pause", {"provider": "good"})
    b.ask("resume", {"provider": "good"})
    want = b.ask("ping")["seq"]
    while not seqs or seqs[-1] < want:
        r = b.recv(rid, 5000, sock)
        if not r:
            break
        seqs += [e["seq"] for e in r[1]["events"]]
    sock.close(0)
    same(seqs, list(range(1, want + 1)), "followed from the beginning: the past, then the present, without a gap")


def offer_pages(b):
    ids = [o["id"] for o in flat(pages(b, "offers", "offers", {"filter": {}, "limit": 7}))]
    t.eq((len(ids), len(set(ids))), (OFFERS, OFFERS), "offers in pages of seven: each once")
    first = b.ask("offers", {"filter": {}, "limit": 100})
    b.providers[0]["offers"] = offers(50, OFFERS)  # fifty that were shown are gone, fifty dearer ones came
    b.write_config()
    b.ask("reload")
    until(lambda: [o["price_udollar"] for o in b.ask("offers", {"filter": {}, "limit": 1})["offers"]] == [1050000], 20, "other offers")
    rest = flat(pages(b, "offers", "offers", {"filter": {}, "limit": 100, "cursor": first["cursor"]}))
    prices = [o["price_udollar"] for o in first["offers"] + rest]
    same(prices, [1000000 + 1000 * i for i in range(OFFERS + 50)], "though the table changed between two pages, none is left out")
    code, out, err = b.cli("offers", "--gpu", "any", "--json")
    t.eq(len(json.loads(out)["offers"]), OFFERS, "the CLI follows the pages")


def main():
    good = {"name": "good", "plugin": "good", "offers_every": "1s", "reconcile_every": "1s", "offers": offers(0, OFFERS)}
    with Broker(good) as b:
        b.offers_there()
        seed(b)
        b.offers_there()
        for fn in (leases, changing, cli, events, offer_pages):
            t.run(fn, b)
    t.done()


main()
