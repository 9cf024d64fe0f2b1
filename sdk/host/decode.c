/* decode.c - JSON arguments to structs that live as long as their call */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "sdk/host/host.h"

/* A null in a frame means the same as no member. */
static int
check (json_t *args, const struct json_member *members, size_t n, struct err *e)
{
  const char *key;
  json_t *value;
  void *next;

  if (!json_is_object (args))
    return err_set (e, ERR_INVALID, "the call has no args");
  json_object_foreach_safe (args, next, key, value)
  {
    if (json_is_null (value))
      json_object_del (args, key);
  }
  return json_check (args, members, n, e);
}

static uint32_t
u32 (const json_t *j, const char *key)
{
  int64_t n = json_i64 (j, key, 0);

  return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t) n;
}

int
decode_query (struct gpub_call *c, struct gpub_offer_query *q, struct err *e)
{
  static const struct json_member members[] = {
    { "offer_ref", JSON_STRING, false },
    { "disk_gib", JSON_INTEGER, false },
  };

  if (check (c->args, members, N_ELEMENTS (members), e) < 0)
    return -1;
  *q = (struct gpub_offer_query){
    .size = sizeof *q,
    .offer_ref = json_str (c->args, "offer_ref", NULL),
    .disk_gib = u32 (c->args, "disk_gib"),
  };
  return 0;
}

int
decode_find (struct gpub_call *c, struct gpub_find *f, struct err *e)
{
  static const struct json_member members[] = {
    { "token", JSON_STRING, false },
    { "name", JSON_STRING, false },
    { "scope", JSON_STRING, false },
  };

  if (check (c->args, members, N_ELEMENTS (members), e) < 0)
    return -1;
  *f = (struct gpub_find){
    .size = sizeof *f,
    .token = json_str (c->args, "token", NULL),
    .name = json_str (c->args, "name", NULL),
    .scope = json_str (c->args, "scope", NULL),
  };
  return 0;
}

static struct gpub_resource *
resources (struct gpub_call *c, const json_t *list, uint64_t *n)
{
  struct gpub_resource *all = call_alloc (c, json_array_size (list) * sizeof *all);

  for (*n = 0; *n < json_array_size (list); ++*n) {
    const json_t *j = json_array_get (list, *n);

    all[*n] = (struct gpub_resource){
      .size = sizeof *all,
      .kind = json_str (j, "kind", ""),
      .id = json_str (j, "id", ""),
      .scope = json_str (j, "scope", NULL),
      .price_udollar = (uint64_t) json_i64 (j, "price_udollar", 0),
      .billable = json_bool (j, "billable", false),
    };
  }
  return all;
}

int
decode_ref (struct gpub_call *c, struct gpub_ref *r, struct err *e)
{
  static const struct json_member members[] = {
    { "id", JSON_STRING, false },          { "scope", JSON_STRING, false },
    { "name", JSON_STRING, false },        { "token", JSON_STRING, false },
    { "plugin_data", JSON_STRING, false }, { "created_ms", JSON_INTEGER, false },
    { "resources", JSON_ARRAY, false },
  };
  json_t *j = json_object_get (c->args, "ref");

  if (!json_is_object (j))
    return err_set (e, ERR_INVALID, "the call has no ref");
  if (check (j, members, N_ELEMENTS (members), e) < 0)
    return err_add (e, "ref");
  *r = (struct gpub_ref){
    .size = sizeof *r,
    .id = json_str (j, "id", ""),
    .scope = json_str (j, "scope", NULL),
    .name = json_str (j, "name", NULL),
    .token = json_str (j, "token", NULL),
    .plugin_data = json_str (j, "plugin_data", NULL),
    .created_ms = json_i64 (j, "created_ms", 0),
    .resources_stride = sizeof (struct gpub_resource),
  };
  r->resources = resources (c, json_object_get (j, "resources"), &r->nresources);
  return 0;
}

static int
tags (struct gpub_call *c, struct gpub_create *a, struct err *e)
{
  json_t *j = json_object_get (c->args, "tags"), *value;
  struct gpub_kv *all = call_alloc (c, json_object_size (j) * sizeof *all);
  const char *key;

  json_object_foreach (j, key, value) {
    if (!json_is_string (value))
      return err_set (e, ERR_INVALID, "tag '%.60s' must be a string", key);
    all[a->ntags++] = (struct gpub_kv){ key, json_string_value (value) };
  }
  a->tags = all;
  return 0;
}

static int
keys (struct gpub_call *c, struct gpub_create *a, struct err *e)
{
  const json_t *j = json_object_get (c->args, "ssh_public_keys");
  const char **all = call_alloc (c, json_array_size (j) * sizeof *all);
  json_t *value;
  size_t i;

  json_array_foreach (j, i, value) {
    all[i] = json_string_value (value);
    if (!all[i])
      return err_set (e, ERR_INVALID, "ssh_public_keys must be strings");
  }
  a->ssh_public_keys = all;
  a->nssh_public_keys = json_array_size (j);
  return 0;
}

static int
user_data (struct gpub_call *c, struct gpub_create *a, struct err *e)
{
  static const char *const kinds[] = { "none", "cloud", "script" };
  const char *kind = json_str (c->args, "user_data_kind", "none"),
             *text = json_str (c->args, "user_data", "");
  size_t len = 0;
  void *bytes;

  while (a->user_data_kind < N_ELEMENTS (kinds) && strcmp (kinds[a->user_data_kind], kind) != 0)
    a->user_data_kind++;
  if (a->user_data_kind == N_ELEMENTS (kinds))
    return err_set (e, ERR_INVALID, "user_data_kind '%.20s' is not known", kind);
  if (a->user_data_kind == GPUB_DATA_NONE)
    return 0;
  bytes = base64_decode (text, &len, e);
  if (!bytes)
    return -1;
  call_keep (c, bytes, len);
  a->user_data = bytes;
  a->user_data_len = len;
  return 0;
}

static int
ports (struct gpub_call *c, struct gpub_create *a, struct err *e)
{
  static const struct json_member members[] = {
    { "proto", JSON_STRING, true },
    { "from", JSON_INTEGER, true },
    { "to", JSON_INTEGER, true },
    { "cidr", JSON_STRING, true },
  };
  const json_t *list = json_object_get (c->args, "ports");
  struct gpub_port *all = call_alloc (c, json_array_size (list) * sizeof *all);
  json_t *j;
  size_t i;

  json_array_foreach (list, i, j) {
    if (check (j, members, N_ELEMENTS (members), e) < 0)
      return err_add (e, "port %zu", i);
    all[i] = (struct gpub_port){
      .size = sizeof *all,
      .proto = json_str (j, "proto", ""),
      .from = u32 (j, "from"),
      .to = u32 (j, "to"),
      .cidr = json_str (j, "cidr", ""),
    };
  }
  a->ports = all;
  a->nports = json_array_size (list);
  a->ports_stride = sizeof *all;
  return 0;
}

int
decode_create (struct gpub_call *c, struct gpub_create *a, struct err *e)
{
  static const struct json_member members[] = {
    { "offer_ref", JSON_STRING, true },  { "max_price_udollar", JSON_INTEGER, true },
    { "token", JSON_STRING, true },      { "name", JSON_STRING, true },
    { "tags", JSON_OBJECT, false },      { "ssh_public_keys", JSON_ARRAY, false },
    { "user_data", JSON_STRING, false }, { "user_data_kind", JSON_STRING, false },
    { "disk_gib", JSON_INTEGER, false }, { "image", JSON_STRING, false },
    { "ports", JSON_ARRAY, false },      { "not_after_ms", JSON_INTEGER, false },
  };
  json_t *j = c->args;

  if (check (j, members, N_ELEMENTS (members), e) < 0)
    return -1;
  *a = (struct gpub_create){
    .size = sizeof *a,
    .offer_ref = json_str (j, "offer_ref", NULL),
    .max_price_udollar = (uint64_t) json_i64 (j, "max_price_udollar", 0),
    .token = json_str (j, "token", NULL),
    .name = json_str (j, "name", NULL),
    .disk_gib = u32 (j, "disk_gib"),
    .image = json_str (j, "image", NULL),
    .not_after_ms = json_i64 (j, "not_after_ms", 0),
  };
  if (tags (c, a, e) < 0 || keys (c, a, e) < 0 || user_data (c, a, e) < 0)
    return -1;
  return ports (c, a, e);
}
