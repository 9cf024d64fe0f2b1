/* flavor.c - flavors, prices and stock: three lists that only the name of the GPU joins
 *
 * Prices are per GPU and hour, as numbers or as text with an exponent; a GPU may be for sale and
 * not be in the price book.  Stock is counted in machines of a size, and elsewhere in words like
 * "10+".
 */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "plugins/hyperstack/hyperstack.h"

enum { LOW_STOCK = 3, GPUS_MAX = 64 };

#define DOLLARS_MAX 1e6

/* Those whose name does not say it. */
static const struct {
  const char *gpu;
  uint32_t gib;
} vram[] = {
  { "L40", 48 },
  { "RTX-A6000", 48 },
  { "RTX-A4000", 16 },
  { "RTX-PRO-6000", 96 },
};

/* ---- Names ---- */

static bool
name_take (const char *text)
{
  size_t n = text ? strlen (text) : 0;

  for (size_t i = 0; i < n; i++)
    if (!isprint ((unsigned char) text[i]) || text[i] == '|')
      return false;
  return n > 0 && n < FIELD_MAX;
}

bool
ref_parse (const char *ref, char region[static FIELD_MAX], char name[static FIELD_MAX])
{
  const char *bar = strchr (ref, '|');

  if (!bar || bar - ref >= FIELD_MAX || !name_take (bar + 1))
    return false;
  snprintf (region, FIELD_MAX, "%.*s", (int) (bar - ref), ref);
  snprintf (name, FIELD_MAX, "%s", bar + 1);
  return name_take (region);
}

static bool
ends_with (const char *text, const char *end)
{
  size_t n = strlen (text), m = strlen (end);

  return n >= m && strcmp (text + n - m, end) == 0;
}

/* A row that says nothing itself belongs to its group's region and GPU.  What ends with k8s is for
 * the managed Kubernetes alone. */
bool
flavor_read (struct flavor *f, const json_t *group, const json_t *row)
{
  int64_t gpus = json_i64 (row, "gpu_count", -1);

  *f = (struct flavor){
    .region = json_str (row, "region_name", json_str (group, "region_name", NULL)),
    .name = json_str (row, "name", NULL),
    .gpu = json_str (row, "gpu", json_str (group, "gpu", "")),
    .row = row,
    .gpus = (uint32_t) gpus,
  };
  return name_take (f->region) && name_take (f->name) && !ends_with (f->name, "k8s") && gpus >= 0 &&
         gpus <= GPUS_MAX && (gpus == 0 || name_take (f->gpu));
}

/* How spot shows is not documented; a flavor that says the word is never taken for on-demand. */
bool
flavor_is_spot (const struct flavor *f)
{
  const json_t *label;
  size_t i;

  json_array_foreach (json_object_get (f->row, "labels"), i, label)
    if (strcasestr (json_str (label, "label", ""), "spot"))
      return true;
  return strcasestr (f->name, "spot") || strcasestr (f->gpu, "spot");
}

/* "H100-80G-PCIe" */
uint64_t
flavor_vram_mib (const struct flavor *f)
{
  for (const char *p = f->gpu; (p = strchr (p, '-')); p++) {
    unsigned gib = 0;
    int n = 0;

    if (isdigit ((unsigned char) p[1]) && sscanf (p + 1, "%4uG%n", &gib, &n) == 1 && n > 0 &&
        (p[n + 1] == '-' || p[n + 1] == '\0'))
      return gib * 1024ull;
  }
  for (size_t i = 0; i < N_ELEMENTS (vram); i++)
    if (strncasecmp (f->gpu, vram[i].gpu, strlen (vram[i].gpu)) == 0)
      return vram[i].gib * 1024ull;
  return 0;
}

/* ---- Prices ---- */

static bool
dollars_of (const json_t *value, double *dollars)
{
  const char *text = json_string_value (value);
  char *end;

  if (json_is_number (value))
    *dollars = json_number_value (value);
  else if (text && (isdigit ((unsigned char) *text) || *text == '.')) {
    *dollars = strtod (text, &end);
    if (*end)
      return false;
  } else
    return false;
  return isfinite (*dollars) && *dollars > 0 && *dollars < DOLLARS_MAX;
}

static int64_t
time_of (const json_t *row, const char *key, int64_t otherwise)
{
  const char *text = json_str (row, key, "");
  char zoned[64];
  int64_t ms;

  if (rfc3339_parse (text, &ms))
    return ms;
  snprintf (zoned, sizeof zoned, "%.40sZ", text);
  return rfc3339_parse (zoned, &ms) ? ms : otherwise;
}

bool
price_of (const struct catalog *k, const char *name, double units, uint64_t *udollar)
{
  const json_t *row;
  double dollars;
  size_t i;

  json_array_foreach (k->prices, i, row) {
    if (strcmp (json_str (row, "name", ""), name) != 0 ||
        time_of (row, "start_time", INT64_MIN) > k->now_ms ||
        time_of (row, "end_time", INT64_MAX) <= k->now_ms ||
        !dollars_of (json_object_get (row, "value"), &dollars))
      continue;
    *udollar = (uint64_t) llround (dollars * units * 1e6);
    return *udollar > 0;
  }
  return false;
}

bool
flavor_price (const struct catalog *k, const struct flavor *f, uint64_t *udollar)
{
  double cpus = json_number_value (json_object_get (f->row, "cpu")),
         ram = json_number_value (json_object_get (f->row, "ram"));
  uint64_t memory;

  if (f->gpus > 0)
    return price_of (k, f->gpu, f->gpus, udollar);
  if (!price_of (k, "vCPU (cpu-only-flavors)", cpus, udollar) ||
      !price_of (k, "RAM (cpu-only-flavors)", ram, &memory))
    return false;
  *udollar += memory;
  return true;
}

/* ---- Stock ---- */

static const json_t *
stock_row (const struct catalog *k, const struct flavor *f)
{
  const json_t *group, *model;
  size_t i, j;

  json_array_foreach (k->stocks, i, group) {
    if (strcmp (json_str (group, "region", ""), f->region) != 0)
      continue;
    json_array_foreach (json_object_get (group, "models"), j, model)
      if (strcmp (json_str (model, "model", ""), f->gpu) == 0)
        return model;
  }
  return NULL;
}

/* "10+" GPUs are ten at least; a size that is not among the configurations cannot start. */
static int64_t
stock_of (const json_t *row, uint32_t gpus)
{
  const json_t *sizes = json_object_get (row, "configurations");
  const char *available = json_str (row, "available", "");
  char size[16];

  snprintf (size, sizeof size, "%ux", gpus);
  if (json_is_object (sizes))
    return json_i64 (sizes, size, 0);
  return isdigit ((unsigned char) *available) ? strtol (available, NULL, 10) / gpus : -1;
}

uint32_t
flavor_stock (const struct catalog *k, const struct flavor *f, int64_t *stock)
{
  const json_t *flag = json_object_get (f->row, "stock_available");
  const json_t *row = f->gpus > 0 ? stock_row (k, f) : NULL;

  *stock = row ? stock_of (row, f->gpus) : -1;
  if (*stock < 0 || *stock > UINT32_MAX)
    *stock = -1;
  if (json_is_false (flag) || *stock == 0) {
    *stock = 0;
    return GPUB_AVAIL_NONE;
  }
  if (*stock > 0)
    return *stock < LOW_STOCK ? GPUB_AVAIL_LOW : GPUB_AVAIL_AVAILABLE;
  return json_is_true (flag) ? GPUB_AVAIL_AVAILABLE : GPUB_AVAIL_UNKNOWN;
}
