/* child.h - what every child of gpubrokerd does first
 *
 * Dies with the daemon, keeps no core, has only a short environment, and turns its own stdout and stderr
 * into LOG frames, so that a library that prints can neither break the framing nor flood the log.
 */
#ifndef GPUB_CHILD_H
#define GPUB_CHILD_H

#include "core/wire.h"

/* Call before any thread starts and before any library is initialised.  0, or -1 when fd 3 is no socket. */
int child_confine (struct err *e);
/* The HELLO body for a role: "provider", "ssh" or "kube".  Caller owns it. */
json_t *child_hello (const char *role);
/* fd 0 becomes /dev/null, 1 and 2 the write end of a pipe whose read end (non-blocking) is returned. */
int child_capture_stdio (struct err *e);

#endif
