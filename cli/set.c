/* set.c - the setters of the option table: a word becomes a member of an object */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "cli/set.h"
#include "cli/values.h"
#include "core/clock.h"
#include "core/json.h"

enum { COUNT_MAX = 1000000, WORD_LIMIT = 512 };

static int
put (const struct option *o, json_t *into, json_t *value)
{
  json_object_set_new (into, o->member, value);
  return 0;
}

static int
append (const struct option *o, json_t *into, json_t *value)
{
  json_t *list = json_object_get (into, o->member);

  if (!value)
    return -1;
  if (!list) {
    list = json_array ();
    json_object_set_new (into, o->member, list);
  }
  json_array_append_new (list, value);
  return 0;
}

/* NULL for bytes that are not UTF-8, nothing at all, or far too much. */
static json_t *
text (const char *value, struct err *e)
{
  json_t *j = *value && strlen (value) <= WORD_LIMIT ? json_string (value) : NULL;

  if (!j)
    err_set (e, ERR_INVALID, "'%.60s' is not a text of 1 to %d bytes in UTF-8", value, WORD_LIMIT);
  return j;
}

int
set_true (const struct option *o, const char *value, json_t *into, struct err *e)
{
  (void) value, (void) e;
  return put (o, into, json_true ());
}

int
set_false (const struct option *o, const char *value, json_t *into, struct err *e)
{
  (void) value, (void) e;
  return put (o, into, json_false ());
}

int
set_string (const struct option *o, const char *value, json_t *into, struct err *e)
{
  json_t *j = text (value, e);

  return j ? put (o, into, j) : -1;
}

int
set_list (const struct option *o, const char *value, json_t *into, struct err *e)
{
  return append (o, into, text (value, e));
}

int
set_country (const struct option *o, const char *value, json_t *into, struct err *e)
{
  char code[3];

  if (strlen (value) != 2 || !isalpha ((unsigned char) value[0]) ||
      !isalpha ((unsigned char) value[1]))
    return err_set (e, ERR_INVALID, "'%.60s' is not a country of two letters such as NO", value);
  for (int i = 0; i < 3; i++)
    code[i] = (char) toupper ((unsigned char) value[i]);
  return append (o, into, json_string (code));
}

bool
option_is_choice (const struct option *o)
{
  return o->set == set_choice;
}

int
set_choice (const struct option *o, const char *value, json_t *into, struct err *e)
{
  size_t len = strlen (value);

  for (const char *p = o->value; *p; p += strcspn (p, "|"), p += *p == '|')
    if (len > 0 && strcspn (p, "|") == len && strncmp (p, value, len) == 0)
      return put (o, into, json_string (value));
  return err_set (e, ERR_INVALID, "'%.60s' is none of %s", value, o->value);
}

int
set_count (const struct option *o, const char *value, json_t *into, struct err *e)
{
  int64_t n;

  return parse_count (value, 1, COUNT_MAX, &n, e) < 0 ? -1 : put (o, into, json_integer (n));
}

int
set_gib (const struct option *o, const char *value, json_t *into, struct err *e)
{
  int64_t n;

  return parse_gib (value, &n, e) < 0 ? -1 : put (o, into, json_integer (n));
}

int
set_money (const struct option *o, const char *value, json_t *into, struct err *e)
{
  int64_t n;

  return parse_money (value, &n, e) < 0 ? -1 : put (o, into, json_integer (n));
}

int
set_price (const struct option *o, const char *value, json_t *into, struct err *e)
{
  const char *per;
  int64_t n;

  if (parse_price (value, &n, &per, e) < 0)
    return -1;
  json_put_str (into, "max_price_per", per);
  return put (o, into, json_integer (n));
}

int
set_span (const struct option *o, const char *value, json_t *into, struct err *e)
{
  int64_t n;

  return parse_duration (value, &n, e) < 0 ? -1 : put (o, into, json_integer (n));
}

int
set_ttl (const struct option *o, const char *value, json_t *into, struct err *e)
{
  if (strcmp (value, "none") == 0)
    return put (o, into, json_integer (0));
  if (strcmp (value, "0s") == 0)
    return err_set (e, ERR_INVALID, "say none for a lease that never expires");
  return set_span (o, value, into, e);
}

int
set_since (const struct option *o, const char *value, json_t *into, struct err *e)
{
  int64_t n;

  return parse_since (value, clock_wall_ms (), &n, e) < 0 ? -1 : put (o, into, json_integer (n));
}

/* "none" is the empty list, which lets machines without GPU count too. */
int
set_gpu (const struct option *o, const char *value, json_t *into, struct err *e)
{
  json_t *list = json_object_get (into, o->member);
  bool none = strcmp (value, "none") == 0;

  if (list && (none || json_array_size (list) == 0))
    return err_set (e, ERR_INVALID, "none excludes every other GPU");
  return none ? put (o, into, json_array ()) : append (o, into, parse_gpu (value, e));
}

int
set_on_failure (const struct option *o, const char *value, json_t *into, struct err *e)
{
  json_t *j = parse_on_failure (value, e);

  return j ? put (o, into, j) : -1;
}

int
set_port (const struct option *o, const char *value, json_t *into, struct err *e)
{
  return append (o, into, parse_port (value, e));
}

int
set_host (const struct option *o, const char *value, json_t *into, struct err *e)
{
  json_t *j = parse_host (value, e);

  return j ? put (o, into, j) : -1;
}

int
set_label (const struct option *o, const char *value, json_t *into, struct err *e)
{
  const char *equals = strchr (value, '=');
  AUTO_FREE char *key = equals ? strndup (value, (size_t) (equals - value)) : NULL;
  AUTO_JSON json_t *j = equals ? json_string (equals + 1) : NULL;
  json_t *labels = json_object_get (into, o->member);

  if (!j || !*key ||
      strspn (key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") !=
          strlen (key))
    return err_set (e, ERR_INVALID, "'%.60s' is not a label such as team=vision", value);
  if (json_object_get (labels, key))
    return err_set (e, ERR_INVALID, "the label %.60s is given twice", key);
  if (!labels) {
    labels = json_object ();
    put (o, into, labels);
  }
  return json_object_set (labels, key, j);
}

int
set_k8s (const struct option *o, const char *value, json_t *into, struct err *e)
{
  (void) value, (void) e;
  return put (o, into, json_string ("standalone"));
}

int
set_no_k8s (const struct option *o, const char *value, json_t *into, struct err *e)
{
  (void) value, (void) e;
  return put (o, into, json_string ("none"));
}
