/* bus_server.c - a bus with canned answers, for clients in other languages; runs until its stdin
 * ends
 *
 * It publishes two events of three, so that a client has to notice what it missed.
 */
#include "tests/unit/bus_fixture.h"

static struct fixture x;
static uint64_t seq = 1;

static int
event (char *to, size_t size, uint64_t n)
{
  return snprintf (to, size,
                   "{\"seq\":%" PRIu64 ",\"ms\":1,\"topic\":\"broker.tick\",\"what\":\"tick\"}", n);
}

static void
answer_events (const struct bus_ticket *t, const char *body)
{
  const char *since = strstr (body, "\"since\"");
  uint64_t n = since ? strtoull (since + strlen ("\"since\": "), NULL, 10) : 0;
  static char text[64 * 1024];
  size_t used =
      (size_t) snprintf (text, sizeof text, "{\"epoch\":1,\"seq\":%" PRIu64 ",\"events\":[", seq);

  for (int i = 0; i < 100 && ++n <= seq; i++) {
    if (i)
      text[used++] = ',';
    used += (size_t) event (text + used, sizeof text - used, n);
  }
  used += (size_t) snprintf (text + used, sizeof text - used, "]}");
  bus_send (x.bus, t, BUS_FINAL, text, used);
}

static void
answer_rent (const struct bus_ticket *t)
{
  bus_send (x.bus, t, BUS_ACCEPTED, "{\"operation\":\"o1\",\"lease\":\"l1\"}", 31);
  bus_send (x.bus, t, BUS_PROGRESS, "{\"operation\":\"o1\",\"state\":\"booting\"}", 36);
  bus_send (x.bus, t, BUS_FINAL, "{\"operation\":{},\"lease\":{}}", 27);
}

static void
serve (void *ctx, const struct bus_request *r)
{
  struct bus_ticket t;
  char ping[160];

  (void) ctx;
  bus_ticket (r, &t);
  if (strcmp (r->verb, "events") == 0)
    answer_events (&t, r->body);
  else if (strcmp (r->verb, "rent") == 0)
    answer_rent (&t);
  else if (strcmp (r->verb, "ping") == 0)
    bus_send (x.bus, &t, BUS_FINAL, ping,
              (size_t) snprintf (ping, sizeof ping, "{\"events\":[\"%s\"],\"epoch\":1}", x.events));
  else
    bus_send_error (x.bus, &t, "unknown-verb", "no such verb", NULL, 0);
}

static void
publish (void)
{
  char text[128];
  int n = event (text, sizeof text, ++seq);

  if (seq % 3)
    bus_publish (x.bus, "broker.tick", 1, seq, text, (size_t) n);
  else
    bus_beat (x.bus, 1, seq);
}

int
main (void)
{
  struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
  struct err e = ERR_INIT;

  fixture_init (&x);
  x.bus = bus_new (&x.config, serve, NULL, &e);
  if (!x.bus) {
    fprintf (stderr, "%s\n", e.text);
    return 1;
  }
  puts (x.requests);
  fflush (stdout);
  while (poll (&in, 1, 0) == 0) {
    fixture_turn (&x, 20);
    publish ();
  }
  fixture_done (&x);
  return 0;
}
