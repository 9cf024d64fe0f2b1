/* supervise_pulse.c - is a process still there
 *
 * A call's deadline may be many minutes away, so a child that stands still (stopped, dead-locked)
 * would hold its calls for as long.  Each child gives a PING back from the loop that reads its
 * frames, which no call blocks.  Three in a row without a sign of life: one alone proves nothing,
 * for the whole machine may have slept.
 */
#include "config.h"

#include "core/log.h"
#include "core/supervise_int.h"

enum { UNANSWERED_MAX = 3 };

/* It gets no more work, and what may be repeated is repeated elsewhere. */
static void
hung (struct proc *p)
{
  struct child *c = p->child;
  bool was_main = c->main == p;

  log_at (LOG_ERR, "child.hung", "name=%s pid=%d calls=%zu", c->name, (int) p->pid, p->ncalls);
  err_code (&p->err, ERR_UNAVAILABLE, "child-died", "%s hung", c->name);
  child_note_error (c, &p->err);
  p->stuck = true;
  proc_retire (p);
  proc_check_idle (p);
  if (was_main)
    child_start_now (c);
}

static void
pulse_due (void *ctx)
{
  struct proc *p = ctx;
  struct supervisor *s = p->child->sup;

  p->timer = 0;
  if (p->unanswered == UNANSWERED_MAX) {
    hung (p);
    supervise_deliver (s);
    return;
  }
  p->unanswered++;
  wire_put (&p->out, WIRE_PING, 0, 0, "{}", 2, NULL);
  p->timer = loop_after (s->loop, s->times.ping, pulse_due, p);
}

void
pulse_start (struct proc *p)
{
  p->timer = loop_after (p->child->sup->loop, p->child->sup->times.ping, pulse_due, p);
}
