/* cases_end.c - what a process has after many calls that it had not after a few */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

/* A table of file descriptors grows in steps of 64: a leak of one a round needs that many. */
enum {
  BURST = 64,
  WARM = 4,
  ROUNDS = 30,
  ROUNDS_BLIND = 80,
  PERIODS = 3,
  SLACK_FDS = 8,
  SLACK_KIB = 16 * 1024
};

static bool
one_round (struct test *t)
{
  const char *token = new_token (t);

  ask (t, "probe", NULL);
  ask (t, "list_offers", json_pack ("{s:n}", "offer_ref"));
  ask (t, "find", find_args (token));
  ask (t, "list", NULL);
  ask (t, "create", create_args (t, "conform|no|such|offer", token));
  return !t->failed;
}

static bool
rounds (struct test *t, int n)
{
  for (int i = 0; i < n; i++)
    if (!one_round (t))
      return false;
  return true;
}

/* The host makes threads as calls need them, each with connections of its own: all of them now. */
static bool
fill (struct test *t)
{
  int64_t most = kit_number (t->kit, "max_parallel");
  int n = most > BURST ? BURST : (int) most;
  struct answer *a[BURST];

  for (int i = 0; i < n; i++)
    a[i] = ask_begin (t, DEADLINE_MS, "list_offers", json_pack ("{s:n}", "offer_ref"));
  for (int i = 0; i < n; i++)
    ask_end (t, a[i]);
  return !t->failed;
}

/* A sanitizer keeps what was freed for a while, and shadows terabytes of addresses. */
static bool
memory_grew (const struct proc_has *first, const struct proc_has *last)
{
  const long shadow_kib = 1L << 30;

  return first->size_kib < shadow_kib && last->rss_kib > first->rss_kib + SLACK_KIB;
}

static bool
grew (const struct proc_has *first, const struct proc_has *last)
{
  return last->fds > first->fds + SLACK_FDS || last->threads > first->threads ||
         last->children > 0 || memory_grew (first, last);
}

/* What leaks grows in every period.  A call that is quicker than the next one comes needs no thread
 * of its own, so that a thread may also be made late. */
CASE (leaks)
{
  struct proc_has first, last = { 0 };
  char got[300];
  int n = 0, period = 0;

  if (!fill (t) || !fill (t) || !rounds (t, WARM))
    return;
  do {
    first = proc_look (t->s->pid);
    n = t->kit->valgrind ? WARM : first.exact ? ROUNDS : ROUNDS_BLIND;
    if (!rounds (t, n))
      return;
    last = proc_look (t->s->pid);
  } while (grew (&first, &last) && ++period < PERIODS);
  snprintf (got, sizeof got,
            "%s %ld then %ld, threads %ld then %ld, children %ld then %ld, memory %ld then %ld KiB",
            first.exact ? "file descriptors" : "table of file descriptors", first.fds, last.fds,
            first.threads, last.threads, first.children, last.children, first.rss_kib,
            last.rss_kib);
  expect_text (t, !grew (&first, &last), got,
               "after %d more rounds of calls as many file descriptors, threads, children "
               "and as much memory as before",
               n);
}
