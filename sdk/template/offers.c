/* offers.c - Acme's types, one offer for each region that has the type */
#include <stdio.h>
#include <string.h>

#include "acme.h"

struct query {
  const char *wanted; /* NULL: every offer */
  int emit;
  uint64_t udollar; /* of the one that was wanted */
  int64_t stock;
  int found;
};

/* "1.25" to micro-dollars, without floating point: prices are exact. */
static int
parse_price (const char *text, uint64_t *udollar)
{
  unsigned long long whole = 0, part = 0, unit = 1000000;
  const char *p = text;

  for (; *p >= '0' && *p <= '9' && whole < 1000000; p++)
    whole = whole * 10 + (unsigned) (*p - '0');
  if (p == text)
    return 0;
  if (*p == '.')
    for (p++; *p >= '0' && *p <= '9'; p++)
      part += (unsigned) (*p - '0') * (unit /= 10);
  *udollar = whole * 1000000 + part;
  return *p == '\0';
}

static int32_t
emit (const struct ctx *c, const json_t *type, const json_t *region, const char *ref,
      uint64_t udollar)
{
  const json_t *gpu = json_object_get (type, "gpu"); /* null: a machine without one */
  int has_gpu = json_is_object (gpu);
  const struct gpub_offer o = {
    .size = sizeof o,
    .known = GPUB_OFFER_PRICE | GPUB_OFFER_GPUS | GPUB_OFFER_VCPUS | GPUB_OFFER_RAM |
             GPUB_OFFER_DISK | GPUB_OFFER_STOCK | (has_gpu ? GPUB_OFFER_VRAM : 0),
    .offer_ref = ref,
    .scope = SCOPE,
    .region = str (region, "name"),
    .instance_type = str (type, "name"),
    .gpu_name = has_gpu ? str (gpu, "model") : NULL,
    .gpu_count = (uint32_t) num (gpu, "count"),
    .vram_mib = (uint64_t) num (gpu, "vram_gib") * 1024,
    .vcpus = (uint32_t) num (type, "vcpus"),
    .ram_mib = (uint64_t) num (type, "ram_gib") * 1024,
    .disk_gib = (uint32_t) num (type, "disk_gib"),
    .arch = "x86_64",
    .kind = GPUB_KIND_VM,
    .market = GPUB_MARKET_ON_DEMAND,
    .stock = (uint32_t) num (region, "stock"),
    .availability = num (region, "stock") > 0 ? GPUB_AVAIL_AVAILABLE : GPUB_AVAIL_NONE,
    .price_udollar = udollar,
  };

  return c->acme->host->emit_offer (c->call, &o);
}

/* A row that cannot be read fails the whole list: a list that leaves something out is not
 * complete. */
static int32_t
on_type (const struct ctx *c, const json_t *type, void *arg)
{
  struct query *q = arg;
  const json_t *region;
  uint64_t udollar;
  int32_t rc = GPUB_OK;
  size_t i;

  if (!*str (type, "name") || !parse_price (str (type, "price"), &udollar))
    return acme_error (c->err, GPUB_E_UNAVAILABLE, "a type without a name or a price");
  json_array_foreach (json_object_get (type, "regions"), i, region) {
    char ref[512];

    snprintf (ref, sizeof ref, "%s/%s", str (region, "name"), str (type, "name"));
    if (rc != GPUB_OK || (q->wanted && strcmp (q->wanted, ref) != 0))
      continue;
    q->found = 1;
    q->udollar = udollar;
    q->stock = num (region, "stock");
    if (q->emit)
      rc = emit (c, type, region, ref, udollar);
  }
  return rc;
}

int32_t
acme_list_offers (void *self, struct gpub_call *call, const struct gpub_offer_query *query,
                  struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct query q = { .wanted = query->offer_ref, .emit = 1 };
  int32_t rc = api_pages (&c, "/types", "types", on_type, &q);

  if (rc != GPUB_OK)
    return rc;
  return c.acme->host->scope_done (call, SCOPE, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
}

int32_t
offer_price (const struct ctx *c, const char *offer_ref, uint64_t *udollar)
{
  struct query q = { .wanted = offer_ref };
  int32_t rc = api_pages (c, "/types", "types", on_type, &q);

  if (rc == GPUB_OK && (!q.found || q.stock <= 0))
    return acme_error (c->err, GPUB_E_CAPACITY, "offer %.100s is not for rent", offer_ref);
  *udollar = q.udollar;
  return rc;
}
