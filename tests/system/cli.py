"""gpubroker-cli against a broker of canned answers: exit codes, documents, progress, Ctrl-C, hostile text."""
import copy
import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

try:
    import jsonschema  # noqa: F401
    import zmq  # noqa: F401
except ImportError as missing:
    print("1..0 # SKIP %s" % missing)
    sys.exit(0)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import schemas
from fakebroker import Broker

CLI = str(Path(os.environ.get("GPUB_BUILDDIR", ".")) / "gpubroker-cli")
EXAMPLE = {p.stem: json.loads(p.read_text()) for p in (schemas.DIR / "examples").glob("*.json")}
LEASE, OFFER, OPERATION = EXAMPLE["lease"], EXAMPLE["offer"], EXAMPLE["operation"]
ACCEPTED = ("accepted", {"operation": "op7", "lease": "l42", "name": "trainer"})
FINAL = ("final", {"operation": OPERATION, "lease": LEASE})
n = bad = 0


def ok(passed, name, *facts):
    global n, bad
    n += 1
    bad += not passed
    print("%sok %d - %s" % ("" if passed else "not ", n, name))
    if not passed:
        for fact in facts:
            print("\n".join("# " + line for line in str(fact).splitlines()))


def progress(state, text, **more):
    return ("progress", dict({"operation": "op7", "lease": "l42", "state": state, "step": state, "text": text,
                              "elapsed_ms": 1000}, **more))


def error(code, **more):
    return ("error", schemas.check("error", dict({"code": code, "message": "it is " + code, "retryable": False}, **more)))


def run(b, *words, timeout=60, **env):
    return subprocess.run([CLI, *words], env=dict(b.env, **env), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout)


def document(r):
    """The one JSON document of standard output, or None when it is not exactly one."""
    try:
        return json.loads(r.stdout)
    except ValueError:
        return None


def fits(kind, obj):
    found = schemas.problems(kind, obj)
    for f in found:
        print("#", f)
    return not found


def exit_codes(b):
    codes = {"bad-frame": 2, "bad-request": 2, "unknown-verb": 2, "version": 2, "no-offer": 3, "offers-exhausted": 4,
             "denied": 5, "busy": 6, "draining": 6, "timeout": 7, "conflict": 8, "over-budget": 9, "limit": 9,
             "not-found": 10, "provider-down": 1, "failed": 1, "internal": 1}
    for code, want in codes.items():
        b.on["leases"] = lambda _: [error(code, hint="a hint")]
        r = run(b, "leases")
        ok(r.returncode == want and "it is " + code in r.stderr and "a hint" in r.stderr and not r.stdout,
           "%s exits with %d and says why on standard error" % (code, want), r)
        r = run(b, "leases", "--json")
        doc = document(r)
        ok(r.returncode == want and doc and fits("error", doc["error"]) and not r.stderr,
           "%s with --json is one document" % code, r)


def reads(b):
    other = dict(EXAMPLE["rejection"], code="gpu-model", text="another one")
    b.on["rent"] = lambda _: [error("no-offer", details=[EXAMPLE["rejection"]] * 30 + [other])]
    r = run(b, "rent", "--gpu", "H100")
    ok(r.returncode == 3 and r.stderr.count("above the cap") == 25 and "5 more" in r.stderr and "1 of other" in r.stderr,
       "no-offer tells why, but not for ever", r)
    replies = {
        "ping": {"server": "gpubroker 0.1.0", "instance": "i", "broker": "prod-eu", "epoch": 1, "seq": 4,
                 "protocols": ["GPUB/1"], "now_ms": 1, "events": [], "principal": "uid:1000", "rights": "rent",
                 "limits": {}},
        "offers": {"offers": [OFFER], "matched": 1, "excluded": {"price": 3},
                   "rejected": [EXAMPLE["rejection"]], "providers": [dict(EXAMPLE["provider"], state="down")]},
        "leases": {"leases": [LEASE]},
        "lease": {"lease": LEASE},
        "explain": {"lease": LEASE, "attempts": LEASE["attempts"], "rejected": [EXAMPLE["rejection"]]},
        "providers": {"providers": [EXAMPLE["provider"]]},
        "clusters": {"clusters": [EXAMPLE["cluster"]]},
        "clusters.render": {"part": "cluster", "text": "kind: Cluster\n"},
        "logs": {"lines": [{"ms": 1767225600000, "step": "gpu", "text": "one GPU"}]},
        "orphans": {"orphans": [EXAMPLE["orphan"]]},
        "cost": {"rows": [EXAMPLE["cost"]], "total_udollar": 7800000, "rate_udollar": 1950000},
    }
    people = {
        "ping": (["ping"], "prod-eu"), "offers": (["offers"], r"\$1\.95 +\$1\.95 +1x H100 80G"),
        "leases": (["leases"], r"l42 +trainer +ready"), "lease": (["show", "l42"], r"expires"),
        "explain": (["explain", "l42"], r"price .*\$4\.10 is above"), "providers": (["providers"], r"shadeform .*\$412\.00"),
        "clusters": (["clusters"], "cni-unsafe"),
        "clusters.render": (["clusters", "render", "a", "--mtu", "1400"], "^kind: Cluster$"), "logs": (["logs", "l42"], "one GPU"),
        "orphans": (["orphans"], r"l17-2 +machine +ours +17 +running +hyperstack/oslo-norway-1 +\$0\.60"),
        "cost": (["cost", "--by", "owner"], r"total \$7\.80"),
    }
    for verb, (words, pattern) in people.items():
        b.on[verb] = lambda _, verb=verb: [("final", replies[verb])]
        r = run(b, *words)
        ok(r.returncode == 0 and re.search(pattern, r.stdout), "%s tells people" % words[0], r)
        r = run(b, *words, "--json")
        ok(r.returncode == 0 and document(r) == replies[verb] and not r.stderr, "%s --json is the reply" % words[0], r)
    r = run(b, "offers")
    ok("3 price" in r.stderr and "shadeform is down" in r.stderr, "offers says what is missing and why", r)
    r = run(b, "leases", "--jsonl")
    ok(json.loads(r.stdout) == LEASE, "leases --jsonl is a lease a line", r)
    b.on["offers"] = lambda _: [("final", {"offers": [], "matched": 0, "excluded": {"gpu-model": 9}})]
    ok(run(b, "offers", "--gpu", "B300").returncode == 3, "offers without a match exits with 3")
    b.on["leases"] = lambda _: [("final", {"leases": [LEASE, LEASE]})]
    r = run(b, "leases", "--limit", "1", "--json")
    ok(len(document(r)["leases"]) == 1, "--limit holds though the broker sends more")
    pages = {None: {"leases": [LEASE], "cursor": "next"}, "next": {"leases": [dict(LEASE, id="l43", number=43)]}}
    b.on["leases"] = lambda body: [("final", pages[body.get("cursor")])]
    r = run(b, "leases", "--json")
    ok([x["id"] for x in document(r)["leases"]] == ["l42", "l43"], "pages are followed into one document", r)


def filters(b):
    b.on["offers"] = lambda _: [("final", {"offers": [OFFER], "matched": 1})]
    r = run(b, "offers", "--gpu", "H100:2+", "--gpu=RTX 4090", "--vram", "80G", "--total-vram", "1T", "--vcpus", "8",
            "--ram", "64GiB", "--disk", "200", "--market", "any", "--region", "a", "--region", "b", "--locality", "eu",
            "--provider", "shadeform/hyperstack", "--exclude", "aws", "--country", "no", "--kind", "vm", "--arch",
            "x86_64", "--interconnect", "sxm5", "--min-driver", "550.54", "--max-price", "2.50/gpu", "--max-cost",
            "$40", "--explain")
    want = {"gpu": [{"model": "H100", "min": 2, "max": 0}, {"model": "RTX 4090", "min": 1, "max": 1}], "vram_gib": 80,
            "total_vram_gib": 1024, "vcpus": 8, "ram_gib": 64, "disk_gib": 200, "market": "any", "region": ["a", "b"],
            "locality": "eu", "provider": ["shadeform/hyperstack"], "exclude": ["aws"], "country": ["NO"],
            "kind": "vm", "arch": "x86_64", "interconnect": "sxm5", "min_driver": "550.54",
            "max_price_udollar": 2500000, "max_price_per": "gpu", "max_cost_udollar": 40000000}
    body = b.bodies("offers")[-1]
    ok(r.returncode == 0 and body == {"filter": want, "explain": True}, "every filter reaches the request", body)
    ok(fits("filter", body["filter"]), "and fits the schema")
    run(b, "offers", "--gpu", "none")
    ok(b.bodies("offers")[-1]["filter"] == {"gpu": []}, "--gpu none asks for machines without, too")
    run(b, "offers")
    ok(b.bodies("offers")[-1] == {"filter": {}}, "what is not said is left to the broker")


def usage(b):
    before = len(b.seen)
    for words, says in (
            ([], "usage"), (["rnt"], "did you mean 'rent'"), (["rent", "--gpuu", "H100"], "did you mean '--gpu'"),
            (["leases", "--gpu", "H100"], "leases does not take --gpu"), (["rent"], "what you want"),
            (["rent", "--gpu"], "needs a value"), (["rent", "--gpu", "H100:0"], "not a count"),
            (["rent", "--gpu", "H100", "--ttl", "4"], "not a duration"), (["extend", "l42"], "needs --ttl"),
            (["rent", "--gpu", "H100", "--k8s", "--no-k8s"], "exclude each other"),
            (["rent", "--gpu", "H100", "--ttl", "1h", "--ttl", "2h"], "given twice"),
            (["rent", "--gpu", "H100", "--market", "sport"], "none of on-demand|spot|any"),
            (["show"], "needs LEASE"), (["show", "a", "b"], "'b'"), (["offers", "--json=1"], "takes no value"),
            (["tunnel"], "needs LEASE"), (["tunnel", "l42", "--port", "x"], "not a number"),
            (["kubeconfig", "l42", "--part", "x"], "does not take --part"),
            (["orphans", "adop", "a/b"], "did you mean 'adopt'"), (["orphans", "adopt", "a"], "PROVIDER/ID"),
            (["orphans", "release"], "PROVIDER/ID"), (["orphans", "ignore", "/b"], "PROVIDER/ID"),
            (["clusters", "rendr", "a"], "did you mean 'render'"), (["clusters", "render"], "needs a cluster"),
            (["providers", "chek", "a"], "did you mean 'check'"), (["watch", "--json"], "--jsonl"),
            (["completion", "fish"], "bash and zsh")):
        r = run(b, *words)
        ok(r.returncode == 2 and says in r.stdout + r.stderr, "usage: %s" % " ".join(words), r)
    r = run(b, "rnt", "--json")
    ok(r.returncode == 2 and fits("error", document(r)["error"]), "a usage error with --json is one document", r)
    ok(len(b.seen) == before, "nothing wrong was sent")


def rent(b):
    b.on["rent"] = lambda _: [ACCEPTED, progress("ordering", "asking shadeform", price_udollar=1950000),
                              progress("booting", "waiting for an address"),
                              progress("booting", "waiting for an address"), progress("ready", "ready"), FINAL]
    r = run(b, "rent", "--gpu", "H100", "--max-price", "2.50", "--label", "team=vision", "--open", "443/10.0.0.0/8",
            "--on-failure", "keep:1h", "--deadline", "45m", "--ttl", "none")
    steps = r.stderr.splitlines()
    ok(r.returncode == 0 and r.stdout.splitlines()[0] == "l42", "rent prints the lease id first", r)
    ok("gpubroker-cli ssh l42" in r.stdout and "kubectl get node l42-1" in r.stdout, "and at the end how to use it", r)
    ok(len(steps) == 3 and "booting: waiting for an address" in steps[1] and "\033" not in r.stderr and "\r" not in r.stderr,
       "progress without a terminal is one plain line a step", r.stderr)
    body = b.bodies("rent")[-1]
    key = body.pop("key")
    ok(re.fullmatch(r"[0-9a-f-]{36}", key) and body == {
        "filter": {"gpu": [{"model": "H100", "min": 1, "max": 1}], "max_price_udollar": 2500000},
        "labels": {"team": "vision"}, "open": [{"proto": "tcp", "from": 443, "to": 443, "cidr": "10.0.0.0/8"}],
        "on_failure": {"action": "keep", "keep_ms": 3600000}, "deadline_ms": 2700000, "ttl_ms": 0},
       "the request has what was said, and a key", body)
    r = run(b, "rent", "--gpu", "H100", "--json")
    doc = document(r)
    ok(r.returncode == 0 and doc and fits("lease", doc["lease"]) and fits("operation", doc["operation"]),
       "rent --json is one document", r)
    ok(r.stderr.splitlines()[0] == "l42", "with the id first on standard error", r.stderr)
    r = run(b, "rent", "--gpu", "H100", "--jsonl")
    kinds = [next(iter(json.loads(line))) for line in r.stdout.splitlines()]
    ok(kinds == ["accepted"] + ["progress"] * 4 + ["final"], "rent --jsonl is a line as things happen", kinds)
    run(b, "rent", "--gpu", "H100", "--name", "trainer")
    ok("key" not in b.bodies("rent")[-1], "a name implies its key")
    run(b, "rent", "--gpu", "H100", "--key", "k1", "--quiet")
    ok(b.bodies("rent")[-1]["key"] == "k1", "--key is used as it is")
    b.on["rent"] = lambda _: [ACCEPTED]
    r = run(b, "rent", "--gpu", "H100", "--no-wait", "--json")
    ok(r.returncode == 0 and document(r) == ACCEPTED[1], "--no-wait returns what was accepted", r)
    b.on["rent"] = lambda _: [("final", {"dry_run": True, "order": [OFFER], "rejected": [EXAMPLE["rejection"]]})]
    r = run(b, "rent", "--gpu", "H100", "--dry-run")
    ok(r.returncode == 0 and "hyperstack_H100x1" in r.stdout and "above the cap" in r.stdout, "--dry-run shows the order", r)
    ok("key" not in b.bodies("rent")[-1], "and stores nothing")


def rent_fails(b):
    kept = dict(copy.deepcopy(LEASE), state="failed-kept", failure=EXAMPLE["failure"], keep_until_ms=1767229200000)
    failed = dict(OPERATION, state="failed", ended_ms=1767225900000)
    b.on["lease"] = lambda _: [("final", {"lease": kept})]
    b.on["rent"] = lambda _: [ACCEPTED, error("failed", details=[EXAMPLE["failure"], {"operation": failed, "lease": kept}])]
    r = run(b, "rent", "--gpu", "H100")
    ok(r.returncode == 1 and r.stdout == "l42\n", "a rent that failed exits with 1, the id still first", r)
    ok(all(x in r.stderr for x in ("gpu-count-mismatch", "has fallen off the bus", "hint: the machine differs", "$1.95/h",
                                   "gpubroker-cli retry l42", "gpubroker-cli release l42", "2026-01-01 01:00 UTC")),
       "with the report, the hint, the price while kept and the ways on", r.stderr)
    r = run(b, "rent", "--gpu", "H100", "--json")
    doc = document(r)
    ok(r.returncode == 1 and doc and fits("error", doc["error"]) and doc["lease"] == "l42" and doc["operation"] == "op7",
       "with --json the same is one document", r)
    b.on["rent"] = lambda _: [ACCEPTED, error("failed")]
    r = run(b, "rent", "--gpu", "H100")
    ok("gpu-count-mismatch" in r.stderr, "a report that did not come along is fetched", r.stderr)
    exhausted = dict(EXAMPLE["attempt"], state="refused", reason={"code": "OUT_OF_STOCK", "text": "no capacity left"})
    b.on["rent"] = lambda _: [ACCEPTED, error("offers-exhausted", details=[exhausted])]
    b.on["lease"] = lambda _: [("final", {"lease": dict(LEASE, state="failed-empty")})]
    r = run(b, "rent", "--gpu", "H100")
    ok(r.returncode == 4 and "OUT_OF_STOCK" in r.stderr, "offers-exhausted tells of every attempt", r.stderr)
    b.on["rent"] = lambda _: [ACCEPTED, ("final", {"operation": dict(failed, error=dict(EXAMPLE["error"], code="conflict")),
                                                  "lease": kept})]
    r = run(b, "rent", "--gpu", "H100")
    ok(r.returncode == 8, "a final that tells of a failed operation is a failure", r)
    doc = document(run(b, "rent", "--gpu", "H100", "--json"))
    ok(doc and doc["error"]["code"] == "conflict" and doc["error"]["details"][-1]["lease"]["id"] == "l42",
       "and a document with what came along", doc)


def waits(b):
    b.on["rent"] = lambda _: [ACCEPTED, progress("booting", "waiting")]
    r = run(b, "rent", "--gpu", "H100", "--timeout", "1s")
    ok(r.returncode == 7 and "gpubroker-cli watch l42" in r.stderr, "a wait that is over exits with 7: it goes on", r)
    r = run(b, "rent", "--gpu", "H100", "--timeout", "1s", "--json")
    ok(r.returncode == 7 and document(r)["error"]["code"] == "timeout" and document(r)["lease"] == "l42",
       "with --json too", r)
    b.on["rent"] = lambda _: [ACCEPTED] + [x for i in range(30) for x in (0.1, progress("booting", "step %d" % i))]
    r = run(b, "rent", "--gpu", "H100", "--timeout", "1s")
    ok(r.returncode == 7 and "step 20" not in r.stderr, "also while the broker keeps talking", r)
    run(b, "ping")  # its turn comes when the broker has said all that
    b.on["rent"] = lambda _: None
    r = run(b, "rent", "--gpu", "H100", "--timeout", "500ms")
    ok(r.returncode == 6 and b.bodies("rent")[-1]["key"] in r.stderr,
       "what was never accepted exits with 6 and names its key", r)
    b.on["rent"] = lambda _: [ACCEPTED, progress("booting", "waiting")]
    before = len(b.seen)
    p = subprocess.Popen([CLI, "rent", "--gpu", "H100"], env=b.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = p.stderr.readline()
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20)
    ok(p.returncode == 7 and "booting" in first and "gpubroker-cli watch l42" in err and out == "l42\n",
       "Ctrl-C prints how to come back", err)
    ok([v for v, _ in b.seen[before:]] == ["rent"], "and ends nothing", b.seen[before:])
    b.on["wait"] = lambda body: [0.2, error("timeout")] if len(b.bodies("wait")) < 3 else [progress("joining", "k0s"), FINAL]
    r = run(b, "watch", "l42")
    ok(r.returncode == 0 and "joining: k0s" in r.stderr and b.bodies("wait")[0]["lease"] == "l42",
       "watch asks again until the lease's operation ends", r)
    b.seen.clear()
    b.on["wait"] = lambda _: [FINAL]
    p = subprocess.Popen([CLI, "rent", "--gpu", "H100"], env=b.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stderr.readline()
    b.restart.set()
    out, err = p.communicate(timeout=40)
    ok(p.returncode == 0 and b.bodies("wait")[0].get("operation") == "op7" and len(b.bodies("rent")) == 1,
       "a broker that restarts is asked after the operation", err, b.seen)


def changes(b):
    released = dict(copy.deepcopy(LEASE), state="released")
    b.on["release"] = lambda body: ([error("not-found")] if body["lease"] == "l9" else
                                    [("accepted", {"operation": "op8", "lease": body["lease"]}),
                                     ("final", {"operation": dict(OPERATION, id="op8", verb="release"),
                                                "lease": dict(released, id=body["lease"])})])
    r = run(b, "release", "l42", "--no-drain", "--evict-force", "--drain-timeout", "5m")
    body = b.bodies("release")[-1]
    body.pop("key")
    ok(r.returncode == 0 and "l42 released" in r.stdout and
       body == {"lease": "l42", "drain": False, "evict_force": True, "drain_timeout_ms": 300000}, "release", r, body)
    r = run(b, "release", "l42", "l9", "l43", "--json")
    doc = document(r)
    ok(r.returncode == 10 and [("error" in x) for x in doc["results"]] == [False, True, False],
       "several leases are one document, and the first failure's exit code", r)
    ok(len({x["key"] for x in b.bodies("release")[-3:]}) == 3, "each with its own key")
    b.on["extend"] = lambda _: [("accepted", {"operation": "op9", "lease": "l42", "expires_ms": 1767268800000}), FINAL]
    r = run(b, "extend", "l42", "--ttl", "2h")
    ok(r.returncode == 0 and "expires 2026-01-01 12:00 UTC" in r.stdout and b.bodies("extend")[-1]["ttl_ms"] == 7200000,
       "extend", r)
    for verb, words in (("join", ["join", "l42", "--cluster", "spoke-a"]), ("retry", ["retry", "l42"]),
                        ("verify", ["verify", "l42", "--network"])):
        b.on[verb] = lambda _: [ACCEPTED, FINAL]
        r = run(b, *words)
        ok(r.returncode == 0 and "l42 ready" in r.stdout and b.bodies(verb)[-1]["lease"] == "l42", verb, r)
    for word, verb in (("check", "providers.check"), ("pause", "pause"), ("resume", "resume")):
        b.on[verb] = lambda _: [("final", {"provider": EXAMPLE["provider"]})]
        r = run(b, "providers", word, "shadeform")
        ok(r.returncode == 0 and r.stdout == "shadeform up\n" and b.bodies(verb)[-1]["provider"] == "shadeform", "providers %s" % word, r)


def keys(b):
    ssh = Path(b.folder) / ".ssh"
    ssh.mkdir()
    (ssh / "id_ed25519.pub").write_text("ssh-ed25519 AAAAOWN me@here\n")
    (ssh / "id_ed25519").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n")
    two = Path(b.folder) / "two.pub"
    two.write_text("# mine\nssh-ed25519 AAAA1 a\nssh-rsa AAAA2 b\n")
    b.on["rent"] = lambda _: [ACCEPTED, FINAL]
    run(b, "rent", "--gpu", "H100")
    ok(b.bodies("rent")[-1]["ssh_keys"] == ["ssh-ed25519 AAAAOWN me@here"], "one's own public key goes along")
    run(b, "rent", "--gpu", "H100", "--ssh-key", str(two))
    ok(b.bodies("rent")[-1]["ssh_keys"] == ["ssh-ed25519 AAAA1 a", "ssh-rsa AAAA2 b"], "--ssh-key takes their place")
    before = len(b.seen)
    r = run(b, "rent", "--gpu", "H100", "--ssh-key", str(ssh / "id_ed25519"))
    ok(r.returncode == 2 and "private key" in r.stderr and "CANARY" not in r.stderr and len(b.seen) == before,
       "a private key is refused and not sent", r)


def ssh(b):
    tools = Path(b.folder) / "bin"
    tools.mkdir()
    fake = tools / "ssh"
    fake.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    fake.chmod(0o755)
    runtime = Path(b.folder) / "run"
    runtime.mkdir(mode=0o700)
    env = {"PATH": "%s:%s" % (tools, os.environ["PATH"]), "XDG_RUNTIME_DIR": str(runtime)}
    info = {"host": "203.0.113.7", "port": 2222, "user": "ubuntu", "hostkey": "ssh-ed25519 AAAAPINNED"}
    b.on["ssh-info"] = lambda _: [("final", info)]
    r = run(b, "ssh", "l42", "--", "nvidia-smi", "--list-gpus", **env)
    words = r.stdout.splitlines()
    ok(r.returncode == 0 and words[-4:] == ["--", "203.0.113.7", "nvidia-smi", "--list-gpus"] and
       "StrictHostKeyChecking=yes" in words and words[words.index("-p") + 1] == "2222" and
       words[words.index("-l") + 1] == "ubuntu", "ssh runs the client with the pinned key", r)
    hosts = runtime / "gpubroker" / "l42.known_hosts"
    ok(hosts.read_text() == "gpubroker-l42 ssh-ed25519 AAAAPINNED\n" and stat.S_IMODE(hosts.stat().st_mode) == 0o600 and
       "HostKeyAlias=gpubroker-l42" in words and 'UserKnownHostsFile="%s"' % hosts in words,
       "known_hosts has that one key and is private", hosts.read_text())
    r = run(b, "ssh", "l42", "--identity", "/k", **env)
    ok("IdentitiesOnly=yes" in r.stdout and "-i\n/k\n" in r.stdout, "ssh --identity offers that key and no other", r)
    r = run(b, "ssh", "l42", "--json", **env)
    ok(document(r) == info, "ssh --json only tells", r)
    for member, value in (("host", "-oProxyCommand=touch x"), ("user", "-oProxyCommand=x"), ("host", "a b"),
                          ("hostkey", "ssh-ed25519 AAAA\n* ssh-ed25519 BBBB"), ("port", 0), ("hostkey", None)):
        b.on["ssh-info"] = lambda _, m=member, v=value: [("final", dict(info, **{m: v}))]
        r = run(b, "ssh", "l42", **env)
        ok(r.returncode == 1 and not r.stdout, "ssh refuses %s %r" % (member, value), r)
    r = run(b, "ssh", "l42", "uptime", **env)
    ok(r.returncode == 2, "a command goes behind --", r)


def events(b):
    event = EXAMPLE["event"]
    b.on["ping"] = lambda _: [("final", {"epoch": 3, "seq": 1041})]
    b.on["events"] = lambda _: [("progress", {"epoch": 3, "events": [event], "seq": 1042}), ("progress", event),
                                ("progress", dict(event, seq=1043))]
    r = run(b, "watch", "--jsonl", "--timeout", "1s")
    seqs = [schemas.check("event", json.loads(line))["seq"] for line in r.stdout.splitlines()]
    ok(r.returncode == 7 and seqs == [1042, 1043], "watch --jsonl shows each event once", r)
    ok(b.bodies("events")[-1] == {"follow": True, "since": 1041}, "from now on", b.bodies("events"))
    r = run(b, "watch", "--timeout", "1s")
    ok("lease.l42.ready  node l42-1 is ready" in r.stdout, "watch tells people", r)


def hostile(b):
    evil = "ok\033]0;owned\007\033[31m\nl99  ready\u009b31m"
    b.on["leases"] = lambda _: [("final", {"leases": [dict(LEASE, name=evil)]})]
    r = run(b, "leases")
    ok(r.returncode == 0 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", r.stdout) and len(r.stdout.splitlines()) == 2,
       "what a cloud sends cannot drive a terminal", repr(r.stdout))
    b.on["lease"] = lambda _: [("final", {"lease": dict(LEASE, labels={evil: "x", "team": "y"})})]
    r = run(b, "show", "l42")
    ok("team=y" in r.stdout and "\033" not in r.stdout, "nor can the name of a member", repr(r.stdout))
    r = run(b, "leases", "--json")
    ok(document(r)["leases"][0]["name"] == evil, "--json keeps it, escaped")


def terminal(b):
    b.on["rent"] = lambda _: [ACCEPTED, progress("booting", "waiting"), progress("joining", "k0s"), FINAL]
    shown = {}
    for name, env in (("colour", {}), ("plain", {"NO_COLOR": "1"})):
        main, side = pty.openpty()
        b.on["leases"] = lambda _: [("final", {"leases": [LEASE]})]
        env = dict({k: v for k, v in b.env.items() if k != "NO_COLOR"}, **env)
        subprocess.run([CLI, "leases"], env=env, stdout=side, timeout=20)
        subprocess.run([CLI, "rent", "--gpu", "H100"], env=env, stdout=subprocess.DEVNULL, stderr=side, timeout=20)
        os.close(side)
        shown[name] = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            shown[name] += part
        os.close(main)
    ok(b"\033[1mLEASE" in shown["colour"] and b"\033[1m" not in shown["plain"], "colour on a terminal only, unless NO_COLOR")
    ok(b"\r\033[K" in shown["plain"] and b"joining" in shown["plain"], "on a terminal the line is rewritten", shown)


def unreachable(b):
    for words in (["ping"], ["rent", "--gpu", "H100"], ["watch", "l42"], ["watch", "--jsonl"]):
        began = time.monotonic()
        r = run(b, *words, "--endpoint", "ipc://%s/nobody" % b.folder)
        took = time.monotonic() - began
        ok(r.returncode == 6 and took < 15 and (r.stderr or r.stdout), "%s without a broker exits with 6" % words[0], r, took)
    r = run(b, "ping", "--json", GPUBROKER_ENDPOINT="ipc://%s/nobody" % b.folder)
    ok(r.returncode == 6 and fits("error", document(r)["error"]), "and says so in one document", r)
    b.on["ping"] = lambda _: None
    ok(run(b, "ping", "--timeout", "500ms").returncode == 6, "a broker that does not answer is not there")


def completion(b):
    script = run(b, "completion", "bash").stdout
    test = script + """
complete_words () { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _gpubroker_cli; echo "${COMPREPLY[@]}"; }
complete_words gpubroker-cli re
complete_words gpubroker-cli rent --mar
complete_words gpubroker-cli rent --market s
complete_words gpubroker-cli show l
"""
    b.on["leases"] = lambda _: [("final", {"leases": [LEASE]})]
    r = subprocess.run(["bash", "-c", test], env=dict(b.env, PATH="%s:%s" % (Path(CLI).parent, os.environ["PATH"])),
                       capture_output=True, text=True, timeout=30)
    ok(r.stdout.splitlines() == ["rent release retry", "--market", "spot", "l42"], "bash completes", r)
    r = run(b, "completion", "zsh")
    ok("bashcompinit" in r.stdout and script in r.stdout, "zsh does through bashcompinit")


with Broker() as broker:
    for part in (exit_codes, reads, filters, usage, rent, rent_fails, waits, changes, keys, ssh, events, hostile, terminal,
                 unreachable, completion):
        try:
            part(broker)
        except Exception as e:  # the rest still counts
            ok(False, "%s ran to its end" % part.__name__, repr(e))
    ok(not broker.faults, "every request was a proper GPUB/1 frame", broker.faults)
print("1..%d" % n)
sys.exit(bad != 0)
