/* supervise.c - all children together: what is written, who died, whose results are due */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/json.h"
#include "core/supervise_int.h"

const struct supervise_times supervise_times_default = {
  .hello = 10 * 1000,
  .ready = 30 * 1000,
  .ping = 10 * 1000,
  .grace = 5 * 1000,
  .delay_min = 1000,
  .delay_max = 5 * 60 * 1000,
  .steady = 60 * 1000,
  .stop = 5 * 1000,
  .quarantine = 10 * 60 * 1000,
  .quarantine_max = 60 * 60 * 1000,
};

char *
supervise_copy (const char *text)
{
  char *s = strdup (text);

  if (!s)
    abort ();
  return s;
}

void
secrets_add (struct secrets *s, const char *name, const void *bytes, size_t len)
{
  struct child_secret *x = vec_push (&s->list);
  char *copy = malloc (len + 1);

  if (!copy)
    abort ();
  if (len)
    memcpy (copy, bytes, len);
  copy[len] = '\0';
  x->name = supervise_copy (name);
  x->bytes = copy;
  x->len = len;
}

void
secrets_done (struct secrets *s)
{
  for (size_t i = 0; i < s->list.n; i++) {
    explicit_bzero ((void *) s->list.at[i].bytes, s->list.at[i].len);
    free ((void *) s->list.at[i].bytes);
    free ((void *) s->list.at[i].name);
  }
  vec_free (&s->list);
}

/* Only pids that we started: a library's children are not ours to reap. */
static void
reap (void *ctx)
{
  struct supervisor *s = ctx;
  struct child *c;
  struct proc *p, *next;
  int status;

  TAILQ_FOREACH (c, &s->children, link)
    for (p = TAILQ_FIRST (&c->procs); p; p = next) {
      next = TAILQ_NEXT (p, link);
      if (waitpid (p->pid, &status, WNOHANG) == p->pid)
        proc_reaped (p, status);
    }
  for (size_t i = s->orphans.n; i-- > 0;)
    if (waitpid (s->orphans.at[i], &status, WNOHANG) != 0)
      vec_drop (&s->orphans, i);
  supervise_deliver (s);
}

struct supervisor *
supervisor_new (struct loop *loop, const struct supervise_times *times, struct err *e)
{
  struct supervisor *s = calloc (1, sizeof *s);

  if (!s)
    abort ();
  s->loop = loop;
  s->times = times ? *times : supervise_times_default;
  TAILQ_INIT (&s->children);
  TAILQ_INIT (&s->ended);
  if (loop_signal (loop, SIGCHLD, reap, s, e) < 0) {
    free (s);
    return NULL;
  }
  return s;
}

static void
drop_ended (struct supervisor *s, const struct child *of)
{
  struct call *k, *next;

  for (k = TAILQ_FIRST (&s->ended); k; k = next) {
    next = TAILQ_NEXT (k, link);
    if (of && k->child != of)
      continue;
    TAILQ_REMOVE (&s->ended, k, link);
    call_free (k);
  }
}

static void
tell_result (struct supervisor *s, struct call *k)
{
  json_t *value = json_object_get (k->answer, "value");
  AUTO_JSON json_t *empty = json_object ();
  struct call_result r = {
    .err = k->err,
    .value = json_is_object (value) ? value : empty,
    .secrets = k->answer_secrets.list.at,
    .nsecrets = k->answer_secrets.list.n,
    .http_status = (int) json_i64 (k->answer, "http_status", 0),
    .request_id = json_str (k->answer, "request_id", ""),
    .sent = k->sent,
  };

  TAILQ_REMOVE (&s->ended, k, link);
  k->on_result (k->ctx, k->id, &r);
  call_free (k);
}

/* Both kinds of callback may free children and start calls: begin again after each. */
static bool
tell_state (struct supervisor *s)
{
  struct child *c;

  TAILQ_FOREACH (c, &s->children, link) {
    if (c->freed) {
      TAILQ_REMOVE (&s->children, c, link);
      drop_ended (s, c);
      child_release (c);
      return true;
    }
    if (c->told != c->state) {
      c->told = c->state;
      if (c->on_state)
        c->on_state (c->ctx, c, c->state);
      return true;
    }
  }
  return false;
}

static void
tell_stopped (struct supervisor *s)
{
  struct child *c;
  loop_fn *fn = s->stopped;

  if (!fn)
    return;
  TAILQ_FOREACH (c, &s->children, link)
    if (c->state != CHILD_STOPPED)
      return;
  s->stopped = NULL;
  fn (s->stopped_ctx);
}

void
supervise_deliver (struct supervisor *s)
{
  struct call *k;

  loop_cancel (s->loop, s->deliver_timer);
  s->deliver_timer = 0;
  do
    while ((k = TAILQ_FIRST (&s->ended))) {
      if (k->child->freed)
        drop_ended (s, k->child);
      else
        tell_result (s, k);
    }
  while (tell_state (s));
  tell_stopped (s);
}

static void
deliver_due (void *ctx)
{
  supervise_deliver (ctx);
}

void
supervise_deliver_soon (struct supervisor *s)
{
  if (!s->deliver_timer)
    s->deliver_timer = loop_after (s->loop, 0, deliver_due, s);
}

void
supervisor_flush (struct supervisor *s)
{
  struct child *c;
  struct proc *p;

  TAILQ_FOREACH (c, &s->children, link) {
    calls_dispatch (c);
    TAILQ_FOREACH (p, &c->procs, link) {
      calls_send (p);
      proc_flush (p);
    }
  }
}

void
supervisor_stop (struct supervisor *s, loop_fn *done, void *ctx)
{
  struct child *c;

  s->stopping = true;
  s->stopped = done;
  s->stopped_ctx = ctx;
  TAILQ_FOREACH (c, &s->children, link)
    child_stop (c);
  supervise_deliver_soon (s);
}

void
supervisor_free (struct supervisor *s)
{
  struct child *c;

  if (!s)
    return;
  TAILQ_FOREACH (c, &s->children, link)
    child_free (c);
  while ((c = TAILQ_FIRST (&s->children))) {
    TAILQ_REMOVE (&s->children, c, link);
    drop_ended (s, c);
    child_release (c);
  }
  reap (s);
  loop_cancel (s->loop, s->deliver_timer);
  loop_signal (s->loop, SIGCHLD, NULL, NULL, NULL);
  vec_free (&s->orphans);
  free (s);
}
