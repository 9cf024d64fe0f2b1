/* sock.h - ZeroMQ sockets with their options in one table, set before anything is bound or
 * connected */
#ifndef GPUB_SOCK_H
#define GPUB_SOCK_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* ZMQ_ZAP_ENFORCE_DOMAIN is a draft constant and so not in a distribution's zmq.h, but the library
 * honours the number; without it a server with no ZAP handler lets everybody in. */
enum { SOCK_ENFORCE_DOMAIN = 93 };

struct sock_opt {
  int name;
  int64_t value;
};

/* domain NULL: no ZAP.  LINGER is 0 unless the table says otherwise. */
void *sock_new (void *ctx, int type, const struct sock_opt *opts, size_t n, const char *domain,
                struct err *e);
/* Keeps errno; NULL is fine. */
void sock_close (void *s, int linger_ms);
int sock_fd (void *s);
/* ZMQ_EVENTS: reading it also lets the socket do its pending work. */
int sock_events (void *s);
/* A context whose threads take no signal. */
void *sock_context (struct err *e);

#endif
