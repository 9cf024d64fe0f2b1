/* static.h - machines one already owns: each is one offer while nobody has claimed it
 *
 * hosts.c reads what the configuration says exists; claims.c keeps who has what, in the host's
 * durable store; calls.c answers the broker.
 */
#ifndef GPUB_PLUGINS_STATIC_H
#define GPUB_PLUGINS_STATIC_H

#include <pthread.h>

#include "core/vec.h"
#include "plugins/util.h"

enum { ID_MAX = 100 };

struct machine {       /* one of the configuration */
  char id[ID_MAX + 1]; /* its name, else its address; [a-z0-9._-] */
  json_t *conf;        /* as written; price replaced by price_udollar where there is one */
};

struct plant { /* the plugin's self */
  const struct gpub_host *host;
  pthread_mutex_t lock; /* from reading who has a machine to writing who has it now */
  VEC (struct machine) machines;
};

/* Of one call. */
struct visit {
  struct plant *plant;
  struct gpub_call *call;
  struct gpub_error *err;
};

#define SCOPE_DEFAULT "static"

/* hosts.c */
int32_t hosts_read (struct plant *p, const char *text, struct gpub_error *err);
const struct machine *hosts_find (const struct plant *p, const char *id);
const char *conf_scope (const json_t *conf);
uint64_t conf_known (const json_t *conf, const char *member,
                     uint64_t bit); /* bit when the member is there */

/* claims.c.  A claim: {"id","token","name","tags":{},"offer_ref","created_ms","conf":{...}}; conf
 * is the machine as it was when it was claimed, for it may leave the configuration.  The lock must
 * be held. */
int32_t claims_all (struct visit *v, json_t **claims);  /* object: id -> claim */
int32_t claims_read (struct visit *v, json_t **claims); /* takes the lock itself */
int32_t claim_put (struct visit *v, const json_t *claim);
int32_t claim_drop (struct visit *v, const char *id);

/* offers.c.  scopes_done: claims that could be read prove what is absent, else (rc) nothing is
 * known of any zone; only: NULL or the one zone that was asked for. */
int32_t scopes_done (struct visit *v, json_t *claims, const char *only, int32_t rc);

int32_t static_list_offers (void *self, struct gpub_call *call,
                            const struct gpub_offer_query *query, struct gpub_error *err);
/* calls.c */
int32_t static_create (void *self, struct gpub_call *call, const struct gpub_create *want,
                       struct gpub_error *err);
int32_t static_get (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                    struct gpub_error *err);
int32_t static_find (void *self, struct gpub_call *call, const struct gpub_find *want,
                     struct gpub_error *err);
int32_t static_list (void *self, struct gpub_call *call, struct gpub_error *err);
int32_t static_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                       struct gpub_error *err);

#endif
