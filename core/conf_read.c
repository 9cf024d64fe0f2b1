/* conf_read.c - settings into structs, by table */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/conf_read.h"
#include "core/json.h"

enum { NAME_LEN = 32, FIELDS_MAX = 48 };

int
conf_error (const config_setting_t *s, const char *path, struct err *e, const char *fmt, ...)
{
  const char *file = s ? config_setting_source_file (s) : NULL;
  char text[200];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  if (!s)
    return err_set (e, ERR_INVALID, "%s: %s", path, text);
  return err_set (e, ERR_INVALID, "%s:%u: %s", file ? file : path, config_setting_source_line (s),
                  text);
}

void
conf_set (char **p, const char *value)
{
  free (*p);
  *p = value ? strdup (value) : NULL;
}

void
conf_strings_free (struct conf_strings *s)
{
  for (size_t i = 0; i < s->n; i++)
    free (s->at[i]);
  free (s->at);
  memset (s, 0, sizeof *s);
}

void
conf_strings_add (struct conf_strings *s, const char *value)
{
  s->at = realloc (s->at, (s->n + 1) * sizeof *s->at);
  if (!s->at)
    abort ();
  s->at[s->n++] = strdup (value);
}

int64_t
duration_parse (const char *text)
{
  static const struct {
    const char *unit;
    int64_t ms;
  } units[] = { { "ms", 1 },      { "s", 1000 },     { "m", 60000 },
                { "h", 3600000 }, { "d", 86400000 }, { "w", 604800000 } };
  int64_t n = 0;
  const char *p;

  for (p = text; isdigit ((unsigned char) *p); p++) {
    n = n * 10 + (*p - '0');
    if (n > INT64_C (10000000000))
      return -1;
  }
  for (size_t i = 0; p > text && i < N_ELEMENTS (units); i++)
    if (strcmp (p, units[i].unit) == 0)
      return n * units[i].ms;
  return -1;
}

static int
must_be (const config_setting_t *s, const char *path, const char *where, const char *what,
         struct err *e)
{
  return conf_error (s, path, e, "'%s' in %s must be %s", config_setting_name (s), where, what);
}

static bool
is_name (const char *s)
{
  size_t n = strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

  return n > 0 && n <= NAME_LEN && !s[n];
}

static int
read_string (const config_setting_t *s, const char *path, const char *where, enum field_type type,
             char **out, struct err *e)
{
  const char *value = config_setting_get_string (s);

  if (!value)
    return must_be (s, path, where, "a string in quotes", e);
  if (!*value)
    return must_be (s, path, where, "a string that is not empty", e);
  if (type == FIELD_PATH && *value != '/')
    return must_be (s, path, where, "an absolute path", e);
  if (type == FIELD_NAME && !is_name (value))
    return must_be (s, path, where, "1 to 32 letters, digits, '-' or '_'", e);
  conf_set (out, value);
  return 0;
}

static int
read_count (const config_setting_t *s, const char *path, const char *where, uint32_t *out,
            struct err *e)
{
  int type = config_setting_type (s);
  long long n = type == CONFIG_TYPE_INT     ? config_setting_get_int (s)
                : type == CONFIG_TYPE_INT64 ? config_setting_get_int64 (s)
                                            : -1;

  if (n < 0 || n >= UINT32_MAX)
    return must_be (s, path, where, "a whole number, 0 or more", e);
  *out = (uint32_t) n;
  return 0;
}

static int
read_duration (const config_setting_t *s, const char *path, const char *where, bool none,
               int64_t *out, struct err *e)
{
  const char *value = config_setting_get_string (s);
  int64_t ms = value ? duration_parse (value) : -1;

  if (none && value && strcmp (value, "none") == 0)
    ms = 0;
  if (ms < 0)
    return must_be (s, path, where,
                    none ? "a duration such as \"90s\", \"5m\", \"2h\" or \"7d\", or \"none\""
                         : "a duration such as \"90s\", \"5m\", \"2h\" or \"7d\"",
                    e);
  *out = ms;
  return 0;
}

/* What libconfig calls a number, as dollars; negative for anything else. */
static double
dollars (const config_setting_t *s)
{
  switch (config_setting_type (s)) {
  case CONFIG_TYPE_INT:
    return config_setting_get_int (s);
  case CONFIG_TYPE_INT64:
    return (double) config_setting_get_int64 (s);
  case CONFIG_TYPE_FLOAT:
    return config_setting_get_float (s);
  default:
    return -1;
  }
}

static int
read_money (const config_setting_t *s, const char *path, const char *where, uint64_t *out,
            struct err *e)
{
  double d = dollars (s);

  if (!(d >= 0 && d <= 1e9))
    return must_be (s, path, where, "dollars, such as 2.50", e);
  *out = (uint64_t) llround (d * 1e6);
  return 0;
}

static int
read_bool (const config_setting_t *s, const char *path, const char *where, bool *out, struct err *e)
{
  if (config_setting_type (s) != CONFIG_TYPE_BOOL)
    return must_be (s, path, where, "true or false", e);
  *out = config_setting_get_bool (s) == CONFIG_TRUE;
  return 0;
}

static int
read_strings (const config_setting_t *s, const char *path, const char *where,
              struct conf_strings *out, struct err *e)
{
  const char *one = config_setting_get_string (s);

  conf_strings_free (out);
  if (one) {
    conf_strings_add (out, one);
    return 0;
  }
  if (!config_setting_is_array (s) && !config_setting_is_list (s))
    return must_be (s, path, where, "a list of strings: [ \"a\", \"b\" ]", e);
  for (int i = 0; i < config_setting_length (s); i++) {
    const char *value = config_setting_get_string_elem (s, i);

    if (!value || !*value)
      return must_be (s, path, where, "a list of strings: [ \"a\", \"b\" ]", e);
    conf_strings_add (out, value);
  }
  return 0;
}

static int
read_choice (const config_setting_t *s, const char *path, const char *where,
             const char *const *choices, int *out, struct err *e)
{
  const char *value = config_setting_get_string (s);
  char all[120];
  size_t n = 0;

  for (int i = 0; value && choices[i]; i++)
    if (strcmp (choices[i], value) == 0) {
      *out = i;
      return 0;
    }
  for (int i = 0; choices[i] && n < sizeof all; i++)
    n += (size_t) snprintf (all + n, sizeof all - n, "%s\"%s\"", i ? ", " : "one of ", choices[i]);
  return must_be (s, path, where, all, e);
}

int
conf_field (const config_setting_t *s, const char *path, const char *where, const struct field *f,
            void *base, struct err *e)
{
  void *at = (char *) base + f->offset;

  switch (f->type) {
  case FIELD_STRING:
  case FIELD_PATH:
  case FIELD_NAME:
    return read_string (s, path, where, f->type, at, e);
  case FIELD_BOOL:
    return read_bool (s, path, where, at, e);
  case FIELD_COUNT:
    return read_count (s, path, where, at, e);
  case FIELD_DURATION:
  case FIELD_TTL:
    return read_duration (s, path, where, f->type == FIELD_TTL, at, e);
  case FIELD_MONEY:
    return read_money (s, path, where, at, e);
  case FIELD_STRINGS:
    return read_strings (s, path, where, at, e);
  case FIELD_CHOICE:
    return read_choice (s, path, where, f->choices, at, e);
  case FIELD_CUSTOM:
    return f->custom (s, base, path, e);
  case FIELD_IGNORE:
    break;
  }
  return 0;
}

const struct field *
conf_find_field (const struct field *fields, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (fields[i].name, name) == 0)
      return &fields[i];
  return NULL;
}

int
conf_unknown (const config_setting_t *s, const char *path, const char *where,
              const struct field *fields, size_t n, struct err *e)
{
  const char *names[FIELDS_MAX], *near;

  for (size_t i = 0; i < n && i < FIELDS_MAX; i++)
    names[i] = fields[i].name;
  near = nearest (config_setting_name (s), names, n < FIELDS_MAX ? n : FIELDS_MAX);
  return conf_error (s, path, e, "unknown setting '%.60s' in %s%s%s%s", config_setting_name (s),
                     where, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int
conf_group (const config_setting_t *s, const char *path, const char *where,
            const struct field *fields, size_t n, void *base, struct err *e)
{
  if (!config_setting_is_group (s))
    return conf_error (s, path, e, "%s must be a group: { name = value; ... }", where);
  for (int i = 0; i < config_setting_length (s); i++) {
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    const struct field *f = conf_find_field (fields, n, config_setting_name (x));

    if (!f)
      return conf_unknown (x, path, where, fields, n, e);
    if (conf_field (x, path, where, f, base, e) < 0)
      return -1;
  }
  return 0;
}

static json_t *
conf_json_group (const config_setting_t *s, const char *path, struct err *e)
{
  AUTO_JSON json_t *out = config_setting_is_group (s) ? json_object () : json_array ();

  for (int i = 0; i < config_setting_length (s); i++) {
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    json_t *value = conf_json (x, path, e);

    if (!value)
      return NULL;
    if (json_is_object (out))
      json_object_set_new (out, config_setting_name (x), value);
    else
      json_array_append_new (out, value);
  }
  return STEAL (out);
}

json_t *
conf_json (const config_setting_t *s, const char *path, struct err *e)
{
  json_t *j = NULL;

  switch (config_setting_type (s)) {
  case CONFIG_TYPE_STRING:
    j = json_string (config_setting_get_string (s));
    break;
  case CONFIG_TYPE_INT:
    j = json_integer (config_setting_get_int (s));
    break;
  case CONFIG_TYPE_INT64:
    j = json_integer (config_setting_get_int64 (s));
    break;
  case CONFIG_TYPE_FLOAT:
    j = json_real (config_setting_get_float (s));
    break;
  case CONFIG_TYPE_BOOL:
    j = json_boolean (config_setting_get_bool (s));
    break;
  default:
    return conf_json_group (s, path, e);
  }
  if (!j)
    conf_error (s, path, e, "this value is not UTF-8 or not a finite number");
  return j;
}
