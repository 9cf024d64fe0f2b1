/* link.c - a client's connection: up, refused, or why not */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/link.h"
#include "bus/monitor.h"
#include "bus/sock.h"

enum {
  HANDSHAKE_MS = 5000,
  RECONNECT_MS = 50,
  RECONNECT_MAX_MS = 1000,
  WATCHED = ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
            ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
};

static const struct sock_opt opts[] = {
  { ZMQ_IMMEDIATE, 1 }, /* nothing is queued for a broker that is not there */
  { ZMQ_RECONNECT_IVL, RECONNECT_MS },
  { ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS },
  { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
};

/* Several contexts with CURVE in one process crash libzmq 4.3.4. */
static struct {
  pthread_mutex_t lock;
  void *ctx;
  unsigned users;
} shared = { PTHREAD_MUTEX_INITIALIZER, NULL, 0 };

void *
link_context (void)
{
  void *ctx;

  pthread_mutex_lock (&shared.lock);
  if (!shared.ctx)
    shared.ctx = sock_context (NULL);
  ctx = shared.ctx;
  shared.users += ctx != NULL;
  pthread_mutex_unlock (&shared.lock);
  return ctx;
}

void
link_context_done (void)
{
  void *old = NULL;

  pthread_mutex_lock (&shared.lock);
  if (--shared.users == 0) {
    old = shared.ctx;
    shared.ctx = NULL;
  }
  pthread_mutex_unlock (&shared.lock);
  if (old)
    zmq_ctx_term (old);
}

int
link_init (struct link *l)
{
  memset (l, 0, sizeof *l);
  l->interrupt = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (l->interrupt < 0)
    return -1;
  l->ctx = link_context ();
  if (l->ctx)
    return 0;
  close (l->interrupt);
  return -1;
}

static void
close_sockets (struct link *l)
{
  sock_close (l->sock, 0);
  sock_close (l->mon, 0);
  l->sock = l->mon = NULL;
  l->state = LINK_CLOSED;
}

void
link_done (struct link *l)
{
  close_sockets (l);
  link_context_done ();
  close (l->interrupt);
}

int
link_open (struct link *l, const char *endpoint)
{
  close_sockets (l);
  l->sock = sock_new (l->ctx, ZMQ_DEALER, opts, N_ELEMENTS (opts), NULL, NULL);
  l->mon = l->sock ? monitor_new (l->ctx, l->sock, WATCHED, NULL) : NULL;
  if (!l->mon || zmq_connect (l->sock, endpoint) < 0) {
    int saved = errno;

    close_sockets (l);
    errno = saved;
    return -1;
  }
  l->state = LINK_CONNECTING;
  return 0;
}

static void
note (struct link *l, int event)
{
  switch (event) {
  case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
    l->state = LINK_UP;
    break;
  case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    l->state = LINK_REFUSED;
    break;
  case ZMQ_EVENT_DISCONNECTED:
    if (l->state == LINK_UP)
      l->state = LINK_LOST;
    break;
  default: /* the connection failed, or the other side speaks something else or nothing */
    if (l->state == LINK_CONNECTING)
      l->state = LINK_ABSENT;
  }
}

/* The end of the connection is told only after what came before it was read. */
static int
changed (struct link *l)
{
  enum link_state before = l->state;
  struct monitor_event ev;

  while (l->state == before && l->mon && monitor_next (l->mon, &ev))
    note (l, ev.what);
  return l->state != before;
}

static int
interrupted (struct link *l)
{
  uint64_t count;

  return read (l->interrupt, &count, sizeof count) == sizeof count;
}

enum link_wake
link_wait (struct link *l, void *on, int64_t timeout_ms)
{
  zmq_pollitem_t items[] = { { .fd = l->interrupt, .events = ZMQ_POLLIN },
                             { .socket = on ? on : l->sock, .events = ZMQ_POLLIN },
                             { .socket = l->mon, .events = ZMQ_POLLIN } };
  int rc = zmq_poll (items, on ? 2 : 3, timeout_ms < 0 ? -1 : (long) timeout_ms);

  if (rc < 0 && errno != EINTR)
    return LINK_BROKEN;
  if (interrupted (l))
    return LINK_INTERRUPTED;
  if (rc > 0 && items[1].revents)
    return LINK_INPUT;
  if (!on && changed (l))
    return LINK_CHANGED;
  return LINK_TIMEOUT; /* or nothing of interest: the caller looks at its clock */
}

enum link_wake
link_pause (struct link *l, int ms)
{
  struct pollfd p = { .fd = l->interrupt, .events = POLLIN };

  poll (&p, 1, ms);
  return interrupted (l) ? LINK_INTERRUPTED : LINK_TIMEOUT;
}

void
link_catch_up (struct link *l)
{
  while (changed (l))
    ;
}

void
link_interrupt (struct link *l)
{
  uint64_t one = 1;
  int saved = errno;

  if (write (l->interrupt, &one, sizeof one) < 0)
    errno = saved; /* full: it is readable already */
  errno = saved;
}

static int
try_connect (const char *path)
{
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  AUTO_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  if (strlen (path) >= sizeof to.sun_path)
    return ENAMETOOLONG;
  strcpy (to.sun_path, path);
  return fd < 0 || connect (fd, (struct sockaddr *) &to, sizeof to) < 0 ? errno : 0;
}

int
link_diagnose (const char *endpoint, char *text, size_t size)
{
  int why = strncmp (endpoint, "ipc://", 6) == 0 ? try_connect (endpoint + 6) : 0;

  switch (why) {
  case 0:
    snprintf (text, size, "no gpubrokerd answers at %s", endpoint);
    break;
  case ENOENT:
  case ECONNREFUSED:
    snprintf (text, size, "gpubrokerd is not running: nobody listens at %s", endpoint);
    break;
  case EACCES:
    snprintf (text, size, "no permission for %s: be a member of group gpubroker", endpoint);
    break;
  default:
    snprintf (text, size, "%s: %s", endpoint, strerror (why));
  }
  return why;
}
