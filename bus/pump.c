/* pump.c - one turn of the bus
 *
 * ZeroMQ's descriptors say only that a socket has something to do; a socket that was read until
 * EAGAIN has nothing, whatever its descriptor said before.  Asking the kernel once about all of
 * them spares a system call for each.
 */
#include "config.h"

#include <inttypes.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/internal.h"
#include "bus/monitor.h"
#include "bus/sock.h"
#include "core/clock.h"
#include "core/log.h"

enum { COMPLAIN_MS = 60 * 1000 };

void
pump_init (struct bus *b)
{
  const int fds[BUS_FDS] = {
    [FD_WAKE] = b->wake,
    [FD_ZAP] = sock_fd (b->zap.sock),
    [FD_REQUESTS] = sock_fd (b->sock[BUS_REQUESTS]),
    [FD_EVENTS] = sock_fd (b->sock[BUS_EVENTS]),
    [FD_REQUESTS_MONITOR] = sock_fd (b->mon[BUS_REQUESTS]),
    [FD_EVENTS_MONITOR] = sock_fd (b->mon[BUS_EVENTS]),
  };

  for (int i = 0; i < BUS_FDS; i++)
    b->fds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
  bus_wake (b); /* the self-test may have read what a client's connection signalled */
}

size_t
bus_fds (const struct bus *b, int *fds, size_t max)
{
  size_t n = 0;

  while (n < BUS_FDS && n < max) {
    fds[n] = b->fds[n].fd;
    n++;
  }
  return n;
}

/* A client that died with requests under way is noticed here, though nothing is sent to it. */
static void
on_disconnect (struct bus *b, int fd)
{
  for (size_t i = 0; i < b->sessions.n; i++)
    if (b->sessions.at[i]->who && b->sessions.at[i]->fd == fd && fd >= 0)
      reply_gone (b, b->sessions.at[i]);
}

static void
complain (struct bus *b, int why)
{
  int64_t now = clock_boot_ms ();

  if (b->complained_ms && now - b->complained_ms < COMPLAIN_MS)
    return;
  b->complained_ms = now;
  log_at (LOG_WARNING, "bus.accept-failed", "reason=\"%s\" connections=%" PRIu64,
          zmq_strerror (why), b->counters.connections);
}

static void
note (struct bus *b, enum bus_socket which, const struct monitor_event *ev)
{
  switch (ev->what) {
  case ZMQ_EVENT_ACCEPTED:
    b->counters.connections++;
    break;
  case ZMQ_EVENT_DISCONNECTED:
    b->counters.connections--;
    if (which == BUS_REQUESTS)
      on_disconnect (b, (int) ev->value);
    break;
  case ZMQ_EVENT_ACCEPT_FAILED:
    complain (b, (int) ev->value);
    break;
  default:
    break;
  }
}

static void
monitors_pump (void *ctx)
{
  struct bus *b = ctx;
  struct monitor_event ev;

  for (int i = 0; i < BUS_SOCKETS; i++)
    while (monitor_next (b->mon[i], &ev))
      note (b, i, &ev);
  b->zap.full = b->counters.connections > b->connections_max;
}

/* A descriptor can only be reused after its end was reported, and its next owner has to pass the
 * access handler first: hence access, then ends, then requests; and no access without a look at how
 * many connections there are by then. */
static int
turn (struct bus *b, int all)
{
  int more;

  if (all || b->fds[FD_ZAP].revents || b->fds[FD_REQUESTS_MONITOR].revents ||
      b->fds[FD_EVENTS_MONITOR].revents) {
    zap_pump (&b->zap, monitors_pump, b);
    monitors_pump (b);
  }
  if (b->fds[FD_EVENTS].revents)
    sock_events (b->sock[BUS_EVENTS]); /* reads subscriptions */
  if (!all && !b->fds[FD_REQUESTS].revents)
    return 0;
  more = router_pump (b);
  if (b->sessions.with_queue)
    reply_flush (b);
  return more || sock_events (b->sock[BUS_REQUESTS]) & ZMQ_POLLIN;
}

void
bus_wake (struct bus *b)
{
  uint64_t one = 1;

  if (!b->woken)
    b->woken = write (b->wake, &one, sizeof one) == sizeof one;
}

/* Was the bus woken by itself? */
static int
sleep_again (struct bus *b)
{
  int woken = b->woken;
  uint64_t count;

  if (woken && read (b->wake, &count, sizeof count) == sizeof count)
    b->woken = 0;
  return woken;
}

int
bus_pump (struct bus *b)
{
  int all = sleep_again (b), more;

  if (poll (b->fds, BUS_FDS, 0) < 0)
    all = 1;
  if (b->sweep)
    principals_sweep (&b->who);
  b->sweep = 0;
  b->pumping = 1;
  more = turn (b, all);
  b->pumping = 0;
  if (more)
    bus_wake (b);
  return more;
}
