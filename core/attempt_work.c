/* attempt_work.c - the calls about an attempt's machine: create, find, remove
 *
 * Nothing here ends in a state that costs nothing unless the cloud proved it: a refusal, a complete
 * search after the visibility lag, or a get that says gone, twice.
 */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

enum { STUCK_AFTER = 10, ABSENT_TIMES = 2, GONE_TIMES = 2 };
/* ---- create ---- */

static void
broke (const struct attempt *a, const struct err *why)
{
  char text[256];

  snprintf (text, sizeof text, "%.64s: %.180s", a->provider, why->text);
  feed_alarm (a->lease->broker, "out-of-money", text);
}

void
attempt_remember (struct attempt *a, const struct err *why)
{
  struct broker *b = a->lease->broker;
  struct memory_what what = offers_what (b->offers, a->provider, a->offer);
  enum memory_why kind;

  switch (memory_classify (why, &kind)) {
  case 0:
    memory_fail (b->memory, &what, kind, why->text, now_ms ());
    if (kind == MEMORY_MONEY && memory_broke (b->memory, a->provider, now_ms ())->times == 1)
      broke (a, why);
    break;
  case 1:
    memory_bar (b->memory, a->provider, why->kind == ERR_AUTH ? NULL : what.region, why->text,
                now_ms ());
    break;
  default:
    break;
  }
}

static void
refused (struct lease *l, struct attempt *a, const struct err *why)
{
  bool current = a == lease_attempt (l);

  attempt_remember (a, why);
  set_str (&a->reason_kind, err_kind_name (why->kind));
  attempt_reason (a, why->code[0] ? why->code : err_kind_name (why->kind), why->text);
  attempt_happens (a, AEV_REFUSED);
  if (current)
    engine_event (l, LEV_NEXT);
}

/* An absent machine costs nothing: the same offer may be tried once more. */
static void
not_created (struct lease *l, struct attempt *a)
{
  attempt_reason (a, "not-created", "the create request left no machine");
  if (l->nattempts < 3)
    json_object_del (l->tried, json_str (a->offer, "id", "?"));
  attempt_happens (a, AEV_ABSENT);
  if (l->state == LEASE_ORDERING && !lease_attempt (l))
    engine_event (l, LEV_NEXT);
}

/* Definite: the cloud answered, and no.  Unknown: it may be there.  The rest: nothing was changed,
 * again. */
static void
created (struct lease *l, struct attempt *a, const struct call_result *r)
{
  enum err_kind kind = r->err.kind;

  a->sent_until_ms = now_ms ();
  if (a->state == ATTEMPT_CREATED && kind != ERR_NONE && kind != ERR_UNKNOWN)
    kind = ERR_INVALID; /* it exists and failed: remove it */
  switch (kind) {
  case ERR_NONE:
    if (a->state == ATTEMPT_SENT)
      attempt_happens (a, AEV_UNKNOWN);
    break;
  case ERR_UNKNOWN:
  case ERR_INTERNAL:
  case ERR_CONFLICT:
    log_at (LOG_WARNING, "create.unknown", "lease=%s attempt=%lld error=\"%s\"", l->id,
            (long long) a->number, r->err.text);
    attempt_happens (a, AEV_UNKNOWN);
    break;
  case ERR_UNAVAILABLE:
  case ERR_RATE:
  case ERR_CANCELLED:
    if (++a->tries < 4) {
      attempt_later (a, r->err.retry_after_ms ? r->err.retry_after_ms
                                              : backoff (&l->broker->times, a->tries));
      break;
    }
    refused (l, a, &r->err);
    break;
  default:
    refused (l, a, &r->err);
    break;
  }
  engine_later (l, 0);
}

static struct provider *
provider (const struct attempt *a)
{
  return provider_find (a->lease->broker, a->provider);
}

static void
send_create (struct attempt *a, struct provider *p)
{
  a->seen = false;
  call_attempt (a, p->child,
                &(struct call){ "create", json_deep_copy (a->create),
                                a->lease->broker->times.create, true, NULL, 0, attempt_item,
                                created });
}

/* ---- find ---- */

/* Has the cloud had the time that it takes to show what a create made?  The request may have left
 * at any moment before the call ended; with the end of it unseen, before the first question. */
bool
attempt_visible (struct attempt *a)
{
  const struct provider *p = provider (a);
  bool doubt = a->state == ATTEMPT_SENT || a->state == ATTEMPT_UNKNOWN;

  if (!a->sent_until_ms)
    a->sent_until_ms = doubt || a->created_ms == 0 ? now_ms () : a->created_ms;
  return p && now_ms () > a->sent_until_ms + p->visibility_lag_ms;
}

static void
found (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (a->seen)
    return;
  if (r->err.kind != ERR_NONE || a->scopes_bad || !a->scopes_done || !attempt_visible (a))
    a->absent = 0;
  else if (++a->absent >= ABSENT_TIMES) {
    not_created (l, a);
    return;
  }
  a->tries = r->err.kind == ERR_NONE ? 1 : a->tries + 1;
  attempt_later (a, backoff (&l->broker->times, a->tries));
}

static void
send_find (struct attempt *a, struct provider *p)
{
  a->seen = a->scopes_bad = a->scopes_done = false;
  call_attempt (
      a, p->child,
      &(struct call){ "find", json_pack ("{s:s, s:s}", "token", a->token, "name", a->name),
                      a->lease->broker->times.listing, false, NULL, 0, attempt_item, found });
}

/* With an idempotent cloud the very same bytes are the safest question: they make it or find it. */
static void
resolve (struct attempt *a, struct provider *p)
{
  bool again =
      p->idempotent && a->wanted && a->create && now_ms () < a->sent_wall_ms + p->idempotency_ms;

  if (a->state == ATTEMPT_SENT && (a->fresh || again))
    send_create (a, p);
  else if (a->state == ATTEMPT_SENT)
    attempt_happens (a, AEV_UNKNOWN);
  else
    send_find (a, p);
}

/* ---- remove ---- */

void
attempt_proven_gone (struct attempt *a)
{
  int64_t now = now_ms (), pause = a->lease->broker->times.gone;

  if (a->gone_seen == 0 || now < a->gone_ms || now - a->gone_ms >= pause) {
    a->gone_seen++;
    a->gone_ms = now;
    attempt_save (a);
  }
  if (a->gone_seen >= GONE_TIMES)
    attempt_happens (a, AEV_GONE);
  else
    attempt_later (a, pause);
}

bool
attempt_answer_gone (const struct attempt *a, const struct call_result *r)
{
  return r->err.kind == ERR_NOT_FOUND ||
         (r->err.kind == ERR_NONE && a->machine.state && strcmp (a->machine.state, "gone") == 0);
}

static void
looked (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (attempt_answer_gone (a, r)) {
    attempt_proven_gone (a);
    return;
  }
  if (r->err.kind == ERR_NONE) {
    a->gone_seen = 0;
    if (++a->tries % 12 == 0)
      a->asked = a->marked = false; /* it should be gone by now: ask again */
  }
  attempt_later (a, r->err.kind == ERR_NONE ? l->broker->times.poll
                                            : backoff (&l->broker->times, ++a->tries));
}

static void
removed (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (r->err.kind == ERR_NONE || r->err.kind == ERR_NOT_FOUND) {
    a->asked = true;
    a->tries = 0;
    attempt_later (a, 0);
    return;
  }
  a->remove_tries++;
  attempt_save (a);
  log_at (LOG_WARNING, "remove.failed", "lease=%s attempt=%lld machine=%s tries=%lld error=\"%s\"",
          l->id, (long long) a->number, a->machine.id, (long long) a->remove_tries, r->err.text);
  if (a->remove_tries == STUCK_AFTER) {
    attempt_reason (a, "leaked", r->err.text);
    attempt_happens (a, AEV_STUCK);
  }
  attempt_later (a, r->err.retry_after_ms ? r->err.retry_after_ms
                                          : backoff (&l->broker->times, (int) a->remove_tries));
}

static void
remove_machine (struct attempt *a, struct provider *p)
{
  const struct times *t = &a->lease->broker->times;

  a->seen = false;
  if (a->lease->adopted && !a->marked && !a->asked)
    attempt_check (a, p);
  else if (!a->asked)
    call_attempt (
        a, p->child,
        &(struct call){ "remove", attempt_ref (a), t->call, true, NULL, 0, attempt_item, removed });
  else
    call_attempt (
        a, p->child,
        &(struct call){ "get", attempt_ref (a), t->call, false, NULL, 0, attempt_item, looked });
}

void
attempt_work (struct attempt *a)
{
  struct provider *p = provider (a);

  if (a->call || a->timer || a->lease->broker->stopping || a->lease->broker->rebuild)
    return;
  if (attempt_ended (a->state)) {
    if (a->node_left)
      pipeline_forget (a);
    return;
  }
  if (lease_own (a->lease)) { /* nobody to ask, nothing to remove */
    if (!a->wanted)
      attempt_happens (a, AEV_GONE);
    return;
  }
  if (!p) {
    log_at (LOG_ERR, "attempt.orphan", "lease=%s provider=%s is not configured any more",
            a->lease->id, a->provider);
    attempt_later (a, a->lease->broker->times.retry_max);
    return;
  }
  switch (a->state) {
  case ATTEMPT_SENT:
  case ATTEMPT_UNKNOWN:
    resolve (a, p);
    break;
  case ATTEMPT_REMOVING:
  case ATTEMPT_LEAKED:
    remove_machine (a, p);
    break;
  case ATTEMPT_CREATED:
    if (a->gone_seen)
      watch_attempt (a);
    break;
  default:
    break;
  }
}
