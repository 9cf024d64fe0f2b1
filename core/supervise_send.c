/* supervise_send.c - which calls go to which process, and when
 *
 * Runs inside supervisor_flush only: nothing here may call back.
 */
#include "config.h"

#include "core/clock.h"
#include "core/supervise_int.h"

static int
put_call (struct call *k, int64_t left, struct err *e)
{
  AUTO_JSON json_t *body = json_pack ("{s:s, s:I, s:O}", "call", k->name, "deadline_ms",
                                      (json_int_t) left, "args", k->args);

  for (size_t i = 0; i < k->secrets.list.n; i++) {
    const struct child_secret *s = &k->secrets.list.at[i];

    if (wire_put_secret (&k->proc->out, k->id, s->name, s->bytes, s->len, e) < 0)
      return -1;
  }
  return wire_put_json (&k->proc->out, WIRE_CALL, k->id, 0, body, e);
}

static void
send_call (struct call *k)
{
  struct supervisor *s = k->child->sup;
  int64_t left = k->deadline - clock_boot_ms ();
  struct err e = ERR_INIT;

  if (left <= 0)
    return; /* its timer is due in the next turn */
  if (put_call (k, left, &e) < 0) {
    call_end (k, &e);
    return;
  }
  k->sent = true;
  if (k->id > k->proc->last_id)
    k->proc->last_id = k->id;
  loop_cancel (s->loop, k->timer);
  k->timer = loop_after (s->loop, left + s->times.grace, call_due, k);
}

void
calls_send (struct proc *p)
{
  struct call *k, *next;

  if (p->stage != PROC_UP || p->closing)
    return;
  for (k = TAILQ_FIRST (&p->calls); k; k = next) {
    next = TAILQ_NEXT (k, link);
    if (!k->sent)
      send_call (k);
  }
}

static bool
has_room (const struct proc *p)
{
  return p->ncalls < p->parallel && p->out.end - p->out.start < BACKLOG_MAX;
}

static size_t
cells (const struct child *c)
{
  const struct proc *p;
  size_t n = 0;

  TAILQ_FOREACH (p, &c->procs, link)
    n += p->cell;
  return n;
}

/* What killed a process once does not sit beside others again. */
static bool
dispatch_alone (struct call *k)
{
  struct child *c = k->child;
  struct err e = ERR_INIT;
  struct proc *p;

  if (!(c->flags & CHILD_REPLAY) || strike_count (&c->strikes, k->name, k->key) == 0)
    return false;
  p = cells (c) < CELLS_MAX ? proc_start (c, true, &e) : NULL;
  if (p)
    call_give (k, p);
  return true;
}

void
calls_dispatch (struct child *c)
{
  struct call *k, *next;

  if (!c->main || c->main->stage != PROC_UP || c->stopping)
    return;
  for (k = TAILQ_FIRST (&c->queue); k; k = next) {
    next = TAILQ_NEXT (k, link);
    if (dispatch_alone (k))
      continue;
    if (!has_room (c->main))
      return;
    call_give (k, c->main);
    send_call (k);
  }
}
