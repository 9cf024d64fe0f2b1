/* offers.c - presets as offers, a project at a time
 *
 * A first listing asks for hundreds of prices, at the pace that the rate limit allows: what is not
 * priced when a good part of the time is over is listed without a price, and the next listing goes
 * on from there.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

struct walk {
  const struct ctx *c;
  const struct project *p;
  struct images images;
  const struct seat *only;
  enum price_how how; /* PRICE_KNOWN once time is short or the calculator fails */
  uint32_t reserve_ms;
  uint64_t disk; /* per GiB; 0: not known */
  size_t offers;
};

/* ---- One offer ---- */

static void
stop_asking (struct walk *w, int32_t kind)
{
  char text[400];

  snprintf (text, sizeof text, "project=%s error=\"%s\"", w->p->id,
            kind ? w->c->err->text : "no time left");
  if (w->how != PRICE_KNOWN)
    w->c->s->host->log (w->c->call, kind ? GPUB_LOG_WARNING : GPUB_LOG_INFO,
                        "nebius.prices.partial", text);
  w->how = PRICE_KNOWN;
}

/* A failed question costs prices, never offers. */
static bool
price (struct walk *w, const struct seat *seat, uint64_t *udollar)
{
  int32_t rc;

  if (w->how != PRICE_KNOWN && w->c->s->host->ms_left (w->c->call) < w->reserve_ms)
    stop_asking (w, GPUB_OK);
  rc = price_machine (w->c, w->p->region, seat, w->how, udollar);
  if (rc != GPUB_OK && rc != GPUB_E_NOT_FOUND) {
    stop_asking (w, rc);
    rc = price_machine (w->c, w->p->region, seat, w->how, udollar);
  }
  return rc == GPUB_OK;
}

static void
fill_hardware (struct gpub_offer *o, const struct sold *s, const char *gpu)
{
  o->known |= GPUB_OFFER_GPUS | GPUB_OFFER_DISK | (s->vcpus ? GPUB_OFFER_VCPUS : 0) |
              (s->ram_gib ? GPUB_OFFER_RAM : 0);
  o->vcpus = s->vcpus;
  o->ram_mib = 1024ull * s->ram_gib;
  o->gpu_count = s->gpus;
  if (s->gpus == 0)
    return;
  o->gpu_name = gpu;
  o->interconnect = platform_link (s->platform);
  o->vram_mib = 1024ull * s->vram_gb;
  o->known |= s->vram_gb ? GPUB_OFFER_VRAM : 0;
}

/* All in: the smallest disk is part of the machine, and without its price there is none. */
static void
fill_money (struct walk *w, struct gpub_offer *o, const struct seat *seat)
{
  uint64_t machine;

  if (!price (w, seat, &machine) || !w->disk)
    return;
  o->price_udollar = machine + DISK_MIN_GIB * w->disk;
  o->price_disk_gib_udollar = w->disk;
  o->known |= GPUB_OFFER_PRICE | GPUB_OFFER_DISK_PRICE;
}

static int32_t
emit (struct walk *w, const struct sold *s, const struct seat *seat, uint32_t market)
{
  char ref[REF_MAX], gpu[FIELD_MAX] = "", type[2 * FIELD_MAX];
  const json_t *image = image_choose (w->c->s, &w->images, s->platform, s->preset, NULL);
  const char *driver = json_str (image, "driver", "");
  struct gpub_offer o = {
    .size = sizeof o,
    .known = GPUB_OFFER_CAPS,
    .offer_ref = ref,
    .scope = w->p->id,
    .region = w->p->region,
    .country = region_country (w->p->region),
    .cloud = "nebius",
    .instance_type = type,
    .kind = GPUB_KIND_VM,
    .market = market,
    .availability = s->market[market].availability,
    .disk_gib = DISK_MIN_GIB,
    .disk_max_gib = DISK_MAX_GIB,
    .disk_default_gib = DISK_DEFAULT_GIB,
    .arch = platform_arch (s->platform),
    .caps = GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_TAGS | GPUB_CAP_USER_DATA |
            GPUB_CAP_HOSTS_KUBERNETES | (seat->spot ? GPUB_CAP_SPOT : 0),
    .image = json_str (image, "family", NULL),
    .driver = *driver ? driver : NULL,
    .fabric = "nebius",
  };

  if (!image) /* nothing would boot on it */
    return GPUB_OK;
  platform_gpu (s->platform, gpu);
  snprintf (type, sizeof type, "%s.%s", s->platform, s->preset);
  seat_print (seat, ref);
  fill_hardware (&o, s, gpu);
  fill_money (w, &o, seat);
  if (s->market[market].stock >= 0) {
    o.stock = (uint32_t) s->market[market].stock;
    o.known |= GPUB_OFFER_STOCK;
  }
  w->offers++;
  return w->c->s->host->emit_offer (w->c->call, &o);
}

static bool
is_wanted (const struct walk *w, const struct seat *seat)
{
  return !w->only || (strcmp (w->only->platform, seat->platform) == 0 &&
                      strcmp (w->only->preset, seat->preset) == 0 && w->only->spot == seat->spot);
}

static int32_t
walk_sold (struct walk *w, const struct sold *s)
{
  int32_t rc = GPUB_OK;

  for (uint32_t market = 0; market < N_ELEMENTS (s->market) && rc == GPUB_OK; market++) {
    struct seat seat = { .spot = market == GPUB_MARKET_SPOT };

    strcpy (seat.project, w->p->id);
    strcpy (seat.platform, s->platform);
    strcpy (seat.preset, s->preset);
    if (s->market[market].sold && is_wanted (w, &seat))
      rc = emit (w, s, &seat, market);
  }
  return rc;
}

/* ---- One project ---- */

static size_t
count_region (const struct catalog *k, const char *region)
{
  size_t n = 0;

  for (size_t i = 0; i < k->n; i++)
    n += strcmp (k->at[i].region, region) == 0;
  return n;
}

/* A tenant whose advice cannot be read or knows nothing of a region still sells there. */
static int32_t
catalog_of (const struct walk *w, struct catalog *advice)
{
  if (count_region (advice, w->p->region) > 0)
    return GPUB_OK;
  return platforms_read (w->c, w->p, advice);
}

static int32_t
walk_project (struct walk *w, struct catalog *advice)
{
  int32_t rc = catalog_of (w, advice);

  if (rc == GPUB_OK)
    rc = images_read (w->c, w->p->region, &w->images);
  if (rc == GPUB_OK && price_disk_gib (w->c, w->p->region, w->p->id, w->how, &w->disk) != GPUB_OK)
    w->disk = 0;
  for (size_t i = 0; i < advice->n && rc == GPUB_OK; i++)
    if (strcmp (advice->at[i].region, w->p->region) == 0)
      rc = walk_sold (w, &advice->at[i]);
  images_done (&w->images);
  return rc;
}

static int32_t
list_project (const struct ctx *c, struct project *p, const struct seat *only,
              struct catalog *advice, uint32_t reserve_ms)
{
  struct walk w = {
    .c = c, .p = p, .only = only, .how = only ? PRICE_NOW : PRICE_RECENT, .reserve_ms = reserve_ms
  };
  int32_t kind = p->kind;

  if (kind != GPUB_OK)
    *c->err = p->err;
  else if (p->active)
    kind = walk_project (&w, advice);
  return project_close (c, p, kind, w.offers > 0);
}

/* ---- All ---- */

/* The advice of every tenant that is met, once. */
static void
read_advice (const struct ctx *c, const struct projects *ps, struct catalog *k)
{
  for (size_t i = 0; i < ps->n; i++) {
    size_t before = k->n;
    bool seen = !*ps->at[i].tenant;

    for (size_t n = 0; n < i; n++)
      seen |= strcmp (ps->at[n].tenant, ps->at[i].tenant) == 0;
    if (!seen && advice_read (c, ps->at[i].tenant, k) != GPUB_OK) {
      k->n = before; /* half of it would hide the rest */
      c->s->host->log (c->call, GPUB_LOG_INFO, "nebius.advice.none", c->err->text);
    }
  }
}

static int32_t
list_offers (const struct ctx *c, const struct seat *only)
{
  uint32_t reserve_ms = c->s->host->ms_left (c->call) / 3;
  struct projects ps;
  struct catalog advice = { NULL, 0, 0 };
  int32_t rc = projects_read (c, only ? only->project : NULL, &ps);

  if (rc == GPUB_OK)
    read_advice (c, &ps, &advice);
  for (size_t i = 0; i < ps.n && rc == GPUB_OK; i++)
    rc = list_project (c, &ps.at[i], only, &advice, reserve_ms);
  if (rc == GPUB_OK)
    rc = projects_verdict (c, &ps);
  catalog_done (&advice);
  projects_done (&ps);
  return rc;
}

int32_t
nebius_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                    struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct seat seat;

  if (!query->offer_ref)
    return list_offers (&c, NULL);
  if (!seat_parse (query->offer_ref, &seat))
    return plug_error (err, GPUB_E_INVALID, "'%.150s' is no offer of Nebius", query->offer_ref);
  return list_offers (&c, &seat);
}
