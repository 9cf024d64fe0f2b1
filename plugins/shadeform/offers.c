/* offers.c - the catalog as offers
 *
 * A catalog of 20 clouds always has an odd row somewhere: it is left out and counted, never an
 * error.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"

enum { GIB_MAX = 1 << 24 };

static uint32_t
kind_of (const char *deployment)
{
  if (strcmp (deployment, "baremetal") == 0)
    return GPUB_KIND_BAREMETAL;
  return strcmp (deployment, "container") == 0 ? GPUB_KIND_CONTAINER : GPUB_KIND_VM;
}

/* A deployment type that is new to us is not promised to run a kubelet. */
static uint64_t
caps_of (const struct seat *seat, const char *deployment)
{
  bool whole = strcmp (deployment, "vm") == 0 || strcmp (deployment, "baremetal") == 0;

  return GPUB_CAP_TAGS | GPUB_CAP_KILL_SWITCH |
         (whole ? GPUB_CAP_HOSTS_KUBERNETES | GPUB_CAP_STARTUP_SCRIPT : 0) |
         (seat_is_spot (seat) ? GPUB_CAP_SPOT : 0);
}

/* Shadeform does not say the architecture; Grace is the one ARM host there is. */
static const char *
arch_of (const char *gpu)
{
  static const char *const grace[] = { "GH200", "GB200", "GB300" };

  for (size_t i = 0; i < N_ELEMENTS (grace); i++)
    if (strncmp (gpu, grace[i], strlen (grace[i])) == 0)
      return "aarch64";
  return "x86_64";
}

/* "CA, Montreal" */
static bool
country_of (const json_t *availability, char country[static 3])
{
  const char *name = json_str (availability, "display_name", "");

  if (!isupper ((unsigned char) name[0]) || !isupper ((unsigned char) name[1]) || name[2] != ',')
    return false;
  snprintf (country, 3, "%.2s", name);
  return true;
}

/* A size that is there and believable, with its known bit. */
static uint64_t
size_of (const json_t *config, const char *key, uint64_t bit, uint64_t *known)
{
  int64_t n = json_i64 (config, key, -1);

  if (n < 0 || n > GIB_MAX || (n == 0 && bit != GPUB_OFFER_GPUS))
    return 0;
  *known |= bit;
  return (uint64_t) n;
}

static void
fill_hardware (struct gpub_offer *o, const json_t *row)
{
  const json_t *config = json_object_get (row, "configuration");
  const json_t *boot = json_object_get (row, "boot_time");
  const char *gpu = json_str (config, "gpu_type", ""),
             *link = json_str (config, "interconnect", "");
  int64_t min_s = json_i64 (boot, "min_boot_in_sec", 0),
          max_s = json_i64 (boot, "max_boot_in_sec", 0);

  o->gpu_count = (uint32_t) size_of (config, "num_gpus", GPUB_OFFER_GPUS, &o->known);
  o->gpu_name = *gpu ? gpu : NULL;
  o->vram_mib = 1024 * size_of (config, "vram_per_gpu_in_gb", GPUB_OFFER_VRAM, &o->known);
  o->ram_mib = 1024 * size_of (config, "memory_in_gb", GPUB_OFFER_RAM, &o->known);
  o->vcpus = (uint32_t) size_of (config, "vcpus", GPUB_OFFER_VCPUS, &o->known);
  o->disk_gib = (uint32_t) size_of (config, "storage_in_gb", GPUB_OFFER_DISK, &o->known);
  o->arch = arch_of (gpu);
  o->interconnect = json_bool (config, "nvlink", false) && strcmp (link, "pcie") == 0 ? "nvlink"
                    : *link                                                           ? link
                                                                                      : NULL;
  if (max_s > 0 && max_s < 86400 && min_s >= 0 && min_s <= max_s) {
    o->known |= GPUB_OFFER_BOOT;
    o->boot_min_ms = (uint32_t) min_s * 1000;
    o->boot_max_ms = (uint32_t) max_s * 1000;
  }
}

static int32_t
emit (const struct ctx *c, const struct seat *seat, const char *ref, const json_t *row,
      const json_t *availability)
{
  const char *deployment = json_str (row, "deployment_type", "vm");
  char country[3];
  struct gpub_offer o = {
    .size = sizeof o,
    .known = GPUB_OFFER_CAPS,
    .offer_ref = ref,
    .scope = SCOPE,
    .region = seat->region,
    .country = country_of (availability, country) ? country : NULL,
    .cloud = seat->cloud,
    .instance_type = seat->type,
    .kind = kind_of (deployment),
    .market = seat_is_spot (seat) ? GPUB_MARKET_SPOT : GPUB_MARKET_ON_DEMAND,
    .availability = seat_availability (availability),
    .caps = caps_of (seat, deployment),
    .image = *seat->image ? seat->image : NULL,
    .fabric = seat->cloud,
  };

  if (seat_price (seat, row, availability, &o.price_udollar))
    o.known |= GPUB_OFFER_PRICE;
  fill_hardware (&o, row);
  return c->s->host->emit_offer (c->call, &o);
}

/* ---- Walking the catalog ---- */

struct walk {
  const struct ctx *c;
  const struct seat *only; /* NULL: everything */
  json_t *seen;            /* a listing may repeat rows */
  size_t offers, odd;
};

/* An offer that is quoted again keeps its image, so that its reference stays the same; without it,
 * it is gone. */
static bool
walk_image (const struct walk *w, const json_t *row, char out[static 128])
{
  const json_t *images = images_of (row);
  const char *image = w->only ? w->only->image : image_choose (w->c->s, images);

  if (!image || !field_take (out, 128, image))
    out[0] = '\0';
  return !w->only || *out == '\0' || image_offered (images, out);
}

static int32_t
walk_seat (struct walk *w, const json_t *row, const json_t *availability)
{
  struct seat seat;
  char ref[REF_MAX + 1];

  if (!seat_read (&seat, row, availability)) {
    w->odd++;
    return GPUB_OK;
  }
  if ((w->only && !seat_same (w->only, &seat)) || (seat_is_spot (&seat) && !w->c->s->shade_cloud) ||
      !walk_image (w, row, seat.image))
    return GPUB_OK;
  if (!seat_print (&seat, ref)) {
    w->odd++;
    return GPUB_OK;
  }
  if (json_object_get (w->seen, ref))
    return GPUB_OK;
  json_object_set_new (w->seen, ref, json_true ());
  w->offers++;
  return emit (w->c, &seat, ref, row, availability);
}

static int32_t
walk (struct walk *w, const json_t *types)
{
  const json_t *row, *availability;
  size_t i, k;
  int32_t rc;

  json_array_foreach (types, i, row) {
    const json_t *list = json_object_get (row, "availability");

    if (!json_is_array (list) || !json_is_object (json_object_get (row, "configuration"))) {
      w->odd++;
      continue;
    }
    json_array_foreach (list, k, availability)
      if ((rc = walk_seat (w, row, availability)) != GPUB_OK)
        return rc;
  }
  return GPUB_OK;
}

static void
log_odd (const struct ctx *c, size_t odd)
{
  char text[64];

  if (odd == 0)
    return;
  snprintf (text, sizeof text, "rows=%zu", odd);
  c->s->host->log (c->call, GPUB_LOG_INFO, "shadeform.catalog.odd", text);
}

static int32_t
list_offers (const struct ctx *c, const struct seat *only)
{
  json_auto_t *body = NULL, *seen = json_object ();
  struct walk w = { .c = c, .only = only, .seen = seen };
  int32_t rc = catalog_read (c, only, &body);

  if (rc != GPUB_OK)
    return rc;
  rc = walk (&w, json_object_get (body, "instance_types"));
  log_odd (c, w.odd);
  if (rc == GPUB_OK && w.odd && w.offers == 0 && !only)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "list instance types: none of %zu rows is readable", w.odd);
  return rc;
}

int32_t
shadeform_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                       struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct seat only;
  int32_t rc;

  if (query->offer_ref && !seat_parse (query->offer_ref, &only))
    return plug_error (err, GPUB_E_INVALID, "'%.150s' is no offer of Shadeform", query->offer_ref);
  rc = list_offers (&c, query->offer_ref ? &only : NULL);
  c.s->host->scope_done (call, SCOPE, rc == GPUB_OK ? GPUB_SCOPE_COMPLETE : GPUB_SCOPE_FAILED, rc,
                         err);
  return rc;
}
