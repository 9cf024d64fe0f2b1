/* bus.c - what the bus costs: a read verb against bare ZeroMQ, over ipc with a body of 512 bytes
 *
 * Both sides do the same with the body: nothing, parse it, or parse it and write it again; beside
 * that one is a ROUTER that sends four frames back, the other libbus.  The line "parsed, bare"
 * holds a handler that parses against an echo that does not: most of its distance is Jansson's.
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

enum { BODY = 512, RUN_MS = 200, ROUNDS = 20 };

static char dir[] = "/tmp/gpub-bench-XXXXXX", endpoint[64], events[64], body[BODY + 1];
static atomic_int stop, up;
static struct bus *bus;

enum work { NOTHING, PARSE, DUMP };
static enum work ours, theirs;

static char *
work_on (enum work work, const char *text, size_t len)
{
  AUTO_JSON json_t *j = work >= PARSE ? json_parse (text, len, NULL) : NULL;

  return work == DUMP ? json_dumps (j, JSON_COMPACT) : NULL;
}

static void
echo_one (void *s, struct frames *f)
{
  AUTO_FREE char *json = work_on (theirs, f->at[4].at, f->at[4].len);

  if (json)
    f->at[4] = (struct bytes){ json, strlen (json) };
  frames_send (s, f->at, f->n);
}

static void *
echo (void *unused)
{
  void *ctx = zmq_ctx_new (), *s = zmq_socket (ctx, ZMQ_ROUTER);
  zmq_pollitem_t p = { .socket = s, .events = ZMQ_POLLIN };
  struct frames f;
  int zero = 0;

  zmq_setsockopt (s, ZMQ_LINGER, &zero, sizeof zero);
  zmq_bind (s, endpoint);
  up = 1;
  while (!stop) {
    zmq_poll (&p, 1, 20);
    while (frames_recv (s, &f) == 0) {
      echo_one (s, &f);
      frames_done (&f);
    }
  }
  zmq_close (s);
  zmq_ctx_term (
      ctx); /* closing goes on behind the scenes: the next client must not meet this socket */
  return unused;
}

static void
handle (void *unused, const struct bus_request *r)
{
  AUTO_FREE char *json = work_on (ours, r->body, r->len);
  struct bus_ticket t;

  (void) unused;
  bus_ticket (r, &t);
  bus_send (bus, &t, BUS_FINAL, json ? json : body, json ? strlen (json) : BODY);
}

static void
turn_until_stop (void)
{
  struct pollfd p[8];
  int fds[8];
  size_t n = bus_fds (bus, fds, 8);

  for (size_t i = 0; i < n; i++)
    p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
  while (!stop) {
    poll (p, n, 20);
    while (bus_pump (bus))
      ;
  }
}

static void *
serve (void *unused)
{
  struct bus_uid me = { .uid = getuid (), .rights = BUS_READ };
  const char *requests[] = { endpoint }, *publish[] = { events };
  struct bus_config c = { requests, 1, publish, 1, &me, 1, .rate = 1e9, .burst = 1e9 };
  struct err e = ERR_INIT;

  bus = bus_new (&c, handle, NULL, &e);
  if (!bus) {
    fprintf (stderr, "%s\n", e.text);
    exit (1);
  }
  up = 1;
  turn_until_stop ();
  bus_free (bus);
  return unused;
}

static void
ask (void *s, unsigned n)
{
  char id[16];
  struct bytes at[] = { { "GPUB/1", 6 }, { "offers", 6 }, { id, 0 }, { body, BODY } };

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
run (void *(*server) (void *), unsigned in_flight)
{
  void *ctx = zmq_ctx_new (), *s = zmq_socket (ctx, ZMQ_DEALER);
  int zero = 0;
  pthread_t t;
  double rate;

  stop = up = 0;
  pthread_create (&t, NULL, server, NULL);
  while (!up) /* the bus refuses its own process until its self-test is over */
    poll (NULL, 0, 1);
  zmq_setsockopt (s, ZMQ_LINGER, &zero, sizeof zero);
  zmq_connect (s, endpoint);
  rate = measure (s, in_flight);
  zmq_close (s);
  zmq_ctx_term (ctx);
  stop = 1;
  pthread_join (t, NULL);
  return rate;
}

/* The best of some rounds, taken in turn: what else the machine does can only make a round slower.
 */
static void
compare (const char *name, unsigned in_flight, enum work us, enum work them)
{
  double best = 0, bar = 0;

  ours = us;
  theirs = them;
  for (int i = 0; i < ROUNDS; i++) {
    double echoed = run (echo, in_flight), served = run (serve, in_flight);

    bar = echoed > bar ? echoed : bar;
    best = served > best ? served : best;
  }
  printf ("bus  %-24s %2u in flight %7.0f/s; echo %7.0f/s; ratio %.2f\n", name, in_flight, best,
          bar, best / bar);
  fflush (stdout);
}

static void
fill_body (void)
{
  static const char filter[] =
      "{\"filter\":{\"gpu\":[{\"model\":\"H100\",\"min\":1,\"max\":8},"
      "{\"model\":\"A100-80GB\",\"min\":2,\"max\":8}],"
      "\"vcpus\":16,\"ram_gib\":64,\"disk_gib\":200,\"market\":\"on-demand\","
      "\"region\":[\"oslo-norway-1\",\"NORWAY-1\",\"eu-north1\"],"
      "\"exclude\":[\"lab\",\"shadeform/massedcompute\"],\"kind\":\"vm\","
      "\"max_price_udollar\":4000000,\"max_price_per\":\"gpu\"},"
      "\"limit\":100,\"explain\":false";

  memset (body, ' ', BODY);
  memcpy (body, filter, strlen (filter));
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
  compare ("bare", 1, NOTHING, NOTHING);
  compare ("parsed, bare", 1, PARSE, NOTHING);
  compare ("parsed and written", 32, DUMP, DUMP);
  remove_file ("bus.lock");
  remove_file ("events.lock");
  rmdir (dir);
  return 0;
}
