/* strays.c - disks and spot requests that carry our mark and have no machine
 *
 * Neither should ever be: the root disk goes with its machine, and a one-time request ends with it.
 * What bills all the same is shown, and can be removed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { TAGS_MOST = 60 };

/* The kinds, by what each API calls them. */
struct kind {
  const char *name, *prefix, *describe, *set, *id, *ids, *state, *remove;
  const char *what; /* of a stray: its state */
  const char *alive[2];
};

static const struct kind kinds[] = {
  { "disk",
    "vol-",
    "DescribeVolumes",
    "volumeSet",
    "volumeId",
    "VolumeId",
    "status",
    "DeleteVolume",
    "available",
    { "available", "in-use" } },
  { "spot-request",
    "sir-",
    "DescribeSpotInstanceRequests",
    "spotInstanceRequestSet",
    "spotInstanceRequestId",
    "SpotInstanceRequestId",
    "state",
    "CancelSpotInstanceRequests",
    "open",
    { "open", "active" } },
};

static const struct kind *
kind_of (const struct gpub_resource *r)
{
  for (size_t i = 0; i < N_ELEMENTS (kinds); i++)
    if (r->kind && strcmp (r->kind, kinds[i].name) == 0 && id_valid (r->id, kinds[i].prefix))
      return &kinds[i];
  return NULL;
}

static int32_t
emit (const struct ctx *c, const struct kind *k, const json_t *row)
{
  struct gpub_kv tags[TAGS_MOST];
  struct gpub_resource r = {
    .size = sizeof r,
    .kind = k->name,
    .id = json_str (row, k->id, ""),
    .scope = c->region,
    .price_udollar = num (row, "size") * disk_price (c),
    .billable = num (row, "size") > 0,
    .tags = tags,
    .ntags = tags_take (row, tags, TAGS_MOST),
  };

  return c->s->host->emit_resource (c->call, &r);
}

static int32_t
emit_kind (const struct ctx *c, const struct kind *k, const struct gpub_find *f)
{
  AUTO_QUERY struct query q = query_new (k->describe);
  json_auto_t *rows = NULL, *seen = json_object ();
  const json_t *row;
  size_t i;
  int32_t rc;

  filter_ours (&q, f);
  query_filter (&q, k->state, k->what);
  rc = ec2_pages (c, k->describe, &q, k->set, &rows);
  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (rows, i, row) {
    const char *id = json_str (row, k->id, "");

    if (!id_valid (id, k->prefix) || json_object_get (seen, id) || !is_ours (row, f) ||
        strcmp (json_str (row, k->state, ""), k->what) != 0)
      continue;
    json_object_set_new (seen, id, json_true ());
    if ((rc = emit (c, k, row)) != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}

int32_t
strays_emit (const struct ctx *c, const struct gpub_find *f)
{
  for (size_t i = 0; i < N_ELEMENTS (kinds); i++) {
    int32_t rc = emit_kind (c, &kinds[i], f);

    if (rc != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}

/* ---- Those of a ref ---- */

static const struct gpub_resource *
at (const struct gpub_ref *ref, uint64_t i)
{
  return GPUB_AT (struct gpub_resource, ref->resources, ref->resources_stride, i);
}

static int32_t
read_one (const struct ctx *c, const struct kind *k, const char *id, json_t **row)
{
  AUTO_QUERY struct query q = query_new (k->describe);
  json_auto_t *rows = NULL;
  int32_t rc;

  query_addf (&q, id, "%s.1", k->ids);
  rc = ec2_pages (c, k->describe, &q, k->set, &rows);
  if (rc != GPUB_OK)
    return rc;
  *row = json_incref (json_array_get (rows, 0));
  if (strcmp (json_str (*row, k->id, ""), id) != 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s %s: the answer is about something else",
                       k->describe, id);
  return GPUB_OK;
}

static bool
is_alive (const struct kind *k, const json_t *row)
{
  const char *state = json_str (row, k->state, "");

  return strcmp (state, k->alive[0]) == 0 || strcmp (state, k->alive[1]) == 0;
}

int32_t
resources_get (const struct ctx *c, const struct gpub_ref *ref)
{
  uint64_t left = 0;

  for (uint64_t i = 0; i < ref->nresources; i++) {
    const struct kind *k = kind_of (at (ref, i));
    json_auto_t *row = NULL;
    int32_t rc = k ? read_one (c, k, at (ref, i)->id, &row) : GPUB_E_NOT_FOUND;

    if (rc == GPUB_OK && is_alive (k, row)) {
      left++;
      rc = emit (c, k, row);
    }
    if (rc != GPUB_OK && rc != GPUB_E_NOT_FOUND)
      return rc;
  }
  return left ? GPUB_OK : plug_error (c->err, GPUB_E_NOT_FOUND, "nothing of it is left");
}

static int32_t
remove_one (const struct ctx *c, const struct kind *k, const char *id)
{
  AUTO_QUERY struct query q = query_new (k->remove);
  bool disk = k == &kinds[0];
  int32_t rc;

  query_addf (&q, id, disk ? "%s" : "%s.1", k->ids);
  rc = ec2_change (c, k->remove, &q, 0, NULL);
  return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;
}

int32_t
resources_remove (const struct ctx *c, const struct gpub_ref *ref)
{
  bool alone = !ref->id || !*ref->id;

  for (uint64_t i = 0; i < ref->nresources; i++) {
    const struct kind *k = kind_of (at (ref, i));
    int32_t rc;

    if (!k || (!alone && k == &kinds[0])) /* a disk goes with its machine */
      continue;
    rc = remove_one (c, k, at (ref, i)->id);
    if (rc != GPUB_OK)
      return rc;
  }
  return GPUB_OK;
}
