/* api.c - requests: rights, strictness, idempotency, then one handler a verb */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/api.h"
#include "core/start.h"

enum { KEY_MAX = 128 };

static const struct json_member any_key[] = { { "key", JSON_STRING, false },
                                              { "single", JSON_TRUE, false } };

/* clang-format off */
#define COMMON { "key", JSON_STRING, false }, { "single", JSON_TRUE, false }, { "owner", JSON_STRING, false }
static const struct json_member rent_members[] = {
  COMMON, { "filter", JSON_OBJECT, true }, { "cluster", JSON_STRING, false }, { "name", JSON_STRING, false },
  { "ttl_ms", JSON_INTEGER, false }, { "deadline_ms", JSON_INTEGER, false }, { "on_failure", JSON_OBJECT, false },
  { "labels", JSON_OBJECT, false }, { "ssh_keys", JSON_ARRAY, false }, { "open", JSON_ARRAY, false },
  { "user_data", JSON_STRING, false }, { "user_data_kind", JSON_STRING, false }, { "dry_run", JSON_TRUE, false },
};
static const struct json_member join_members[] = {
  COMMON, { "cluster", JSON_STRING, true }, { "lease", JSON_STRING, false }, { "host", JSON_OBJECT, false },
  { "identity", JSON_STRING, false }, { "name", JSON_STRING, false }, { "ttl_ms", JSON_INTEGER, false },
  { "deadline_ms", JSON_INTEGER, false }, { "on_failure", JSON_OBJECT, false }, { "labels", JSON_OBJECT, false } };
static const struct json_member release_members[] = {
  COMMON, { "lease", JSON_STRING, true }, { "drain", JSON_TRUE, false }, { "drain_timeout_ms", JSON_INTEGER, false },
  { "evict_force", JSON_TRUE, false } };
static const struct json_member extend_members[] = {
  COMMON, { "lease", JSON_STRING, true }, { "ttl_ms", JSON_INTEGER, true } };
static const struct json_member lease_members[] = { COMMON, { "lease", JSON_STRING, true } };
static const struct json_member verify_members[] = {
  COMMON, { "lease", JSON_STRING, true }, { "network", JSON_TRUE, false } };
static const struct json_member kubeconfig_members[] = {
  { "single", JSON_TRUE, false }, { "owner", JSON_STRING, false }, { "lease", JSON_STRING, true },
  { "port", JSON_INTEGER, false } };
static const struct json_member cancel_members[] = { COMMON, { "operation", JSON_STRING, true } };
static const struct json_member render_members[] = {
  { "single", JSON_TRUE, false }, { "cluster", JSON_STRING, true }, { "part", JSON_STRING, false },
  { "api", JSON_STRING, false }, { "service", JSON_STRING, false }, { "address", JSON_STRING, false },
  { "storage_gib", JSON_INTEGER, false }, { "mtu", JSON_INTEGER, false } };
static const struct json_member adopt_members[] = {
  COMMON, { "provider", JSON_STRING, true }, { "id", JSON_STRING, true } };
static const struct json_member end_members[] = {
  COMMON, { "provider", JSON_STRING, true }, { "id", JSON_STRING, true }, { "yes", JSON_TRUE, false } };
static const struct json_member ignore_members[] = {
  COMMON, { "provider", JSON_STRING, true }, { "id", JSON_STRING, true }, { "ignored", JSON_TRUE, false } };
static const struct json_member provider_members[] = { COMMON, { "provider", JSON_STRING, true } };

static const struct verb {
  const char *name;
  enum bus_rights right;
  bool keyed; /* a mutation that becomes an operation: needs a key */
  api_fn *fn;
  const struct json_member *members; /* NULL: a read; what it does not know it ignores */
  size_t nmembers;
} verbs[] = {
  { "ping",            BUS_READ,  false, api_ping,      NULL, 0 },
  { "offers",          BUS_READ,  false, api_offers,    NULL, 0 },
  { "leases",          BUS_READ,  false, api_leases,    NULL, 0 },
  { "lease",           BUS_READ,  false, api_lease,     NULL, 0 },
  { "explain",         BUS_READ,  false, api_explain,   NULL, 0 },
  { "wait",            BUS_READ,  false, api_wait,      NULL, 0 },
  { "events",          BUS_READ,  false, api_events,    NULL, 0 },
  { "providers",       BUS_READ,  false, api_providers, NULL, 0 },
  { "clusters",        BUS_READ,  false, api_clusters,  NULL, 0 },
  { "clusters.render", BUS_READ,  false, api_render,    render_members, N_ELEMENTS (render_members) },
  { "logs",            BUS_READ,  false, api_logs,      NULL, 0 },
  { "cost",            BUS_READ,  false, api_cost,      NULL, 0 },
  { "ssh-info",        BUS_RENT,  false, api_ssh_info,  NULL, 0 },
  { "rent",            BUS_RENT,  true,  api_rent,      rent_members, N_ELEMENTS (rent_members) },
  { "join",            BUS_RENT,  true,  api_join,      join_members, N_ELEMENTS (join_members) },
  { "release",         BUS_RENT,  true,  api_release,   release_members, N_ELEMENTS (release_members) },
  { "extend",          BUS_RENT,  true,  api_extend,    extend_members, N_ELEMENTS (extend_members) },
  { "cancel",          BUS_RENT,  true,  api_cancel,    cancel_members, N_ELEMENTS (cancel_members) },
  { "retry",           BUS_RENT,  true,  api_retry,     lease_members, N_ELEMENTS (lease_members) },
  { "verify",          BUS_RENT,  true,  api_verify,    verify_members, N_ELEMENTS (verify_members) },
  { "kubeconfig",      BUS_RENT,  false, api_kubeconfig, kubeconfig_members, N_ELEMENTS (kubeconfig_members) },
  { "pause",           BUS_ADMIN, false, api_pause,     provider_members, N_ELEMENTS (provider_members) },
  { "resume",          BUS_ADMIN, false, api_resume,    provider_members, N_ELEMENTS (provider_members) },
  { "providers.check", BUS_ADMIN, false, api_check,     provider_members, N_ELEMENTS (provider_members) },
  { "orphans",         BUS_ADMIN, false, api_orphans,   NULL, 0 },
  { "orphans.adopt",   BUS_ADMIN, true,  api_orphan_adopt,   adopt_members, N_ELEMENTS (adopt_members) },
  { "orphans.release", BUS_ADMIN, true,  api_orphan_release, end_members, N_ELEMENTS (end_members) },
  { "orphans.ignore",  BUS_ADMIN, false, api_orphan_ignore,  ignore_members, N_ELEMENTS (ignore_members) },
  { "reload",          BUS_ADMIN, false, api_reload,    any_key, N_ELEMENTS (any_key) },
};
/* clang-format on */

void
api_final (struct ask *q, json_t *body)
{
  turn_reply (q->b, &q->ticket, BUS_FINAL, body);
}

void
api_reload (struct ask *q)
{
  struct err e = ERR_INIT;
  json_t *told = start_reload (q->b, &e);

  if (told)
    api_final (q, told);
  else
    api_refuse (q, "bad-request", NULL, "%s", e.text);
}

void
api_refuse (struct ask *q, const char *code, const char *hint, const char *fmt, ...)
{
  char text[400];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  turn_error (q->b, &q->ticket, code, hint ? hint : hint_for (code), NULL, "%s", text);
}

static void
digest (const json_t *body, char out[65])
{
  AUTO_FREE char *text = json_canonical (body);
  unsigned char md[EVP_MAX_MD_SIZE];
  unsigned len = 0;

  EVP_Digest (text, strlen (text), md, &len, EVP_sha256 (), NULL);
  for (unsigned i = 0; i < 32; i++)
    snprintf (out + 2 * i, 3, "%02x", md[i]);
}

struct op *
api_accept (struct ask *q, const char *verb, const struct lease *l, json_t *extra)
{
  struct op *o = ops_start (q->b, verb, q->owner, q->key, q->hash, l);

  if (extra) {
    json_object_update (o->accepted, extra);
    json_decref (extra);
    store_put_op (q->b->store, o);
  }
  turn_reply (q->b, &q->ticket, BUS_ACCEPTED, json_incref (o->accepted));
  if (!q->r->single)
    ops_wait (q->b, &q->ticket, o, 0);
  return o;
}

/* The same key again: the same operation, or a conflict.  true: answered. */
static bool
repeated (struct ask *q)
{
  struct op *o = store_op_by_key (q->b->store, q->owner, q->key);

  if (!o)
    return false;
  if (strcmp (o->body_hash, q->hash) != 0) {
    api_refuse (q, "conflict", "use a new key for a new request",
                "key '%s' was used with another body, by %s", q->key, o->id);
  } else {
    turn_reply (q->b, &q->ticket, BUS_ACCEPTED, json_incref (o->accepted));
    if (!q->r->single)
      ops_wait (q->b, &q->ticket, o, 0);
  }
  op_free (o);
  return true;
}

static bool
admit (struct ask *q, const struct verb *v)
{
  struct err e = ERR_INIT;

  if (q->r->rights < v->right) {
    api_refuse (q, "denied", "ask the operator for more rights (bus.uids)", "%s needs the right %s",
                v->name, v->right == BUS_ADMIN ? "admin" : "rent");
    return false;
  }
  if (v->members && json_check (q->body, v->members, v->nmembers, &e) < 0) {
    api_refuse (q, "bad-request", NULL, "%s: %s", v->name, e.text);
    return false;
  }
  if (strcmp (q->owner, q->r->principal) != 0 && q->r->rights < BUS_ADMIN) {
    api_refuse (q, "denied", NULL, "only an admin may act for %s", q->owner);
    return false;
  }
  return true;
}

/* A name is a key, so that the same command again is the same machine. */
static bool
take_key (struct ask *q, const struct verb *v, char *implied, size_t size)
{
  const char *name = json_str (q->body, "name", NULL);

  q->key = json_str (q->body, "key", NULL);
  if (!q->key && name && v->fn == api_rent) {
    snprintf (implied, size, "name:%s", name);
    q->key = implied;
  }
  if (v->keyed && !q->key && !json_bool (q->body, "dry_run", false)) {
    api_refuse (q, "bad-request", "a random uuid will do; keep it for a repetition",
                "%s needs a key", v->name);
    return false;
  }
  if (q->key && strlen (q->key) > KEY_MAX) {
    api_refuse (q, "bad-request", NULL, "the key has %zu bytes, at most %d are allowed",
                strlen (q->key), KEY_MAX);
    return false;
  }
  return true;
}

/* What would have to be paid for, and put into books that have no room. */
static bool
no_room (struct ask *q, const struct verb *v)
{
  bool begins = v->fn == api_rent || v->fn == api_join || v->fn == api_retry;

  if (!begins || !ballast_full (&q->b->ballast))
    return false;
  api_refuse (q, "busy", "the operator has to make room on that disk",
              "the disk of %.150s is full: only releases go on", q->b->conf.broker.state_dir);
  return true;
}

static void
handle (struct ask *q, const struct verb *v)
{
  char implied[200];

  q->owner = json_str (q->body, "owner", q->r->principal);
  if (!v->members)
    q->owner = q->r->principal;
  if (!admit (q, v))
    return;
  if (v->keyed) {
    AUTO_JSON json_t *bare = json_copy (q->body);

    json_object_del (bare, "key");
    json_object_del (bare, "single");
    digest (bare, q->hash);
    if (!take_key (q, v, implied, sizeof implied))
      return;
    if (q->b->stopping) {
      api_refuse (q, "draining", NULL, "gpubrokerd is stopping");
      return;
    }
    /* A name that comes again is rent's own business: the machine may be gone, or kept for a retry.
     */
    if (q->key && q->key != implied && repeated (q))
      return;
    if (no_room (q, v))
      return;
  }
  v->fn (q);
}

/* What fails in the store is taken back alone: the others of this turn go on. */
static void
handle_or_undo (struct ask *q, const struct verb *v)
{
  struct err e = ERR_INIT;
  struct undo u;

  undo_mark (q->b, &u, v->members != NULL);
  handle (q, v);
  if (undo_if_failed (q->b, &u, &e))
    api_refuse (q, "internal", "nothing was changed; the operator finds more in the log", "%s",
                e.text);
}

void
api_request (void *broker, const struct bus_request *r)
{
  struct ask q = { .b = broker, .r = r };
  struct err e = ERR_INIT;
  const char *names[N_ELEMENTS (verbs)], *near;

  bus_ticket (r, &q.ticket);
  q.body = json_parse (r->body, r->len, &e);
  if (!q.body) {
    api_refuse (&q, "bad-request", NULL, "%s", e.text);
    return;
  }
  for (size_t i = 0; i < N_ELEMENTS (verbs); i++) {
    names[i] = verbs[i].name;
    if (strcmp (verbs[i].name, r->verb) == 0) {
      handle_or_undo (&q, &verbs[i]);
      json_decref (q.body);
      return;
    }
  }
  near = nearest (r->verb, names, N_ELEMENTS (names));
  api_refuse (&q, "unknown-verb", NULL, "no verb '%.40s'%s%s%s", r->verb,
              near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  json_decref (q.body);
}
