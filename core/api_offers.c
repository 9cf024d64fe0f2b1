/* api_offers.c - offers, explained; and what a lease's last look at them said */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/api.h"

struct view { /* one query on the table */
  struct filter f;
  struct match_context c;
  struct match m;
};

static int
look (struct ask *q, const json_t *filter, const char *cluster, int64_t ttl_ms, struct view *v)
{
  struct err e = ERR_INIT;

  memset (v, 0, sizeof *v);
  if (filter_parse (&v->f, filter, q->b->conf.defaults.market, &e) < 0) {
    api_refuse (q, "bad-request", NULL, "%s", e.text);
    return -1;
  }
  rent_match_context (q->b, cluster, ttl_ms, &v->c);
  if (match_run (q->b->offers, &v->f, &v->c, &v->m, &e) < 0) {
    api_refuse (q, "bad-request", NULL, "%s", e.text);
    filter_done (&v->f);
    return -1;
  }
  return 0;
}

static void
view_done (struct view *v)
{
  match_done (&v->m);
  filter_done (&v->f);
}

json_t *
api_order (struct broker *b, const struct match *m, uint32_t disk_gib, size_t from, size_t limit)
{
  json_t *order = json_array ();

  for (size_t i = from; i < m->n && i < from + limit; i++)
    json_array_append_new (order, offers_json (b->offers, &m->at[i].offer, disk_gib, now_ms ()));
  return order;
}

struct rejections {
  struct broker *b;
  json_t *all;
  size_t left;
  uint32_t disk;
};

static int
reject (void *ctx, const struct offer_at *offer, enum exclusion code, const char *text)
{
  struct rejections *x = ctx;

  json_array_append_new (x->all, json_pack ("{s:o, s:s, s:s}", "offer",
                                            offers_json (x->b->offers, offer, x->disk, now_ms ()),
                                            "code", exclusion_name (code), "text", text));
  return --x->left == 0;
}

json_t *
api_rejected (struct broker *b, const struct filter *f, const struct match_context *c, size_t limit)
{
  struct rejections x = { b, json_array (), limit, f->disk_gib };

  match_explain (b->offers, f, c, reject, &x, NULL);
  return x.all;
}

/* ---- grouping ---- */

static const char *
group_key (const struct offer_at *o, const char *by, char *buffer, size_t size)
{
  if (strcmp (by, "provider") == 0)
    return o->provider;
  if (strcmp (by, "region") == 0)
    return o->text->region ? o->text->region : "";
  gpu_name (&o->hot->gpu, buffer, size);
  return buffer[0] ? buffer : o->text->gpu_raw ? o->text->gpu_raw : "none";
}

/* The order is by price, so the first of a group is its cheapest. */
static json_t *
groups (const struct match *m, const char *by)
{
  AUTO_JSON json_t *seen = json_object ();
  json_t *all = json_array ();
  char name[128];

  for (size_t i = 0; i < m->n; i++) {
    const char *key = group_key (&m->at[i].offer, by, name, sizeof name);
    json_t *g = json_object_get (seen, key);

    if (!g) {
      g = json_pack ("{s:s, s:i, s:I, s:i}", "key", key, "offers", 0, "price_udollar",
                     (json_int_t) m->at[i].price_udollar, "gpus", (int) m->at[i].offer.hot->gpus);
      json_object_set_new (seen, key, g);
      json_array_append (all, g);
    }
    json_put_i64 (g, "offers", json_i64 (g, "offers", 0) + 1);
  }
  return all;
}

/* "N-ID": behind the N-th, which was ID.  The table may be another one by now: where ID stands in
 * it counts more than N. */
static size_t
page_start (const struct match *m, const char *cursor)
{
  const char *id = cursor ? strchr (cursor, '-') : NULL;

  for (size_t i = 0; id && i < m->n; i++)
    if (strcmp (m->at[i].offer.text->id, id + 1) == 0)
      return i + 1;
  return cursor ? (size_t) strtoull (cursor, NULL, 10) : 0;
}

void
api_offers (struct ask *q)
{
  size_t limit = (size_t) json_i64 (q->body, "limit", 100), from;
  const char *cursor = json_str (q->body, "cursor", NULL),
             *by = json_str (q->body, "group_by", NULL);
  json_t *j, *providers;
  char next[48], text[400];
  struct view v;

  if (limit < 1 || limit > 1000)
    limit = 1000;
  if (look (q, json_object_get (q->body, "filter"), NULL, 0, &v) < 0)
    return;
  from = page_start (&v.m, cursor);
  providers = json_array ();
  for (size_t i = 0; i < q->b->providers.n; i++)
    json_array_append_new (providers, provider_json (q->b->providers.at[i]));
  j = json_pack ("{s:o, s:I, s:I, s:o, s:o, s:o}", "offers",
                 api_order (q->b, &v.m, v.f.disk_gib, from, limit), "matched", (json_int_t) v.m.n,
                 "considered", (json_int_t) v.m.considered, "excluded", match_excluded_json (&v.m),
                 "unknown_gpus", offers_unknown_gpus (q->b->offers), "providers", providers);
  if (json_bool (q->body, "explain", false))
    json_object_set_new (j, "rejected", api_rejected (q->b, &v.f, &v.c, limit));
  if (by)
    json_object_set_new (j, "groups", groups (&v.m, by));
  if (v.m.n == 0) {
    match_summary (&v.m, text, sizeof text);
    json_put_str (j, "summary", text);
  }
  if (from + limit < v.m.n) {
    snprintf (next, sizeof next, "%zu-%s", from + limit, v.m.at[from + limit - 1].offer.text->id);
    json_put_str (j, "cursor", next);
  }
  api_final (q, j);
  view_done (&v);
}

/* What a lease waits for, and what was wrong with every offer that it did not take. */
void
api_explain (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), false, &old);
  json_t *attempts = json_array (), *j;
  struct view v;

  if (l && lease_own (l)) { /* no offer was in question */
    api_final (q, json_pack ("{s:o, s:[], s:[]}", "lease", lease_json (l, now_ms (), true),
                             "attempts", "rejected"));
    lease_free (old);
    json_decref (attempts);
    return;
  }
  if (l && look (q, json_object_get (l->request, "filter"), l->cluster,
                 json_i64 (l->request, "ttl_ms", 0), &v) == 0) {
    for (size_t i = 0; i < l->nattempts; i++)
      json_array_append_new (attempts, attempt_json (l->attempts[i], now_ms ()));
    j = json_pack ("{s:o, s:O, s:o}", "lease", lease_json (l, now_ms (), true), "attempts",
                   attempts, "rejected", api_rejected (q->b, &v.f, &v.c, 200));
    json_put_str (j, "waiting_for", l->step_text && l->step_text[0] ? l->step_text : l->step_name);
    api_final (q, j);
    view_done (&v);
  }
  json_decref (attempts);
  lease_free (old);
}
