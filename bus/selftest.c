/* selftest.c - before the first client: is a peer that ZAP refuses really kept out?
 *
 * With keys one would try a random one.  Over ipc who one is comes from the kernel, and the
 * daemon's own user may well be allowed, so the handler refuses the daemon's own process by its pid
 * for the length of the test: the real endpoint, socket, domain and handler are tried, and other
 * clients are not disturbed.
 */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/internal.h"
#include "bus/monitor.h"
#include "bus/sock.h"
#include "core/clock.h"

enum {
  SELFTEST_MS = 3000,
  VERDICTS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

/* The event that decided, 0 when none came in time. */
static int
await_verdict (struct bus *b, void *mon)
{
  int64_t end = clock_boot_ms () + SELFTEST_MS;
  zmq_pollitem_t items[] = { { .socket = b->zap.sock, .events = ZMQ_POLLIN },
                             { .socket = mon, .events = ZMQ_POLLIN } };
  struct monitor_event ev;

  for (int64_t left = SELFTEST_MS; left > 0; left = end - clock_boot_ms ()) {
    if (zmq_poll (items, 2, (long) left) < 0 && errno != EINTR)
      return 0;
    zap_pump (&b->zap, NULL, NULL);
    while (monitor_next (mon, &ev))
      if (ev.what & VERDICTS)
        return ev.what;
  }
  return 0;
}

static int
probe (struct bus *b, int type, const char *endpoint, struct err *e)
{
  static const struct sock_opt opts[] = { { ZMQ_RECONNECT_IVL, -1 } };
  void *s = sock_new (b->ctx, type, opts, N_ELEMENTS (opts), NULL, e);
  void *mon = s ? monitor_new (b->ctx, s, VERDICTS, e) : NULL;
  int verdict = 0;

  if (mon && zmq_connect (s, endpoint) == 0)
    verdict = await_verdict (b, mon);
  sock_close (s, 0);
  sock_close (mon, 0);
  return verdict;
}

int
selftest (struct bus *b, enum bus_socket which, const char *endpoint, struct err *e)
{
  static const int peers[] = { [BUS_REQUESTS] = ZMQ_DEALER, [BUS_EVENTS] = ZMQ_SUB };
  uint64_t before = b->zap.refused;
  int verdict, asked;

  b->zap.refuse_pid = getpid ();
  verdict = probe (b, peers[which], endpoint, e);
  b->zap.refuse_pid = 0;
  asked = b->zap.refused > before;
  b->zap.refused = before;
  if (verdict == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH && asked)
    return 0;
  return err_set (e, ERR_INTERNAL,
                  "%s: the access check does not hold: a peer to be refused was %s", endpoint,
                  verdict == ZMQ_EVENT_HANDSHAKE_SUCCEEDED ? "let in" : "not refused");
}
