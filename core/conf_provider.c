/* conf_provider.c - the list providers
 *
 * What core does not know belongs to the plugin and is handed on as JSON: only the plugin can say
 * whether it is right.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/conf_read.h"
#include "core/json.h"

#define SECONDS(n) ((n) *INT64_C (1000))

/* 50.0 or "24h": dollars, or for how long what is rented now can go on. */
static int
read_balance (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const struct field money = { "balance_alarm", FIELD_MONEY, 0, NULL, NULL };
  struct conf_provider *p = base;
  const char *text = config_setting_get_string (s);

  if (!text)
    return conf_field (s, path, "a provider", &money, &p->balance_udollar, e);
  p->balance_ms = duration_parse (text);
  if (p->balance_ms > 0)
    return 0;
  return conf_error (s, path, e,
                     "'balance_alarm' in a provider must be dollars, such as 50.0, or the time that "
                     "the balance must last, such as \"24h\"");
}

static const struct field own_fields[] = {
  { "name", FIELD_NAME, offsetof (struct conf_provider, name), NULL, NULL },
  { "plugin", FIELD_STRING, offsetof (struct conf_provider, plugin), NULL, NULL },
  { "paused", FIELD_BOOL, offsetof (struct conf_provider, paused), NULL, NULL },
  { "offers_every", FIELD_DURATION, offsetof (struct conf_provider, offers_every_ms), NULL, NULL },
  { "reconcile_every", FIELD_DURATION, offsetof (struct conf_provider, reconcile_every_ms), NULL,
    NULL },
  { "balance_alarm", FIELD_CUSTOM, 0, NULL, read_balance },
};

/* Options of every provider's HTTP, read by the host and never by the plugin. */
static const struct {
  const char *name;
  json_type type;
} http_fields[] = {
  { "ca_file", JSON_STRING },
  { "client_cert_file", JSON_STRING },
  { "client_key_file", JSON_STRING },
  { "proxy", JSON_STRING },
  { "rate", JSON_REAL },
  { "burst", JSON_INTEGER },
  { "record", JSON_STRING },
  { "replay", JSON_STRING },
};

static int
http_index (const char *name)
{
  for (size_t i = 0; i < N_ELEMENTS (http_fields); i++)
    if (strcmp (http_fields[i].name, name) == 0)
      return (int) i;
  return -1;
}

static int
read_http (const config_setting_t *s, int i, struct conf_provider *p, const char *path,
           const char *where, struct err *e)
{
  AUTO_JSON json_t *value = conf_json (s, path, e);
  json_type want = http_fields[i].type;

  if (!value)
    return -1;
  if (want == JSON_REAL && json_is_number (value) && json_number_value (value) > 0) {
    json_object_set_new (p->http, http_fields[i].name, json_real (json_number_value (value)));
    return 0;
  }
  if (json_typeof (value) != want || (want == JSON_INTEGER && json_integer_value (value) < 1))
    return conf_error (s, path, e, "'%s' in %s must be %s", http_fields[i].name, where,
                       want == JSON_STRING    ? "a string in quotes"
                       : want == JSON_INTEGER ? "a whole number, 1 or more"
                                              : "a number of requests a second");
  json_object_set (p->http, http_fields[i].name, value);
  return 0;
}

/* 1 when it was a secret. */
static int
read_secret (const config_setting_t *s, struct conf_provider *p, const char *path,
             const char *where, struct err *e)
{
  struct conf_secret x = { NULL, CONF_FILE, NULL, 0 };
  int rc = conf_secret_setting (s, path, where, &x, e);

  if (rc <= 0)
    return rc;
  for (size_t i = 0; i < p->nsecrets; i++)
    if (strcmp (p->secrets[i].option, x.option) == 0) {
      conf_error (s, path, e, "'%s' in %s is already given on line %u", x.option, where,
                  p->secrets[i].line);
      conf_secret_free (&x);
      return -1;
    }
  p->secrets = realloc (p->secrets, (p->nsecrets + 1) * sizeof *p->secrets);
  if (!p->secrets)
    abort ();
  p->secrets[p->nsecrets++] = x;
  return 1;
}

static int
read_option (const config_setting_t *s, struct conf_provider *p, const char *path,
             const char *where, struct err *e)
{
  json_t *value;
  int rc = read_secret (s, p, path, where, e);

  if (rc != 0)
    return rc < 0 ? -1 : 0;
  value = conf_json (s, path, e);
  if (!value)
    return -1;
  json_object_set_new (p->options, config_setting_name (s), value);
  return 0;
}

static int
read_setting (const config_setting_t *s, struct conf_provider *p, const char *path,
              const char *where, struct err *e)
{
  const char *name = config_setting_name (s);
  const struct field *f = conf_find_field (own_fields, N_ELEMENTS (own_fields), name);
  int http = http_index (name);

  if (f)
    return conf_field (s, path, where, f, p, e);
  return http >= 0 ? read_http (s, http, p, path, where, e) : read_option (s, p, path, where, e);
}

static int
read_provider (const config_setting_t *s, struct conf_provider *p, const char *path, struct err *e)
{
  const char *name = NULL;
  char where[64];

  p->http = json_object ();
  p->options = json_object ();
  p->line = config_setting_source_line (s);
  p->offers_every_ms = p->reconcile_every_ms = SECONDS (60);
  if (!config_setting_is_group (s))
    return conf_error (s, path, e, "providers must be a list of groups: ( { name = ...; } )");
  if (config_setting_lookup_string (s, "name", &name) != CONFIG_TRUE)
    return conf_error (s, path, e, "a provider needs a 'name'");
  snprintf (where, sizeof where, "provider '%.32s'", name);
  for (int i = 0; i < config_setting_length (s); i++)
    if (read_setting (config_setting_get_elem (s, (unsigned) i), p, path, where, e) < 0)
      return -1;
  if (strcmp (p->name, "broker") == 0)
    return conf_error (s, path, e,
                       "a provider cannot be called 'broker': that is the broker itself");
  if (strcmp (p->name, "own") == 0)
    return conf_error (s, path, e,
                       "a provider cannot be called 'own': so are machines of `join --host`");
  if (!p->plugin)
    conf_set (&p->plugin, p->name);
  if (p->offers_every_ms < SECONDS (1) || p->reconcile_every_ms < SECONDS (1))
    return conf_error (s, path, e,
                       "'offers_every' and 'reconcile_every' in %s must be at least \"1s\"", where);
  return 0;
}

int
conf_read_providers (const config_setting_t *s, struct conf *c, struct err *e)
{
  if (!config_setting_is_list (s))
    return conf_error (s, c->path, e, "providers must be a list: ( { name = ...; }, ... )");
  c->providers = calloc ((size_t) config_setting_length (s) + 1, sizeof *c->providers);
  if (!c->providers)
    abort ();
  for (int i = 0; i < config_setting_length (s); i++) {
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    struct conf_provider *p = &c->providers[c->nproviders++];

    if (read_provider (x, p, c->path, e) < 0)
      return -1;
    for (size_t j = 0; j + 1 < c->nproviders; j++)
      if (strcmp (c->providers[j].name, p->name) == 0)
        return conf_error (x, c->path, e,
                           "provider '%s' is already on line %u: give it another name", p->name,
                           c->providers[j].line);
  }
  return 0;
}

static const char *
suffix (enum conf_source source)
{
  return source == CONF_FILE ? "_file" : source == CONF_ENV ? "_env" : "_credential";
}

static bool
declared (const struct conf_secret *x, const char *const *names, size_t n)
{
  char full[128];

  snprintf (full, sizeof full, "%s%s", x->option, suffix (x->source));
  for (size_t i = 0; i < n; i++)
    if (strcmp (names[i], full) == 0)
      return true;
  return false;
}

void
conf_provider_declared (struct conf_provider *p, const char *const *names, size_t n)
{
  for (size_t i = p->nsecrets; i-- > 0;) {
    struct conf_secret *x = &p->secrets[i];
    char full[128];

    if (!declared (x, names, n))
      continue;
    snprintf (full, sizeof full, "%s%s", x->option, suffix (x->source));
    json_put_str (p->options, full, x->where);
    conf_secret_free (x);
    memmove (x, x + 1, (--p->nsecrets - i) * sizeof *x);
  }
}
