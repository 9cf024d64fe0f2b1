#!/usr/bin/python3
"""metrics.py - metrics_file: strictly in Prometheus' text format, whole at any moment, and true"""
import os
import re
import sqlite3
import stat
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker import SRC, Broker, Cloud, Tap, until  # noqa: E402

t = Tap()
H100 = {"gpu": [{"model": "H100", "min": 1, "max": 1}]}
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+|NaN|[+-]Inf)")
SUFFIXES = {"summary": ("_sum", "_count"), "counter": ("",), "gauge": ("",)}


def parse(text):
    """{(name, ((label, value), …)): number} of format 0.0.4; anything else raises."""
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    got, types, family, helped = {}, {}, None, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = re.fullmatch(rf"# HELP ({NAME}) (?:[^\\]|\\\\|\\n)+", line).group(1)
            continue
        if line.startswith("# TYPE "):
            family, kind = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|summary)", line).groups()
            if family in types or helped != family:
                raise ValueError(f"{family}: twice, or without HELP just before")
            if (kind == "counter") != family.endswith("_total"):
                raise ValueError(f"{family} is a {kind}")
            types[family] = kind
            continue
        m = SAMPLE.fullmatch(line)
        if not m:
            raise ValueError(f"no sample: {line!r}")
        if m.group(1) not in [family + s for s in SUFFIXES[types[family]]]:
            raise ValueError(f"{m.group(1)} among the samples of {family}")
        labels = tuple(re.findall(LABEL, m.group(2) or ""))
        if len({k for k, _ in labels}) != len(labels) or (m.group(1), labels) in got:
            raise ValueError(f"twice: {line}")
        got[m.group(1), labels] = float(m.group(len(m.groups())))
    return got, types


def refuses():
    good = "# HELP a_total x\n# TYPE a_total counter\na_total{l=\"x\\\"y\"} 1\n"
    t.eq(parse(good)[0], {("a_total", (("l", 'x\\"y'),)): 1.0}, "the parser of this test takes what is right")
    for bad in (good[:-1], good + "\n", good + "a_total{l=\"x\\\"y\"} 2\n", good.replace("counter", "gauge"), good.replace('\\"', '"'),
                good + "b 1\n", good.replace(" 1", " one"), good + good, good.replace("# HELP a_total x\n", "")):
        try:
            parse(bad)
            t.ok(False, f"and refuses {bad!r}")
        except (ValueError, AttributeError, KeyError):
            t.ok(True, "and refuses what is wrong")


class Page:
    def __init__(self, b, path):
        """One that was written after this call."""
        self.b, self.start = b, b.ask("ping")["now_ms"]
        self.values, self.types = until(lambda: self.read(path), 10, "the metrics")

    def read(self, path):
        with open(path) as f:
            values, types = parse(f.read())
        return (values, types) if values["gpubroker_written_timestamp_seconds", ()] * 1000 > self.start else None

    def __call__(self, name, **labels):
        return self.values[f"gpubroker_{name}", tuple(labels.items())]

    def has(self, name, **labels):
        return (f"gpubroker_{name}", tuple(labels.items())) in self.values


def cents(x, y):
    return abs(x - y) < 0.005


def truth(b, cloud, path):
    p = Page(b, path)
    st = os.stat(path)
    t.eq(stat.S_IMODE(st.st_mode), 0o644, "everybody may read it")
    t.ok(all(n.startswith("gpubroker_") for n in p.types) and len(p.types) > 20, f"{len(p.types)} families, all of gpubroker")
    groups = {g["key"]: g for g in b.ask("offers", {"filter": {"gpu": [{"model": "any", "min": 1, "max": 0}]},
                                                    "group_by": "gpu"})["groups"]}
    got = b.ask("offers", {"filter": {"gpu": [{"model": "H100", "min": 1, "max": 0}]}, "limit": 1000})["offers"]
    want = min(o["price_udollar"] / o["gpu"]["count"] for o in got) / 1e6
    found = min(v for (n, l), v in p.values.items() if n == "gpubroker_cheapest_gpu_dollars_per_hour" and l[0][1].startswith("H100")
                and l[1][1] == "on-demand")
    t.ok(cents(found, want) and len(groups) > 1, f"the cheapest H100 costs ${found} an hour")
    provider = b.ask("providers")["providers"][0]
    t.eq(p("offers", provider="shadeform"), provider["offers"]["count"], "offers")
    t.ok(0 <= p("offers_age_seconds", provider="shadeform") < 10, "and their age")
    t.eq((p("provider_usable", provider="shadeform"), p("frozen", why="clock"), p("frozen", why="books")), (1, 0, 0), "all is well")
    t.eq(p("provider_state", provider="shadeform", state="up"), 1, "and the state has a name")
    t.eq((p("leases", state="booting"), p("spent_dollars_total"), p("orphans", provider="shadeform")), (0, 0, 0), "nothing is rented yet")


def rented(b, cloud, path):
    x = b.accepted("rent", {"key": "m", "filter": H100})["lease"]
    rate = b.wait_state(x, "booting")["price_udollar"] / 1e6
    owner = b.ask("ping")["instance"]
    cloud.control("POST", "/machines", {"name": "stray", "tags": [f"gpubroker-owner={owner}", "gpubroker-lease=1",
                                                                  "gpubroker-token=feed"]})
    until(lambda: b.ask("orphans")["orphans"], 10, "the orphan")
    p = Page(b, path)
    t.eq((p("leases", state="booting"), p("leases", state="ready")), (1, 0), "one lease is booting")
    t.ok(cents(p("spend_dollars_per_hour"), rate) and cents(p("provider_spend_dollars_per_hour", provider="shadeform"), rate),
         f"it costs ${rate} an hour")
    t.eq(p("orphans", provider="shadeform"), 1, "an orphan")
    t.ok(p("orphans_dollars_per_hour", provider="shadeform") > 0, "and its price")
    t.eq((p("alarms_total", what="orphans"), p("step_seconds_count", step="ordering"), p("step_seconds_count", step="pending")), (1, 1, 1),
         "an alarm, and the steps until now")
    t.ok(0 <= p("step_seconds_sum", step="ordering") < 30, "which took seconds")
    t.ok(p("provider_calls_total", provider="shadeform") > 3 and p("bus_requests_total") > 3 and p("events_total") > 3, "counters count")
    b.ask("orphans.ignore", {"provider": "shadeform", "id": b.ask("orphans")["orphans"][0]["id"]})
    cloud.faults({"on": "delete", "kind": "status", "status": 500, "body": "no", "times": -1})
    b.accepted("release", {"key": "mr", "lease": x})
    b.wait_state(x, "leaked")
    p = Page(b, path)
    t.eq((p("leaked"), p("leases", state="leaked"), p("alarms_total", what="leaked")), (1, 1, 1), "what cannot be ended is leaked")
    t.ok(cents(p("leaked_dollars_per_hour"), rate), "and costs on")
    t.eq(p("orphans", provider="shadeform"), 0, "what is ignored does not count")
    cloud.control("DELETE", "/faults")
    b.wait_state(x, "failed-empty")
    spent = Page(b, path)("spent_dollars_total")
    t.ok(cents(spent, b.ask("cost")["total_udollar"] / 1e6) and spent > 0, f"${spent} were spent, as cost says")
    b.restart()
    p = Page(b, path)
    t.ok(p("spent_dollars_total") == spent and not p.has("alarms_total", what="leaked"), "that outlives a restart, counters do not")
    b.stop()
    db = sqlite3.connect(f"{b.state}/gpubroker.db")
    with db:
        t.eq(db.execute("DELETE FROM meta WHERE key = 'spent_udollar'").rowcount, 1, "the sum is in the books")
    db.close()
    b.start()
    t.eq(Page(b, path)("spent_dollars_total"), spent, "books without it, as older ones are, are added up once")


def whole(b, path):
    """Read as fast as it goes, over some writes."""
    stamps, end, n = set(), time.monotonic() + 20, 0
    while len(stamps) < 4 and time.monotonic() < end:
        with open(path) as f:
            values, types = parse(f.read())
        stamps.add(values["gpubroker_written_timestamp_seconds", ()])
        n += list(types)[-1] == "gpubroker_bus_refused_total" and 1
    t.ok(len(stamps) == 4 and n > 20, "it is whole whenever it is read")
    t.eq([x for x in os.listdir(os.path.dirname(path)) if x != os.path.basename(path)], [], "nothing is left beside it")


def unwritable(b, path):
    os.chmod(os.path.dirname(path), 0o700)
    os.rename(os.path.dirname(path), os.path.dirname(path) + ".away")
    until(lambda: b.logged("metrics.failed"), 10, "a complaint")
    start = b.ask("ping")["now_ms"]
    until(lambda: b.ask("ping")["now_ms"] > start + 2500, 10, "two more tries")
    with open(b.log, "rb") as f:
        f.seek(b.mark)
        t.eq(f.read().count(b"metrics.failed"), 1, "a file that cannot be written is told once")
    os.rename(os.path.dirname(path) + ".away", os.path.dirname(path))
    Page(b, path)
    t.ok(until(lambda: b.logged("metrics.written"), 5, "its end"), "and so is its end")


def told(b, path):
    """The page and the alerting rules name what there is."""
    types = Page(b, path).types
    series = {name + s for name, kind in types.items() for s in SUFFIXES[kind]}
    with open(f"{SRC}/docs/examples/alerts.yml") as f:
        rules = set(re.findall(r"gpubroker_\w+", "".join(x for x in f if "expr:" in x)))
    t.ok(rules and rules <= series, f"alerts.yml asks for what there is {sorted(rules - series)}")
    with open(f"{SRC}/docs/operations.md") as f:
        table = f.read().split("| metric |")[1].split("\n\n")[0]
    page = {f"gpubroker_{n}" for row in table.splitlines()[2:] for n in re.findall(r"`(\w+)`", row.split("|")[1])}
    t.eq(page, series, "operations.md tells of all of it")


def main():
    t.run(refuses)
    with Cloud("shadeform") as cloud:
        b = Broker(cloud.provider())
        path = f"{b.dir}/prom/gpubroker.prom"
        os.mkdir(os.path.dirname(path))
        b.broker = {"metrics_file": path, "metrics_every": "1s"}
        b.write_config()
        with b:
            b.offers_there()
            for fn, args in ((told, (b, path)), (truth, (b, cloud, path)), (rented, (b, cloud, path)), (whole, (b, path)), (unwritable, (b, path))):
                t.run(fn, *args)
    t.done()


main()
