/* api_rent.c - admission of a rent: everything that can be refused is refused here, at once
 *
 * Order: what the words mean, whether the name is taken, whether anything fits, whether the budget
 * allows it. What is refused burns no key and leaves no trace.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/api.h"

enum { REJECTIONS = 50 };

/* ---- the same name again ---- */

struct lease *
api_live_with_name (struct ask *q, const char *name)
{
  for (size_t i = q->b->leases.n; i-- > 0;) {
    struct lease *l = q->b->leases.at[i];

    if (l->name && strcmp (l->name, name) == 0 && strcmp (l->owner, q->owner) == 0 &&
        !lease_ended (l->state))
      return l;
  }
  return NULL;
}

static void
free_key (struct ask *q)
{
  struct op *o = store_op_by_key (q->b->store, q->owner, q->key);

  if (!o)
    return;
  set_str (&o->key, NULL);
  store_put_op (q->b->store, o);
  op_free (o);
}

/* true: answered.  The name is of a lease that lives: the same words resume it, others are a
 * conflict. */
static bool
resumed (struct ask *q)
{
  const char *name = json_str (q->body, "name", NULL);
  struct lease *l = name ? api_live_with_name (q, name) : NULL;
  struct op *o = NULL, *first = NULL;

  if (!name || json_bool (q->body, "dry_run", false))
    return false;
  if (!l) {
    if (strncmp (q->key, "name:", 5) == 0)
      free_key (q);
    return false;
  }
  if (strncmp (q->key, "name:", 5) == 0)
    first = store_op_by_key (q->b->store, q->owner, q->key);
  if (!first || strcmp (first->body_hash, q->hash) != 0) {
    api_refuse (q, "conflict", "take another name, or release it first",
                "the name '%s' is taken by %s, which is %s", name, l->id,
                lease_state_name (l->state));
  } else if (l->state == LEASE_FAILED_KEPT) {
    q->key = NULL;
    api_again (q, l);
  } else {
    struct op *old;

    turn_reply (q->b, &q->ticket, BUS_ACCEPTED, json_incref (first->accepted));
    o = ops_find (q->b, first->number, &old);
    if (!q->r->single && o)
      ops_wait (q->b, &q->ticket, o, 0);
    op_free (old);
  }
  op_free (first);
  return true;
}

/* ---- what fits, and what it may cost ---- */

static void
refuse_no_offer (struct ask *q, const struct filter *f, const struct match_context *c,
                 const struct match *m)
{
  char text[400];

  if (providers_starting (q->b)) {
    turn_error (q->b, &q->ticket, "busy", "the first listing of offers is still coming", NULL,
                "providers are starting");
    return;
  }
  match_summary (m, text, sizeof text);
  turn_error (q->b, &q->ticket, "no-offer", "see why: gpubroker-cli offers --explain",
              api_rejected (q->b, f, c, REJECTIONS), "%s", text);
}

static void
default_price (struct filter *f, const struct conf_defaults *d)
{
  if (f->max_price_udollar != UINT64_MAX || d->max_price_udollar == UINT64_MAX)
    return;
  f->max_price_udollar = d->max_price_udollar;
  f->max_price_per_gpu = d->max_price_per_gpu;
}

/* The cap where there is one: what the rent may come to cost; else the price of the best offer. */
static int64_t
reserve (const struct filter *f, const struct match *m)
{
  const struct match_pick *best = &m->at[0];
  int64_t gpus = best->offer.hot->gpus ? best->offer.hot->gpus : 1;

  if (f->max_price_udollar == UINT64_MAX)
    return (int64_t) best->price_udollar;
  return (int64_t) f->max_price_udollar * (f->max_price_per_gpu ? gpus : 1);
}

static int64_t
ttl_of (const struct ask *q)
{
  return json_i64 (q->body, "ttl_ms", q->b->conf.defaults.ttl_ms);
}

struct lease *
api_new_lease (struct ask *q, json_t *request, int64_t reserved)
{
  const struct conf_defaults *d = &q->b->conf.defaults;
  const json_t *on_failure = json_object_get (q->body, "on_failure");
  struct lease *l = lease_new (q->b->next_lease++);

  set_str (&l->name, json_str (q->body, "name", NULL));
  set_str (&l->owner, q->owner);
  set_str (&l->cluster, api_cluster (q));
  l->request = request;
  l->created_ms = l->state_ms = now_ms ();
  l->deadline_ms = l->created_ms + json_i64 (q->body, "deadline_ms", d->deadline_ms);
  l->keep_on_failure =
      strcmp (json_str (on_failure, "action", d->on_failure_keep ? "keep" : "release"), "keep") ==
      0;
  l->keep_ms = json_i64 (on_failure, "keep_ms", d->keep_ms);
  l->drain_timeout_ms = 300000;
  l->reserve_udollar = reserved;
  l->admitted = true;
  engine_take (q->b, l);
  engine_save (l);
  feed_lease (q->b, l, "pending", NULL);
  return l;
}

/* The words without what is only about this message, and with what they leave to the defaults. */
static json_t *
request (const struct ask *q, const struct filter *f)
{
  json_t *r = json_copy (q->body);

  json_object_del (r, "key");
  json_object_del (r, "single");
  json_object_set_new (r, "filter", filter_json (f));
  json_put_i64 (r, "ttl_ms", ttl_of (q));
  return r;
}

static void
decide (struct ask *q, const struct filter *f, const struct match_context *c, const struct match *m)
{
  struct err e = ERR_INIT;

  if (m->n == 0) {
    refuse_no_offer (q, f, c, m);
  } else if (json_bool (q->body, "dry_run", false)) {
    api_final (q, json_pack ("{s:b, s:o, s:o}", "dry_run", 1, "order",
                             api_order (q->b, m, f->disk_gib, 0, REJECTIONS), "rejected",
                             api_rejected (q->b, f, c, REJECTIONS)));
  } else if (budget_admit (q->b, q->owner, reserve (f, m), NULL, &e) < 0) {
    api_refuse (q, e.code, NULL, "%s", e.text);
  } else {
    struct lease *l = api_new_lease (q, request (q, f), reserve (f, m));

    api_accept (q, "rent", l, NULL);
    engine_later (l, 0);
  }
}

void
api_rent (struct ask *q)
{
  struct match_context c;
  struct match m = { 0 };
  struct err e = ERR_INIT;
  struct filter f;

  if (api_words (q) < 0 || resumed (q))
    return;
  if (filter_parse (&f, json_object_get (q->body, "filter"), q->b->conf.defaults.market, &e) < 0) {
    api_refuse (q, "bad-request", NULL, "%s", e.text);
    return;
  }
  default_price (&f, &q->b->conf.defaults);
  rent_match_context (q->b, api_cluster (q), ttl_of (q), &c);
  if (match_run (q->b->offers, &f, &c, &m, &e) < 0)
    api_refuse (q, "bad-request", NULL, "%s", e.text);
  else
    decide (q, &f, &c, &m);
  match_done (&m);
  filter_done (&f);
}
