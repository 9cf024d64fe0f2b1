/* describe.c - what a plugin claims, as JSON: READY and --describe */
#include "config.h"

#include "core/json.h"
#include "sdk/host/host.h"

enum { TEXT_MAX = 256 };

static const char *const caps[] = {
  "idempotent-create", "tags",        "user-data", "startup-script",   "spot",
  "open-ports",        "kill-switch", "console",   "hosts-kubernetes", "reused",
};
static const char *const data_flags[] = { "plain", "gzip-ok", "after-active" };
static const char *const option_types[] = { "string", "int",  "bool", "duration",
                                            "money",  "list", "json" };
static const char *const option_flags[] = { "required", "secret" };

/* Bits that this build does not know are left out. */
static json_t *
bits (uint64_t set, const char *const *names, size_t n)
{
  json_t *list = json_array ();

  for (size_t i = 0; i < n; i++)
    if (set & (1ull << i))
      json_array_append_new (list, json_string (names[i]));
  return list;
}

json_t *
describe_caps (uint64_t set)
{
  return bits (set, caps, N_ELEMENTS (caps));
}

json_t *
describe_provider (const struct gpub_provider *p)
{
  json_t *j = json_object ();

  json_object_set_new (j, "name", text_json (p->name, TEXT_MAX));
  json_object_set_new (j, "version", text_json (p->version, TEXT_MAX));
  json_object_set_new (j, "description",
                       text_json (p->description ? p->description : "", TEXT_MAX));
  json_put_i64 (j, "abi", p->abi);
  json_object_set_new (j, "caps", describe_caps (p->caps));
  json_put_i64 (j, "max_parallel", p->max_parallel > 1 ? p->max_parallel : 1);
  json_put_i64 (j, "visibility_lag_ms", p->visibility_lag_ms);
  json_put_i64 (j, "idempotency_window_s", p->idempotency_window_s);
  json_put_i64 (j, "user_data_max", p->user_data_max);
  json_object_set_new (j, "user_data_flags",
                       bits (p->user_data_flags, data_flags, N_ELEMENTS (data_flags)));
  json_object_set_new (j, "set_not_after", json_boolean (p->set_not_after != NULL));
  json_object_set_new (j, "console_log", json_boolean (p->console_log != NULL));
  return j;
}

static json_t *
describe_option (const struct gpub_option *o)
{
  json_t *j = json_object ();

  json_object_set_new (j, "name", text_json (o->name, TEXT_MAX));
  json_put_str (j, "type", o->type < N_ELEMENTS (option_types) ? option_types[o->type] : "unknown");
  json_object_set_new (j, "flags", bits (o->flags, option_flags, N_ELEMENTS (option_flags)));
  if (o->default_value)
    json_object_set_new (j, "default", text_json (o->default_value, TEXT_MAX));
  if (o->help)
    json_object_set_new (j, "help", text_json (o->help, TEXT_MAX));
  return j;
}

json_t *
describe_plugin (const struct gpub_provider *p)
{
  json_t *j = describe_provider (p), *options = json_array ();

  for (uint64_t i = 0; i < p->noptions; i++)
    json_array_append_new (
        options, describe_option (GPUB_AT (struct gpub_option, p->options, p->options_stride, i)));
  json_object_set_new (j, "options", options);
  return j;
}
