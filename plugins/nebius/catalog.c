/* catalog.c - which presets are sold in which region, and how many could start
 *
 * The capacity advice tells both for a whole tenant; where it is not to be had, the list of a
 * project's platforms tells the first.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 500, SIZE_MOST = 1 << 20 };
enum { FRESH = 1, STALE = 2 };
enum { LEVEL_HIGH = 1, LEVEL_MEDIUM, LEVEL_LOW, LEVEL_LIMIT };

static const struct method list_advice = { "capacity-advisor.billing-cpl",
                                           "nebius.capacity.v1.ResourceAdviceService/List",
                                           "list capacity", &nb__advices__descriptor };
static const struct method list_platforms = { "compute", "nebius.compute.v1.PlatformService/List",
                                              "list platforms", &nb__platforms__descriptor };

struct walk {
  const char *region;
  struct catalog *k;
};

static uint32_t
size_of (int32_t n)
{
  return n > 0 && n < SIZE_MOST ? (uint32_t) n : 0;
}

/* The row of this preset, added when it is new: a preset is listed once for every fabric. */
static struct sold *
row_of (struct catalog *k, const char *region, const char *platform, const char *preset)
{
  struct sold s = { .market = { { .stock = -1 }, { .stock = -1 } } };

  if (!field_take (s.region, sizeof s.region, region) ||
      !field_take (s.platform, sizeof s.platform, platform) ||
      !field_take (s.preset, sizeof s.preset, preset))
    return NULL;
  for (size_t i = 0; i < k->n; i++)
    if (strcmp (k->at[i].region, s.region) == 0 && strcmp (k->at[i].platform, s.platform) == 0 &&
        strcmp (k->at[i].preset, s.preset) == 0)
      return &k->at[i];
  *(struct sold *) vec_push (k) = s;
  return &k->at[k->n - 1];
}

/* ---- Advice ---- */

/* Zero is also what an answer without a number looks like: only together with a low level it means
 * none. */
uint32_t
availability_of (const Nb__Availability *a, int64_t *stock)
{
  static const uint32_t levels[] = { [LEVEL_HIGH] = GPUB_AVAIL_AVAILABLE,
                                     [LEVEL_MEDIUM] = GPUB_AVAIL_AVAILABLE,
                                     [LEVEL_LOW] = GPUB_AVAIL_LOW,
                                     [LEVEL_LIMIT] = GPUB_AVAIL_NONE };
  uint32_t level = GPUB_AVAIL_UNKNOWN;

  *stock = -1;
  if (a->data_state != FRESH && a->data_state != STALE)
    return GPUB_AVAIL_UNKNOWN;
  if (a->availability_level > 0 && a->availability_level <= LEVEL_LIMIT)
    level = levels[a->availability_level];
  if (a->data_state != FRESH)
    return level;
  if (a->available > 0 || a->availability_level == LEVEL_LOW)
    *stock = a->available;
  if (*stock == 0)
    return GPUB_AVAIL_NONE;
  return level == GPUB_AVAIL_UNKNOWN && *stock > 0 ? GPUB_AVAIL_AVAILABLE : level;
}

/* The best of all fabrics, since a machine by itself may be on any; not to know is better than
 * none.
 */
static void
merge (struct sold *s, uint32_t market, const Nb__Availability *a)
{
  static const int rank[] = { [GPUB_AVAIL_NONE] = 0,
                              [GPUB_AVAIL_UNKNOWN] = 1,
                              [GPUB_AVAIL_LOW] = 2,
                              [GPUB_AVAIL_AVAILABLE] = 3 };
  int64_t stock;
  uint32_t availability;

  if (!a)
    return;
  availability = availability_of (a, &stock);
  if (!s->market[market].sold || rank[availability] > rank[s->market[market].availability])
    s->market[market].availability = availability;
  if (stock > s->market[market].stock)
    s->market[market].stock = stock;
  s->market[market].sold = true;
}

static int32_t
take_advice (void *ctx, const void *page)
{
  const Nb__Advices *rows = page;
  const struct walk *w = ctx;

  for (size_t i = 0; i < rows->n_items; i++) {
    const Nb__Advice *row = rows->items[i];
    const Nb__AdviceInstance *vm = row->spec ? row->spec->compute_instance : NULL;
    const Nb__AdvicePresetResources *r = vm && vm->preset ? vm->preset->resources : NULL;
    struct sold *s = r ? row_of (w->k, row->spec->region, vm->platform, vm->preset->name) : NULL;

    if (!s || !row->status)
      continue;
    s->gpus = size_of (r->gpu_count);
    s->vcpus = size_of (r->vcpu_count);
    s->ram_gib = size_of (r->memory_gibibytes);
    s->vram_gb = size_of (vm->gpu_memory_gigabytes);
    merge (s, GPUB_MARKET_ON_DEMAND, row->status->on_demand);
    merge (s, GPUB_MARKET_SPOT, row->status->preemptible);
  }
  return GPUB_OK;
}

int32_t
advice_read (const struct ctx *c, const char *tenant, struct catalog *k)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;
  struct walk w = { NULL, k };

  in.parent_id = (char *) (uintptr_t) tenant;
  in.page_size = PAGE;
  return api_pages (c, &list_advice, &in, &in.page_token, take_advice, &w);
}

/* ---- Platforms ---- */

static void
take_preset (const struct walk *w, const Nb__Platform *row, const Nb__Preset *preset)
{
  struct sold *s =
      preset->resources ? row_of (w->k, w->region, row->metadata->name, preset->name) : NULL;

  if (!s)
    return;
  s->gpus = size_of (preset->resources->gpu_count);
  s->vcpus = size_of (preset->resources->vcpu_count);
  s->ram_gib = size_of (preset->resources->memory_gibibytes);
  s->vram_gb = row->spec ? size_of (row->spec->gpu_memory_gigabytes) : 0;
  s->market[GPUB_MARKET_ON_DEMAND].sold = true;
  s->market[GPUB_MARKET_SPOT].sold = row->status && row->status->allowed_for_preemptibles;
}

static int32_t
take_platforms (void *ctx, const void *page)
{
  const Nb__Platforms *rows = page;

  for (size_t i = 0; i < rows->n_items; i++) {
    const Nb__Platform *row = rows->items[i];

    for (size_t n = 0; row->metadata && row->spec && n < row->spec->n_presets; n++)
      take_preset (ctx, row, row->spec->presets[n]);
  }
  return GPUB_OK;
}

int32_t
platforms_read (const struct ctx *c, const struct project *p, struct catalog *k)
{
  Nb__ListRequestTopless in = NB__LIST_REQUEST_TOPLESS__INIT;
  struct walk w = { p->region, k };

  in.parent_id = (char *) (uintptr_t) p->id;
  in.page_size = PAGE;
  return api_pages (c, &list_platforms, &in, &in.page_token, take_platforms, &w);
}

void
catalog_done (struct catalog *k)
{
  vec_free (k);
}
