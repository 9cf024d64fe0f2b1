/* router.c - requests in: decode, find out who asks, admit or refuse
 *
 * The User-Id is read off the last frame: after a poll, libzmq 4.3.4 loses it on the first.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "bus/internal.h"
#include "bus/sock.h"
#include "core/clock.h"

struct arrival {
  struct bytes routing_id;
  struct principal *who; /* NULL: not, or no longer, in the list */
  int fd;
  struct proto_request request;
};

/* A refusal: NULL to go on. */
struct refusal {
  const char *code, *message;
  uint32_t retry_after_ms;
};

enum { BUSY_RETRY_MS = 500 };

static const struct refusal none = { NULL, NULL, 0 };

static struct refusal
busy (struct bus *b, const char *message, uint32_t retry_after_ms)
{
  b->counters.busy++;
  return (struct refusal){ "busy", message, retry_after_ms };
}

/* One principal may hold half of all there is, so that no other is ever shut out. */
static struct refusal
check_caps (struct bus *b, const struct principal *who, const struct session *s)
{
  if (s && s->requests.n >= b->inflight_per_peer)
    return busy (b, "too many requests under way on this connection", BUSY_RETRY_MS);
  if (who->inflight >= (b->inflight_total + 1) / 2)
    return busy (b, "too many requests of yours under way", BUSY_RETRY_MS);
  if (b->sessions.inflight >= b->inflight_total)
    return busy (b, "too many requests under way", BUSY_RETRY_MS);
  return none;
}

static struct refusal
admit (struct bus *b, const struct arrival *a, const struct session *s, const struct err *decoded)
{
  uint32_t wait_ms;

  if (!a->who) {
    b->counters.refused++;
    return (struct refusal){ "denied", "this user may not ask the broker", 0 };
  }
  wait_ms = principal_take (&b->who, a->who, clock_boot_ms ());
  if (wait_ms)
    return busy (b, "requests come faster than the rate limit", wait_ms);
  if (decoded->kind != ERR_NONE) {
    b->counters.bad_frames++;
    return (struct refusal){ decoded->code, decoded->text, 0 };
  }
  return check_caps (b, a->who, s);
}

static void
hand_over (struct bus *b, const struct session *s, const struct proto_request *r)
{
  struct bus_request out = {
    .session = session_number (s),
    .principal = s->who->name,
    .rights = s->who->rights,
    .verb = r->verb,
    .id = r->id,
    .body = b->body,
    .len = r->body.len,
    .single = r->single,
  };

  memcpy (b->body, r->body.at, r->body.len);
  b->body[r->body.len] = 0;
  b->counters.requests++;
  b->handler (b->ctx_of_handler, &out);
}

static void
handle (struct bus *b, const struct arrival *a, const struct err *decoded)
{
  struct session *s = session_of (&b->sessions, a->routing_id);
  const struct proto_request *r = &a->request;
  struct refusal no;

  if (s && decoded->kind == ERR_NONE && session_find (s, r->id))
    return; /* sent again on the same connection: the first is being answered */
  no = admit (b, a, s, decoded);
  if (!s && a->who)
    s = session_open (&b->sessions, a->routing_id, a->who, a->fd);
  if (no.code) {
    struct pending to = { .delimiter = r->delimiter };

    strcpy (to.id, r->id);
    if (s)
      reply_refusal (b, s, &to, no.code, no.message, no.retry_after_ms);
    else
      reply_once (b, a->routing_id, &to, no.code, no.message, no.retry_after_ms);
    return;
  }
  session_add (&b->sessions, s, r);
  hand_over (b, s, r);
}

/* The descriptor of the connection a message came by; monitor events name it too. */
static int
source_fd (zmq_msg_t *m)
{
  const char *text = zmq_msg_gets (m, "__fd");

  return text ? atoi (text) : -1;
}

static void
receive (struct bus *b, struct frames *f)
{
  struct arrival a = { .routing_id = f->at[0] };
  struct err e = ERR_INIT;
  zmq_msg_t *last = &f->msg[f->n - 1];
  const char *user_id = f->n > 1 ? zmq_msg_gets (last, "User-Id") : NULL;

  a.who = user_id ? principals_find (&b->who, user_id) : NULL;
  a.fd = source_fd (last);
  proto_decode (f->at + 1, f->n - 1, f->total - 1, &a.request, &e);
  handle (b, &a, &e);
}

int
router_pump (struct bus *b)
{
  struct frames f;

  for (uint32_t i = 0; i < b->turn_budget; i++) {
    if (frames_recv (b->sock[BUS_REQUESTS], &f) < 0)
      return 0;
    receive (b, &f);
    frames_done (&f);
  }
  return 1;
}
