/* wire.h - frames between gpubrokerd and its children, over a socketpair on fd 3 of the child
 *
 * Header, little-endian, 12 bytes: u32 body length, u32 call id, u16 kind, u16 flags; then the body, which is
 * a JSON object, except for SECRET: name, NUL, raw bytes.  What the bodies hold is in docs/children.md.
 * A frame that breaks a rule ends the connection; the daemon then kills the child.
 */
#ifndef GPUB_WIRE_H
#define GPUB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

enum { WIRE_VERSION = 1, WIRE_FD = 3, WIRE_HEADER = 12, WIRE_MAX_BODY = 256 * 1024 };

enum wire_kind {
  WIRE_HELLO = 1, /* child: who I am; once, first */
  WIRE_CONFIG,    /* daemon: your configuration; once, after its SECRETs */
  WIRE_READY,     /* child: configured, or why not */
  WIRE_CALL,      /* daemon: do this */
  WIRE_SECRET,    /* either: bytes that belong to the call id (0: to the configuration), before its frame */
  WIRE_ITEM,      /* child: part of an answer; with WIRE_WANT_ACK it waits for the ACK */
  WIRE_ACK,       /* daemon: the item is in the books */
  WIRE_RESULT,    /* child: the end of the call */
  WIRE_CANCEL,    /* daemon: stop this call soon; its RESULT still comes */
  WIRE_LOG,       /* child: a log line */
  WIRE_PING,      /* daemon: are you there; the child gives it back at once */
  WIRE_KIND_END
};

enum { WIRE_WANT_ACK = 1 };

/* A batch of 64 elements with 500 tokens each: an offer with every member known has about 160. */
enum { WIRE_ANSWER_TOKENS = 64 * 500 }; /* of an ITEM and a RESULT; other bodies: JSON_MAX_TOKENS */

struct wire_frame {
  uint32_t call;
  uint16_t kind, flags;
  const char *body; /* NUL-ended; borrowed from the buffer until the next wire_next or wire_feed */
  size_t len;
};

/* A byte buffer that is filled at one end and drained at the other. */
struct wire_buf {
  char *at;
  size_t start, end, cap;
};

void wire_buf_free (struct wire_buf *b); /* zeroes what it held */

/* Append one frame.  -1 only for a body that is too long. */
int wire_put (struct wire_buf *out, enum wire_kind kind, uint32_t call, uint16_t flags, const void *body,
              size_t len, struct err *e);
int wire_put_json (struct wire_buf *out, enum wire_kind kind, uint32_t call, uint16_t flags,
                   const json_t *body, struct err *e);
int wire_put_secret (struct wire_buf *out, uint32_t call, const char *name, const void *bytes, size_t len,
                     struct err *e);

/* Append bytes that were read. */
void wire_feed (struct wire_buf *in, const void *bytes, size_t len);
/* 1: *f is the next frame; 0: more bytes are needed; -1: the peer broke the protocol. */
int wire_next (struct wire_buf *in, struct wire_frame *f, struct err *e);
/* Non-blocking transfer: 1 something moved, 0 would block, -1 closed or broken (e says which). */
int wire_read (int fd, struct wire_buf *in, struct err *e);
int wire_write (int fd, struct wire_buf *out, struct err *e);
/* Splits a SECRET body.  -1 when there is no NUL. */
int wire_secret (const struct wire_frame *f, const char **name, const char **bytes, size_t *len);

#endif
