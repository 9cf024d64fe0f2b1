/* offers.c - the catalog as offers, a region at a time
 *
 * A row that cannot be read is left out and counted, never an error.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

enum { GIB_MAX = 1 << 24 };

struct walk {
  const struct ctx *c;
  const struct catalog *k;
  const json_t *regions, *images;
  const char *only; /* name of the flavor, NULL for all */
  json_t *seen, *scopes;
  size_t offers, odd;
};

static double
size_of (const json_t *row, const char *key, uint64_t bit, uint64_t *known)
{
  double n = json_number_value (json_object_get (row, key));

  if (!(n > 0 && n < GIB_MAX))
    return 0;
  *known |= bit;
  return n;
}

static const char *
interconnect_of (const struct flavor *f)
{
  static const struct {
    const char *word, *name;
  } words[] = { { "nvlink", "nvlink" }, { "sxm4", "sxm4" }, { "sxm5", "sxm5" },
                { "sxm6", "sxm6" },     { "sxm", "sxm" },   { "pcie", "pcie" } };

  for (size_t i = 0; i < N_ELEMENTS (words); i++)
    if (strcasestr (f->gpu, words[i].word) || strcasestr (f->name, words[i].word))
      return words[i].name;
  return NULL;
}

static const char *
country_of (const json_t *regions, const char *region)
{
  const json_t *row;
  size_t i;

  json_array_foreach (regions, i, row)
    if (strcmp (json_str (row, "name", ""), region) == 0) {
      const char *country = json_str (row, "country", "");

      return strlen (country) == 2 ? country : NULL;
    }
  return NULL;
}

static void
fill_hardware (struct gpub_offer *o, const struct flavor *f)
{
  o->known |= GPUB_OFFER_GPUS;
  o->gpu_count = f->gpus;
  o->ram_mib = (uint64_t) (1024 * size_of (f->row, "ram", GPUB_OFFER_RAM, &o->known));
  o->vcpus = (uint32_t) size_of (f->row, "cpu", GPUB_OFFER_VCPUS, &o->known);
  o->disk_gib = (uint32_t) size_of (f->row, "disk", GPUB_OFFER_DISK, &o->known);
  if (f->gpus == 0)
    return;
  o->gpu_name = f->gpu;
  o->interconnect = interconnect_of (f);
  o->vram_mib = flavor_vram_mib (f);
  if (o->vram_mib)
    o->known |= GPUB_OFFER_VRAM;
}

static void
fill_money (struct gpub_offer *o, const struct catalog *k, const struct flavor *f)
{
  int64_t stock;

  if (flavor_price (k, f, &o->price_udollar))
    o->known |= GPUB_OFFER_PRICE;
  if (price_of (k, "PublicIP", 1, &o->price_ip_udollar))
    o->known |= GPUB_OFFER_IP_PRICE;
  o->availability = flavor_stock (k, f, &stock);
  if (stock >= 0) {
    o->stock = (uint32_t) stock;
    o->known |= GPUB_OFFER_STOCK;
  }
}

static int32_t
emit (const struct walk *w, const struct flavor *f, const char *ref, const char *image)
{
  char driver[16];
  struct gpub_offer o = {
    .size = sizeof o,
    .offer_ref = ref,
    .scope = f->region,
    .region = f->region,
    .country = country_of (w->regions, f->region),
    .cloud = "hyperstack",
    .instance_type = f->name,
    .kind = GPUB_KIND_VM,
    .market = flavor_is_spot (f) ? GPUB_MARKET_SPOT : GPUB_MARKET_ON_DEMAND,
    .arch = "x86_64",
    .image = image,
    .driver = image && image_driver (image, driver) ? driver : NULL,
    .fabric = "hyperstack",
  };

  fill_hardware (&o, f);
  fill_money (&o, w->k, f);
  return w->c->s->host->emit_offer (w->c->call, &o);
}

/* Without an image nothing boots. */
static int32_t
walk_row (struct walk *w, const json_t *group, const json_t *row)
{
  struct flavor f;
  char ref[REF_MAX];
  const char *image;

  if (!flavor_read (&f, group, row)) {
    w->odd++;
    return GPUB_OK;
  }
  if (w->only && strcmp (w->only, f.name) != 0)
    return GPUB_OK;
  image = image_choose (w->c->s, w->images, &f);
  snprintf (ref, sizeof ref, "%s|%s", f.region, f.name);
  if (!image || json_object_get (w->seen, ref)) {
    w->odd += !image;
    return GPUB_OK;
  }
  json_object_set_new (w->seen, ref, json_true ());
  json_object_set_new (w->scopes, f.region, json_true ());
  w->offers++;
  return emit (w, &f, ref, image);
}

static int32_t
walk_all (struct walk *w)
{
  const json_t *group, *row;
  size_t i, k;
  int32_t rc;

  json_array_foreach (w->k->flavors, i, group) {
    const json_t *rows = json_object_get (group, "flavors");

    if (!json_is_array (rows))
      w->odd++;
    json_array_foreach (rows, k, row)
      if ((rc = walk_row (w, group, row)) != GPUB_OK)
        return rc;
  }
  if (w->odd && w->offers == 0 && !w->only)
    return plug_error (w->c->err, GPUB_E_UNAVAILABLE, "list flavors: none of %zu rows is readable",
                       w->odd);
  return GPUB_OK;
}

static void
log_odd (const struct walk *w)
{
  char text[64];

  if (w->odd == 0 || w->only)
    return;
  snprintf (text, sizeof text, "rows=%zu", w->odd);
  w->c->s->host->log (w->c->call, GPUB_LOG_DEBUG, "hyperstack.catalog.odd", text);
}

/* Regions that sell nothing just now are listed to their end, too. */
static int32_t
close_scopes (const struct walk *w, const char *only)
{
  const json_t *row;
  const char *region;
  json_t *unused;
  size_t i;
  int32_t rc;

  json_array_foreach (w->regions, i, row)
    if (*json_str (row, "name", ""))
      json_object_set_new (w->scopes, json_str (row, "name", ""), json_true ());
  if (only)
    json_object_set_new (w->scopes, only, json_true ());
  json_object_foreach (w->scopes, region, unused)
    if ((!only || strcmp (only, region) == 0) &&
        (rc = w->c->s->host->scope_done (w->c->call, region, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL)) !=
            GPUB_OK)
      return rc;
  return GPUB_OK;
}

static int32_t
list_offers (const struct ctx *c, const char *region, const char *flavor)
{
  json_auto_t *seen = json_object (), *scopes = json_object (), *regions = NULL, *images = NULL;
  struct catalog k = { 0 };
  struct walk w = { .c = c, .k = &k, .only = flavor, .seen = seen, .scopes = scopes };
  int32_t rc = api_list (c, "list regions", "/core/regions", "regions", &regions);

  if (rc == GPUB_OK)
    rc = images_read (c, region, &images);
  if (rc == GPUB_OK)
    rc = catalog_read (c, region, &k);
  w.regions = regions;
  w.images = images;
  if (rc == GPUB_OK)
    rc = walk_all (&w);
  if (rc == GPUB_OK) {
    log_odd (&w);
    rc = close_scopes (&w, region);
  }
  catalog_done (&k);
  return rc;
}

int32_t
hyperstack_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                        struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  char region[FIELD_MAX], flavor[FIELD_MAX];

  if (!query->offer_ref)
    return list_offers (&c, NULL, NULL);
  if (!ref_parse (query->offer_ref, region, flavor))
    return plug_error (err, GPUB_E_INVALID, "'%.150s' is no offer of Hyperstack", query->offer_ref);
  return list_offers (&c, region, flavor);
}
