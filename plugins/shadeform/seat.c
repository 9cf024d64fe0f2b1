/* seat.c - what can be rented, by name: one (cloud, region, type, rental) with its price and image
 *
 * Two prices of two kinds: on-demand is integer cents of the whole machine in the row, spot a
 * string of decimal dollars in the seat.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"

enum { UDOLLAR_PER_CENT = 10000, CENTS_MAX = 100 * 1000 * 1000 };

bool
field_take (char *out, size_t size, const char *text)
{
  size_t n = text ? strlen (text) : 0;

  if (n == 0 || n >= size)
    return false;
  for (size_t i = 0; i < n; i++)
    if (!isprint ((unsigned char) text[i]) || text[i] == '|')
      return false;
  memcpy (out, text, n + 1);
  return true;
}

bool
seat_is_spot (const struct seat *seat)
{
  return strcmp (seat->rental, "spot") == 0;
}

/* An older catalog has no rental_type: everything was on demand then.  A price of its own without
 * the type is no on-demand seat all the same. */
bool
seat_read (struct seat *seat, const json_t *row, const json_t *availability)
{
  const char *rental = json_str (availability, "rental_type", "on_demand");
  bool spot = strcmp (rental, "spot") == 0, priced = json_str (availability, "hourly_price", NULL);

  seat->image[0] = '\0';
  return (spot || (strcmp (rental, "on_demand") == 0 && !priced)) &&
         field_take (seat->cloud, sizeof seat->cloud, json_str (row, "cloud", NULL)) &&
         field_take (seat->type, sizeof seat->type, json_str (row, "shade_instance_type", NULL)) &&
         field_take (seat->region, sizeof seat->region, json_str (availability, "region", NULL)) &&
         field_take (seat->rental, sizeof seat->rental, rental);
}

bool
seat_parse (const char *offer_ref, struct seat *seat)
{
  struct {
    char *out;
    size_t size;
  } fields[] = {
    { seat->cloud, sizeof seat->cloud }, { seat->region, sizeof seat->region },
    { seat->type, sizeof seat->type },   { seat->rental, sizeof seat->rental },
    { seat->image, sizeof seat->image },
  };
  char copy[REF_MAX + 1], *rest = copy;

  if (strlen (offer_ref) > REF_MAX)
    return false;
  strcpy (copy, offer_ref);
  for (size_t i = 0; i < N_ELEMENTS (fields); i++) {
    const char *field = strsep (&rest, "|");

    if (!field || (!field_take (fields[i].out, fields[i].size, field) && i < 4))
      return false;
    if (*field == '\0')
      fields[i].out[0] = '\0'; /* an image may be left to the cloud */
  }
  return !rest;
}

bool
seat_print (const struct seat *s, char out[static REF_MAX + 1])
{
  return snprintf (out, REF_MAX + 1, "%s|%s|%s|%s|%s", s->cloud, s->region, s->type, s->rental,
                   s->image) <= REF_MAX;
}

bool
seat_same (const struct seat *a, const struct seat *b)
{
  return strcmp (a->cloud, b->cloud) == 0 && strcmp (a->region, b->region) == 0 &&
         strcmp (a->type, b->type) == 0 && strcmp (a->rental, b->rental) == 0;
}

/* Zero counts as unknown: nobody gives machines away, and the price that wins must be a real one.
 */
bool
seat_price (const struct seat *seat, const json_t *row, const json_t *availability,
            uint64_t *udollar)
{
  int64_t cents = json_i64 (row, "hourly_price", 0);

  if (seat_is_spot (seat))
    return udollar_parse (json_str (availability, "hourly_price", ""), udollar) && *udollar > 0;
  if (cents <= 0 || cents > CENTS_MAX)
    return false;
  *udollar = (uint64_t) cents * UDOLLAR_PER_CENT;
  return true;
}

bool
image_offered (const json_t *images, const char *wanted)
{
  const json_t *image;
  size_t i;

  json_array_foreach (images, i, image)
    if (json_is_string (image) && strcmp (json_string_value (image), wanted) == 0)
      return true;
  return false;
}

/* The operator's choice, else an image with driver and container toolkit, else whatever comes
 * first. */
const char *
image_choose (const struct shadeform *s, const json_t *images)
{
  const json_t *image;
  size_t i;

  json_array_foreach (s->images, i, image)
    if (image_offered (images, json_string_value (image)))
      return json_string_value (image);
  json_array_foreach (images, i, image)
    if (json_is_string (image) && strstr (json_string_value (image), "_shade_os"))
      return json_string_value (image);
  image = json_array_get (images, 0);
  return json_is_string (image) ? json_string_value (image) : NULL;
}

const json_t *
images_of (const json_t *row)
{
  return json_object_get (json_object_get (row, "configuration"), "os_options");
}

uint32_t
seat_availability (const json_t *availability)
{
  const json_t *available = json_object_get (availability, "available");

  if (!json_is_boolean (available))
    return GPUB_AVAIL_UNKNOWN;
  return json_is_true (available) ? GPUB_AVAIL_AVAILABLE : GPUB_AVAIL_NONE;
}

/* One type of one cloud, or all of the catalog.  The names of a seat are bounded, escaped they
 * still fit. */
int32_t
catalog_read (const struct ctx *c, const struct seat *only, json_t **body)
{
  char path[1024] = "/instances/types";

  if (only) {
    strcat (path, "?cloud=");
    url_append (path, sizeof path, only->cloud);
    strcat (path, "&shade_instance_type=");
    url_append (path, sizeof path, only->type);
  }
  return api_list (c, "list instance types", path, "instance_types", body);
}

/* ---- The quote before a create ---- */

static int32_t
quote_image (const struct ctx *c, struct seat *seat, const json_t *row, const char *wanted)
{
  const json_t *images = images_of (row);
  const char *image = wanted ? wanted : seat->image;

  if (image_offered (images, image))
    return field_take (seat->image, sizeof seat->image, image)
               ? GPUB_OK
               : plug_error (c->err, GPUB_E_INVALID, "image '%.100s' has an unusable name", image);
  if (wanted)
    return plug_error (c->err, GPUB_E_INVALID, "image '%.100s' is not offered with %.60s of %.60s",
                       wanted, seat->type, seat->cloud);
  image = image_choose (c->s, images);
  if (!image || !field_take (seat->image, sizeof seat->image, image))
    seat->image[0] = '\0';
  return GPUB_OK;
}

static const json_t *
seat_find (const json_t *types, const struct seat *seat, const json_t **row)
{
  const json_t *availability;
  struct seat other;
  size_t i, k;

  json_array_foreach (types, i, *row)
    json_array_foreach (json_object_get (*row, "availability"), k, availability)
      if (seat_read (&other, *row, availability) && seat_same (seat, &other))
        return availability;
  return NULL;
}

int32_t
seat_quote (const struct ctx *c, struct seat *seat, const char *wanted, uint64_t *udollar)
{
  json_auto_t *body = NULL;
  const json_t *row, *availability;
  int32_t rc = catalog_read (c, seat, &body);

  if (rc != GPUB_OK)
    return rc;
  availability = seat_find (json_object_get (body, "instance_types"), seat, &row);
  if (!availability || seat_availability (availability) == GPUB_AVAIL_NONE)
    return plug_error (c->err, GPUB_E_CAPACITY, "%.60s of %.60s in %.60s is %s", seat->type,
                       seat->cloud, seat->region,
                       availability ? "out of stock now" : "no longer in the catalog");
  if (!seat_price (seat, row, availability, udollar))
    return plug_error (c->err, GPUB_E_CAPACITY, "%.60s of %.60s in %.60s has no price now",
                       seat->type, seat->cloud, seat->region);
  return quote_image (c, seat, row, wanted);
}
