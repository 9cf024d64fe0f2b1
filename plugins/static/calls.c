/* calls.c - claims and the machines they stand for
 *
 * Nothing is emitted under the lock: emit_machine waits for the broker's books.
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "plugins/static/static.h"

enum { TAGS_MAX = 64 };

/* One that is there already wins: a label cannot take the place of a tag of the broker's. */
static uint64_t
take_tags (const json_t *from, const json_t *already, struct gpub_kv *tags, uint64_t n)
{
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *) from, key, value)
    if (n < TAGS_MAX && json_is_string (value) && !json_object_get (already, key))
      tags[n++] = (struct gpub_kv){ key, json_string_value (value) };
  return n;
}

static int32_t
emit_claim (struct visit *v, const json_t *claim)
{
  const json_t *c = json_object_get (claim, "conf"), *given = json_object_get (claim, "tags");
  struct gpub_kv tags[TAGS_MAX];
  struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_SSH_PORT | GPUB_MACHINE_CREATED |
             conf_known (c, "price_udollar", GPUB_MACHINE_PRICE),
    .id = json_str (claim, "id", ""),
    .scope = conf_scope (c),
    .name = json_str (claim, "name", ""),
    .state = GPUB_STATE_RUNNING,
    .raw_state = "claimed",
    .address = json_str (c, "address", NULL),
    .ssh_user = json_str (c, "user", "root"),
    .ssh_port = (uint32_t) json_i64 (c, "port", 22),
    .price_udollar = (uint64_t) json_i64 (c, "price_udollar", 0),
    .created_ms = json_i64 (claim, "created_ms", 0),
    .tags = tags,
    .region = json_str (c, "region", conf_scope (c)),
    .instance_type = json_str (claim, "id", ""),
  };

  m.ntags = take_tags (given, NULL, tags, 0);
  m.ntags = take_tags (json_object_get (c, "labels"), given, tags, m.ntags);
  return v->plant->host->emit_machine (v->call, &m);
}

static json_t *
by_token (json_t *claims, const char *token)
{
  const char *id;
  json_t *claim;

  json_object_foreach (claims, id, claim)
    if (strcmp (json_str (claim, "token", ""), token) == 0)
      return claim;
  return NULL;
}

/* The machine may since be another lease's: the token says whose it is. */
static json_t *
by_ref (json_t *claims, const struct gpub_ref *ref)
{
  bool has_token = ref->token && *ref->token;
  json_t *claim = json_object_get (claims, ref->id ? ref->id : "");

  if (!ref->id || !*ref->id)
    return has_token ? by_token (claims, ref->token) : NULL;
  return claim && has_token && strcmp (json_str (claim, "token", ""), ref->token) != 0 ? NULL
                                                                                       : claim;
}

static json_t *
make_claim (struct visit *v, const struct machine *m, const struct gpub_create *want)
{
  json_t *tags = json_object ();

  for (uint64_t i = 0; i < want->ntags; i++)
    json_put_str (tags, want->tags[i].key, want->tags[i].value);
  return json_pack ("{s:s, s:s, s:s, s:s, s:o, s:I, s:O}", "id", m->id, "token", want->token,
                    "name", want->name ? want->name : "", "offer_ref", want->offer_ref, "tags",
                    tags, "created_ms", (json_int_t) v->plant->host->now_ms (v->call), "conf",
                    m->conf);
}

static int32_t
refuse (struct visit *v, const struct gpub_create *want, const struct machine *m)
{
  if (!want->token || !*want->token || !want->offer_ref)
    return plug_error (v->err, GPUB_E_INVALID, "a claim needs a token and an offer");
  if (want->user_data_len > 0)
    return plug_error (v->err, GPUB_E_UNSUPPORTED,
                       "a machine that runs already takes no user-data");
  if (!m)
    return plug_error (v->err, GPUB_E_CAPACITY,
                       "'%.100s' is no machine of the configuration (any more)", want->offer_ref);
  if (json_i64 (m->conf, "price_udollar", 0) > 0 &&
      (uint64_t) json_i64 (m->conf, "price_udollar", 0) > want->max_price_udollar)
    return plug_error (v->err, GPUB_E_CAPACITY, "%s costs more than the cap", m->id);
  return GPUB_OK;
}

/* With the lock held: decides, writes, and gives the claim to emit. */
static int32_t
claim (struct visit *v, const struct gpub_create *want, json_t **out)
{
  const struct machine *m = want->offer_ref ? hosts_find (v->plant, want->offer_ref) : NULL;
  AUTO_JSON json_t *claims = NULL;
  json_t *mine;
  int32_t rc = claims_all (v, &claims);

  if (rc != GPUB_OK)
    return rc;
  mine = want->token ? by_token (claims, want->token) : NULL;
  if (mine &&
      strcmp (json_str (mine, "offer_ref", ""), want->offer_ref ? want->offer_ref : "") != 0)
    return plug_error (v->err, GPUB_E_CONFLICT, "this token has claimed %s already",
                       json_str (mine, "id", ""));
  if (mine) {
    *out = json_incref (mine);
    return GPUB_OK;
  }
  rc = refuse (v, want, m);
  if (rc != GPUB_OK)
    return rc;
  if (json_object_get (claims, m->id))
    return plug_error (v->err, GPUB_E_CAPACITY, "%s is claimed already", m->id);
  *out = make_claim (v, m, want);
  return claim_put (v, *out);
}

int32_t
static_create (void *self, struct gpub_call *call, const struct gpub_create *want,
               struct gpub_error *err)
{
  struct visit v = { self, call, err };
  AUTO_JSON json_t *got = NULL;
  int32_t rc;

  pthread_mutex_lock (&v.plant->lock);
  rc = claim (&v, want, &got);
  pthread_mutex_unlock (&v.plant->lock);
  return rc == GPUB_OK ? emit_claim (&v, got) : rc;
}

int32_t
static_get (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct visit v = { self, call, err };
  AUTO_JSON json_t *claims = NULL;
  int32_t rc = claims_read (&v, &claims);
  json_t *claimed = rc == GPUB_OK ? by_ref (claims, ref) : NULL;

  if (rc != GPUB_OK)
    return rc;
  if (!claimed)
    return plug_error (err, GPUB_E_NOT_FOUND, "this lease has no claim on '%.100s'",
                       ref->id ? ref->id : "");
  return emit_claim (&v, claimed);
}

static int32_t
emit_matching (struct visit *v, const struct gpub_find *want)
{
  AUTO_JSON json_t *claims = NULL;
  int32_t rc = claims_read (v, &claims);
  const char *id;
  json_t *one;

  json_object_foreach (claims, id, one) {
    const char *scope = conf_scope (json_object_get (one, "conf"));

    if (rc == GPUB_OK &&
        (!want || ((!want->scope || strcmp (want->scope, scope) == 0) &&
                   strcmp (json_str (one, "token", ""), want->token ? want->token : "") == 0)))
      rc = emit_claim (v, one);
  }
  return scopes_done (v, claims, want ? want->scope : NULL, rc);
}

int32_t
static_find (void *self, struct gpub_call *call, const struct gpub_find *want,
             struct gpub_error *err)
{
  struct visit v = { self, call, err };

  return emit_matching (&v, want);
}

int32_t
static_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct visit v = { self, call, err };

  return emit_matching (&v, NULL);
}

int32_t
static_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
               struct gpub_error *err)
{
  struct visit v = { self, call, err };
  AUTO_JSON json_t *claims = NULL;
  json_t *claimed;
  int32_t rc;

  pthread_mutex_lock (&v.plant->lock);
  rc = claims_all (&v, &claims);
  claimed = rc == GPUB_OK ? by_ref (claims, ref) : NULL;
  if (claimed)
    rc = claim_drop (&v, json_str (claimed, "id", ""));
  pthread_mutex_unlock (&v.plant->lock);
  return rc;
}
