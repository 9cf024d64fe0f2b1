/* ops.c - operations: what was accepted, who waits for it, how it ended */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/json.h"

struct op *
ops_start (struct broker *b, const char *verb, const char *owner, const char *key, const char *hash,
           const struct lease *l)
{
  struct op *o = op_new (b->next_op++);

  set_str (&o->verb, verb);
  set_str (&o->owner, owner);
  set_str (&o->key, key);
  set_str (&o->body_hash, hash);
  o->lease = l ? l->number : 0;
  o->started_ms = now_ms ();
  o->accepted = json_pack ("{s:s}", "operation", o->id);
  if (l) {
    json_put_str (o->accepted, "lease", l->id);
    json_put_str (o->accepted, "name", l->name);
  }
  store_put_op (b->store, o);
  *vec_push (&b->ops) = o;
  return o;
}

/* A lease's cause may be any step's code; an error's code is one of the protocol's few. */
static const char *
error_code (const char *cause)
{
  static const struct {
    const char *cause, *code;
  } codes[] = {
    { "no-offer", "no-offer" },       { "offers-exhausted", "offers-exhausted" },
    { "over-budget", "over-budget" }, { "limit", "limit" },
    { "bad-request", "bad-request" }, { "released", "cancelled" },
    { "cancelled", "cancelled" },     { "ttl", "cancelled" },
  };

  for (size_t i = 0; cause && i < N_ELEMENTS (codes); i++)
    if (strcmp (codes[i].cause, cause) == 0)
      return codes[i].code;
  return "failed";
}

json_t *
ops_cause (const struct lease *l)
{
  AUTO_JSON json_t *attempts = json_array ();
  const char *hint = hint_for (l->cause_code);
  json_t *j = json_object ();

  json_put_str (j, "code", error_code (l->cause_code));
  json_put_str (j, "message", l->cause_text ? l->cause_text : "");
  json_put_str (j, "hint", hint);
  json_object_set_new (j, "retryable", json_boolean (l->state == LEASE_FAILED_KEPT));
  for (size_t i = 0; i < l->nattempts; i++)
    json_array_append_new (attempts, attempt_json (l->attempts[i], now_ms ()));
  if (l->failure)
    json_array_append (attempts, l->failure);
  json_object_set (j, "details", attempts);
  return j;
}

struct op *
ops_find (struct broker *b, int64_t number, struct op **from_store)
{
  *from_store = NULL;
  for (size_t i = 0; i < b->ops.n; i++)
    if (b->ops.at[i]->number == number)
      return b->ops.at[i];
  return *from_store = store_op (b->store, number);
}

json_t *
ops_outcome (struct broker *b, const struct op *o)
{
  json_t *j = json_pack ("{s:o}", "operation", op_json (o));
  struct lease *live = engine_lease (b, o->lease), *old = NULL;

  if (!live && o->lease)
    live = old = store_lease (b->store, o->lease);
  if (live)
    json_object_set_new (j, "lease", lease_json (live, now_ms (), true));
  if (live && live->rows && strcmp (o->verb, "verify") == 0)
    json_object_set (j, "rows", live->rows);
  lease_free (old);
  return j;
}

/* An operation that failed answers with its error, both objects among the details. */
static void
answer (struct broker *b, const struct bus_ticket *t, const struct op *o)
{
  json_t *outcome = ops_outcome (b, o), *error;

  if (o->state == OP_DONE || !o->error) {
    turn_reply (b, t, BUS_FINAL, outcome);
    return;
  }
  error = json_deep_copy (o->error);
  if (!json_object_get (error, "details"))
    json_object_set_new (error, "details", json_array ());
  json_array_append_new (json_object_get (error, "details"), outcome);
  turn_reply (b, t, BUS_ERROR, error);
}

void
ops_finish (struct broker *b, struct op *o, json_t *error)
{
  if (o->state != OP_RUNNING) {
    json_decref (error);
    return;
  }
  o->state = !error                                                    ? OP_DONE
             : strcmp (json_str (error, "code", ""), "cancelled") == 0 ? OP_CANCELLED
                                                                       : OP_FAILED;
  o->error = error;
  o->ended_ms = now_ms ();
  b->some_over = true;
  store_put_op (b->store, o);
  for (size_t i = b->waiters.n; i-- > 0;)
    if (b->waiters.at[i].op == o->number) {
      answer (b, &b->waiters.at[i].ticket, o);
      vec_drop (&b->waiters, i);
    }
}

void
ops_settle (struct broker *b, const struct lease *l, const char *verb, bool failed)
{
  for (size_t i = 0; i < b->ops.n; i++) {
    struct op *o = b->ops.at[i];

    if (o->lease == l->number && o->state == OP_RUNNING && (!verb || strcmp (o->verb, verb) == 0))
      ops_finish (b, o, failed ? ops_cause (l) : NULL);
  }
}

void
ops_wait (struct broker *b, const struct bus_ticket *t, const struct op *o, int64_t until_ms)
{
  struct waiter *w;

  if (o->state != OP_RUNNING) {
    answer (b, t, o);
    return;
  }
  w = vec_push (&b->waiters);
  w->ticket = *t;
  w->op = o->number;
  w->lease = o->lease;
  w->until_ms = until_ms;
}

void
ops_progress (struct broker *b, const struct lease *l)
{
  const struct attempt *a = lease_attempt (l);

  for (size_t i = 0; i < b->waiters.n; i++) {
    json_t *p;

    if (b->waiters.at[i].lease != l->number)
      continue;
    p = json_pack ("{s:s, s:s, s:I, s:I}", "lease", l->id, "state", lease_state_name (l->state),
                   "elapsed_ms", (json_int_t) (now_ms () - l->created_ms), "price_udollar",
                   (json_int_t) lease_rate (l));
    json_put_str (p, "step", l->step_name);
    json_put_str (p, "text", l->step_text);
    if (b->waiters.at[i].op) {
      char id[24];

      snprintf (id, sizeof id, "op%lld", (long long) b->waiters.at[i].op);
      json_put_str (p, "operation", id);
    }
    if (a)
      json_put_i64 (p, "attempt", a->number);
    turn_reply (b, &b->waiters.at[i].ticket, BUS_PROGRESS, p);
  }
}

void
ops_tick (struct broker *b)
{
  for (size_t i = b->waiters.n; i-- > 0;) {
    struct waiter *w = &b->waiters.at[i];

    if (w->until_ms == 0 || w->until_ms > now_ms ())
      continue;
    turn_error (b, &w->ticket, "timeout", "the operation goes on; wait again", NULL,
                "still running");
    vec_drop (&b->waiters, i);
  }
}
