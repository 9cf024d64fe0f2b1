/* match_int.h - a filter and its context, made ready for a table; for match*.c alone
 *
 * Everything that is a name becomes a number or a byte per atom, so that checking an offer compares
 * nothing longer.
 */
#ifndef GPUB_MATCH_INT_H
#define GPUB_MATCH_INT_H

#include "core/match.h"
#include "core/offers_int.h"

struct keyset { /* keys of failure memory; 0 is a free slot */
  uint64_t *slots;
  size_t mask; /* slots - 1; slots NULL: empty */
};

struct place {
  uint16_t cloud; /* 0: any */
  uint16_t region;
};

struct area {
  uint16_t region; /* 0: any */
  bool spot;
};

struct query_prov { /* what the query means for one provider */
  struct offers_prov *prov;
  enum exclusion state; /* EXCL_NONE while it is up */
  const struct memory_entry *barred, *broke;
  bool wanted, excluded; /* as a whole */
  VEC (uint16_t) wanted_clouds, excluded_clouds, barred_regions;
  bool refused;                /* of something for want of quota */
  VEC (struct area) refusals;  /* of all in an area */
  VEC (struct place) locality; /* the filter's */
  VEC (struct place) near;     /* the cluster's */
};

struct query {
  const struct offers *o;
  const struct filter *f;
  const struct match_context *c;
  struct query_prov *provs; /* beside o->provs */
  /* A byte per atom; NULL: not asked. */
  uint8_t *region, *country, *interconnect, *fabric;
  enum gpu_form form; /* that interconnect asks for */
  uint32_t min_driver, oldest_s;
  enum offer_arch arch;
  struct place home;
  uint64_t max_price, max_gpu_price; /* UINT64_MAX: no bound */
  struct keyset blocked, good;
};

/* -1 when it names a provider or a locality that does not exist; nothing to free then. */
int query_init (struct query *q, const struct offers *o, const struct filter *f,
                const struct match_context *c, struct err *e);
void query_done (struct query *q);

/* The heart: why an offer is not taken; the price it has for this query. */
enum exclusion query_check (const struct query *q, const struct query_prov *p,
                            const struct offer *x, uint64_t *price);
/* `tried` is looked at only for what is taken otherwise. */
bool query_tried (const struct query *q, const char *id);

static inline bool
keyset_has (const struct keyset *s, uint64_t key)
{
  if (!s->slots)
    return false;
  for (size_t i = key & s->mask;; i = (i + 1) & s->mask) {
    if (s->slots[i] == key)
      return true;
    if (!s->slots[i])
      return false;
  }
}

/* Why, with the values that decided. */
void match_text (const struct query *q, const struct query_prov *p, const struct offer_at *a,
                 enum exclusion code, uint64_t price, char *out, size_t size);
/* "$2.50" into a buffer of at least 24 bytes. */
const char *dollars_text (uint64_t udollar, char *out);

/* Best first; equal keys keep their order. */
struct ranked {
  uint64_t key;
  uint32_t at;
};
void rank_sort (struct ranked *r, size_t n);

#endif
