/* orphans.c - what no lease accounts for: listed, ignored, taken over, ended */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/job.h"
#include "cli/story.h"
#include "cli/table.h"
#include "core/clock.h"

static const char *
since (char *buf, const json_t *o, const char *member)
{
  int64_t ms = json_i64 (o, member, 0);

  return ms ? fmt_span (buf, clock_wall_ms () - ms) : "";
}

static void
put_orphan (struct table *t, const json_t *o)
{
  char buf[FMT];

  table_put (t, json_str (o, "provider", "?"));
  table_put (t, json_str (o, "id", "?"));
  table_put (t, json_str (o, "name", ""));
  table_put (t, json_str (o, "kind", ""));
  table_put (t, json_str (o, "mark", ""));
  table_put (t, fmt_int_of (buf, o, "lease_number"));
  table_put (t, json_str (o, "state", ""));
  table_put (t, json_str (o, "scope", ""));
  table_put (t, fmt_money_of (buf, o, "price_udollar"));
  table_put (t, since (buf, o, "created_ms"));
  table_put (t, since (buf, o, "first_seen_ms"));
  table_put (t, json_bool (o, "ignored", false) ? "ignored" : "");
}

static void
orphans_table (const struct cli *c, const json_t *orphans)
{
  static const struct column columns[] = {
    { "PROVIDER", false }, { "ID", false },   { "NAME", false },  { "KIND", false },
    { "MARK", false },     { "LEASE", true }, { "STATE", false }, { "SCOPE", false },
    { "$/h", true },       { "AGE", true },   { "SEEN", true },   { "", false },
  };
  struct table t;
  size_t i;
  json_t *o;

  table_init (&t, columns, N_ELEMENTS (columns));
  json_array_foreach (orphans, i, o)
    put_orphan (&t, o);
  table_print (&t, stdout, c->colour);
  table_done (&t);
}

static int
list (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  int rc = ask_shown (c, "orphans", &reply);
  const json_t *orphans = json_object_get (reply, "orphans");

  if (rc || c->mode != OUT_TEXT)
    return rc;
  if (json_array_size (orphans))
    orphans_table (c, orphans);
  else
    fprintf (stderr, "no orphans\n");
  return EXIT_DONE;
}

static void
tell (struct cli *c, const struct job *j)
{
  const json_t *lease = json_object_get (j->doc, "lease"),
               *orphan = json_object_get (j->doc, "orphan");
  char price[FMT];

  if (j->failed) {
    story_failed (c, j);
  } else if (json_is_object (orphan)) {
    fmt_money_of (price, orphan, "price_udollar");
    printf ("would end %s %s/%s %s, %s/h; nothing was done: --yes does it\n",
            json_str (orphan, "kind", "?"), json_str (orphan, "provider", "?"),
            json_str (orphan, "id", "?"), json_str (orphan, "name", ""), *price ? price : "$?");
  } else {
    fmt_money_of (price, lease, "price_udollar");
    printf ("%s %s%s%s%s\n", json_str (lease, "id", j->lease),
            json_str (lease, "state", "accepted"), *price ? ", " : "", price, *price ? "/h" : "");
  }
}

static int
change (struct cli *c, const char *verb)
{
  struct job job;

  if (cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  job_init (&job, verb, json_incref (cli_body (c)));
  jobs_run (c, &job, 1, NULL);
  return jobs_report (c, &job, 1, tell);
}

static int
ignore (struct cli *c, bool ignored)
{
  AUTO_JSON json_t *reply = NULL;
  int rc;

  json_object_set_new (cli_body (c), "ignored", json_boolean (ignored));
  rc = ask_shown (c, "orphans.ignore", &reply);
  if (rc == EXIT_DONE && c->mode == OUT_TEXT)
    printf ("%s %s\n", cli_operand (c, 1), ignored ? "ignored" : "no longer ignored");
  return rc;
}

/* "shadeform/0d7c6f0e" into the body; names of providers have no slash. */
static bool
put_id (struct cli *c)
{
  const char *name = cli_operand (c, 1), *slash = name ? strchr (name, '/') : NULL;

  if (!slash || slash == name || !slash[1])
    return false;
  json_object_set_new (cli_body (c), "provider", json_stringn (name, (size_t) (slash - name)));
  json_put_str (cli_body (c), "id", slash + 1);
  return true;
}

int
run_orphans (struct cli *c)
{
  static const char *const words[] = { "adopt", "ignore", "unignore", "release" };
  const char *word = cli_operand (c, 0), *near;

  if (!word)
    return list (c);
  near = nearest (word, words, N_ELEMENTS (words));
  if (!near || strcmp (near, word) != 0)
    return out_fail (c, "bad-request", NULL, "orphans does not know '%s'%s%s%s", word,
                     near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  if (!put_id (c))
    return out_fail (c, "bad-request", "as the table has it: shadeform/0d7c6f0e",
                     "orphans %s needs PROVIDER/ID", word);
  if (strcmp (word, "adopt") == 0)
    return change (c, "orphans.adopt");
  if (strcmp (word, "release") == 0)
    return change (c, "orphans.release");
  return ignore (c, strcmp (word, "ignore") == 0);
}
