/* ssh_call.h - one CALL of the daemon: a probe, or a run that is started or attached to and
 * followed
 *
 * A call needs one session for each round: one for each user name that is tried, one for each
 * stretch of following.  Between rounds it holds none.
 */
#ifndef GPUB_SSH_CALL_H
#define GPUB_SSH_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "core/wire.h"

struct call;

struct call_secrets { /* each may be NULL, and is copied */
  const char *token;
  size_t token_len;
  const char *key; /* opens this one machine, in place of the installation's */
  size_t key_len;
};

/* NULL: the arguments are wrong. */
struct call *call_new (uint32_t id, const json_t *body, const struct call_secrets *s,
                       struct err *e);
void call_free (struct call *c);

uint32_t call_id (const struct call *c);
/* When it wants to be looked at next, on clock_boot_ms; it may need a session from then on. */
int64_t call_due (const struct call *c);
bool call_has_session (const struct call *c);
bool call_wants (const struct call *c, struct curl_waitfd *w);
void call_cancel (struct call *c);

struct call_world {
  CURLM *multi;
  const char *key; /* outlives the call */
  size_t key_len;
  bool may_connect; /* a slot is free */
  struct wire_buf *out;
};

/* True when the call is over and its RESULT is in w->out. */
bool call_step (struct call *c, const struct call_world *w);

#endif
