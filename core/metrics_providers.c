/* metrics_providers.c - offers, the cheapest of them, and the accounts they come from */
#include "config.h"

#include "core/filter.h"
#include "core/json.h"
#include "core/metrics_int.h"

/* ---- offers ---- */

void
metric_offers (struct page *p)
{
  struct offers_info i;

  for (size_t k = 0; k < p->b->providers.n; k++)
    if (offers_info (p->b->offers, p->b->providers.at[k]->name, &i))
      sample (p, "provider", p->b->providers.at[k]->name, i.count);
}

void
metric_offers_age (struct page *p)
{
  struct offers_info i;

  for (size_t k = 0; k < p->b->providers.n; k++)
    if (offers_info (p->b->offers, p->b->providers.at[k]->name, &i) && i.listed_ms)
      sample (p, "provider", p->b->providers.at[k]->name, (double) (now_ms () - i.listed_ms) / 1e3);
}

/* {model: {market: micro-dollars}} of one GPU, of what could be rented now. */
static json_t *
cheapest_of (const struct match *m)
{
  json_t *all = json_object ();

  for (size_t i = 0; i < m->n; i++) {
    const struct offer *o = m->at[i].offer.hot;
    const char *market = filter_market_name ((enum filter_market) o->market);
    int64_t price = o->gpus ? (int64_t) m->at[i].price_udollar / o->gpus : 0;
    json_t *model;
    char name[128];

    gpu_name (&o->gpu, name, sizeof name);
    if (!name[0] || !o->gpus)
      continue;
    model = json_object_get (all, name);
    if (!model) {
      model = json_object ();
      json_object_set_new (all, name, model);
    }
    if (price < json_i64 (model, market, INT64_MAX))
      json_put_i64 (model, market, price);
  }
  return all;
}

void
metric_cheapest (struct page *p)
{
  AUTO_JSON json_t *any = json_pack ("{s:[{s:s, s:i, s:i}], s:s}", "gpu", "model", "any", "min", 1,
                                     "max", 0, "market", "any"),
                   *all = NULL;
  struct match_context c;
  struct match m = { 0 };
  struct err e = ERR_INIT;
  struct filter f;
  json_t *markets, *price;
  const char *model, *market;

  if (filter_parse (&f, any, MARKET_ANY, &e) < 0)
    return;
  rent_match_context (p->b, "none", 0, &c);
  if (match_run (p->b->offers, &f, &c, &m, &e) == 0)
    all = cheapest_of (&m);
  json_object_foreach (all, model, markets)
    json_object_foreach (markets, market, price)
      sample2 (p, "", "gpu", model, "market", market, dollars (json_integer_value (price)));
  match_done (&m);
  filter_done (&f);
}

/* ---- providers ---- */

static void
described (struct page *p, const char *member)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    AUTO_JSON json_t *d = child_describe (p->b->providers.at[i]->child);

    sample (p, "provider", p->b->providers.at[i]->name, (double) json_i64 (d, member, 0));
  }
}

void
metric_calls (struct page *p)
{
  described (p, "calls");
}

void
metric_errors (struct page *p)
{
  described (p, "errors");
}

void
metric_restarts (struct page *p)
{
  described (p, "restarts");
}

/* Usable: its process is up, and the last thing that it was asked for worked. */
void
metric_usable (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];

    sample (p, "provider", q->name, q->up && !q->paused && q->problem.kind == ERR_NONE);
  }
}

void
metric_state (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];

    sample2 (p, "", "provider", q->name, "state",
             q->paused ? "paused" : child_state_name (child_state (q->child)), 1);
  }
}

void
metric_balance (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];

    if (json_object_get (q->identity, "balance_udollar"))
      sample (p, "provider", q->name, dollars (json_i64 (q->identity, "balance_udollar", 0)));
  }
}
