/* watch.c - a machine that nobody ended, and yet the cloud shows it no more, or stopped
 *
 * A list only raises the question.  What answers it is a get, asked for that very machine: gone
 * twice, with a pause between, ends a lease, unless its Node still says Ready.  When many are
 * missing at once the list is what is wrong, and nothing is asked.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

enum { GONE_TIMES = 2 };

/* The wanted machine of a lease that is past its boot (a boot looks for itself) and not on its way
 * out. */
static struct attempt *
watched (const struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  bool in = (l->state >= LEASE_REACHABLE && l->state <= LEASE_INTERRUPTED) ||
            l->state == LEASE_FAILED_KEPT;

  return a && in && a->state == ATTEMPT_CREATED ? a : NULL;
}

static bool
is (const char *state, const char *name)
{
  return state && strcmp (state, name) == 0;
}

static void
lost (struct lease *l, struct attempt *a)
{
  bool before = l->state < LEASE_READY;

  attempt_reason (a, "machine-gone", "the cloud says, twice, that it is gone");
  if (!before)
    engine_cause (l, "machine-gone", "%s is gone, and was not released", a->name);
  log_at (LOG_WARNING, "machine.gone", "lease=%s machine=%s", l->id, a->name);
  a->node_left = a->joined;
  attempt_happens (a, AEV_GONE);
  engine_event (l, LEV_GONE);
}

/* ---- the cluster has a say ---- */

static void
asked_node (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = watched (l);
  const json_t *node = a ? json_object_get (json_object_get (r->value, "nodes"), a->name) : NULL;

  (void) none;
  if (!a)
    return;
  if (!json_bool (node, "ready", false)) {
    lost (l, a);
    return;
  }
  a->gone_seen = 0;
  attempt_save (a);
  feed_alarm (l->broker, "gone-but-ready", a->name);
}

static void
gone (struct lease *l, struct attempt *a)
{
  int64_t now = now_ms (), pause = l->broker->times.gone;

  if (a->gone_seen == 0 || now - a->gone_ms >= pause) {
    a->gone_seen++;
    a->gone_ms = now;
    attempt_save (a);
  }
  if (a->gone_seen < GONE_TIMES)
    attempt_later (a, pause);
  else if (l->state < LEASE_READY || !a->joined || !conf_hosted (&l->broker->conf, l->cluster))
    lost (l, a);
  else if (!l->call)
    pipeline_health (l, a, asked_node);
  else
    attempt_later (a, pause);
}

/* ---- the cloud is asked about the one machine ---- */

static void
item (struct lease *l, struct attempt *a, const json_t *i)
{
  const json_t *machine;
  size_t k;

  (void) l;
  json_array_foreach (json_object_get (i, "machines"), k, machine)
    attempt_learn (a, machine);
}

static void
answered (struct lease *l, struct attempt *a, const struct call_result *r)
{
  bool stopped;

  if (watched (l) != a)
    return;
  if (attempt_answer_gone (a, r)) {
    if (attempt_visible (a))
      gone (l, a);
    return;
  }
  if (r->err.kind != ERR_NONE)
    return; /* an error is not an absence; the next list asks again */
  a->gone_seen = 0;
  stopped = is (a->machine.state, "stopped") || is (a->machine.state, "stopping") ||
            is (a->machine.state, "error");
  if (!stopped || l->state == LEASE_INTERRUPTED)
    return;
  if (l->adopted && !l->ready_ms) { /* a person may have stopped it, and decides */
    feed_step (l, "stopped", a->machine.raw_state ? a->machine.raw_state : a->machine.state);
    return;
  }
  engine_cause (l, "interrupted", "the provider says of %s: %s", a->name,
                a->machine.raw_state ? a->machine.raw_state : a->machine.state);
  attempt_reason (a, "interrupted", l->cause_text);
  engine_event (l, LEV_STOPPED);
}

void
watch_attempt (struct attempt *a)
{
  struct provider *p = provider_find (a->lease->broker, a->provider);

  if (!p || a->call || watched (a->lease) != a)
    return;
  call_attempt (a, p->child,
                &(struct call){ "get", attempt_ref (a), a->lease->broker->times.call, false, NULL,
                                0, item, answered });
}

/* ---- what a list raises ---- */

void
watch_begin (struct provider *p)
{
  struct broker *b = p->broker;

  for (size_t i = 0; i < b->leases.n; i++) {
    struct attempt *a = watched (b->leases.at[i]);

    if (a && strcmp (a->provider, p->name) == 0)
      a->shown = false;
  }
}

void
watch_end (struct provider *p)
{
  struct broker *b = p->broker;
  VEC (struct attempt *) missing = VEC_EMPTY;
  char text[160];

  for (size_t i = 0; i < b->leases.n; i++) {
    struct attempt *a = watched (b->leases.at[i]);

    if (a && strcmp (a->provider, p->name) == 0 && !a->shown)
      *vec_push (&missing) = a;
  }
  if (missing.n > b->conf.limits.removals_per_round) {
    snprintf (text, sizeof text, "%s: %zu machines are missing at once; no lease is ended", p->name,
              missing.n);
    if (!p->frozen)
      feed_alarm (b, "frozen", text);
    p->frozen = true;
  } else {
    p->frozen = false;
    for (size_t i = 0; i < missing.n; i++)
      watch_attempt (missing.at[i]);
  }
  vec_free (&missing);
}

/* What a provider stopped may bill on: it is released, what is left of it removed. */
void
watch_interrupted (struct lease *l)
{
  engine_event (l, LEV_RELEASE);
}
