/* claims.c - who has which machine, one key of the durable store each
 *
 * The store cannot be listed, and a claimed machine may have left the configuration: the key
 * "index" names every machine that was ever claimed and perhaps still is.  It is written before a
 * claim and only ever names too many.
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "plugins/static/static.h"

enum { STORE_MAX = 64 * 1024 };

static const char key_prefix[] = "claim.";

/* NULL with GPUB_OK: there is none. */
static int32_t
load (struct visit *v, const char *key, json_t **out)
{
  const struct gpub_host *host = v->plant->host;
  const void *bytes;
  struct err e = ERR_INIT;
  uint64_t len;
  int32_t rc = host->state_get (v->call, key, &bytes, &len);

  *out = NULL;
  if (rc == GPUB_E_NOT_FOUND)
    return GPUB_OK;
  if (rc != GPUB_OK)
    return plug_error (v->err, GPUB_E_UNAVAILABLE, "the broker's store does not give '%s'", key);
  *out = json_parse_max (bytes, len, STORE_MAX, &e);
  if (!*out)
    return plug_error (v->err, GPUB_E_INTERNAL, "'%s' in the broker's store is damaged: %s", key,
                       e.text);
  return GPUB_OK;
}

static int32_t
store (struct visit *v, const char *key, const json_t *value)
{
  AUTO_FREE char *text = json_dumps (value, JSON_COMPACT | JSON_SORT_KEYS);
  size_t len = text ? strlen (text) : 0;

  if (len == 0 || len > STORE_MAX || v->plant->host->state_put (v->call, key, text, len) != GPUB_OK)
    return plug_error (v->err, GPUB_E_UNAVAILABLE,
                       "the broker's store does not take '%s' (%zu bytes)", key, len);
  return GPUB_OK;
}

static void
claim_key (const char *id, char key[ID_MAX + sizeof key_prefix])
{
  snprintf (key, ID_MAX + sizeof key_prefix, "%s%.*s", key_prefix, ID_MAX, id);
}

static int32_t
load_claim (struct visit *v, const char *id, json_t *claims)
{
  char key[ID_MAX + sizeof key_prefix];
  json_t *claim;
  int32_t rc;

  if (json_object_get (claims, id))
    return GPUB_OK;
  claim_key (id, key);
  rc = load (v, key, &claim);
  if (rc == GPUB_OK && claim)
    json_object_set_new (claims, id, claim);
  return rc;
}

int32_t
claims_all (struct visit *v, json_t **claims)
{
  AUTO_JSON json_t *all = json_object (), *index = NULL;
  int32_t rc = load (v, "index", &index);
  const char *id;
  json_t *one;

  json_object_foreach (index, id, one)
    if (rc == GPUB_OK)
      rc = load_claim (v, id, all);
  for (size_t i = 0; i < v->plant->machines.n && rc == GPUB_OK; i++)
    rc = load_claim (v, v->plant->machines.at[i].id, all);
  *claims = rc == GPUB_OK ? STEAL (all) : NULL;
  return rc;
}

int32_t
claim_put (struct visit *v, const json_t *claim)
{
  char key[ID_MAX + sizeof key_prefix];
  const char *id = json_str (claim, "id", "");
  AUTO_JSON json_t *index = NULL;
  int32_t rc = load (v, "index", &index);

  if (rc == GPUB_OK && !json_object_get (index, id)) {
    if (!index)
      index = json_object ();
    json_put_i64 (index, id, 1);
    rc = store (v, "index", index);
  }
  claim_key (id, key);
  return rc == GPUB_OK ? store (v, key, claim) : rc;
}

int32_t
claim_drop (struct visit *v, const char *id)
{
  char key[ID_MAX + sizeof key_prefix];
  AUTO_JSON json_t *index = NULL;

  claim_key (id, key);
  if (v->plant->host->state_put (v->call, key, NULL, 0) != GPUB_OK)
    return plug_error (v->err, GPUB_E_UNAVAILABLE, "the broker's store does not drop '%s'", key);
  /* From here on the machine is free; a name too many in the index does no harm. */
  if (load (v, "index", &index) == GPUB_OK && json_object_del (index, id) == 0)
    store (v, "index", index);
  return GPUB_OK;
}

int32_t
claims_read (struct visit *v, json_t **claims)
{
  int32_t rc;

  pthread_mutex_lock (&v->plant->lock);
  rc = claims_all (v, claims);
  pthread_mutex_unlock (&v->plant->lock);
  return rc;
}
