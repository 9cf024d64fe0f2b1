/* watch.c - follow one lease to its end, or everything that happens
 *
 * The broker may restart under a watcher: after a silence a ping tells whether the stream is still
 * the one that was asked for.  Events carry numbers, so none is lost and none is shown twice.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/story.h"
#include "core/clock.h"

enum { TICK_MS = 1000, SILENCE_MS = 5000, GONE_MS = 30000 };

static void
tell (struct cli *c, const struct job *j)
{
  const json_t *lease = json_object_get (j->doc, "lease");

  if (j->failed)
    story_failed (c, j);
  else
    story_lease (stdout, lease);
}

static int
watch_lease (struct cli *c)
{
  struct job job;

  if (cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  job_init_watch (&job, cli_operand (c, 0));
  jobs_run (c, &job, 1, NULL);
  return jobs_report (c, &job, 1, tell);
}

struct stream {
  struct cli *c;
  char events[65], ping[65];
  int64_t seq, epoch; /* -1: not known yet */
  int64_t heard, asked, deadline;
  json_t *error; /* why it ended */
};

static void
send_ping (struct stream *s)
{
  int rc = gpubc_send (s->c->client, "ping", "{}", s->ping);

  if (rc == GPUBC_ERROR)
    s->error = error_new ("denied", gpubc_why (s->c->client), NULL);
  else if (rc == GPUBC_UNREACHABLE && s->epoch < 0)
    s->error = error_unreachable (s->c);
  s->asked = clock_boot_ms ();
}

static void
follow (struct stream *s)
{
  AUTO_JSON json_t *body = json_pack ("{s:b, s:I}", "follow", 1, "since", (json_int_t) s->seq);
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);

  gpubc_send (s->c->client, "events", text, s->events);
}

static void
show (struct stream *s, const json_t *e)
{
  int64_t seq = json_i64 (e, "seq", 0);
  const char *text = json_str (e, "text", NULL);
  char when[FMT];

  if (seq <= s->seq)
    return;
  s->seq = seq;
  if (s->c->mode == OUT_JSONL) {
    out_doc (s->c, e);
    return;
  }
  printf ("%s  %s%s%s\n", fmt_time_of (when, e, "ms"), json_str (e, "topic", "?"), text ? "  " : "",
          text ? text : "");
  fflush (stdout);
}

/* The first answer says where to begin.  Another epoch is another run of the broker: the stream
 * that we had is gone. */
static void
pong (struct stream *s, const json_t *reply)
{
  int64_t epoch = json_i64 (reply, "epoch", 0);
  bool other = epoch != s->epoch;

  if (s->seq < 0)
    s->seq = json_i64 (reply, "seq", 0);
  s->epoch = epoch;
  if (other)
    follow (s);
}

/* What was missed comes as a list, what happens now one by one. */
static void
progress (struct stream *s, const json_t *body)
{
  const json_t *missed = json_object_get (body, "events");
  size_t i;
  json_t *e;

  if (!missed)
    show (s, body);
  json_array_foreach (missed, i, e)
    show (s, e);
}

static void
handle (struct stream *s, int kind, const struct gpubc_reply *r)
{
  AUTO_JSON json_t *body = reply_json (s->c, r);
  bool ping = strcmp (r->id, s->ping) == 0;

  s->heard = s->asked = clock_boot_ms ();
  if (!body || (!ping && strcmp (r->id, s->events) != 0))
    return;
  if (kind == GPUBC_ERROR)
    s->error = json_incref (body);
  else if (ping)
    pong (s, body);
  else
    progress (s, body);
}

static void
silence (struct stream *s, int outcome)
{
  int64_t now = clock_boot_ms ();

  if (now - s->heard >= GONE_MS) {
    s->error = error_new ("unreachable", "the broker no longer answers", NULL);
  } else if (outcome == GPUBC_UNREACHABLE || now - s->asked >= SILENCE_MS) {
    if (outcome == GPUBC_UNREACHABLE)
      poll (NULL, 0, TICK_MS / 2);
    send_ping (s);
  }
}

static int
watch_all (struct cli *c)
{
  struct stream s = { .c = c, .seq = -1, .epoch = -1 };
  int64_t patience = cli_timeout (c, -1);
  int rc;

  if (cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  s.heard = clock_boot_ms ();
  s.deadline = patience < 0 ? -1 : s.heard + patience;
  send_ping (&s);
  while (!s.error && !cli_interrupted () && (s.deadline < 0 || clock_boot_ms () < s.deadline)) {
    struct gpubc_reply r = { .size = sizeof r };

    rc = gpubc_recv (c->client, NULL, patience >= 0 && patience < TICK_MS ? patience : TICK_MS, &r);
    if (rc >= GPUBC_ACCEPTED && rc <= GPUBC_ERROR)
      handle (&s, rc, &r);
    else
      silence (&s, rc);
  }
  rc = s.error                                  ? out_error (c, s.error, NULL)
       : s.deadline >= 0 && !cli_interrupted () ? EXIT_TIMEOUT
                                                : EXIT_DONE;
  json_decref (s.error);
  return rc;
}

int
run_watch (struct cli *c)
{
  if (cli_operand (c, 0))
    return watch_lease (c);
  if (c->mode == OUT_JSON)
    return out_fail (c, "bad-request", "use --jsonl", "a stream of events is not one document");
  return watch_all (c);
}
