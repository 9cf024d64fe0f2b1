/* order.c - what one create will ask for: image, disk, ports, and the zones in the order to try
 *
 * It is saved before it is sent.  What is sent once more then asks for the very same, so that EC2
 * knows it by its token.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

void
order_done (struct order *o)
{
  json_decref (o->places);
  o->places = NULL;
}

/* ---- What is refused before ---- */

static int32_t
check_ports (const struct ctx *c, const struct gpub_create *a)
{
  for (uint64_t i = 0; i < a->nports; i++) {
    const struct gpub_port *p = GPUB_AT (struct gpub_port, a->ports, a->ports_stride, i);

    if (!p->proto || (strcmp (p->proto, "tcp") != 0 && strcmp (p->proto, "udp") != 0) ||
        p->from == 0 || p->from > p->to || p->to > 65535)
      return plug_error (c->err, GPUB_E_INVALID, "'%.10s' %u-%u is no range of ports",
                         p->proto ? p->proto : "", p->from, p->to);
  }
  return GPUB_OK;
}

static int32_t
check (const struct ctx *c, const struct gpub_create *a)
{
  if (a->nssh_public_keys == 0)
    return plug_error (c->err, GPUB_E_INVALID, "no SSH public key: nobody could log in");
  if (!a->token || strlen (a->token) < 1 || strlen (a->token) > FIELD_MAX)
    return plug_error (c->err, GPUB_E_INVALID, "a token of 1 to %d characters is wanted",
                       FIELD_MAX);
  return check_ports (c, a);
}

/* ---- Places ---- */

static int
by_price (const void *a, const void *b)
{
  const json_t *const *x = a, *const *y = b;
  int64_t p = json_i64 (*x, "price", 0), q = json_i64 (*y, "price", 0);

  return p < q ? -1 : p > q;
}

static void
sort (json_t *places)
{
  size_t n = json_array_size (places);
  json_t **rows = calloc (n + 1, sizeof *rows);

  if (!rows)
    abort ();
  for (size_t i = 0; i < n; i++)
    rows[i] = json_incref (json_array_get (places, i));
  qsort (rows, n, sizeof *rows, by_price);
  json_array_clear (places);
  for (size_t i = 0; i < n; i++)
    json_array_append_new (places, rows[i]);
  free (rows);
}

/* At one price everywhere, different attempts begin in different zones. */
static void
rotate (json_t *places, const char *token)
{
  size_t n = json_array_size (places);
  unsigned sum = 0;

  for (; *token; token++)
    sum = sum * 31 + (unsigned char) *token;
  for (size_t i = 0; n > 1 && i < sum % n; i++) {
    json_array_append (places, json_array_get (places, 0));
    json_array_remove (places, 0);
  }
}

static void
add_place (struct order *o, const char *zone, const char *subnet, const struct prices *p)
{
  json_auto_t *alone = json_pack ("[s]", zone);
  uint64_t price;
  bool known = o->market == GPUB_MARKET_SPOT ? price_spot (p, o->type, alone, &price)
                                             : price_on_demand (p, o->type, &price);

  if (known)
    json_array_append_new (o->places, json_pack ("{s:s, s:s, s:I}", "zone", zone, "subnet", subnet,
                                                 "price", (json_int_t) price));
}

static void
keep_affordable (struct order *o, uint64_t most)
{
  for (size_t i = json_array_size (o->places); i-- > 0;)
    if ((uint64_t) json_i64 (json_array_get (o->places, i), "price", 0) > most)
      json_array_remove (o->places, i);
}

/* ---- The quote ---- */

static int32_t
find_type (const struct ctx *c, const struct order *o, json_t **row, struct type *t)
{
  json_auto_t *rows = NULL;
  json_t *candidate;
  size_t i;
  int32_t rc = types_read (c, &rows);

  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (rows, i, candidate)
    if (type_read (candidate, t) && strcmp (t->name, o->type) == 0 &&
        (o->market == GPUB_MARKET_SPOT ? t->spot : t->on_demand)) {
      *row = json_incref (candidate); /* t points into it */
      return GPUB_OK;
    }
  return plug_error (c->err, GPUB_E_CAPACITY, "%s is not sold in %s", o->type, o->region);
}

static int32_t
pick_image (const struct ctx *c, const struct gpub_create *a, const struct type *t, struct order *o)
{
  int32_t rc;

  if (a->image && !id_valid (a->image, "ami-"))
    return plug_error (c->err, GPUB_E_INVALID, "image '%.60s' is no id such as ami-0abc", a->image);
  rc = a->image ? image_read (c, a->image, t->arch, &o->image) : image_find (c, t->arch, &o->image);
  o->gib = a->disk_gib ? a->disk_gib : c->s->disk_gib;
  if (o->gib < o->image.gib)
    o->gib = o->image.gib;
  if (rc == GPUB_E_NOT_FOUND)
    return GPUB_E_INVALID;
  if (rc == GPUB_OK && o->gib > DISK_MAX_GIB)
    return plug_error (c->err, GPUB_E_INVALID, "disk of %u GiB: EBS has at most %d", o->gib,
                       DISK_MAX_GIB);
  return rc;
}

static int32_t
judge (const struct ctx *c, const struct gpub_create *a, const struct prices *p, struct order *o)
{
  char what[160];
  uint64_t first, dearest;

  snprintf (what, sizeof what, "%s in %s", o->type, o->region);
  if (json_array_size (o->places) == 0 || p->gib == 0)
    return plug_error (c->err, GPUB_E_CAPACITY, "%s has no price now", what);
  o->besides = o->gib * p->gib + c->s->ip_udollar;
  first = (uint64_t) json_i64 (json_array_get (o->places, 0), "price", 0);
  if (first + o->besides > a->max_price_udollar)
    return plug_check_price (what, first + o->besides, a->max_price_udollar, c->err);
  o->spot_max = a->max_price_udollar - o->besides;
  keep_affordable (o, o->spot_max);
  if (price_on_demand (p, o->type, &dearest) && o->spot_max > dearest)
    o->spot_max = dearest; /* more is never paid, and EC2 refuses what is far beyond */
  return GPUB_OK;
}

static int32_t
choose_places (const struct ctx *c, const struct gpub_create *a, struct order *o,
               char vpc[static FIELD_MAX])
{
  json_auto_t *zones = NULL, *subnets = NULL, *eligible = NULL;
  struct prices prices = { .gib = 0 };
  const json_t *zone;
  size_t i;
  int32_t rc = zones_read (c, &zones);

  if (rc == GPUB_OK)
    rc = subnets_read (c, &subnets, vpc);
  if (rc == GPUB_OK)
    rc = prices_read (c, o->type, &prices);
  if (rc == GPUB_OK) {
    eligible = zones_eligible (zones, subnets, o->type);
    json_array_foreach (eligible, i, zone)
      add_place (o, json_string_value (zone), json_str (subnets, json_string_value (zone), ""),
                 &prices);
    rotate (o->places, a->token);
    sort (o->places);
    rc = judge (c, a, &prices, o);
  }
  prices_done (&prices);
  return rc;
}

int32_t
order_prepare (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  json_auto_t *row = NULL;
  char vpc[FIELD_MAX];
  struct type t;
  int32_t rc = check (c, a);

  o->places = json_array ();
  if (rc == GPUB_OK)
    rc = find_type (c, o, &row, &t);
  if (rc == GPUB_OK)
    rc = pick_image (c, a, &t, o);
  if (rc == GPUB_OK)
    rc = choose_places (c, a, o, vpc);
  return rc == GPUB_OK ? group_ensure (c, a, vpc, o->group) : rc;
}

/* ---- Saved ---- */

json_t *
order_save (const struct order *o, size_t place)
{
  return json_pack ("{s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:I, s:I, s:O, s:I}", "region", o->region,
                    "type", o->type, "group", o->group, "market", (int) o->market, "image",
                    o->image.id, "root", o->image.root, "gib", (int) o->gib, "besides",
                    (json_int_t) o->besides, "spot_max", (json_int_t) o->spot_max, "places",
                    o->places, "place", (json_int_t) place);
}

bool
order_load (struct order *o, size_t *place, const json_t *saved)
{
  json_t *places = json_object_get (saved, "places");

  snprintf (o->region, sizeof o->region, "%s", json_str (saved, "region", ""));
  snprintf (o->type, sizeof o->type, "%s", json_str (saved, "type", ""));
  snprintf (o->group, sizeof o->group, "%s", json_str (saved, "group", ""));
  snprintf (o->image.id, sizeof o->image.id, "%s", json_str (saved, "image", ""));
  snprintf (o->image.root, sizeof o->image.root, "%s", json_str (saved, "root", ""));
  o->market = (uint32_t) json_i64 (saved, "market", 0);
  o->gib = (uint32_t) json_i64 (saved, "gib", 0);
  o->besides = (uint64_t) json_i64 (saved, "besides", 0);
  o->spot_max = (uint64_t) json_i64 (saved, "spot_max", 0);
  *place = (size_t) json_i64 (saved, "place", 0);
  json_decref (o->places);
  o->places = json_incref (places);
  return *o->region && *o->type && *o->group && *o->image.id && *place < json_array_size (places);
}
