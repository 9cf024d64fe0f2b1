"""conform_clouds.py - every provider of the tree passes the whole of gpubroker-conform; under valgrind its quick part"""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import PROVIDERS, all_cases, cases, clean, judge, why_not
from provider_harness import Skip, tap

# What a provider may leave out: capabilities that it has not, and what cannot be forced upon one's own machines.
MAY_SKIP = {
    "shadeform": {"options-missing", "create-twice", "other-shape", "console"},
    "hyperstack": {"options-missing", "create-twice", "other-shape", "not-after"},
    "aws": {"options-missing", "secret-missing"},
    "nebius": {"options-missing", "secret-missing", "not-after", "console"},
    "static": {"options-type", "secret-missing", "wrong-key", "not-after", "console", "foreign", "rate-limited",
               "refused-key", "no-absence", "get-faults", "create-lost", "create-garbled", "create-timeout",
               "out-of-stock", "late-refusal", "vanished", "remove-lost", "cancel", "paging"},
}


def whole(name):
    def test():
        if why_not(name):
            raise Skip(why_not(name))
        v = judge(name)
        clean(v)
        assert set(v.skipped) == MAY_SKIP[name], v
        assert v.passed == set(all_cases()) - MAY_SKIP[name], v

    test.__doc__ = name + ": all that it can do"
    return test


def valgrind(name):
    def test():
        if why_not(name) or not shutil.which("valgrind"):
            raise Skip(why_not(name) or "no valgrind")
        if "-fsanitize" in open(os.path.join(os.environ.get("GPUB_BUILDDIR", "."), "Makefile")).read():
            raise Skip("a sanitizer is in this build already")
        clean(judge(name, "--valgrind", *cases("probe", "offers", "life", "bad-offer")), "life")

    test.__doc__ = name + ": clean under valgrind"
    return test


for provider in PROVIDERS:
    globals()["test_" + provider] = whole(provider)
for provider in PROVIDERS:
    globals()["test_valgrind_" + provider] = valgrind(provider)

if __name__ == "__main__":
    tap(globals())
