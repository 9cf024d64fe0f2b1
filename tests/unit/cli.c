/* cli.c - the parsers of gpubroker-cli, over a table of commands and options of its own */
#include "config.h"

#include <stdlib.h>

#include "cli/args.h"
#include "cli/format.h"
#include "cli/set.h"
#include "cli/table.h"
#include "cli/values.h"
#include "core/cleanup.h"
#include "core/json.h"
#include "tests/unit/tap.h"

static int
run_nothing (struct cli *c)
{
  (void) c;
  return 0;
}

#define OTHER(c) [CMD_##c] = { #c, run_nothing, 0, 0, "", "" }

const struct command commands[COMMANDS] = {
  [CMD_OFFERS] = { "offers", run_nothing, 0, 0, "", "" },
  [CMD_RENT] = { "rent", run_nothing, 0, 1, "", "" },
  [CMD_SSH] = { "ssh", run_nothing, 1, 1, "LEASE", "" },
  [CMD_TUNNEL] = { "tunnel", NULL, 0, 0, "LEASE", "" },
  OTHER (JOIN),
  OTHER (RELEASE),
  OTHER (EXTEND),
  OTHER (RETRY),
  OTHER (LEASES),
  OTHER (SHOW),
  OTHER (EXPLAIN),
  OTHER (WATCH),
  OTHER (LOGS),
  OTHER (VERIFY),
  OTHER (PROVIDERS),
  OTHER (CLUSTERS),
  OTHER (COST),
  OTHER (PING),
  OTHER (VERSION),
  OTHER (COMPLETION),
  OTHER (HELP),
  OTHER (KUBECONFIG),
  OTHER (ORPHANS),
};

#define IN(c) (1u << CMD_##c)

const struct option options[] = {
  { "--name", "NAME", set_string, TO_BODY, false, "name", ~0u, "" },
  { "--list", "WORD", set_list, TO_BODY, true, "list", ~0u, "" },
  { "--kind", "vm|baremetal", set_choice, TO_FILTER, false, "kind", IN (OFFERS) | IN (RENT), "" },
  { "--yes", NULL, set_true, TO_CLI, false, "yes", ~0u, "" },
  { "--k8s", NULL, set_k8s, TO_BODY, false, "cluster", IN (RENT), "" },
  { "--no-k8s", NULL, set_no_k8s, TO_BODY, false, "cluster", IN (RENT), "" },
};
const size_t noptions = N_ELEMENTS (options);

static void
test_money (void)
{
  static const struct {
    const char *text;
    int64_t udollar; /* -1: refused */
  } cases[] = {
    { "2.50", 2500000 }, { "$2.5", 2500000 },  { "0", 0 },
    { "0.000001", 1 },   { "40", 40000000 },   { "0.0000001", -1 },
    { "", -1 },          { "$", -1 },          { ".5", -1 },
    { "2.", -1 },        { "-1", -1 },         { "+1", -1 },
    { " 1", -1 },        { "1 ", -1 },         { "1e3", -1 },
    { "0x10", -1 },      { "2,50", -1 },       { "1.2.3", -1 },
    { "$$1", -1 },       { "1000000001", -1 }, { "99999999999999999999", -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    int64_t got = -1;
    int rc = parse_money (cases[i].text, &got, NULL);

    ok (rc < 0 ? cases[i].udollar < 0 : got == cases[i].udollar, "money '%s'", cases[i].text);
  }
}

static void
test_price (void)
{
  const char *per;
  int64_t n;

  ok (parse_price ("2.50/gpu", &n, &per, NULL) == 0 && n == 2500000 && strcmp (per, "gpu") == 0,
      "price per GPU");
  ok (parse_price ("3/machine", &n, &per, NULL) == 0 && n == 3000000 &&
          strcmp (per, "machine") == 0,
      "price per machine");
  ok (parse_price ("3", &n, &per, NULL) == 0 && per == NULL, "price of whatever the broker means");
  ok (parse_price ("3/", &n, &per, NULL) < 0 && parse_price ("3/card", &n, &per, NULL) < 0 &&
          parse_price ("/gpu", &n, &per, NULL) < 0,
      "other prices are refused");
}

static void
test_duration (void)
{
  static const struct {
    const char *text;
    int64_t ms;
  } cases[] = {
    { "90s", 90000 },     { "45m", 2700000 },
    { "4h", 14400000 },   { "2d", 172800000 },
    { "1h30m", 5400000 }, { "500ms", 500 },
    { "1m500ms", 60500 }, { "0s", 0 },
    { "", -1 },           { "4", -1 },
    { "30m1h", -1 },      { "1h1h", -1 },
    { "1.5h", -1 },       { "-1h", -1 },
    { "h", -1 },          { "4 h", -1 },
    { "4H", -1 },         { "1w", 604800000 },
    { "3651d", -1 },      { "99999999999999999999s", -1 },
    { "3650d1ms", -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    int64_t got = -1;
    int rc = parse_duration (cases[i].text, &got, NULL);

    ok (rc < 0 ? cases[i].ms < 0 : got == cases[i].ms, "duration '%s'", cases[i].text);
  }
}

static void
test_gib (void)
{
  static const struct {
    const char *text;
    int64_t gib;
  } cases[] = {
    { "80", 80 },  { "80G", 80 }, { "80GB", 80 }, { "80GiB", 80 }, { "2T", 2048 }, { "1TiB", 1024 },
    { "80g", -1 }, { "80M", -1 }, { "G", -1 },    { "80 G", -1 },  { "-1", -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    int64_t got = -1;
    int rc = parse_gib (cases[i].text, &got, NULL);

    ok (rc < 0 ? cases[i].gib < 0 : got == cases[i].gib, "size '%s'", cases[i].text);
  }
}

/* The parsed object in canonical form, "" when it was refused. */
static void
is_json (json_t *j, const char *want, const char *name)
{
  AUTO_FREE char *got = j ? json_canonical (j) : NULL;

  is_str (got ? got : "", want, name);
  json_decref (j);
}

static void
test_gpu (void)
{
  static const char *const refused[] = {
    "",          ":2",
    "H100:",     "H100:0",
    "H100:x",    "H100:2-",
    "H100:4-2",  "H100:-2",
    "H100:1025", "a:b:2",
    "H100:2++",  "H100: 2",
    "   ",       "0123456789012345678901234567890123456789012345678901234567890123456789"
  };

  is_json (parse_gpu ("H100", NULL), "{\"max\":1,\"min\":1,\"model\":\"H100\"}", "H100 means one");
  is_json (parse_gpu ("H100:8", NULL), "{\"max\":8,\"min\":8,\"model\":\"H100\"}", "exactly eight");
  is_json (parse_gpu ("RTX 4090:2+", NULL), "{\"max\":0,\"min\":2,\"model\":\"RTX 4090\"}",
           "two or more");
  is_json (parse_gpu ("A100-80GB:2-4", NULL), "{\"max\":4,\"min\":2,\"model\":\"A100-80GB\"}",
           "two to four");
  for (size_t i = 0; i < N_ELEMENTS (refused); i++)
    is_json (parse_gpu (refused[i], NULL), "", refused[i]);
}

static void
test_port (void)
{
  static const char *const refused[] = { "",
                                         "0",
                                         "65536",
                                         "80-70",
                                         "80-",
                                         "80/",
                                         "80/1.2.3.4",
                                         "80/1.2.3.4/33",
                                         "80/1.2.3/8",
                                         "80/::/129",
                                         "tcp:80",
                                         "80x",
                                         "80/10.0.0.0/8 ",
                                         "123456789012345678" };

  is_json (parse_port ("443", NULL),
           "{\"cidr\":\"0.0.0.0/0\",\"from\":443,\"proto\":\"tcp\",\"to\":443}", "one port");
  is_json (parse_port ("8000-8010/10.0.0.0/8", NULL),
           "{\"cidr\":\"10.0.0.0/8\",\"from\":8000,\"proto\":\"tcp\",\"to\":8010}",
           "ports for a network");
  is_json (parse_port ("udp:51820/2001:db8::/32", NULL),
           "{\"cidr\":\"2001:db8::/32\",\"from\":51820,\"proto\":\"udp\",\"to\":51820}",
           "UDP over IPv6");
  for (size_t i = 0; i < N_ELEMENTS (refused); i++)
    is_json (parse_port (refused[i], NULL), "", refused[i]);
}

static void
test_host (void)
{
  static const char *const refused[] = { "10.0.0.5",     "@10.0.0.5", "root@",        "root@h:0",
                                         "root@h:65536", "root@[::1", "root@[::1]22", "root@:22" };

  is_json (parse_host ("root@10.0.0.5", NULL),
           "{\"address\":\"10.0.0.5\",\"port\":22,\"user\":\"root\"}", "root@10.0.0.5");
  is_json (parse_host ("ubuntu@gpu.example.net:2222", NULL),
           "{\"address\":\"gpu.example.net\",\"port\":2222,\"user\":\"ubuntu\"}", "with a port");
  is_json (parse_host ("root@[2001:db8::5]:2222", NULL),
           "{\"address\":\"2001:db8::5\",\"port\":2222,\"user\":\"root\"}", "IPv6 with a port");
  is_json (parse_host ("root@[2001:db8::5]", NULL),
           "{\"address\":\"2001:db8::5\",\"port\":22,\"user\":\"root\"}", "IPv6 in brackets");
  is_json (parse_host ("root@2001:db8::5", NULL),
           "{\"address\":\"2001:db8::5\",\"port\":22,\"user\":\"root\"}", "IPv6 without");
  for (size_t i = 0; i < N_ELEMENTS (refused); i++)
    is_json (parse_host (refused[i], NULL), "", refused[i]);
}

static void
test_on_failure (void)
{
  is_json (parse_on_failure ("keep", NULL), "{\"action\":\"keep\"}",
           "keep as long as the broker says");
  is_json (parse_on_failure ("keep:1h", NULL), "{\"action\":\"keep\",\"keep_ms\":3600000}",
           "keep an hour");
  is_json (parse_on_failure ("release", NULL), "{\"action\":\"release\"}", "release");
  is_json (parse_on_failure ("keep:", NULL), "", "keep: without a duration");
  is_json (parse_on_failure ("release:1h", NULL), "", "release:1h");
}

static void
test_since (void)
{
  int64_t ms;

  ok (parse_since ("7d", 604800001, &ms, NULL) == 0 && ms == 1, "a span before now");
  ok (parse_since ("2026-01-31", 0, &ms, NULL) == 0 && ms == INT64_C (1769817600000), "a day, UTC");
  ok (parse_since ("2026-02-31x", 0, &ms, NULL) < 0 && parse_since ("yesterday", 0, &ms, NULL) < 0,
      "nothing else");
}

/* Parses a command line and returns all three objects as one text; the error's text when it is
 * refused. */
static const char *
parsed (const char *line)
{
  static char out[512];
  char copy[256], *argv[16], *rest;
  struct err e = ERR_INIT;
  struct args a;
  int argc = 0;

  snprintf (copy, sizeof copy, "%s", line);
  for (char *w = strtok_r (copy, " ", &rest); w; w = strtok_r (NULL, " ", &rest))
    argv[argc++] = w;
  argv[argc] = NULL;
  if (args_parse (&a, argc, argv, &e) == 0) {
    AUTO_FREE char *cli = json_canonical (a.to[TO_CLI]);
    AUTO_FREE char *body = json_canonical (a.to[TO_BODY]);
    AUTO_FREE char *filter = json_canonical (a.to[TO_FILTER]);

    snprintf (out, sizeof out, "%s %s %s %s %zu%s%s", a.command->name, cli, body, filter,
              a.noperands, a.rest ? " -- " : "", a.rest && a.rest[0] ? a.rest[0] : "");
  } else {
    snprintf (out, sizeof out, "%s", e.text);
  }
  args_done (&a);
  return out;
}

static void
test_args (void)
{
  static const struct {
    const char *line, *want;
  } cases[] = {
    { "rent --name a --yes --kind=vm", "rent {\"yes\":true} {\"name\":\"a\"} {\"kind\":\"vm\"} 0" },
    { "--name a rent x", "rent {} {\"name\":\"a\"} {} 1" },
    { "rent --list a --list b", "rent {} {\"list\":[\"a\",\"b\"]} {} 0" },
    { "rent --no-k8s", "rent {} {\"cluster\":\"none\"} {} 0" },
    { "rent -- --yes", "rent {} {} {} 1" },
    { "ssh l1 -- ls --yes", "ssh {} {} {} 1 -- ls" },
    { "rent --name a --name b", "--name is given twice" },
    { "rent --k8s --no-k8s", "--k8s and --no-k8s exclude each other" },
    { "rent --yes=1", "--yes takes no value" },
    { "rent --name", "--name needs a value: NAME" },
    { "rent --name=", "--name: '' is not a text of 1 to 512 bytes in UTF-8" },
    { "rent --nam x", "unknown option '--nam', did you mean '--name'?" },
    { "rent --kind=v", "--kind: 'v' is none of vm|baremetal" },
    { "rent --kind=vm|baremetal", "--kind: 'vm|baremetal' is none of vm|baremetal" },
    { "ssh --kind vm l1", "ssh does not take --kind" },
    { "ssh", "ssh needs LEASE" },
    { "ssh a b", "ssh does not know what to do with 'b'" },
    { "offer", "unknown command 'offer', did you mean 'offers'?" },
    { "rent --name \xff", "--name: '?' is not a text of 1 to 512 bytes in UTF-8" },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++)
    is_str (parsed (cases[i].line), cases[i].want, cases[i].line);
}

static void
test_format (void)
{
  AUTO_JSON json_t *whole =
      json_pack ("{s:s, s:i, s:i}", "model", "H100", "count", 2, "vram_gib", 80);
  AUTO_JSON json_t *part =
      json_pack ("{s:s, s:i, s:i}", "raw", "A40-8Q", "count", 1, "fraction", 6);
  AUTO_JSON json_t *none = json_pack ("{s:i}", "count", 0);
  char b[96];

  is_str (fmt_money (b, 1950000), "$1.95", "money");
  is_str (fmt_money (b, 1996000), "$2.00", "money is rounded, not cut");
  is_str (fmt_money (b, 4200), "$0.0042", "less than a cent is not nothing");
  is_str (fmt_money (b, 9999), "$0.0100", "nearly a cent");
  is_str (fmt_money (b, 7), "$0.000007", "nor is less than that");
  is_str (fmt_money (b, 0), "$0.00", "no money");
  is_str (fmt_span (b, 59999), "59s", "seconds");
  is_str (fmt_span (b, 300000), "5m 00s", "minutes");
  is_str (fmt_span (b, 42900000), "11h 55m", "hours");
  is_str (fmt_span (b, 183600000), "2d 03h", "days");
  is_str (fmt_span (b, -5), "0s", "the past is no span");
  is_str (fmt_time (b, INT64_C (1767225600000)), "2026-01-01 00:00 UTC", "time");
  is_str (fmt_time_of (b, none, "no"), "", "an absent time is empty");
  is_str (fmt_gpu (b, sizeof b, whole), "2x H100 80G", "whole GPUs");
  json_object_set_new (whole, "model", json_string ("A100-80GB"));
  is_str (fmt_gpu (b, sizeof b, whole), "2x A100-80GB", "the memory is told once");
  is_str (fmt_gpu (b, sizeof b, part), "1x 1/6 A40-8Q", "a part of one");
  is_str (fmt_gpu (b, sizeof b, none), "-", "none");
}

static void
test_table (void)
{
  static const struct column columns[] = { { "NAME", false }, { "EMPTY", false }, { "N", true } };
  static const char *const cells[] = {
    "a", "", "1", "\xc3\xa4\xc3\xb6xxx", NULL, "100", "", "", "7"
  };
  AUTO_FREE char *text = NULL;
  struct table t;
  size_t len;
  FILE *f = open_memstream (&text, &len);

  table_init (&t, columns, N_ELEMENTS (columns));
  for (size_t i = 0; i < N_ELEMENTS (cells); i++)
    table_put (&t, cells[i]);
  table_print (&t, f, false);
  table_done (&t);
  fclose (f);
  is_str (text, "NAME     N\na        1\n\xc3\xa4\xc3\xb6xxx  100\n         7\n",
          "columns line up by characters, empty ones go");
}

int
main (void)
{
  test_money ();
  test_price ();
  test_duration ();
  test_gib ();
  test_gpu ();
  test_port ();
  test_host ();
  test_on_failure ();
  test_since ();
  test_args ();
  test_format ();
  test_table ();
  return done ();
}
