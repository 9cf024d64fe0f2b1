/* offers.c - what is free, and which zones there are */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "plugins/static/static.h"

enum { MIB_PER_GIB = 1024 };

/* Every zone of the configuration and of the claims, as keys of an object. */
static json_t *
scopes (const struct plant *p, json_t *claims)
{
  json_t *set = json_object (), *claim;
  const char *id;

  for (size_t i = 0; i < p->machines.n; i++)
    json_put_i64 (set, conf_scope (p->machines.at[i].conf), 1);
  json_object_foreach (claims, id, claim)
    json_put_i64 (set, conf_scope (json_object_get (claim, "conf")), 1);
  return set;
}

/* Claims that could be read prove what is absent; else nothing is known of any zone. */
int32_t
scopes_done (struct visit *v, json_t *claims, const char *only, int32_t rc)
{
  AUTO_JSON json_t *set = scopes (v->plant, claims);
  uint32_t how = rc == GPUB_OK ? GPUB_SCOPE_COMPLETE : GPUB_SCOPE_FAILED;
  const char *scope;
  json_t *one;

  json_object_foreach (set, scope, one)
    if (!only || strcmp (only, scope) == 0) {
      int32_t told =
          v->plant->host->scope_done (v->call, scope, how, rc, rc == GPUB_OK ? NULL : v->err);

      if (told != GPUB_OK)
        return told;
    }
  return rc;
}

static int32_t
emit_offer (struct visit *v, const struct machine *m)
{
  const json_t *c = m->conf;
  const char *gpu = json_str (c, "gpu", NULL);
  struct gpub_offer o = {
    .size = sizeof o,
    .known = GPUB_OFFER_GPUS | GPUB_OFFER_STOCK | GPUB_OFFER_BOOT |
             conf_known (c, "price_udollar", GPUB_OFFER_PRICE) |
             conf_known (c, "vram_gib", GPUB_OFFER_VRAM) |
             conf_known (c, "vcpus", GPUB_OFFER_VCPUS) | conf_known (c, "ram_gib", GPUB_OFFER_RAM) |
             conf_known (c, "disk_gib", GPUB_OFFER_DISK),
    .offer_ref = m->id,
    .scope = conf_scope (c),
    .region = json_str (c, "region", conf_scope (c)),
    .zone = json_str (c, "zone", NULL),
    .country = json_str (c, "country", NULL),
    .instance_type = m->id,
    .gpu_name = gpu,
    .vram_mib = (uint64_t) json_i64 (c, "vram_gib", 0) * MIB_PER_GIB,
    .ram_mib = (uint64_t) json_i64 (c, "ram_gib", 0) * MIB_PER_GIB,
    .gpu_count = (uint32_t) json_i64 (c, "gpus", gpu ? 1 : 0),
    .vcpus = (uint32_t) json_i64 (c, "vcpus", 0),
    .kind =
        strcmp (json_str (c, "kind", "baremetal"), "vm") == 0 ? GPUB_KIND_VM : GPUB_KIND_BAREMETAL,
    .market = GPUB_MARKET_ON_DEMAND,
    .availability = GPUB_AVAIL_AVAILABLE,
    .stock = 1,
    .disk_gib = (uint32_t) json_i64 (c, "disk_gib", 0),
    .arch = json_str (c, "arch", "x86_64"),
    .interconnect = json_str (c, "interconnect", NULL),
    .driver = json_str (c, "driver", NULL),
    .price_udollar = (uint64_t) json_i64 (c, "price_udollar", 0),
  };

  return v->plant->host->emit_offer (v->call, &o);
}

int32_t
static_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                    struct gpub_error *err)
{
  struct visit v = { self, call, err };
  AUTO_JSON json_t *claims = NULL;
  int32_t rc = claims_read (&v, &claims);

  for (size_t i = 0; i < v.plant->machines.n && rc == GPUB_OK; i++) {
    const struct machine *m = &v.plant->machines.at[i];

    if (!json_object_get (claims, m->id) &&
        (!query->offer_ref || strcmp (query->offer_ref, m->id) == 0))
      rc = emit_offer (&v, m);
  }
  return scopes_done (&v, claims, NULL, rc);
}
