/* job-reply.c - what the broker's replies make of a running job */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"
#include "core/clock.h"

static struct job *
job_of (struct run *r, const char *id)
{
  for (size_t i = 0; i < r->n; i++)
    if (!r->jobs[i].finished && *id &&
        (strcmp (id, r->jobs[i].request) == 0 || strcmp (id, r->jobs[i].wait) == 0))
      return &r->jobs[i];
  return NULL;
}

static void
line (const struct cli *c, const char *what, json_t *body)
{
  AUTO_JSON json_t *doc = json_pack ("{s:O}", what, body);

  if (c->mode == OUT_JSONL)
    out_doc (c, doc);
}

static void
accepted (struct run *r, struct job *j, json_t *body)
{
  bool again = j->accepted;

  snprintf (j->operation, sizeof j->operation, "%s", json_str (body, "operation", ""));
  snprintf (j->lease, sizeof j->lease, "%s", json_str (body, "lease", j->lease));
  j->accepted = true;
  if (again)
    return;
  line (r->c, "accepted", body);
  if (r->on_accepted)
    r->on_accepted (r->c, j);
  if (json_bool (r->c->args.to[TO_CLI], "no_wait", false))
    job_finish (j, json_incref (body), false);
}

/* A `wait` that ends well may still tell of an operation that did not. */
static void
final (struct job *j, json_t *body)
{
  const json_t *op = json_object_get (body, "operation");
  const char *state = json_str (op, "state", "done");
  json_t *error = json_object_get (op, "error");

  if (strcmp (state, "failed") != 0 && strcmp (state, "cancelled") != 0) {
    job_finish (j, json_incref (body), false);
    return;
  }
  /* deep: details go into the copy, and the body they come from holds the original */
  error =
      error ? json_deep_copy (error) : error_new ("failed", "the operation was cancelled", NULL);
  if (!json_object_get (error, "details"))
    json_object_set_new (error, "details", json_array ());
  json_array_append (json_object_get (error, "details"), body);
  job_finish (j, error, true);
}

/* An error of our `wait` need not be one of what it waits for. */
static void
waited (struct run *r, struct job *j, json_t *error)
{
  const char *code = json_str (error, "code", "");

  if (strcmp (code, "timeout") == 0)
    run_send_wait (r, j);
  else if (exit_of (code) !=
           EXIT_UNREACHABLE) /* too busy to tell: ask again after the next silence */
    job_finish (j, json_incref (error), true);
}

void
run_handle (struct run *r, int kind, const struct gpubc_reply *reply)
{
  struct job *j = job_of (r, reply->id);
  AUTO_JSON json_t *body = reply_json (r->c, reply);

  r->heard = r->asked = clock_boot_ms ();
  if (!j || !body)
    return;
  switch (kind) {
  case GPUBC_ACCEPTED:
    accepted (r, j, body);
    break;
  case GPUBC_PROGRESS:
    line (r->c, "progress", body);
    progress_show (&r->progress, body);
    break;
  case GPUBC_FINAL:
    final (j, body);
    break;
  default:
    if (strcmp (reply->id, j->wait) == 0)
      waited (r, j, body);
    else
      job_finish (j, json_incref (body), true);
  }
}
