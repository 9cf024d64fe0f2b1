/* api.h - shared by the api_*.c files: one handler a verb */
#ifndef GPUB_API_H
#define GPUB_API_H

#include "core/broker.h"
#include "core/json.h"

/* One request while it is handled. */
struct ask {
  struct broker *b;
  const struct bus_request *r;
  struct bus_ticket ticket;
  json_t *body;
  char hash[65];     /* of the canonical body, for mutations */
  const char *key;   /* NULL: none */
  const char *owner; /* on whose behalf; the principal, or --owner by an admin */
};

typedef void api_fn (struct ask *q);

/* api_read.c */
api_fn api_ping, api_leases, api_lease, api_wait, api_events, api_providers, api_clusters, api_logs;
/* api_offers.c */
api_fn api_offers, api_explain;
/* api_boot.c: `logs` of the boot; it answers later */
void api_boot_log (struct ask *q, struct lease *l);
/* api_cost.c */
api_fn api_cost;
/* api_rent.c */
api_fn api_rent;
/* In the books, pending; takes request. */
struct lease *api_new_lease (struct ask *q, json_t *request, int64_t reserved);
/* Of the asker's own; NULL: that name is free. */
struct lease *api_live_with_name (struct ask *q, const char *name);
/* api_host.c */
api_fn api_join_host;
/* api_words.c */
int api_words (struct ask *q);                 /* -1: a rent that says something wrong; answered */
const char *api_cluster (const struct ask *q); /* the one a rent names, or the usual one */
/* Is the member, where there is one, a span of time?  false: refused. */
bool api_span (struct ask *q, const json_t *in, const char *member, int64_t least);
/* api_lease.c */
api_fn api_join, api_release, api_extend, api_cancel, api_retry, api_verify, api_ssh_info;
/* api_kubeconfig.c */
api_fn api_kubeconfig;
/* api_admin.c */
api_fn api_pause, api_resume, api_check, api_reload, api_render;
/* api_orphans.c */
api_fn api_orphans, api_orphan_adopt, api_orphan_ignore, api_orphan_release;

/* The lease that X names, if the asker may see it; else the error is sent and NULL returned.  *old:
 * the caller frees it (it came from the store and is over).  for_change: the asker must own it or
 * be admin. */
struct lease *api_find (struct ask *q, const char *x, bool for_change, struct lease **old);
void api_final (struct ask *q, json_t *body); /* takes body */
void api_refuse (struct ask *q, const char *code, const char *hint, const char *fmt, ...)
    PRINTF (4, 5);
/* Starts an operation and answers `accepted`; extra (taken, may be NULL) is merged into that
 * answer.  Who did not ask for a single reply hears of its end. */
struct op *api_accept (struct ask *q, const char *verb, const struct lease *l, json_t *extra);

void api_again (struct ask *q, struct lease *l); /* runs the pipeline of a kept lease once more */
json_t *api_log_lines (struct broker *b, int64_t lease);
json_t *api_order (struct broker *b, const struct match *m, uint32_t disk_gib, size_t from,
                   size_t limit);
json_t *api_rejected (struct broker *b, const struct filter *f, const struct match_context *c,
                      size_t limit);

#endif
