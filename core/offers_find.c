/* offers_find.c - one offer, its price and its place in the failure memory, and how many there are
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "core/offers_int.h"

uint64_t
offers_price (const struct offers *o, const struct offer *offer, uint32_t disk_gib)
{
  return offer_price (offer, disk_gib, o->conf.disk_gib);
}

uint32_t
offers_disk (const struct offers *o, const struct offer *offer, uint32_t disk_gib)
{
  uint32_t want = disk_gib ? disk_gib : o->conf.disk_gib;

  if (!offer->disk_max_gib)
    return 0;
  if (want > offer->disk_max_gib)
    want = offer->disk_max_gib;
  return want > offer->disk_gib ? want : offer->disk_gib;
}

uint64_t
offers_quote (const struct offers *o, const json_t *raw, uint32_t disk_gib)
{
  struct offer x = { .price_udollar = OFFER_NO_PRICE };
  int64_t disk = json_i64 (raw, "disk_gib", 0), most = json_i64 (raw, "disk_max_gib", 0);
  uint64_t ip;

  offer_prices (raw, &x.price_udollar, &ip, &x.disk_price_udollar);
  x.disk_gib = disk > 0 && disk < UINT32_MAX ? (uint32_t) disk : 0;
  x.disk_max_gib = most > disk && most < UINT32_MAX ? (uint32_t) most : 0;
  return offer_price (&x, disk_gib, o->conf.disk_gib);
}

struct memory_what
offers_what (const struct offers *o, const char *provider, const json_t *offer)
{
  const struct offers_prov *p = offers_prov (o, provider);
  const char *region = json_str (offer, "region", NULL);

  return (struct memory_what){
    json_str (offer, "cloud", p ? p->plugin : provider),
    region,
    json_str (offer, "instance_type", NULL),
    json_str (offer, "market", "on-demand"),
    provider,
    region && strcmp (region, json_str (offer, "scope", "")) == 0 ? region : NULL,
  };
}

/* Calls for every offer that is listed, until a non-zero answer. */
typedef int each_fn (void *ctx, const struct offer_at *a);

static int
each_of (const struct offers_prov *p, each_fn *fn, void *ctx)
{
  for (size_t i = 0; i < p->lists.n; i++)
    for (size_t j = 0; j < p->lists.at[i]->n; j++) {
      const struct offer_list *l = p->lists.at[i];
      const struct offer_at a = { &l->hot[j], &l->text[j], p->name };

      if (a.hot->seen_s && fn (ctx, &a))
        return 1;
    }
  return 0;
}

struct wanted {
  const char *id, *ref;
  struct offer_at *out;
};

static int
is_wanted (void *ctx, const struct offer_at *a)
{
  struct wanted *w = ctx;

  if (w->id ? strcmp (a->text->id, w->id) != 0 : strcmp (a->text->ref, w->ref) != 0)
    return 0;
  *w->out = *a;
  return 1;
}

bool
offers_find (const struct offers *o, const char *id, struct offer_at *out)
{
  struct wanted w = { id, NULL, out };

  for (size_t i = 0; i < o->provs.n; i++)
    if (each_of (o->provs.at[i], is_wanted, &w))
      return true;
  return false;
}

bool
offers_find_ref (const struct offers *o, const char *provider, const char *ref,
                 struct offer_at *out)
{
  const struct offers_prov *p = offers_prov (o, provider);
  struct wanted w = { NULL, ref, out };

  return p && each_of (p, is_wanted, &w);
}

static int
count_one (void *ctx, const struct offer_at *a)
{
  (void) a;
  ++*(uint32_t *) ctx;
  return 0;
}

bool
offers_info (const struct offers *o, const char *provider, struct offers_info *out)
{
  const struct offers_prov *p = offers_prov (o, provider);

  memset (out, 0, sizeof *out);
  if (!p)
    return false;
  each_of (p, count_one, &out->count);
  out->skipped = p->skipped;
  out->complete = p->listed_ms && p->complete;
  out->listed_ms = p->listed_ms;
  out->problem = *p->problem ? p->problem : NULL;
  return true;
}

uint32_t
offers_count (const struct offers *o)
{
  uint32_t n = 0;

  for (size_t i = 0; i < o->provs.n; i++)
    each_of (o->provs.at[i], count_one, &n);
  return n;
}

static int
count_unknown (void *ctx, const struct offer_at *a)
{
  json_t *counts = ctx;
  const char *raw = a->text->gpu_raw;

  if (a->hot->gpus && !a->hot->gpu.family && raw)
    json_put_i64 (counts, raw, json_i64 (counts, raw, 0) + 1);
  return 0;
}

json_t *
offers_unknown_gpus (const struct offers *o)
{
  AUTO_JSON json_t *counts = json_object ();
  json_t *list = json_array (), *n;
  const char *name;

  for (size_t i = 0; i < o->provs.n; i++)
    each_of (o->provs.at[i], count_unknown, counts);
  json_object_foreach (counts, name, n)
    json_array_append_new (list, json_pack ("{s:s, s:O}", "name", name, "offers", n));
  return list;
}
