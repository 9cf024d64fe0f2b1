/* engine.c - drives leases: feeds events to the table, carries its actions out, starts a state's
 * work
 *
 * Work is level-triggered: it looks at the state and at what is in flight, and starts what is
 * missing.  After a restart the same look does the right thing, because the state was committed
 * before the work was begun.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/clock.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/log.h"

int64_t
backoff (const struct times *t, int tries)
{
  int64_t ms = t->retry_min;

  for (int i = 1; i < tries && ms < t->retry_max; i++)
    ms *= 2;
  return ms < t->retry_max ? ms : t->retry_max;
}

/* How many live leases have a smaller number. */
static size_t
before (const struct broker *b, int64_t number)
{
  size_t low = 0, high = b->leases.n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (b->leases.at[middle]->number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct lease *
engine_lease (struct broker *b, int64_t number)
{
  size_t i = before (b, number);

  return i < b->leases.n && b->leases.at[i]->number == number ? b->leases.at[i] : NULL;
}

void
engine_take (struct broker *b, struct lease *l)
{
  size_t i = before (b, l->number);
  struct lease **at;

  l->broker = b;
  vec_push (&b->leases);
  at = b->leases.at + i;
  memmove (at + 1, at, (b->leases.n - 1 - i) * sizeof *at);
  *at = l;
  b->some_over |= lease_over (l);
}

void
engine_save (struct lease *l)
{
  undo_touch (l);
  store_put_lease (l->broker->store, l);
}

void
engine_cause (struct lease *l, const char *code, const char *fmt, ...)
{
  char text[512];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  redact (text);
  json_clean (text);
  set_str (&l->cause_code, code);
  set_str (&l->cause_text, text);
}

static void
timer (void *ctx)
{
  struct lease *l = ctx;

  l->timer = 0;
  engine_work (l);
}

void
engine_later (struct lease *l, int64_t ms)
{
  loop_cancel (l->broker->loop, l->timer);
  l->timer = loop_after (l->broker->loop, ms, timer, l);
}

/* What no attempt of this lease needs any more is removed, one attempt at a time in attempts.c. */
static void
drop_attempts (struct lease *l)
{
  for (size_t i = 0; i < l->nattempts; i++)
    if (l->attempts[i]->wanted) {
      /* On to another offer, past the steps with which a node leaves. */
      if (l->state == LEASE_PENDING && l->attempts[i]->joined)
        l->attempts[i]->node_left = true;
      attempt_happens (l->attempts[i], AEV_UNWANTED);
    }
}

static void
keep (struct lease *l)
{
  char text[160];

  l->keep_until_ms = now_ms () + l->keep_ms;
  if (l->failure)
    json_put_i64 (l->failure, "keep_until_ms", l->keep_until_ms);
  snprintf (text, sizeof text, "%s failed and is kept, $%.2f/h", l->id,
            (double) lease_rate (l) / 1e6);
  log_at (LOG_WARNING, "lease.kept", "lease=%s keep_until_ms=%lld", l->id,
          (long long) l->keep_until_ms);
}

/* What was delivered as bought wins ties for a while, and no longer counts as failing. */
static void
remember_success (struct lease *l)
{
  const struct attempt *a = lease_attempt (l);
  struct memory_what what;

  if (!a || !a->offer || lease_own (l))
    return;
  what = offers_what (l->broker->offers, a->provider, a->offer);
  memory_success (l->broker->memory, &what, now_ms ());
}

/* Nobody can start another machine with it now, and it may hold anything. */
static void
forget_user_data (struct lease *l)
{
  json_object_del (l->request, "user_data");
}

static void
act (struct lease *l, unsigned actions)
{
  struct broker *b = l->broker;

  if (actions & LACT_ENDED)
    l->ended_ms = now_ms ();
  if (actions & (LACT_ENDED | LACT_RENT_DONE))
    forget_user_data (l);
  if (actions & LACT_ENDED && lease_lent_key (l))
    identity_drop (l);
  if (actions & LACT_KEEP)
    keep (l);
  if (actions & LACT_DROP_ATTEMPT)
    drop_attempts (l);
  if (actions & LACT_RENT_DONE) {
    if (!l->ready_ms)
      l->ready_ms = now_ms ();
    l->failed = false;
    l->keep_until_ms = 0;
    set_str (&l->cause_code, NULL);
    set_str (&l->cause_text, NULL);
    json_decref (l->failure);
    l->failure = NULL;
    remember_success (l);
  }
  if (actions & LACT_RENT_FAILED)
    l->failed = true;
  if (actions & LACT_ALARM)
    feed_alarm (b, lease_state_name (l->state), l->id);
}

/* After everything is saved, so that who waits reads the new state. */
static void
settle (struct lease *l, unsigned actions)
{
  static const char *const pipeline[] = { "rent", "join", "retry", "verify" };
  struct broker *b = l->broker;

  for (size_t i = 0; i < N_ELEMENTS (pipeline); i++)
    if (actions & (LACT_RENT_DONE | LACT_RENT_FAILED))
      ops_settle (b, l, pipeline[i], (actions & LACT_RENT_FAILED) != 0);
  if (actions & LACT_RELEASE_DONE)
    ops_settle (b, l, "release", false);
  if (actions & LACT_ENDED)
    ops_settle (b, l, NULL, l->state != LEASE_RELEASED);
}

bool
engine_event (struct lease *l, enum lease_event ev)
{
  struct lease_next next;

  if (!lease_next (l->state, ev, &next)) {
    log_at (LOG_DEBUG, "lease.ignored", "lease=%s state=%s event=%s", l->id,
            lease_state_name (l->state), lease_event_name (ev));
    return false;
  }
  if (ev == LEV_COMMITTED || ev == LEV_CREATED || ev == LEV_REACHED)
    metrics_step (&l->broker->metrics, lease_state_name (l->state), now_ms () - l->state_ms);
  call_give_up (l);
  lease_forget_token (l); /* only the state that minted it has a use for it */
  l->state = next.state;
  l->state_ms = l->stage_ms = now_ms ();
  l->stage = l->tries = 0;
  act (l, next.actions);
  l->broker->some_over |= lease_ended (l->state);
  engine_save (l);
  feed_lease (l->broker, l, lease_state_name (l->state), l->failed ? l->cause_text : NULL);
  set_str (&l->step_name, NULL);
  set_str (&l->step_text, NULL);
  ops_progress (l->broker, l);
  settle (l, next.actions);
  engine_later (l, 0);
  return true;
}

void
engine_fail (struct lease *l, json_t *failure, bool next_offer)
{
  struct attempt *a = lease_attempt (l);
  const char *code = json_str (failure, "code", "failed"),
             *text = json_str (failure, "message", "");

  if (a)
    json_put_str (failure, "machine", a->name);
  json_put_str (failure, "hint", hint_for (code));
  json_put_i64 (failure, "price_udollar", lease_rate (l));
  json_put_i64 (failure, "spent_ms", now_ms () - l->state_ms);
  json_decref (l->failure);
  l->failure = failure;
  engine_cause (l, code, "%s: %s", json_str (failure, "step", "step"), text);
  if (a)
    attempt_reason (a, code, text);
  if ((l->ready_ms || l->adopted) &&
      engine_event (l, LEV_SICK)) /* what served is never ended by a step that failed */
    return;
  if (next_offer && !lease_own (l) && engine_event (l, LEV_NEXT))
    return;
  if (!l->keep_on_failure || !engine_event (l, LEV_FAILED_KEEP))
    engine_event (l, LEV_FAILED_DROP);
}

/* ---- the work of each state ---- */

static void
releasing (struct lease *l)
{
  bool all = true, stuck = false;

  for (size_t i = 0; i < l->nattempts; i++) {
    all = all && attempt_ended (l->attempts[i]->state);
    stuck = stuck || l->attempts[i]->state == ATTEMPT_LEAKED;
    attempt_work (l->attempts[i]);
  }
  if (all && l->failed && !l->ready_ms)
    engine_event (l, LEV_RELEASE_EMPTY);
  else if (all)
    engine_event (l, LEV_ALL_GONE);
  else if (stuck)
    engine_event (l, LEV_STUCK);
}

void
engine_work (struct lease *l)
{
  static void (*const work[LEASE_STATES]) (struct lease *) = {
    [LEASE_PENDING] = rent_pending,          [LEASE_ORDERING] = rent_ordering,
    [LEASE_BOOTING] = rent_booting,          [LEASE_REACHABLE] = pipeline_work,
    [LEASE_JOINING] = pipeline_work,         [LEASE_VERIFYING] = pipeline_work,
    [LEASE_READY] = pipeline_work,           [LEASE_DRAINING] = pipeline_work,
    [LEASE_RELEASING] = releasing,           [LEASE_LEAKED] = releasing,
    [LEASE_INTERRUPTED] = watch_interrupted, [LEASE_FAILED_KEPT] = pipeline_work,
  };

  if (l->broker->stopping || l->broker->rebuild)
    return;
  if (work[l->state] && !l->call)
    work[l->state](l);
  for (size_t i = 0; i < l->nattempts; i++)
    if (!l->attempts[i]->wanted)
      attempt_work (l->attempts[i]);
}

/* ---- the clock ---- */

/* Only a list can tell that the books are an older copy (freeze.c), so the first one is awaited; a
 * provider that cannot list does not hold the others up for long. */
bool
engine_unsure (const struct lease *l)
{
  const struct broker *b = l->broker;
  bool looked = true;

  for (size_t i = 0; i < b->providers.n; i++)
    looked = looked && b->providers.at[i]->looked;
  return !l->admitted && (b->freeze.books ||
                          (!looked && clock_boot_ms () < b->started_boot_ms + b->times.comeback));
}

static void
late (struct lease *l)
{
  engine_cause (l, "deadline", "not ready by its deadline; it was %s%s%s",
                lease_state_name (l->state), l->step_name ? ", step " : "",
                l->step_name ? l->step_name : "");
  if (l->state == LEASE_PENDING)
    engine_event (l, LEV_EXHAUSTED);
  else
    engine_fail (l,
                 json_pack ("{s:s, s:s, s:s, s:b}", "step",
                            l->step_name ? l->step_name : lease_state_name (l->state), "code",
                            "deadline", "message", "not ready by its deadline", "retryable", 1),
                 false);
}

static void
tick (struct lease *l, int64_t now)
{
  bool ready = lease_settled (l->state);

  if (l->expires_ms && now >= l->expires_ms && l->state != LEASE_DRAINING &&
      l->state != LEASE_RELEASING && l->state != LEASE_LEAKED && !lease_ended (l->state)) {
    engine_cause (l, "ttl", "its time to live is over");
    engine_event (l, LEV_RELEASE);
  } else if (l->state == LEASE_FAILED_KEPT && l->keep_until_ms && now >= l->keep_until_ms) {
    engine_event (l, LEV_RELEASE);
  } else if (!ready && l->state < LEASE_READY && l->deadline_ms && now >= l->deadline_ms) {
    late (l);
  } else if (!l->warned && l->expires_ms && now >= l->expires_ms - l->broker->times.warn && ready) {
    l->warned = true;
    feed_lease (l->broker, l, "expiring", "its time to live is nearly over; extend it to keep it");
  }
}

void
engine_tick (struct broker *b)
{
  int64_t now = now_ms ();

  for (size_t i = 0; i < b->leases.n && !freeze_holds (b); i++)
    if (!engine_unsure (b->leases.at[i]))
      tick (b->leases.at[i], now);
}
