/* create.c - rent one seat
 *
 * Shadeform has no idempotency key: a create is sent once, and what a lost answer did is for find
 * to learn.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"
#include "plugins/tags.h"

json_t *
auto_delete_json (int64_t not_after_ms)
{
  char when[RFC3339_SIZE];

  rfc3339_print (not_after_ms, when);
  return json_pack ("{s:s}", "date_threshold", when);
}

static json_t *
launch_script (const struct gpub_create *a)
{
  AUTO_FREE char *text = base64_encode (a->user_data, a->user_data_len);

  return json_pack ("{s:s, s:{s:s}}", "type", "script", "script_configuration", "base64_script",
                    text);
}

static json_t *
create_body (const struct shadeform *s, const struct gpub_create *a, const struct seat *seat,
             const char *key)
{
  json_t *body = json_pack ("{s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:o}", "cloud", seat->cloud,
                            "region", seat->region, "shade_instance_type", seat->type,
                            "shade_cloud", s->shade_cloud, "name", a->name, "rental_type",
                            seat->rental, "ssh_key_id", key, "tags", tags_list (a));

  json_put_str (body, "os", *seat->image ? seat->image : NULL);
  if (a->user_data_kind == GPUB_DATA_SCRIPT)
    json_object_set_new (body, "launch_configuration", launch_script (a));
  if (a->not_after_ms > 0)
    json_object_set_new (body, "auto_delete", auto_delete_json (a->not_after_ms));
  return body;
}

/* What no answer of the cloud is needed to refuse. */
static int32_t
check (const struct ctx *c, const struct gpub_create *a, struct seat *seat)
{
  if (!a->offer_ref || !seat_parse (a->offer_ref, seat))
    return plug_error (c->err, GPUB_E_INVALID, "'%.150s' is no offer of Shadeform",
                       a->offer_ref ? a->offer_ref : "");
  if (a->nssh_public_keys == 0)
    return plug_error (c->err, GPUB_E_INVALID,
                       "no SSH public key: the machine would get the account's default key");
  if (a->user_data_kind == GPUB_DATA_CLOUD)
    return plug_error (c->err, GPUB_E_UNSUPPORTED,
                       "Shadeform runs scripts after boot, it takes no cloud-init data");
  if (a->nports > 0)
    return plug_error (c->err, GPUB_E_UNSUPPORTED, "Shadeform has no firewall to open ports in");
  return plug_check_user_data (a, USER_DATA_MAX, c->err);
}

static int32_t
quote (const struct ctx *c, const struct gpub_create *a, struct seat *seat, uint64_t *price)
{
  char what[3 * FIELD_MAX + 16];
  int32_t rc = seat_quote (c, seat, a->image, price);

  if (rc != GPUB_OK)
    return rc;
  snprintf (what, sizeof what, "%.60s of %.60s in %.60s", seat->type, seat->cloud, seat->region);
  return plug_check_price (what, *price, a->max_price_udollar, c->err);
}

/* The answer is an id and nothing else: the rest of the machine is what was asked for. */
static int32_t
emit_created (const struct ctx *c, const struct gpub_create *a, const struct seat *seat,
              const char *id, uint64_t price)
{
  const struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_PRICE,
    .id = id,
    .scope = SCOPE,
    .name = a->name,
    .state = GPUB_STATE_CREATING,
    .raw_state = "creating",
    .price_udollar = price,
    .tags = a->tags,
    .ntags = a->ntags,
    .region = seat->region,
    .cloud = seat->cloud,
    .instance_type = seat->type,
  };

  return c->s->host->emit_machine (c->call, &m);
}

/* 409 is how a create is refused, for want of stock more than for anything else. */
static int32_t
refusal (const struct ctx *c, int32_t rc)
{
  if (c->err->http_status == 409 && rc == GPUB_E_UNAVAILABLE)
    return GPUB_E_CAPACITY;
  return rc == GPUB_E_NOT_FOUND ? GPUB_E_INVALID : rc;
}

static int32_t
order (const struct ctx *c, const struct gpub_create *a, const struct seat *seat, uint64_t price,
       const char *key)
{
  json_auto_t *body = create_body (c->s, a, seat, key), *answer = NULL;
  const char *id;
  int32_t rc = api_post (c, "create instance", "/instances/create", body, &answer);

  if (rc != GPUB_OK)
    return refusal (c, rc);
  id = json_str (answer, "id", "");
  if (!id_valid (id))
    return plug_error (c->err, GPUB_E_UNKNOWN,
                       "create instance: accepted, but the answer has no usable id");
  return emit_created (c, a, seat, id, price);
}

int32_t
shadeform_create (void *self, struct gpub_call *call, const struct gpub_create *a,
                  struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct seat seat;
  uint64_t price = 0;
  char key[64];
  int32_t rc = check (&c, a, &seat);

  if (rc == GPUB_OK)
    rc = quote (&c, a, &seat, &price);
  if (rc == GPUB_OK)
    rc = key_ensure (&c, a->ssh_public_keys[0], key);
  return rc == GPUB_OK ? order (&c, a, &seat, price, key) : rc;
}
