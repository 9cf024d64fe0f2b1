/* monitor.h - what happened to a socket's connections */
#ifndef GPUB_MONITOR_H
#define GPUB_MONITOR_H

#include <stdint.h>

#include "core/err.h"

struct monitor_event {
  int what;       /* ZMQ_EVENT_* */
  uint32_t value; /* a file descriptor, an errno or a status, by the event */
};

/* The socket to read events from.  Close it after the watched one. */
void *monitor_new (void *ctx, void *sock, int events, struct err *e);
/* Never waits: 1 with an event, 0 when there is none. */
int monitor_next (void *mon, struct monitor_event *ev);

#endif
