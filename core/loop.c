/* loop.c - the one place that waits
 *
 * Only one timerfd, armed for the earliest timer: epoll_wait's own timeout neither counts suspend
 * nor is finer than what it was told before the wait.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "core/clock.h"
#include "core/heap.h"
#include "core/loop.h"

enum { MAX_HOOKS = 8, MAX_SIGNO = 64 };

struct watch {
  loop_fd_fn *fn; /* NULL: not watched */
  void *ctx;
  uint32_t generation; /* an event of this turn for an fd closed and used again is not for its new
                          owner */
};

struct hook {
  loop_each_fn *fn;
  void *ctx;
};

struct loop {
  int epoll, timerfd, signalfd;
  int64_t armed;              /* what the timerfd is set to */
  VEC (struct watch) watches; /* by fd */
  struct heap timers;
  struct hook hooks[MAX_HOOKS];
  size_t nhooks;
  struct {
    loop_fn *fn;
    void *ctx;
  } signals[MAX_SIGNO + 1];
  sigset_t blocked;
  bool stop, more;
};

static void
timer_fd_fired (void *ctx, uint32_t events)
{
  struct loop *loop = ctx;
  uint64_t n;

  (void) events;
  if (read (loop->timerfd, &n, sizeof n) == sizeof n)
    loop->armed = INT64_MAX;
}

static void
signal_came (void *ctx, uint32_t events)
{
  struct loop *loop = ctx;
  struct signalfd_siginfo si;

  (void) events;
  while (read (loop->signalfd, &si, sizeof si) == sizeof si)
    if (si.ssi_signo <= MAX_SIGNO && loop->signals[si.ssi_signo].fn)
      loop->signals[si.ssi_signo].fn (loop->signals[si.ssi_signo].ctx);
}

struct loop *
loop_new (struct err *e)
{
  struct loop *loop = calloc (1, sizeof *loop);

  if (!loop)
    abort ();
  loop->armed = INT64_MAX;
  loop->signalfd = -1;
  sigemptyset (&loop->blocked);
  loop->epoll = epoll_create1 (EPOLL_CLOEXEC);
  loop->timerfd = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (loop->epoll < 0 || loop->timerfd < 0) {
    err_set (e, ERR_INTERNAL, "event loop: %s", strerror (errno));
    loop_free (loop);
    return NULL;
  }
  if (loop_watch (loop, loop->timerfd, EPOLLIN, timer_fd_fired, loop, e) < 0) {
    loop_free (loop);
    return NULL;
  }
  return loop;
}

static void
close_fd (int fd)
{
  if (fd >= 0)
    close (fd);
}

void
loop_free (struct loop *loop)
{
  if (!loop)
    return;
  close_fd (loop->epoll);
  close_fd (loop->timerfd);
  close_fd (loop->signalfd);
  sigprocmask (SIG_UNBLOCK, &loop->blocked, NULL);
  vec_free (&loop->watches);
  heap_free (&loop->timers);
  free (loop);
}

static int
tell_epoll (struct loop *loop, int op, int fd, uint32_t events)
{
  struct epoll_event ev = { .events = events };

  ev.data.u64 = (uint64_t) loop->watches.at[fd].generation << 32 | (uint32_t) fd;
  return epoll_ctl (loop->epoll, op, fd, &ev);
}

int
loop_watch (struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *ctx, struct err *e)
{
  while (loop->watches.n <= (size_t) fd)
    vec_push (&loop->watches);
  loop->watches.at[fd].generation++;
  if (tell_epoll (loop, EPOLL_CTL_ADD, fd, events) < 0)
    return err_set (e, ERR_INTERNAL, "watch fd %d: %s", fd, strerror (errno));
  loop->watches.at[fd].fn = fn;
  loop->watches.at[fd].ctx = ctx;
  return 0;
}

static bool
watched (const struct loop *loop, int fd)
{
  return fd >= 0 && (size_t) fd < loop->watches.n && loop->watches.at[fd].fn;
}

void
loop_change (struct loop *loop, int fd, uint32_t events)
{
  if (watched (loop, fd))
    tell_epoll (loop, EPOLL_CTL_MOD, fd, events);
}

void
loop_unwatch (struct loop *loop, int fd)
{
  if (!watched (loop, fd))
    return;
  epoll_ctl (loop->epoll, EPOLL_CTL_DEL, fd, NULL);
  loop->watches.at[fd].fn = NULL;
}

uint64_t
loop_after (struct loop *loop, int64_t ms, loop_fn *fn, void *ctx)
{
  return heap_add (&loop->timers, clock_boot_ms () + (ms > 0 ? ms : 0), fn, ctx);
}

void
loop_cancel (struct loop *loop, uint64_t id)
{
  heap_cancel (&loop->timers, id);
}

int
loop_signal (struct loop *loop, int signo, loop_fn *fn, void *ctx, struct err *e)
{
  bool fresh = loop->signalfd < 0;

  sigaddset (&loop->blocked, signo);
  sigprocmask (SIG_BLOCK, &loop->blocked, NULL);
  loop->signals[signo].fn = fn;
  loop->signals[signo].ctx = ctx;
  loop->signalfd = signalfd (loop->signalfd, &loop->blocked, SFD_CLOEXEC | SFD_NONBLOCK);
  if (loop->signalfd < 0)
    return err_set (e, ERR_INTERNAL, "signalfd: %s", strerror (errno));
  return fresh ? loop_watch (loop, loop->signalfd, EPOLLIN, signal_came, loop, e) : 0;
}

void
loop_each (struct loop *loop, loop_each_fn *fn, void *ctx)
{
  if (loop->nhooks == MAX_HOOKS)
    abort ();
  loop->hooks[loop->nhooks++] = (struct hook){ fn, ctx };
}

static void
arm (struct loop *loop)
{
  int64_t next = heap_next (&loop->timers);
  struct itimerspec its = { 0 };

  if (next != INT64_MAX)
    next -= clock_ahead_ms (); /* the kernel's timer keeps the kernel's time */
  if (next == loop->armed)
    return;
  if (next != INT64_MAX) {
    its.it_value.tv_sec = next / 1000;
    its.it_value.tv_nsec = next % 1000 * 1000000 + 1; /* all zero would disarm */
  }
  timerfd_settime (loop->timerfd, TFD_TIMER_ABSTIME, &its, NULL);
  loop->armed = next;
}

static void
run_fds (struct loop *loop, const struct epoll_event *events, int n)
{
  for (int i = 0; i < n; i++) {
    uint32_t fd = (uint32_t) events[i].data.u64, generation = (uint32_t) (events[i].data.u64 >> 32);
    struct watch w = loop->watches.at[fd];

    if (w.fn && w.generation == generation)
      w.fn (w.ctx, events[i].events);
  }
}

/* Timers that a timer adds wait for the next turn, or a timer of 0 ms would run for ever. */
static void
run_timers (struct loop *loop)
{
  uint64_t before = loop->timers.seq;
  int64_t now = clock_boot_ms ();
  struct timer t;

  while (heap_take (&loop->timers, now, before, &t))
    t.fn (t.ctx);
}

static void
run_hooks (struct loop *loop)
{
  loop->more = false;
  for (size_t i = 0; i < loop->nhooks; i++)
    loop->more |= loop->hooks[i].fn (loop->hooks[i].ctx) == 1;
}

int
loop_turn (struct loop *loop, int64_t max_ms, struct err *e)
{
  struct epoll_event events[LOOP_EVENTS];
  int n, wait = max_ms < 0 ? -1 : max_ms > INT32_MAX ? INT32_MAX : (int) max_ms;

  arm (loop);
  n = epoll_wait (loop->epoll, events, LOOP_EVENTS, loop->more || loop->stop ? 0 : wait);
  if (n < 0 && errno != EINTR)
    return err_set (e, ERR_INTERNAL, "epoll_wait: %s", strerror (errno));
  run_fds (loop, events, n);
  run_timers (loop);
  run_hooks (loop);
  return 0;
}

int
loop_run (struct loop *loop, struct err *e)
{
  /* What was queued before the first wait (a hook's work) must not wait for the first event. */
  loop->stop = false;
  loop->more = loop->nhooks > 0;
  while (!loop->stop)
    if (loop_turn (loop, -1, e) < 0)
      return -1;
  return 0;
}

void
loop_stop (struct loop *loop)
{
  loop->stop = true;
}
