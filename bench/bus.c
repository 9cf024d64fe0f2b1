/* bus.c - what the bus costs: a read verb against bare ZeroMQ, over ipc with a body of 512 bytes
 *
 *   bare    a ROUTER that sends four frames back
 *   parsed  the same, with the body parsed and written again by Jansson
 *   bus     libbus, its handler doing what `parsed` does
 *
 * Servers are threads, the client is the main one; ratios of one run are what counts, not the
 * numbers.
 */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "bus/bus.h"
#include "bus/frame.h"
#include "core/clock.h"
#include "core/json.h"

enum { BODY = 512, RUN_MS = 500, ROUNDS = 8 };

static char dir[] = "/tmp/gpub-bench-XXXXXX", endpoint[64], events[64], body[BODY + 1];
static atomic_int stop, up;

static char *
parse_and_dump (const char *text, size_t len)
{
  AUTO_JSON json_t *j = json_parse (text, len, NULL);

  return json_dumps (j, JSON_COMPACT);
}

/* bare and parsed */
static void *
echo (void *parse)
{
  void *ctx = zmq_ctx_new (), *s = zmq_socket (ctx, ZMQ_ROUTER);
  zmq_pollitem_t p = { .socket = s, .events = ZMQ_POLLIN };
  struct frames f;

  zmq_bind (s, endpoint);
  up = 1;
  while (!stop) {
    zmq_poll (&p, 1, 20);
    while (frames_recv (s, &f) == 0) {
      AUTO_FREE char *json = parse ? parse_and_dump (f.at[4].at, f.at[4].len) : NULL;

      if (json)
        f.at[4] = (struct bytes){ json, strlen (json) };
      frames_send (s, f.at, f.n);
      frames_done (&f);
    }
  }
  zmq_close (s);
  zmq_ctx_term (
      ctx); /* closing is done behind the scenes: the next client must not meet this socket */
  return NULL;
}

static struct bus *bus;

static void
handle (void *unused, const struct bus_request *r)
{
  AUTO_FREE char *json = parse_and_dump (r->body, r->len);
  struct bus_ticket t;

  (void) unused;
  bus_ticket (r, &t);
  bus_send (bus, &t, BUS_FINAL, json, strlen (json));
}

static void *
serve (void *unused)
{
  struct bus_uid me = { .uid = getuid (), .rights = BUS_READ };
  const char *requests[] = { endpoint }, *publish[] = { events };
  struct bus_config c = { requests, 1, publish, 1, &me, 1, .rate = 1e9, .burst = 1e9 };
  struct pollfd p[8];
  struct err e = ERR_INIT;
  int fds[8];
  size_t n;

  bus = bus_new (&c, handle, NULL, &e);
  if (!bus) {
    fprintf (stderr, "%s\n", e.text);
    exit (1);
  }
  up = 1;
  n = bus_fds (bus, fds, 8);
  for (size_t i = 0; i < n; i++)
    p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
  while (!stop) {
    poll (p, n, 20);
    while (bus_pump (bus))
      ;
  }
  bus_free (bus);
  return unused;
}

static void
ask (void *s, unsigned n)
{
  char id[16];
  struct bytes at[] = { { "GPUB/1", 6 }, { "ping", 4 }, { id, 0 }, { body, BODY } };

  at[2].len = (size_t) snprintf (id, sizeof id, "%u", n);
  frames_send (s, at, 4);
}

static void
await (void *s)
{
  zmq_pollitem_t p = { .socket = s, .events = ZMQ_POLLIN };
  struct frames f;

  while (frames_recv (s, &f) < 0)
    if (zmq_poll (&p, 1, 5000) == 0) {
      fprintf (stderr, "a reply was lost\n");
      exit (1);
    }
  frames_done (&f);
}

/* Requests answered in a second. */
static double
measure (void *s, unsigned in_flight)
{
  int64_t start, end;
  unsigned sent = 0, done = 0;

  while (sent < in_flight)
    ask (s, sent++);
  await (s); /* connected by now */
  ask (s, sent++);
  start = clock_boot_ms ();
  for (end = start; end - start < RUN_MS; end = clock_boot_ms ())
    for (int i = 0; i < 64; i++, done++) {
      await (s);
      ask (s, sent++);
    }
  return done * 1000.0 / (double) (end - start);
}

static double
run (void *(*server) (void *), void *arg, unsigned in_flight)
{
  void *client_ctx = zmq_ctx_new (), *s = zmq_socket (client_ctx, ZMQ_DEALER);
  int zero = 0;
  pthread_t t;
  double rate;

  stop = up = 0;
  pthread_create (&t, NULL, server, arg);
  while (!up) /* the bus refuses its own process until its self-test is over */
    poll (NULL, 0, 1);
  zmq_setsockopt (s, ZMQ_LINGER, &zero, sizeof zero);
  zmq_connect (s, endpoint);
  rate = measure (s, in_flight);
  zmq_close (s);
  zmq_ctx_term (client_ctx);
  stop = 1;
  pthread_join (t, NULL);
  return rate;
}

/* The best of some rounds, taken in turn: what else the machine does can only make a round slower.
 */
static void
compare (const char *name, unsigned in_flight, const char *against, void *arg)
{
  double ours = 0, theirs = 0;

  for (int i = 0; i < ROUNDS; i++) {
    double them = run (echo, arg, in_flight), us = run (serve, NULL, in_flight);

    theirs = them > theirs ? them : theirs;
    ours = us > ours ? us : ours;
  }
  printf ("%-12s  bus %7.0f/s   %-6s %7.0f/s   ratio %.2f\n", name, ours, against, theirs,
          ours / theirs);
}

static void
fill_body (void)
{
  size_t n = 0;

  for (int i = 0; n < BODY - 40; i++)
    n += (size_t) sprintf (body + n, "%s\"m%d\":%d", n ? "," : "{", i, i * 1000);
  memset (body + n, ' ', BODY - n);
  body[BODY - 1] = '}';
}

static void
remove_file (const char *name)
{
  char path[64];

  snprintf (path, sizeof path, "%s/%s", dir, name);
  unlink (path);
}

int
main (void)
{
  if (!mkdtemp (dir))
    return 1;
  snprintf (endpoint, sizeof endpoint, "ipc://%s/bus", dir);
  snprintf (events, sizeof events, "ipc://%s/events", dir);
  fill_body ();
  compare ("1 in flight", 1, "bare", NULL);
  compare ("32 in flight", 32, "parsed", &bus);
  compare ("32 in flight", 32, "bare", NULL);
  remove_file ("bus.lock");
  remove_file ("events.lock");
  rmdir (dir);
  return 0;
}
