/* balance.c - an account that runs dry is told of before it is dry: once, and again after it
 * recovered
 *
 * Accounts are asked every few minutes; what is low is remembered over restarts.
 */
#include "config.h"

#include <stdio.h>

#include "core/broker.h"
#include "core/json.h"

static void
note (struct provider *p, bool low)
{
  char key[128];

  snprintf (key, sizeof key, "low:%.100s", p->name);
  store_put_meta (p->broker->store, key, low ? "1" : "0");
}

static bool
noted (const struct provider *p)
{
  AUTO_FREE char *text = NULL;
  char key[128];

  snprintf (key, sizeof key, "low:%.100s", p->name);
  text = store_meta (p->broker->store, key);
  return text && text[0] == '1';
}

void
balance_look (struct provider *p)
{
  int64_t balance = json_i64 (p->identity, "balance_udollar", -1),
          rate = budget_rate_at (p->broker, p->name);
  bool was = noted (p), low;
  char text[200];

  if (balance < 0)
    return;
  low = budget_low (balance, rate, p->conf->balance_udollar, p->conf->balance_ms);
  if (low == was)
    return;
  note (p, low);
  snprintf (text, sizeof text, "%.64s has $%.2f left, and $%.2f/h are spent there", p->name,
            (double) balance / 1e6, (double) rate / 1e6);
  if (low)
    feed_alarm (p->broker, "balance-low", text);
  else
    feed_provider (p->broker, p->name, "balance-recovered", text);
}
