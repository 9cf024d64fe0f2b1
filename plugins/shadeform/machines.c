/* machines.c - create, get, find, list, remove
 *
 * Shadeform has no idempotency key and answers a create with an id alone: what a lost answer did is
 * learnt by looking for the token among the tags of the whole account, which is one unpaged list.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"

/* ---- Create ---- */

static json_t *
tag_list (const struct gpub_create *a)
{
  json_t *tags = json_array ();

  for (uint64_t i = 0; i < a->ntags; i++)
    json_array_append_new (tags, json_sprintf ("%s=%s", a->tags[i].key, a->tags[i].value));
  return tags;
}

static json_t *
auto_delete (int64_t not_after_ms)
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
                            seat->rental, "ssh_key_id", key, "tags", tag_list (a));

  json_put_str (body, "os", *seat->image ? seat->image : NULL);
  if (a->user_data_kind == GPUB_DATA_SCRIPT)
    json_object_set_new (body, "launch_configuration", launch_script (a));
  if (a->not_after_ms > 0)
    json_object_set_new (body, "auto_delete", auto_delete (a->not_after_ms));
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
  if (a->user_data_len > USER_DATA_MAX)
    return plug_error (c->err, GPUB_E_INVALID, "user data of %llu bytes, at most %d are taken",
                       (unsigned long long) a->user_data_len, USER_DATA_MAX);
  if (a->nports > 0)
    return plug_error (c->err, GPUB_E_UNSUPPORTED, "Shadeform has no firewall to open ports in");
  return GPUB_OK;
}

static int32_t
quote (const struct ctx *c, const struct gpub_create *a, struct seat *seat, uint64_t *price)
{
  int32_t rc = seat_quote (c, seat, a->image, price);

  if (rc != GPUB_OK || *price <= a->max_price_udollar)
    return rc;
  return plug_error (
      c->err, GPUB_E_CAPACITY,
      "%.60s of %.60s in %.60s now costs %llu.%06llu $/h, above the cap of %llu.%06llu", seat->type,
      seat->cloud, seat->region, (unsigned long long) (*price / 1000000),
      (unsigned long long) (*price % 1000000),
      (unsigned long long) (a->max_price_udollar / 1000000),
      (unsigned long long) (a->max_price_udollar % 1000000));
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

/* ---- Read ---- */

int32_t
instances_read (const struct ctx *c, json_t **body)
{
  int32_t rc = api_get (c, "list instances", "/instances", body);

  if (rc == GPUB_E_NOT_FOUND)
    return plug_error (c->err, GPUB_E_INVALID, "list instances: HTTP 404: is '%.100s' the API?",
                       c->s->endpoint);
  if (rc == GPUB_OK && !json_is_array (json_object_get (*body, "instances")))
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "list instances: the answer has no list");
  return rc;
}

/* GPUB_E_NOT_FOUND when a whole list lacks it, GPUB_E_UNAVAILABLE when the two answers do not
 * agree. */
static int32_t
confirm_gone (const struct ctx *c, const char *id)
{
  json_auto_t *body = NULL;
  const json_t *instance;
  size_t i;
  int32_t rc = instances_read (c, &body);

  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (json_object_get (body, "instances"), i, instance) {
    const char *other = json_str (instance, "id", "");

    if (strcmp (other, id) == 0 || *other == '\0')
      return plug_error (c->err, GPUB_E_UNAVAILABLE,
                         "get instance %.64s: HTTP 404, yet the list %s", id,
                         *other ? "has it" : "cannot be read");
  }
  return plug_error (c->err, GPUB_E_NOT_FOUND, "instance %.64s is gone", id);
}

static int32_t
check_id (const struct ctx *c, const struct gpub_ref *ref)
{
  if (ref->id && id_valid (ref->id))
    return GPUB_OK;
  return plug_error (c->err, GPUB_E_INVALID, "'%.64s' is no instance id", ref->id ? ref->id : "");
}

int32_t
shadeform_get (void *self, struct gpub_call *call, const struct gpub_ref *ref,
               struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *instance = NULL;
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/info", ref->id);
  rc = api_get (&c, "get instance", path, &instance);
  if (rc == GPUB_E_NOT_FOUND)
    return confirm_gone (&c, ref->id);
  if (rc != GPUB_OK)
    return rc;
  if (strcmp (json_str (instance, "id", ""), ref->id) != 0)
    return plug_error (err, GPUB_E_UNAVAILABLE,
                       "get instance %.64s: the answer is about something else", ref->id);
  if (instance_deleted (instance))
    return plug_error (err, GPUB_E_NOT_FOUND, "instance %.64s is deleted", ref->id);
  return instance_emit (&c, instance);
}

/* ---- Lists: of what is ours, or of what carries one token or name ---- */

static bool
wanted (const struct gpub_find *f, const json_t *instance)
{
  if (!f)
    return instance_is_ours (instance);
  if (f->token && *f->token) {
    const char *token = instance_tag (instance, GPUB_TAG_TOKEN);

    return token && strcmp (token, f->token) == 0;
  }
  return f->name && *f->name && strcmp (json_str (instance, "name", ""), f->name) == 0;
}

/* A row without an id might be the one that is looked for: the list then proves no absence. */
static int32_t
emit_wanted (const struct ctx *c, const struct gpub_find *f, const json_t *list, size_t *unreadable)
{
  json_auto_t *seen = json_object ();
  const json_t *instance;
  size_t i;

  json_array_foreach (list, i, instance) {
    const char *id = json_str (instance, "id", "");
    int32_t rc;

    if (!id_valid (id))
      ++*unreadable;
    else if (!json_object_get (seen, id) && wanted (f, instance) && !instance_deleted (instance)) {
      json_object_set_new (seen, id, json_true ());
      if ((rc = instance_emit (c, instance)) != GPUB_OK)
        return rc;
    }
  }
  return GPUB_OK;
}

static int32_t
list (const struct ctx *c, const struct gpub_find *f)
{
  json_auto_t *body = NULL;
  size_t unreadable = 0;
  int32_t rc = instances_read (c, &body), kind;

  if (rc != GPUB_OK) {
    c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_FAILED, rc, c->err);
    return rc;
  }
  rc = emit_wanted (c, f, json_object_get (body, "instances"), &unreadable);
  if (rc != GPUB_OK)
    return rc;
  if (unreadable == 0)
    return c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
  kind = plug_error (c->err, GPUB_E_UNAVAILABLE, "list instances: %zu rows have no id", unreadable);
  return c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_PARTIAL, kind, c->err);
}

int32_t
shadeform_find (void *self, struct gpub_call *call, const struct gpub_find *f,
                struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, f);
}

int32_t
shadeform_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, NULL);
}

/* ---- Change ---- */

int32_t
shadeform_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                  struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/delete", ref->id);
  rc = api_post (&c, "delete instance", path, NULL, NULL); /* its answer is empty */
  return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;
}

int32_t
shadeform_set_not_after (void *self, struct gpub_call *call, const struct gpub_ref *ref, int64_t ms,
                         struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body = json_pack ("{s:o}", "auto_delete", ms > 0 ? auto_delete (ms) : json_null ());
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/update", ref->id);
  return api_post (&c, "set auto-delete", path, body, NULL);
}
