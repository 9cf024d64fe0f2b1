/* frames.c - what a session hears, and the bounded wait for it */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

static struct answer *
answer_of (struct session *s, uint32_t id)
{
  for (size_t i = 0; i < s->answers.n; i++)
    if (s->answers.at[i]->id == id)
      return s->answers.at[i];
  return NULL;
}

static void
take_item (struct session *s, struct answer *a, const struct wire_frame *f, const json_t *body)
{
  const json_t *one;

  json_array_extend (a->machines, json_object_get (body, "machines"));
  json_array_extend (a->offers, json_object_get (body, "offers"));
  if ((one = json_object_get (body, "resource")))
    json_array_append (a->resources, (json_t *) (uintptr_t) one);
  if ((one = json_object_get (body, "scope")))
    json_array_append (a->scopes, (json_t *) (uintptr_t) one);
  if (f->flags & WIRE_WANT_ACK)
    wire_put (&s->out, WIRE_ACK, a->id, 0, "{}", 2, NULL);
}

static void
take_result (struct answer *a, const json_t *body)
{
  a->kind = strcmp (json_str (body, "kind", ""), "ok") == 0
                ? ERR_NONE
                : err_kind_parse (json_str (body, "kind", ""));
  snprintf (a->text, sizeof a->text, "%s", json_str (body, "text", ""));
  snprintf (a->code, sizeof a->code, "%s", json_str (body, "code", ""));
  a->retry_after_ms = json_i64 (body, "retry_after_ms", 0);
  a->value = json_incref (json_object_get (body, "value"));
  a->took_ms = clock_boot_ms () - a->started_ms;
  a->done = true;
}

static void
take_log (struct session *s, const json_t *body)
{
  AUTO_FREE char *line = NULL;

  if (asprintf (&line, "%s %s", json_str (body, "event", ""), json_str (body, "text", "")) < 0)
    abort ();
  note_log (s->test, line);
}

static void
take_frame (struct session *s, const struct wire_frame *f)
{
  AUTO_JSON json_t *body = json_parse_max (f->body, f->len, WIRE_ANSWER_TOKENS, NULL);
  struct answer *a = answer_of (s, f->call);

  look_for_secrets (s->test, f->kind == WIRE_LOG ? "a log line" : "an answer", f->body, f->len);
  if (f->kind == WIRE_LOG)
    take_log (s, body);
  else if (f->kind == WIRE_READY)
    s->ready = json_incref (body);
  else if (f->kind == WIRE_ITEM && a)
    take_item (s, a, f, body);
  else if (f->kind == WIRE_RESULT && a)
    take_result (a, body);
}

enum moved
session_move (struct session *s, int64_t ms)
{
  bool writes = s->out.end > s->out.start;
  struct pollfd p = { .fd = s->fd, .events = (short) (POLLIN | (writes ? POLLOUT : 0)) };
  struct wire_frame f;

  if (poll (&p, 1, (int) ms) <= 0)
    return MOVED_NOTHING;
  if ((p.revents & POLLOUT) && wire_write (s->fd, &s->out, NULL) < 0)
    wire_buf_free (&s->out); /* the other side is going; what it said last is still to be read */
  if (!(p.revents & ~POLLOUT))
    return MOVED;
  if (wire_read (s->fd, &s->in, NULL) < 0)
    s->closed = true;
  while (wire_next (&s->in, &f, NULL) == 1)
    take_frame (s, &f);
  return s->closed ? MOVED_CLOSED : MOVED;
}

bool
session_wait (struct session *s, bool (*met) (const void *), const void *what, int64_t ms)
{
  int64_t end = clock_boot_ms () + kit_patience (s->test->kit, ms);

  while (!met (what)) {
    int64_t left = end - clock_boot_ms ();

    if (left <= 0 || s->closed)
      return false;
    session_move (s, left);
  }
  return true;
}
