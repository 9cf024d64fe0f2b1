/* encode.c - what a plugin emits, as JSON
 *
 * A plugin's struct is first copied, cut to its own size, into one of ours; so no member beyond
 * what it wrote is ever read.  Texts that are only for people are cut; one that means something is
 * refused when too long.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "core/json.h"
#include "sdk/host/host.h"

enum {
  TEXT_MAX = 256,
  ID_MAX = 512,
  DATA_MAX = 1024,
  TAGS_MAX = 64,
  RESOURCES_MAX = 64,
  COUNT_MAX = 4096
};

enum field_type { F_TEXT, F_ID, F_U32, F_U64, F_I64, F_NAME };

struct field {
  const char *name;
  size_t offset;
  uint64_t known; /* 0: always; else only with this bit */
  const char *const *names;
  uint32_t nnames;
  enum field_type type;
};

static const char *const kinds[] = { "vm", "baremetal", "container" };
static const char *const markets[] = { "on-demand", "spot" };
static const char *const availabilities[] = { "unknown", "none", "low", "available" };
static const char *const states[] = {
  "unknown", "creating", "running", "stopping", "stopped", "deleting", "gone", "error",
};

#define O(member, type, known)                                                                     \
 {                                                                                                 \
#  member, offsetof(struct gpub_offer, member), known, NULL, 0, type                               \
 }
#define ON(member, table)                                                                          \
 {                                                                                                 \
#  member, offsetof(struct gpub_offer, member), 0, table, N_ELEMENTS(table), F_NAME                \
 }

static const struct field offer_fields[] = {
  O (offer_ref, F_ID, 0),
  O (scope, F_ID, 0),
  O (region, F_TEXT, 0),
  O (zone, F_TEXT, 0),
  O (country, F_TEXT, 0),
  O (cloud, F_TEXT, 0),
  O (instance_type, F_TEXT, 0),
  O (gpu_name, F_TEXT, 0),
  O (vram_mib, F_U64, GPUB_OFFER_VRAM),
  O (ram_mib, F_U64, GPUB_OFFER_RAM),
  O (gpu_count, F_U32, GPUB_OFFER_GPUS),
  O (gpu_denominator, F_U32, GPUB_OFFER_GPUS),
  O (vcpus, F_U32, GPUB_OFFER_VCPUS),
  ON (kind, kinds),
  ON (market, markets),
  ON (availability, availabilities),
  O (stock, F_U32, GPUB_OFFER_STOCK),
  O (disk_gib, F_U32, GPUB_OFFER_DISK),
  O (disk_max_gib, F_U32, GPUB_OFFER_DISK),
  O (disk_default_gib, F_U32, GPUB_OFFER_DISK),
  O (arch, F_TEXT, 0),
  O (interconnect, F_TEXT, 0),
  O (currency, F_TEXT, 0),
  O (price_udollar, F_U64, GPUB_OFFER_PRICE),
  O (price_disk_gib_udollar, F_U64, GPUB_OFFER_DISK_PRICE),
  O (price_ip_udollar, F_U64, GPUB_OFFER_IP_PRICE),
  O (image, F_TEXT, 0),
  O (driver, F_TEXT, 0),
  O (fabric, F_TEXT, 0),
  O (boot_min_ms, F_U32, GPUB_OFFER_BOOT),
  O (boot_max_ms, F_U32, GPUB_OFFER_BOOT),
};

#define M(member, type, known)                                                                     \
 {                                                                                                 \
#  member, offsetof(struct gpub_machine, member), known, NULL, 0, type                             \
 }

static const struct field machine_fields[] = {
  M (id, F_ID, 0),
  M (scope, F_ID, 0),
  M (name, F_TEXT, 0),
  M (raw_state, F_TEXT, 0),
  M (fail_text, F_TEXT, 0),
  M (address, F_TEXT, 0),
  M (private_address, F_TEXT, 0),
  M (ssh_user, F_TEXT, 0),
  M (ssh_port, F_U32, GPUB_MACHINE_SSH_PORT),
  M (price_udollar, F_U64, GPUB_MACHINE_PRICE),
  M (spent_udollar, F_U64, GPUB_MACHINE_SPENT),
  M (created_ms, F_I64, GPUB_MACHINE_CREATED),
  M (not_after_ms, F_I64, GPUB_MACHINE_NOT_AFTER),
  M (region, F_TEXT, 0),
  M (cloud, F_TEXT, 0),
  M (instance_type, F_TEXT, 0),
};

#define R(member, type)                                                                            \
 {                                                                                                 \
#  member, offsetof(struct gpub_resource, member), 0, NULL, 0, type                                \
 }

static const struct field resource_fields[] = {
  R (kind, F_ID),
  R (id, F_ID),
  R (scope, F_ID),
  R (price_udollar, F_U64),
};

static json_t *
id_json (const char *s, size_t max, const char *name, struct err *e)
{
  if (strnlen (s, max + 1) <= max)
    return text_json (s, max);
  err_set (e, ERR_INTERNAL, "%s is longer than %zu bytes", name, max);
  return NULL;
}

static json_t *
name_json (uint32_t v, const struct field *f, struct err *e)
{
  if (v < f->nnames)
    return json_string (f->names[v]);
  err_set (e, ERR_INTERNAL, "%s %u does not exist", f->name, v);
  return NULL;
}

static json_t *
number_json (uint64_t v, const char *name, struct err *e)
{
  if (v <= INT64_MAX)
    return json_integer ((json_int_t) v);
  err_set (e, ERR_INTERNAL, "%s %llu is absurd", name, (unsigned long long) v);
  return NULL;
}

/* *out stays NULL for a text that is not known. */
static int
field_json (const struct field *f, const char *at, json_t **out, struct err *e)
{
  const char *s;
  uint32_t u32;
  uint64_t u64;

  switch (f->type) {
  case F_TEXT:
  case F_ID:
    memcpy (&s, at, sizeof s);
    if (!s)
      return 0;
    *out = f->type == F_TEXT ? text_json (s, TEXT_MAX) : id_json (s, ID_MAX, f->name, e);
    break;
  case F_U32:
  case F_NAME:
    memcpy (&u32, at, sizeof u32);
    *out = f->type == F_NAME ? name_json (u32, f, e) : json_integer (u32);
    break;
  case F_U64:
    memcpy (&u64, at, sizeof u64);
    *out = number_json (u64, f->name, e);
    break;
  case F_I64:
    memcpy (&u64, at, sizeof u64);
    *out = json_integer ((json_int_t) u64);
    break;
  }
  return *out ? 0 : -1;
}

static int
put_fields (json_t *j, const struct field *fields, size_t n, const void *base, uint64_t known,
            struct err *e)
{
  for (size_t i = 0; i < n; i++) {
    json_t *value = NULL;

    if (fields[i].known && !(known & fields[i].known))
      continue;
    if (field_json (&fields[i], (const char *) base + fields[i].offset, &value, e) < 0)
      return -1;
    if (value)
      json_object_set_new (j, fields[i].name, value);
  }
  return 0;
}

/* least: up to the members without which the thing has no meaning. */
static int
copy (void *to, size_t size, const void *from, uint64_t said, size_t least, const char *what,
      struct err *e)
{
  if (said < least || said > 64 * 1024)
    return err_set (e, ERR_INTERNAL, "%s says that it has %llu bytes; this host knows %zu", what,
                    (unsigned long long) said, size);
  memset (to, 0, size);
  memcpy (to, from, said < size ? (size_t) said : size);
  return 0;
}

static int
check_array (const void *at, uint64_t n, uint64_t stride, uint64_t least, const char *what,
             struct err *e)
{
  if (n == 0 || (at && n <= COUNT_MAX && stride >= least && stride <= 64 * 1024))
    return 0;
  return err_set (e, ERR_INTERNAL, "%s: %llu elements of %llu bytes at %s are absurd", what,
                  (unsigned long long) n, (unsigned long long) stride, at ? "an address" : "NULL");
}

static bool
is_printable (const char *s)
{
  for (; *s; s++)
    if ((unsigned char) *s < ' ' || (unsigned char) *s > '~')
      return false;
  return true;
}

json_t *
encode_offer (const struct gpub_offer *from, struct err *e)
{
  AUTO_JSON json_t *j = json_object ();
  struct gpub_offer o;
  size_t least = offsetof (struct gpub_offer, scope);

  if (copy (&o, sizeof o, from, from->size, least, "an offer", e) < 0)
    return NULL;
  if (!o.offer_ref || !*o.offer_ref || !is_printable (o.offer_ref)) {
    err_set (e, ERR_INTERNAL, "an offer has no printable offer_ref");
    return NULL;
  }
  if (put_fields (j, offer_fields, N_ELEMENTS (offer_fields), &o, o.known, e) < 0) {
    err_add (e, "offer %.80s", o.offer_ref);
    return NULL;
  }
  if (o.known & GPUB_OFFER_CAPS)
    json_object_set_new (j, "caps", describe_caps (o.caps));
  return STEAL (j);
}

json_t *
encode_resource (const struct gpub_resource *from, struct err *e)
{
  AUTO_JSON json_t *j = json_object ();
  struct gpub_resource r;

  if (copy (&r, sizeof r, from, from->size, offsetof (struct gpub_resource, scope), "a resource",
            e) < 0)
    return NULL;
  if (!r.kind || !r.id || !*r.kind || !*r.id) {
    err_set (e, ERR_INTERNAL, "a resource has no kind or no id");
    return NULL;
  }
  if (put_fields (j, resource_fields, N_ELEMENTS (resource_fields), &r, 0, e) < 0)
    return NULL;
  json_object_set_new (j, "billable", json_boolean (r.billable));
  return STEAL (j);
}

static int
put_resources (json_t *j, const struct gpub_machine *m, struct err *e)
{
  json_t *list;

  if (m->nresources == 0)
    return 0;
  if (check_array (m->resources, m->nresources, m->resources_stride, sizeof (uint64_t), "resources",
                   e) < 0)
    return -1;
  if (m->nresources > RESOURCES_MAX) /* cutting would forget something that bills */
    return err_set (e, ERR_INTERNAL, "%llu resources on one machine are more than %d",
                    (unsigned long long) m->nresources, RESOURCES_MAX);
  list = json_array ();
  json_object_set_new (j, "resources", list);
  for (uint64_t i = 0; i < m->nresources; i++) {
    json_t *r =
        encode_resource (GPUB_AT (struct gpub_resource, m->resources, m->resources_stride, i), e);

    if (!r)
      return -1;
    json_array_append_new (list, r);
  }
  return 0;
}

static void
put_tag (json_t *j, const struct gpub_kv *kv)
{
  AUTO_JSON json_t *key = text_json (kv->key, TEXT_MAX);

  json_object_set_new (j, json_string_value (key),
                       text_json (kv->value ? kv->value : "", TEXT_MAX));
}

/* Our own marks first: they must not be among those cut off on a machine with very many tags. */
static int
put_tags (json_t *j, const struct gpub_kv *all, uint64_t n, struct err *e)
{
  json_t *tags;

  if (n == 0)
    return 0;
  if (check_array (all, n, sizeof *all, sizeof *all, "tags", e) < 0)
    return -1;
  tags = json_object ();
  json_object_set_new (j, "tags", tags);
  for (int ours = 1; ours >= 0; ours--)
    for (uint64_t i = 0; i < n && json_object_size (tags) < TAGS_MAX; i++) {
      const struct gpub_kv *kv = &all[i];

      if (kv->key && (strncmp (kv->key, "gpubroker-", 10) == 0) == ours)
        put_tag (tags, kv);
    }
  return 0;
}

json_t *
encode_stray (const struct gpub_resource *from, struct err *e)
{
  AUTO_JSON json_t *j = encode_resource (from, e);
  struct gpub_resource r;

  if (!j || copy (&r, sizeof r, from, from->size, offsetof (struct gpub_resource, scope),
                  "a resource", e) < 0)
    return NULL;
  return put_tags (j, r.tags, r.ntags, e) < 0 ? NULL : STEAL (j);
}

json_t *
encode_machine (const struct gpub_machine *from, struct err *e)
{
  AUTO_JSON json_t *j = json_object ();
  struct gpub_machine m;
  json_t *data = NULL;

  if (copy (&m, sizeof m, from, from->size, offsetof (struct gpub_machine, raw_state), "a machine",
            e) < 0)
    return NULL;
  if (!m.id || !*m.id) {
    err_set (e, ERR_INTERNAL, "a machine has no id");
    return NULL;
  }
  if (put_fields (j, machine_fields, N_ELEMENTS (machine_fields), &m, m.known, e) < 0 ||
      put_tags (j, m.tags, m.ntags, e) < 0 || put_resources (j, &m, e) < 0 ||
      (m.plugin_data && !(data = id_json (m.plugin_data, DATA_MAX, "plugin_data", e)))) {
    err_add (e, "machine %.80s", m.id);
    return NULL;
  }
  if (data)
    json_object_set_new (j, "plugin_data", data);
  json_put_str (j, "state", m.state < N_ELEMENTS (states) ? states[m.state] : "unknown");
  json_put_str (j, "fail_kind", err_kind_name ((enum err_kind) m.fail_kind));
  return STEAL (j);
}
