/* kube_json.c - short ways through Kubernetes objects */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "join/kube_api.h"
#include "join/kube_text.h"

json_t *
json_at (const json_t *obj, const char *path)
{
  json_t *at = (json_t *) (uintptr_t) obj;
  char step[64];

  while (at && *path) {
    size_t n = strcspn (path, ".");

    snprintf (step, sizeof step, "%.*s", (int) n, path);
    at = json_object_get (at, step);
    path += n + (path[n] == '.');
  }
  return at;
}

const char *
json_str_at (const json_t *obj, const char *path, const char *otherwise)
{
  json_t *j = json_at (obj, path);

  return json_is_string (j) ? json_string_value (j) : otherwise;
}

json_t *
condition (const json_t *obj, const char *type)
{
  json_t *c;
  size_t i;

  json_array_foreach (json_at (obj, "status.conditions"), i, c)
    if (strcmp (json_str (c, "type", ""), type) == 0)
      return c;
  return NULL;
}

bool
condition_true (const json_t *obj, const char *type)
{
  return strcmp (json_str (condition (obj, type), "status", ""), "True") == 0;
}

char *
secret_bytes (const json_t *secret, const char *key, size_t *len)
{
  const char *text = json_str (json_object_get (secret, "data"), key, NULL);

  return text ? base64_decode (text, strlen (text), len) : NULL;
}
