/* bus_events.c - events go to those who asked for the topic; the beat shows what was missed */
#include "tests/unit/bus_fixture.h"

static void *
subscriber (struct fixture *x, const char *topic)
{
  void *s = client (x, ZMQ_SUB, x->events);

  zmq_setsockopt (s, ZMQ_SUBSCRIBE, topic, strlen (topic));
  return s;
}

/* A subscription takes effect when the broker has read it: beat until one arrives. */
static int
joined (struct fixture *x, void *s, const char *topic)
{
  char text[128];

  for (int i = 0; i < 200; i++) {
    bus_publish (x->bus, topic, 1, 0, "{}", 2);
    if (get_within (x, s, text, sizeof text, 20))
      return 1;
  }
  return 0;
}

static void
test_topics (struct fixture *x)
{
  void *all = subscriber (x, ""), *lease = subscriber (x, "lease.7.");

  ok (joined (x, all, "beat") && joined (x, lease, "lease.7.x"), "two subscribers");
  is_str (get_past (x, all, "beat"), "lease.7.x {\"epoch\":1,\"seq\":0} {}",
          "one asks for everything");
  bus_publish (x->bus, "provider.p.down", 3, 41, "{\"a\":1}", 7);
  bus_publish (x->bus, "lease.7.ready", 3, 42, "{\"b\":2}", 7);
  is_str (get (x, all), "provider.p.down {\"epoch\":3,\"seq\":41} {\"a\":1}",
          "\"\" gets everything");
  is_str (get (x, all), "lease.7.ready {\"epoch\":3,\"seq\":42} {\"b\":2}", "in order");
  is_str (get (x, lease), "lease.7.ready {\"epoch\":3,\"seq\":42} {\"b\":2}",
          "a topic gets its own");
  bus_beat (x->bus, 3, UINT64_MAX);
  is_str (get (x, all), "beat {\"epoch\":3,\"seq\":18446744073709551615} {}",
          "the beat has the last number");
  zmq_close (all);
  zmq_close (lease);
}

/* PUB drops for a slow reader and nobody is told: only the beat's number is left to tell. */
static void
test_tail_loss (struct fixture *x)
{
  static char body[8192];
  void *slow = zmq_socket (x->ctx, ZMQ_SUB);
  uint64_t got = 0;
  int few = 4;

  zmq_setsockopt (slow, ZMQ_RCVHWM, &few, sizeof few);
  zmq_setsockopt (slow, ZMQ_SUBSCRIBE, "", 0);
  zmq_connect (slow, x->events);
  ok (joined (x, slow, "beat"), "a slow subscriber");
  memset (body, ' ', sizeof body);
  memcpy (body, "{}", 2);
  for (uint64_t seq = 1; seq <= 20000; seq++)
    bus_publish (x->bus, "lease.1.step", 1, seq, body, sizeof body);
  ok (strncmp (get_past (x, slow, "beat"), "lease.1.step", 12) == 0, "it gets something");
  for (char text[16]; get_within (x, slow, text, sizeof text, 50);)
    got++;
  ok (got < 19999, "of 20000 events it got %" PRIu64, got + 1);
  bus_beat (x->bus, 1, 20000);
  is_str (get (x, slow), "beat {\"epoch\":1,\"seq\":20000} {}",
          "the beat tells how far behind it is");
  zmq_close (slow);
}

int
main (void)
{
  struct fixture x;

  fixture_init (&x);
  fixture_up (&x);
  bus_publish (x.bus, "broker.started", 1, 1, "{}", 2);
  ok (1, "events without subscribers go nowhere");
  test_topics (&x);
  test_tail_loss (&x);
  fixture_done (&x);
  return done ();
}
