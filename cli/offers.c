/* offers.c - what can be rented now, and why the rest cannot */
#include "config.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/offers.h"
#include "cli/table.h"

static void
put_disk (struct table *t, const json_t *o)
{
  char least[FMT], most[FMT], text[80];

  fmt_int_of (least, o, "disk_gib");
  fmt_int_of (most, o, "disk_max_gib");
  snprintf (text, sizeof text, "%s%s%s", least, *most ? "-" : "", most);
  table_put (t, text);
}

static void
put_stock (struct table *t, const json_t *o)
{
  char stock[FMT];

  table_put (t, *fmt_int_of (stock, o, "stock") ? stock : json_str (o, "availability", ""));
}

static void
put_age (struct table *t, const json_t *o)
{
  char age[FMT], text[64];

  snprintf (text, sizeof text, "%s%s", fmt_span_of (age, o, "age_ms"),
            json_bool (o, "stale", false) ? " stale" : "");
  table_put (t, text);
}

static void
put_offer (struct table *t, const json_t *o)
{
  char buf[FMT], gpu[96], cloud[128];

  table_put (t, fmt_money_of (buf, o, "price_gpu_udollar"));
  table_put (t, *fmt_money_of (buf, o, "price_udollar") ? buf : "unknown");
  table_put (t, fmt_gpu (gpu, sizeof gpu, json_object_get (o, "gpu")));
  table_put (t, fmt_int_of (buf, o, "vcpus"));
  table_put (t, fmt_int_of (buf, o, "ram_gib"));
  put_disk (t, o);
  table_put (t, fmt_cloud (cloud, sizeof cloud, o));
  table_put (t, json_str (o, "region", ""));
  table_put (t, json_str (o, "instance_type", ""));
  table_put (t, strcmp (json_str (o, "market", ""), "spot") == 0 ? "spot" : "");
  table_put (t, strcmp (json_str (o, "kind", "vm"), "vm") == 0 ? "" : json_str (o, "kind", ""));
  put_stock (t, o);
  put_age (t, o);
}

void
offers_table (FILE *f, const json_t *offers, bool colour)
{
  static const struct column columns[] = {
    { "$/GPU-h", true }, { "$/h", true },     { "GPU", false },      { "VCPU", true },
    { "RAM", true },     { "DISK", true },    { "PROVIDER", false }, { "REGION", false },
    { "TYPE", false },   { "MARKET", false }, { "KIND", false },     { "STOCK", true },
    { "AGE", true },
  };
  struct table t;
  size_t i;
  json_t *o;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (offers, i, o)
    put_offer (&t, o);
  table_print (&t, f, colour);
  table_done (&t);
}

static void
groups_table (FILE *f, const json_t *groups, bool colour)
{
  static const struct column columns[] = {
    { "", false },
    { "OFFERS", true },
    { "FROM $/h", true },
    { "GPUS", true },
  };
  char buf[FMT];
  struct table t;
  size_t i;
  json_t *g;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (groups, i, g) {
    table_put (&t, json_str (g, "key", "?"));
    table_put (&t, fmt_int_of (buf, g, "offers"));
    table_put (&t, fmt_money_of (buf, g, "price_udollar"));
    table_put (&t, fmt_int_of (buf, g, "gpus"));
  }
  table_print (&t, f, colour);
  table_done (&t);
}

/* "not shown: 12 gpu-model, 3 price" */
static void
excluded (FILE *f, const json_t *counts)
{
  const char *code, *between = "not shown: ";
  json_t *n;

  json_object_foreach ((json_t *) counts, code, n) {
    fprintf (f, "%s%lld %s", between, (long long) json_integer_value (n), code);
    between = ", ";
  }
  if (strcmp (between, ", ") == 0)
    fputc ('\n', f);
}

static void
words (FILE *f, const char *what, const json_t *list)
{
  size_t i;
  json_t *w;

  json_array_foreach (list, i, w)
    fprintf (f, "%s%s", i ? ", " : what, json_is_string (w) ? json_string_value (w) : "?");
  if (json_array_size (list))
    fputc ('\n', f);
}

/* A provider that failed costs only its own offers, but nobody should have to guess that it did. */
static void
missing_providers (FILE *f, const json_t *providers)
{
  size_t i;
  json_t *p;

  json_array_foreach (providers, i, p)
    if (strcmp (json_str (p, "state", "up"), "up") != 0)
      fprintf (f, "%s is %s: %s\n", json_str (p, "name", "?"), json_str (p, "state", "?"),
               json_str (json_object_get (p, "error"), "text", "its offers may be missing"));
}

static void
show (const struct cli *c, const json_t *reply)
{
  const json_t *offers = json_object_get (reply, "offers"),
               *groups = json_object_get (reply, "groups");
  int64_t matched = json_i64 (reply, "matched", (int64_t) json_array_size (offers));

  if (json_array_size (groups))
    groups_table (stdout, groups, c->colour);
  else if (json_array_size (offers))
    offers_table (stdout, offers, c->colour);
  fflush (stdout);
  if (json_str (reply, "summary", NULL))
    fprintf (stderr, "%s\n", json_str (reply, "summary", ""));
  if (!json_array_size (groups) && matched > (int64_t) json_array_size (offers))
    fprintf (stderr, "%lld more: --limit\n",
             (long long) matched - (long long) json_array_size (offers));
  excluded (stderr, json_object_get (reply, "excluded"));
  words (stderr, "GPU names nobody knows: ", json_object_get (reply, "unknown_gpus"));
  words (stderr, "did you mean: ", json_object_get (reply, "suggestions"));
  missing_providers (stderr, json_object_get (reply, "providers"));
  if (json_array_size (json_object_get (reply, "rejected"))) {
    printf ("\nnot fit:\n");
    report_rejections (stdout, json_object_get (reply, "rejected"), SIZE_MAX);
  }
}

static void
lines (const struct cli *c, const json_t *offers)
{
  size_t i;
  json_t *o;

  json_array_foreach (offers, i, o)
    out_doc (c, o);
}

int
run_offers (struct cli *c)
{
  int64_t limit = json_i64 (c->args.to[TO_CLI], "limit", 0);
  AUTO_JSON json_t *reply = NULL;
  bool nothing;
  int rc;

  json_object_set (cli_body (c), "filter", c->args.to[TO_FILTER]);
  if (limit == 0 && c->mode == OUT_TEXT)
    rc = ask (c, "offers", cli_body (c), &reply); /* a screenful or so: the broker's default */
  else
    rc = ask_all (c, "offers", cli_body (c), "offers", limit, &reply);
  if (rc)
    return rc;
  nothing = json_i64 (reply, "matched", 1) == 0;
  if (c->mode == OUT_TEXT)
    show (c, reply);
  else if (c->mode == OUT_JSONL)
    lines (c, json_object_get (reply, "offers"));
  else
    out_doc (c, reply);
  return nothing ? EXIT_NO_OFFER : EXIT_DONE;
}
