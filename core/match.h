/* match.h - which offers fit, in which order, and why the others do not
 *
 * Pure: an offer table, a filter and a context in, an order and reasons out.  Only codes are
 * counted while matching; texts are written when somebody asks for them.
 */
#ifndef GPUB_MATCH_H
#define GPUB_MATCH_H

#include "core/filter.h"
#include "core/memory.h"
#include "core/offers.h"

enum exclusion {
  EXCL_NONE,
  EXCL_GPU_MODEL,
  EXCL_GPU_COUNT,
  EXCL_VRAM,
  EXCL_VCPUS,
  EXCL_RAM,
  EXCL_DISK,
  EXCL_MARKET,
  EXCL_KIND,
  EXCL_ARCH,
  EXCL_INTERCONNECT,
  EXCL_DRIVER,
  EXCL_REGION,
  EXCL_EXCLUDED,
  EXCL_LOCALITY,
  EXCL_FABRIC,
  EXCL_NO_KUBERNETES,
  EXCL_STOCK,
  EXCL_CAPACITY_MEMORY,
  EXCL_QUOTA,
  EXCL_BALANCE,
  EXCL_PROVIDER_DOWN,
  EXCL_PROVIDER_PAUSED,
  EXCL_STALE,
  EXCL_PRICE_UNKNOWN,
  EXCL_PRICE,
  EXCL_END
};
const char *exclusion_name (enum exclusion x); /* "gpu-model" */

struct match_locality {
  const char *name;
  const char *const *members; /* "PROVIDER:REGION" or "PROVIDER/SUBCLOUD:REGION" */
  size_t nmembers;
};

struct match_context {
  int64_t now_ms;
  const struct memory *memory; /* NULL: none */
  const struct match_locality *localities;
  size_t nlocalities;
  bool kubernetes;              /* the machine has to host Kubernetes */
  const char *cluster;          /* its name, for the texts; NULL: none */
  const char *cluster_locality; /* a locality of the configuration; NULL: none */
  /* With cross_node = required: where its first node is; NULL: it has none yet. */
  const char *home_provider, *home_cloud, *home_region;
  bool cross_node;      /* pods talk across machines: the fabric counts */
  const char *cni;      /* "calico-vxlan", …; NULL: not known */
  uint64_t cap_udollar; /* what the budget still allows per hour; UINT64_MAX: no bound */
  int64_t ttl_ms;       /* for max_cost; 0: none */
  /* An attempt of this rent already tried these offer ids. */
  const char *const *tried;
  size_t ntried;
};
#define MATCH_CONTEXT_INIT                                                                         \
 {                                                                                                 \
  .cap_udollar = UINT64_MAX                                                                        \
 }

struct match_pick {
  struct offer_at offer;
  uint64_t price_udollar; /* all in, with the disk that was asked for */
};

struct match {
  struct match_pick *at; /* best first */
  size_t n;
  uint32_t considered;
  uint32_t excluded[EXCL_END];
  struct match_pick
      nearest; /* cheapest of those that only the price excluded; offer.hot NULL: none */
};

/* -1 only for a filter that names a provider or locality that does not exist.  An unknown region
 * matches nothing. */
int match_run (const struct offers *o, const struct filter *f, const struct match_context *c,
               struct match *m, struct err *e);
void match_done (struct match *m);

/* Calls back for every offer that is not taken, in the order of the table; non-zero from it ends
 * the walk. */
typedef int match_rejected (void *ctx, const struct offer_at *offer, enum exclusion code,
                            const char *text);
int match_explain (const struct offers *o, const struct filter *f, const struct match_context *c,
                   match_rejected *fn, void *ctx, struct err *e);
/* One offer: its code, and text (at least 160 bytes) when it is excluded. */
enum exclusion match_one (const struct offers *o, const struct filter *f,
                          const struct match_context *c, const struct offer_at *offer, char *text,
                          size_t size);

/* {"gpu-model":12,…}, codes that excluded nothing left out.  Caller owns it. */
json_t *match_excluded_json (const struct match *m);
/* For people, when nothing fits: "no offer of 812 matches: 640 gpu-model, 12 price (cheapest that
 * fits: $2.49/h …)". */
void match_summary (const struct match *m, char *out, size_t size);

#endif
