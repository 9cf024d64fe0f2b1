/* bus_fixture.h - a bus in a folder of its own, turned by the test's one thread
 *
 * Verbs: "echo" answers with the body; "hold" waits for the test; "rent" is accepted, then waits;
 * "mute" is forgotten.  The clients are bare ZeroMQ sockets, so that what is on the wire is what is
 * tested.
 */
#ifndef GPUB_BUS_FIXTURE_H
#define GPUB_BUS_FIXTURE_H

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/bus.h"
#include "bus/frame.h"
#include "core/clock.h"
#include "core/vec.h"
#include "tests/unit/tap.h"

enum { PATIENCE_MS = 10000 };

struct fixture {
  char dir[64], requests[96], events[96];
  const char *request_list[1], *event_list[1];
  struct bus_uid uid;
  struct bus_config config;
  struct bus *bus;
  void *ctx; /* the clients' */
  VEC (struct bus_ticket) held;
  struct bus_request last;
  char last_principal[64];
  unsigned handled, handled_by[2]; /* by the first byte of the id: a, b */
};

static void
fixture_handle (void *ctx, const struct bus_request *r)
{
  struct fixture *x = ctx;
  struct bus_ticket t;

  bus_ticket (r, &t);
  x->last = *r;
  snprintf (x->last_principal, sizeof x->last_principal, "%s", r->principal);
  x->handled++;
  if (*r->id == 'a' || *r->id == 'b')
    x->handled_by[*r->id - 'a']++;
  if (strcmp (r->verb, "echo") == 0)
    bus_send (x->bus, &t, BUS_FINAL, r->body, r->len);
  else if (strcmp (r->verb, "mute") == 0)
    bus_forget (x->bus, &t);
  else
    *vec_push (&x->held) = t;
  if (strcmp (r->verb, "rent") == 0)
    bus_send (x->bus, &t, BUS_ACCEPTED, "{\"operation\":\"o1\"}", 18);
}

__attribute__ ((__unused__)) static int
fixture_start (struct fixture *x, struct err *e)
{
  x->bus = bus_new (&x->config, fixture_handle, x, e);
  return x->bus ? 0 : -1;
}

static void
fixture_init (struct fixture *x)
{
  memset (x, 0, sizeof *x);
  strcpy (x->dir, "/tmp/gpub-bus-XXXXXX");
  if (!mkdtemp (x->dir))
    abort ();
  snprintf (x->requests, sizeof x->requests, "ipc://%s/bus", x->dir);
  snprintf (x->events, sizeof x->events, "ipc://%s/events", x->dir);
  x->request_list[0] = x->requests;
  x->event_list[0] = x->events;
  x->uid = (struct bus_uid){ .uid = getuid (), .rights = BUS_RENT };
  x->config = (struct bus_config){ .requests = x->request_list,
                                   .nrequests = 1,
                                   .events = x->event_list,
                                   .nevents = 1,
                                   .uids = &x->uid,
                                   .nuids = 1,
                                   .rate = 1e9,
                                   .burst = 1e9 };
  x->ctx = zmq_ctx_new ();
}

__attribute__ ((__unused__)) static void
fixture_up (struct fixture *x)
{
  struct err e = ERR_INIT;

  if (fixture_start (x, &e) < 0) {
    printf ("Bail out! %s\n", e.text);
    exit (1);
  }
}

static void
fixture_remove (const struct fixture *x, const char *name)
{
  char path[128];

  snprintf (path, sizeof path, "%s/%s", x->dir, name);
  unlink (path);
}

static void
fixture_done (struct fixture *x)
{
  bus_free (x->bus);
  zmq_ctx_shutdown (x->ctx);
  zmq_ctx_term (x->ctx);
  vec_free (&x->held);
  fixture_remove (x, "bus.lock");
  fixture_remove (x, "events.lock");
  rmdir (x->dir);
}

/* One wake of the daemon's loop, if something happens within ms. */
static void
fixture_turn (struct fixture *x, int ms)
{
  struct pollfd p[8];
  int fds[8];
  size_t n = bus_fds (x->bus, fds, 8);

  for (size_t i = 0; i < n; i++)
    p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
  if (poll (p, n, ms) > 0)
    bus_pump (x->bus);
}

__attribute__ ((__unused__)) static void *
client (struct fixture *x, int type, const char *endpoint)
{
  void *s = zmq_socket (x->ctx, type);
  int zero = 0;

  zmq_setsockopt (s, ZMQ_LINGER, &zero, sizeof zero);
  if (zmq_connect (s, endpoint) < 0)
    printf ("# connect %s: %s\n", endpoint, zmq_strerror (errno));
  return s;
}

/* Sends frames, the list ends with NULL. */
__attribute__ ((__unused__, __sentinel__)) static int
put (void *s, const char *frame, ...)
{
  struct bytes at[16];
  size_t n = 0;
  va_list ap;

  va_start (ap, frame);
  for (; frame && n < N_ELEMENTS (at); frame = va_arg (ap, const char *))
    at[n++] = (struct bytes){ frame, strlen (frame) };
  va_end (ap);
  return frames_send (s, at, n);
}

/* Turns the bus until a message is there: its frames as "kind id json" in text; 0 when none came.
 */
static int
get_within (struct fixture *x, void *s, char *text, size_t size, int64_t ms)
{
  int64_t end = clock_boot_ms () + ms;
  struct frames f;
  size_t used = 0;

  *text = 0;
  while (frames_recv (s, &f) < 0) {
    if (clock_boot_ms () >= end)
      return 0;
    fixture_turn (x, 2);
  }
  for (size_t i = 0; i < f.n && used < size; i++)
    used += (size_t) snprintf (text + used, size - used, "%s%.*s", i ? " " : "", (int) f.at[i].len,
                               f.at[i].at);
  frames_done (&f);
  return 1;
}

__attribute__ ((__unused__)) static const char *
get (struct fixture *x, void *s)
{
  static char text[70000];

  return get_within (x, s, text, sizeof text, PATIENCE_MS) ? text : "(nothing)";
}

/* Nothing more comes: a request sent now is answered first, and replies are in order. */
__attribute__ ((__unused__)) static int
is_quiet (struct fixture *x, void *s)
{
  put (s, "GPUB/1", "echo", "quiet", "{}", NULL);
  return strcmp (get (x, s), "GPUB/1 final quiet {}") == 0;
}

/* Reads on while the messages begin like this; what came next. */
__attribute__ ((__unused__)) static const char *
get_past (struct fixture *x, void *s, const char *begin)
{
  const char *text = get (x, s);

  while (strncmp (text, begin, strlen (begin)) == 0)
    text = get (x, s);
  return text;
}

/* Turns until the condition holds. */
#define UNTIL(x, condition)                                                                        \
 for (int64_t end_ = clock_boot_ms () + PATIENCE_MS; !(condition) && clock_boot_ms () < end_;)     \
 fixture_turn (x, 2)

#endif
