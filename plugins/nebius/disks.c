/* disks.c - boot disks that outlived their machine
 *
 * A boot disk is made and deleted with its machine.  When one stays all the same it bills by
 * itself: it is listed as a machine of the type "disk", so that it is seen, priced and can be
 * removed.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 100, GRACE_MS = 600 * 1000, DISK_DELETING = 4 };

static const struct method list_disks = { "compute", "nebius.compute.v1.DiskService/List",
                                          "list disks", &nb__disks__descriptor };
static const struct method delete_disk = { "compute", "nebius.compute.v1.DiskService/Delete",
                                           "delete disk", &nb__operation__descriptor };

bool
disk_is_id (const char *id)
{
  return id && strncmp (id, "computedisk-", 12) == 0;
}

struct walk {
  disk_fn fn;
  void *ctx;
};

static int32_t
take (void *ctx, const void *page)
{
  const Nb__Disks *rows = page;
  const struct walk *w = ctx;
  int32_t rc;

  for (size_t i = 0; i < rows->n_items; i++)
    if (rows->items[i]->metadata && disk_is_id (rows->items[i]->metadata->id) &&
        (rc = w->fn (w->ctx, rows->items[i])) != GPUB_OK)
      return rc;
  return GPUB_OK;
}

int32_t
disks_read (const struct ctx *c, const char *project, disk_fn fn, void *ctx)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;
  struct walk w = { fn, ctx };

  in.parent_id = (char *) (uintptr_t) project;
  in.page_size = PAGE;
  return api_pages (c, &list_disks, &in, &in.page_token, take, &w);
}

/* ---- Which are left ---- */

static bool
is_attached (const Nb__Disk *d)
{
  return d->status && (*d->status->read_write_attachment || d->status->n_read_only_attachments);
}

static const char *
manager_of (const Nb__Disk *d)
{
  return d->status ? d->status->managed_by : "";
}

/* A young one may belong to a machine that is only being made. */
bool
disk_is_stray (const Nb__Disk *d, const json_t *machines, int64_t now_ms)
{
  int64_t created = created_ms_of (d->metadata);

  return is_ours (d->metadata) && !is_attached (d) && created && now_ms - created > GRACE_MS &&
         !json_object_get (machines, manager_of (d));
}

static bool
is_known (const struct gpub_ref *ref, const char *id)
{
  for (uint64_t i = 0; i < ref->nresources; i++) {
    const struct gpub_resource *r =
        GPUB_AT (struct gpub_resource, ref->resources, ref->resources_stride, i);

    if (r->id && strcmp (r->id, id) == 0)
      return true;
  }
  return false;
}

/* By name of the machine, by the books, or by the token; never one that another machine manages. */
bool
disk_is_left_by (const Nb__Disk *d, const struct gpub_ref *ref)
{
  const char *manager = manager_of (d), *token = label_of (d->metadata, GPUB_TAG_TOKEN);

  if (is_attached (d) || !is_ours (d->metadata))
    return false;
  if (*manager)
    return strcmp (manager, ref->id) == 0;
  return is_known (ref, d->metadata->id) ||
         (ref->token && *ref->token && token && strcmp (token, ref->token) == 0);
}

/* ---- What becomes of them ---- */

int32_t
disk_emit (const struct ctx *c, const Nb__Disk *d, const char *project, const char *region)
{
  struct gpub_kv tags[LABELS_MAX];
  int64_t bytes = d->status ? d->status->size_bytes : 0;
  struct gpub_machine m = {
    .size = sizeof m,
    .id = d->metadata->id,
    .scope = project,
    .name = d->metadata->name,
    .state =
        d->status && d->status->state == DISK_DELETING ? GPUB_STATE_DELETING : GPUB_STATE_STOPPED,
    .raw_state = "a disk without its machine",
    .created_ms = created_ms_of (d->metadata),
    .tags = tags,
    .ntags = labels_take (d->metadata, tags),
    .region = region,
    .cloud = "nebius",
    .instance_type = "disk",
  };

  m.known |= m.created_ms ? GPUB_MACHINE_CREATED : 0;
  if (region && bytes > 0 && bytes >> 30 <= DISK_MAX_GIB &&
      price_disk_gib (c, region, project, PRICE_KNOWN, &m.price_udollar) == GPUB_OK) {
    m.price_udollar *= (uint64_t) (bytes >> 30);
    m.known |= GPUB_MACHINE_PRICE;
  }
  return c->s->host->emit_machine (c->call, &m);
}

int32_t
disk_delete (const struct ctx *c, const char *id)
{
  return delete_by_id (c, &delete_disk, id);
}
