/* hosts.c - the option `hosts`, checked machine by machine */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "plugins/static/static.h"

static const struct json_member members[] = {
  { "address", JSON_STRING, true },
  { "port", JSON_INTEGER, false },
  { "user", JSON_STRING, false },
  { "identity_file", JSON_STRING,
    false }, /* not used: the broker's own key must be authorised there */
  { "name", JSON_STRING, false },
  { "gpu", JSON_STRING, false },
  { "gpus", JSON_INTEGER, false },
  { "vram_gib", JSON_INTEGER, false },
  { "price_udollar", JSON_INTEGER, false },
  { "zone", JSON_STRING, false },
  { "region", JSON_STRING, false },
  { "country", JSON_STRING, false },
  { "arch", JSON_STRING, false },
  { "kind", JSON_STRING, false },
  { "interconnect", JSON_STRING, false },
  { "driver", JSON_STRING, false },
  { "vcpus", JSON_INTEGER, false },
  { "ram_gib", JSON_INTEGER, false },
  { "disk_gib", JSON_INTEGER, false },
  { "labels", JSON_OBJECT, false },
};

static const struct {
  const char *name;
  json_int_t low, high;
} ranges[] = {
  { "port", 1, 65535 },  { "gpus", 0, 1024 },       { "vram_gib", 1, 4096 },
  { "vcpus", 1, 65536 }, { "ram_gib", 1, 1 << 20 }, { "disk_gib", 1, 1 << 24 },
};

const char *
conf_scope (const json_t *conf)
{
  return json_str (conf, "zone", SCOPE_DEFAULT);
}

uint64_t
conf_known (const json_t *conf, const char *member, uint64_t bit)
{
  return json_object_get (conf, member) ? bit : 0;
}

const struct machine *
hosts_find (const struct plant *p, const char *id)
{
  for (size_t i = 0; i < p->machines.n; i++)
    if (strcmp (p->machines.at[i].id, id) == 0)
      return &p->machines.at[i];
  return NULL;
}

/* Dollars are written as 2, 2.5 or "2.5"; a price that is missing is not a price of 0. */
static int
take_price (json_t *conf, struct err *e)
{
  json_t *price = json_object_get (conf, "price");
  uint64_t udollar;

  if (json_object_get (conf, "price_udollar"))
    return err_set (e, ERR_INVALID, "unknown member 'price_udollar', did you mean 'price'?");
  if (!price)
    return 0;
  if (json_is_number (price) && json_number_value (price) >= 0 && json_number_value (price) <= 1e6)
    udollar = (uint64_t) llround (json_number_value (price) * 1e6);
  else if (!json_is_string (price) || !udollar_parse (json_string_value (price), &udollar))
    return err_set (e, ERR_INVALID,
                    "'price' must be dollars per hour for the whole machine, 0 or more");
  json_object_del (conf, "price");
  json_put_i64 (conf, "price_udollar", (int64_t) udollar);
  return 0;
}

static int
is_word (const char *s, const char *also)
{
  if (!*s || *s == '-' || strlen (s) > 253)
    return 0;
  for (; *s; s++)
    if (!isalnum ((unsigned char) *s) && !strchr (also, *s))
      return 0;
  return 1;
}

static int
check_values (const json_t *conf, struct err *e)
{
  const char *kind = json_str (conf, "kind", "baremetal"), *key;
  json_t *value;

  if (!is_word (json_str (conf, "address", ""), ".-:_"))
    return err_set (e, ERR_INVALID, "'address' must be a DNS name or an IP address");
  if (!is_word (json_str (conf, "user", "root"), "._-"))
    return err_set (e, ERR_INVALID, "'user' must be a login name");
  if (json_object_get (conf, "name") && !is_word (json_str (conf, "name", ""), "._-"))
    return err_set (e, ERR_INVALID, "'name' must be letters, digits, '.', '_' and '-'");
  if (strcmp (kind, "vm") != 0 && strcmp (kind, "baremetal") != 0)
    return err_set (e, ERR_INVALID, "'kind' must be \"baremetal\" or \"vm\"");
  for (size_t i = 0; i < N_ELEMENTS (ranges); i++) {
    json_int_t n = json_i64 (conf, ranges[i].name, ranges[i].low);

    if (n < ranges[i].low || n > ranges[i].high)
      return err_set (e, ERR_INVALID, "'%s' must be %lld to %lld", ranges[i].name,
                      (long long) ranges[i].low, (long long) ranges[i].high);
  }
  json_object_foreach (json_object_get (conf, "labels"), key, value)
    if (!json_is_string (value))
      return err_set (e, ERR_INVALID, "label '%.60s' must be a string", key);
  return 0;
}

/* A key of the durable store and the start of everything we say about the machine, so it has to
 * stay the same. */
static void
make_id (const json_t *conf, char id[ID_MAX + 1])
{
  const char *name = json_str (conf, "name", NULL);
  int64_t port = json_i64 (conf, "port", 22);

  if (name)
    snprintf (id, ID_MAX + 1, "%s", name);
  else if (port == 22)
    snprintf (id, ID_MAX + 1, "%s", json_str (conf, "address", ""));
  else
    snprintf (id, ID_MAX + 1, "%s-%lld", json_str (conf, "address", ""), (long long) port);
  for (char *s = id; *s; s++)
    *s = *s == ':' ? '-' : (char) tolower ((unsigned char) *s);
}

static int
read_one (struct plant *p, json_t *written, struct err *e)
{
  AUTO_JSON json_t *conf = json_deep_copy (written);
  struct machine m;

  if (!json_is_object (conf))
    return err_set (e, ERR_INVALID, "not a group { address = \"...\"; ... }");
  if (take_price (conf, e) < 0 || json_check (conf, members, N_ELEMENTS (members), e) < 0 ||
      check_values (conf, e) < 0)
    return -1;
  make_id (conf, m.id);
  if (hosts_find (p, m.id))
    return err_set (e, ERR_INVALID, "'%s' is there twice: give each a name of its own", m.id);
  m.conf = STEAL (conf);
  *vec_push (&p->machines) = m;
  return 0;
}

int32_t
hosts_read (struct plant *p, const char *text, struct gpub_error *err)
{
  AUTO_JSON json_t *list = text ? json_loads (text, JSON_REJECT_DUPLICATES, NULL) : NULL;
  struct err e = ERR_INIT;
  json_t *written;
  size_t i;

  if (!json_is_array (list) || json_array_size (list) == 0)
    return plug_error (err, GPUB_E_INVALID,
                       "hosts must be a list of machines: hosts = ( { address = \"10.0.0.5\"; } )");
  json_array_foreach (list, i, written)
    if (read_one (p, written, &e) < 0)
      return plug_error (err, GPUB_E_INVALID, "hosts, machine %zu (%.60s): %s", i + 1,
                         json_str (written, "address", "no address"), e.text);
  return GPUB_OK;
}
