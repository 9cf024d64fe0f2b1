/* match_check.c - one offer against one query
 *
 * First what the offer is, then whether it can be had, its price last: so that "price" means that
 * nothing else stands in the way, and the cheapest of those is the price somebody would have to
 * pay.
 */
#include "config.h"

#include <gpubroker/provider.h>
#include <string.h>

#include "core/match_int.h"

const char *
exclusion_name (enum exclusion x)
{
  static const char *const names[EXCL_END] = {
    [EXCL_NONE] = "none",
    [EXCL_GPU_MODEL] = "gpu-model",
    [EXCL_GPU_COUNT] = "gpu-count",
    [EXCL_VRAM] = "vram",
    [EXCL_VCPUS] = "vcpus",
    [EXCL_RAM] = "ram",
    [EXCL_DISK] = "disk",
    [EXCL_MARKET] = "market",
    [EXCL_KIND] = "kind",
    [EXCL_ARCH] = "arch",
    [EXCL_INTERCONNECT] = "interconnect",
    [EXCL_DRIVER] = "driver",
    [EXCL_REGION] = "region",
    [EXCL_EXCLUDED] = "excluded",
    [EXCL_LOCALITY] = "locality-mismatch",
    [EXCL_FABRIC] = "fabric",
    [EXCL_NO_KUBERNETES] = "no-kubernetes",
    [EXCL_STOCK] = "stock",
    [EXCL_CAPACITY_MEMORY] = "capacity-memory",
    [EXCL_QUOTA] = "quota",
    [EXCL_BALANCE] = "balance",
    [EXCL_PROVIDER_DOWN] = "provider-down",
    [EXCL_PROVIDER_PAUSED] = "provider-paused",
    [EXCL_STALE] = "stale",
    [EXCL_PRICE_UNKNOWN] = "price-unknown",
    [EXCL_PRICE] = "price",
  };

  return names[x];
}

static inline bool
model_fits (const struct filter_gpu *want, const struct offer *x)
{
  if (want->any)
    return x->gpus && !x->gpu.fraction;
  return x->gpus && want->gpu.family == x->gpu.family && gpu_matches (&want->gpu, &x->gpu);
}

static inline enum exclusion
check_gpu (const struct filter *f, const struct offer *x)
{
  enum exclusion nearest_miss = EXCL_GPU_MODEL;

  if (!f->ngpus)
    return f->gpu_said || x->gpus ? EXCL_NONE : EXCL_GPU_MODEL;
  for (uint32_t i = 0; i < f->ngpus; i++) {
    const struct filter_gpu *want = &f->gpus[i];

    if (want->none && !x->gpus)
      return EXCL_NONE;
    if (want->none || !model_fits (want, x))
      continue;
    if (x->gpus >= want->min && (!want->max || x->gpus <= want->max))
      return EXCL_NONE;
    nearest_miss = EXCL_GPU_COUNT;
  }
  return nearest_miss;
}

static bool
disk_fits (const struct filter *f, const struct offer *x)
{
  return f->disk_gib <= (x->disk_max_gib ? x->disk_max_gib : x->disk_gib);
}

static enum exclusion
check_size (const struct filter *f, const struct offer *x)
{
  if (f->vram_gib || f->total_vram_gib) {
    uint32_t vram = offer_vram_gib (x);

    if (!x->gpus || vram < f->vram_gib || vram * x->gpus < f->total_vram_gib)
      return EXCL_VRAM;
  }
  if (x->vcpus < f->vcpus)
    return EXCL_VCPUS;
  if (x->ram_gib < f->ram_gib)
    return EXCL_RAM;
  return f->disk_gib && !disk_fits (f, x) ? EXCL_DISK : EXCL_NONE;
}

static enum exclusion
check_sort (const struct query *q, const struct offer *x)
{
  const struct filter *f = q->f;

  if (f->market != MARKET_ANY && x->market != f->market)
    return EXCL_MARKET;
  if (f->kind != KIND_ANY && x->kind != f->kind)
    return EXCL_KIND;
  if (q->arch && x->arch != q->arch)
    return EXCL_ARCH;
  if (q->interconnect && !q->interconnect[x->interconnect] && (!q->form || x->gpu.form != q->form))
    return EXCL_INTERCONNECT;
  return x->driver < q->min_driver ? EXCL_DRIVER : EXCL_NONE;
}

static bool
in_list (const uint16_t *at, size_t n, uint16_t atom)
{
  for (size_t i = 0; i < n; i++)
    if (at[i] == atom)
      return true;
  return false;
}

static bool
in_places (const struct place *at, size_t n, const struct offer *x)
{
  for (size_t i = 0; i < n; i++)
    if (at[i].region == x->region && (!at[i].cloud || at[i].cloud == x->cloud))
      return true;
  return false;
}

static bool
is_home (const struct query *q, const struct query_prov *p, const struct offer *x)
{
  return strcmp (p->prov->name, q->c->home_provider) == 0 && q->home.region == x->region &&
         q->home.cloud == x->cloud;
}

static enum exclusion
check_place (const struct query *q, const struct query_prov *p, const struct offer *x)
{
  if ((q->region && !q->region[x->region]) || (q->country && !q->country[x->country]))
    return EXCL_REGION;
  if (p->excluded || in_list (p->excluded_clouds.at, p->excluded_clouds.n, x->cloud))
    return EXCL_EXCLUDED;
  if (!p->wanted && !in_list (p->wanted_clouds.at, p->wanted_clouds.n, x->cloud))
    return EXCL_EXCLUDED;
  if (q->f->locality && !in_places (p->locality.at, p->locality.n, x))
    return EXCL_LOCALITY;
  if (q->c->cluster_locality && !in_places (p->near.at, p->near.n, x))
    return EXCL_LOCALITY;
  if (q->c->home_provider && !is_home (q, p, x))
    return EXCL_LOCALITY;
  if (q->fabric && q->fabric[x->fabric])
    return EXCL_FABRIC;
  return q->c->kubernetes && !x->kubernetes ? EXCL_NO_KUBERNETES : EXCL_NONE;
}

static bool
in_areas (const struct query_prov *p, const struct offer *x)
{
  for (size_t i = 0; i < p->refusals.n; i++)
    if ((!p->refusals.at[i].region || p->refusals.at[i].region == x->region) &&
        p->refusals.at[i].spot == (x->market == MARKET_SPOT))
      return true;
  return false;
}

static enum exclusion
check_memory (const struct query *q, const struct query_prov *p, const struct offer *x)
{
  if (keyset_has (&q->blocked, x->key))
    return EXCL_CAPACITY_MEMORY;
  if (p->broke)
    return EXCL_BALANCE;
  if (p->refused &&
      (keyset_has (&q->blocked, memory_account_key (x->key, p->prov->name)) || in_areas (p, x)))
    return EXCL_QUOTA;
  return EXCL_NONE;
}

static enum exclusion
check_supply (const struct query *q, const struct query_prov *p, const struct offer *x)
{
  enum exclusion code;

  if (x->availability == GPUB_AVAIL_NONE)
    return EXCL_STOCK;
  code = check_memory (q, p, x);
  if (code)
    return code;
  if (p->state)
    return p->state;
  if (p->barred || in_list (p->barred_regions.at, p->barred_regions.n, x->region))
    return EXCL_PROVIDER_DOWN;
  return x->seen_s < q->oldest_s ? EXCL_STALE : EXCL_NONE;
}

static enum exclusion
check_price (const struct query *q, const struct offer *x, uint64_t *price)
{
  *price = offer_price (x, q->f->disk_gib, q->o->conf.disk_gib);
  if (*price == OFFER_NO_PRICE)
    return EXCL_PRICE_UNKNOWN;
  if (*price > q->max_price)
    return EXCL_PRICE;
  if (q->max_gpu_price != UINT64_MAX && *price > q->max_gpu_price * (x->gpus ? x->gpus : 1))
    return EXCL_PRICE;
  return EXCL_NONE;
}

enum exclusion
query_check (const struct query *q, const struct query_prov *p, const struct offer *x,
             uint64_t *price)
{
  enum exclusion code = check_gpu (q->f, x);

  if (!code)
    code = check_size (q->f, x);
  if (!code)
    code = check_sort (q, x);
  if (!code)
    code = check_place (q, p, x);
  if (!code)
    code = check_supply (q, p, x);
  return code ? code : check_price (q, x, price);
}

bool
query_tried (const struct query *q, const char *id)
{
  for (size_t i = 0; i < q->c->ntried; i++)
    if (strcmp (q->c->tried[i], id) == 0)
      return true;
  return false;
}
