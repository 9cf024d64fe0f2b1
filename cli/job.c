/* job.c - mutations, watched to their end */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/run.h"
#include "core/clock.h"

enum {
  TICK_MS = 1000,
  SILENCE_MS = 10000, /* then we ask */
  GONE_MS = 30000,    /* then the broker is not there */
  WAIT_MS = 5000,     /* how long one `wait` of ours lasts: shorter than silence */
};

void
job_init (struct job *j, const char *verb, json_t *body)
{
  char key[37];

  *j = (struct job){ .verb = verb, .body = body };
  if (json_object_get (body, "key") ||
      (json_object_get (body, "name") && strcmp (verb, "rent") == 0))
    return;
  gpubc_key (key);
  json_put_str (body, "key", key);
}

void
job_init_watch (struct job *j, const char *lease)
{
  *j = (struct job){ .verb = "wait", .accepted = true };
  snprintf (j->lease, sizeof j->lease, "%s", lease);
}

void
job_done (struct job *j)
{
  json_decref (j->body);
  json_decref (j->doc);
}

void
job_finish (struct job *j, json_t *doc, bool failed)
{
  j->doc = doc;
  j->failed = failed;
  j->finished = true;
}

/* A first request that finds nobody ends its job; later ones find a broker that restarts. */
static void
put (struct run *r, struct job *j, const char *verb, const json_t *body, char id[65])
{
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);
  int rc = gpubc_send (r->c->client, verb, text, id);
  const char *why = gpubc_why (r->c->client);

  if (rc == GPUBC_ACCEPTED)
    r->reached = true;
  else if (rc == GPUBC_ERROR)
    job_finish (j, error_new ("denied", why, NULL), true);
  else if (rc == GPUBC_INVALID)
    job_finish (j, error_new ("bad-request", why, NULL), true);
  else if (rc == GPUBC_UNREACHABLE && !r->reached)
    job_finish (j, error_unreachable (r->c), true);
}

void
run_send_wait (struct run *r, struct job *j)
{
  bool by_operation = j->operation[0];
  AUTO_JSON json_t *body =
      json_pack ("{s:s, s:i}", by_operation ? "operation" : "lease",
                 by_operation ? j->operation : j->lease, "timeout_ms", WAIT_MS);

  put (r, j, "wait", body, j->wait);
}

static void
send_all (struct run *r)
{
  for (size_t i = 0; i < r->n; i++) {
    if (r->jobs[i].finished)
      continue;
    if (r->jobs[i].accepted)
      run_send_wait (r, &r->jobs[i]);
    else
      put (r, &r->jobs[i], r->jobs[i].verb, r->jobs[i].body, r->jobs[i].request);
  }
  r->asked = clock_boot_ms ();
}

static size_t
running (const struct run *r)
{
  size_t n = 0;

  for (size_t i = 0; i < r->n; i++)
    n += !r->jobs[i].finished;
  return n;
}

static void
cut_short (struct run *r, const char *code, const char *message)
{
  for (size_t i = 0; i < r->n; i++) {
    struct job *j = &r->jobs[i];
    const char *key = json_str (j->body, "key", NULL);
    char hint[256];

    if (j->finished)
      continue;
    if (j->accepted)
      snprintf (hint, sizeof hint,
                "it goes on: gpubroker-cli watch %s; to end it: gpubroker-cli release %s", j->lease,
                j->lease);
    else
      snprintf (hint, sizeof hint, "it may have been accepted: the same command%s%s is done once",
                key ? " with --key " : " again", key ? key : "");
    job_finish (j, error_new (code, message, hint), true);
  }
}

static bool
any_accepted (const struct run *r)
{
  for (size_t i = 0; i < r->n; i++)
    if (r->jobs[i].accepted)
      return true;
  return false;
}

/* The user's patience is over.  What was never accepted may just as well have found nobody. */
static void
expire (struct run *r)
{
  if (any_accepted (r))
    cut_short (r, "timeout", "the wait is over");
  else
    cut_short (r, "unreachable", "no answer from the broker in this time");
}

/* Nothing came: ask, or give up. */
static void
silence (struct run *r, int outcome)
{
  bool away = outcome == GPUBC_UNREACHABLE;
  int64_t now = clock_boot_ms ();

  progress_tick (&r->progress);
  if (now - r->heard >= GONE_MS) {
    cut_short (r, "unreachable", away ? gpubc_why (r->c->client) : "the broker no longer answers");
  } else if (away || now - r->asked >= SILENCE_MS) {
    if (away)
      poll (NULL, 0, TICK_MS / 2); /* it may be restarting; a signal ends this at once */
    send_all (r);
  }
}

static int64_t
slice (const struct run *r)
{
  int64_t left = r->deadline - clock_boot_ms ();

  return r->deadline < 0 || left > TICK_MS ? TICK_MS : left > 0 ? left : 0;
}

static void
step (struct run *r)
{
  struct gpubc_reply reply = { .size = sizeof reply };
  int rc = gpubc_recv (r->c->client, NULL, slice (r), &reply);

  if (cli_interrupted ())
    cut_short (r, "timeout", "interrupted");
  else if (rc == GPUBC_TIMEOUT || rc == GPUBC_UNREACHABLE || rc == GPUBC_INTERRUPTED)
    silence (r, rc);
  else if (rc >= GPUBC_ACCEPTED && rc <= GPUBC_ERROR)
    run_handle (r, rc, &reply);
  else
    cut_short (r, "internal", gpubc_why (r->c->client));
  if (r->deadline >= 0 && clock_boot_ms () >= r->deadline)
    expire (r);
}

void
jobs_run (struct cli *c, struct job *jobs, size_t n,
          void (*on_accepted) (struct cli *c, const struct job *j))
{
  struct run r = { .c = c, .jobs = jobs, .n = n, .on_accepted = on_accepted };
  int64_t patience = cli_timeout (c, -1);

  r.heard = clock_boot_ms ();
  r.deadline = patience < 0 ? -1 : r.heard + patience;
  progress_init (&r.progress, c->tty, c->quiet || c->mode == OUT_JSONL);
  send_all (&r);
  while (running (&r))
    step (&r);
  progress_end (&r.progress);
}
