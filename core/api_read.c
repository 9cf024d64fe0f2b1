/* api_read.c - verbs that look: answered from memory, or from the store for what is over */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/api.h"

enum { PAGE = 100, PAGE_MAX = 1000 };

static int64_t
limit_of (const struct ask *q)
{
  int64_t n = json_i64 (q->body, "limit", PAGE);

  return n < 1 ? 1 : n > PAGE_MAX ? PAGE_MAX : n;
}

static const char *
right_name (enum bus_rights r)
{
  return r >= BUS_ADMIN ? "admin" : r >= BUS_RENT ? "rent" : "read";
}

void
api_ping (struct ask *q)
{
  struct broker *b = q->b;
  json_t *events = json_array (), *j;

  for (size_t i = 0; i < b->conf.bus.events.n; i++)
    json_array_append_new (events, json_string (b->conf.bus.events.at[i]));
  j = json_pack ("{s:s, s:s, s:s, s:I, s:I, s:[s], s:I, s:o, s:s, s:s}", "server",
                 PACKAGE_NAME " " PACKAGE_VERSION, "instance", b->instance, "broker",
                 b->conf.broker.name, "epoch", (json_int_t) b->epoch, "seq", (json_int_t) b->seq,
                 "protocols", "GPUB/1", "now_ms", (json_int_t) now_ms (), "events", events,
                 "principal", q->r->principal, "rights", right_name (q->r->rights));
  json_object_set_new (j, "limits",
                       json_pack ("{s:i, s:i}", "body_bytes", 64 * 1024, "page", PAGE_MAX));
  if (freeze_holds (b))
    json_put_str (j, "frozen", b->freeze.clock ? "clock-jumped" : "books-old");
  api_final (q, j);
}

/* ---- leases ---- */

static bool
named (const struct lease *l, const char *x)
{
  const struct attempt *a = lease_attempt (l);

  return strcmp (l->id, x) == 0 || (l->name && strcmp (l->name, x) == 0) ||
         (a && strcmp (a->name, x) == 0);
}

/* Never of an id: l4 must not mean l42. */
static bool
prefixed (const struct lease *l, const char *x)
{
  const struct attempt *a = lease_attempt (l);
  size_t n = strlen (x);

  return n >= 3 &&
         ((l->name && strncmp (l->name, x, n) == 0) || (a && strncmp (a->name, x, n) == 0));
}

static struct lease *
by_prefix (struct broker *b, const char *x)
{
  struct lease *found = NULL;

  for (size_t i = 0; i < b->leases.n; i++)
    if (prefixed (b->leases.at[i], x)) {
      if (found)
        return NULL;
      found = b->leases.at[i];
    }
  return found;
}

static int64_t
number_of (const char *x)
{
  char *end;
  long long n = x[0] == 'l' ? strtoll (x + 1, &end, 10) : 0;

  return x[0] == 'l' && x[1] && *end == '\0' ? n : 0;
}

static struct lease *
among_live (struct broker *b, const char *x, const char *owner)
{
  for (size_t i = b->leases.n; i-- > 0;)
    if (named (b->leases.at[i], x) && (!owner || strcmp (b->leases.at[i]->owner, owner) == 0))
      return b->leases.at[i];
  return NULL;
}

/* Everybody may look at all leases; a name is looked up among the asker's own first. */
struct lease *
api_find (struct ask *q, const char *x, bool for_change, struct lease **old)
{
  struct lease *l = NULL;

  *old = NULL;
  if (x)
    l = among_live (q->b, x, q->owner);
  if (x && !l)
    l = among_live (q->b, x, NULL);
  if (x && !l && number_of (x))
    l = *old = store_lease (q->b->store, number_of (x));
  if (x && !l)
    l = *old = store_lease_by_name (q->b->store, x);
  if (x && !l)
    l = by_prefix (q->b, x);
  if (!l) {
    api_refuse (q, "not-found", "see: gpubroker-cli leases --all", "no lease '%.60s'", x ? x : "");
    return NULL;
  }
  if (for_change && strcmp (l->owner, q->r->principal) != 0 && q->r->rights < BUS_ADMIN) {
    api_refuse (q, "denied", NULL, "%s belongs to %s", l->id, l->owner);
    lease_free (*old);
    *old = NULL;
    return NULL;
  }
  return l;
}

static bool
wanted (const struct ask *q, const struct lease *l)
{
  const char *owner = json_str (q->body, "owner", NULL), *state = json_str (q->body, "state", NULL);

  return (!owner || strcmp (owner, l->owner) == 0) &&
         (!state || strcmp (state, lease_state_name (l->state)) == 0);
}

struct listing {
  struct ask *q;
  json_t *leases;
  int64_t left;       /* how many more the page takes */
  int64_t read, last; /* how many ended ones came; the number of the last one looked at */
  char next[32];      /* "" behind the last page */
};

static void
list_one (struct listing *x, const struct lease *l)
{
  if (!wanted (x->q, l))
    return;
  json_array_append_new (x->leases, lease_json (l, now_ms (), false));
  x->left--;
}

/* In the order of their numbers, those behind `after`. */
static void
list_living (struct listing *x, int64_t after)
{
  struct broker *b = x->q->b;

  for (size_t i = 0; i < b->leases.n; i++) {
    if (b->leases.at[i]->number <= after)
      continue;
    if (x->left == 0) {
      snprintf (x->next, sizeof x->next, "living:%lld", (long long) x->last);
      return;
    }
    list_one (x, b->leases.at[i]);
    x->last = b->leases.at[i]->number;
  }
}

static void
list_ended (void *ctx, struct lease *l)
{
  struct listing *x = ctx;

  x->read++;
  x->last = l->number;
  list_one (x, l);
  lease_free (l);
}

/* Newest first, those before `before`; 0: from the newest.  As many are read as the page takes, so
 * with a filter it may be short, or empty, and yet have a next one. */
static void
list_ended_from (struct listing *x, int64_t before)
{
  int64_t most = x->left;

  x->last = before;
  if (most > 0)
    store_each_ended (x->q->b->store, before, most, list_ended, x, NULL);
  if (x->read == most)
    snprintf (x->next, sizeof x->next, "ended:%lld", (long long) x->last);
}

static bool
cursor_of (const char *cursor, const char *part, int64_t *number)
{
  size_t n = strlen (part);
  char *end;

  if (strncmp (cursor, part, n) != 0 || cursor[n] != ':')
    return false;
  *number = strtoll (cursor + n + 1, &end, 10);
  return end != cursor + n + 1 && *end == '\0' && *number >= 0;
}

/* The living ones, oldest first, then, if they are asked for, the ended ones, newest first. */
void
api_leases (struct ask *q)
{
  const char *cursor = json_str (q->body, "cursor", "living:0");
  struct listing x = { .q = q, .left = limit_of (q), .leases = json_array () };
  int64_t at = 0;
  json_t *j;

  if (cursor_of (cursor, "living", &at)) {
    list_living (&x, at);
    at = 0;
  } else if (!cursor_of (cursor, "ended", &at)) {
    json_decref (x.leases);
    api_refuse (q, "bad-request", "leave it out for the first page",
                "'%.40s' is no cursor of leases", cursor);
    return;
  }
  if (!*x.next && json_bool (q->body, "all", false))
    list_ended_from (&x, at);
  j = json_pack ("{s:o}", "leases", x.leases);
  if (*x.next)
    json_put_str (j, "cursor", x.next);
  api_final (q, j);
}

static void
add_op (void *ctx, struct op *o)
{
  json_array_append_new (ctx, op_json (o));
  op_free (o);
}

void
api_lease (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), false, &old);
  json_t *ops = json_array (), *j;

  if (l) {
    store_each_op (q->b->store, l->number, add_op, ops, NULL);
    j = lease_json (l, now_ms (), true);
    json_object_set (j, "operations", ops);
    api_final (q, json_pack ("{s:o}", "lease", j));
  }
  json_decref (ops);
  lease_free (old);
}

void
api_logs (struct ask *q)
{
  bool boot = json_bool (q->body, "boot", false); /* the machine's own words are its tenant's */
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), boot, &old);

  if (l && boot)
    api_boot_log (q, l);
  else if (l)
    api_final (q, json_pack ("{s:o}", "lines", api_log_lines (q->b, l->number)));
  lease_free (old);
}

static void
add_line (void *ctx, int64_t seq, int64_t ms, const char *step, const char *text)
{
  (void) seq;
  json_array_append_new (
      ctx, json_pack ("{s:I, s:s, s:s}", "ms", (json_int_t) ms, "step", step, "text", text));
}

json_t *
api_log_lines (struct broker *b, int64_t lease)
{
  json_t *lines = json_array ();

  store_each_log (b->store, lease, add_line, lines);
  return lines;
}

/* ---- wait ---- */

static struct op *
running_on (struct broker *b, int64_t lease)
{
  for (size_t i = b->ops.n; i-- > 0;)
    if (b->ops.at[i]->lease == lease && b->ops.at[i]->state == OP_RUNNING)
      return b->ops.at[i];
  return NULL;
}

static void
wait_lease (struct ask *q, const char *x, int64_t until)
{
  struct lease *old, *l = api_find (q, x, false, &old);
  struct op *o = l ? running_on (q->b, l->number) : NULL;

  if (o)
    ops_wait (q->b, &q->ticket, o, until);
  else if (l && l->failed)
    turn_reply (q->b, &q->ticket, BUS_ERROR, ops_cause (l));
  else if (l)
    api_final (q, json_pack ("{s:o}", "lease", lease_json (l, now_ms (), true)));
  lease_free (old);
}

void
api_wait (struct ask *q)
{
  int64_t ms = json_i64 (q->body, "timeout_ms", 0), until;
  const char *id = json_str (q->body, "operation", NULL), *key = json_str (q->body, "key", NULL);
  const char *lease = json_str (q->body, "lease", json_str (q->body, "name", NULL));
  struct op *old = NULL, *o = NULL;

  if (!api_span (q, q->body, "timeout_ms", 0))
    return;
  until = ms ? now_ms () + ms : 0;
  if (lease) {
    wait_lease (q, lease, until);
    return;
  }
  if (id && strncmp (id, "op", 2) == 0)
    o = ops_find (q->b, strtoll (id + 2, NULL, 10), &old);
  else if (key)
    o = old = store_op_by_key (q->b->store, q->owner, key);
  if (o)
    ops_wait (q->b, &q->ticket, o, until);
  else
    api_refuse (q, "not-found", NULL, "no operation '%.60s'", id ? id : key ? key : "");
  op_free (old);
}

/* ---- events ---- */

void
api_events (struct ask *q)
{
  struct broker *b = q->b;
  const char *x = json_str (q->body, "lease", NULL);
  int64_t since = json_i64 (q->body, "since", 0), limit = limit_of (q);
  struct lease *old = NULL, *l = x ? api_find (q, x, false, &old) : NULL;

  if (x && !l)
    return;
  if (json_bool (q->body, "follow", false) && !q->r->single)
    feed_follow (b, &q->ticket, since, l ? l->number : 0, limit);
  else
    api_final (q, feed_page (b, since, l ? l->number : 0, limit));
  lease_free (old);
}

/* ---- the rest ---- */

void
api_providers (struct ask *q)
{
  json_t *all = json_array ();

  for (size_t i = 0; i < q->b->providers.n; i++)
    json_array_append_new (all, provider_json (q->b->providers.at[i]));
  api_final (q, json_pack ("{s:o}", "providers", all));
}

void
api_clusters (struct ask *q)
{
  json_t *all = json_array ();

  for (size_t i = 0; i < q->b->conf.nclusters; i++)
    if (!conf_is_standalone (&q->b->conf.clusters[i]))
      json_array_append_new (all, cluster_json (q->b, &q->b->conf.clusters[i]));
  api_final (q, json_pack ("{s:o}", "clusters", all));
}
