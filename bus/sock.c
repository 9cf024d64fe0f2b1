/* sock.c - ZeroMQ sockets with their options in one table
 *
 * libzmq starts its I/O thread with the first socket, so that is where signals must be blocked.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <zmq.h>

#include "bus/sock.h"

void *
sock_context (struct err *e)
{
  void *ctx = zmq_ctx_new ();

  if (!ctx || zmq_ctx_set (ctx, ZMQ_BLOCKY, 0) < 0)
    err_set (e, ERR_INTERNAL, "zeromq context: %s", zmq_strerror (errno));
  return ctx;
}

static int
set_option (void *s, const struct sock_opt *o)
{
  int value = (int) o->value;

  if (o->name == ZMQ_MAXMSGSIZE) /* the one option here that is 64 bits wide */
    return zmq_setsockopt (s, o->name, &o->value, sizeof o->value);
  return zmq_setsockopt (s, o->name, &value, sizeof value);
}

static int
set_domain (void *s, const char *domain)
{
  struct sock_opt enforce = { SOCK_ENFORCE_DOMAIN, 1 };

  return zmq_setsockopt (s, ZMQ_ZAP_DOMAIN, domain, strlen (domain)) < 0 ? -1
                                                                         : set_option (s, &enforce);
}

static void *
open_without_signals (void *ctx, int type)
{
  sigset_t all, before;
  void *s;
  int saved;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  s = zmq_socket (ctx, type);
  saved = errno;
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  errno = saved;
  return s;
}

void *
sock_new (void *ctx, int type, const struct sock_opt *opts, size_t n, const char *domain,
          struct err *e)
{
  struct sock_opt linger = { ZMQ_LINGER, 0 };
  void *s = open_without_signals (ctx, type);
  int bad = !s || set_option (s, &linger) < 0 || (domain && set_domain (s, domain) < 0);

  for (size_t i = 0; i < n && !bad; i++)
    bad = set_option (s, &opts[i]) < 0;
  if (!bad)
    return s;
  err_set (e, ERR_INTERNAL, "zeromq socket: %s", zmq_strerror (errno));
  sock_close (s, 0);
  return NULL;
}

void
sock_close (void *s, int linger_ms)
{
  struct sock_opt linger = { ZMQ_LINGER, linger_ms };
  int saved = errno;

  if (s) {
    set_option (s, &linger);
    zmq_close (s);
  }
  errno = saved;
}

static int
get_int (void *s, int name, int otherwise)
{
  int value;
  size_t size = sizeof value;

  return zmq_getsockopt (s, name, &value, &size) < 0 ? otherwise : value;
}

int
sock_fd (void *s)
{
  return get_int (s, ZMQ_FD, -1);
}

int
sock_events (void *s)
{
  return get_int (s, ZMQ_EVENTS, 0);
}
