/* supervise_child.c - a role: when its process starts again, and how it is described */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/supervise_int.h"

void
child_set_state (struct child *c, enum child_state state)
{
  if (c->state == state)
    return;
  c->state = state;
  c->since = clock_wall_ms ();
  supervise_deliver_soon (c->sup);
}

void
child_note_error (struct child *c, const struct err *e)
{
  c->errors++;
  c->last = *e;
  c->last_at = clock_wall_ms ();
}

static char **
copy_argv (const char *const *argv)
{
  size_t n = 0;
  char **copy;

  while (argv[n])
    n++;
  copy = calloc (n + 1, sizeof *copy);
  if (!copy)
    abort ();
  for (size_t i = 0; i < n; i++)
    copy[i] = supervise_copy (argv[i]);
  return copy;
}

static void
set_config (struct child *c, const json_t *config, const struct child_secret *secrets, size_t n)
{
  json_decref (c->config);
  c->config = config ? json_deep_copy (config) : json_object ();
  secrets_done (&c->secrets);
  for (size_t i = 0; i < n; i++)
    secrets_add (&c->secrets, secrets[i].name, secrets[i].bytes, secrets[i].len);
}

static void
restart_due (void *ctx)
{
  struct child *c = ctx;

  c->restart_timer = 0;
  child_start_now (c);
  supervise_deliver (c->sup);
}

static void
start_in (struct child *c, int64_t ms)
{
  loop_cancel (c->sup->loop, c->restart_timer);
  c->restart_at = clock_boot_ms () + ms;
  c->restart_timer = loop_after (c->sup->loop, ms, restart_due, c);
}

struct child *
child_new (struct supervisor *s, const struct child_spec *spec, child_state_fn *on_state, void *ctx)
{
  struct child *c = calloc (1, sizeof *c);

  if (!c)
    abort ();
  c->sup = s;
  c->name = supervise_copy (spec->name);
  c->role = supervise_copy (spec->role);
  c->argv = copy_argv (spec->argv);
  c->flags = spec->flags;
  c->on_state = on_state;
  c->ctx = ctx;
  c->ready = json_object ();
  c->since = clock_wall_ms ();
  c->delay = s->times.delay_min;
  TAILQ_INIT (&c->procs);
  TAILQ_INIT (&c->queue);
  set_config (c, spec->config, spec->secrets, spec->nsecrets);
  TAILQ_INSERT_TAIL (&s->children, c, link);
  start_in (c, 0);
  return c;
}

void
child_start_now (struct child *c)
{
  struct err e = ERR_INIT;

  loop_cancel (c->sup->loop, c->restart_timer);
  c->restart_timer = 0;
  if (c->main || c->stopping || c->freed)
    return;
  c->main = proc_start (c, false, &e);
  if (c->main) {
    child_set_state (c, CHILD_STARTING);
    return;
  }
  log_at (LOG_ERR, "child.start-failed", "name=%s error=\"%s\"", c->name, e.text);
  child_note_error (c, &e);
  child_lost_main (c, false, 0);
}

/* A refused configuration is not a crash: it is tried again slowly, in case a file it names was
 * mended. */
void
child_lost_main (struct child *c, bool refused, int64_t up_for)
{
  const struct supervise_times *t = &c->sup->times;
  int64_t delay;

  c->main = NULL;
  if (c->stopping || c->freed)
    return;
  if (up_for >= t->steady)
    c->delay = t->delay_min;
  delay = refused ? t->delay_max : c->delay;
  c->delay = c->delay * 2 < t->delay_max ? c->delay * 2 : t->delay_max;
  c->restarts++;
  start_in (c, delay);
  child_set_state (c, delay == t->delay_max && !refused ? CHILD_QUARANTINED : CHILD_DOWN);
  log_at (LOG_WARNING, "child.down", "name=%s restart_ms=%lld", c->name, (long long) delay);
  calls_refuse_late (c);
}

void
child_reconfigure (struct child *c, const json_t *config, const struct child_secret *secrets,
                   size_t nsecrets)
{
  struct proc *old = c->main;

  set_config (c, config, secrets, nsecrets);
  if (c->stopping)
    return;
  c->main = NULL;
  if (old) {
    proc_retire (old);
    proc_check_idle (old);
  }
  c->delay = c->sup->times.delay_min;
  start_in (c, 0);
}

void
child_stop (struct child *c)
{
  struct err e = ERR_INIT;
  struct proc *p;
  struct call *k;

  if (c->stopping)
    return;
  c->stopping = true;
  loop_cancel (c->sup->loop, c->restart_timer);
  c->restart_timer = 0;
  err_code (&e, ERR_UNAVAILABLE, "stopping", "%s is being stopped", c->name);
  while ((k = TAILQ_FIRST (&c->queue)))
    call_end (k, &e);
  TAILQ_FOREACH (p, &c->procs, link)
    proc_close (p);
  child_set_state (c, CHILD_STOPPING);
  child_check_stopped (c);
}

void
child_check_stopped (struct child *c)
{
  if (c->stopping && TAILQ_EMPTY (&c->procs))
    child_set_state (c, CHILD_STOPPED);
}

/* The memory goes in a later turn: this may be called from a callback of the child's own. */
void
child_free (struct child *c)
{
  struct proc *p;

  if (!c || c->freed)
    return;
  c->freed = c->stopping = true;
  loop_cancel (c->sup->loop, c->restart_timer);
  TAILQ_FOREACH (p, &c->procs, link)
    proc_kill (p);
  supervise_deliver_soon (c->sup);
}

static void
release_proc (struct proc *p)
{
  *vec_push (&p->child->sup->orphans) = p->pid;
  TAILQ_REMOVE (&p->child->procs, p, link);
  while (!TAILQ_EMPTY (&p->calls)) {
    struct call *k = TAILQ_FIRST (&p->calls);

    TAILQ_REMOVE (&p->calls, k, link);
    call_free (k);
  }
  proc_free (p);
}

void
child_release (struct child *c)
{
  struct call *k;
  struct proc *p;

  while ((p = TAILQ_FIRST (&c->procs)))
    release_proc (p);
  while ((k = TAILQ_FIRST (&c->queue))) {
    TAILQ_REMOVE (&c->queue, k, link);
    call_free (k);
  }
  for (char **a = c->argv; *a; a++)
    free (*a);
  free (c->argv);
  secrets_done (&c->secrets);
  strikes_done (&c->strikes);
  json_decref (c->config);
  json_decref (c->ready);
  free (c->name);
  free (c->role);
  free (c);
}
