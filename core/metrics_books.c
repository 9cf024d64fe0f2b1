/* metrics_books.c - leases, money, and what bills without a lease */
#include "config.h"

#include "core/json.h"
#include "core/metrics_int.h"
#include "core/orphans.h"

void
metric_leases (struct page *p)
{
  unsigned n[LEASE_STATES] = { 0 };

  for (size_t i = 0; i < p->b->leases.n; i++)
    n[p->b->leases.at[i]->state]++;
  for (int s = 0; s < LEASE_STATES; s++)
    if (!lease_ended ((enum lease_state) s))
      sample (p, "state", lease_state_name ((enum lease_state) s), n[s]);
}

void
metric_rate (struct page *p)
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

void
metric_provider_rate (struct page *p)
{
  for (size_t i = 0; i < p->b->providers.n; i++) {
    const char *name = p->b->providers.at[i]->name;

    sample (p, "provider", name, dollars (budget_rate_at (p->b, name)));
  }
}

void
metric_spent (struct page *p)
{
  sample (p, NULL, NULL, dollars (spent_total (p->b, now_ms ())));
}

void
metric_leaked (struct page *p)
{
  unsigned n;

  sum_leaked (p->b, &n);
  sample (p, NULL, NULL, n);
}

void
metric_leaked_rate (struct page *p)
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

void
metric_orphans (struct page *p)
{
  orphans_of (p, false);
}

void
metric_orphans_rate (struct page *p)
{
  orphans_of (p, true);
}
