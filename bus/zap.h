/* zap.h - decides which connections come to be (ZeroMQ RFC 27)
 *
 * libzmq asks over inproc before it lets a peer in, and everybody waits until the loop answers. The
 * handler has to be bound before any socket of the bus: without one an unknown peer is let in.
 */
#ifndef GPUB_ZAP_H
#define GPUB_ZAP_H

#include <sys/types.h>

#include "bus/principal.h"

#define ZAP_DOMAIN "gpubroker"

struct zap {
  void *sock;
  const struct principals *who;
  pid_t refuse_pid; /* 0, or a process that is refused whoever runs it: the self-test's own */
  int full;         /* no more connections for now */
  uint64_t refused;
};

int zap_init (struct zap *z, void *ctx, const struct principals *who, struct err *e);
void zap_done (struct zap *z);
/* Answers what was asked; never waits.  look, unless NULL, is called before each answer: that a
 * connection was made is reported before it asks. */
void zap_pump (struct zap *z, void (*look) (void *ctx), void *ctx);

#endif
