/* supervise_call.c - a call: queued, sent, overdue, ended; and who is to blame when its process
 * dies */
#include "config.h"

#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/supervise_int.h"

static void
unlink_call (struct call *k)
{
  if (k->proc) {
    TAILQ_REMOVE (&k->proc->calls, k, link);
    k->proc->ncalls--;
    k->proc = NULL;
  } else {
    TAILQ_REMOVE (&k->child->queue, k, link);
    k->child->queued--;
  }
}

void
call_free (struct call *k)
{
  loop_cancel (k->child->sup->loop, k->timer);
  secrets_done (&k->secrets);
  secrets_done (&k->answer_secrets);
  json_decref (k->args);
  json_decref (k->answer);
  free (k->name);
  free (k->key);
  free (k);
}

void
call_end (struct call *k, const struct err *e)
{
  struct supervisor *s = k->child->sup;
  struct proc *p = k->proc;

  unlink_call (k);
  loop_cancel (s->loop, k->timer);
  k->timer = 0;
  k->err = *e;
  TAILQ_INSERT_TAIL (&s->ended, k, link);
  supervise_deliver_soon (s);
  if (p)
    proc_check_idle (p);
}

/* What a call that did not come back ends as. */
enum err_kind
call_lost_kind (const struct call *k)
{
  return k->sent && k->mutates ? ERR_UNKNOWN : ERR_UNAVAILABLE;
}

void
call_strike (const struct call *k)
{
  struct child *c = k->child;
  const struct supervise_times *t = &c->sup->times;
  unsigned n =
      strike_add (&c->strikes, k->name, k->key, clock_boot_ms (), t->quarantine, t->quarantine_max);

  if (n >= STRIKES_OUT)
    log_at (LOG_ERR, "child.quarantine", "name=%s call=%s key=%s deaths=%u", c->name, k->name,
            k->key, n);
}

static void
overdue (struct call *k)
{
  struct child *c = k->child;
  struct proc *p = k->proc;
  bool was_main = c->main == p;
  struct err e = ERR_INIT;

  log_at (LOG_ERR, "child.overdue", "name=%s pid=%d call=%s key=%s", c->name, (int) p->pid, k->name,
          k->key);
  err_code (&e, call_lost_kind (k), "overdue", "%s did not return from '%s' in time", c->name,
            k->name);
  child_note_error (c, &e);
  call_strike (k);
  p->stuck = true;
  proc_retire (p);
  call_end (k, &e);
  if (was_main)
    child_start_now (c);
}

void
call_due (void *ctx)
{
  struct call *k = ctx;
  struct child *c = k->child;
  struct err e = ERR_INIT;

  k->timer = 0;
  if (k->sent) {
    overdue (k);
  } else {
    err_code (&e, ERR_UNAVAILABLE, c->main ? "overdue" : "child-down",
              "'%s' waited for %s until its deadline%s%s", k->name, c->name, c->main ? "" : ": ",
              c->main ? "" : c->last.text);
    call_end (k, &e);
  }
  supervise_deliver (c->sup);
}

static struct call *
call_new (struct child *c, const struct child_call *want)
{
  struct call *k = calloc (1, sizeof *k);

  if (!k)
    abort ();
  k->child = c;
  k->id = ++c->next_id ? c->next_id : ++c->next_id;
  k->mutates = want->mutates;
  k->name = supervise_copy (want->call);
  k->key = supervise_copy (want->key ? want->key : "");
  k->args = want->args ? want->args : json_object ();
  for (size_t i = 0; i < want->nsecrets; i++)
    secrets_add (&k->secrets, want->secrets[i].name, want->secrets[i].bytes, want->secrets[i].len);
  k->deadline = clock_boot_ms () + want->deadline_ms;
  k->on_item = want->on_item;
  k->on_result = want->on_result;
  k->ctx = want->ctx;
  return k;
}

static void
down (const struct child *c, struct err *e)
{
  int64_t ms = c->restart_at - clock_boot_ms ();

  err_code (e, ERR_UNAVAILABLE, "child-down", "%s is down: %s", c->name, c->last.text);
  e->retry_after_ms = ms > 0 ? (uint32_t) ms : 0;
}

static bool
too_late (const struct call *k)
{
  const struct child *c = k->child;

  return !c->main && c->restart_timer && k->deadline < c->restart_at;
}

/* Why a call is not even queued; false when it may be. */
static bool
refused (const struct call *k, struct err *e)
{
  const struct child *c = k->child;
  int64_t ms = strike_refused (&c->strikes, k->name, k->key, clock_boot_ms ());

  if (c->stopping) {
    err_code (e, ERR_UNAVAILABLE, "stopping", "%s is being stopped", c->name);
  } else if (ms > 0) {
    err_code (e, ERR_UNAVAILABLE, "quarantined",
              "'%s' for '%s' killed %s %u times: refused for %lld s", k->name, k->key, c->name,
              strike_count (&c->strikes, k->name, k->key), (long long) (ms + 999) / 1000);
    e->retry_after_ms = (uint32_t) ms;
  } else if (c->queued > QUEUE_MAX) {
    err_code (e, ERR_UNAVAILABLE, "queue-full", "%d calls wait for %s already", QUEUE_MAX, c->name);
  } else if (too_late (k)) {
    down (c, e);
  } else {
    return false;
  }
  return true;
}

uint32_t
child_call (struct child *c, const struct child_call *want)
{
  struct call *k = call_new (c, want);
  struct err e = ERR_INIT;

  c->calls++;
  TAILQ_INSERT_TAIL (&c->queue, k, link);
  c->queued++;
  if (refused (k, &e))
    call_end (k, &e);
  else
    k->timer = loop_after (c->sup->loop, want->deadline_ms, call_due, k);
  return k->id;
}

void
calls_refuse_late (struct child *c)
{
  struct call *k, *next;
  struct err e = ERR_INIT;

  for (k = TAILQ_FIRST (&c->queue); k; k = next) {
    next = TAILQ_NEXT (k, link);
    if (!too_late (k))
      continue;
    down (c, &e);
    call_end (k, &e);
  }
}

static struct call *
find (const struct child *c, uint32_t id)
{
  const struct proc *p;
  struct call *k;

  TAILQ_FOREACH (p, &c->procs, link)
    TAILQ_FOREACH (k, &p->calls, link)
      if (k->id == id)
        return k;
  TAILQ_FOREACH (k, &c->queue, link)
    if (k->id == id)
      return k;
  return NULL;
}

void
child_ack (struct child *c, uint32_t id)
{
  struct call *k = find (c, id);

  if (!k || !k->sent || !k->want_ack)
    return;
  k->want_ack = false;
  if (k->proc->stage == PROC_UP && !k->proc->shut)
    wire_put (&k->proc->out, WIRE_ACK, id, 0, "{}", 2, NULL);
}

void
child_cancel (struct child *c, uint32_t id)
{
  struct call *k = find (c, id);
  struct err e = ERR_INIT;

  if (!k || k->cancelled)
    return;
  if (!k->sent) {
    err_set (&e, ERR_CANCELLED, "'%s' was cancelled before it was sent", k->name);
    call_end (k, &e);
    return;
  }
  k->cancelled = true;
  if (k->proc->stage == PROC_UP && !k->proc->shut)
    wire_put (&k->proc->out, WIRE_CANCEL, id, 0, "{}", 2, NULL);
}

void
call_give (struct call *k, struct proc *p)
{
  unlink_call (k);
  TAILQ_INSERT_TAIL (&p->calls, k, link);
  p->ncalls++;
  k->proc = p;
  k->sent = k->want_ack = false;
}

void
call_requeue (struct call *k)
{
  unlink_call (k);
  TAILQ_INSERT_HEAD (&k->child->queue, k, link);
  k->child->queued++;
  k->sent = k->want_ack = false;
}
