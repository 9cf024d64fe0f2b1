/* bus.h - GPUB/1 as the daemon sees it: requests in, replies and events out
 *
 * One thread owns a bus.  It never blocks.  Who asks is decided here (ZAP); what they may do is
 * decided by whoever handles the request, from `rights`.  docs/protocol.md is the contract.
 */
#ifndef GPUB_BUS_H
#define GPUB_BUS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum bus_rights {
  BUS_READ = 1,
  BUS_RENT = 2,
  BUS_ADMIN = 4
}; /* each includes the ones before it */

struct bus_uid { /* a local user who may speak over ipc */
  uint32_t uid;
  enum bus_rights rights;
  char principal[64]; /* "uid:1000" unless the configuration names them */
};

struct bus_config {
  const char *const *requests; /* endpoints for ROUTER, ipc:// */
  size_t nrequests;
  const char *const *events; /* endpoints for PUB */
  size_t nevents;
  const struct bus_uid *uids;
  size_t nuids;
  uint32_t turn_budget;       /* requests handled by one pump, 0: 64 */
  uint32_t inflight_per_peer; /* 0: 64 */
  uint32_t inflight_total;    /* 0: 4096 */
  uint32_t connections;       /* at most, 0: what the limit of open files leaves */
  double rate, burst;         /* requests a second for each principal, 0: 1000 and 2000 */
};

struct bus;

struct bus_request {
  uint64_t session; /* names the asker until bus_finish; never stored */
  const char *principal;
  enum bus_rights rights;
  const char *verb;
  const char *id;   /* the client's request id */
  const char *body; /* NUL-ended JSON text, already scanned; parse with json_parse */
  size_t len;
  int single; /* wants exactly one reply */
};

/* Handles one request.  It must end in bus_send (FINAL or ERROR) now or later, or bus_forget. */
typedef void bus_handler (void *ctx, const struct bus_request *r);

enum bus_reply { BUS_ACCEPTED, BUS_PROGRESS, BUS_FINAL, BUS_ERROR };

struct bus *bus_new (const struct bus_config *c, bus_handler *handler, void *ctx, struct err *e);
void bus_free (struct bus *b);

/* At most 8 file descriptors to watch for reading, level-triggered: run bus_pump when one is
 * readable.  One of them is the bus's own, readable when a bus_send swallowed ZeroMQ's wake-up. */
size_t bus_fds (const struct bus *b, int *fds, size_t max);
/* Drains what is there within the budget; 1 when more is waiting, so that the loop does not sleep.
 */
int bus_pump (struct bus *b);

/* A token for replying later: valid until FINAL or ERROR was sent or the client is gone.  For a
 * `single` request of a mutation ACCEPTED ends it; PROGRESS to it is dropped.  Never blocks; a
 * client that cannot keep up loses PROGRESS first and its session beyond the bound. */
struct bus_ticket {
  uint64_t session;
  char id[65];
};
void bus_ticket (const struct bus_request *r, struct bus_ticket *t);
/* 0, or -1 when the asker is gone. */
int bus_send (struct bus *b, const struct bus_ticket *t, enum bus_reply what, const char *json,
              size_t len);
/* Sends {"code","message","hint","retryable","retry_after_ms"}; code is one of the protocol's. */
int bus_send_error (struct bus *b, const struct bus_ticket *t, const char *code,
                    const char *message, const char *hint, uint32_t retry_after_ms);

/* Nobody will answer this one: frees its place. */
void bus_forget (struct bus *b, const struct bus_ticket *t);

/* An event to every subscriber: topic | {"epoch","seq"} | body. */
void bus_publish (struct bus *b, const char *topic, uint64_t epoch, uint64_t seq, const char *json,
                  size_t len);
/* The second's beat with the last sequence number; also tries again what slow clients had no room
 * for. */
void bus_beat (struct bus *b, uint64_t epoch, uint64_t seq);

struct bus_counters {
  uint64_t requests, bad_frames, refused, busy, dropped_progress, gone;
  uint64_t connections; /* at this moment */
};
void bus_counters (const struct bus *b, struct bus_counters *out);
/* Replaces who may ask; a removed uid is denied at its next request. */
void bus_reload_uids (struct bus *b, const struct bus_uid *uids, size_t n);

#endif
