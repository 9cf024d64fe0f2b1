/* strike.h - one call under one fault
 *
 * A fault is armed for the k-th request of a call, whatever that is, for k = 0, 1, ... until the
 * call makes no more requests.  So the kit need not know a cloud's endpoints: what it checks is
 * what must hold wherever the fault strikes.
 */
#ifndef GPUB_STRIKE_H
#define GPUB_STRIKE_H

#include "sdk/conform/conform.h"

enum { FAULT_DEADLINE_MS = 3000, SOON_MS = 1000 };

struct strike {
  const char *call;
  const char *fault;
  const struct made *m; /* what the call is about, NULL for a create or a list */
};

/* The arguments that the call takes, but for a create's; the caller owns them. */
json_t *strike_args (const struct strike *x);
/* How many requests the call makes in a new process; at least 1, for a process that caches; 0 when
 * there is none.  Takes args, as does strike. */
int strike_requests (struct test *t, const struct strike *x, json_t *args);
/* In a new process, so that every strike meets the same requests.  NULL: it could not be tried. */
struct answer *strike (struct test *t, const struct strike *x, int at, json_t *args);

#endif
