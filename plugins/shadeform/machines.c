/* machines.c - get, find, list, remove and the kill switch
 *
 * What is ours is known by its tags in one unpaged list of the whole account.  A row that cannot be
 * read is never counted as absent.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"
#include "plugins/tags.h"

/* ---- Read ---- */

int32_t
instances_read (const struct ctx *c, json_t **body)
{
  return api_list (c, "list instances", "/instances", "instances", body);
}

/* GPUB_E_NOT_FOUND when a whole list lacks it, GPUB_E_UNAVAILABLE when the two answers do not
 * agree. */
static int32_t
confirm_gone (const struct ctx *c, const char *id)
{
  json_auto_t *body = NULL;
  const json_t *instance;
  size_t i;
  int32_t rc = instances_read (c, &body);

  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (json_object_get (body, "instances"), i, instance) {
    const char *other = json_str (instance, "id", "");

    if (strcmp (other, id) == 0 || *other == '\0')
      return plug_error (c->err, GPUB_E_UNAVAILABLE,
                         "get instance %.64s: HTTP 404, yet the list %s", id,
                         *other ? "has it" : "cannot be read");
  }
  return plug_error (c->err, GPUB_E_NOT_FOUND, "instance %.64s is gone", id);
}

static int32_t
check_id (const struct ctx *c, const struct gpub_ref *ref)
{
  if (ref->id && id_valid (ref->id))
    return GPUB_OK;
  return plug_error (c->err, GPUB_E_INVALID, "'%.64s' is no instance id", ref->id ? ref->id : "");
}

int32_t
shadeform_get (void *self, struct gpub_call *call, const struct gpub_ref *ref,
               struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *instance = NULL;
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/info", ref->id);
  rc = api_get (&c, "get instance", path, &instance);
  if (rc == GPUB_E_NOT_FOUND)
    return confirm_gone (&c, ref->id);
  if (rc != GPUB_OK)
    return rc;
  if (strcmp (json_str (instance, "id", ""), ref->id) != 0)
    return plug_error (err, GPUB_E_UNAVAILABLE,
                       "get instance %.64s: the answer is about something else", ref->id);
  if (instance_deleted (instance))
    return plug_error (err, GPUB_E_NOT_FOUND, "instance %.64s is deleted", ref->id);
  return instance_emit (&c, instance);
}

/* ---- Lists: of what is ours, or of what carries one token or name ---- */

static bool
wanted (const struct gpub_find *f, const json_t *instance)
{
  const json_t *tags = instance_tags (instance);

  return f ? find_wants (f, tags_get (tags, GPUB_TAG_TOKEN), json_str (instance, "name", NULL))
           : tags_ours (tags);
}

/* Might this row be the one that is looked for, as far as it can be read?  Without an id everything
 * may be; without tags what has its name.  The list then proves no absence. */
static bool
doubtful (const struct gpub_find *f, const json_t *instance)
{
  if (!id_valid (json_str (instance, "id", "")))
    return true;
  return f && f->name && !json_is_array (instance_tags (instance)) &&
         !instance_deleted (instance) &&
         strcmp (json_str (instance, "name", f->name), f->name) == 0;
}

static int32_t
emit_wanted (const struct ctx *c, const struct gpub_find *f, const json_t *list, size_t *doubts)
{
  json_auto_t *seen = json_object ();
  const json_t *instance;
  size_t i;

  json_array_foreach (list, i, instance) {
    const char *id = json_str (instance, "id", "");
    int32_t rc;

    if (id_valid (id) && wanted (f, instance) && !instance_deleted (instance)) {
      if (json_object_get (seen, id))
        continue;
      json_object_set_new (seen, id, json_true ());
      if ((rc = instance_emit (c, instance)) != GPUB_OK)
        return rc;
    } else {
      *doubts += doubtful (f, instance);
    }
  }
  return GPUB_OK;
}

static int32_t
list (const struct ctx *c, const struct gpub_find *f)
{
  json_auto_t *body = NULL;
  size_t doubts = 0;
  int32_t rc = instances_read (c, &body), kind;

  if (rc != GPUB_OK) {
    c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_FAILED, rc, c->err);
    return rc;
  }
  rc = emit_wanted (c, f, json_object_get (body, "instances"), &doubts);
  if (rc != GPUB_OK)
    return rc;
  if (doubts == 0)
    return c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
  kind = plug_error (c->err, GPUB_E_UNAVAILABLE, "list instances: %zu rows cannot be read", doubts);
  return c->s->host->scope_done (c->call, SCOPE, GPUB_SCOPE_PARTIAL, kind, c->err);
}

int32_t
shadeform_find (void *self, struct gpub_call *call, const struct gpub_find *f,
                struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, f);
}

int32_t
shadeform_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, NULL);
}

/* ---- Change ---- */

int32_t
shadeform_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                  struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/delete", ref->id);
  rc = api_post (&c, "delete instance", path, NULL, NULL); /* its answer is empty */
  return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;
}

int32_t
shadeform_set_not_after (void *self, struct gpub_call *call, const struct gpub_ref *ref, int64_t ms,
                         struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body =
      json_pack ("{s:o}", "auto_delete", ms > 0 ? auto_delete_json (ms) : json_null ());
  char path[192];
  int32_t rc = check_id (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/instances/%s/update", ref->id);
  return api_post (&c, "set auto-delete", path, body, NULL);
}
