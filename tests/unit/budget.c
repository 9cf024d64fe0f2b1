/* budget.c - when a balance is low, and what a provider is paid */
#include "config.h"

#include "core/broker.h"
#include "tests/unit/tap.h"

#define DOLLARS(n) ((n) *INT64_C (1000000))
#define HOURS(n)   ((n) *INT64_C (3600000))

static void
low (void)
{
  ok (!budget_low (DOLLARS (50), 0, (uint64_t) DOLLARS (50), 0),
      "as much as was asked for is enough");
  ok (budget_low (DOLLARS (50) - 1, 0, (uint64_t) DOLLARS (50), 0), "less is not");
  ok (!budget_low (0, DOLLARS (300), 0, 0), "nobody asked");
  ok (!budget_low (DOLLARS (48), DOLLARS (2), 0, HOURS (24)), "24 hours at $2 are $48");
  ok (budget_low (DOLLARS (48) - 1, DOLLARS (2), 0, HOURS (24)), "a millionth less does not last");
  ok (!budget_low (0, 0, 0, HOURS (24)), "what spends nothing lasts");
  ok (!budget_low (INT64_MAX, INT64_MAX / 2, 0, HOURS (1)) &&
          budget_low (INT64_MAX - 1, INT64_MAX, 0, HOURS (1)),
      "sums beyond all money do not overflow");
}

static void
rates (void)
{
  struct broker b = { 0 };
  struct lease *l = lease_new (1);
  static const struct {
    const char *provider;
    enum attempt_state state;
  } all[] = { { "a", ATTEMPT_CREATED }, { "a", ATTEMPT_LEAKED },  { "b", ATTEMPT_REMOVING },
              { "a", ATTEMPT_GONE },    { "a", ATTEMPT_REFUSED }, { "a", ATTEMPT_UNKNOWN } };

  for (size_t i = 0; i < N_ELEMENTS (all); i++) {
    struct attempt *a = attempt_new (l);

    set_str (&a->provider, all[i].provider);
    a->state = all[i].state;
    a->price_udollar = 1 << i;
  }
  *vec_push (&b.leases) = l;
  is_num (budget_rate_at (&b, "a"), 1 + 2 + 32, "what is there, leaked or perhaps there counts");
  is_num (budget_rate_at (&b, "b"), 4, "each provider for itself");
  is_num (budget_rate_at (&b, "c"), 0, "and nothing where nothing is");
  lease_free (l);
  vec_free (&b.leases);
}

int
main (void)
{
  low ();
  rates ();
  return done ();
}
