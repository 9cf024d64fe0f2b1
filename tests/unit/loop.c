/* loop.c - timers in order, stale events, hooks, signals */
#include "config.h"

#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/loop.h"
#include "tests/unit/tap.h"

static struct loop *loop;
static char trace[256];
static size_t ntrace;

static void
mark (void *ctx)
{
  trace[ntrace++] = *(const char *) ctx;
}

static void
turns (int n)
{
  for (int i = 0; i < n; i++)
    loop_turn (loop, 0, NULL);
}

/* Turns until the trace has n marks or two seconds are over. */
static void
until (size_t n)
{
  int64_t end = clock_boot_ms () + 2000;

  while (ntrace < n && clock_boot_ms () < end)
    loop_turn (loop, 50, NULL);
}

static void
clear (void)
{
  memset (trace, 0, sizeof trace);
  ntrace = 0;
}

static void
test_order (void)
{
  uint64_t b;

  clear ();
  loop_after (loop, 30, mark, "c");
  b = loop_after (loop, 20, mark, "b");
  loop_after (loop, 10, mark, "a");
  loop_after (loop, 10, mark, "A");
  loop_cancel (loop, b);
  loop_cancel (loop, b);
  loop_cancel (loop, 0);
  until (3);
  is_str (trace, "aAc", "timers fire in order of time, then of age; a cancelled one does not");
  loop_after (loop, 0, mark, "d");
  loop_cancel (loop, b);
  turns (2);
  is_str (trace, "aAcd", "an old id does not hit the timer that has its slot now");
}

static void
again (void *ctx)
{
  mark ("x");
  loop_after (loop, 0, again, ctx);
}

static void
test_zero (void)
{
  uint64_t many[200];

  clear ();
  loop_after (loop, 0, again, NULL);
  turns (3);
  is_num ((int64_t) ntrace, 3, "a timer of 0 ms that adds itself runs once a turn");
  for (int i = 0; i < 200; i++)
    many[i] = loop_after (loop, 100000 + i * 7 % 50, mark, "!");
  for (int i = 0; i < 200; i += 2)
    loop_cancel (loop, many[i]);
  for (int i = 1; i < 200; i += 2)
    loop_cancel (loop, many[i]);
  ok (strchr (trace, '!') == NULL, "two hundred timers are added and cancelled");
}

struct pair {
  int a[2], b[2];
  int seen, stolen;
};

static void
steal (void *ctx, uint32_t events)
{
  struct pair *p = ctx;
  int other = p->seen++ ? -1 : 0;

  (void) events;
  if (other < 0)
    p->stolen++;
  /* Both pipes are readable in this turn: the second must not be called after it is unwatched. */
  loop_unwatch (loop, p->a[0]);
  loop_unwatch (loop, p->b[0]);
}

static void
not_mine (void *ctx, uint32_t events)
{
  (void) events;
  ((struct pair *) ctx)->stolen++;
}

static void
swap (void *ctx, uint32_t events)
{
  struct pair *p = ctx;

  (void) events;
  if (p->seen++)
    return;
  loop_unwatch (loop, p->a[0]);
  loop_unwatch (loop, p->b[0]);
  loop_watch (loop, p->a[0], EPOLLPRI, not_mine, p, NULL);
  loop_watch (loop, p->b[0], EPOLLPRI, not_mine, p, NULL);
}

static void
two_ready (loop_fd_fn *fn, struct pair *p)
{
  *p = (struct pair){ 0 };
  if (pipe (p->a) < 0 || pipe (p->b) < 0 || write (p->a[1], "x", 1) != 1 ||
      write (p->b[1], "x", 1) != 1)
    return;
  loop_watch (loop, p->a[0], EPOLLIN, fn, p, NULL);
  loop_watch (loop, p->b[0], EPOLLIN, fn, p, NULL);
  turns (2);
}

static void
pair_done (struct pair *p)
{
  for (int i = 0; i < 2; i++) {
    loop_unwatch (loop, p->a[i]);
    loop_unwatch (loop, p->b[i]);
    close (p->a[i]);
    close (p->b[i]);
  }
}

static void
test_stale (void)
{
  struct pair p;

  two_ready (steal, &p);
  ok (p.seen == 1 && p.stolen == 0, "an fd unwatched in a turn gets no event of that turn");
  pair_done (&p);
  two_ready (swap, &p);
  ok (p.seen == 1 && p.stolen == 0, "an old event is not given to the fd's new watcher");
  pair_done (&p);
}

static int hook_calls, hook_more;

static int
hook (void *ctx)
{
  (void) ctx;
  hook_calls++;
  return hook_more-- > 0;
}

static void
test_hook (void)
{
  int64_t before;

  hook_more = 3;
  loop_each (loop, hook, NULL);
  turns (1);
  before = clock_boot_ms ();
  loop_turn (loop, 5000, NULL);
  ok (clock_boot_ms () - before < 4000, "a hook that has more to do keeps the wait from blocking");
  hook_more = 0;
}

static void
stop (void *ctx)
{
  mark (ctx);
  loop_stop (loop);
}

static void
test_signal (void)
{
  clear ();
  loop_signal (loop, SIGUSR1, mark, "1", NULL);
  loop_signal (loop, SIGUSR2, stop, "2", NULL);
  kill (getpid (), SIGUSR1);
  kill (getpid (), SIGUSR2);
  ok (loop_run (loop, NULL) == 0, "loop_run returns after loop_stop");
  is_str (trace, "12", "signals come as calls");
}

int
main (void)
{
  alarm (30);
  loop = loop_new (NULL);
  test_order ();
  test_stale ();
  test_hook ();
  test_signal ();
  test_zero ();
  loop_free (loop);
  return done ();
}
