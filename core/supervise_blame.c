/* supervise_blame.c - what becomes of the calls of a dead process, and which of them killed it
 *
 * One of many calls in flight kills a runner, and none says so.  Halving the suspects finds it in
 * log2(n) deaths while the innocent ones carry on in full; one by one would make them wait for each
 * other's whole run.
 */
#include "config.h"

#include "core/log.h"
#include "core/supervise_int.h"

static void
end_dead (struct call *k, const struct err *why, const char *code)
{
  struct err e = ERR_INIT;

  err_code (&e, call_lost_kind (k), code, "'%s': %s", k->name, why->text);
  call_end (k, &e);
}

static bool
is_suspect (const struct call *k, bool crashed)
{
  return crashed && k->sent && !k->cancelled;
}

/* Each half goes into a process of its own, where it carries on unless it holds the call that
 * kills. */
static void
halve (struct proc *p, size_t n)
{
  struct err e = ERR_INIT;
  struct proc *half[2];
  struct call *k;
  size_t i = 0;

  log_at (LOG_WARNING, "child.suspects", "name=%s calls=%zu", p->child->name, n);
  half[0] = proc_start (p->child, true, &e);
  half[1] = proc_start (p->child, true, &e);
  while ((k = TAILQ_FIRST (&p->calls))) {
    struct proc *to = half[i++ * 2 / n];

    if (to)
      call_give (k, to);
    else
      call_requeue (k);
  }
}

static void
replay (struct proc *p, bool crashed)
{
  struct call *k, *prev;

  for (k = TAILQ_LAST (&p->calls, call_list); k; k = prev) {
    prev = TAILQ_PREV (k, call_list, link);
    if (k->cancelled)
      end_dead (k, &p->err, "child-died");
    else if (!is_suspect (k, crashed))
      call_requeue (k);
  }
  k = TAILQ_FIRST (&p->calls);
  if (p->ncalls == 1) {
    log_at (LOG_ERR, "child.culprit", "name=%s call=%s key=%s", p->child->name, k->name, k->key);
    call_strike (k);
    k->mutates = false; /* a call of such a child may be repeated: nothing is unknown */
    end_dead (k, &p->err, "runner-crash");
  } else if (p->ncalls > 1) {
    halve (p, p->ncalls);
  }
}

void
calls_of_dead (struct proc *p, bool crashed)
{
  struct call *k;

  if ((p->child->flags & CHILD_REPLAY) && !p->child->stopping) {
    replay (p, crashed);
    return;
  }
  while ((k = TAILQ_FIRST (&p->calls))) {
    if (crashed)
      call_strike (k);
    end_dead (k, &p->err, p->child->stopping ? "stopping" : "child-died");
  }
}
