/* loop.h - the one place that waits: fds, timers, signals
 *
 * One thread, no locks.  A turn: wait, call what is due (at most LOOP_EVENTS fds, every timer that
 * is due, in order of time), then every loop_each() hook in the order they were added; when a hook
 * returns 1 the next wait does not block.  Timers count CLOCK_BOOTTIME: suspend counts, wall time
 * does not matter. Any of these may be called from inside any callback, loop_free() excepted.
 */
#ifndef GPUB_LOOP_H
#define GPUB_LOOP_H

#include <stdint.h>

#include <sys/epoll.h>

#include "core/err.h"

enum { LOOP_EVENTS = 64 };

struct loop;

typedef void loop_fd_fn (void *ctx, uint32_t events); /* EPOLLIN and friends */
typedef void loop_fn (void *ctx);
typedef int loop_each_fn (void *ctx);

struct loop *loop_new (struct err *e);
void loop_free (struct loop *loop); /* gives blocked signals back */

/* The fd stays the caller's; unwatch before close.  Level-triggered unless events has EPOLLET. */
int loop_watch (struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *ctx,
                struct err *e);
void loop_change (struct loop *loop, int fd, uint32_t events);
void loop_unwatch (struct loop *loop, int fd); /* nothing happens for an fd that is not watched */

/* Calls fn once, in ms or a little later; 0: in the next turn, never from here.  The id is never 0.
 */
uint64_t loop_after (struct loop *loop, int64_t ms, loop_fn *fn, void *ctx);
void loop_cancel (struct loop *loop, uint64_t id); /* nothing happens for 0 or a timer that fired */

/* The signal is blocked and comes as a call, with ctx.  One handler per signal. */
int loop_signal (struct loop *loop, int signo, loop_fn *fn, void *ctx, struct err *e);

void loop_each (struct loop *loop, loop_each_fn *fn,
                void *ctx); /* at most 8 hooks, for the loop's life */

int loop_run (struct loop *loop, struct err *e); /* until loop_stop; -1 when epoll itself fails */
/* One turn, waiting at most max_ms (-1: for ever): for tests and start-up. */
int loop_turn (struct loop *loop, int64_t max_ms, struct err *e);
void loop_stop (struct loop *loop); /* loop_run returns after this turn's hooks */

#endif
