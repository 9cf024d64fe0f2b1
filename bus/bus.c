/* bus.c - puts the bus together and turns it
 *
 * The order at start matters: signals blocked, access handler, options, lock, bind, self-test.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/internal.h"
#include "bus/ipc.h"
#include "bus/monitor.h"
#include "bus/sock.h"

enum {
  MESSAGE_MAX =
      128 * 1024,  /* above the body's limit, so that a little too much still gets an answer */
  RECV_QUEUE = 16, /* for each peer; 1,000 would let one hold 257 MiB */
  SEND_QUEUE = 64,
  HANDSHAKE_MS = 3000,
  FLUSH_MS = 200,
  WATCHED = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPT_FAILED,
  RESERVED_FDS = 256, /* for the store, the children and the daemon itself */
  CONNECTIONS_MIN = 64,
};

static const struct sock_opt request_opts[] = {
  { ZMQ_ROUTER_MANDATORY, 1 },     { ZMQ_RCVHWM, RECV_QUEUE },          { ZMQ_SNDHWM, SEND_QUEUE },
  { ZMQ_MAXMSGSIZE, MESSAGE_MAX }, { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS }, { ZMQ_BACKLOG, 128 },
};

static const struct sock_opt event_opts[] = {
  { ZMQ_SNDHWM, 1000 },
  { ZMQ_MAXMSGSIZE, 4096 }, /* subscriptions are all that comes in */
  { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
  { ZMQ_BACKLOG, 128 },
};

static int
open_socket (struct bus *b, enum bus_socket which, struct err *e)
{
  static const struct {
    int type;
    const struct sock_opt *opts;
    size_t nopts;
  } kinds[] = {
    [BUS_REQUESTS] = { ZMQ_ROUTER, request_opts, N_ELEMENTS (request_opts) },
    [BUS_EVENTS] = { ZMQ_PUB, event_opts, N_ELEMENTS (event_opts) },
  };

  b->sock[which] =
      sock_new (b->ctx, kinds[which].type, kinds[which].opts, kinds[which].nopts, ZAP_DOMAIN, e);
  if (!b->sock[which])
    return -1;
  b->mon[which] = monitor_new (b->ctx, b->sock[which], WATCHED, e);
  return b->mon[which] ? 0 : -1;
}

static int
serve (struct bus *b, enum bus_socket which, const char *const *endpoints, size_t n, struct err *e)
{
  if (open_socket (b, which, e) < 0)
    return -1;
  for (size_t i = 0; i < n; i++) {
    struct ipc_place place;

    if (ipc_bind (b->sock[which], endpoints[i], &place, e) < 0)
      return -1;
    *vec_push (&b->places) = place;
    if (selftest (b, which, endpoints[i], e) < 0)
      return -1;
  }
  return 0;
}

static int
start (struct bus *b, const struct bus_config *c, struct err *e)
{
  b->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (b->wake < 0)
    return err_set (e, ERR_INTERNAL, "eventfd: %s", strerror (errno));
  b->ctx = sock_context (e);
  if (!b->ctx || zap_init (&b->zap, b->ctx, &b->who, e) < 0)
    return -1;
  if (serve (b, BUS_REQUESTS, c->requests, c->nrequests, e) < 0)
    return -1;
  if (serve (b, BUS_EVENTS, c->events, c->nevents, e) < 0)
    return -1;
  pump_init (b);
  return 0;
}

/* At the limit of open files libzmq's thread would spin and the daemon could start no child. */
static uint32_t
connections_by_limit (void)
{
  struct rlimit l;

  if (getrlimit (RLIMIT_NOFILE, &l) < 0 || l.rlim_cur < RESERVED_FDS + CONNECTIONS_MIN)
    return CONNECTIONS_MIN;
  return l.rlim_cur - RESERVED_FDS < UINT32_MAX ? (uint32_t) l.rlim_cur - RESERVED_FDS : UINT32_MAX;
}

struct bus *
bus_new (const struct bus_config *c, bus_handler *handler, void *ctx, struct err *e)
{
  struct bus *b = calloc (1, sizeof *b);

  if (!b)
    abort ();
  b->handler = handler;
  b->ctx_of_handler = ctx;
  b->turn_budget = c->turn_budget ? c->turn_budget : 64;
  b->inflight_per_peer = c->inflight_per_peer ? c->inflight_per_peer : 64;
  b->inflight_total = c->inflight_total ? c->inflight_total : 4096;
  b->connections_max = c->connections ? c->connections : connections_by_limit ();
  b->who.rate = c->rate > 0 ? c->rate : 1000;
  b->who.burst = c->burst >= 1 ? c->burst : 2000;
  principals_load (&b->who, c->uids, c->nuids);
  if (start (b, c, e) == 0)
    return b;
  bus_free (b);
  return NULL;
}

void
bus_free (struct bus *b)
{
  if (!b)
    return;
  for (int i = 0; i < BUS_SOCKETS; i++) {
    sock_close (b->sock[i], FLUSH_MS); /* what was promised last should still go out */
    sock_close (b->mon[i], 0);
  }
  zap_done (&b->zap);
  if (b->ctx)
    zmq_ctx_term (b->ctx);
  sessions_done (&b->sessions);
  principals_done (&b->who);
  for (size_t i = 0; i < b->places.n; i++)
    ipc_release (&b->places.at[i]);
  vec_free (&b->places);
  if (b->wake >= 0)
    close (b->wake);
  free (b);
}

void
bus_counters (const struct bus *b, struct bus_counters *out)
{
  *out = b->counters;
  out->refused += b->zap.refused;
}

void
bus_ticket (const struct bus_request *r, struct bus_ticket *t)
{
  t->session = r->session;
  strcpy (t->id, r->id);
}

void
bus_reload_uids (struct bus *b, const struct bus_uid *uids, size_t n)
{
  principals_load (&b->who, uids, n);
  for (size_t i = 0; i < b->sessions.n; i++)
    if (b->sessions.at[i]->who && !b->sessions.at[i]->who->listed)
      session_close (&b->sessions, b->sessions.at[i]);
  b->sweep = 1; /* not now: the request that led here may be from one of them */
}
