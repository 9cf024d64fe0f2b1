/* turn.c - the end of a turn: commit, then let out what was queued
 *
 * A commit that fails leaves memory and books apart, so nothing goes out and the process ends; the
 * next one starts from the books.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

void
turn_text (struct broker *b, const struct bus_ticket *t, enum bus_reply what, char *text)
{
  struct out *o = vec_push (&b->outbox);

  o->ticket = *t;
  o->what = what;
  o->text = text;
}

void
turn_reply (struct broker *b, const struct bus_ticket *t, enum bus_reply what, json_t *body)
{
  turn_text (b, t, what, json_dumps (body, JSON_COMPACT));
  json_decref (body);
}

static int
retryable (const char *code)
{
  static const char *const yes[] = { "busy", "draining", "timeout", "provider-down", "internal" };

  for (size_t i = 0; i < N_ELEMENTS (yes); i++)
    if (strcmp (yes[i], code) == 0)
      return 1;
  return 0;
}

void
turn_error (struct broker *b, const struct bus_ticket *t, const char *code, const char *hint,
            json_t *details, const char *fmt, ...)
{
  json_t *body = json_object ();
  char text[512];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  json_clean (text);
  json_put_str (body, "code", code);
  json_put_str (body, "message", text);
  json_put_str (body, "hint", hint);
  json_object_set_new (body, "retryable", json_boolean (retryable (code)));
  if (retryable (code))
    json_put_i64 (body, "retry_after_ms", 1000);
  if (details)
    json_object_set_new (body, "details", details);
  turn_reply (b, t, BUS_ERROR, body);
}

static bool
same_asker (const struct bus_ticket *x, const struct bus_ticket *y)
{
  return x->session == y->session && strcmp (x->id, y->id) == 0;
}

/* Who asked is gone: nothing is kept for them. */
static void
drop_asker (struct broker *b, const struct bus_ticket *t)
{
  for (size_t i = b->waiters.n; i-- > 0;)
    if (same_asker (&b->waiters.at[i].ticket, t))
      vec_drop (&b->waiters, i);
  for (size_t i = b->followers.n; i-- > 0;)
    if (same_asker (&b->followers.at[i].ticket, t))
      vec_drop (&b->followers, i);
}

void
turn_unsay (struct broker *b, size_t from)
{
  while (b->outbox.n > from) {
    struct out *o = &b->outbox.at[--b->outbox.n];

    free (o->text);
    free (o->topic);
  }
}

static void
let_out (struct broker *b)
{
  for (size_t i = 0; i < b->outbox.n; i++) {
    struct out *o = &b->outbox.at[i];

    if (!b->bus)
      ;
    else if (o->topic)
      bus_publish (b->bus, o->topic, (uint64_t) b->epoch, o->seq, o->text, strlen (o->text));
    else if (o->text && bus_send (b->bus, &o->ticket, o->what, o->text, strlen (o->text)) < 0)
      drop_asker (b, &o->ticket);
    free (o->text);
    free (o->topic);
  }
  b->outbox.n = 0;
}

void
turn_let_go (struct broker *b, struct lease *l)
{
  call_give_up (l);
  loop_cancel (b->loop, l->timer);
  for (size_t i = 0; i < l->nattempts; i++)
    loop_cancel (b->loop, l->attempts[i]->timer);
  lease_free (l);
}

/* What is over leaves memory only now: whoever held it in this turn still could. */
static void
forget_over (struct broker *b)
{
  size_t leases = 0, ops = 0;

  if (!b->some_over)
    return;
  for (size_t i = 0; i < b->leases.n; i++)
    if (lease_over (b->leases.at[i]))
      turn_let_go (b, b->leases.at[i]);
    else
      b->leases.at[leases++] = b->leases.at[i];
  for (size_t i = 0; i < b->ops.n; i++)
    if (b->ops.at[i]->state != OP_RUNNING)
      op_free (b->ops.at[i]);
    else
      b->ops.at[ops++] = b->ops.at[i];
  b->leases.n = leases;
  b->ops.n = ops;
  b->some_over = false;
}

void
turn_disk (struct broker *b)
{
  char text[300];

  switch (ballast_look (&b->ballast)) {
  case BALLAST_GIVEN_UP:
    snprintf (text, sizeof text,
              "the disk of %.150s is full: releases go on in the room that was kept for them, "
              "nothing new is begun; make room",
              b->conf.broker.state_dir);
    feed_alarm (b, "disk-full", text);
    break;
  case BALLAST_MADE:
    log_at (LOG_NOTICE, "disk.room", "state_dir=%s", b->conf.broker.state_dir);
    feed_broker (b, "disk-room", "the disk has room again");
    break;
  case BALLAST_SAME:
    break;
  }
}

int
turn_end (void *broker)
{
  struct broker *b = broker;
  struct err e = ERR_INIT;
  int more;

  more = b->bus ? bus_pump (b->bus) : 0;
  more |= feed_catch_up (b);
  if (memory_changed (b->memory)) {
    AUTO_JSON json_t *j = memory_json (b->memory);
    AUTO_FREE char *text = json_canonical (j);

    store_put_meta (b->store, "memory", text);
  }
  if (store_dirty (b->store))
    turn_disk (b);
  if (store_dirty (b->store) && store_commit (b->store, &e) < 0) {
    log_at (LOG_CRIT, "store.failed", "error=\"%s\" action=exit", e.text);
    if (e.kind == ERR_UNAVAILABLE) /* a quota, say, that the look did not show */
      ballast_drop (&b->ballast);
    b->exit_code = 1;
    loop_stop (b->loop);
    turn_unsay (b, 0);
    return 1;
  }
  more |= b->outbox.n > 0; /* a send may swallow the edge that says a request is there */
  let_out (b);
  forget_over (b);
  b->touched.n = 0;
  supervisor_flush (b->supervisor);
  return more;
}
