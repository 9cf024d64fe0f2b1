/* kube.h - one call of gpubrokerd on its thread, and the calls there are
 *
 * A call owns everything it touches and blocks only its own thread.  Every wait goes through
 * call_sleep or an api_* function, so a CANCEL and the deadline end it within a second.
 */
#ifndef GPUB_KUBE_H
#define GPUB_KUBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

struct kube_call {
  uint32_t id;
  char name[24];
  json_t *args, *cluster; /* cluster: args.cluster, or beside args */
  char *kubeconfig;       /* text; zeroed with the call */
  size_t kubeconfig_len;
  int64_t deadline_ms; /* boot clock */
  atomic_bool cancelled;
};

/* Milliseconds until the deadline, at least 0. */
int64_t call_ms_left (const struct kube_call *c);
/* -1 when the call was cancelled or its deadline has passed. */
int call_check (const struct kube_call *c, struct err *e);
/* As call_check, after at most ms. */
int call_sleep (const struct kube_call *c, int64_t ms, struct err *e);
/* One progress item; state is start, ok, fail or wait. */
void call_progress (const struct kube_call *c, const char *step, const char *state,
                    const char *text);
void call_secret (const struct kube_call *c, const char *name, const void *bytes, size_t len);

/* The value of the RESULT (a new reference), or NULL after filling e. */
typedef json_t *kube_call_fn (struct kube_call *c, struct err *e);

kube_call_fn kube_lint, kube_mint, kube_invalidate, kube_manifests, kube_verify, kube_drain,
    kube_delete_node, kube_health, kube_render, kube_reach;

/* NULL for a name that is no call.  offline: it needs no kubeconfig. */
kube_call_fn *kube_call_find (const char *name, bool *offline);
/* Serves fd 3 until the daemon closes it and the last call has ended. */
int kube_serve (int stdio_fd, struct err *e);

#endif
