/* tags.c - the broker's marks in lists of "key=value" text */
#include "config.h"

#include <string.h>

#include "plugins/tags.h"

static const char *
text_of (const json_t *tag)
{
  return json_is_string (tag) ? json_string_value (tag) : "";
}

json_t *
tags_list (const struct gpub_create *a)
{
  json_t *list = json_array ();

  for (uint64_t i = 0; i < a->ntags; i++)
    json_array_append_new (list, json_sprintf ("%s=%s", a->tags[i].key, a->tags[i].value));
  return list;
}

const char *
tags_get (const json_t *list, const char *key)
{
  const json_t *tag;
  size_t i, n = strlen (key);

  json_array_foreach (list, i, tag) {
    const char *text = text_of (tag);

    if (strncmp (text, key, n) == 0 && text[n] == '=')
      return text + n + 1;
  }
  return NULL;
}

bool
tags_ours (const json_t *list)
{
  return tags_get (list, GPUB_TAG_OWNER) || tags_get (list, GPUB_TAG_LEASE) ||
         tags_get (list, GPUB_TAG_TOKEN);
}

uint64_t
tags_split (const json_t *list, json_t *text, struct gpub_kv tags[static TAGS_MAX])
{
  const json_t *tag;
  size_t i;
  uint64_t n = 0;

  json_array_foreach (list, i, tag) {
    const char *whole = text_of (tag), *equals = strchr (whole, '=');
    json_t *key;

    if (!equals || equals == whole || n == TAGS_MAX)
      continue;
    key = json_stringn (whole, (size_t) (equals - whole));
    json_array_append_new (text, key);
    tags[n++] = (struct gpub_kv){ json_string_value (key), equals + 1 };
  }
  return n;
}

bool
find_wants (const struct gpub_find *f, const char *token, const char *name)
{
  if (f->token && *f->token)
    return token && strcmp (token, f->token) == 0;
  return f->name && *f->name && name && strcmp (name, f->name) == 0;
}
