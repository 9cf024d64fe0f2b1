/* change.c - join, release, extend, retry, verify: one mutation for each lease that is named */
#include "config.h"

#include <stdio.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/keys.h"
#include "cli/story.h"

/* One job for every operand, all at once. */
static int
change (struct cli *c, const char *verb, void (*tell) (struct cli *c, const struct job *j))
{
  size_t n = c->args.noperands;
  AUTO_FREE struct job *jobs = calloc (n, sizeof *jobs);

  if (!jobs || cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  for (size_t i = 0; i < n; i++) {
    json_t *body = json_copy (cli_body (c));

    json_object_set_new (body, "lease", json_string (cli_operand (c, i)));
    job_init (&jobs[i], verb, body);
    snprintf (jobs[i].lease, sizeof jobs[i].lease, "%s", cli_operand (c, i));
  }
  jobs_run (c, jobs, n, NULL);
  return jobs_report (c, jobs, n, tell);
}

static void
tell_state (struct cli *c, const struct job *j)
{
  const json_t *lease = json_object_get (j->doc, "lease");
  char spent[FMT];

  if (j->failed) {
    story_failed (c, j);
  } else if (json_is_object (lease)) {
    fmt_money_of (spent, lease, "spent_udollar");
    printf ("%s %s%s%s%s\n", json_str (lease, "id", j->lease), json_str (lease, "state", "?"),
            *spent ? ", " : "", spent, *spent ? " spent" : "");
  } else {
    printf ("%s accepted\n", j->lease);
  }
}

static void
tell_expiry (struct cli *c, const struct job *j)
{
  const json_t *lease = json_object_get (j->doc, "lease");
  char until[FMT];

  if (j->failed) {
    story_failed (c, j);
    return;
  }
  fmt_time_of (until, json_is_object (lease) ? lease : j->doc, "expires_ms");
  printf ("%s %s%s\n", j->lease, *until ? "expires " : "never expires", until);
}

static void
tell_rows (struct cli *c, const struct job *j)
{
  json_t *row;
  size_t i;

  json_array_foreach (json_object_get (j->doc, "rows"), i, row)
    printf ("  %-10s %-24s %s\n", json_str (row, "result", "?"), json_str (row, "code", "?"),
            json_str (row, "text", ""));
  tell_state (c, j);
}

/* The key goes to the broker once, over the bus; without one the broker's own must open the host.
 */
static int
join_host (struct cli *c)
{
  const char *path = json_str (c->args.to[TO_CLI], "identity", NULL);
  json_t *body = json_copy (cli_body (c));
  struct err e = ERR_INIT;
  struct job job;

  if (path && identity_read (body, path, &e) < 0) {
    json_decref (body);
    return out_fail (c, "bad-request", NULL, "--identity: %s", e.text);
  }
  job_init (&job, "join", body);
  if (cli_connect (c) < 0) {
    job_done (&job);
    return out_fail (c, "internal", NULL, "out of memory");
  }
  jobs_run (c, &job, 1, NULL);
  return jobs_report (c, &job, 1, tell_state);
}

int
run_join (struct cli *c)
{
  bool host = json_object_get (cli_body (c), "host") != NULL;

  if ((c->args.noperands == 1) == host || !json_object_get (cli_body (c), "cluster"))
    return out_fail (c, "bad-request",
                     "gpubroker-cli join l42 --cluster NAME, or join --host USER@ADDRESS "
                     "--identity FILE --cluster NAME",
                     "join needs a lease or --host, and --cluster");
  return host ? join_host (c) : change (c, "join", tell_state);
}

int
run_release (struct cli *c)
{
  if (c->args.noperands > 1 && json_object_get (cli_body (c), "key"))
    return out_fail (c, "bad-request", NULL, "--key goes with one lease");
  return change (c, "release", tell_state);
}

int
run_extend (struct cli *c)
{
  if (!json_object_get (cli_body (c), "ttl_ms"))
    return out_fail (c, "bad-request", "gpubroker-cli extend l42 --ttl 2h", "extend needs --ttl");
  return change (c, "extend", tell_expiry);
}

int
run_retry (struct cli *c)
{
  return change (c, "retry", tell_state);
}

int
run_verify (struct cli *c)
{
  return change (c, "verify", tell_rows);
}
