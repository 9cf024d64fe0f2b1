/* supervise_describe.c - what people are told about a child */
#include "config.h"

#include "core/clock.h"
#include "core/json.h"
#include "core/supervise_int.h"

static const char *const state_names[] = {
  [CHILD_STARTING] = "starting", [CHILD_UP] = "up",
  [CHILD_DOWN] = "down",         [CHILD_QUARANTINED] = "quarantined",
  [CHILD_STOPPING] = "stopping", [CHILD_STOPPED] = "stopped",
};

const char *
child_state_name (enum child_state state)
{
  return state_names[state];
}

enum child_state
child_state (const struct child *c)
{
  return c->state;
}

const char *
child_name (const struct child *c)
{
  return c->name;
}

const json_t *
child_ready (const struct child *c)
{
  return c->ready;
}

static size_t
working (const struct child *c)
{
  const struct proc *p;
  size_t n = 0;

  TAILQ_FOREACH (p, &c->procs, link)
    n += p->ncalls;
  return n;
}

size_t
child_in_flight (const struct child *c)
{
  return working (c) + c->queued;
}

static json_t *
describe_quarantine (const struct child *c)
{
  json_t *list = json_array ();
  int64_t now = clock_boot_ms ();

  for (size_t i = 0; i < c->strikes.list.n; i++) {
    const struct strike *k = &c->strikes.list.at[i];

    if (k->until > now)
      json_array_append_new (list, json_pack ("{s:s, s:s, s:I}", "call", k->call, "key", k->key,
                                              "for_ms", (json_int_t) (k->until - now)));
  }
  return list;
}

json_t *
child_describe (const struct child *c)
{
  json_t *d = json_pack ("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "state",
                         child_state_name (c->state), "restarts", (json_int_t) c->restarts,
                         "in_flight", (json_int_t) working (c), "queued", (json_int_t) c->queued,
                         "calls", (json_int_t) c->calls, "errors", (json_int_t) c->errors,
                         "since_ms", (json_int_t) c->since, "quarantined", describe_quarantine (c));

  if (c->main)
    json_put_i64 (d, "pid", c->main->pid);
  if (c->restart_timer)
    json_put_i64 (d, "restart_in_ms", c->restart_at - clock_boot_ms ());
  if (c->last_at) {
    json_put_str (d, "last_error", c->last.text);
    json_put_str (d, "last_error_kind", err_kind_name (c->last.kind));
    json_put_i64 (d, "last_error_ms", c->last_at);
  }
  return d;
}
