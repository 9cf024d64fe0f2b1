/* out.c - frames to the daemon, from any thread
 *
 * A frame is written at once when the socket takes it, so that what was said before a crash is not
 * lost; the main thread writes what is left over.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "sdk/host/host.h"

enum { HIGH_WATER = 1024 * 1024, LOGS_PER_SECOND = 100, LOG_MAX = 1024 };

static size_t
held (const struct out *o)
{
  return o->buf.end - o->buf.start;
}

void
out_init (struct out *o, int fd)
{
  memset (o, 0, sizeof *o);
  o->fd = fd;
  o->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init (&o->lock, NULL);
  cond_init (&o->room);
}

static void
write_some (struct out *o)
{
  int rc = 1;

  while (rc > 0 && !o->closed)
    rc = wire_write (o->fd, &o->buf, NULL);
  if (rc < 0)
    o->closed = true;
  if (o->closed)
    o->buf.start = o->buf.end; /* nobody reads it */
  if (held (o) < HIGH_WATER)
    pthread_cond_broadcast (&o->room);
}

static void
send_locked (struct out *o, enum wire_kind kind, uint32_t call, uint16_t flags, const char *body,
             size_t len)
{
  bool idle = held (o) == 0;

  if (o->closed)
    return;
  wire_put (&o->buf, kind, call, flags, body, len, NULL);
  if (idle)
    write_some (o);
  if (held (o) && eventfd_write (o->wake, 1) < 0) {
    /* it is full, so the main thread is awake */
  }
}

void
out_text (struct out *o, enum wire_kind kind, uint32_t call, uint16_t flags, const char *body,
          size_t len)
{
  pthread_mutex_lock (&o->lock);
  send_locked (o, kind, call, flags, body, len);
  pthread_mutex_unlock (&o->lock);
}

void
out_json (struct out *o, enum wire_kind kind, uint32_t call, uint16_t flags, const json_t *body)
{
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);

  if (!text)
    abort (); /* every string in it went through text_json */
  out_text (o, kind, call, flags, text, strlen (text));
}

bool
out_pending (struct out *o)
{
  bool pending;

  pthread_mutex_lock (&o->lock);
  pending = held (o) > 0;
  pthread_mutex_unlock (&o->lock);
  return pending;
}

void
out_flush (struct out *o)
{
  pthread_mutex_lock (&o->lock);
  write_some (o);
  pthread_mutex_unlock (&o->lock);
}

void
out_drain (struct out *o, int64_t ms)
{
  int64_t until = clock_boot_ms () + ms, left;

  while (out_pending (o) && !o->closed && (left = until - clock_boot_ms ()) > 0) {
    struct pollfd p = { .fd = o->fd, .events = POLLOUT };

    if (poll (&p, 1, (int) left) > 0 && (p.revents & (POLLERR | POLLHUP)))
      return;
    out_flush (o);
  }
}

bool
out_wait_room (struct out *o, struct gpub_call *call)
{
  bool room;

  pthread_mutex_lock (&o->lock);
  while (held (o) >= HIGH_WATER && !o->closed && !call_stopped (call)) {
    struct timespec ts = after_ms (1000); /* a deadline passes unannounced */

    pthread_cond_timedwait (&o->room, &o->lock, &ts);
  }
  room = !o->closed && !call_stopped (call);
  pthread_mutex_unlock (&o->lock);
  return room;
}

void
out_nudge (struct out *o)
{
  pthread_mutex_lock (&o->lock);
  pthread_cond_broadcast (&o->room);
  pthread_mutex_unlock (&o->lock);
}

static void
log_locked (struct out *o, int level, const char *event, uint32_t call, const char *text)
{
  AUTO_JSON json_t *j = json_object ();
  AUTO_FREE char *body = NULL;

  json_put_i64 (j, "level", level);
  json_object_set_new (j, "event", text_json (event, 64));
  json_object_set_new (j, "text", text_json (text, LOG_MAX));
  if (call)
    json_put_i64 (j, "call", call);
  body = json_dumps (j, JSON_COMPACT);
  if (body)
    send_locked (o, WIRE_LOG, call, 0, body, strlen (body));
}

static void
new_second (struct out *o)
{
  int64_t second = clock_boot_ms () / 1000;
  char text[64];

  if (second == o->log_second)
    return;
  o->log_second = second;
  o->logged = 0;
  if (o->dropped == 0)
    return;
  snprintf (text, sizeof text, "lines=%u", o->dropped);
  o->dropped = 0;
  log_locked (o, LOG_WARNING, "log.dropped", 0, text);
}

void
out_log_tick (struct out *o)
{
  pthread_mutex_lock (&o->lock);
  new_second (o);
  pthread_mutex_unlock (&o->lock);
}

void
out_log (struct out *o, int level, const char *event, uint32_t call, const char *fmt, ...)
{
  char text[LOG_MAX];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  secrets_redact (host_of (o), text);
  pthread_mutex_lock (&o->lock);
  new_second (o);
  if (o->logged < LOGS_PER_SECOND) {
    o->logged++;
    log_locked (o, level, event, call, text);
  } else {
    o->dropped++;
  }
  pthread_mutex_unlock (&o->lock);
}
