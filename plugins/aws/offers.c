/* offers.c - types of a region as offers, one for each market
 *
 * Which zone a machine will come from is not part of an offer; the spot price is that of the
 * cheapest zone.  The disk's minimum, which the image needs, is in the price.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

static const char *const markets[] = {
  [GPUB_MARKET_ON_DEMAND] = "on-demand", [GPUB_MARKET_SPOT] = "spot"
};

bool
ref_parse (const char *ref, char region[static FIELD_MAX], char type[static FIELD_MAX],
           uint32_t *market)
{
  const char *one = strchr (ref, '|'), *two = one ? strchr (one + 1, '|') : NULL;

  if (!two || one - ref >= FIELD_MAX || two - one - 1 >= FIELD_MAX)
    return false;
  snprintf (region, FIELD_MAX, "%.*s", (int) (one - ref), ref);
  snprintf (type, FIELD_MAX, "%.*s", (int) (two - one - 1), one + 1);
  for (*market = 0; *market < N_ELEMENTS (markets); ++*market)
    if (strcmp (two + 1, markets[*market]) == 0)
      return region_valid (region) && *type;
  return false;
}

/* All that is known of one region. */
struct catalog {
  const struct ctx *c;
  json_t *types, *zones, *subnets;
  struct prices prices;
  const char *only; /* a type, NULL for all */
  uint32_t only_market;
};

static void
catalog_done (struct catalog *k)
{
  json_decref (k->types);
  json_decref (k->zones);
  json_decref (k->subnets);
  prices_done (&k->prices);
}

static int32_t
catalog_read (struct catalog *k)
{
  const struct ctx *c = k->c;
  char vpc[FIELD_MAX];
  int32_t rc = types_read (c, &k->types);

  if (rc == GPUB_OK)
    rc = zones_read (c, &k->zones);
  if (rc == GPUB_OK)
    rc = subnets_read (c, &k->subnets, vpc);
  if (rc == GPUB_OK)
    rc = prices_read (c, k->only, &k->prices);
  return rc;
}

/* ---- One offer ---- */

json_t *
zones_eligible (const json_t *zones_of_type, const json_t *subnets, const char *type)
{
  const json_t *zone;
  json_t *out = json_array ();
  size_t i;

  json_array_foreach (json_object_get (zones_of_type, type), i, zone)
    if (json_object_get (subnets, json_string_value (zone)))
      json_array_append (out, (json_t *) zone);
  return out;
}

static void
fill_price (struct gpub_offer *o, const struct catalog *k, const json_t *zones)
{
  bool known = o->market == GPUB_MARKET_SPOT
                   ? price_spot (&k->prices, o->instance_type, zones, &o->price_udollar)
                   : price_on_demand (&k->prices, o->instance_type, &o->price_udollar);

  if (!known || k->prices.gib == 0)
    return;
  o->price_udollar += o->disk_gib * k->prices.gib;
  o->price_disk_gib_udollar = k->prices.gib;
  o->price_ip_udollar = k->c->s->ip_udollar;
  o->known |= GPUB_OFFER_PRICE | GPUB_OFFER_DISK_PRICE | GPUB_OFFER_IP_PRICE;
}

static void
fill_hardware (struct gpub_offer *o, const struct type *t)
{
  o->known |= GPUB_OFFER_GPUS | GPUB_OFFER_DISK;
  o->gpu_name = t->gpu;
  o->gpu_count = t->gpus;
  o->gpu_denominator = t->denominator;
  o->vram_mib = t->vram_mib;
  o->vcpus = t->vcpus;
  o->ram_mib = t->ram_mib;
  o->known |= t->vram_mib ? GPUB_OFFER_VRAM : 0;
  o->known |= t->vcpus ? GPUB_OFFER_VCPUS : 0;
  o->known |= t->ram_mib ? GPUB_OFFER_RAM : 0;
}

static int32_t
emit (const struct catalog *k, const struct type *t, uint32_t market, const json_t *zones,
      const struct image *image)
{
  const struct ctx *c = k->c;
  char ref[REF_MAX];
  struct gpub_offer o = {
    .size = sizeof o,
    .offer_ref = ref,
    .scope = c->region,
    .region = c->region,
    .country = region_country (c->region),
    .cloud = "aws",
    .instance_type = t->name,
    .kind = t->metal ? GPUB_KIND_BAREMETAL : GPUB_KIND_VM,
    .market = market,
    .availability = GPUB_AVAIL_UNKNOWN, /* EC2 tells only those who try */
    .disk_gib = image->gib,
    .disk_max_gib = DISK_MAX_GIB,
    .disk_default_gib = c->s->disk_gib > image->gib ? c->s->disk_gib : image->gib,
    .arch = t->arch,
    .interconnect = type_interconnect (t),
    .image = image->name,
    .fabric = "aws",
  };

  snprintf (ref, sizeof ref, "%s|%s|%s", c->region, t->name, markets[market]);
  fill_hardware (&o, t);
  fill_price (&o, k, zones);
  return c->s->host->emit_offer (c->call, &o);
}

/* A type that is sold in capacity blocks alone has neither market: those are paid up front, and
 * never bought from here. */
static int32_t
walk_type (struct catalog *k, const struct type *t)
{
  json_auto_t *zones = zones_eligible (k->zones, k->subnets, t->name);
  const bool sold[] = { [GPUB_MARKET_ON_DEMAND] = t->on_demand, [GPUB_MARKET_SPOT] = t->spot };
  struct image image;
  int32_t rc;

  if (json_array_size (zones) == 0 || (!t->on_demand && !t->spot))
    return GPUB_OK;
  rc = image_find (k->c, t->arch, &image);
  if (rc == GPUB_E_NOT_FOUND) /* no image, no offer */
    return GPUB_OK;
  for (uint32_t m = 0; rc == GPUB_OK && m < N_ELEMENTS (sold); m++)
    if (sold[m] && (!k->only || k->only_market == m))
      rc = emit (k, t, m, zones, &image);
  return rc;
}

static int32_t
walk (struct catalog *k)
{
  json_auto_t *seen = json_object ();
  const json_t *row;
  size_t i;
  int32_t rc;

  json_array_foreach (k->types, i, row) {
    struct type t;

    if (!type_read (row, &t))
      continue;
    if ((k->only && strcmp (k->only, t.name) != 0) || json_object_get (seen, t.name))
      continue;
    json_object_set_new (seen, t.name, json_true ());
    if ((rc = walk_type (k, &t)) != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}

/* ---- Regions ---- */

static int32_t
one_region (const struct ctx *c, const char *type, uint32_t market)
{
  struct catalog k = { .c = c, .only = type, .only_market = market };
  int32_t rc = catalog_read (&k);

  if (rc == GPUB_OK)
    rc = walk (&k);
  catalog_done (&k);
  return rc == GPUB_OK
             ? c->s->host->scope_done (c->call, c->region, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL)
             : rc;
}

/* One region that fails costs only its own offers; all of them failing is the call's failure. */
int32_t
each_region (const struct ctx *c, const json_t *names,
             int32_t (*visit) (const struct ctx *, const void *), const void *arg)
{
  const json_t *name;
  size_t i, n = json_array_size (names), failed = 0;
  int32_t last = GPUB_OK;

  json_array_foreach (names, i, name) {
    uint32_t left = c->s->host->ms_left (c->call);
    struct ctx here = { c->s, c->call, c->err, json_string_value (name),
                        n > 1 ? left / (uint32_t) (n - i + 1) + 1 : 0 };
    int32_t rc = visit (&here, arg);

    if (rc == GPUB_OK)
      continue;
    last = rc;
    failed++;
    rc = c->s->host->scope_done (c->call, here.region, GPUB_SCOPE_FAILED, last, c->err);
    if (rc != GPUB_OK || last == GPUB_E_CANCELLED)
      return rc != GPUB_OK ? rc : last;
  }
  return failed == n ? last : GPUB_OK;
}

static int32_t
visit_all (const struct ctx *c, const void *unused)
{
  (void) unused;
  return one_region (c, NULL, 0);
}

int32_t
aws_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                 struct gpub_error *err)
{
  char region[FIELD_MAX], type[FIELD_MAX];
  struct ctx c = { self, call, err, NULL, 0 };
  json_auto_t *names = NULL;
  uint32_t market;
  int32_t rc;

  if (query->offer_ref) {
    if (!ref_parse (query->offer_ref, region, type, &market))
      return plug_error (err, GPUB_E_INVALID, "'%.150s' is no offer of AWS", query->offer_ref);
    c.region = region;
    return one_region (&c, type, market);
  }
  rc = regions_read (&c, &names);
  return rc == GPUB_OK ? each_region (&c, names, visit_all, NULL) : rc;
}
