/* match_text.c - why an offer is not taken, for people, with the values that decided */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/match_int.h"

struct reason { /* what a writer of texts may look at */
  const struct query *q;
  const struct query_prov *p;
  const struct offer_at *a;
  uint64_t price;
  char *out;
  size_t size;
};

static void PRINTF (2, 3) say (const struct reason *r, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (r->out, r->size, fmt, ap);
  va_end (ap);
}

const char *
dollars_text (uint64_t udollar, char *out)
{
  uint64_t cents = udollar / 10000;

  if (udollar % 10000)
    snprintf (out, 24, "$%.4f", (double) udollar / 1e6);
  else
    snprintf (out, 24, "$%llu.%02u", (unsigned long long) (cents / 100), (unsigned) (cents % 100));
  return out;
}

static const char *
or_unknown (const char *s)
{
  return s && *s ? s : "not known";
}

static void
join_names (const json_t *list, char *out, size_t size)
{
  const json_t *x;
  size_t i, n = 0;

  *out = '\0';
  json_array_foreach ((json_t *) list, i, x)
    if (n < size)
      n += (size_t) snprintf (out + n, size - n, "%s%s", i ? ", " : "", json_string_value (x));
}

static void
wanted_models (const struct filter *f, char *out, size_t size)
{
  size_t n = 0;

  snprintf (out, size, "a GPU");
  for (uint32_t i = 0; i < f->ngpus && n < size; i++) {
    char name[64];

    gpu_name (&f->gpus[i].gpu, name, sizeof name);
    n += (size_t) snprintf (out + n, size - n, "%s%s", i ? " or " : "",
                            f->gpus[i].any    ? "any GPU"
                            : f->gpus[i].none ? "no GPU"
                                              : name);
  }
}

static void
text_model (const struct reason *r)
{
  const struct offer *x = r->a->hot;
  char have[64], want[100];

  gpu_name (&x->gpu, have, sizeof have);
  wanted_models (r->q->f, want, sizeof want);
  if (!x->gpus)
    say (r, "it has no GPU, wanted %s", want);
  else
    say (r, "it is %s, wanted %s", *have ? have : or_unknown (r->a->text->gpu_raw), want);
}

static void
text_count (const struct reason *r)
{
  char want[80] = "";
  size_t n = 0;

  for (uint32_t i = 0; i < r->q->f->ngpus && n < sizeof want; i++) {
    const struct filter_gpu *g = &r->q->f->gpus[i];

    if (g->max == g->min)
      n += (size_t) snprintf (want + n, sizeof want - n, "%s%u", i ? " or " : "", g->min);
    else if (!g->max)
      n += (size_t) snprintf (want + n, sizeof want - n, "%s%u or more", i ? " or " : "", g->min);
    else
      n += (size_t) snprintf (want + n, sizeof want - n, "%s%u to %u", i ? " or " : "", g->min,
                              g->max);
  }
  say (r, "it has %u, wanted %s", r->a->hot->gpus, want);
}

static void
text_vram (const struct reason *r)
{
  uint32_t gib = offer_vram_gib (r->a->hot);
  const struct filter *f = r->q->f;

  if (!gib)
    say (r, "its GPU memory is not known, wanted %u GiB",
         f->vram_gib ? f->vram_gib : f->total_vram_gib);
  else if (gib < f->vram_gib)
    say (r, "%u GiB per GPU, wanted %u", gib, f->vram_gib);
  else
    say (r, "%u GiB in all GPUs, wanted %u", gib * r->a->hot->gpus, f->total_vram_gib);
}

static void
text_amount (const struct reason *r, uint32_t have, uint32_t want, const char *what)
{
  if (have)
    say (r, "%u %s, wanted %u", have, what, want);
  else
    say (r, "%s not known, wanted %u", what, want);
}

static void
text_vcpus (const struct reason *r)
{
  text_amount (r, r->a->hot->vcpus, r->q->f->vcpus, "vCPUs");
}

static void
text_ram (const struct reason *r)
{
  text_amount (r, r->a->hot->ram_gib, r->q->f->ram_gib, "GiB of memory");
}

static void
text_disk (const struct reason *r)
{
  const struct offer *x = r->a->hot;

  text_amount (r, x->disk_max_gib ? x->disk_max_gib : x->disk_gib, r->q->f->disk_gib,
               x->disk_max_gib ? "GiB of disk at most" : "GiB of disk");
}

static void
text_market (const struct reason *r)
{
  say (r, "it is %s, wanted %s", filter_market_name ((enum filter_market) r->a->hot->market),
       filter_market_name (r->q->f->market));
}

static const char *const kinds[] = { "vm", "baremetal", "container" };
static const char *const archs[] = { "not known", "x86_64", "aarch64", "not known" };

static void
text_kind (const struct reason *r)
{
  say (r, "it is a %s, wanted %s", kinds[r->a->hot->kind], kinds[r->q->f->kind]);
}

static void
text_arch (const struct reason *r)
{
  say (r, "architecture %s, wanted %s", archs[r->a->hot->arch], r->q->f->arch);
}

static const char *
atom_name (const struct reason *r, uint16_t atom)
{
  return or_unknown (r->q->o->atoms.names.at[atom]);
}

static void
text_interconnect (const struct reason *r)
{
  say (r, "interconnect %.40s, wanted %.40s", atom_name (r, r->a->hot->interconnect),
       r->q->f->interconnect);
}

static void
text_driver (const struct reason *r)
{
  say (r, "driver %.40s, wanted %.40s or newer", or_unknown (r->a->text->driver),
       r->q->f->min_driver);
}

static void
text_region (const struct reason *r)
{
  const struct offer *x = r->a->hot;
  bool region = r->q->region && !r->q->region[x->region];
  char want[100];

  join_names (region ? r->q->f->region : r->q->f->country, want, sizeof want);
  say (r, "%s %.40s, wanted %s", region ? "region" : "country",
       atom_name (r, region ? x->region : x->country), want);
}

static void
text_excluded (const struct reason *r)
{
  const char *cloud = r->a->text->cloud;
  bool whole = r->p->excluded || r->p->excluded_clouds.n;

  if (query_tried (r->q, r->a->text->id))
    say (r, "it was already tried for this rent");
  else
    say (r, "%s%s%.40s is %s", r->a->provider, cloud ? "/" : "", cloud ? cloud : "",
         whole ? "excluded" : "not among the providers asked for");
}

static void
text_locality (const struct reason *r)
{
  const struct match_context *c = r->q->c;
  const char *have = atom_name (r, r->a->hot->region);

  if (c->home_provider)
    say (r,
         "%s %.40s, but pods of cluster %s talk across machines and its first node is at %s%s%s "
         "%.40s",
         r->a->provider, have, c->cluster ? c->cluster : "", c->home_provider,
         c->home_cloud && *c->home_cloud ? "/" : "", c->home_cloud ? c->home_cloud : "",
         or_unknown (c->home_region));
  else
    say (r, "%s %.60s is not in locality %s", r->a->provider, have,
         r->q->f->locality ? r->q->f->locality : c->cluster_locality);
}

static void
text_fabric (const struct reason *r)
{
  say (r, "network %.40s drops pod traffic that is not wrapped, and cluster %s uses %s",
       or_unknown (r->a->text->fabric), r->q->c->cluster ? r->q->c->cluster : "", r->q->c->cni);
}

static void
text_kubernetes (const struct reason *r)
{
  say (r, "a %s of %s cannot host Kubernetes", kinds[r->a->hot->kind], r->a->provider);
}

static void
text_stock (const struct reason *r)
{
  say (r, "%s has none left", r->a->provider);
}

static void
text_entry (const struct reason *r, const struct memory_entry *m)
{
  int64_t left = m ? (m->until_ms - r->q->c->now_ms + 999) / 1000 : 0;

  if (!m)
    say (r, "it failed lately");
  else
    say (r, "%s, %u time%s: %.120s; again in %lld s", memory_why_name (m->why), m->times,
         m->times == 1 ? "" : "s", m->text ? m->text : "", (long long) left);
}

static void
text_memory (const struct reason *r)
{
  text_entry (r, memory_blocked (r->q->c->memory, r->a->hot->key, r->q->c->now_ms));
}

static void
text_state (const struct reason *r)
{
  static const char *const why[] = {
    [OFFERS_STARTING] = "has not answered yet",
    [OFFERS_UP] = "is up",
    [OFFERS_DOWN] = "is down",
    [OFFERS_PAUSED] = "is paused",
    [OFFERS_BALANCE] = "is out of money",
    [OFFERS_QUOTA] = "is out of quota",
  };
  const char *text = r->p->prov->state_text;

  say (r, "%s %s%s%.120s", r->a->provider, why[r->p->prov->state], text ? ": " : "",
       text ? text : "");
}

/* Down by its state, or barred after it refused us. */
static void
text_down (const struct reason *r)
{
  const struct memory_entry *m;

  if (r->p->state) {
    text_state (r);
    return;
  }
  m = memory_barred (r->q->c->memory, r->a->provider, r->a->text->region, r->q->c->now_ms);
  say (r, "%s%s%.40s is barred: %.100s", r->a->provider, r->p->barred ? "" : " ",
       r->p->barred ? "" : or_unknown (r->a->text->region),
       m && m->text ? m->text : "it refused us");
}

static void
text_quota (const struct reason *r)
{
  const struct offer_text *x = r->a->text;
  const char *region = x->region, *scope = x->scope;
  const struct memory_what what = {
    x->cloud ? x->cloud : r->p->prov->plugin,
    region,
    x->instance_type,
    r->a->hot->market == MARKET_SPOT ? "spot" : "on-demand",
    r->a->provider,
    region && scope && strcmp (region, scope) == 0 ? region : NULL,
  };

  if (r->p->state == EXCL_QUOTA)
    text_state (r);
  else
    text_entry (r, memory_quota (r->q->c->memory, &what, r->q->c->now_ms));
}

static void
text_balance (const struct reason *r)
{
  if (r->p->broke)
    text_entry (r, r->p->broke);
  else
    text_state (r);
}

static void
text_stale (const struct reason *r)
{
  say (r, "last seen %lld s ago, more than %u s",
       (long long) (r->q->c->now_ms / 1000 - r->a->hot->seen_s), r->q->o->conf.expire_ms / 1000);
}

static void
text_price_unknown (const struct reason *r)
{
  say (r, "%s names no price%s", r->a->provider,
       r->a->hot->price_udollar == OFFER_NO_PRICE ? "" : " for the disk");
}

static void
text_price (const struct reason *r)
{
  const struct query *q = r->q;
  char have[24], want[24];
  uint32_t gpus = r->a->hot->gpus ? r->a->hot->gpus : 1;

  dollars_text (r->price, have);
  if (r->price > q->c->cap_udollar)
    say (r, "%s/h, and the budget has %s/h left", have, dollars_text (q->c->cap_udollar, want));
  else if (r->price <= q->max_price)
    say (r, "%s/h per GPU, wanted at most %s", dollars_text (r->price / gpus, have),
         dollars_text (q->max_gpu_price, want));
  else if (q->f->max_price_per_gpu || r->price <= q->f->max_price_udollar)
    say (r, "%s/h until its end costs more than %s", have,
         dollars_text (q->f->max_cost_udollar, want));
  else
    say (r, "%s/h, wanted at most %s", have, dollars_text (q->f->max_price_udollar, want));
}

void
match_text (const struct query *q, const struct query_prov *p, const struct offer_at *a,
            enum exclusion code, uint64_t price, char *out, size_t size)
{
  static void (*const writers[EXCL_END]) (const struct reason *r) = {
    [EXCL_GPU_MODEL] = text_model,
    [EXCL_GPU_COUNT] = text_count,
    [EXCL_VRAM] = text_vram,
    [EXCL_VCPUS] = text_vcpus,
    [EXCL_RAM] = text_ram,
    [EXCL_DISK] = text_disk,
    [EXCL_MARKET] = text_market,
    [EXCL_KIND] = text_kind,
    [EXCL_ARCH] = text_arch,
    [EXCL_INTERCONNECT] = text_interconnect,
    [EXCL_DRIVER] = text_driver,
    [EXCL_REGION] = text_region,
    [EXCL_EXCLUDED] = text_excluded,
    [EXCL_LOCALITY] = text_locality,
    [EXCL_FABRIC] = text_fabric,
    [EXCL_NO_KUBERNETES] = text_kubernetes,
    [EXCL_STOCK] = text_stock,
    [EXCL_CAPACITY_MEMORY] = text_memory,
    [EXCL_QUOTA] = text_quota,
    [EXCL_BALANCE] = text_balance,
    [EXCL_PROVIDER_DOWN] = text_down,
    [EXCL_PROVIDER_PAUSED] = text_state,
    [EXCL_STALE] = text_stale,
    [EXCL_PRICE_UNKNOWN] = text_price_unknown,
    [EXCL_PRICE] = text_price,
  };
  const struct reason r = { q, p, a, price, out, size };

  if (size)
    *out = '\0';
  if (writers[code])
    writers[code](&r);
}
