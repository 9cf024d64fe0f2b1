/* spent.c - what was spent in all, kept as a sum: what is over leaves the books some day
 *
 * An attempt enters the sum when it ends, and leaves it again should the cloud show it once more.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/broker.h"

static void
save (struct broker *b)
{
  char text[24];

  snprintf (text, sizeof text, "%lld", (long long) b->spent_udollar);
  store_put_meta (b->store, "spent_udollar", text);
}

static void
add_ended (struct broker *b, const struct lease *l)
{
  for (size_t i = 0; i < l->nattempts; i++)
    if (attempt_ended (l->attempts[i]->state))
      b->spent_udollar += attempt_spent (l->attempts[i], 0);
}

static void
add_over (void *ctx, struct lease *l)
{
  add_ended (ctx, l);
  lease_free (l);
}

/* Books that have no sum yet are added up once. */
void
spent_start (struct broker *b)
{
  AUTO_FREE char *text = store_meta (b->store, "spent_udollar");

  b->spent_udollar = text ? strtoll (text, NULL, 10) : 0;
  if (text)
    return;
  for (size_t i = 0; i < b->leases.n; i++)
    add_ended (b, b->leases.at[i]);
  store_each_ended (b->store, 0, INT64_MAX, add_over, b, NULL);
  save (b);
}

void
spent_ended (const struct attempt *a, int sign)
{
  struct broker *b = a->lease->broker;

  b->spent_udollar += sign * attempt_spent (a, 0);
  save (b);
}

int64_t
spent_total (const struct broker *b, int64_t now)
{
  int64_t sum = b->spent_udollar;

  for (size_t i = 0; i < b->leases.n; i++)
    for (size_t k = 0; k < b->leases.at[i]->nattempts; k++)
      if (!attempt_ended (b->leases.at[i]->attempts[k]->state))
        sum += attempt_spent (b->leases.at[i]->attempts[k], now);
  return sum;
}
