/* create.c - rent one preset: what is refused, what it costs now, what it boots and where */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 100, READY = 2 };

static const struct method list_subnets = { "vpc", "nebius.vpc.v1.SubnetService/List",
                                            "list subnets", &nb__subnets__descriptor };

/* ---- What is refused before ---- */

/* The cloud names no limits; these are the ones its users found. */
static bool
label_valid (const struct gpub_kv *tag)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  size_t key = strlen (tag->key), value = strlen (tag->value);

  return key >= 1 && key <= 63 && tag->key[0] >= 'a' && tag->key[0] <= 'z' && value <= 63 &&
         strspn (tag->key, plain) == key && strspn (tag->value, plain) == value;
}

static int32_t
check_tags (const struct ctx *c, const struct gpub_create *a)
{
  if (a->ntags > LABELS_MAX)
    return plug_error (c->err, GPUB_E_INVALID, "%llu tags, at most %d are taken",
                       (unsigned long long) a->ntags, LABELS_MAX);
  for (uint64_t i = 0; i < a->ntags; i++)
    if (!label_valid (&a->tags[i]))
      return plug_error (c->err, GPUB_E_INVALID, "the tag %.60s=%.60s is no label of Nebius",
                         a->tags[i].key, a->tags[i].value);
  return GPUB_OK;
}

/* A UUID, as the cloud's own clients send. */
static void
make_key (const struct nebius *s, const char *token, char key[static 40])
{
  unsigned char md[SHA256_DIGEST_LENGTH];
  AUTO_FREE char *text = NULL;

  if (asprintf (&text, "%s/%s", s->owner, token) < 0)
    abort ();
  SHA256 ((const unsigned char *) text, strlen (text), md);
  snprintf (key, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", md[0],
            md[1], md[2], md[3], md[4], md[5], md[6], md[7], md[8], md[9], md[10], md[11], md[12],
            md[13], md[14], md[15]);
}

static int32_t
check (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  const char *why = NULL;

  if (!a->offer_ref || !seat_parse (a->offer_ref, &o->seat))
    return plug_error (c->err, GPUB_E_INVALID, "'%.150s' is no offer of Nebius",
                       a->offer_ref ? a->offer_ref : "");
  if (a->nssh_public_keys == 0)
    return plug_error (c->err, GPUB_E_INVALID, "no SSH public key: nobody could log in");
  if (a->nports > 0)
    return plug_error (c->err, GPUB_E_UNSUPPORTED,
                       "all ports of a Nebius machine are open: its security groups say more");
  if (!a->token || !*a->token || !a->name || !*a->name)
    return plug_error (c->err, GPUB_E_INVALID, "a create needs a token and a name");
  o->disk_gib = a->disk_gib ? a->disk_gib : DISK_DEFAULT_GIB;
  if (o->disk_gib < DISK_MIN_GIB)
    o->disk_gib = DISK_MIN_GIB;
  if (o->disk_gib > DISK_MAX_GIB)
    return plug_error (c->err, GPUB_E_INVALID, "a disk of %u GiB, at most %d are taken",
                       o->disk_gib, DISK_MAX_GIB);
  if (!(o->user_data = user_data_make (a, &why)))
    return plug_error (c->err, GPUB_E_INVALID, "user data: %s", why);
  make_key (c->s, a->token, o->key);
  return check_tags (c, a);
}

/* ---- The quote ---- */

static int32_t
read_region (const struct ctx *c, struct order *o)
{
  struct projects ps;
  int32_t rc = projects_read (c, o->seat.project, &ps);

  if (rc == GPUB_OK)
    rc = projects_verdict (c, &ps);
  if (rc == GPUB_OK && !*ps.at[0].region)
    rc = plug_error (c->err, GPUB_E_UNAVAILABLE, "project %.60s names no region", ps.at[0].id);
  if (rc == GPUB_OK)
    strcpy (o->region, ps.at[0].region);
  projects_done (&ps);
  return rc == GPUB_E_NOT_FOUND ? GPUB_E_INVALID : rc;
}

static int32_t
quote (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  uint64_t machine = 0, gib = 0;
  char what[2 * FIELD_MAX];
  int32_t rc = price_machine (c, o->region, &o->seat, PRICE_NOW, &machine);

  if (rc == GPUB_OK)
    rc = price_disk_gib (c, o->region, o->seat.project, PRICE_NOW, &gib);
  if (rc != GPUB_OK)
    return rc == GPUB_E_NOT_FOUND ? GPUB_E_CAPACITY : rc;
  o->price = machine + gib * o->disk_gib;
  snprintf (what, sizeof what, "%.90s in %.90s", o->seat.platform, o->region);
  return plug_check_price (what, o->price, a->max_price_udollar, c->err);
}

static int32_t
pick_image (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  struct images images = { NULL };
  const json_t *image = NULL;
  int32_t rc = images_read (c, o->region, &images);

  if (rc == GPUB_OK) {
    image = image_choose (c->s, &images, o->seat.platform, o->seat.preset, a->image);
    if (!image || !field_take (o->image, sizeof o->image, json_str (image, "family", "")))
      rc = plug_error (c->err, a->image ? GPUB_E_INVALID : GPUB_E_CAPACITY,
                       "no image%s%.60s fits %.60s in %.40s", a->image ? " " : "",
                       a->image ? a->image : "", o->seat.platform, o->region);
    else if (json_i64 (image, "min_gib", 0) > o->disk_gib)
      rc = plug_error (c->err, GPUB_E_INVALID, "image %.60s needs a disk of %lld GiB", o->image,
                       (long long) json_i64 (image, "min_gib", 0));
  }
  images_done (&images);
  return rc;
}

/* The default one, else the first that is ready. */
static int32_t
take_subnets (void *ctx, const void *page)
{
  const Nb__Subnets *rows = page;
  struct order *o = ctx;

  for (size_t i = 0; i < rows->n_items; i++) {
    const Nb__Subnet *row = rows->items[i];
    bool usual = row->metadata && strncmp (row->metadata->name, "default-subnet", 14) == 0;

    if (!row->metadata || (row->status && row->status->state != READY && row->status->state < 4) ||
        (*o->subnet && (o->subnet_is_default || !usual)) ||
        !field_take (o->subnet, sizeof o->subnet, row->metadata->id))
      continue;
    o->subnet_is_default = usual;
  }
  return GPUB_OK;
}

static int32_t
pick_subnet (const struct ctx *c, struct order *o)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;
  int32_t rc;

  in.parent_id = o->seat.project;
  in.page_size = PAGE;
  rc = api_pages (c, &list_subnets, &in, &in.page_token, take_subnets, o);
  if (rc == GPUB_OK && !*o->subnet)
    return plug_error (c->err, GPUB_E_INVALID, "project %.60s has no subnet that is ready",
                       o->seat.project);
  return rc;
}

static int32_t
prepare (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  int32_t rc = quote (c, a, o);

  if (rc == GPUB_OK)
    rc = pick_image (c, a, o);
  return rc == GPUB_OK ? pick_subnet (c, o) : rc;
}

int32_t
nebius_create (void *self, struct gpub_call *call, const struct gpub_create *a,
               struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct order o = { .price = 0 };
  bool there = false;
  int32_t rc = check (&c, a, &o);

  if (rc == GPUB_OK)
    rc = read_region (&c, &o);
  if (rc == GPUB_OK && (rc = order_look (&c, a, &o, &there)) == GPUB_E_NOT_FOUND)
    rc = prepare (&c, a, &o);
  if (rc == GPUB_OK && !there)
    rc = order_send (&c, a, &o);
  free (o.user_data);
  return rc;
}
