/* cases_fault.c - what a plugin makes of a cloud that fails; creates are in cases_create.c */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/strike.h"

/* ---- reads: an error is not an absence ---- */

static const char *const read_faults[] = { "unauthorized", "throttled",  "broken",
                                           "drop",         "lost-reply", "garbage",
                                           "huge",         "truncated",  "short-body" };

static bool
absence_is_proven (struct test *t, const struct answer *a, const struct strike *x, int at)
{
  bool absent = x->m ? !with_id (a->machines, x->m->id) : false;
  const char *scope = x->m ? json_str (x->m->ref, "scope", NULL) : NULL;

  return expect (t, !absent || !scope_complete (a, scope), a,
                 "'%s' with fault '%s' at request %d: machine %s, or its scope not complete",
                 x->call, x->fault, at + 1, x->m ? x->m->id : "");
}

static bool
offers_are_proven (struct test *t, const struct answer *a, const struct strike *x, int at)
{
  json_t *o;
  size_t i;

  json_array_foreach ((json_t *) (uintptr_t) t->offers, i, o) {
    const json_t *other;
    bool there = false;
    size_t k;

    json_array_foreach (a->offers, k, other) {
      there |= strcmp (json_str (o, "offer_ref", ""), json_str (other, "offer_ref", "")) == 0;
    }
    if (!expect (t, there || !scope_complete (a, json_str (o, "scope", NULL)), a,
                 "list_offers with fault '%s' at request %d: offer %s, or its scope not complete",
                 x->fault, at + 1, json_str (o, "offer_ref", "?")))
      return false;
  }
  return true;
}

static bool
sweep_read (struct test *t, const char *call, const struct made *m,
            bool (*holds) (struct test *, const struct answer *, const struct strike *, int))
{
  struct strike x = { .call = call, .m = m };
  int n = strike_requests (t, &x, strike_args (&x));

  for (size_t f = 0; f < N_ELEMENTS (read_faults) && !t->failed; f++)
    for (int at = 0; at < n && !t->failed; at++) {
      const struct answer *a;

      x.fault = read_faults[f];
      a = strike (t, &x, at, strike_args (&x));
      if (!a || !holds (t, a, &x, at))
        return false;
    }
  return !t->failed;
}

CASE (no_absence)
{
  struct made *m = make (t);
  uint64_t price;

  if (m && cheapest (t, &price))
    (void) (sweep_read (t, "find", m, absence_is_proven) &&
            sweep_read (t, "list", m, absence_is_proven) &&
            sweep_read (t, "list_offers", NULL, offers_are_proven));
}

static bool
is_not_gone (struct test *t, const struct answer *a, const struct strike *x, int at)
{
  const json_t *m = json_array_get (a->machines, 0);

  return expect (t,
                 a->kind != ERR_NOT_FOUND && strcmp (json_str (m, "state", ""), "gone") != 0 &&
                     (a->kind != ERR_NONE || with_id (a->machines, x->m->id)),
                 a, "get with fault '%s' at request %d: the machine or an error, never its end",
                 x->fault, at + 1);
}

CASE (get_faults)
{
  struct made *m = make (t);

  if (m)
    sweep_read (t, "get", m, is_not_gone);
}

/* ---- what happens to a machine ---- */

static bool
order (struct test *t, const struct made *m, json_t *what)
{
  char path[600];
  json_t *answer;

  snprintf (path, sizeof path, "machines/%s", m->id);
  answer = fake_control (&t->kit->fake, "POST", path, what);
  if (!answer)
    return skip (t, "the fake takes no orders for machine %s", m->id);
  json_decref (answer);
  return true;
}

/* Clouds without such a state end it by themselves; then it says why. */
static bool
is_given_up (const json_t *machine)
{
  const char *state = json_str (machine, "state", "");

  return strcmp (state, "error") == 0 ||
         (strcmp (state, "deleting") == 0 && json_str (machine, "fail_kind", NULL));
}

CASE (late_refusal)
{
  struct made *m = make (t);
  struct answer *a;

  if (!m || !order (t, m, json_pack ("{s:s, s:s}", "do", "fail", "details", "out of stock")))
    return;
  a = ask (t, "get", ref_args (m));
  expect (
      t, a->kind == ERR_NONE && is_given_up (with_id (a->machines, m->id)), a,
      "get of a machine that the cloud accepted and then gave up: state error, or deleting with "
      "a fail_kind; not its end");
}

CASE (vanished)
{
  struct made *m = make (t);

  if (!m || !order (t, m, json_pack ("{s:s}", "do", "vanish")))
    return;
  make_old (m->ref);
  if (wait_gone (t, m))
    expect_kind (t, ask (t, "remove", ref_args (m)), ERR_NONE,
                 "remove of a machine that vanished by itself");
}

/* ---- remove ---- */

static const char *const remove_faults[] = { "lost-reply",   "drop",      "broken",
                                             "unauthorized", "throttled", "garbage" };

static bool
ends (struct test *t, const struct made *m, const char *kind, int at)
{
  struct strike x = { .call = "remove", .fault = kind, .m = m };
  struct answer *a = strike (t, &x, at, ref_args (m));

  return a && expect (t, a->kind != ERR_NONE || !with_id (truth (t), m->id), a,
                      "remove with fault '%s' at request %d: ok only when the machine ends", kind,
                      at + 1);
}

/* Some clouds remove nothing that is being built. */
static bool
wait_running (struct test *t, const struct made *m)
{
  int64_t end = clock_boot_ms () + kit_patience (t->kit, DEADLINE_MS);
  struct answer *a = ask (t, "get", ref_args (m));

  while (strcmp (json_str (json_array_get (a->machines, 0), "state", ""), "creating") == 0 &&
         clock_boot_ms () < end) {
    poll (NULL, 0, 50);
    a = ask (t, "get", ref_args (m));
  }
  return expect_kind (t, a, ERR_NONE, "get");
}

CASE (remove_lost)
{
  struct strike x = { .call = "remove", .m = make (t) };
  int n = x.m && wait_running (t, x.m) ? strike_requests (t, &x, ref_args (x.m)) : 0;
  size_t first = t->made.n, all = N_ELEMENTS (remove_faults) * (size_t) n;

  for (size_t i = 0; i < all; i++)
    if (!make (t) || t->failed)
      return;
  if (all == 0 || !wait_running (t, t->made.at[first + all - 1]))
    return;
  for (size_t i = 0; i < all; i++)
    if (!ends (t, t->made.at[first + i], remove_faults[i / (size_t) n], (int) (i % (size_t) n)))
      return;
}

/* ---- all requests fail ---- */

static const char *const all_calls[] = { "probe", "list_offers", "get",   "find",
                                         "list",  "remove",      "create" };

static struct answer *
call_all_faulty (struct test *t, const char *call, const struct made *m, const char *kind,
                 json_t *more)
{
  struct strike x = { .call = call, .m = m };
  uint64_t price;
  json_t *args = strcmp (call, "create") == 0 ? create_args (t, cheapest (t, &price), new_token (t))
                                              : strike_args (&x);
  struct answer *a;

  if (!again (t) || !fault (t, kind, -1, 0, more)) {
    json_decref (args);
    return NULL;
  }
  a = ask_within (t, FAULT_DEADLINE_MS, call, args);
  calm (t);
  return a;
}

/* A list may also end well and say so scope by scope. */
static bool
says (const struct answer *a, enum err_kind kind)
{
  const json_t *s = json_array_get (a->scopes, 0);

  return a->kind == kind ||
         (a->kind == ERR_NONE && s && strcmp (json_str (s, "kind", ""), err_kind_name (kind)) == 0);
}

CASE (rate_limited)
{
  enum { DELAY_S = 7 };
  struct made *m = make (t);

  for (size_t i = 0; m && i < N_ELEMENTS (all_calls) && !t->failed; i++) {
    struct answer *a = call_all_faulty (t, all_calls[i], m, "throttled",
                                        json_pack ("{s:i}", "retry_after", DELAY_S));

    if (!a || !expect (t, says (a, ERR_RATE), a, "'%s' when the cloud answers 429: rate-limited",
                       all_calls[i]))
      return;
    expect (t, a->kind == ERR_NONE || a->retry_after_ms / 1000 == DELAY_S, a,
            "retry_after_ms is what the cloud said, %d s", DELAY_S);
  }
}

CASE (refused_key)
{
  struct made *m = make (t);

  for (size_t i = 0; m && i < N_ELEMENTS (all_calls) && !t->failed; i++) {
    struct answer *a = call_all_faulty (t, all_calls[i], m, "unauthorized", NULL);

    if (!a)
      return;
    expect (t, says (a, ERR_AUTH), a, "'%s' when the cloud takes the key no more: auth",
            all_calls[i]);
  }
}

/* ---- stopping ---- */

static bool
wait_for_request (struct test *t, long before)
{
  int64_t end = clock_boot_ms () + kit_patience (t->kit, 10000);

  while (requests (t) <= before && clock_boot_ms () < end)
    session_move (t->s, 10);
  return expect_text (t, requests (t) > before, "none", "a request reaches the cloud");
}

static void
cancel_one (struct test *t, const char *call, const struct made *m)
{
  struct strike x = { .call = call, .m = m };
  struct answer *a;
  int64_t asked;
  long before;

  if (!again (t) || !fault (t, "hang", -1, 0, json_pack ("{s:f}", "seconds", 4.0)))
    return;
  before = requests (t);
  a = ask_begin (t, DEADLINE_MS, call, strike_args (&x));
  if (!wait_for_request (t, before))
    return;
  asked = clock_boot_ms ();
  ask_cancel (t, a);
  ask_end (t, a);
  calm (t);
  expect (t, clock_boot_ms () - asked <= kit_patience (t->kit, SOON_MS), a,
          "'%s' returns within a second of its cancellation", call);
  expect (t, a->kind == ERR_CANCELLED || a->kind == ERR_UNKNOWN || !scope_complete (a, NULL), a,
          "'%s' that was cancelled: cancelled, or unknown when something was sent", call);
}

CASE (cancel)
{
  static const char *const calls[] = { "probe", "list_offers", "find", "list", "get", "remove" };
  struct made *m = make (t);

  for (size_t i = 0; m && i < N_ELEMENTS (calls) && !t->failed && !t->skipped; i++)
    cancel_one (t, calls[i], m);
}
