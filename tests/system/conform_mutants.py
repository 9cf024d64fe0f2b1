"""conform_mutants.py - a kit that cannot fail is none: each mistake that an author could make fails the cases meant for it

The template's plugin is right.  Each row below makes it wrong in one way, builds it and wants just these cases to fail.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from kit import BUILD, FAKES, SRC, all_cases, cases, clean, conform
from provider_harness import Skip, tap

TEMPLATE = os.path.join(SRC, "sdk", "template")
UNREADABLE = 'return acme_error (c->err, GPUB_E_UNAVAILABLE, "%.60s: the answer is no JSON object", path);'
PROBE = 'int32_t rc = api_read (&c, "/account", &account);'
LIST_DONE = "  if (rc != GPUB_OK)\n    return rc;\n  return c->acme->host->scope_done (c->call, SCOPE"
# name: file, what is there, what stands there instead, the cases that must fail
MUTANTS = {
    "no description": ("acme.c", '"Acme Cloud"', "NULL", ["table"]),
    "help of no words": ("acme.c", '"base URL of the API"', '""', ["table"]),
    "a capability without its call": ("acme.c", "GPUB_CAP_IDEMPOTENT_CREATE |",
                                      "GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_CONSOLE |", ["table"]),
    "a second export": ("acme.c", "static void\nacme_close", "GPUB_EXPORT void\nacme_close", ["exports"]),
    "an error without the option": ("acme.c", '"endpoint: \'%.100s\' is no URL", endpoint', '"no URL"', ["options-odd"]),
    "401 is a bad wish": ("api.c", "{ 401, NULL, GPUB_E_AUTH }", "{ 401, NULL, GPUB_E_INVALID }",
                          ["wrong-key", "refused-key"]),
    "probe asks nobody": ("acme.c", PROBE, "int32_t rc = GPUB_OK;\n  (void) c;", ["wrong-key", "refused-key"]),
    "429 is an outage": ("api.c", "{ 429, NULL, GPUB_E_RATE_LIMITED }", "{ 429, NULL, GPUB_E_UNAVAILABLE }",
                         ["rate-limited"]),
    "Retry-After is lost": ("api.c", "c->err->retry_after_ms = r->retry_after_ms;", "", ["rate-limited"]),
    "an offer without its scope": ("offers.c", ".scope = SCOPE,", "", ["offers"]),
    "one reference for two offers": ("offers.c", '"%s/%s", str (region, "name"), str (type, "name")',
                                     '"%s/x", str (region, "name")', ["offers"]),
    "a quote of everything": ("offers.c", "(q->wanted && strcmp (q->wanted, ref) != 0)",
                              "(q->wanted && !q->emit && strcmp (q->wanted, ref) != 0)", ["requote"]),
    "offers of no scope": ("offers.c", "return c.acme->host->scope_done (call, SCOPE", "return GPUB_OK;\n  return "
                           "c.acme->host->scope_done (call, SCOPE", ["offers"]),
    "no look at the price": ("servers.c", "if (udollar > args->max_price_udollar)", "if (0)", ["price-cap"]),
    "an unknown offer is the first one": ("servers.c", "rc = offer_price (&c, args->offer_ref, &udollar);",
                                          "rc = GPUB_OK;\n  udollar = 0;\n  struct gpub_create any = *args;\n"
                                          '  any.offer_ref = "eu/cpu-2";\n  args = &any;', ["bad-offer"]),
    "a new token each time": ("servers.c", "json_string (a->token));\n",
                              'json_sprintf ("%s-%p-%d", a->token, (void *) a, rand ()));\n', ["create-twice"]),
    "a token used twice is a bad wish": ("api.c", '{ 409, "token_reused", GPUB_E_CONFLICT },', "", ["other-shape"]),
    "tags are forgotten": ("servers.c", 'json_object_set_new (body, "labels", labels (a));',
                           'json_object_set_new (body, "labels", json_object ());\n  (void) labels;', ["life"]),
    "names are cut": ("servers.c", '"name", json_string (a->name)',
                      '"name", strlen (a->name) > 40 ? json_null () : json_string (a->name)', ["create-limits"]),
    "gone is an outage": ("api.c", "{ 404, NULL, GPUB_E_NOT_FOUND }", "{ 404, NULL, GPUB_E_UNAVAILABLE }",
                          ["get-unknown", "remove-unknown"]),
    "remove of nothing fails": ("servers.c", "return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;", "return rc;",
                                ["remove-unknown", "remove-twice", "vanished"]),
    "remove never fails": ("servers.c", "return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;", "return GPUB_OK;",
                           ["remove-lost", "refused-key"]),
    "the kill switch is not moved": ("servers.c", 'json_pack ("{s:I}", "delete_at_ms", (json_int_t) ms)',
                                     'json_pack ("{s:i}", "delete_at_ms", (int) (ms * 0) + 1)', ["not-after"]),
    "all are ours": ("servers.c", "return *str (marks, GPUB_TAG_OWNER) != '\\0';", "return 1;", ["foreign"]),
    "find finds all": ("servers.c", "return strcmp (str (marks, GPUB_TAG_TOKEN), find->token) == 0;", "return 1;",
                       ["paging"]),
    "the first page only": ("api.c", '(page = num (body, "next_page")) == 0', "page == 1", ["paging"]),
    "a failed list is complete": ("servers.c", LIST_DONE, LIST_DONE.replace("if (rc != GPUB_OK)\n    return rc;", ""),
                                  ["no-absence", "wrong-key"]),
    "an outage is the end": ("api.c", "GPUB_E_INVALID : GPUB_E_UNAVAILABLE", "GPUB_E_INVALID : GPUB_E_NOT_FOUND",
                             ["get-faults"]),
    "garbage is the end": ("api.c", UNREADABLE, UNREADABLE.replace("UNAVAILABLE", "NOT_FOUND"), ["get-faults"]),
    "garbage was no create": ("api.c", UNREADABLE, UNREADABLE.replace("UNAVAILABLE", "INVALID"), ["create-garbled"]),
    "a lost answer was no create": ("api.c", "return rc == GPUB_OK ? understood (c, path, &r, out) : rc;",
                                    "return rc == GPUB_OK ? understood (c, path, &r, out) : GPUB_E_CAPACITY;",
                                    ["create-lost", "create-timeout"]),
    "out of stock is a bad wish": ("api.c", '{ 409, "out_of_stock", GPUB_E_CAPACITY },', "", ["out-of-stock"]),
    "a failed server is gone": ("servers.c", '{ "failed", GPUB_STATE_ERROR }', '{ "failed", GPUB_STATE_GONE }',
                                ["late-refusal"]),
    "a call that sleeps through": ("acme.c", PROBE, 'int32_t rc = api_read (&c, "/account", &account);\n'
                                   "  usleep (2500000);", ["cancel"]),
    "the key in a text": ("servers.c", '.raw_state = str (server, "status"),', '.raw_state = getenv ("TZ"),', ["life"]),
    "the key in the state": ("acme.c", PROBE, 'int32_t rc = api_read (&c, "/account", &account);\n'
                             '  c.acme->host->state_put (call, "k", getenv ("TZ"), strlen (getenv ("TZ")));', ["probe"]),
    "a file left open": ("acme.c", PROBE, 'int32_t rc = api_read (&c, "/account", &account);\n  dup (1);', ["leaks"]),
    "memory left behind": ("acme.c", PROBE, 'int32_t rc = api_read (&c, "/account", &account);\n'
                           "  memset (malloc (1 << 20), 1, 1 << 20);", ["leaks"]),
    "a process left behind": ("acme.c", PROBE, 'int32_t rc = api_read (&c, "/account", &account);\n'
                              "  if (fork () == 0)\n    for (;;)\n      pause ();", ["probe"]),
    "a crash": ("servers.c", "int32_t rc = path_of (ref, path, err);\n\n  if (rc == GPUB_OK)\n    rc = api_read",
                "int32_t rc = path_of (ref, path, err);\n\n  *(volatile char *) 8 = 1;\n  if (rc == GPUB_OK)\n    rc = api_read",
                ["life", "get-unknown"]),
}
KEY = "acme-canary-key-0815"


def build(folder, mutant=None):
    for name in os.listdir(TEMPLATE):
        shutil.copy(os.path.join(TEMPLATE, name), folder)
    if mutant:
        path = os.path.join(folder, mutant[0])
        with open(path) as f:
            text = f.read()
        assert text.count(mutant[1]) == 1, "%r stands %d times in %s" % (mutant[1], text.count(mutant[1]), mutant[0])
        with open(path, "w") as f:
            f.write("#include <unistd.h>\n" + text.replace(mutant[1], mutant[2]))
    sources = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".c")]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "jansson"], capture_output=True, text=True, check=True).stdout
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-fvisibility=hidden", "-std=c11", "-D_GNU_SOURCE", "-w",
                    "-I", os.path.join(SRC, "sdk"), *sources, "-o", os.path.join(folder, "acme.so"), *shlex.split(flags)],
                   check=True)


def run(mutant, *which):
    with tempfile.TemporaryDirectory() as folder:
        build(folder, mutant)
        fake = "exec %s %s --api-key %s" % (sys.executable, os.path.join(folder, "acme_cloud.py"), KEY)
        return conform("--config", os.path.join(folder, "acme.conf"), "--fake", fake, *cases(*which),
                       os.path.join(folder, "acme.so"), env={"ACME_KEY": KEY, "GPUB_FAKE_DIR": FAKES, "TZ": KEY})


def test_template():
    """the template passes all that it can"""
    v = run(None)
    clean(v)
    assert set(v.skipped) == {"options-missing", "console"}, v


def sanitized():
    with open(os.path.join(BUILD, "Makefile")) as f:
        return "-fsanitize" in f.read()


def fails(mutant):
    def test():
        if "malloc (1 << 20)" in mutant[2] and sanitized():
            raise Skip("a sanitizer keeps what was freed, so memory is not judged")
        v = run(mutant, *mutant[3])
        assert v.failed == set(mutant[3]) and v.status in (1, 3), v

    return test


for number, (what, row) in enumerate(MUTANTS.items()):
    globals()["test_%02d" % number] = fails(row)
    globals()["test_%02d" % number].__doc__ = "%s: %s" % (what, ", ".join(row[3]))


def test_all_covered():
    """every case but these has a mistake that fails it"""
    covered = {c for row in MUTANTS.values() for c in row[3]}
    # The host itself stands behind them, or a race, or a capability that the template has not.
    left = {"options-missing", "options-type", "secret-missing", "find-nothing", "console", "parallel"}
    assert set(all_cases()) == covered | left and not covered & left, set(all_cases()) - covered - left


if __name__ == "__main__":
    tap(globals())
