/* api_host.c - admission of a machine that the asker owns: `join` with a host
 *
 * The same host again is the same lease, whatever the key: nobody can mean to join it twice.
 */
#include "config.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "core/api.h"
#include "core/identity.h"

static const struct json_member host_members[] = { { "address", JSON_STRING, true },
                                                   { "user", JSON_STRING, true },
                                                   { "port", JSON_INTEGER, false } };

/* A DNS name or an address; the ssh runner resolves it. */
static bool
address_ok (const char *s)
{
  size_t n = strlen (s);

  for (const char *p = s; *p; p++)
    if (!isalnum ((unsigned char) *p) && !strchr (".-:", *p))
      return false;
  return n > 0 && n <= 253 && *s != '-';
}

static bool
user_ok (const char *s)
{
  size_t n = strlen (s);

  for (const char *p = s; *p; p++)
    if (!isalnum ((unsigned char) *p) && !strchr ("._-", *p))
      return false;
  return n > 0 && n <= 32 && *s != '-';
}

static int
words (struct ask *q, const json_t *host)
{
  const char *address = json_str (host, "address", ""), *user = json_str (host, "user", ""),
             *identity = json_str (q->body, "identity", NULL);
  int64_t port = json_i64 (host, "port", 22);
  struct err e = ERR_INIT;

  if (json_object_get (q->body, "lease"))
    err_set (&e, ERR_INVALID, "either a lease or a host");
  else if (json_check (host, host_members, N_ELEMENTS (host_members), &e) < 0)
    err_add (&e, "host");
  else if (!address_ok (address))
    err_set (&e, ERR_INVALID, "'%.60s' is no DNS name and no IP address", address);
  else if (!user_ok (user))
    err_set (&e, ERR_INVALID, "'%.40s' is no login name", user);
  else if (port < 1 || port > 65535)
    err_set (&e, ERR_INVALID, "port %lld: 1 to 65535", (long long) port);
  else if (strcmp (api_cluster (q), "none") == 0)
    err_set (&e, ERR_INVALID, "a machine of one's own joins a cluster; 'none' is none");
  else if (identity)
    identity_check (identity, &e);
  if (e.kind == ERR_NONE)
    return api_words (q);
  api_refuse (q, "bad-request", NULL, "join: %s", e.text);
  return -1;
}

/* The key stays out of what is kept of the request. */
static json_t *
request (const struct ask *q, const json_t *host)
{
  static const char *const kept[] = { "labels", "on_failure" };
  json_t *r = json_object (), *h = json_deep_copy (host);

  json_object_set_new (r, "host", h);
  json_put_i64 (r, "ttl_ms", json_i64 (q->body, "ttl_ms", 0));
  for (size_t i = 0; i < N_ELEMENTS (kept); i++)
    if (json_object_get (q->body, kept[i]))
      json_object_set (r, kept[i], json_object_get (q->body, kept[i]));
  return r;
}

static int
keep_identity (struct ask *q, struct lease *l)
{
  const char *identity = json_str (q->body, "identity", NULL);
  struct err e = ERR_INIT;

  if (!identity)
    return 0;
  if (identity_put (l, identity, &e) == 0) {
    json_object_set_new (json_object_get (l->request, "host"), "identity", json_true ());
    engine_save (l);
    return 0;
  }
  api_refuse (q, "internal", NULL, "%s", e.text);
  return -1;
}

static void
begin (struct ask *q, const json_t *host)
{
  struct err e = ERR_INIT;
  struct lease *l;

  if (budget_admit (q->b, q->owner, 0, NULL, &e) < 0) {
    api_refuse (q, e.code, NULL, "%s", e.text);
    return;
  }
  l = api_new_lease (q, request (q, host), 0);
  if (keep_identity (q, l) < 0) {
    engine_cause (l, "internal", "the identity could not be kept");
    l->keep_on_failure = false;
    engine_event (l, LEV_RELEASE);
    return;
  }
  api_accept (q, "join", l, NULL);
  engine_later (l, 0);
}

/* It is ours already: done, under way, or to be tried again; what is on its way out is not. */
static void
again (struct ask *q, struct lease *l)
{
  if (l->state == LEASE_FAILED_KEPT || l->state == LEASE_DEGRADED) {
    if (keep_identity (q, l) == 0)
      api_again (q, l);
  } else if (l->state <= LEASE_READY) {
    struct op *o = api_accept (q, "join", l, NULL);

    if (l->state == LEASE_READY)
      ops_finish (q->b, o, NULL);
  } else {
    api_refuse (q, "conflict", "wait for its end, then join it again", "%s is %s", l->id,
                lease_state_name (l->state));
  }
}

/* true: answered. */
static bool
there (struct ask *q, const json_t *host)
{
  const char *address = json_str (host, "address", "");
  struct lease *l = own_lease_at (q->b, address, json_i64 (host, "port", 22));

  if (!l)
    return false;
  if (strcmp (l->owner, q->owner) != 0)
    api_refuse (q, "conflict", NULL, "%s is the machine of somebody else's lease", address);
  else if (!lease_own (l) || strcmp (l->cluster, api_cluster (q)) != 0)
    api_refuse (q, "conflict", "release that first", "%s is the machine of %s, in %s", address,
                l->id, l->cluster ? l->cluster : "no cluster");
  else
    again (q, l);
  return true;
}

void
api_join_host (struct ask *q)
{
  const json_t *host = json_object_get (q->body, "host");
  const char *name = json_str (q->body, "name", NULL), *identity;
  const struct lease *l = name ? api_live_with_name (q, name) : NULL;

  if (words (q, host) == 0 && !there (q, host)) {
    if (l)
      api_refuse (q, "conflict", "take another name, or release it first",
                  "the name '%s' is taken by %s, which is %s", name, l->id,
                  lease_state_name (l->state));
    else
      begin (q, host);
  }
  identity = json_str (q->body, "identity", NULL);
  if (identity)
    explicit_bzero ((char *) (uintptr_t) identity, strlen (identity));
}
