/* place.c - where a machine goes: the environment of its region, and the broker's key in it
 *
 * Adding one rents nothing, so the doubt of an add never becomes the doubt of a create: after any
 * failure the list knows whether it is there, by us or by another call just now.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

static int32_t
name_take (const struct ctx *c, const char *what, const char *from, char name[static FIELD_MAX])
{
  if (strlen (from) >= FIELD_MAX || *from == '\0')
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: the answer has no usable name", what);
  strcpy (name, from);
  return GPUB_OK;
}

static bool
final (int32_t rc)
{
  return rc == GPUB_OK || rc == GPUB_E_AUTH || rc == GPUB_E_RATE_LIMITED || rc == GPUB_E_CANCELLED;
}

/* A failed add, and the look after it: found is the better answer, else what the add said. */
static int32_t
after_add (const struct ctx *c, int32_t added, const struct gpub_error *first, bool found)
{
  if (found)
    return GPUB_OK;
  *c->err = *first;
  return added == GPUB_E_UNKNOWN || added == GPUB_E_CONFLICT ? GPUB_E_UNAVAILABLE : added;
}

/* ---- Environments ---- */

static const char *
region_of (const json_t *rows, const char *name)
{
  const json_t *row;
  size_t i;

  json_array_foreach (rows, i, row)
    if (strcmp (json_str (row, "name", ""), name) == 0)
      return json_str (row, "region", "");
  return NULL;
}

/* The first of the operator's that is in the region. */
static int32_t
chosen (const struct ctx *c, const json_t *rows, const char *region, char name[static FIELD_MAX])
{
  const json_t *wish;
  size_t i;

  json_array_foreach (c->s->environments, i, wish) {
    const char *where = region_of (rows, json_string_value (wish));

    if (where && strcmp (where, region) == 0)
      return name_take (c, "list environments", json_string_value (wish), name);
  }
  return plug_error (c->err, GPUB_E_INVALID, "none of the configured environments is in %.60s",
                     region);
}

/* GPUB_OK with name "" when there is none yet. */
static int32_t
find_environment (const struct ctx *c, const char *region, const char *usual,
                  char name[static FIELD_MAX])
{
  json_auto_t *rows = NULL;
  const char *where;
  bool whole;
  int32_t rc =
      api_pages (c, "list environments", "/core/environments", "environments", &rows, &whole);

  name[0] = '\0';
  if (rc != GPUB_OK)
    return rc;
  if (json_array_size (c->s->environments))
    return chosen (c, rows, region, name);
  where = region_of (rows, usual);
  if (where && strcmp (where, region) != 0)
    return plug_error (c->err, GPUB_E_INVALID, "environment %.60s is in %.60s, not in %.60s", usual,
                       where, region);
  return where ? name_take (c, "list environments", usual, name) : GPUB_OK;
}

int32_t
environment_ensure (const struct ctx *c, const char *region, char name[static FIELD_MAX])
{
  char usual[FIELD_MAX];
  json_auto_t *body = NULL;
  struct gpub_error first;
  int32_t rc, again;

  if ((size_t) snprintf (usual, sizeof usual, "default-%s", region) >= sizeof usual)
    return plug_error (c->err, GPUB_E_INVALID, "'%.60s...' is no region", region);
  rc = find_environment (c, region, usual, name);
  if (rc != GPUB_OK || *name)
    return rc;
  body = json_pack ("{s:s, s:s}", "name", usual, "region", region);
  rc = api_change (c, "add environment", "POST", "/core/environments", body, NULL);
  if (rc == GPUB_OK)
    return name_take (c, "add environment", usual, name);
  if (final (rc))
    return rc;
  first = *c->err;
  again = find_environment (c, region, usual, name);
  return after_add (c, rc, &first, again == GPUB_OK && *name);
}

/* ---- Keys ---- */

/* The name follows from environment and key, so that two creates at once cannot add it twice. */
static void
key_name (const char *environment, const char *public_key, char name[static FIELD_MAX])
{
  uint64_t hash = 14695981039346656037ull; /* FNV-1a */
  size_t len = 0;
  const char *p = ssh_key_identity (public_key, &len);

  for (const char *e = environment; *e; e++)
    hash = (hash ^ (unsigned char) *e) * 1099511628211ull;
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char) p[i]) * 1099511628211ull;
  snprintf (name, FIELD_MAX, "gpubroker-%016llx", (unsigned long long) hash);
}

/* An object today, a plain name two years ago. */
static const char *
environment_of (const json_t *key)
{
  const json_t *environment = json_object_get (key, "environment");

  return json_is_string (environment) ? json_string_value (environment)
                                      : json_str (environment, "name", "");
}

static int32_t
find_key (const struct ctx *c, const char *environment, const char *public_key,
          char name[static FIELD_MAX])
{
  json_auto_t *rows = NULL;
  const json_t *key;
  size_t i;
  bool whole;
  int32_t rc = api_pages (c, "list SSH keys", "/core/keypairs", "keypairs", &rows, &whole);

  name[0] = '\0';
  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (rows, i, key)
    if (strcmp (environment_of (key), environment) == 0 &&
        ssh_key_same (json_str (key, "public_key", ""), public_key))
      return name_take (c, "list SSH keys", json_str (key, "name", ""), name);
  return GPUB_OK;
}

int32_t
key_ensure (const struct ctx *c, const char *environment, const char *public_key,
            char name[static FIELD_MAX])
{
  char wanted[FIELD_MAX];
  json_auto_t *body = NULL;
  struct gpub_error first;
  int32_t rc = find_key (c, environment, public_key, name), again;

  if (rc != GPUB_OK || *name)
    return rc;
  key_name (environment, public_key, wanted);
  body = json_pack ("{s:s, s:s, s:s}", "name", wanted, "environment_name", environment,
                    "public_key", public_key);
  rc = api_change (c, "add SSH key", "POST", "/core/keypairs", body, NULL);
  if (rc == GPUB_OK)
    return name_take (c, "add SSH key", wanted, name);
  if (final (rc))
    return rc;
  first = *c->err;
  again = find_key (c, environment, public_key, name);
  return after_add (c, rc, &first, again == GPUB_OK && *name);
}
