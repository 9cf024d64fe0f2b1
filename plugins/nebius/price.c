/* price.c - what the cloud's calculator says a machine costs per hour
 *
 * One question for each preset and market of a region, so answers are remembered for an hour.  A
 * price that is not named is not known, which is never 0.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { KEY_MAX = 4 * FIELD_MAX, DISK_SAMPLE_GIB = 1000, NETWORK_SSD = 1 };

static const int64_t recent_ms = 3600 * 1000, none_ms = 600 * 1000, known_ms = 24 * 3600 * 1000;

static const struct method estimate = { "api.calculator.billing-data-plane",
                                        "nebius.billing.v1alpha1.CalculatorService/Estimate",
                                        "estimate price", &nb__estimated__descriptor };

/* ---- What is remembered: key -> [micro-dollars or -1, when] ---- */

static bool
recall (const struct ctx *c, const char *key, enum price_how how, int64_t *udollar)
{
  int64_t age, price = -1;
  json_t *row;

  pthread_mutex_lock (&c->s->lock);
  row = json_object_get (c->s->prices, key);
  age = c->s->host->now_ms (c->call) - json_integer_value (json_array_get (row, 1));
  if (row)
    price = json_integer_value (json_array_get (row, 0));
  pthread_mutex_unlock (&c->s->lock);
  *udollar = price;
  if (!row || how == PRICE_NOW || age < 0)
    return false;
  return age < (how == PRICE_KNOWN ? known_ms : price < 0 ? none_ms : recent_ms);
}

static void
remember (const struct ctx *c, const char *key, int64_t udollar)
{
  pthread_mutex_lock (&c->s->lock);
  json_object_set_new (
      c->s->prices, key,
      json_pack ("[I, I]", (json_int_t) udollar, (json_int_t) c->s->host->now_ms (c->call)));
  pthread_mutex_unlock (&c->s->lock);
}

/* ---- What is asked ---- */

static int64_t
cost_of (const Nb__Estimated *e)
{
  const Nb__Cost *cost = e->hourly_cost ? e->hourly_cost->general : NULL;
  uint64_t udollar = 0;

  if (!cost || !cost->total || !udollar_parse (cost->total->cost, &udollar) || udollar == 0)
    return -1;
  return (int64_t) udollar;
}

/* Refused for what it is: then there is no price for it. */
static bool
is_no_price (int32_t rc)
{
  return rc == GPUB_E_NOT_FOUND || rc == GPUB_E_INVALID;
}

static int32_t
ask (const struct ctx *c, const char *key, Nb__EstimateSpec *what, enum price_how how,
     int64_t *udollar)
{
  Nb__Estimate in = NB__ESTIMATE__INIT;
  AUTO_MSG Nb__Estimated *answer = NULL;
  int32_t rc;

  if (!recall (c, key, how, udollar)) {
    if (how == PRICE_KNOWN)
      return GPUB_E_NOT_FOUND;
    in.resource_spec = what;
    rc = api_read (c, &estimate, &in, &answer);
    if (rc != GPUB_OK && !is_no_price (rc))
      return rc;
    *udollar = answer ? cost_of (answer) : -1;
    remember (c, key, *udollar);
  }
  return *udollar > 0 ? GPUB_OK : plug_error (c->err, GPUB_E_NOT_FOUND, "no price for %.200s", key);
}

int32_t
price_machine (const struct ctx *c, const char *region, const struct seat *seat, enum price_how how,
               uint64_t *udollar)
{
  Nb__EstimateSpec what = NB__ESTIMATE_SPEC__INIT;
  Nb__CreateInstance create = NB__CREATE_INSTANCE__INIT;
  Nb__Metadata metadata = NB__METADATA__INIT;
  Nb__InstanceSpec spec = NB__INSTANCE_SPEC__INIT;
  Nb__Resources resources = NB__RESOURCES__INIT;
  Nb__Preemptible preemptible = NB__PREEMPTIBLE__INIT;
  char key[KEY_MAX];
  int64_t cost;
  int32_t rc;

  preemptible.on_preemption = 1;
  metadata.parent_id = (char *) (uintptr_t) seat->project;
  resources.platform = (char *) (uintptr_t) seat->platform;
  resources.preset = (char *) (uintptr_t) seat->preset;
  spec.resources = &resources;
  spec.preemptible = seat->spot ? &preemptible : NULL;
  create.metadata = &metadata;
  create.spec = &spec;
  what.compute_instance_spec = &create;
  snprintf (key, sizeof key, "%s %s %s%s", region, seat->platform, seat->preset,
            seat->spot ? " preemptible" : "");
  rc = ask (c, key, &what, how, &cost);
  if (rc == GPUB_OK)
    *udollar = (uint64_t) cost;
  return rc;
}

/* Asked for a large disk, so that no rounding of the cloud's shows. */
int32_t
price_disk_gib (const struct ctx *c, const char *region, const char *project, enum price_how how,
                uint64_t *udollar)
{
  Nb__EstimateSpec what = NB__ESTIMATE_SPEC__INIT;
  Nb__CreateDisk create = NB__CREATE_DISK__INIT;
  Nb__Metadata metadata = NB__METADATA__INIT;
  Nb__DiskSpec spec = NB__DISK_SPEC__INIT;
  char key[KEY_MAX];
  int64_t cost;
  int32_t rc;

  metadata.parent_id = (char *) (uintptr_t) project;
  spec.type = NETWORK_SSD;
  spec.size_gibibytes = DISK_SAMPLE_GIB;
  create.metadata = &metadata;
  create.spec = &spec;
  what.compute_disk_spec = &create;
  snprintf (key, sizeof key, "%s disk", region);
  rc = ask (c, key, &what, how, &cost);
  if (rc == GPUB_OK)
    *udollar = ((uint64_t) cost + DISK_SAMPLE_GIB - 1) / DISK_SAMPLE_GIB;
  return rc;
}
