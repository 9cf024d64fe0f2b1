/* admin.c - providers, cost, orphans, ping: the broker itself */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/job.h"
#include "cli/table.h"

static void
put_provider (struct table *t, const json_t *p)
{
  const json_t *offers = json_object_get (p, "offers"), *probe = json_object_get (p, "probe");
  char buf[FMT];

  table_put (t, json_str (p, "name", "?"));
  table_put (t, json_str (p, "plugin", ""));
  table_put (t, json_str (p, "state", "?"));
  table_put (t, fmt_int_of (buf, offers, "count"));
  table_put (t, fmt_span_of (buf, offers, "age_ms"));
  table_put (t, fmt_money_of (buf, probe, "balance_udollar"));
  table_put (t, fmt_int_of (buf, p, "leases"));
  table_put (t, fmt_money_of (buf, p, "rate_udollar"));
  table_put (t, fmt_int_of (buf, p, "errors"));
  table_put (t, fmt_int_of (buf, p, "restarts"));
  table_put (t, json_str (json_object_get (p, "error"), "text", json_str (probe, "account", "")));
}

static void
providers_table (const struct cli *c, const json_t *providers)
{
  static const struct column columns[] = {
    { "PROVIDER", false }, { "PLUGIN", false },  { "STATE", false }, { "OFFERS", true },
    { "AGE", true },       { "BALANCE", true },  { "LEASES", true }, { "$/h", true },
    { "ERRORS", true },    { "RESTARTS", true }, { "", false },
  };
  struct table t;
  size_t i;
  json_t *p;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (providers, i, p)
    put_provider (&t, p);
  table_print (&t, stdout, c->colour);
  table_done (&t);
}

static void
tell_provider (struct cli *c, const struct job *j)
{
  const json_t *p = json_object_get (j->doc, "provider"), *error = json_object_get (p, "error");

  if (j->failed)
    out_error (c, j->doc, NULL);
  else
    printf ("%s %s%s%s\n", cli_operand (c, 1), json_str (p, "state", "?"),
            json_is_object (error) ? ": " : "", json_str (error, "text", ""));
}

static int
change_provider (struct cli *c)
{
  static const char *const words[] = { "check", "pause", "resume" };
  const char *word = cli_operand (c, 0), *name = cli_operand (c, 1),
             *near = nearest (word, words, N_ELEMENTS (words));
  bool check = strcmp (word, "check") == 0;
  struct job job;

  if (!check && strcmp (word, "pause") != 0 && strcmp (word, "resume") != 0)
    return out_fail (c, "bad-request", NULL, "providers does not know '%s'%s%s%s", word,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  if (!name)
    return out_fail (c, "bad-request", NULL, "providers %s needs a provider's name", word);
  if (cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  job_init (&job, check ? "providers.check" : word, json_pack ("{s:s}", "provider", name));
  jobs_run (c, &job, 1, NULL);
  return jobs_report (c, &job, 1, tell_provider);
}

int
run_providers (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  int rc;

  if (cli_operand (c, 0))
    return change_provider (c);
  rc = ask_shown (c, "providers", &reply);
  if (rc == EXIT_DONE && c->mode == OUT_TEXT)
    providers_table (c, json_object_get (reply, "providers"));
  return rc;
}

static void
cost_table (const struct cli *c, const json_t *rows)
{
  static const struct column columns[] = {
    { "", false }, { "LEASES", true }, { "TIME", true }, { "SPENT", true }, { "$/h NOW", true },
  };
  char buf[FMT];
  struct table t;
  size_t i;
  json_t *row;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (rows, i, row) {
    table_put (&t, json_str (row, "key", "?"));
    table_put (&t, fmt_int_of (buf, row, "leases"));
    table_put (&t, fmt_span_of (buf, row, "machine_ms"));
    table_put (&t, fmt_money_of (buf, row, "spent_udollar"));
    table_put (&t, fmt_money_of (buf, row, "rate_udollar"));
  }
  table_print (&t, stdout, c->colour);
  table_done (&t);
}

int
run_cost (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  char total[FMT], rate[FMT];
  int rc = ask_shown (c, "cost", &reply);

  if (rc || c->mode != OUT_TEXT)
    return rc;
  if (json_array_size (json_object_get (reply, "rows")))
    cost_table (c, json_object_get (reply, "rows"));
  printf ("total %s, now %s/h\n", fmt_money_of (total, reply, "total_udollar"),
          fmt_money_of (rate, reply, "rate_udollar"));
  return EXIT_DONE;
}

int
run_ping (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL, *again = NULL;
  int rc = ask_shown (c, "ping", &reply);
  struct timespec before, after;

  if (rc || c->mode != OUT_TEXT)
    return rc;
  clock_gettime (CLOCK_MONOTONIC, &before); /* connecting does not count */
  rc = ask (c, "ping", cli_body (c), &again);
  if (rc)
    return rc;
  clock_gettime (CLOCK_MONOTONIC, &after);
  printf ("%s %s: %.1f ms, you are %s with the right to %s\n", json_str (reply, "server", "?"),
          json_str (reply, "broker", ""),
          1e3 * (double) (after.tv_sec - before.tv_sec) +
              1e-6 * (double) (after.tv_nsec - before.tv_nsec),
          json_str (reply, "principal", "?"), json_str (reply, "rights", "?"));
  return EXIT_DONE;
}

int
run_version (struct cli *c)
{
  AUTO_JSON json_t *doc = json_pack ("{s:s, s:[s]}", "client", PACKAGE_NAME "-cli " PACKAGE_VERSION,
                                     "protocols", "GPUB/1");

  if (c->mode == OUT_TEXT)
    printf ("%s, protocol GPUB/1\n", json_str (doc, "client", ""));
  else
    out_doc (c, doc);
  return EXIT_DONE;
}
