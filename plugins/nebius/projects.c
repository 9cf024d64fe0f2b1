/* projects.c - where one may rent: the projects, each of one region and one tenant
 *
 * They are read again for every listing.  One that is configured and cannot be read keeps its place
 * with the reason, so that it is a scope that failed, not one that is missing.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 100, ACTIVE = 1, SUSPENSION_NONE = 1 };

static const struct method get_project = { "cpl.iam", "nebius.iam.v1.ProjectService/Get",
                                           "get project", &nb__project__descriptor };
static const struct method list_projects = { "cpl.iam", "nebius.iam.v1.ProjectService/List",
                                             "list projects", &nb__projects__descriptor };
static const struct method list_tenants = { "cpl.iam", "nebius.iam.v1.TenantService/List",
                                            "list tenants", &nb__projects__descriptor };

/* A state that is new to us is no reason not to rent. */
static bool
is_active (const Nb__ProjectStatus *st)
{
  return !st || (st->suspension_state <= SUSPENSION_NONE &&
                 (st->container_state <= ACTIVE || st->container_state > 12));
}

/* False for a row without an id. */
static bool
project_take (struct project *p, const Nb__Project *row)
{
  const char *region = row->status ? row->status->region : "";

  *p = (struct project){ .active = is_active (row->status) };
  if (!*region && row->spec)
    region = row->spec->region;
  return row->metadata && field_take (p->id, sizeof p->id, row->metadata->id) &&
         (!*row->metadata->parent_id ||
          field_take (p->tenant, sizeof p->tenant, row->metadata->parent_id)) &&
         (!*region || field_take (p->region, sizeof p->region, region));
}

static bool
have (const struct projects *ps, const char *id)
{
  for (size_t i = 0; i < ps->n; i++)
    if (strcmp (ps->at[i].id, id) == 0)
      return true;
  return false;
}

/* ---- Those that are named ---- */

static int32_t
read_one (const struct ctx *c, const char *id, struct projects *ps)
{
  AUTO_MSG Nb__Project *row = NULL;
  Nb__ById in = NB__BY_ID__INIT;
  struct project p;
  int32_t rc;

  if (have (ps, id))
    return GPUB_OK;
  in.id = (char *) (uintptr_t) id;
  rc = api_read (c, &get_project, &in, &row);
  if (rc == GPUB_OK && (!project_take (&p, row) || strcmp (p.id, id) != 0))
    rc = plug_error (c->err, GPUB_E_UNAVAILABLE, "get project %.60s: the answer is about another",
                     id);
  if (rc != GPUB_OK) {
    p = (struct project){ .kind = rc, .err = *c->err };
    if (!field_take (p.id, sizeof p.id, id))
      return plug_error (c->err, GPUB_E_INVALID, "'%.60s' is no project id", id);
  }
  *(struct project *) vec_push (ps) = p;
  return GPUB_OK;
}

static int32_t
read_named (const struct ctx *c, struct projects *ps)
{
  const json_t *id;
  size_t i;
  int32_t rc = GPUB_OK;

  json_array_foreach (c->s->projects, i, id)
    if ((rc = read_one (c, json_string_value (id), ps)) != GPUB_OK)
      return rc;
  return GPUB_OK;
}

/* ---- Those of a tenant ---- */

struct walk {
  const struct ctx *c;
  struct projects *ps;
  size_t odd;
};

static int32_t
take_projects (void *ctx, const void *page)
{
  const Nb__Projects *rows = page;
  struct walk *w = ctx;

  for (size_t i = 0; i < rows->n_items; i++) {
    struct project p;

    if (!project_take (&p, rows->items[i]))
      w->odd++;
    else if (!have (w->ps, p.id))
      *(struct project *) vec_push (w->ps) = p;
  }
  return GPUB_OK;
}

static int32_t
read_tenant (const struct ctx *c, const char *tenant, struct projects *ps)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;
  struct walk w = { c, ps, 0 };
  int32_t rc;

  in.parent_id = (char *) (uintptr_t) tenant;
  in.page_size = PAGE;
  rc = api_pages (c, &list_projects, &in, &in.page_token, take_projects, &w);
  if (rc == GPUB_OK && w.odd)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "list projects: %zu rows cannot be read", w.odd);
  return rc;
}

static int32_t
take_tenants (void *ctx, const void *page)
{
  const Nb__Projects *rows = page;
  json_t *ids = ctx;

  for (size_t i = 0; i < rows->n_items; i++)
    if (rows->items[i]->metadata && *rows->items[i]->metadata->id)
      json_array_append_new (ids, json_string (rows->items[i]->metadata->id));
  return GPUB_OK;
}

static int32_t
read_tenants (const struct ctx *c, struct projects *ps)
{
  Nb__ListRequestTopless in = NB__LIST_REQUEST_TOPLESS__INIT;
  json_auto_t *ids = json_array ();
  const json_t *id;
  size_t i;
  int32_t rc;

  in.page_size = PAGE;
  rc = api_pages (c, &list_tenants, &in, &in.page_token, take_tenants, ids);
  json_array_foreach (ids, i, id)
    if (rc == GPUB_OK)
      rc = read_tenant (c, json_string_value (id), ps);
  return rc;
}

int32_t
projects_read (const struct ctx *c, const char *only, struct projects *ps)
{
  int32_t rc;

  *ps = (struct projects){ NULL, 0, 0 };
  if (only)
    return read_one (c, only, ps);
  if (json_array_size (c->s->projects))
    return read_named (c, ps);
  rc = *c->s->tenant ? read_tenant (c, c->s->tenant, ps) : read_tenants (c, ps);
  if (rc == GPUB_OK && ps->n == 0)
    return plug_error (c->err, GPUB_E_INVALID,
                       "no project is visible to these credentials: name some in `projects`");
  return rc == GPUB_E_NOT_FOUND ? GPUB_E_INVALID : rc;
}

int32_t
project_close (const struct ctx *c, struct project *p, int32_t kind, bool some)
{
  const struct gpub_host *host = c->s->host;

  if (kind == GPUB_E_CANCELLED)
    return kind;
  if (kind == GPUB_OK)
    return host->scope_done (c->call, p->id, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
  p->kind = kind;
  p->err = *c->err;
  return host->scope_done (c->call, p->id, some ? GPUB_SCOPE_PARTIAL : GPUB_SCOPE_FAILED, kind,
                           c->err);
}

int32_t
projects_verdict (const struct ctx *c, const struct projects *ps)
{
  for (size_t i = 0; i < ps->n; i++)
    if (ps->at[i].kind == GPUB_OK)
      return GPUB_OK;
  if (ps->n == 0)
    return GPUB_OK;
  *c->err = ps->at[0].err;
  return ps->at[0].kind;
}

void
projects_done (struct projects *ps)
{
  vec_free (ps);
}
