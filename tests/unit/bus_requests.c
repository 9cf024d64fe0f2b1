/* bus_requests.c - what goes in by a request comes out as the protocol says */
#include "tests/unit/bus_fixture.h"

static void
test_dealer (struct fixture *x)
{
  void *s = client (x, ZMQ_DEALER, x->requests);
  char uid[32];

  put (s, "GPUB/1", "echo", "id 1", "{\"a\":1}", NULL);
  is_str (get (x, s), "GPUB/1 final id 1 {\"a\":1}", "DEALER: a read gets its final");
  snprintf (uid, sizeof uid, "uid:%u", (unsigned) getuid ());
  is_str (x->last_principal, uid, "the principal is the uid");
  is_num (x->last.rights, BUS_RENT, "with the rights of the configuration");

  put (s, "GPUB/1", "rent", "2", "{\"key\":\"k\"}", NULL);
  is_str (get (x, s), "GPUB/1 accepted 2 {\"operation\":\"o1\"}", "a mutation is accepted");
  is_num (bus_send (x->bus, &x->held.at[0], BUS_PROGRESS, "{\"step\":1}", 10), 0,
          "progress goes out");
  is_num (bus_send (x->bus, &x->held.at[0], BUS_FINAL, "{}", 2), 0, "final goes out");
  is_str (get (x, s), "GPUB/1 progress 2 {\"step\":1}", "progress comes");
  is_str (get (x, s), "GPUB/1 final 2 {}", "final comes");
  is_num (bus_send (x->bus, &x->held.at[0], BUS_FINAL, "{}", 2), -1,
          "the ticket has ended with it");
  x->held.n = 0;
  zmq_close (s);
}

static void
test_single (struct fixture *x)
{
  void *req = client (x, ZMQ_REQ, x->requests), *s = client (x, ZMQ_DEALER, x->requests);

  put (req, "GPUB/1", "echo", "r", "{}", NULL);
  is_str (get (x, req), "GPUB/1 final r {}", "REQ: the delimiter is given back");
  put (req, "GPUB/1", "rent", "r2", "{}", NULL);
  is_str (get (x, req), "GPUB/1 accepted r2 {\"operation\":\"o1\"}",
          "REQ: a mutation gets accepted");
  is_num (bus_send (x->bus, &x->held.at[0], BUS_FINAL, "{}", 2), -1, "and nothing after it");

  put (s, "GPUB/1", "rent", "s", "{\"single\":true}", NULL);
  is_str (get (x, s), "GPUB/1 accepted s {\"operation\":\"o1\"}", "single: accepted");
  bus_send (x->bus, &x->held.at[1], BUS_PROGRESS, "{}", 2);
  bus_send (x->bus, &x->held.at[1], BUS_FINAL, "{}", 2);
  ok (is_quiet (x, s), "single: and only that");

  put (s, "GPUB/1", "hold", "w", "{\"single\":true}", NULL);
  UNTIL (x, x->held.n == 3);
  is_num (bus_send (x->bus, &x->held.at[2], BUS_PROGRESS, "{}", 2), 0,
          "single read: progress is dropped");
  bus_send_error (x->bus, &x->held.at[2], "timeout", "over", "wait again", 0);
  is_str (get (x, s),
          "GPUB/1 error w {\"code\":\"timeout\",\"message\":\"over\",\"hint\":\"wait again\","
          "\"retryable\":true,\"retry_after_ms\":0}",
          "single read: error is its one reply");
  x->held.n = 0;
  zmq_close (req);
  zmq_close (s);
}

static int
is_error (const char *reply, const char *id, const char *code)
{
  char want[128];

  snprintf (want, sizeof want, "GPUB/1 error %s {\"code\":\"%s\"", id, code);
  if (strncmp (reply, want, strlen (want)) == 0)
    return 1;
  printf ("# got: %.200s\n", reply);
  return 0;
}

/* The client's socket reconnects by itself; what it sends meanwhile may be lost. */
static int
answers_again (struct fixture *x, void *s)
{
  char reply[64];

  for (int i = 0; i < 100; i++) {
    put (s, "GPUB/1", "echo", "8", "{}", NULL);
    if (get_within (x, s, reply, sizeof reply, 100))
      return strcmp (reply, "GPUB/1 final 8 {}") == 0;
  }
  return 0;
}

static void
test_malformed (struct fixture *x)
{
  void *s = client (x, ZMQ_DEALER, x->requests);
  static char body[128 * 1024 + 8];
  struct bus_counters c;

  put (s, "GPUB/1", "echo", "3", NULL);
  ok (is_error (get (x, s), "3", "bad-frame"), "three frames are answered once");
  put (s, "GPUB/1", "echo", "4", "{}", "5", "6", "7", "8", "9", NULL);
  ok (is_error (get (x, s), "4", "bad-frame"), "nine frames are read to their end");
  put (s, "GPUB/9", "echo", "5", "{}", NULL);
  ok (is_error (get (x, s), "5", "version"), "another version");
  put (s, "garbage", NULL);
  put (s, "GPUB/1", "echo", "", "{}", NULL);
  ok (is_quiet (x, s), "what cannot be addressed is dropped in silence");
  memset (body, ' ', sizeof body);
  body[0] = '{', body[65536] = '}', body[65537] = 0;
  put (s, "GPUB/1", "echo", "6", body, NULL);
  ok (is_error (get (x, s), "6", "bad-frame"), "a body of 65537 bytes");
  bus_counters (x->bus, &c);
  is_num (c.bad_frames, 6, "all of them are counted");
  body[65537] = ' ', body[sizeof body - 1] = 0;
  put (s, "GPUB/1", "echo", "7", body, NULL);
  ok (answers_again (x, s), "a frame beyond 128 KiB costs the connection, not the broker");
  zmq_close (s);
}

static void
test_repeat (struct fixture *x)
{
  void *s = client (x, ZMQ_DEALER, x->requests);
  unsigned before = x->handled;

  put (s, "GPUB/1", "hold", "same", "{}", NULL);
  put (s, "GPUB/1", "hold", "same", "{}", NULL);
  ok (is_quiet (x, s), "an id under way is not asked twice");
  is_num (x->handled - before, 2, "the repeat did not reach the handler");
  bus_send (x->bus, &x->held.at[0], BUS_FINAL, "{}", 2);
  is_str (get (x, s), "GPUB/1 final same {}", "and is answered once");
  put (s, "GPUB/1", "mute", "same", "{}", NULL);
  put (s, "GPUB/1", "echo", "same", "{}", NULL);
  is_str (get (x, s), "GPUB/1 final same {}", "a forgotten request frees its id");
  x->held.n = 0;
  zmq_close (s);
}

int
main (void)
{
  struct fixture x;

  fixture_init (&x);
  fixture_up (&x);
  test_dealer (&x);
  test_single (&x);
  test_malformed (&x);
  test_repeat (&x);
  fixture_done (&x);
  return done ();
}
