/* metrics.c - what a dashboard wants to know, in Prometheus' text format
 *
 * One row per family in the table at the end; its function prints the samples.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/filter.h"
#include "core/json.h"
#include "core/metrics.h"
#include "core/orphans.h"

/* ---- counted here ---- */

static struct step_time *
step (struct metrics *m, const char *name)
{
  for (size_t i = 0; i < METRICS_STEPS; i++) {
    if (!m->steps[i].name)
      m->steps[i].name = name;
    if (strcmp (m->steps[i].name, name) == 0)
      return &m->steps[i];
  }
  return &m->steps[METRICS_STEPS - 1];
}

void
metrics_step (struct metrics *m, const char *name, int64_t ms)
{
  struct step_time *s = step (m, name);

  s->ms += ms > 0 ? ms : 0;
  s->n++;
}

void
metrics_step_failed (struct metrics *m, const char *name)
{
  step (m, name)->failed++;
}

void
metrics_alarm (struct metrics *m, const char *what)
{
  if (!m->alarms)
    m->alarms = json_object ();
  json_put_i64 (m->alarms, what, json_i64 (m->alarms, what, 0) + 1);
}

/* ---- samples ---- */

struct page {
  FILE *f;
  struct broker *b;
  const char *name; /* of the family */
};

/* Label values are the outside's words: three bytes would end them early. */
static void
quoted (FILE *f, const char *text)
{
  fputc ('"', f);
  for (; *text; text++) {
    if (*text == '\n')
      fputs ("\\n", f);
    else if (*text == '"' || *text == '\\')
      fprintf (f, "\\%c", *text);
    else
      fputc (*text, f);
  }
  fputc ('"', f);
}

/* key NULL: no label.  part: "_sum" and the like. */
static void
sample2 (const struct page *p, const char *part, const char *key, const char *value,
         const char *key2, const char *value2, double number)
{
  fprintf (p->f, "%s%s", p->name, part);
  if (key) {
    fprintf (p->f, "{%s=", key);
    quoted (p->f, value);
    if (key2) {
      fprintf (p->f, ",%s=", key2);
      quoted (p->f, value2);
    }
    fputc ('}', p->f);
  }
  fprintf (p->f, " %.15g\n", number);
}

static void
sample (const struct page *p, const char *key, const char *value, double number)
{
  sample2 (p, "", key, value, NULL, NULL, number);
}

static double
dollars (int64_t udollar)
{
  return (double) udollar / 1e6;
}

static void
info (struct page *p)
{
  sample2 (p, "", "version", PACKAGE_VERSION, "instance_uuid", p->b->instance, 1);
}

static void
written (struct page *p)
{
  sample (p, NULL, NULL, (double) now_ms () / 1e3);
}

static void
frozen (struct page *p)
{
  sample (p, "why", "clock", p->b->freeze.clock);
  sample (p, "why", "books", p->b->freeze.books);
}

static void
leases (struct page *p)
{
  unsigned n[LEASE_STATES] = { 0 };

  for (size_t i = 0; i < p->b->leases.n; i++)
    n[p->b->leases.at[i]->state]++;
  for (int s = 0; s < LEASE_STATES; s++)
    if (!lease_ended ((enum lease_state) s))
      sample (p, "state", lease_state_name ((enum lease_state) s), n[s]);
}

static void
rate (struct page *p)
{
  sample (p, NULL, NULL, dollars (budget_rate (p->b, NULL)));
}

static int64_t
sum_leaked (const struct broker *b, unsigned *n)
{
  int64_t sum = 0;

  *n = 0;
  for (size_t i = 0; i < b->leases.n; i++)
    for (size_t k = 0; k < b->leases.at[i]->nattempts; k++)
      if (b->leases.at[i]->attempts[k]->state == ATTEMPT_LEAKED) {
        sum += b->leases.at[i]->attempts[k]->price_udollar;
        (*n)++;
      }
  return sum;
}

static void
provider_rate (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const char *name = p->b->providers.at[i]->name;

    sample (p, "provider", name, dollars (budget_rate_at (p->b, name)));
  }
}

static void
spent (struct page *p)
{
  sample (p, NULL, NULL, dollars (spent_total (p->b, now_ms ())));
}

static void
leaked (struct page *p)
{
  unsigned n;

  sum_leaked (p->b, &n);
  sample (p, NULL, NULL, n);
}

static void
leaked_rate (struct page *p)
{
  unsigned n;

  sample (p, NULL, NULL, dollars (sum_leaked (p->b, &n)));
}

/* Of what an operator has not said to ignore. */
static void
orphans_of (struct page *p, bool money)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];
    int64_t n = 0, sum = 0;
    const json_t *o;
    size_t k;

    json_array_foreach (q->orphans, k, o) {
      struct mark m = mark_of (json_object_get (o, "tags"), p->b->instance);

      if (m.whose != MARK_OURS || orphan_ignored (q, o))
        continue;
      sum += json_i64 (o, "price_udollar", 0);
      n++;
    }
    sample (p, "provider", q->name, money ? dollars (sum) : (double) n);
  }
}

static void
orphans (struct page *p)
{
  orphans_of (p, false);
}

static void
orphans_rate (struct page *p)
{
  orphans_of (p, true);
}

/* ---- offers ---- */

static void
offers (struct page *p)
{
  struct offers_info i;

  for (size_t k = 0; k < p->b->providers.n; k++)
    if (offers_info (p->b->offers, p->b->providers.at[k]->name, &i))
      sample (p, "provider", p->b->providers.at[k]->name, i.count);
}

static void
offers_age (struct page *p)
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

static void
cheapest (struct page *p)
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

static void
calls (struct page *p)
{
  described (p, "calls");
}

static void
errors (struct page *p)
{
  described (p, "errors");
}

static void
restarts (struct page *p)
{
  described (p, "restarts");
}

/* Usable: its process is up, and the last thing that it was asked for worked. */
static void
usable (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];

    sample (p, "provider", q->name, q->up && !q->paused && q->problem.kind == ERR_NONE);
  }
}

static void
balance (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const struct provider *q = p->b->providers.at[i];

    if (json_object_get (q->identity, "balance_udollar"))
      sample (p, "provider", q->name, dollars (json_i64 (q->identity, "balance_udollar", 0)));
  }
}

/* ---- steps, events, the bus ---- */

static void
steps (struct page *p)
{
  const struct step_time *s = p->b->metrics.steps;

  for (size_t i = 0; i < METRICS_STEPS && s[i].name; i++) {
    sample2 (p, "_sum", "step", s[i].name, NULL, NULL, (double) s[i].ms / 1e3);
    sample2 (p, "_count", "step", s[i].name, NULL, NULL, (double) s[i].n);
  }
}

static void
steps_failed (struct page *p)
{
  const struct step_time *s = p->b->metrics.steps;

  for (size_t i = 0; i < METRICS_STEPS && s[i].name; i++)
    sample (p, "step", s[i].name, (double) s[i].failed);
}

static void
alarms (struct page *p)
{
  const char *what;
  json_t *n;

  json_object_foreach (p->b->metrics.alarms, what, n)
    sample (p, "what", what, (double) json_integer_value (n));
}

static void
events (struct page *p)
{
  sample (p, NULL, NULL, (double) p->b->seq);
}

static void
requests (struct page *p)
{
  struct bus_counters c;

  bus_counters (p->b->bus, &c);
  sample (p, NULL, NULL, (double) c.requests);
}

static void
refused (struct page *p)
{
  struct bus_counters c;

  bus_counters (p->b->bus, &c);
  sample (p, "why", "denied", (double) c.refused);
  sample (p, "why", "bad-frame", (double) c.bad_frames);
  sample (p, "why", "busy", (double) c.busy);
}

/* clang-format off */
static const struct {
  const char *name, *type, *help;
  void (*samples) (struct page *);
} families[] = {
  { "gpubroker_info", "gauge", "Version and installation; always 1.", info },
  { "gpubroker_written_timestamp_seconds", "gauge", "When this file was written.", written },
  { "gpubroker_frozen", "gauge", "1 while nothing ends by itself, and why.", frozen },
  { "gpubroker_leases", "gauge", "Leases that are not over, by state.", leases },
  { "gpubroker_spend_dollars_per_hour", "gauge", "What is committed now, reserves of pending rents included.", rate },
  { "gpubroker_provider_spend_dollars_per_hour", "gauge", "What is billed now at each provider.", provider_rate },
  { "gpubroker_spent_dollars_total", "counter", "What was spent since the books began.", spent },
  { "gpubroker_leaked", "gauge", "Machines that could not be ended yet.", leaked },
  { "gpubroker_leaked_dollars_per_hour", "gauge", "What they cost.", leaked_rate },
  { "gpubroker_orphans", "gauge", "Things with our mark and in no lease, ignored ones not counted.", orphans },
  { "gpubroker_orphans_dollars_per_hour", "gauge", "What they cost, as far as it is known.", orphans_rate },
  { "gpubroker_offers", "gauge", "Offers that are known.", offers },
  { "gpubroker_offers_age_seconds", "gauge", "Since the last listing of offers ended.", offers_age },
  { "gpubroker_cheapest_gpu_dollars_per_hour", "gauge", "Of one GPU, of what could be rented now.", cheapest },
  { "gpubroker_provider_usable", "gauge", "1: up, not paused, and the last look at it worked.", usable },
  { "gpubroker_provider_calls_total", "counter", "Calls of the plugin, since the daemon started.", calls },
  { "gpubroker_provider_errors_total", "counter", "Calls that failed.", errors },
  { "gpubroker_provider_restarts_total", "counter", "Of the plugin's process.", restarts },
  { "gpubroker_provider_balance_dollars", "gauge", "What the account says it has.", balance },
  { "gpubroker_step_seconds", "summary", "How long steps took that ended well.", steps },
  { "gpubroker_step_failures_total", "counter", "Steps that failed for good.", steps_failed },
  { "gpubroker_alarms_total", "counter", "Alarms since the daemon started.", alarms },
  { "gpubroker_events_total", "counter", "Events since the books began.", events },
  { "gpubroker_bus_requests_total", "counter", "Requests, since the daemon started.", requests },
  { "gpubroker_bus_refused_total", "counter", "Requests that reached no verb, and why.", refused },
};
/* clang-format on */

char *
metrics_render (struct broker *b)
{
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream (&text, &size);

  if (!f)
    abort ();
  for (size_t i = 0; i < N_ELEMENTS (families); i++) {
    struct page p = { f, b, families[i].name };

    fprintf (f, "# HELP %s %s\n# TYPE %s %s\n", families[i].name, families[i].help,
             families[i].name, families[i].type);
    families[i].samples (&p);
  }
  if (fclose (f) != 0)
    abort ();
  return text;
}
