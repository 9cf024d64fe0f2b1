/* servers.c - Acme's servers: rent, look, search, end
 *
 * Acme dedupes by client_token and keeps our tags as labels, so a create whose answer was lost is
 * found by either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acme.h"

enum { TAGS_MOST = 32 };

/* ---- what Acme shows of a server ---- */

/* A status that is not here is GPUB_STATE_UNKNOWN, which is never fatal. */
static uint32_t
state_of (const char *status)
{
  static const struct {
    const char *status;
    uint32_t state;
  } states[] = {
    { "provisioning", GPUB_STATE_CREATING }, { "active", GPUB_STATE_RUNNING },
    { "stopped", GPUB_STATE_STOPPED },       { "failed", GPUB_STATE_ERROR },
    { "deleting", GPUB_STATE_DELETING },     { "deleted", GPUB_STATE_GONE },
  };

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
    if (strcmp (states[i].status, status) == 0)
      return states[i].state;
  return GPUB_STATE_UNKNOWN;
}

static uint64_t
tags_of (const json_t *server, struct gpub_kv tags[TAGS_MOST])
{
  json_t *labels = json_object_get (server, "labels"), *value;
  const char *key;
  uint64_t n = 0;

  json_object_foreach (labels, key, value) {
    if (n < TAGS_MOST && json_is_string (value))
      tags[n++] = (struct gpub_kv){ key, json_string_value (value) };
  }
  return n;
}

static int32_t
emit (const struct ctx *c, const json_t *server)
{
  const char *address = str (server, "address");
  int64_t delete_at = num (server, "delete_at_ms");
  struct gpub_kv tags[TAGS_MOST];
  const struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_CREATED | (delete_at ? GPUB_MACHINE_NOT_AFTER : 0),
    .id = str (server, "id"),
    .scope = SCOPE,
    .name = str (server, "name"),
    .state = state_of (str (server, "status")),
    .raw_state = str (server, "status"),
    .fail_kind = strcmp (str (server, "error"), "out of stock") == 0 ? GPUB_E_CAPACITY : GPUB_OK,
    .fail_text = str (server, "error"),
    .address = *address ? address : NULL,
    .ssh_user = "root",
    .created_ms = num (server, "created_ms"),
    .not_after_ms = delete_at,
    .region = str (server, "region"),
    .instance_type = str (server, "type"),
    .ntags = tags_of (server, tags),
    .tags = tags,
  };

  return c->acme->host->emit_machine (c->call, &m);
}

/* ---- create ---- */

static json_t *
labels (const struct gpub_create *a)
{
  json_t *j = json_object ();

  for (uint64_t i = 0; i < a->ntags; i++)
    json_object_set_new (j, a->tags[i].key, json_string (a->tags[i].value));
  return j;
}

static json_t *
keys (const struct gpub_create *a)
{
  json_t *j = json_array ();

  for (uint64_t i = 0; i < a->nssh_public_keys; i++)
    json_array_append_new (j, json_string (a->ssh_public_keys[i]));
  return j;
}

/* The same token gives the same bytes: nothing here may come from a clock or a counter. */
static json_t *
create_body (const struct gpub_create *a)
{
  const char *type = strchr (a->offer_ref, '/');
  json_t *body = json_object ();

  json_object_set_new (body, "client_token", json_string (a->token));
  json_object_set_new (body, "name", json_string (a->name));
  json_object_set_new (body, "type", json_string (type ? type + 1 : ""));
  json_object_set_new (body, "region",
                       json_stringn (a->offer_ref, type ? (size_t) (type - a->offer_ref) : 0));
  json_object_set_new (body, "labels", labels (a));
  json_object_set_new (body, "ssh_keys", keys (a));
  if (a->user_data_kind == GPUB_DATA_CLOUD) /* Acme takes it as text */
    json_object_set_new (body, "user_data", json_stringn (a->user_data, a->user_data_len));
  if (a->not_after_ms)
    json_object_set_new (body, "delete_at_ms", json_integer (a->not_after_ms));
  return body;
}

int32_t
acme_create (void *self, struct gpub_call *call, const struct gpub_create *args,
             struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body = NULL, *server = NULL;
  uint64_t udollar;
  int32_t rc;

  if (args->nports || args->image || args->user_data_kind == GPUB_DATA_SCRIPT)
    return acme_error (err, GPUB_E_UNSUPPORTED, "Acme takes no ports, images or scripts");
  rc = offer_price (&c, args->offer_ref, &udollar);
  if (rc != GPUB_OK)
    return rc;
  if (udollar > args->max_price_udollar)
    return acme_error (err, GPUB_E_CAPACITY, "offer %.100s now costs more than it may",
                       args->offer_ref);
  body = create_body (args);
  rc = api_change (&c, "POST", "/servers", body, &server);
  if (rc != GPUB_OK)
    return rc;
  if (!*str (server, "id"))
    return acme_error (err, GPUB_E_UNKNOWN, "the answer to a create has no id");
  return emit (&c, server);
}

/* ---- get and remove ---- */

/* Ids go into a path: nothing but what Acme's ids are made of. */
static int32_t
path_of (const struct gpub_ref *ref, char path[128], struct gpub_error *err)
{
  size_t n = strspn (ref->id, "abcdefghijklmnopqrstuvwxyz0123456789-");

  if (n == 0 || n > 64 || ref->id[n])
    return acme_error (err, GPUB_E_INVALID, "'%.64s' is no id of Acme", ref->id);
  snprintf (path, 128, "/servers/%s", ref->id);
  return GPUB_OK;
}

int32_t
acme_get (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *server = NULL;
  char path[128];
  int32_t rc = path_of (ref, path, err);

  if (rc == GPUB_OK)
    rc = api_read (&c, path, &server);
  if (rc != GPUB_OK)
    return rc;
  if (strcmp (str (server, "id"), ref->id) != 0)
    return acme_error (err, GPUB_E_UNAVAILABLE, "%s: the answer is about something else", path);
  return emit (&c, server);
}

int32_t
acme_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  char path[128];
  int32_t rc = path_of (ref, path, err);

  if (rc == GPUB_OK)
    rc = api_change (&c, "DELETE", path, NULL, NULL);
  return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;
}

int32_t
acme_set_not_after (void *self, struct gpub_call *call, const struct gpub_ref *ref, int64_t ms,
                    struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body = json_pack ("{s:I}", "delete_at_ms", (json_int_t) ms);
  char path[128];
  int32_t rc = path_of (ref, path, err);

  return rc == GPUB_OK ? api_change (&c, "PATCH", path, body, NULL) : rc;
}

/* ---- find and list ---- */

static int
is_wanted (const json_t *server, const struct gpub_find *find)
{
  const json_t *marks = json_object_get (server, "labels");

  if (!find) /* ours, or another gpubroker's: the broker looks at the owner */
    return *str (marks, GPUB_TAG_OWNER) != '\0';
  return strcmp (str (marks, GPUB_TAG_TOKEN), find->token) == 0;
}

/* A row that cannot be read may be the one: it fails the list, so that its scope is not
 * complete. */
static int32_t
on_server (const struct ctx *c, const json_t *server, void *find)
{
  if (!*str (server, "id") || !json_is_object (json_object_get (server, "labels")))
    return acme_error (c->err, GPUB_E_UNAVAILABLE, "a server without an id or labels");
  return is_wanted (server, find) ? emit (c, server) : GPUB_OK;
}

static int32_t
each_server (struct ctx *c, const struct gpub_find *find)
{
  int32_t rc = api_pages (c, "/servers", "servers", on_server, (void *) (uintptr_t) find);

  if (rc != GPUB_OK)
    return rc;
  return c->acme->host->scope_done (c->call, SCOPE, GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
}

int32_t
acme_find (void *self, struct gpub_call *call, const struct gpub_find *find, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return each_server (&c, find);
}

int32_t
acme_list (void *self, struct gpub_call *call, struct gpub_error *err)
{
  struct ctx c = { self, call, err };

  return each_server (&c, NULL);
}
