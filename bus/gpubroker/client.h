/* gpubroker/client.h - libgpubroker: ask gpubrokerd from C
 *
 * A client is used by one thread at a time.  Bodies are JSON text; what is in them is docs/protocol.md.
 * Strings that a call returns belong to the client and live until its next call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GPUBROKER_CLIENT_H
#define GPUBROKER_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
# define GPUBC_EXPORT __attribute__ ((__visibility__ ("default")))
#else
# define GPUBC_EXPORT
#endif

struct gpubc; /* a connection */

/* Reply kinds and outcomes. */
#define GPUBC_ACCEPTED    1
#define GPUBC_PROGRESS    2
#define GPUBC_FINAL       3
#define GPUBC_ERROR       4  /* the broker refused or failed the request: see json */
#define GPUBC_TIMEOUT     5  /* nothing within the time given; the request goes on */
#define GPUBC_UNREACHABLE 6  /* no broker answers at the endpoint, or it went away */
#define GPUBC_INVALID     7  /* the caller's arguments, or a reply that breaks the protocol */
#define GPUBC_INTERRUPTED 8  /* gpubc_interrupt; other signals do not end a wait */

struct gpubc_reply {
  uint64_t size;
  const char *json; /* NUL-ended object */
  uint64_t len;
  const char *id; /* the request id it answers */
};

/* endpoint NULL: $GPUBROKER_ENDPOINT, else ipc:///run/gpubroker/bus.  NULL only when out of memory. */
GPUBC_EXPORT struct gpubc *gpubc_new (const char *endpoint);
GPUBC_EXPORT void gpubc_free (struct gpubc *c);
/* Text of what went wrong last, for people; never NULL. */
GPUBC_EXPORT const char *gpubc_why (const struct gpubc *c);

/* Sends a request.  *id (65 bytes) receives its request id.  GPUBC_ACCEPTED when it left this process;
 * GPUBC_ERROR when the broker does not let this user in. */
GPUBC_EXPORT int gpubc_send (struct gpubc *c, const char *verb, const char *json, char id[65]);
/* Waits for the next reply to id (NULL: to anything).  timeout_ms < 0: no limit. */
GPUBC_EXPORT int gpubc_recv (struct gpubc *c, const char *id, int64_t timeout_ms, struct gpubc_reply *r);
/* send + recv until FINAL, ERROR or the end of the time; progress is called for ACCEPTED and PROGRESS and may be
 * NULL; non-zero from it ends the wait with GPUBC_INTERRUPTED.  Reads that get no answer are sent again once; when the
 * broker restarts under the call, reads and mutations with a key are sent again, so a call survives it. */
GPUBC_EXPORT int gpubc_call (struct gpubc *c, const char *verb, const char *json, int64_t timeout_ms,
                             int (*progress) (void *ctx, int kind, const struct gpubc_reply *r), void *ctx,
                             struct gpubc_reply *r);
/* From a signal handler: the call that waits now returns GPUBC_INTERRUPTED. */
GPUBC_EXPORT void gpubc_interrupt (struct gpubc *c);
/* A fresh idempotency key (random uuid) into 37 bytes. */
GPUBC_EXPORT void gpubc_key (char key[37]);

/* Events: subscribe to topic prefixes ("" for all, "beat" for signs of life) on an events endpoint (from ping; NULL:
 * another topic on the same).  Then gpubc_event waits for one and returns GPUBC_PROGRESS:
 * *topic and json live until the next call.  epoch and seq let the caller see gaps and ask `events` for what it missed. */
GPUBC_EXPORT int gpubc_subscribe (struct gpubc *c, const char *endpoint, const char *topic);
GPUBC_EXPORT int gpubc_event (struct gpubc *c, int64_t timeout_ms, const char **topic, uint64_t *epoch,
                              uint64_t *seq, struct gpubc_reply *r);

#ifdef __cplusplus
}
#endif
#endif
