/* catalog.c - reads the lists that make the catalog */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

static int32_t
read_regional (const struct ctx *c, const char *what, const char *base, const char *region,
               const char *member, json_t **rows)
{
  char path[512];

  snprintf (path, sizeof path, "%s%s", base, region ? "?region=" : "");
  if (region && !url_append (path, sizeof path, region))
    return plug_error (c->err, GPUB_E_INVALID, "'%.100s' is no region", region);
  return api_list (c, what, path, member, rows);
}

int32_t
prices_read (const struct ctx *c, json_t **prices)
{
  return api_list (c, "read the price book", "/pricebook", NULL, prices);
}

int32_t
images_read (const struct ctx *c, const char *region, json_t **images)
{
  return read_regional (c, "list images", "/core/images", region, "images", images);
}

int32_t
catalog_read (const struct ctx *c, const char *region, struct catalog *k)
{
  int32_t rc;

  *k = (struct catalog){ .now_ms = c->s->host->now_ms (c->call) };
  rc = read_regional (c, "list flavors", "/core/flavors", region, "data", &k->flavors);
  if (rc == GPUB_OK)
    rc = prices_read (c, &k->prices);
  if (rc == GPUB_OK)
    rc = api_list (c, "list stocks", "/core/stocks", "stocks", &k->stocks);
  return rc;
}

void
catalog_done (struct catalog *k)
{
  json_decref (k->flavors);
  json_decref (k->prices);
  json_decref (k->stocks);
}
