/* monitor.c - what happened to a socket's connections
 *
 * Version 1 of the monitor protocol: the second is a draft.  High water mark 0, since a lost event
 * would be a lost fact.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "bus/frame.h"
#include "bus/monitor.h"
#include "bus/sock.h"

void *
monitor_new (void *ctx, void *sock, int events, struct err *e)
{
  static const struct sock_opt opts[] = { { ZMQ_RCVHWM, 0 }, { ZMQ_SNDHWM, 0 } };
  char name[64];
  void *mon;

  snprintf (name, sizeof name, "inproc://monitor-%p", sock);
  if (zmq_socket_monitor (sock, name, events) < 0) {
    err_set (e, ERR_INTERNAL, "zeromq monitor: %s", zmq_strerror (errno));
    return NULL;
  }
  mon = sock_new (ctx, ZMQ_PAIR, opts, N_ELEMENTS (opts), NULL, e);
  if (mon && zmq_connect (mon, name) == 0)
    return mon;
  err_set (e, ERR_INTERNAL, "zeromq monitor: %s", zmq_strerror (errno));
  sock_close (mon, 0);
  return NULL;
}

int
monitor_next (void *mon, struct monitor_event *ev)
{
  struct frames f;
  uint16_t what;

  if (frames_recv (mon, &f) < 0)
    return 0;
  if (f.n >= 1 && f.at[0].len >= sizeof what + sizeof ev->value) {
    memcpy (&what, f.at[0].at, sizeof what);
    memcpy (&ev->value, f.at[0].at + sizeof what, sizeof ev->value);
    ev->what = what;
  } else {
    ev->what = 0;
  }
  frames_done (&f);
  return 1;
}
