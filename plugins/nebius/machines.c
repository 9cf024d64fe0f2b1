/* machines.c - get, find and list
 *
 * Every project is a scope of its own: one that cannot be read blinds no other.  What is ours is
 * known by its labels; a row that cannot be read is never counted as absent.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"
#include "plugins/tags.h"

enum { PAGE = 100 };

static const struct method get_instance = { "compute", "nebius.compute.v1.InstanceService/Get",
                                            "get instance", &nb__instance__descriptor };
static const struct method list_instances = { "compute", "nebius.compute.v1.InstanceService/List",
                                              "list instances", &nb__instances__descriptor };
static const struct method get_operation = { "compute", "nebius.common.v1.OperationService/Get",
                                             "get operation", &nb__operation__descriptor };
static const struct method get_disk = { "compute", "nebius.compute.v1.DiskService/Get", "get disk",
                                        &nb__disk__descriptor };

/* ---- A walk over the instances of one project ---- */

struct listing {
  const struct ctx *c;
  const struct gpub_find *find; /* NULL: everything with our mark */
  const struct project *p;
  json_t *machines; /* ids that were met */
  const char *plugin_data;
  size_t doubts; /* rows that cannot be read */
  bool silent;   /* only note the ids */
};

static bool
wanted (const struct gpub_find *f, const Nb__Metadata *m)
{
  return f ? find_wants (f, label_of (m, GPUB_TAG_TOKEN), m->name) : is_ours (m);
}

static int32_t
take_instance (struct listing *l, const Nb__Instance *vm)
{
  struct found f = { .project = l->p->id,
                     .region = *l->p->region ? l->p->region : NULL,
                     .plugin_data = l->plugin_data };

  if (!vm->metadata || !*vm->metadata->id) {
    l->doubts++;
    return GPUB_OK;
  }
  if (json_object_get (l->machines, vm->metadata->id))
    return GPUB_OK;
  json_object_set_new (l->machines, vm->metadata->id, json_true ());
  return !l->silent && wanted (l->find, vm->metadata) ? instance_emit (l->c, vm, &f) : GPUB_OK;
}

static int32_t
take_instances (void *ctx, const void *page)
{
  const Nb__Instances *rows = page;
  int32_t rc = GPUB_OK;

  for (size_t i = 0; i < rows->n_items && rc == GPUB_OK; i++)
    rc = take_instance (ctx, rows->items[i]);
  return rc;
}

static int32_t
read_instances (struct listing *l)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;

  in.parent_id = (char *) (uintptr_t) l->p->id;
  in.page_size = PAGE;
  return api_pages (l->c, &list_instances, &in, &in.page_token, take_instances, l);
}

/* ---- One ---- */

int32_t
instance_read (const struct ctx *c, const char *id, Nb__Instance **vm)
{
  Nb__ById in = NB__BY_ID__INIT;
  int32_t rc;

  if (!id || !*id || strlen (id) >= FIELD_MAX)
    return plug_error (c->err, GPUB_E_INVALID, "'%.64s' is no instance id", id ? id : "");
  in.id = (char *) (uintptr_t) id;
  rc = api_read (c, &get_instance, &in, vm);
  if (rc == GPUB_OK && (!(*vm)->metadata || strcmp ((*vm)->metadata->id, id) != 0))
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "get instance %.64s: the answer is about another", id);
  return rc;
}

struct remains {
  const struct gpub_ref *ref;
  char id[FIELD_MAX];
};

static int32_t
take_remains (void *ctx, const Nb__Disk *disk)
{
  struct remains *r = ctx;

  if (disk_is_left_by (disk, r->ref))
    snprintf (r->id, sizeof r->id, "%s", disk->metadata->id);
  return GPUB_OK;
}

/* The machine is gone, what it leaves bills on: it is not over yet. */
static int32_t
emit_remains (const struct ctx *c, const struct gpub_ref *ref, const char *disk)
{
  char raw[FIELD_MAX + 32];
  const struct gpub_machine m = {
    .size = sizeof m,
    .id = ref->id,
    .scope = ref->scope,
    .name = ref->name,
    .state = GPUB_STATE_DELETING,
    .raw_state = raw,
    .cloud = "nebius",
  };

  snprintf (raw, sizeof raw, "gone, but for %s", disk);
  return c->s->host->emit_machine (c->call, &m);
}

/* NOT_FOUND is believed when the project's list agrees and no disk is left. */
static int32_t
confirm_gone (const struct ctx *c, const struct project *p, const struct gpub_ref *ref, bool *left)
{
  json_auto_t *machines = json_object ();
  struct listing l = { .c = c, .p = p, .machines = machines, .silent = true };
  struct remains r = { .ref = ref };
  int32_t rc = read_instances (&l);

  if (rc == GPUB_OK)
    rc = disks_read (c, p->id, take_remains, &r);
  if (rc != GPUB_OK)
    return rc;
  if (l.doubts || json_object_get (machines, ref->id))
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "get instance %.64s: NOT_FOUND, yet the list %s",
                       ref->id, l.doubts ? "cannot be read" : "has it");
  *left = r.id[0] != '\0';
  return *left ? emit_remains (c, ref, r.id) : GPUB_OK;
}

static int32_t
gone (const struct ctx *c, const struct gpub_ref *ref)
{
  struct project named = { .active = true };
  struct projects ps = { NULL, 0, 0 };
  bool left = false;
  int32_t rc = GPUB_OK;

  if (ref->scope && field_take (named.id, sizeof named.id, ref->scope))
    *(struct project *) vec_push (&ps) = named;
  else
    rc = projects_read (c, NULL, &ps);
  for (size_t i = 0; i < ps.n && rc == GPUB_OK && !left; i++)
    rc = ps.at[i].kind ? ps.at[i].kind : confirm_gone (c, &ps.at[i], ref, &left);
  projects_done (&ps);
  if (rc != GPUB_OK)
    return rc == GPUB_E_NOT_FOUND ? GPUB_E_UNAVAILABLE : rc;
  return left ? GPUB_OK : plug_error (c->err, GPUB_E_NOT_FOUND, "instance %.64s is gone", ref->id);
}

/* How its create went, where that still matters and is still known. */
static void
read_operation (const struct ctx *c, const char *id, struct found *f)
{
  struct gpub_error before = *c->err;
  AUTO_MSG Nb__Operation *op = NULL;
  Nb__ById in = NB__BY_ID__INIT;

  in.id = (char *) (uintptr_t) id;
  if (!*id)
    return;
  if (api_read (c, &get_operation, &in, &op) != GPUB_OK)
    *c->err = before; /* purged, or not to be had just now */
  else if (!operation_over (op, &f->why))
    f->create = OPERATION_RUNS;
  else
    f->create = f->why.kind == GPUB_OK ? OPERATION_DONE : OPERATION_FAILED;
}

static int32_t
get_left_disk (const struct ctx *c, const struct gpub_ref *ref)
{
  AUTO_MSG Nb__Disk *disk = NULL;
  Nb__ById in = NB__BY_ID__INIT;
  int32_t rc;

  in.id = (char *) (uintptr_t) ref->id;
  rc = api_read (c, &get_disk, &in, &disk);
  if (rc == GPUB_OK && (!disk->metadata || strcmp (disk->metadata->id, ref->id) != 0))
    rc = plug_error (c->err, GPUB_E_UNAVAILABLE, "get disk: the answer is about another");
  return rc == GPUB_OK ? disk_emit (c, disk, ref->scope, NULL) : rc;
}

int32_t
nebius_get (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  AUTO_MSG Nb__Instance *vm = NULL;
  json_auto_t *data = ref->plugin_data ? json_loads (ref->plugin_data, 0, NULL) : NULL;
  struct found f = { .region = json_str (data, "region", NULL) };
  int32_t rc;

  if (disk_is_id (ref->id))
    return get_left_disk (&c, ref);
  rc = instance_read (&c, ref->id, &vm);
  if (rc == GPUB_E_NOT_FOUND)
    return gone (&c, ref);
  if (rc != GPUB_OK)
    return rc;
  f.project = *vm->metadata->parent_id ? vm->metadata->parent_id : ref->scope;
  if (instance_state (vm, OPERATION_DONE, 0) != GPUB_STATE_RUNNING)
    read_operation (&c, json_str (data, "operation", ""), &f);
  return instance_emit (&c, vm, &f);
}

/* ---- All ---- */

static int32_t
take_stray (void *ctx, const Nb__Disk *disk)
{
  const struct listing *l = ctx;

  if (!wanted (l->find, disk->metadata) ||
      !disk_is_stray (disk, l->machines, l->c->s->host->now_ms (l->c->call)))
    return GPUB_OK;
  return disk_emit (l->c, disk, l->p->id, *l->p->region ? l->p->region : NULL);
}

static int32_t
read_project (struct listing *l)
{
  int32_t rc = l->p->kind;

  if (rc != GPUB_OK)
    *l->c->err = l->p->err;
  else
    rc = read_instances (l);
  if (rc == GPUB_OK && l->doubts)
    rc = plug_error (l->c->err, GPUB_E_UNAVAILABLE, "list instances: %zu rows cannot be read",
                     l->doubts);
  if (rc == GPUB_OK)
    rc = disks_read (l->c, l->p->id, take_stray, l);
  return rc;
}

static int32_t
list_project (const struct ctx *c, const struct gpub_find *f, struct project *p)
{
  json_auto_t *machines = json_object (), *data = json_pack ("{s:s}", "region", p->region);
  AUTO_FREE char *text = json_dumps (data, JSON_COMPACT);
  struct listing l = {
    .c = c, .find = f, .p = p, .machines = machines, .plugin_data = f ? text : NULL
  };
  int32_t kind = read_project (&l);

  return project_close (c, p, kind, json_object_size (machines) > 0);
}

static int32_t
list (const struct ctx *c, const struct gpub_find *f)
{
  struct projects ps;
  int32_t rc = projects_read (c, f ? f->scope : NULL, &ps);

  for (size_t i = 0; i < ps.n && rc == GPUB_OK; i++)
    rc = list_project (c, f, &ps.at[i]);
  if (rc == GPUB_OK)
    rc = projects_verdict (c, &ps);
  projects_done (&ps);
  return rc;
}

int32_t
nebius_find (void *self, struct gpub_call *call, const struct gpub_find *f, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, f);
}

int32_t
nebius_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return list (&c, NULL);
}
