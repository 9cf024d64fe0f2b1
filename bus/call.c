/* call.c - gpubc_call: one request to its end, across lost replies and restarts of the broker
 *
 * Reads are simply asked again; a mutation with a key may be too, since the broker does it once and
 * answers with the same operation.
 */
#include "config.h"

#include <string.h>

#include "bus/client.h"
#include "core/clock.h"
#include "core/json.h"

enum {
  SILENCE_MS = 5000,  /* a read without any reply for so long is sent again, once */
  RESTART_MS = 15000, /* how long a broker may take to come back */
  STEP_MS = 250,
};

struct call {
  const char *verb, *json;
  char id[65];
  int64_t end;       /* < 0: none */
  int64_t ask_again; /* boot ms; 0: not any more */
  int repeatable;
};

static int
is_read (const char *verb)
{
  static const char *const reads[] = { "ping", "offers",   "leases",    "lease",    "explain",
                                       "wait", "events",   "providers", "clusters", "logs",
                                       "cost", "ssh-info", "kubeconfig" };

  for (size_t i = 0; i < N_ELEMENTS (reads); i++)
    if (strcmp (verb, reads[i]) == 0)
      return 1;
  return 0;
}

static int
has_key (const char *json)
{
  AUTO_JSON json_t *j = json_parse (json, strlen (json), NULL);

  return json_str (j, "key", NULL) || json_str (j, "name", NULL);
}

static int64_t
call_left (const struct call *k)
{
  int64_t now = clock_boot_ms (), until = k->end;

  if (k->ask_again && (until < 0 || k->ask_again < until))
    until = k->ask_again;
  return until < 0 ? -1 : until > now ? until - now : 0;
}

static int
is_over (const struct call *k)
{
  return k->end >= 0 && clock_boot_ms () >= k->end;
}

/* The broker went away: wait until it is back, then ask the same again. */
static int
resume (struct gpubc *c, struct call *k)
{
  int64_t give_up = clock_boot_ms () + RESTART_MS;
  int rc = GPUBC_UNREACHABLE;

  while (rc == GPUBC_UNREACHABLE && clock_boot_ms () < give_up && !is_over (k)) {
    rc = client_connect (c, STEP_MS);
    if (rc == GPUBC_UNREACHABLE && link_pause (&c->link, STEP_MS) == LINK_INTERRUPTED)
      return client_fail (c, GPUBC_INTERRUPTED, "interrupted");
  }
  if (rc == GPUBC_UNREACHABLE && is_over (k))
    return client_fail (c, GPUBC_TIMEOUT, "the broker went away and did not come back in time");
  return rc == GPUBC_ACCEPTED ? client_put (c, k->verb, k->json, k->id) : rc;
}

/* GPUBC_ACCEPTED to go on, else the outcome. */
static int
after (struct gpubc *c, struct call *k, int outcome)
{
  switch (outcome) {
  case GPUBC_TIMEOUT:
    if (is_over (k) || !k->ask_again)
      return GPUBC_TIMEOUT;
    k->ask_again = 0;
    return client_put (c, k->verb, k->json, k->id);
  case GPUBC_UNREACHABLE:
    return k->repeatable ? resume (c, k) : outcome;
  default:
    return outcome;
  }
}

static int
start (struct gpubc *c, struct call *k, int64_t timeout_ms)
{
  int64_t now = clock_boot_ms ();
  int read = is_read (k->verb);

  k->end = timeout_ms < 0 ? -1 : now + timeout_ms;
  k->ask_again = read ? now + SILENCE_MS : 0;
  k->repeatable = read || has_key (k->json);
  return gpubc_send (c, k->verb, k->json, k->id);
}

int
gpubc_call (struct gpubc *c, const char *verb, const char *json, int64_t timeout_ms,
            int (*progress) (void *ctx, int kind, const struct gpubc_reply *r), void *ctx,
            struct gpubc_reply *r)
{
  struct call k = { .verb = verb, .json = json };
  int rc = start (c, &k, timeout_ms);

  while (rc == GPUBC_ACCEPTED) {
    rc = gpubc_recv (c, k.id, call_left (&k), r);
    if (rc == GPUBC_ACCEPTED || rc == GPUBC_PROGRESS) {
      k.ask_again = 0;
      rc = progress && progress (ctx, rc, r) ? client_fail (c, GPUBC_INTERRUPTED, "interrupted")
                                             : GPUBC_ACCEPTED;
    } else
      rc = after (c, &k, rc);
  }
  return client_lend (c, rc, r);
}
