/* internal.h - what the files of the daemon's side share */
#ifndef GPUB_BUS_INTERNAL_H
#define GPUB_BUS_INTERNAL_H

#include <poll.h>

#include "bus/bus.h"
#include "bus/ipc.h"
#include "bus/session.h"
#include "bus/zap.h"

enum bus_socket { BUS_REQUESTS, BUS_EVENTS, BUS_SOCKETS };

/* Whose file descriptor. */
enum bus_fd {
  FD_WAKE,
  FD_ZAP,
  FD_REQUESTS,
  FD_EVENTS,
  FD_REQUESTS_MONITOR,
  FD_EVENTS_MONITOR,
  BUS_FDS
};

struct bus {
  void *ctx;
  void *sock[BUS_SOCKETS], *mon[BUS_SOCKETS];
  struct pollfd fds[BUS_FDS];
  int wake; /* eventfd, readable while input is known to wait: ZMQ_FD alone would lose that */
  int woken;
  int pumping; /* bus_pump itself looks again, no need to wake */
  VEC (struct ipc_place) places;
  int sweep; /* principals that are not listed any more can go */
  struct zap zap;
  struct principals who;
  struct sessions sessions;
  uint32_t turn_budget, inflight_per_peer, inflight_total, connections_max;
  int64_t complained_ms; /* of connections that cannot be accepted */
  bus_handler *handler;
  void *ctx_of_handler;
  struct bus_counters counters;
  char body[PROTO_BODY_MAX + 1];
};

/* pump.c; bus_wake makes the descriptors readable until the next pump. */
void pump_init (struct bus *b);
void bus_wake (struct bus *b);

/* router.c: one turn of the request socket; 1 when the budget ended it. */
int router_pump (struct bus *b);

/* reply.c: an error to somebody without a session; lost when there is no room for it. */
void reply_once (struct bus *b, struct bytes routing_id, const struct pending *to, const char *code,
                 const char *message, uint32_t retry_after_ms);
/* The same through a session, where it waits for room; one that was opened for this alone ends with
 * it. */
void reply_refusal (struct bus *b, struct session *s, const struct pending *to, const char *code,
                    const char *message, uint32_t retry_after_ms);
/* Sends what slow clients have room for by now. */
void reply_flush (struct bus *b);
/* The client went away: forget what it waits for. */
void reply_gone (struct bus *b, struct session *s);

/* selftest.c: 0 when a peer with a negative ZAP answer is kept out of the endpoint. */
int selftest (struct bus *b, enum bus_socket which, const char *endpoint, struct err *e);

#endif
