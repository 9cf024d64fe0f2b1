/* feed.c - events, log lines and progress: what others see of what happens
 *
 * The feed in the store is the truth; PUB and `progress` are hints.
 */
#include "config.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

extern char **environ;

static void
followers (struct broker *b, int64_t lease, const json_t *event)
{
  for (size_t i = 0; i < b->followers.n; i++) {
    const struct follower *f = &b->followers.at[i];

    if (f->behind == 0 && (f->lease == 0 || f->lease == lease))
      turn_reply (
          b, &f->ticket, BUS_PROGRESS,
          json_pack ("{s:I, s:[O]}", "seq", (json_int_t) b->seq, "events", (json_t *) event));
  }
}

/* ---- the past ---- */

static void
add_event (void *ctx, int64_t seq, int64_t ms, const char *topic, const char *body)
{
  json_t *j = json_loads (body, 0, NULL);

  (void) ms;
  (void) topic;
  if (!j)
    return;
  json_put_i64 (j, "seq", seq);
  json_array_append_new (ctx, j);
}

json_t *
feed_page (struct broker *b, int64_t since, int64_t lease, int64_t limit)
{
  json_t *events = json_array ();

  store_each_event (b->store, since, lease, limit, add_event, events);
  return json_pack ("{s:I, s:o, s:I}", "epoch", (json_int_t) b->epoch, "events", events, "seq",
                    (json_int_t) b->seq);
}

/* After a full page there may be more. */
static int64_t
behind (const json_t *page, int64_t limit)
{
  const json_t *events = json_object_get (page, "events");
  size_t n = json_array_size (events);

  return (int64_t) n < limit ? 0 : json_i64 (json_array_get (events, n - 1), "seq", 0);
}

void
feed_follow (struct broker *b, const struct bus_ticket *t, int64_t since, int64_t lease,
             int64_t limit)
{
  json_t *page = feed_page (b, since, lease, limit);
  struct follower *f = vec_push (&b->followers);

  *f = (struct follower){ *t, lease, behind (page, limit), limit };
  turn_reply (b, t, BUS_PROGRESS, page);
}

/* A page a turn: the past may be long, and the present goes on meanwhile. */
bool
feed_catch_up (struct broker *b)
{
  bool more = false;

  for (size_t i = 0; i < b->followers.n; i++) {
    struct follower *f = &b->followers.at[i];
    json_t *page;

    if (f->behind == 0)
      continue;
    page = feed_page (b, f->behind, f->lease, f->page);
    f->behind = behind (page, f->page);
    turn_reply (b, &f->ticket, BUS_PROGRESS, page);
    more |= f->behind != 0;
  }
  return more;
}

/* ---- the present ---- */

/* Takes event. */
static void
emit (struct broker *b, int64_t lease, const char *topic, json_t *event)
{
  int64_t ms = now_ms ();
  struct out *o;

  json_put_i64 (event, "ms", ms);
  json_put_str (event, "topic", topic);
  b->seq = store_put_event (b->store, ms, lease, topic, event);
  json_put_i64 (event, "seq", b->seq);
  followers (b, lease, event);
  o = vec_push (&b->outbox);
  o->topic = strdup (topic);
  o->seq = (uint64_t) b->seq;
  o->text = json_dumps (event, JSON_COMPACT);
  json_decref (event);
}

void
feed_lease (struct broker *b, const struct lease *l, const char *what, const char *text)
{
  json_t *event = json_object ();
  const struct attempt *a = lease_attempt (l);
  char topic[96];

  snprintf (topic, sizeof topic, "lease.%s.%s", l->id, what);
  json_put_str (event, "what", what);
  json_put_str (event, "lease", l->id);
  json_put_str (event, "state", lease_state_name (l->state));
  if (a)
    json_put_str (event, "provider", a->provider);
  json_put_str (event, "text", text);
  emit (b, l->number, topic, event);
  store_put_log (b->store, l->number, now_ms (), what, text ? text : "");
  log_at (LOG_NOTICE, "lease", "lease=%s state=%s what=%s%s%s%s", l->id,
          lease_state_name (l->state), what, text ? " text=\"" : "", text ? text : "",
          text ? "\"" : "");
}

void
feed_provider (struct broker *b, const char *provider, const char *what, const char *text)
{
  json_t *event = json_object ();
  char topic[160];

  snprintf (topic, sizeof topic, "provider.%.64s.%s", provider, what);
  json_put_str (event, "what", what);
  json_put_str (event, "provider", provider);
  json_put_str (event, "text", text);
  emit (b, 0, topic, event);
  log_at (LOG_NOTICE, "provider", "provider=%s what=%s text=\"%s\"", provider, what,
          text ? text : "");
}

void
feed_broker (struct broker *b, const char *what, const char *text)
{
  json_t *event = json_object ();
  char topic[96];

  snprintf (topic, sizeof topic, "broker.%s", what);
  json_put_str (event, "what", what);
  json_put_str (event, "text", text);
  emit (b, 0, topic, event);
}

void
feed_step (struct lease *l, const char *step, const char *text)
{
  char clean[512];

  snprintf (clean, sizeof clean, "%s", text ? text : "");
  redact (clean);
  json_clean (clean);
  if (l->step_name && l->step_text && strcmp (l->step_name, step) == 0 &&
      strcmp (l->step_text, clean) == 0)
    return;
  set_str (&l->step_name, step);
  set_str (&l->step_text, clean);
  store_put_log (l->broker->store, l->number, now_ms (), step, clean);
  ops_progress (l->broker, l);
}

static VEC (pid_t) notified = VEC_EMPTY;

/* The operator's own program, with the alarm as its arguments.  It runs beside us, with no signal
 * blocked. */
static void
notify (const struct broker *b, const char *what, const char *text)
{
  char *argv[] = { b->conf.broker.notify_command, (char *) what, (char *) text, NULL };
  posix_spawnattr_t attr;
  sigset_t none;
  pid_t pid;

  if (!argv[0])
    return;
  sigemptyset (&none);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK);
  if (posix_spawn (&pid, argv[0], NULL, &attr, argv, environ) == 0)
    *vec_push (&notified) = pid;
  else
    log_at (LOG_ERR, "notify.failed", "command=%s", argv[0]);
  posix_spawnattr_destroy (&attr);
}

void
feed_tick (void)
{
  for (size_t i = notified.n; i-- > 0;)
    if (waitpid (notified.at[i], NULL, WNOHANG) != 0)
      vec_drop (&notified, i);
}

void
feed_alarm (struct broker *b, const char *what, const char *text)
{
  metrics_alarm (&b->metrics, what);
  log_at (LOG_ALERT, "alarm", "what=%s text=\"%s\"", what, text);
  feed_broker (b, what, text);
  if (!b->rebuild) /* a person is watching */
    notify (b, what, text);
}
