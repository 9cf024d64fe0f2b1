"""conform.py - gpubroker-conform itself: its command line, its modes, its page, and that it fails what should fail"""
import fcntl
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import BUILD, CONFORM, KEY, SRC, all_cases, cases, clean, conform, judge
from provider_harness import Skip, tap


def bad(name):
    return os.path.join(BUILD, ".libs", name + ".so")


def test_usage():
    """wrong command lines are told and end with 2"""
    for args, word in (([], "one plugin"), (["a", "b"], "one plugin"), (["--live", "x.so"], "--budget"),
                       (["--budget", "1", "x.so"], "--live"), (["--live", "--budget", "much", "x.so"], "dollars"),
                       (["--fake", "x", "--replay", "y", "x.so"], "exclude"), (["--record", "d", "x.so"], "--fake"),
                       (["--case", "nonsense", "x.so"], "--list"), (["/no/such.so"], "/no/such.so")):
        v = conform(*args)
        assert v.status == 2 and word in v.error, (args, v)


def test_manual():
    """gpubroker-conform(1) has every case and every option"""
    with open(os.path.join(SRC, "sdk", "gpubroker-conform.pod")) as f:
        pod = f.read()
    told = re.findall(r"^=item ([a-z-]+)$", pod, re.M)
    assert told == all_cases(), (set(told) ^ set(all_cases()))
    options = set(re.findall(r"--[a-z]+", conform("--help").text))
    assert options | {"--help", "--version"} == set(re.findall(r"^=item B<(--[a-z]+)>", pod, re.M))


def test_not_plugins():
    """what does not load is told, and nothing is run"""
    for name, word in (("no-entry", "gpub_provider_entry"), ("lacks-remove", "'remove'"), ("old-abi", "ABI"),
                       ("too-small", "bytes")):
        v = conform(bad(name))
        assert v.status == 2 and word in v.error and not v.text, (name, v)


def test_without_a_cloud():
    """without a mode only the file and its options are judged, and the rest is skipped by name"""
    v = conform(bad("good"))
    assert {"table", "exports"} <= v.passed and v.skipped["life"] == "needs --fake, --replay or --live", v
    assert v.passed | v.failed | set(v.skipped) == set(all_cases()), v


def test_crash():
    """a plugin that crashes fails the case that it crashes in, with the signal, and the next one runs"""
    v = conform("--live", "--budget", "1", *cases("find-nothing", "leaks", "probe"), bad("crashes-in-list"))
    assert v.failed == {"leaks"} and {"find-nothing", "probe"} <= v.passed and v.status == 1, v
    assert "signal 6" in v.text and "# rule: " in v.text and "# expected: " in v.text, v


def test_hang():
    """a call that does not return fails its case and is killed"""
    v = conform("--live", "--budget", "1", *cases("bad-offer"), bad("hangs-in-create"))
    assert v.failed == {"bad-offer"} and "it hangs" in v.text, v


def test_leak_of_files():
    """files left open are seen, by root and, whatever the caller had open, by others"""
    leak = ["--live", "--budget", "1", *cases("leaks"), bad("leaks-files")]
    v = conform(*leak)
    assert v.failed == {"leaks"} and "file descriptors" in v.text, v
    if os.getuid() != 0:
        return
    for file in (CONFORM, bad("leaks-files")):
        if not all(os.stat(f).st_mode & 1 for f in [file, *map(str, Path(file).resolve().parents)]):
            raise Skip("nobody may not run what is in %s" % BUILD)
    far = fcntl.fcntl(2, fcntl.F_DUPFD, 251)
    v = conform(*leak, user=65534, group=65534, extra_groups=[], pass_fds=[far])
    os.close(far)
    assert v.failed == {"leaks"} and "table of file descriptors" in v.text, v


def test_static():
    """the static plugin, live within a budget: machines that one owns cost nothing to try"""
    v = judge("static")
    clean(v, "life", "create-twice", "other-shape", "remove-twice", "leaks", "price-cap", "parallel")
    assert v.skipped["foreign"] == "needs --fake", v


def test_budget():
    """what is beyond the budget is not made, and that is told"""
    v = judge("static", "--live", "--budget", "0.5", *cases("life", "remove-twice", "probe"))
    assert v.passed == {"life", "probe"} and "budget" in v.skipped["remove-twice"], v
    assert "# spent at most $0.4000, an hour of each machine, of $0.5000" in v.text, v


def test_fake():
    """a cloud's double: %{url}, its control calls, faults"""
    clean(judge("shadeform", *cases("wrong-key", "life", "foreign", "rate-limited")),
          "wrong-key", "life", "foreign", "rate-limited")


def test_replay():
    """what was recorded is judged again without a cloud, and the recording has no secret"""
    which = cases("wrong-key", "offers", "life")
    with tempfile.TemporaryDirectory() as folder:
        clean(judge("shadeform", "--record", folder, *which), "life")
        for path, _, files in os.walk(folder):
            for name in files:
                with open(os.path.join(path, name)) as f:
                    assert KEY not in f.read(), name
        own = 'endpoint = "http://127.0.0.1:1/v1"; api_key_env = "KEY";'
        v = judge("shadeform", "--replay", folder, *which, *cases("probe", "foreign"), options=own)
        clean(v, "wrong-key", "offers", "life")
        assert v.skipped == {"probe": "the recording has no such folder", "foreign": "needs --fake"}, v


def test_broken_fake():
    """a fake that ends, talks nonsense or lacks what the configuration names is told"""
    for fake, word in (("true", "ended"), ("echo nonsense", "first line"), ('echo "{}"', "'control'")):
        v = conform("--fake", fake, bad("good"))
        assert v.status == 2 and word in v.error, v
    v = judge("shadeform", options='endpoint = "%{no_such}"; api_key_env = "KEY";')
    assert v.status == 2 and "%{no_such}" in v.error, v


if __name__ == "__main__":
    tap(globals())
