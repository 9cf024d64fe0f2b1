/* prices.c - what a machine, its disk and its address cost an hour
 *
 * On-demand prices come from the price list once a day and survive a restart in the state folder;
 * spot prices are asked for each time.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum {
  DAY_MS = 24 * 60 * 60 * 1000,
  PAGES_MAX = 100,
  STALE_DAYS = 7,
  FAILED_PAUSE_MS = 10 * 60 * 1000
};

struct filter {
  const char *field, *value;
};

static const struct filter machine_filters[] = {
  { "operatingSystem", "Linux" }, { "tenancy", "Shared" },        { "capacitystatus", "Used" },
  { "preInstalledSw", "NA" },     { "marketoption", "OnDemand" },
};

static const struct filter disk_filters[] = {
  { "productFamily", "Storage" },
  { "volumeApiName", "gp3" },
};

void
prices_done (struct prices *p)
{
  json_decref (p->types);
  json_decref (p->spot);
}

/* ---- The price list ---- */

static json_t *
request_of (const struct ctx *c, const struct filter *filters, size_t n, const char *token)
{
  json_t *list = json_array (), *body;

  json_array_append_new (list, json_pack ("{s:s, s:s, s:s}", "Type", "TERM_MATCH", "Field",
                                          "regionCode", "Value", c->region));
  for (size_t i = 0; i < n; i++)
    json_array_append_new (list, json_pack ("{s:s, s:s, s:s}", "Type", "TERM_MATCH", "Field",
                                            filters[i].field, "Value", filters[i].value));
  body = json_pack ("{s:s, s:s, s:i, s:o}", "ServiceCode", "AmazonEC2", "FormatVersion", "aws_v1",
                    "MaxResults", 100, "Filters", list);
  if (*token)
    json_object_set_new (body, "NextToken", json_string (token));
  return body;
}

static int32_t
products_read (const struct ctx *c, const struct filter *filters, size_t n,
               void (*take) (const char *product, void *to), void *to)
{
  char token[2048] = "";

  for (int i = 0; i < PAGES_MAX; i++) {
    json_auto_t *body = request_of (c, filters, n, token), *answer = NULL;
    const json_t *list, *row;
    const char *next;
    size_t k;
    int32_t rc =
        json_read (c, "list prices", "pricing", "AWSPriceListService.GetProducts", body, &answer);

    if (rc != GPUB_OK)
      return rc;
    list = json_object_get (answer, "PriceList");
    if (!json_is_array (list))
      return plug_error (c->err, GPUB_E_UNAVAILABLE, "list prices: the answer has no PriceList");
    json_array_foreach (list, k, row)
      if (json_is_string (row))
        take (json_string_value (row), to);
    next = json_str (answer, "NextToken", "");
    if (!*next)
      return GPUB_OK;
    if (strlen (next) >= sizeof token || strcmp (next, token) == 0)
      break;
    strcpy (token, next);
  }
  return plug_error (c->err, GPUB_E_UNAVAILABLE, "list prices: the pages do not end");
}

static void
take_machine (const char *product, void *to)
{
  char type[FIELD_MAX];
  uint64_t udollar;

  if (product_price (product, type, &udollar))
    json_object_set_new (to, type, json_integer ((json_int_t) udollar));
}

static void
take_disk (const char *product, void *to)
{
  uint64_t *gib = to, udollar;

  if (product_gib_price (product, &udollar))
    *gib = udollar;
}

static int32_t
list_fetch (const struct ctx *c, json_t **list)
{
  json_auto_t *types = json_object ();
  uint64_t gib = 0;
  int32_t rc =
      products_read (c, machine_filters, N_ELEMENTS (machine_filters), take_machine, types);

  if (rc == GPUB_OK)
    rc = products_read (c, disk_filters, N_ELEMENTS (disk_filters), take_disk, &gib);
  if (rc == GPUB_OK && (json_object_size (types) == 0 || gib == 0))
    rc = plug_error (c->err, GPUB_E_UNAVAILABLE, "list prices: none of %s in %s",
                     gib ? "machines" : "disks", c->region);
  if (rc == GPUB_OK)
    *list = json_pack ("{s:I, s:I, s:O}", "at", (json_int_t) c->s->host->now_ms (c->call), "gib",
                       (json_int_t) gib, "types", types);
  return rc;
}

/* ---- Remembered ---- */

static void
state_key (const struct ctx *c, char key[static FIELD_MAX])
{
  snprintf (key, FIELD_MAX, "prices-%.40s", c->region);
}

static json_t *
list_saved (const struct ctx *c)
{
  char key[FIELD_MAX];
  const void *bytes;
  uint64_t n;
  json_t *list;

  state_key (c, key);
  if (c->s->host->state_get (c->call, key, &bytes, &n) != GPUB_OK)
    return NULL;
  list = json_loadb (bytes, n, 0, NULL);
  if (json_is_object (json_object_get (list, "types")))
    return list;
  json_decref (list);
  return NULL;
}

static void
list_save (const struct ctx *c, const json_t *list)
{
  AUTO_FREE char *text = json_dumps (list, JSON_COMPACT);
  char key[FIELD_MAX];

  state_key (c, key);
  if (text)
    c->s->host->state_put (c->call, key, text, strlen (text));
}

static bool
younger (const struct ctx *c, const json_t *list, int64_t max_ms)
{
  int64_t age = c->s->host->now_ms (c->call) - json_i64 (list, "at", 0);

  return list && age >= 0 && age < max_ms;
}

/* Yesterday's prices are better than none, and the failure is logged; they are not asked for again
 * each minute then. */
static int32_t
list_read (const struct ctx *c, json_t **list)
{
  json_auto_t *old = NULL;
  int32_t rc;

  *list = cache_get (c, "prices", FAILED_PAUSE_MS);
  if (younger (c, *list, (int64_t) STALE_DAYS * DAY_MS))
    return GPUB_OK;
  json_decref (*list);
  *list = NULL;
  old = list_saved (c);
  rc = younger (c, old, DAY_MS) ? GPUB_OK : list_fetch (c, list);
  if (rc == GPUB_OK && *list)
    list_save (c, *list);
  else if (younger (c, old, (int64_t) STALE_DAYS * DAY_MS)) {
    if (rc != GPUB_OK)
      c->s->host->log (c->call, GPUB_LOG_WARNING, "aws.prices.stale", c->err->text);
    *list = json_incref (old);
    rc = GPUB_OK;
  }
  if (rc == GPUB_OK)
    cache_put (c, "prices", *list);
  return rc;
}

/* ---- Spot ---- */

static void
take_spot (json_t *spot, const json_t *row)
{
  const char *type = json_str (row, "instanceType", ""),
             *zone = json_str (row, "availabilityZone", ""), *at = json_str (row, "timestamp", "");
  json_t *zones = json_object_get (spot, type);
  uint64_t udollar;

  if (!*type || !*zone || !udollar_parse (json_str (row, "spotPrice", ""), &udollar) ||
      udollar == 0)
    return;
  if (!zones)
    json_object_set_new (spot, type, zones = json_object ());
  if (strcmp (sub_str (zones, zone, "at", ""), at) <= 0) /* the newest of a zone counts */
    json_object_set_new (zones, zone,
                         json_pack ("{s:I, s:s}", "price", (json_int_t) udollar, "at", at));
}

static int32_t
spot_read (const struct ctx *c, const char *type, json_t **spot)
{
  AUTO_QUERY struct query q = query_new ("DescribeSpotPriceHistory");
  json_auto_t *rows = NULL;
  const json_t *row;
  char now[RFC3339_SIZE];
  size_t i;
  int32_t rc;

  rfc3339_print (c->s->host->now_ms (c->call), now);
  query_add (&q, "StartTime", now);
  query_add (&q, "ProductDescription.1", "Linux/UNIX");
  query_add (&q, "ProductDescription.2", "Linux/UNIX (Amazon VPC)");
  if (type)
    query_add (&q, "InstanceType.1", type);
  else
    types_filter (c, &q);
  query_int (&q, "MaxResults", 1000);
  rc = ec2_pages (c, "list spot prices", &q, "spotPriceHistorySet", &rows);
  if (rc != GPUB_OK)
    return rc;
  *spot = json_object ();
  json_array_foreach (rows, i, row)
    take_spot (*spot, row);
  return GPUB_OK;
}

/* ---- All ---- */

int32_t
prices_read (const struct ctx *c, const char *type, struct prices *p)
{
  json_auto_t *list = NULL;
  int32_t rc = list_read (c, &list);

  *p = (struct prices){ .types = json_incref (json_object_get (list, "types")),
                        .gib = (uint64_t) json_i64 (list, "gib", 0) };
  return rc == GPUB_OK ? spot_read (c, type, &p->spot) : rc;
}

bool
price_on_demand (const struct prices *p, const char *type, uint64_t *udollar)
{
  *udollar = (uint64_t) json_i64 (p->types, type, 0);
  return *udollar > 0;
}

bool
price_spot (const struct prices *p, const char *type, const json_t *zones, uint64_t *udollar)
{
  const json_t *all = json_object_get (p->spot, type), *zone;
  size_t i;

  *udollar = 0;
  json_array_foreach (zones, i, zone) {
    uint64_t price =
        (uint64_t) json_i64 (json_object_get (all, json_string_value (zone)), "price", 0);

    if (price && (*udollar == 0 || price < *udollar))
      *udollar = price;
  }
  return *udollar > 0;
}

uint64_t
disk_price (const struct ctx *c)
{
  json_auto_t *list = list_saved (c);

  return (uint64_t) json_i64 (list, "gib", 0);
}
