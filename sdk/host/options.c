/* options.c - CONFIG.options against what the plugin declared
 *
 * Everything wrong with a configuration is found here, before the plugin runs, and named with its
 * remedy.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/host/host.h"

enum { TEXT_MAX = 8192, NAMES_MAX = 256 };

int
option_duration_ms (const char *text, int64_t *ms)
{
  static const struct {
    const char *unit;
    int64_t ms;
  } units[] = {
    { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
  };
  char *end;
  long long n;

  if (*text < '0' || *text > '9')
    return -1;
  errno = 0;
  n = strtoll (text, &end, 10);
  for (size_t i = 0; i < N_ELEMENTS (units); i++)
    if (errno == 0 && strcmp (end, units[i].unit) == 0 && n <= INT64_MAX / units[i].ms) {
      *ms = n * units[i].ms;
      return 0;
    }
  return -1;
}

int
option_money_udollar (const char *text, int64_t *udollar)
{
  char *end;
  double dollars;

  if (*text < '0' || *text > '9')
    return -1;
  dollars = strtod (text, &end);
  if (*end || !(dollars >= 0 && dollars <= 1e9))
    return -1;
  *udollar = (int64_t) llround (dollars * 1e6);
  return 0;
}

static char *
number (int64_t n)
{
  char *text = NULL;

  if (asprintf (&text, "%lld", (long long) n) < 0)
    abort ();
  return text;
}

/* Each takes a JSON value or, for a default, its text; NULL when it does not fit. */
static char *
take_string (const json_t *v, const char *text)
{
  return v ? (json_is_string (v) ? strdup (json_string_value (v)) : NULL) : strdup (text);
}

static char *
take_int (const json_t *v, const char *text)
{
  char *end;
  long long n;

  if (v)
    return json_is_integer (v) ? number (json_integer_value (v)) : NULL;
  errno = 0;
  n = strtoll (text, &end, 10);
  return *text && !*end && errno == 0 ? number (n) : NULL;
}

static char *
take_bool (const json_t *v, const char *text)
{
  if (v)
    return json_is_boolean (v) ? strdup (json_is_true (v) ? "true" : "false") : NULL;
  return strcmp (text, "true") == 0 || strcmp (text, "false") == 0 ? strdup (text) : NULL;
}

static char *
take_duration (const json_t *v, const char *text)
{
  const char *s = v ? json_string_value (v) : text;
  int64_t ms;

  return s && option_duration_ms (s, &ms) == 0 ? number (ms) : NULL;
}

static char *
take_money (const json_t *v, const char *text)
{
  char buf[64];
  int64_t udollar;

  if (json_is_number (v)) {
    snprintf (buf, sizeof buf, "%.6f", json_number_value (v));
    text = buf;
  } else if (v) {
    text = json_string_value (v);
  }
  return text && option_money_udollar (text, &udollar) == 0 ? number (udollar) : NULL;
}

static char *
take_json (const json_t *v, const char *text)
{
  AUTO_JSON json_t *parsed = v ? NULL : json_loads (text, JSON_DECODE_ANY, NULL);

  return v || parsed ? json_dumps (v ? v : parsed, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

static bool
is_list (const json_t *v)
{
  size_t i;
  json_t *item;

  json_array_foreach (v, i, item) {
    if (!json_is_string (item))
      return false;
  }
  return json_is_array (v);
}

static char *
take_list (const json_t *v, const char *text)
{
  AUTO_JSON json_t *parsed = v ? NULL : json_loads (text, 0, NULL);

  return is_list (v ? v : parsed) ? take_json (v ? v : parsed, NULL) : NULL;
}

static const struct type {
  char *(*take) (const json_t *, const char *);
  const char *must; /* "'name' must be ..." */
} types[] = {
  [GPUB_OPT_STRING] = { take_string, "text in quotes" },
  [GPUB_OPT_INT] = { take_int, "an integer" },
  [GPUB_OPT_BOOL] = { take_bool, "true or false" },
  [GPUB_OPT_DURATION] = { take_duration, "a duration such as \"90s\", \"5m\" or \"2h\"" },
  [GPUB_OPT_MONEY] = { take_money, "dollars, such as 2.50" },
  [GPUB_OPT_LIST] = { take_list, "a list of texts, [ \"a\", \"b\" ]" },
  [GPUB_OPT_JSON] = { take_json, "a value" },
};

const struct gpub_option *
options_find (const struct gpub_provider *p, const char *name)
{
  for (uint64_t i = 0; i < p->noptions; i++) {
    const struct gpub_option *o = GPUB_AT (struct gpub_option, p->options, p->options_stride, i);

    if (strcmp (o->name, name) == 0)
      return o;
  }
  return NULL;
}

static int
unknown (const struct gpub_provider *p, const char *name, struct err *e)
{
  const char *names[NAMES_MAX], *near;
  size_t n = 0;

  for (; n < p->noptions && n < NAMES_MAX; n++)
    names[n] = GPUB_AT (struct gpub_option, p->options, p->options_stride, n)->name;
  near = nearest (name, names, n);
  return err_code (e, ERR_INVALID, "unknown-option", "unknown option '%.60s'%s%s%s", name,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int
check_names (const struct gpub_provider *p, const json_t *given, struct err *e)
{
  const char *name;
  json_t *value;

  json_object_foreach ((json_t *) given, name, value) {
    const struct gpub_option *o = options_find (p, name);

    if (!o)
      return unknown (p, name, e);
    if (o->flags & GPUB_OPT_SECRET)
      return err_code (e, ERR_INVALID, "secret-in-configuration",
                       "'%s' is a secret: give it as %s_file, %s_env or %s_credential", name, name,
                       name, name);
  }
  return 0;
}

static int
check_secret (const struct gpub_option *o, bool (*has) (const void *, const char *),
              const void *ctx, struct err *e)
{
  if (!(o->flags & GPUB_OPT_REQUIRED) || has (ctx, o->name))
    return 0;
  return err_code (e, ERR_INVALID, "missing-option",
                   "'%s' is missing: set %s_file, %s_env or %s_credential", o->name, o->name,
                   o->name, o->name);
}

/* A configured http:// address, wherever it stands in an option, is the operator's leave to talk to
 * it without TLS. */
static void
note_plain (struct options *out, const json_t *v)
{
  const char *text = json_string_value (v), *key;
  json_t *inner;
  size_t i;

  json_array_foreach (v, i, inner)
    note_plain (out, inner);
  json_object_foreach ((json_t *) v, key, inner)
    note_plain (out, inner);
  if (!text || strncmp (text, "http://", 7) != 0)
    return;
  *vec_push (&out->plain) = strdup (text);
  if (!out->plain.at[out->plain.n - 1])
    abort ();
}

static int
check_one (struct options *out, const struct gpub_option *o, const json_t *v, struct err *e)
{
  struct gpub_kv *kv;
  char *value;

  if (o->type >= N_ELEMENTS (types))
    return err_set (e, ERR_INTERNAL,
                    "the plugin declares '%s' with type %u, which this host does not know", o->name,
                    o->type);
  if (!v && !o->default_value)
    return o->flags & GPUB_OPT_REQUIRED
               ? err_code (e, ERR_INVALID, "missing-option", "'%s' is missing", o->name)
               : 0;
  value = types[o->type].take (v, o->default_value);
  if (!value)
    return v ? err_code (e, ERR_INVALID, "bad-option", "'%s' must be %s", o->name,
                         types[o->type].must)
             : err_set (e, ERR_INTERNAL, "the plugin's own default of '%s' is not %s", o->name,
                        types[o->type].must);
  note_plain (out, v);
  kv = vec_push (&out->values);
  *kv = (struct gpub_kv){ o->name, value };
  return 0;
}

int
options_check (struct options *out, const struct gpub_provider *p, const json_t *given,
               bool (*has_secret) (const void *, const char *), const void *ctx, struct err *e)
{
  if (check_names (p, given, e) < 0)
    return -1;
  for (uint64_t i = 0; i < p->noptions; i++) {
    const struct gpub_option *o = GPUB_AT (struct gpub_option, p->options, p->options_stride, i);

    if (o->flags & GPUB_OPT_SECRET ? check_secret (o, has_secret, ctx, e) < 0
                                   : check_one (out, o, json_object_get (given, o->name), e) < 0)
      return -1;
  }
  return 0;
}

void
options_free (struct options *o)
{
  for (size_t i = 0; i < o->values.n; i++)
    free ((char *) (uintptr_t) o->values.at[i].value);
  for (size_t i = 0; i < o->plain.n; i++)
    free (o->plain.at[i]);
  vec_free (&o->values);
  vec_free (&o->plain);
}
