/* rent.c - from a wish to the offer that is tried next */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

enum { MAX_ATTEMPTS = 12, MAX_TRIED = 64 };

/* ---- choosing ---- */

static const struct attempt *
first_node (const struct broker *b, const char *cluster)
{
  for (size_t i = 0; i < b->leases.n; i++) {
    const struct lease *l = b->leases.at[i];
    const struct attempt *a = lease_attempt (l);

    /* Where a machine of somebody's own stands, they know. */
    if (a && a->joined && !lease_own (l) && l->cluster && strcmp (l->cluster, cluster) == 0)
      return a;
  }
  return NULL;
}

void
rent_match_context (struct broker *b, const char *cluster, int64_t ttl_ms, struct match_context *c)
{
  const struct conf_cluster *k = cluster ? conf_cluster (&b->conf, cluster) : NULL;
  const struct attempt *home = k && k->cross_node ? first_node (b, cluster) : NULL;

  *c = (struct match_context) MATCH_CONTEXT_INIT;
  c->now_ms = now_ms ();
  c->memory = b->memory;
  c->localities = b->localities;
  c->nlocalities = b->conf.nlocalities;
  c->kubernetes = cluster && strcmp (cluster, "none") != 0;
  c->ttl_ms = ttl_ms;
  if (k) {
    c->cluster = k->name;
    c->cluster_locality = k->locality;
    c->cross_node = k->cross_node;
    c->cni = k->cni;
  }
  if (home) {
    c->home_provider = home->provider;
    c->home_cloud = json_str (home->offer, "cloud", NULL);
    c->home_region = json_str (home->offer, "region", NULL);
  }
}

static size_t
tried (const struct lease *l, const char **ids)
{
  const char *id;
  json_t *times;
  size_t n = 0;

  json_object_foreach (l->tried, id, times)
    if (n < MAX_TRIED)
      ids[n++] = id;
  return n;
}

static void
exhausted (struct lease *l, const struct match *m)
{
  char text[400];

  if (l->nattempts == 0) {
    match_summary (m, text, sizeof text);
    engine_cause (l, "no-offer", "%s", text);
  } else {
    engine_cause (
        l, "offers-exhausted", "every matching offer failed, %zu tried; the last: %s", l->nattempts,
        l->attempts[l->nattempts - 1]->reason_text ? l->attempts[l->nattempts - 1]->reason_text
                                                   : "?");
  }
  engine_event (l, LEV_EXHAUSTED);
}

/* What the offer alone does not show: can the provider do what was asked beside the machine? */
static bool
able (const struct provider *p, const struct lease *l)
{
  bool script = strcmp (json_str (l->request, "user_data_kind", "script"), "script") == 0;

  if (json_array_size (json_object_get (l->request, "open")) && !provider_can (p, "open-ports"))
    return false;
  if (!json_object_get (l->request, "user_data"))
    return true;
  return provider_can (p, "user-data") || (script && provider_can (p, "startup-script"));
}

static void
take_best (struct lease *l, const struct match *m)
{
  struct broker *b = l->broker;

  for (size_t i = 0; i < m->n; i++) {
    struct provider *p = provider_find (b, m->at[i].offer.provider);

    if (!p || !able (p, l))
      continue;
    rent_quote (l, p, &m->at[i]);
    return;
  }
  exhausted (l, m);
}

static void
choose (struct lease *l)
{
  struct broker *b = l->broker;
  const char *ids[MAX_TRIED];
  struct match_context c;
  struct match m = { 0 };
  struct filter f;
  struct err e = ERR_INIT;

  if (lease_own (l)) {
    own_commit (l);
    return;
  }
  if (filter_parse (&f, json_object_get (l->request, "filter"), b->conf.defaults.market, &e) < 0) {
    engine_cause (l, "bad-request", "%s", e.text);
    engine_event (l, LEV_EXHAUSTED);
    return;
  }
  rent_match_context (b, l->cluster, json_i64 (l->request, "ttl_ms", 0), &c);
  c.tried = ids;
  c.ntried = tried (l, ids);
  if (match_run (b->offers, &f, &c, &m, &e) < 0) {
    engine_cause (l, "bad-request", "%s", e.text);
    engine_event (l, LEV_EXHAUSTED);
  } else if (m.n == 0 && providers_starting (b)) {
    feed_step (l, "offers", "waiting for providers that are being started");
    engine_later (l, b->times.poll);
  } else if (m.n == 0 || l->nattempts >= MAX_ATTEMPTS) {
    exhausted (l, &m);
  } else {
    take_best (l, &m);
  }
  match_done (&m);
  filter_done (&f);
}

/* ---- pending: look at the cluster before any money is spent, then choose ---- */

static void
linted (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const json_t *findings = json_object_get (r->value, "findings"), *f;
  size_t i;

  (void) a;
  if (r->err.kind != ERR_NONE) {
    if (r->err.kind != ERR_INVALID && ++l->tries < 5) {
      feed_step (l, "lint", r->err.text);
      engine_later (l, backoff (&l->broker->times, l->tries));
      return;
    }
    engine_cause (l, r->err.code[0] ? r->err.code : "cluster-unreachable", "cluster %s: %s",
                  l->cluster, r->err.text);
    engine_event (l, LEV_EXHAUSTED);
    return;
  }
  json_array_foreach (findings, i, f) {
    if (strcmp (json_str (f, "severity", ""), "error") == 0) {
      engine_cause (l, json_str (f, "code", "cluster-lint"), "cluster %s: %s", l->cluster,
                    json_str (f, "text", ""));
      engine_event (l, LEV_EXHAUSTED);
      return;
    }
    feed_step (l, "lint", json_str (f, "text", ""));
  }
  l->stage = 1;
  choose (l);
}

void
rent_pending (struct lease *l)
{
  const struct broker *b = l->broker;
  bool cluster = conf_hosted (&l->broker->conf, l->cluster);

  if (engine_unsure (l) || ballast_full (&b->ballast)) {
    feed_step (l, "offers",
               ballast_full (&b->ballast) ? "waiting for room on the broker's disk"
               : b->freeze.books /* it may have been released, or rented elsewhere, since */
                   ? "the books are old: release it, or: gpubroker-cli providers resume broker"
                   : "waiting for what the providers show");
    engine_later (l, b->times.retry_min);
    return;
  }
  if (!cluster)
    l->stage = 1;
  if (l->stage == 1)
    choose (l);
  else
    pipeline_lint (l, linted);
}
