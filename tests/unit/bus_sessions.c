/* bus_sessions.c - many clients, slow clients, dead clients: nobody costs the others anything */
#include "tests/unit/bus_fixture.h"

#include <poll.h>
#include <sys/resource.h>

static struct bus_counters
counters (const struct fixture *x)
{
  struct bus_counters c;

  bus_counters (x->bus, &c);
  return c;
}

static int
is_busy (const char *reply)
{
  if (strstr (reply, "\"code\":\"busy\"") && strstr (reply, "\"retryable\":true") &&
      !strstr (reply, "\"retry_after_ms\":0}"))
    return 1;
  printf ("# got: %.200s\n", reply);
  return 0;
}

static void
hold (void *s, const char *prefix, int i)
{
  char id[32];

  snprintf (id, sizeof id, "%s%d", prefix, i);
  put (s, "GPUB/1", "hold", id, "{}", NULL);
}

static void
finish_held (struct fixture *x)
{
  for (size_t i = 0; i < x->held.n; i++)
    bus_send (x->bus, &x->held.at[i], BUS_FINAL, "{}", 2);
  x->held.n = 0;
}

static void
test_caps (void)
{
  struct fixture x;
  void *s, *other;

  fixture_init (&x);
  x.config.inflight_per_peer = 3;
  x.config.inflight_total = 10;
  fixture_up (&x);
  s = client (&x, ZMQ_DEALER, x.requests);
  other = client (&x, ZMQ_DEALER, x.requests);
  for (int i = 0; i < 4; i++)
    hold (s, "s", i);
  ok (is_busy (get (&x, s)), "the fourth of three on one connection is busy");
  for (int i = 0; i < 3; i++)
    hold (other, "o", i);
  ok (is_busy (get (&x, other)), "the sixth of five of one principal is busy on any connection");
  is_num (counters (&x).busy, 2, "and counted");
  finish_held (&x);
  UNTIL (&x, strstr (get (&x, other), "o1"));
  hold (other, "o", 4);
  UNTIL (&x, x.held.n == 1);
  is_num (x.held.n, 1, "places come free with the last reply");
  zmq_close (s);
  zmq_close (other);
  fixture_done (&x);
}

static void
test_rate (void)
{
  struct fixture x;
  void *s;

  fixture_init (&x);
  x.config.rate = 0.001;
  x.config.burst = 2;
  fixture_up (&x);
  s = client (&x, ZMQ_DEALER, x.requests);
  put (s, "GPUB/1", "echo", "1", "{}", NULL);
  put (s, "GPUB/1", "echo", "2", "{}", NULL);
  put (s, "GPUB/1", "echo", "3", "{}", NULL);
  is_str (get (&x, s), "GPUB/1 final 1 {}", "the burst passes");
  is_str (get (&x, s), "GPUB/1 final 2 {}", "all of it");
  ok (is_busy (get (&x, s)), "beyond it: busy, with a time to come back");
  zmq_close (s);
  fixture_done (&x);
}

static void
test_gone (void)
{
  struct fixture x;
  void *s;

  fixture_init (&x);
  fixture_up (&x);
  s = client (&x, ZMQ_DEALER, x.requests);
  put (s, "GPUB/1", "rent", "1", "{}", NULL);
  is_str (get (&x, s), "GPUB/1 accepted 1 {\"operation\":\"o1\"}",
          "a client is accepted, and dies");
  zmq_close (s);
  UNTIL (&x, counters (&x).gone == 1);
  is_num (counters (&x).gone, 1, "its end is noticed though nothing is sent");
  is_num (bus_send (x.bus, &x.held.at[0], BUS_FINAL, "{}", 2), -1, "the final has no taker");
  s = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, s), "the next client gets only what is its own");
  zmq_close (s);
  fixture_done (&x);
}

static long
resident_kib (void)
{
  struct rusage u;

  getrusage (RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

/* Its own queue is kept short, or this process would hold what the broker sheds. */
static void *
slow_client (const struct fixture *x)
{
  void *s = zmq_socket (x->ctx, ZMQ_DEALER);
  int few = 8;

  zmq_setsockopt (s, ZMQ_RCVHWM, &few, sizeof few);
  zmq_connect (s, x->requests);
  return s;
}

/* That many requests are held, and a final of that size is sent for each: how many were refused. */
static int
flood (struct fixture *x, void *s, int requests, size_t size)
{
  AUTO_FREE char *page = malloc (size);
  int refused = 0;

  memset (page, ' ', size);
  memcpy (page, "{}", 2);
  for (int i = 0; i < requests; i++)
    hold (s, "n", i);
  UNTIL (x, x->held.n == (size_t) requests);
  for (size_t i = 0; i < x->held.n; i++)
    refused += bus_send (x->bus, &x->held.at[i], BUS_FINAL, page, size) < 0;
  return refused;
}

static void
test_slow (void)
{
  static char step[4096];
  struct fixture x;
  long before;
  void *s;

  fixture_init (&x);
  fixture_up (&x);
  s = slow_client (&x);
  hold (s, "slow", 0);
  UNTIL (&x, x.held.n == 1);
  memset (step, ' ', sizeof step);
  memcpy (step, "{}", 2);
  before = resident_kib ();
  for (int i = 0; i < 100000 && x.held.n; i++)
    bus_send (x.bus, &x.held.at[0], BUS_PROGRESS, step, sizeof step);
  ok (counters (&x).dropped_progress > 90000, "of 100000 steps most are dropped: %" PRIu64,
      counters (&x).dropped_progress);
  ok (resident_kib () - before < 16 * 1024, "390 MiB of progress cost %ld KiB",
      resident_kib () - before);
  is_num (bus_send (x.bus, &x.held.at[0], BUS_FINAL, "{\"end\":1}", 9), 0, "the final is kept");
  UNTIL (&x, strstr (get (&x, s), "final slow0 {\"end\":1}"));
  ok (is_quiet (&x, s), "and arrives after what was sent before");
  zmq_close (s);
  fixture_done (&x);
}

/* Finals may not be dropped one by one, so a client that never reads them loses its session as a
 * whole. */
static void
test_never_reads (void)
{
  struct fixture x;
  int gone = 0;
  void *s, *other;

  fixture_init (&x);
  x.config.inflight_per_peer = 600;
  fixture_up (&x);
  s = slow_client (&x);
  gone = flood (&x, s, 400, 60000);
  ok (gone > 0 && counters (&x).gone == 1, "24 MB of unread finals end the session: %d refused",
      gone);
  other = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, other), "others are served");
  zmq_close (s);
  zmq_close (other);
  fixture_done (&x);
}

/* A refusal waits behind the finals that a slow client has no room for yet. */
static void
test_slow_and_refused (void)
{
  const char *got = "";
  struct fixture x;
  void *s;

  fixture_init (&x);
  x.config.inflight_per_peer = 200;
  fixture_up (&x);
  s = slow_client (&x);
  is_num (flood (&x, s, 180, 20000), 0, "180 finals are taken");
  put (s, "GPUB/1", "hold", "odd", "[", NULL);
  UNTIL (&x, counters (&x).bad_frames == 1);
  is_num (counters (&x).gone, 0, "and wait");
  UNTIL (&x, strstr (got = get (&x, s), "error odd"));
  ok (strstr (got, "error odd") != NULL, "and a refusal behind them comes, too");
  ok (is_quiet (&x, s), "as the last");
  zmq_close (s);
  fixture_done (&x);
}

/* To send reads what came in between, and with it the signal that something came. */
static void
test_beat (void)
{
  struct fixture x;
  struct pollfd fds[8] = { 0 };
  int fd[8];
  size_t n;
  void *s, *other;

  fixture_init (&x);
  x.config.inflight_per_peer = 200;
  fixture_up (&x);
  s = slow_client (&x);
  other = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, other), "a client beside a slow one");
  is_num (flood (&x, s, 180, 20000), 0, "which does not take what is for it");
  while (bus_pump (x.bus))
    ;
  n = bus_fds (x.bus, fd, N_ELEMENTS (fd));
  for (size_t i = 0; i < n; i++)
    fds[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
  put (other, "GPUB/1", "echo", "beat", "{}", NULL);
  ok (poll (fds, n, PATIENCE_MS) > 0, "a request is there");
  bus_beat (x.bus, 1, 1);
  is_str (get (&x, other), "GPUB/1 final beat {}", "and is seen though a beat was sent meanwhile");
  zmq_close (s);
  zmq_close (other);
  fixture_done (&x);
}

/* One pump handles its budget; a client with a full queue gets no more of it than another. */
static void
test_fairness (void)
{
  struct fixture x;
  void *a, *b;
  int more = 1;

  fixture_init (&x);
  x.config.turn_budget = 10;
  fixture_up (&x);
  a = client (&x, ZMQ_DEALER, x.requests);
  b = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, a) && is_quiet (&x, b), "two clients are connected");
  for (int i = 0; i < 2000; i++)
    put (a, "GPUB/1", "mute", "a", "{}", NULL);
  for (int i = 0; i < 8; i++)
    put (b, "GPUB/1", "mute", "b", "{}", NULL);
  x.handled = 0;
  fixture_turn (&x, PATIENCE_MS);
  ok (x.handled <= 10, "a turn handles at most its budget: %u", x.handled);
  while (more && x.handled_by[1] < 8) {
    fixture_turn (&x, PATIENCE_MS);
    more = x.handled < 2000;
  }
  ok (x.handled_by[1] == 8 && x.handled_by[0] < 400,
      "8 requests of one client pass 2000 of another after %u of them", x.handled_by[0]);
  zmq_close (a);
  zmq_close (b);
  fixture_done (&x);
}

static void
test_thousand (void)
{
  enum { MANY = 1000, FDS_EACH = 2 };
  static void *s[MANY];
  struct rlimit l;
  struct fixture x;
  int good = 0;

  getrlimit (RLIMIT_NOFILE, &l);
  if (l.rlim_cur < MANY * (FDS_EACH + 2)) {
    l.rlim_cur = l.rlim_max < 8192 ? l.rlim_max : 8192;
    setrlimit (RLIMIT_NOFILE, &l);
  }
  if (l.rlim_cur < MANY * (FDS_EACH + 2)) {
    ok (1, "1000 connections # SKIP the limit of open files is %ld", (long) l.rlim_cur);
    return;
  }
  fixture_init (&x);
  zmq_ctx_set (x.ctx, ZMQ_MAX_SOCKETS, MANY + 10);
  fixture_up (&x);
  for (int i = 0; i < MANY; i++) {
    s[i] = client (&x, ZMQ_DEALER, x.requests);
    put (s[i], "GPUB/1", "echo", "1", "{}", NULL);
    fixture_turn (&x, 0);
  }
  for (int i = 0; i < MANY; i++) {
    good += strcmp (get (&x, s[i]), "GPUB/1 final 1 {}") == 0;
    zmq_close (s[i]);
  }
  is_num (good, MANY, "1000 connections are answered");
  fixture_done (&x);
}

int
main (void)
{
  test_caps ();
  test_rate ();
  test_gone ();
  test_slow ();
  test_slow_and_refused ();
  test_beat ();
  test_never_reads ();
  test_fairness ();
  test_thousand ();
  return done ();
}
