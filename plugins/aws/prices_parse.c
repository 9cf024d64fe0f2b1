/* prices_parse.c - one product of the price list: JSON inside a string of JSON
 *
 * Rows of capacity blocks carry prices of 0 and of cents beside the real ones: only what is plainly
 * on-demand, shared, Linux and an hour's price counts.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { PRODUCT_DEPTH = 16, PRODUCT_TOKENS = 4096, HOURS_A_MONTH = 730 };

static json_t *
parse (const char *text)
{
  size_t n = strlen (text);

  if (json_scan (text, n, PRODUCT_DEPTH, PRODUCT_TOKENS, NULL) < 0)
    return NULL;
  return json_loadb (text, n, 0, NULL);
}

/* An attribute that is not there is no contradiction. */
static bool
is (const json_t *attributes, const char *name, const char *want)
{
  return strcmp (json_str (attributes, name, want), want) == 0;
}

static bool
dimension_price (const json_t *dimension, const char *unit, uint64_t *udollar)
{
  const char *usd = json_str (json_object_get (dimension, "pricePerUnit"), "USD", "");

  return strcmp (json_str (dimension, "unit", ""), unit) == 0 && udollar_parse (usd, udollar) &&
         *udollar > 0;
}

static bool
price_of (const json_t *product, const char *unit, uint64_t *udollar)
{
  json_t *terms = json_object_get (json_object_get (product, "terms"), "OnDemand"), *term,
         *dimension;
  const char *key, *inner;

  json_object_foreach (terms, key, term)
    json_object_foreach (json_object_get (term, "priceDimensions"), inner, dimension)
      if (dimension_price (dimension, unit, udollar))
        return true;
  return false;
}

static const json_t *
attributes_of (const json_t *product)
{
  return json_object_get (json_object_get (product, "product"), "attributes");
}

bool
product_price (const char *text, char type[static FIELD_MAX], uint64_t *udollar)
{
  json_auto_t *product = parse (text);
  const json_t *a = attributes_of (product);
  const char *name = json_str (a, "instanceType", "");

  if (!*name || strlen (name) >= FIELD_MAX || !is (a, "operatingSystem", "Linux") ||
      !is (a, "tenancy", "Shared") || !is (a, "capacitystatus", "Used") ||
      !is (a, "preInstalledSw", "NA") || !is (a, "marketoption", "OnDemand"))
    return false;
  strcpy (type, name);
  return price_of (product, "Hrs", udollar);
}

bool
product_gib_price (const char *text, uint64_t *udollar)
{
  json_auto_t *product = parse (text);
  uint64_t month;

  if (!is (attributes_of (product), "volumeApiName", "gp3") || !price_of (product, "GB-Mo", &month))
    return false;
  *udollar = (month + HOURS_A_MONTH - 1) / HOURS_A_MONTH;
  return true;
}
