/* limiter.c - a token bucket that may go into debt, so that waiters queue up fairly without a queue
 */
#include "config.h"

#include "sdk/host/host.h"

void
limiter_init (struct limiter *l, double rate, double burst, int64_t now_ms)
{
  *l = (struct limiter){ .rate = rate, .burst = burst < 1 ? 1 : burst, .filled_ms = now_ms };
  l->tokens = l->burst;
}

static void
fill (struct limiter *l, int64_t now_ms)
{
  l->tokens += (double) (now_ms - l->filled_ms) * l->rate / 1000;
  if (l->tokens > l->burst)
    l->tokens = l->burst;
  l->filled_ms = now_ms;
}

int64_t
limiter_take (struct limiter *l, int64_t now_ms, int64_t most_ms)
{
  int64_t wait = l->not_before_ms > now_ms ? l->not_before_ms - now_ms : 0, debt = 0;

  if (l->rate > 0) {
    fill (l, now_ms);
    if (l->tokens < 1)
      debt = (int64_t) ((1 - l->tokens) * 1000 / l->rate) + 1;
  }
  if (debt > wait)
    wait = debt;
  if (wait <= most_ms && l->rate > 0)
    l->tokens -= 1;
  return wait;
}

void
limiter_pause (struct limiter *l, int64_t until_ms)
{
  if (until_ms > l->not_before_ms)
    l->not_before_ms = until_ms;
}
