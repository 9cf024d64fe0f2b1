/* client.h - what the files of libgpubroker share */
#ifndef GPUB_CLIENT_H
#define GPUB_CLIENT_H

#include <inttypes.h>

#include "bus/gpubroker/client.h"
#include "bus/link.h"
#include "bus/proto.h"
#include "core/vec.h"

struct client_reply {
  int kind;
  char id[PROTO_ID_MAX + 1];
  char *json;
  size_t len;
};

struct gpubc {
  struct link link;
  char *endpoint;
  void *sub;
  char prefix[37]; /* makes request ids unlike those of other clients */
  uint64_t sent;
  struct client_reply last;          /* lent to the caller */
  VEC (struct client_reply) waiting; /* read while waiting for another id */
  char topic[PROTO_TOPIC_MAX + 1];
  char why[256];
};

/* Sets gpubc_why; returns outcome. */
int client_fail (struct gpubc *c, int outcome, const char *fmt, ...) PRINTF (3, 4);
/* A deadline on the boot clock and what is left of it; -1 stays -1, no limit. */
int64_t client_end (int64_t timeout_ms);
int64_t client_left (int64_t end);
/* Keeps a reply and lends it; lends the last one when it is what came out, else an empty object. */
int client_keep (struct gpubc *c, const struct client_reply *from, struct gpubc_reply *r);
int client_lend (struct gpubc *c, int outcome, struct gpubc_reply *r);
/* GPUBC_ACCEPTED when the link is up, else what it is instead. */
int client_connect (struct gpubc *c, int64_t patience_ms);
int client_put (struct gpubc *c, const char *verb, const char *json, const char *id);

#endif
