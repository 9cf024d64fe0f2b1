/* bus_client.c - libgpubroker against a bus that another thread turns */
#include "tests/unit/bus_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include <gpubroker/client.h>

static struct fixture x;
static pthread_t server;
static atomic_int stop, handled, swallow; /* swallow: how many requests get no answer */

static void
serve (void *ctx, const struct bus_request *r)
{
  struct bus_ticket t;

  (void) ctx;
  bus_ticket (r, &t);
  handled++;
  if (swallow > 0 && swallow--) {
    bus_forget (x.bus, &t);
    return;
  }
  if (strcmp (r->verb, "rent") == 0) {
    bus_send (x.bus, &t, BUS_ACCEPTED, "{\"operation\":\"o1\"}", 18);
    bus_send (x.bus, &t, BUS_PROGRESS, "{\"step\":\"boot\"}", 15);
  }
  if (strcmp (r->verb, "hold") == 0 || strstr (r->body, "\"hold\""))
    return;
  if (strcmp (r->verb, "fail") == 0)
    bus_send_error (x.bus, &t, "no-offer", "nothing matches", NULL, 0);
  else
    bus_send (x.bus, &t, BUS_FINAL, r->body, r->len);
}

static void *
turn (void *unused)
{
  while (!stop) {
    fixture_turn (&x, 20);
    bus_publish (x.bus, "lease.1.ready", 2, 9, "{\"lease\":\"1\"}", 13);
  }
  return unused;
}

static void
server_up (void)
{
  struct err e = ERR_INIT;

  x.bus = bus_new (&x.config, serve, NULL, &e);
  if (!x.bus) {
    printf ("Bail out! %s\n", e.text);
    exit (1);
  }
  stop = 0;
  pthread_create (&server, NULL, turn, NULL);
}

static void
server_down (void)
{
  stop = 1;
  pthread_join (server, NULL);
  bus_free (x.bus);
  x.bus = NULL;
}

static char seen[256];

static int
note (void *ctx, int kind, const struct gpubc_reply *r)
{
  snprintf (seen + strlen (seen), sizeof seen - strlen (seen), "%d%s ", kind, r->json);
  return ctx ? *(int *) ctx : 0;
}

static void
test_calls (struct gpubc *c)
{
  struct gpubc_reply r;
  int end_it = 1;

  is_num (gpubc_call (c, "ping", "{\"a\":1}", 5000, NULL, NULL, &r), GPUBC_FINAL, "a read");
  is_str (r.json, "{\"a\":1}", "its final");
  is_num ((int64_t) r.len, 7, "and length");
  is_num (gpubc_call (c, "fail", "{}", 5000, NULL, NULL, &r), GPUBC_ERROR, "an error");
  ok (strstr (r.json, "no-offer") != NULL, "its code");
  is_num (gpubc_call (c, "rent", "{\"key\":\"k\"}", 5000, note, NULL, &r), GPUBC_FINAL,
          "a mutation");
  is_str (seen, "1{\"operation\":\"o1\"} 2{\"step\":\"boot\"} ", "what came before its final");
  is_num (gpubc_call (c, "rent", "{\"key\":\"k\"}", 5000, note, &end_it, &r), GPUBC_INTERRUPTED,
          "the callback ends a wait");
  is_num (gpubc_call (c, "hold", "{}", 50, NULL, NULL, &r), GPUBC_TIMEOUT, "a call has a deadline");
  is_num (gpubc_call (c, "", "{}", 50, NULL, NULL, &r), GPUBC_INVALID, "a verb is needed");
}

static void
test_pipelined (struct gpubc *c)
{
  char first[65], second[65];
  struct gpubc_reply r;

  gpubc_send (c, "ping", "{\"n\":1}", first);
  gpubc_send (c, "ping", "{\"n\":2}", second);
  is_num (gpubc_recv (c, second, 5000, &r), GPUBC_FINAL, "the second reply first");
  is_str (r.json, "{\"n\":2}", "is the right one");
  is_num (gpubc_recv (c, first, 5000, &r), GPUBC_FINAL, "then the first");
  is_str (r.json, "{\"n\":1}", "was kept");
  is_str (r.id, first, "under its id");
}

static void
test_unreachable (void)
{
  int64_t before = clock_boot_ms ();
  struct gpubc *c = gpubc_new ("ipc:///tmp/gpub-nobody-is-here");
  struct gpubc_reply r;

  is_num (gpubc_call (c, "ping", "{}", 60000, NULL, NULL, &r), GPUBC_UNREACHABLE, "no broker");
  ok (strstr (gpubc_why (c), "not running") != NULL, "why: %s", gpubc_why (c));
  is_str (r.json, "{}", "the reply is an empty object");
  ok (clock_boot_ms () - before < 5000, "said long before the call's time is over");
  gpubc_free (c);
  c = gpubc_new ("nonsense");
  is_num (gpubc_call (c, "ping", "{}", 60000, NULL, NULL, &r), GPUBC_INVALID,
          "an endpoint that is none");
  gpubc_free (c);
}

static void
test_denied (void)
{
  struct gpubc *c = gpubc_new (x.requests);
  struct gpubc_reply r;

  is_num (gpubc_call (c, "ping", "{}", 5000, NULL, NULL, &r), GPUBC_ERROR,
          "a uid that is not listed");
  ok (strstr (r.json, "\"denied\"") != NULL, "is told so: %s", r.json);
  gpubc_free (c);
}

static struct gpubc *interrupted;

static void
on_alarm (int sig)
{
  if (sig == SIGALRM)
    gpubc_interrupt (interrupted);
}

static void
alarm_in (long us)
{
  struct itimerval t = { .it_value.tv_usec = us };

  setitimer (ITIMER_REAL, &t, NULL);
}

static void
test_interrupt (struct gpubc *c)
{
  struct gpubc_reply r;

  interrupted = c;
  signal (SIGALRM, on_alarm);
  alarm_in (50000);
  is_num (gpubc_call (c, "hold", "{}", -1, NULL, NULL, &r), GPUBC_INTERRUPTED,
          "a handler ends a wait without limit");
  is_num (gpubc_call (c, "ping", "{}", 5000, NULL, NULL, &r), GPUBC_FINAL, "the client goes on");
}

static void *
restart (void *unused)
{
  while (handled == 0)
    poll (NULL, 0, 5);
  server_down ();
  server_up ();
  return unused;
}

/* Broker and client are one process here, and a starting broker refuses its own pid while it tests
 * itself: a client that connects in that moment is denied, which no client elsewhere can be.  Then
 * the restart is made again. */
static int
call_over_restart (struct gpubc *c, const char *verb, const char *body, struct gpubc_reply *r)
{
  int rc = GPUBC_ERROR;

  for (int i = 0; i < 10 && rc == GPUBC_ERROR; i++) {
    pthread_t t;

    handled = 0;
    swallow = 1;
    pthread_create (&t, NULL, restart, NULL);
    rc = gpubc_call (c, verb, body, 20000, NULL, NULL, r);
    pthread_join (t, NULL);
    if (rc == GPUBC_ERROR && !strstr (r->json, "\"denied\""))
      break;
  }
  return rc;
}

static void
test_restart (struct gpubc *c)
{
  struct gpubc_reply r;
  pthread_t t;

  is_num (call_over_restart (c, "rent", "{\"key\":\"k2\"}", &r), GPUBC_FINAL,
          "a mutation with a key survives a restart of the broker");
  is_num (handled, 2, "it was asked again, once");

  handled = 0;
  pthread_create (&t, NULL, restart, NULL);
  is_num (gpubc_call (c, "hold", "{}", 20000, NULL, NULL, &r), GPUBC_UNREACHABLE,
          "one without does not");
  pthread_join (t, NULL);
  ok (strstr (gpubc_why (c), "went away") != NULL, "why: %s", gpubc_why (c));
  is_num (gpubc_call (c, "ping", "{}", 5000, NULL, NULL, &r), GPUBC_FINAL,
          "the next call connects again");

  handled = 0;
  swallow = 1;
  is_num (gpubc_call (c, "ping", "{}", 20000, NULL, NULL, &r), GPUBC_FINAL,
          "a read without an answer is sent again");
  is_num (handled, 2, "once");
}

static void
test_events (struct gpubc *c)
{
  uint64_t epoch = 0, seq = 0;
  const char *topic = "";
  struct gpubc_reply r;

  is_num (gpubc_event (c, 10, &topic, &epoch, &seq, &r), GPUBC_INVALID,
          "an event needs a subscription");
  is_num (gpubc_subscribe (c, x.events, "lease."), GPUBC_ACCEPTED, "subscribe");
  is_num (gpubc_event (c, 5000, &topic, &epoch, &seq, &r), GPUBC_PROGRESS, "an event");
  is_str (topic, "lease.1.ready", "its topic");
  is_str (r.json, "{\"lease\":\"1\"}", "its body");
  ok (epoch == 2 && seq == 9, "its numbers");
  alarm_in (50000);
  do
    epoch = (uint64_t) gpubc_event (c, -1, &topic, &epoch, &seq, &r);
  while (epoch == GPUBC_PROGRESS);
  is_num ((int64_t) epoch, GPUBC_INTERRUPTED, "a handler ends the wait for events");
}

static void
test_key (void)
{
  char a[37], b[37];

  gpubc_key (a);
  gpubc_key (b);
  ok (strlen (a) == 36 && a[14] == '4' && a[8] == '-' && strcmp (a, b) != 0,
      "keys are random uuids: %s", a);
}

int
main (void)
{
  struct gpubc *c;

  fixture_init (&x);
  server_up ();
  c = gpubc_new (x.requests);
  test_key ();
  test_calls (c);
  test_pipelined (c);
  test_unreachable ();
  test_interrupt (c);
  test_events (c);
  test_restart (c);
  gpubc_free (c);
  server_down ();
  x.uid.uid++;
  server_up ();
  test_denied ();
  server_down ();
  fixture_done (&x);
  return done ();
}
