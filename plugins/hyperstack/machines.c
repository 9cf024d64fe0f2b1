/* machines.c - get, find and list
 *
 * One paged list of the whole account tells all regions.  What is ours is known by its labels; a
 * row that cannot be read is never counted as absent.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"
#include "plugins/tags.h"

/* ---- One ---- */

static bool
id_valid (const char *id)
{
  size_t n = id ? strspn (id, "0123456789") : 0;

  return n > 0 && n < 19 && id[n] == '\0';
}

int32_t
vm_read (const struct ctx *c, const struct gpub_ref *ref, json_t **vm)
{
  json_auto_t *body = NULL;
  char path[64], id[ID_SIZE] = "";
  int32_t rc;

  if (!id_valid (ref->id))
    return plug_error (c->err, GPUB_E_INVALID, "'%.64s' is no VM id", ref->id ? ref->id : "");
  snprintf (path, sizeof path, "/core/virtual-machines/%s", ref->id);
  if ((rc = api_get (c, "get VM", path, &body)) != GPUB_OK)
    return rc;
  *vm = json_incref (json_object_get (body, "instance"));
  if (vm_id (*vm, id) && strcmp (id, ref->id) == 0)
    return GPUB_OK;
  return plug_error (c->err, GPUB_E_UNAVAILABLE, "get VM %s: the answer is about something else",
                     ref->id);
}

static int32_t
vms_read (const struct ctx *c, json_t **rows, bool *whole)
{
  return api_pages (c, "list VMs", "/core/virtual-machines", "instances", rows, whole);
}

/* 404 may also mean "not visible to this key": only a whole list without it proves the end. */
static int32_t
confirm_gone (const struct ctx *c, const char *id)
{
  json_auto_t *rows = NULL;
  const json_t *vm;
  char other[ID_SIZE];
  size_t i;
  bool whole;
  int32_t rc = vms_read (c, &rows, &whole);

  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (rows, i, vm)
    if (!vm_id (vm, other) || strcmp (other, id) == 0)
      return plug_error (c->err, GPUB_E_UNAVAILABLE, "get VM %s: HTTP 404, yet the list %s", id,
                         vm_id (vm, other) ? "has it" : "cannot be read");
  if (!whole)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "get VM %s: HTTP 404, yet the list is not whole",
                       id);
  return plug_error (c->err, GPUB_E_NOT_FOUND, "VM %s is gone", id);
}

int32_t
hyperstack_get (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *vm = NULL;
  int32_t rc = vm_read (&c, ref, &vm);

  if (rc == GPUB_E_NOT_FOUND)
    return confirm_gone (&c, ref->id);
  if (rc != GPUB_OK)
    return rc;
  if (vm_state (vm) == GPUB_STATE_GONE)
    return plug_error (err, GPUB_E_NOT_FOUND, "VM %s is deleted", ref->id);
  return vm_emit (&c, vm, NULL);
}

/* ---- All ---- */

struct listing {
  const struct ctx *c;
  const struct gpub_find *find; /* NULL: everything with our mark */
  struct catalog k;             /* prices alone */
  json_t *rows, *doubts;        /* region: how many rows of it cannot be read */
  bool whole;
  size_t lost; /* rows that name no region */
};

static bool
wanted (const struct gpub_find *f, const json_t *vm)
{
  const json_t *labels = vm_labels (vm);

  return f ? find_wants (f, tags_get (labels, GPUB_TAG_TOKEN), json_str (vm, "name", NULL))
           : tags_ours (labels);
}

/* Might this row be one that is looked for, as far as it can be read?  Without an id everything may
 * be, without labels what has the name or none. */
static bool
doubtful (const struct gpub_find *f, const json_t *vm)
{
  char id[ID_SIZE];

  if (!vm_id (vm, id))
    return true;
  if (json_is_array (vm_labels (vm)) || vm_state (vm) == GPUB_STATE_GONE)
    return false;
  return !f || (f->name && strcmp (json_str (vm, "name", f->name), f->name) == 0);
}

static bool
in_scope (const struct listing *l, const char *region)
{
  return !l->find || !l->find->scope || !region || strcmp (l->find->scope, region) == 0;
}

static void
doubt (struct listing *l, const char *region)
{
  if (region)
    json_put_i64 (l->doubts, region, json_i64 (l->doubts, region, 0) + 1);
  else
    l->lost++;
}

static int32_t
emit_wanted (struct listing *l)
{
  const json_t *vm;
  char id[ID_SIZE];
  size_t i;
  int32_t rc;

  json_array_foreach (l->rows, i, vm) {
    const char *region = vm_region (vm);

    if (!in_scope (l, region))
      continue;
    if (region && !json_object_get (l->doubts, region))
      json_put_i64 (l->doubts, region, 0);
    if (!region || !vm_id (vm, id) || !wanted (l->find, vm)) {
      if (!region || doubtful (l->find, vm))
        doubt (l, region);
    } else if (vm_state (vm) != GPUB_STATE_GONE && (rc = vm_emit (l->c, vm, &l->k)) != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}

static int32_t
close_scopes (const struct listing *l)
{
  const char *region;
  json_t *doubts;
  int32_t rc;

  json_object_foreach (l->doubts, region, doubts) {
    size_t bad = l->lost + (size_t) json_integer_value (doubts);

    if (l->whole && bad == 0)
      rc = l->c->s->host->scope_done (l->c->call, region, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
    else {
      plug_error (l->c->err, GPUB_E_UNAVAILABLE,
                  l->whole ? "list VMs: %zu rows cannot be read"
                           : "list VMs: %zu rows and more are missing",
                  bad);
      rc = l->c->s->host->scope_done (l->c->call, region, GPUB_SCOPE_PARTIAL, GPUB_E_UNAVAILABLE,
                                      l->c->err);
    }
    if (rc != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}

/* Every region is a scope, also one without machines.  None at all would say nothing, and look as
 * if it had said that there are none. */
static int32_t
read_scopes (struct listing *l)
{
  json_auto_t *regions = NULL;
  const json_t *row;
  size_t i, named = 0;
  int32_t rc = api_list (l->c, "list regions", "/core/regions", "regions", &regions);

  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (regions, i, row) {
    const char *name = json_str (row, "name", "");

    named += *name != '\0';
    if (*name && in_scope (l, name))
      json_put_i64 (l->doubts, name, 0);
  }
  if (named == 0)
    return plug_error (l->c->err, GPUB_E_UNAVAILABLE, "list regions: none of %zu rows has a name",
                       json_array_size (regions));
  return GPUB_OK;
}

static void
fail_scopes (const struct listing *l, int32_t kind)
{
  const char *region;
  json_t *unused;

  json_object_foreach (l->doubts, region, unused)
    if (l->c->s->host->scope_done (l->c->call, region, GPUB_SCOPE_FAILED, kind, l->c->err) !=
        GPUB_OK)
      return;
}

/* The price of a machine is nice to have: a price book that fails costs nothing else. */
static int32_t
list (const struct ctx *c, const struct gpub_find *f)
{
  json_auto_t *doubts = json_object (), *rows = NULL;
  struct listing l = { .c = c, .find = f, .doubts = doubts };
  int32_t rc = read_scopes (&l);

  if (rc != GPUB_OK)
    return rc;
  rc = vms_read (c, &rows, &l.whole);
  l.rows = rows;
  if (rc != GPUB_OK) {
    fail_scopes (&l, rc);
    return rc;
  }
  l.k.now_ms = c->s->host->now_ms (c->call);
  prices_read (c, &l.k.prices);
  rc = emit_wanted (&l);
  if (rc == GPUB_OK)
    rc = close_scopes (&l);
  catalog_done (&l.k);
  return rc;
}

int32_t
hyperstack_find (void *self, struct gpub_call *call, const struct gpub_find *f,
                 struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, f);
}

int32_t
hyperstack_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, NULL);
}
