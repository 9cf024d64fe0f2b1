/* machines.c - get, find and list
 *
 * EC2 filters by tag; a terminated machine stays visible for about an hour, and a new one may not
 * be for some seconds: "not found" is the end only of what is old enough to be known.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { PAGE_SIZE = 200 };

bool
id_valid (const char *id, const char *prefix)
{
  size_t n = strlen (prefix);

  if (!id || strncmp (id, prefix, n) != 0 || strlen (id) >= FIELD_MAX)
    return false;
  id += n;
  return *id && strspn (id, "0123456789abcdefghijklmnopqrstuvwxyz") == strlen (id);
}

static bool
ref_young (const struct ctx *c, const struct gpub_ref *ref)
{
  int64_t age = c->s->host->now_ms (c->call) - ref->created_ms;

  return ref->created_ms && age < YOUNG_MS;
}

/* ---- One ---- */

/* One of another account is unknown to these credentials, for ever. */
static int32_t
check_account (const struct ctx *c, const struct gpub_ref *ref)
{
  char account[ACCOUNT_MAX];
  int32_t rc;

  if (!ref->plugin_data || !*ref->plugin_data)
    return GPUB_OK;
  rc = account_read (c, account, NULL, 0);
  if (rc == GPUB_OK && strcmp (account, ref->plugin_data) != 0)
    return plug_error (c->err, GPUB_E_AUTH,
                       "instance %s is of account %.20s, these credentials are of %s", ref->id,
                       ref->plugin_data, account);
  return rc;
}

/* What "not found" means: GPUB_E_NOT_FOUND only when it proves the end. */
int32_t
ref_absent (const struct ctx *c, const struct gpub_ref *ref)
{
  int32_t rc = check_account (c, ref);

  if (rc != GPUB_OK)
    return rc;
  if (ref_young (c, ref))
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "instance %s is not known yet: EC2 takes a while after a launch", ref->id);
  return plug_error (c->err, GPUB_E_NOT_FOUND, "instance %s is gone", ref->id);
}

int32_t
instance_read (const struct ctx *c, const struct gpub_ref *ref, json_t **row,
               char account[static ACCOUNT_MAX])
{
  AUTO_QUERY struct query q = query_new ("DescribeInstances");
  json_auto_t *rows = NULL;
  const json_t *instances;
  int32_t rc;

  query_add (&q, "InstanceId.1", ref->id);
  rc = ec2_pages (c, "get instance", &q, "reservationSet", &rows);
  if (rc == GPUB_E_NOT_FOUND)
    return ref_absent (c, ref);
  if (rc != GPUB_OK)
    return rc;
  snprintf (account, ACCOUNT_MAX, "%s", json_str (json_array_get (rows, 0), "ownerId", ""));
  instances = json_object_get (json_array_get (rows, 0), "instancesSet");
  *row = json_incref (json_array_get (instances, 0));
  if (strcmp (json_str (*row, "instanceId", ""), ref->id) == 0)
    return GPUB_OK;
  return plug_error (c->err, GPUB_E_UNAVAILABLE,
                     "get instance %s: the answer is about something "
                     "else",
                     ref->id);
}

int32_t
ref_check (const struct ctx *c, const struct gpub_ref *ref)
{
  if (!ref->scope || !region_valid (ref->scope))
    return plug_error (c->err, GPUB_E_INVALID, "'%.40s' is no region",
                       ref->scope ? ref->scope : "");
  if (ref->id && *ref->id && !id_valid (ref->id, "i-"))
    return plug_error (c->err, GPUB_E_INVALID, "'%.64s' is no instance id", ref->id);
  return GPUB_OK;
}

/* What was refused late shows as that until somebody removed it, and as its end from then on.  A
 * new process does not know: it is removed once more then. */
static bool
was_removed (const struct ctx *c, const struct gpub_ref *ref)
{
  json_auto_t *known = cache_get (c, ref->id, REMOVED_MS);

  return known;
}

int32_t
aws_get (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct ctx c = { self, call, err, ref->scope, 0 };
  json_auto_t *row = NULL;
  char account[ACCOUNT_MAX];
  int32_t rc = ref_check (&c, ref);

  if (rc == GPUB_OK && (!ref->id || !*ref->id))
    return resources_get (&c, ref);
  if (rc == GPUB_OK)
    rc = instance_read (&c, ref, &row, account);
  return rc == GPUB_OK
             ? instance_emit (&c, row, account, 0, instance_refused (row) && !was_removed (&c, ref))
             : rc;
}

/* ---- All ---- */

void
filter_ours (struct query *q, const struct gpub_find *f)
{
  if (f && f->token && *f->token)
    query_filter (q, "tag:" GPUB_TAG_TOKEN, f->token);
  else if (f)
    query_filter (q, "tag:Name", f->name ? f->name : "");
  else {
    query_filter (q, "tag-key", GPUB_TAG_OWNER);
    query_or (q, GPUB_TAG_LEASE);
    query_or (q, GPUB_TAG_TOKEN);
  }
}

/* Does it have what the filter asked for?  A service that forgets the filter shows strangers. */
bool
is_ours (const json_t *row, const struct gpub_find *f)
{
  const char *name = tag_get (row, "Name"), *token = tag_get (row, GPUB_TAG_TOKEN);

  if (f && f->token && *f->token)
    return token && strcmp (token, f->token) == 0;
  if (f)
    return name && f->name && strcmp (name, f->name) == 0;
  return token || tag_get (row, GPUB_TAG_OWNER) || tag_get (row, GPUB_TAG_LEASE);
}

struct listing {
  const struct ctx *c;
  const struct gpub_find *find; /* NULL: everything with our mark */
  json_t *seen;
  size_t doubts;
};

static int32_t
take (struct listing *l, const json_t *row, const char *account)
{
  char id[FIELD_MAX];

  if (!instance_id (row, id) || !json_is_array (json_object_get (row, "tagSet"))) {
    l->doubts++; /* it came for its tags, so it should have some */
    return GPUB_OK;
  }
  if (json_object_get (l->seen, id) || !is_ours (row, l->find) ||
      instance_state (row) == GPUB_STATE_GONE)
    return GPUB_OK;
  json_object_set_new (l->seen, id, json_true ());
  return instance_emit (l->c, row, account, 0, false);
}

static int32_t
take_all (struct listing *l, const json_t *reservations)
{
  const json_t *reservation, *row;
  size_t i, k;
  int32_t rc;

  json_array_foreach (reservations, i, reservation) {
    const json_t *rows = json_object_get (reservation, "instancesSet");

    if (!json_is_array (rows))
      l->doubts++;
    json_array_foreach (rows, k, row)
      if ((rc = take (l, row, json_str (reservation, "ownerId", ""))) != GPUB_OK)
        return rc;
  }
  return GPUB_OK;
}

static int32_t
finish (const struct listing *l)
{
  const struct ctx *c = l->c;

  if (l->doubts == 0)
    return c->s->host->scope_done (c->call, c->region, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
  plug_error (c->err, GPUB_E_UNAVAILABLE, "list instances: %zu rows cannot be read", l->doubts);
  return c->s->host->scope_done (c->call, c->region, GPUB_SCOPE_PARTIAL, GPUB_E_UNAVAILABLE,
                                 c->err);
}

static int32_t
one_region (const struct ctx *c, const void *find)
{
  AUTO_QUERY struct query q = query_new ("DescribeInstances");
  json_auto_t *rows = NULL, *seen = json_object ();
  struct listing l = { .c = c, .find = find, .seen = seen };
  int32_t rc;

  filter_ours (&q, find);
  query_int (&q, "MaxResults", PAGE_SIZE);
  rc = ec2_pages (c, "list instances", &q, "reservationSet", &rows);
  if (rc == GPUB_OK)
    rc = take_all (&l, rows);
  if (rc == GPUB_OK)
    rc = strays_emit (c, find);
  return rc == GPUB_OK ? finish (&l) : rc;
}

static int32_t
list (const struct ctx *c, const struct gpub_find *f)
{
  json_auto_t *names = NULL;
  int32_t rc = GPUB_OK;

  if (f && f->scope) {
    if (!region_valid (f->scope))
      return plug_error (c->err, GPUB_E_INVALID, "'%.40s' is no region", f->scope);
    names = json_pack ("[s]", f->scope);
  } else
    rc = regions_read (c, &names);
  return rc == GPUB_OK ? each_region (c, names, one_region, f) : rc;
}

int32_t
aws_find (void *self, struct gpub_call *call, const struct gpub_find *f, struct gpub_error *err)
{
  struct ctx c = { self, call, err, NULL, 0 };

  return list (&c, f);
}

int32_t
aws_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err, NULL, 0 };

  return list (&c, NULL);
}
