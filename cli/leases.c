/* leases.c - leases, show, explain: what there is and why */
#include "config.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/story.h"
#include "cli/table.h"
#include "core/clock.h"

static void
put_left (struct table *t, const json_t *lease)
{
  int64_t until = json_i64 (lease, "expires_ms", json_i64 (lease, "keep_until_ms", 0));
  bool over = until == 0 || json_object_get (lease, "ended_ms");
  char span[FMT];

  table_put (t, over ? "" : fmt_span (span, until - clock_wall_ms ()));
}

static void
put_lease (struct table *t, const json_t *l)
{
  const json_t *m = json_object_get (l, "machine");
  char buf[FMT], cloud[128], gpu[128];
  int64_t cost = json_i64 (l, "price_udollar", -1), gpus = json_i64 (m, "gpu_count", 0);

  table_put (t, json_str (l, "id", "?"));
  table_put (t, json_str (l, "name", ""));
  table_put (t, json_str (l, "state", "?"));
  table_put (t, fmt_machine_gpu (gpu, sizeof gpu, m));
  table_put (t, cost >= 0 && gpus > 0 ? fmt_money (buf, cost / gpus) : "");
  table_put (t, fmt_money_of (buf, l, "price_udollar"));
  table_put (t, fmt_money_of (buf, l, "spent_udollar"));
  table_put (t, fmt_cloud (cloud, sizeof cloud, m));
  table_put (t, json_str (m, "region", ""));
  table_put (t, json_str (l, "cluster", ""));
  put_left (t, l);
  table_put (t, json_str (l, "owner", ""));
}

static void
leases_table (const struct cli *c, const json_t *leases)
{
  static const struct column columns[] = {
    { "LEASE", false },  { "NAME", false },    { "STATE", false }, { "GPU", false },
    { "$/GPU-h", true }, { "$/h", true },      { "SPENT", true },  { "PROVIDER", false },
    { "REGION", false }, { "CLUSTER", false }, { "LEFT", true },   { "OWNER", false },
  };
  struct table t;
  size_t i;
  json_t *l;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (leases, i, l)
    put_lease (&t, l);
  table_print (&t, stdout, c->colour);
  table_done (&t);
}

/* What bills and waits for a person. */
static void
keep_troubled (json_t *leases)
{
  for (size_t i = json_array_size (leases); i-- > 0;) {
    const char *state = json_str (json_array_get (leases, i), "state", "");

    if (strcmp (state, "leaked") != 0 && strcmp (state, "failed-kept") != 0)
      json_array_remove (leases, i);
  }
}

int
run_leases (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  bool check = json_bool (c->args.to[TO_CLI], "check", false);
  json_t *leases;
  size_t i;
  json_t *l;
  int rc = ask_all (c, "leases", cli_body (c), "leases", json_i64 (c->args.to[TO_CLI], "limit", 0),
                    &reply);

  if (rc)
    return rc;
  leases = json_object_get (reply, "leases");
  if (check)
    keep_troubled (leases);
  if (c->mode == OUT_JSON)
    out_doc (c, reply);
  else if (c->mode == OUT_JSONL)
    json_array_foreach (leases, i, l)
      out_doc (c, l);
  else if (json_array_size (leases))
    leases_table (c, leases);
  else
    fprintf (stderr, check ? "nothing is leaked or kept\n" : "no leases\n");
  return check && json_array_size (leases) ? EXIT_FAILED : EXIT_DONE;
}

/* A read about one lease; prints the document unless people are reading, who get *reply. */
static int
about (struct cli *c, const char *verb, json_t **reply)
{
  int rc;

  json_object_set_new (cli_body (c), "lease", json_string (cli_operand (c, 0)));
  rc = ask (c, verb, cli_body (c), reply);
  if (rc == EXIT_DONE && c->mode != OUT_TEXT)
    out_doc (c, *reply);
  return rc;
}

static void
resources (const json_t *list)
{
  char price[FMT];
  size_t i;
  json_t *r;

  if (json_array_size (list))
    printf ("\nbesides the machine:\n");
  json_array_foreach (list, i, r) {
    fmt_money_of (price, r, "price_udollar");
    printf ("  %s %s %s%s%s\n", json_str (r, "kind", "?"), json_str (r, "id", ""),
            json_str (r, "state", ""), *price ? "  " : "", price);
  }
}

static void
operations (const json_t *list)
{
  char when[FMT];
  size_t i;
  json_t *op;

  if (json_array_size (list))
    printf ("\noperations:\n");
  json_array_foreach (list, i, op) {
    const json_t *error = json_object_get (op, "error");

    printf ("  %s %s %s %s%s%s\n", fmt_time_of (when, op, "started_ms"), json_str (op, "id", "?"),
            json_str (op, "verb", "?"), json_str (op, "state", "?"), error ? ": " : "",
            json_str (error, "message", ""));
  }
}

static void
attempts (const json_t *list)
{
  if (json_array_size (list))
    printf ("\nattempts:\n");
  report_attempts (stdout, list);
}

int
run_show (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  int rc = about (c, "lease", &reply);
  const json_t *lease = json_object_get (reply, "lease"),
               *failure = json_object_get (lease, "failure");

  if (rc || c->mode != OUT_TEXT)
    return rc;
  story_lease (stdout, lease);
  if (json_is_object (failure)) {
    printf ("\nfailed:\n");
    report_failure (stdout, failure);
  }
  attempts (json_object_get (lease, "attempts"));
  resources (json_object_get (lease, "resources"));
  operations (json_object_get (lease, "operations"));
  return EXIT_DONE;
}

int
run_explain (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  int rc = about (c, "explain", &reply);
  const json_t *lease = json_object_get (reply, "lease");
  const char *waiting = json_str (reply, "waiting_for", NULL);

  if (rc || c->mode != OUT_TEXT)
    return rc;
  printf ("%s  %s\n", json_str (lease, "id", "?"), json_str (lease, "state", "?"));
  if (waiting && *waiting)
    printf ("  now: %s\n", waiting);
  attempts (json_object_get (reply, "attempts"));
  if (json_array_size (json_object_get (reply, "rejected"))) {
    printf ("\nnot taken:\n");
    report_rejections (stdout, json_object_get (reply, "rejected"), SIZE_MAX);
  }
  return EXIT_DONE;
}

int
run_logs (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  int rc = about (c, "logs", &reply);
  char when[FMT];
  size_t i;
  json_t *line;

  if (rc || c->mode != OUT_TEXT)
    return rc;
  json_array_foreach (json_object_get (reply, "lines"), i, line)
    printf ("%s  %-10s %s\n", fmt_time_of (when, line, "ms"), json_str (line, "step", ""),
            json_str (line, "text", ""));
  return EXIT_DONE;
}
