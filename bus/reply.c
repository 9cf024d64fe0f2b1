/* reply.c - replies out, without ever waiting for a client
 *
 * MANDATORY makes the first frame say how it stands: EHOSTUNREACH is a client that is gone, EAGAIN
 * a slow one.  POLLOUT says nothing, since it is raised when any peer has room.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <zmq.h>

#include "bus/internal.h"
#include "bus/sock.h"

static int
transmit (struct bus *b, struct bytes routing_id, const struct pending *to, enum bus_reply what,
          struct bytes json)
{
  const char *name = proto_reply_name (what);
  struct bytes at[FRAMES_MAX];
  size_t n = 0;

  at[n++] = routing_id;
  if (to->delimiter)
    at[n++] = (struct bytes){ "", 0 };
  at[n++] = (struct bytes){ PROTO_MAGIC, strlen (PROTO_MAGIC) };
  at[n++] = (struct bytes){ name, strlen (name) };
  at[n++] = (struct bytes){ to->id, strlen (to->id) };
  at[n++] = json;
  return frames_send (b->sock[BUS_REQUESTS], at, n);
}

/* Sending may have swallowed the wake-up for a request that came meanwhile. */
static void
look_again (struct bus *b)
{
  if (!b->pumping && sock_events (b->sock[BUS_REQUESTS]) & ZMQ_POLLIN)
    bus_wake (b);
}

void
reply_gone (struct bus *b, struct session *s)
{
  b->counters.gone++;
  session_close (&b->sessions, s);
}

/* 0, or -1 when it ended the session. */
static int
deliver (struct bus *b, struct session *s, const struct pending *to, enum bus_reply what,
         struct bytes json)
{
  if (!s->first && transmit (b, s->address, to, what, json) == 0)
    return 0;
  if (s->first || errno == EAGAIN) {
    if (what == BUS_PROGRESS) {
      b->counters.dropped_progress++;
      return 0;
    }
    if (session_queue (&b->sessions, s, to, what, json) == 0)
      return 0;
  }
  reply_gone (b, s);
  return -1;
}

static int
is_last (const struct pending *p, enum bus_reply what)
{
  return what == BUS_FINAL || what == BUS_ERROR || (what == BUS_ACCEPTED && p->single);
}

int
bus_send (struct bus *b, const struct bus_ticket *t, enum bus_reply what, const char *json,
          size_t len)
{
  struct session *s = session_by_number (&b->sessions, t->session);
  struct pending *p = s ? session_find (s, t->id) : NULL;
  int rc;

  if (!p)
    return -1;
  if (what == BUS_PROGRESS && p->single)
    return 0;
  rc = deliver (b, s, p, what, (struct bytes){ json, len });
  if (rc == 0 && is_last (p, what))
    session_finish (&b->sessions, s, p);
  look_again (b);
  return rc;
}

int
bus_send_error (struct bus *b, const struct bus_ticket *t, const char *code, const char *message,
                const char *hint, uint32_t retry_after_ms)
{
  AUTO_FREE char *json = proto_error (code, message, hint, retry_after_ms);

  return json ? bus_send (b, t, BUS_ERROR, json, strlen (json)) : -1;
}

void
bus_forget (struct bus *b, const struct bus_ticket *t)
{
  struct session *s = session_by_number (&b->sessions, t->session);
  struct pending *p = s ? session_find (s, t->id) : NULL;

  if (p)
    session_finish (&b->sessions, s, p);
}

void
reply_once (struct bus *b, struct bytes routing_id, const struct pending *to, const char *code,
            const char *message, uint32_t retry_after_ms)
{
  AUTO_FREE char *json = *to->id ? proto_error (code, message, NULL, retry_after_ms) : NULL;

  if (json)
    transmit (b, routing_id, to, BUS_ERROR, (struct bytes){ json, strlen (json) });
}

void
reply_refusal (struct bus *b, struct session *s, const struct pending *to, const char *code,
               const char *message, uint32_t retry_after_ms)
{
  AUTO_FREE char *json = *to->id ? proto_error (code, message, NULL, retry_after_ms) : NULL;
  int rc = json ? deliver (b, s, to, BUS_ERROR, (struct bytes){ json, strlen (json) }) : 0;

  if (rc == 0)
    session_close_idle (&b->sessions, s);
}

static void
flush_session (struct bus *b, struct session *s)
{
  while (s->first) {
    const struct queued *q = s->first;

    if (transmit (b, s->address, &q->to, q->what, (struct bytes){ q->json, q->len }) < 0) {
      if (errno != EAGAIN)
        reply_gone (b, s);
      return;
    }
    session_unqueue (&b->sessions, s);
  }
  session_close_idle (&b->sessions, s);
}

void
reply_flush (struct bus *b)
{
  for (size_t i = 0; i < b->sessions.n && b->sessions.with_queue; i++)
    if (b->sessions.at[i]->first)
      flush_session (b, b->sessions.at[i]);
  look_again (b);
}
