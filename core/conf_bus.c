/* conf_bus.c - the group bus: where to listen and who may ask */
#include "config.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "core/conf_read.h"

enum { Z85_KEY = 40 };

static const char *const rights_names[] = { "read", "rent", "admin", NULL };
static const enum conf_rights rights[] = { CONF_READ, CONF_RENT, CONF_ADMIN };

static int
read_rights (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const struct field f = { "rights", FIELD_CHOICE, 0, rights_names, NULL };
  int i = 0;

  if (conf_field (s, path, "bus", &f, &i, e) < 0)
    return -1;
  ((struct conf_client *) base)->rights = rights[i];
  return 0;
}

static int
read_uid (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  struct conf_client *c = base;
  const char *name = config_setting_get_string (s);
  const struct passwd *pw;

  if (!name) {
    static const struct field f = { "uid", FIELD_COUNT, 0, NULL, NULL };

    return conf_field (s, path, "bus.uids", &f, &c->uid, e);
  }
  pw = getpwnam (name);
  if (!pw)
    return conf_error (s, path, e, "'%s' in bus.uids: there is no user '%.60s' here",
                       config_setting_name (s), name);
  c->uid = pw->pw_uid;
  return 0;
}

static int
read_key (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  const char *key = config_setting_get_string (s);

  if (!key || strlen (key) != Z85_KEY)
    return conf_error (
        s, path, e, "'key' in bus.authorized_clients must be a public key of 40 characters (Z85)");
  conf_set (&((struct conf_client *) base)->key, key);
  return 0;
}

#define CLIENT_COMMON                                                                              \
 { "principal", FIELD_STRING, offsetof (struct conf_client, principal), NULL, NULL },              \
     { "rights", FIELD_CUSTOM, 0, NULL, read_rights },                                             \
     { "leases", FIELD_COUNT, offsetof (struct conf_client, limits.leases), NULL, NULL },          \
 {                                                                                                 \
  "dollars_per_hour", FIELD_MONEY, offsetof (struct conf_client, limits.udollar_per_hour), NULL,   \
      NULL                                                                                         \
 }

static const struct field uid_fields[] = {
  { "uid", FIELD_CUSTOM, 0, NULL, read_uid },
  { "user", FIELD_CUSTOM, 0, NULL, read_uid },
  CLIENT_COMMON,
};

static const struct field key_fields[] = {
  { "key", FIELD_CUSTOM, 0, NULL, read_key },
  CLIENT_COMMON,
};

static int
check_uid (const config_setting_t *s, struct conf_client *c, const char *path, struct err *e)
{
  bool uid = config_setting_get_member (s, "uid"), user = config_setting_get_member (s, "user");
  char principal[32];

  if (uid == user)
    return conf_error (s, path, e, "an entry of bus.uids needs either 'uid' or 'user'");
  snprintf (principal, sizeof principal, "uid:%u", c->uid);
  if (!c->principal)
    conf_set (&c->principal, principal);
  return 0;
}

static int
check_key (const config_setting_t *s, struct conf_client *c, const char *path, struct err *e)
{
  if (!c->key || !c->principal)
    return conf_error (s, path, e,
                       "an entry of bus.authorized_clients needs 'key' and 'principal'");
  return 0;
}

static int
check_twice (const config_setting_t *s, const struct conf_client *all, size_t n, const char *path,
             struct err *e)
{
  const struct conf_client *last = &all[n - 1];

  for (size_t i = 0; i + 1 < n; i++)
    if (last->key ? strcmp (last->key, all[i].key) == 0 : last->uid == all[i].uid)
      return conf_error (s, path, e, "'%s' is authorised twice", last->principal);
  return 0;
}

static int
read_clients (const config_setting_t *s, const char *path, bool keys, struct conf_client **all,
              size_t *n, struct err *e)
{
  const char *where = keys ? "bus.authorized_clients" : "bus.uids";

  if (!config_setting_is_list (s))
    return conf_error (s, path, e, "%s must be a list: ( { ... }, { ... } )", where);
  *all = calloc ((size_t) config_setting_length (s) + 1, sizeof **all);
  if (!*all)
    abort ();
  for (int i = 0; i < config_setting_length (s); i++) {
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    struct conf_client *c = &(*all)[(*n)++];

    c->rights = CONF_RENT;
    c->limits.leases = UINT32_MAX;
    c->limits.udollar_per_hour = UINT64_MAX;
    if (conf_group (x, path, where, keys ? key_fields : uid_fields,
                    keys ? N_ELEMENTS (key_fields) : N_ELEMENTS (uid_fields), c, e) < 0 ||
        (keys ? check_key : check_uid) (x, c, path, e) < 0 ||
        check_twice (x, *all, *n, path, e) < 0)
      return -1;
  }
  return 0;
}

static int
read_uids (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  struct conf_bus *b = base;

  return read_clients (s, path, false, &b->uids, &b->nuids, e);
}

static int
read_authorized (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  struct conf_bus *b = base;

  return read_clients (s, path, true, &b->clients, &b->nclients, e);
}

static int
read_curve (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  struct conf_bus *b = base;

  return conf_secret_setting (s, path, "bus", &b->curve_secret_key, e) < 0 ? -1 : 0;
}

static int
check_endpoints (const config_setting_t *s, const struct conf_strings *list,
                 const struct conf_bus *b, const char *path, struct err *e)
{
  for (size_t i = 0; i < list->n; i++) {
    bool tcp = strncmp (list->at[i], "tcp://", 6) == 0;

    if (!tcp && strncmp (list->at[i], "ipc:///", 7) != 0)
      return conf_error (s, path, e, "endpoint '%.80s' in bus must begin with ipc:/// or tcp://",
                         list->at[i]);
    if (tcp && (!b->curve_secret_key.option || !b->nclients))
      return conf_error (
          s, path, e,
          "endpoint '%.80s' in bus needs 'curve_secret_key_file' and 'authorized_clients'",
          list->at[i]);
  }
  return 0;
}

int
conf_read_bus (const config_setting_t *s, struct conf *c, struct err *e)
{
  static const struct field fields[] = {
    { "requests", FIELD_STRINGS, offsetof (struct conf_bus, requests), NULL, NULL },
    { "events", FIELD_STRINGS, offsetof (struct conf_bus, events), NULL, NULL },
    { "uids", FIELD_CUSTOM, 0, NULL, read_uids },
    { "authorized_clients", FIELD_CUSTOM, 0, NULL, read_authorized },
    { "curve_secret_key_file", FIELD_CUSTOM, 0, NULL, read_curve },
    { "curve_secret_key_env", FIELD_CUSTOM, 0, NULL, read_curve },
    { "curve_secret_key_credential", FIELD_CUSTOM, 0, NULL, read_curve },
  };

  if (conf_group (s, c->path, "bus", fields, N_ELEMENTS (fields), &c->bus, e) < 0 ||
      check_endpoints (s, &c->bus.requests, &c->bus, c->path, e) < 0)
    return -1;
  return check_endpoints (s, &c->bus.events, &c->bus, c->path, e);
}
