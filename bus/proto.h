/* proto.h - the four text frames of GPUB/1, without any socket */
#ifndef GPUB_PROTO_H
#define GPUB_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "bus/bus.h"
#include "bus/frame.h"

#define PROTO_MAGIC "GPUB/1"

enum { PROTO_BODY_MAX = 64 * 1024, PROTO_ID_MAX = 64, PROTO_VERB_MAX = 32, PROTO_TOPIC_MAX = 239 };

struct proto_request {
  int delimiter; /* an empty frame came first: give it back */
  int single;
  char verb[PROTO_VERB_MAX + 1];
  char id[PROTO_ID_MAX + 1]; /* "" when the request cannot be addressed */
  struct bytes body;
};

/* total: how many frames were received, which may be more than the n at hand.  0, or -1 with
 * e->code "bad-frame" or "version" and in *r what could be read. */
int proto_decode (const struct bytes *at, size_t n, size_t total, struct proto_request *r,
                  struct err *e);

const char *proto_reply_name (enum bus_reply what); /* "accepted" ... */
int proto_reply_parse (struct bytes name);          /* an enum bus_reply, or -1 */
int proto_id_ok (struct bytes id);

/* The JSON of an error reply; caller frees. */
char *proto_error (const char *code, const char *message, const char *hint,
                   uint32_t retry_after_ms);

#endif
