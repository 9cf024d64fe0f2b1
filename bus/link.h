/* link.h - a client's connection: up, refused, or why not
 *
 * libzmq reconnects in silence; a monitor beside the socket tells what really goes on.
 */
#ifndef GPUB_LINK_H
#define GPUB_LINK_H

#include <signal.h>
#include <stdint.h>

#include "bus/frame.h"

enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_UP, LINK_ABSENT, LINK_REFUSED, LINK_LOST };
enum link_wake { LINK_INPUT, LINK_CHANGED, LINK_TIMEOUT, LINK_INTERRUPTED, LINK_BROKEN };

struct link {
  void *ctx, *sock, *mon;
  int interrupt; /* eventfd: writing to it is all that a signal handler does */
  enum link_state state;
};

int link_init (struct link *l);
void link_done (struct link *l);

/* A fresh socket; the verdict comes through link_wait.  -1 with errno. */
int link_open (struct link *l, const char *endpoint);
/* Waits for a message on `on` (NULL: the link itself), a change of state, the end of the time (< 0:
 * none) or link_interrupt. */
enum link_wake link_wait (struct link *l, void *on, int64_t timeout_ms);
/* Nothing but time passes, unless interrupted. */
enum link_wake link_pause (struct link *l, int ms);
/* Learns what happened since the last wait. */
void link_catch_up (struct link *l);
void link_interrupt (struct link *l); /* async-signal-safe */

/* Why nobody answers there, for people: asks the kernel once more. */
int link_diagnose (const char *endpoint, char *text, size_t size); /* errno */

/* One context for all clients of a process. */
void *link_context (void);
void link_context_done (void);

#endif
