/* budget.c - the spend guards: sums over the books, nothing else */
#include "config.h"

#include <string.h>

#include "core/broker.h"

static bool
counts (const struct lease *l, const char *owner)
{
  return !lease_over (l) && (!owner || strcmp (l->owner, owner) == 0);
}

int64_t
budget_rate (const struct broker *b, const char *owner)
{
  int64_t sum = 0;

  for (size_t i = 0; i < b->leases.n; i++)
    if (counts (b->leases.at[i], owner))
      sum += lease_rate (b->leases.at[i]);
  return sum;
}

int64_t
budget_rate_at (const struct broker *b, const char *provider)
{
  int64_t sum = 0;

  for (size_t i = 0; i < b->leases.n; i++)
    for (size_t k = 0; k < b->leases.at[i]->nattempts; k++) {
      const struct attempt *a = b->leases.at[i]->attempts[k];

      if (!attempt_ended (a->state) && strcmp (a->provider, provider) == 0)
        sum += a->price_udollar;
    }
  return sum;
}

bool
budget_low (int64_t balance, int64_t rate, uint64_t least, int64_t last_ms)
{
  return (__int128) balance < (__int128) least ||
         (last_ms > 0 && (__int128) balance * 3600000 < (__int128) rate * last_ms);
}

uint32_t
budget_leases (const struct broker *b, const char *owner)
{
  uint32_t n = 0;

  for (size_t i = 0; i < b->leases.n; i++)
    n += counts (b->leases.at[i], owner);
  return n;
}

static const struct conf_limits *
own_limits (const struct broker *b, const char *owner)
{
  for (size_t i = 0; i < b->conf.bus.nuids; i++)
    if (strcmp (b->conf.bus.uids[i].principal, owner) == 0)
      return &b->conf.bus.uids[i].limits;
  return NULL;
}

static int
within (const struct broker *b, const struct conf_limits *lim, const char *owner, int64_t more,
        const struct lease *except, struct err *e)
{
  const char *who = owner ? owner : "all owners";
  uint32_t leases = budget_leases (b, owner);
  int64_t rate = budget_rate (b, owner);

  if (except && counts (except, owner)) {
    leases--;
    rate -= lease_rate (except);
  }
  if (leases >= lim->leases)
    return err_code (e, ERR_QUOTA, "limit",
                     "%s: %u leases, the limit is %u: release one or raise the limit", who, leases,
                     lim->leases);
  if (lim->udollar_per_hour != UINT64_MAX && rate + more > (int64_t) lim->udollar_per_hour)
    return err_code (e, ERR_QUOTA, "over-budget",
                     "%s: $%.2f/h are committed and $%.2f/h are asked for, the limit is $%.2f/h",
                     who, (double) rate / 1e6, (double) more / 1e6,
                     (double) lim->udollar_per_hour / 1e6);
  return 0;
}

int
budget_admit (const struct broker *b, const char *owner, int64_t more, const struct lease *except,
              struct err *e)
{
  const struct conf_limits *own = own_limits (b, owner);

  if (within (b, &b->conf.limits.all, NULL, more, except, e) < 0 ||
      within (b, &b->conf.limits.per_owner, owner, more, except, e) < 0)
    return -1;
  return own ? within (b, own, owner, more, except, e) : 0;
}
