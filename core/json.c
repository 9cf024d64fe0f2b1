/* json.c - what stands between hostile bytes and Jansson, and short ways to read an object */
#include "config.h"

#include <string.h>

#include "core/json.h"

enum { WORD_MAX = 40 };

int
json_scan (const char *text, size_t len, int max_depth, size_t max_tokens, struct err *e)
{
  size_t tokens = 0;
  int depth = 0;
  bool in_string = false;

  for (size_t i = 0; i < len; i++) {
    char c = text[i];

    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = false;
      continue;
    }
    switch (c) {
    case '"':
      in_string = true;
      tokens++;
      break;
    case '{':
    case '[':
      tokens++;
      if (++depth > max_depth)
        return err_set (e, ERR_INVALID, "JSON is nested deeper than %d", max_depth);
      break;
    case '}':
    case ']':
      if (--depth < 0)
        return err_set (e, ERR_INVALID, "JSON closes a bracket that was not opened");
      break;
    case ',':
    case ':':
      tokens++;
      break;
    default:
      break;
    }
    if (tokens > max_tokens)
      return err_set (e, ERR_INVALID, "JSON has more than %zu tokens", max_tokens);
  }
  if (depth != 0 || in_string)
    return err_set (e, ERR_INVALID, "JSON ends early");
  return 0;
}

json_t *
json_parse (const char *text, size_t len, struct err *e)
{
  return json_parse_max (text, len, JSON_MAX_TOKENS, e);
}

json_t *
json_parse_max (const char *text, size_t len, size_t max_tokens, struct err *e)
{
  json_error_t why;
  json_t *j;

  if (json_scan (text, len, JSON_MAX_DEPTH, max_tokens, e) < 0)
    return NULL;
  j = json_loadb (text, len, JSON_REJECT_DUPLICATES, &why);
  if (!j) {
    err_set (e, ERR_INVALID, "JSON: %.120s at byte %d", why.text, why.position);
    return NULL;
  }
  if (!json_is_object (j)) {
    json_decref (j);
    err_set (e, ERR_INVALID, "JSON is not an object");
    return NULL;
  }
  return j;
}

char *
json_canonical (const json_t *j)
{
  return json_dumps (j, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
}

const char *
json_str (const json_t *obj, const char *key, const char *otherwise)
{
  const json_t *j = json_object_get (obj, key);

  return json_is_string (j) ? json_string_value (j) : otherwise;
}

int64_t
json_i64 (const json_t *obj, const char *key, int64_t otherwise)
{
  const json_t *j = json_object_get (obj, key);

  return json_is_integer (j) ? json_integer_value (j) : otherwise;
}

bool
json_bool (const json_t *obj, const char *key, bool otherwise)
{
  const json_t *j = json_object_get (obj, key);

  return json_is_boolean (j) ? json_is_true (j) : otherwise;
}

void
json_put_str (json_t *obj, const char *key, const char *value)
{
  if (value)
    json_object_set_new (obj, key, json_string (value));
}

void
json_put_i64 (json_t *obj, const char *key, int64_t value)
{
  json_object_set_new (obj, key, json_integer (value));
}

/* Of the letter at s; 0: no UTF-8. */
static size_t
letter (const unsigned char *s)
{
  size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
  uint32_t code = s[0] & (0xffu >> (n + 1));
  static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

  if (n < 2)
    return n;
  for (size_t i = 1; i < n; i++) {
    if (s[i] >> 6 != 2)
      return 0;
    code = code << 6 | (s[i] & 0x3fu);
  }
  return code < least[n] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : n;
}

void
json_clean (char *text)
{
  unsigned char *s = (unsigned char *) text;

  while (*s) {
    size_t n = letter (s);

    if (n == 0)
      *s = '?';
    s += n ? n : 1;
  }
}

static size_t
distance (const char *a, const char *b)
{
  size_t row[WORD_MAX + 1], n = strlen (b);

  for (size_t j = 0; j <= n; j++)
    row[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    size_t diagonal = row[0];

    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

      if (up + 1 < best)
        best = up + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      diagonal = up;
      row[j] = best;
    }
  }
  return row[n];
}

const char *
nearest (const char *word, const char *const *candidates, size_t n)
{
  const char *best = NULL;
  size_t limit = strlen (word) / 3 + 2;

  if (strlen (word) > WORD_MAX)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    size_t d = strlen (candidates[i]) > WORD_MAX ? limit : distance (word, candidates[i]);

    if (d < limit) {
      limit = d;
      best = candidates[i];
    }
  }
  return best;
}

static const struct json_member *
member (const struct json_member *members, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (members[i].name, name) == 0)
      return &members[i];
  return NULL;
}

static const char *
type_name (json_type type)
{
  static const char *const names[] = {
    [JSON_OBJECT] = "an object",    [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
    [JSON_INTEGER] = "an integer",  [JSON_REAL] = "a number",  [JSON_TRUE] = "true or false",
    [JSON_FALSE] = "true or false", [JSON_NULL] = "null",
  };

  return names[type];
}

static int
unknown (const char *key, const struct json_member *members, size_t n, struct err *e)
{
  const char *names[64], *near;
  size_t i;

  for (i = 0; i < n && i < N_ELEMENTS (names); i++)
    names[i] = members[i].name;
  near = nearest (key, names, i);
  return err_set (e, ERR_INVALID, "unknown member '%.60s'%s%s%s", key,
                  near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int
json_check (const json_t *obj, const struct json_member *members, size_t n, struct err *e)
{
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *) obj, key, value) {
    const struct json_member *m = member (members, n, key);
    json_type type = json_typeof (value) == JSON_FALSE ? JSON_TRUE : json_typeof (value);

    if (!m)
      return unknown (key, members, n, e);
    if (type != m->type)
      return err_set (e, ERR_INVALID, "'%.60s' must be %s", key, type_name (m->type));
  }
  for (size_t i = 0; i < n; i++)
    if (members[i].required && !json_object_get (obj, members[i].name))
      return err_set (e, ERR_INVALID, "'%s' is missing", members[i].name);
  return 0;
}
