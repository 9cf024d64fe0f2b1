/* cases_create.c - a create that fails: what was made is told, or UNKNOWN */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/strike.h"

enum { HANG_DEADLINE_MS = 600 };

static const json_t *
newly_made (struct test *t, const json_t *before)
{
  json_t *fresh = keep (t, json_array ()), *m;
  size_t i;

  json_array_foreach ((json_t *) (uintptr_t) truth (t), i, m) {
    if (!with_id (before, json_str (m, "id", "")))
      json_array_append (fresh, m);
  }
  return fresh;
}

/* The machine that exists, by the search that the broker makes after UNKNOWN. */
static bool
is_found (struct test *t, const char *token, const char *id)
{
  int64_t end = clock_boot_ms () + kit_number (t->kit, "visibility_lag_ms") + 1000;
  struct answer *a = ask (t, "find", find_args (token));

  while (json_array_size (a->machines) == 0 && !t->failed && clock_boot_ms () < end) {
    poll (NULL, 0, 50);
    a = ask (t, "find", find_args (token));
  }
  note_made (t, a, token);
  return expect (t, a->kind == ERR_NONE && with_id (a->machines, id), a,
                 "find of token %s: machine %s, which the cloud has", token, id);
}

static bool
is_honest (struct test *t, const struct answer *a, const json_t *made, const char *token,
           const char *what)
{
  const char *id = json_str (json_array_get (made, 0), "id", "");
  size_t n = json_array_size (made);

  if (!expect (t, n <= 1, a, "%s: at most one machine, the cloud has %zu", what, n))
    return false;
  if (n == 0)
    return expect (t, a->kind != ERR_NONE, a, "%s, and the cloud has no machine: an error", what);
  return expect (t,
                 a->kind == ERR_UNKNOWN || with_id (a->machines, id) ||
                     (a->kind == ERR_NONE && json_array_size (a->machines)),
                 a, "%s, and the cloud has machine %s: ok with it, or unknown", what, id) &&
         is_found (t, token, id);
}

static bool
strike_create (struct test *t, const char *offer, const char *kind, int at)
{
  struct strike x = { .call = "create", .fault = kind };
  const char *token = new_token (t);
  const json_t *before = truth (t), *made;
  struct answer *a = strike (t, &x, at, create_args (t, offer, token));
  char what[100];

  if (!a || t->failed)
    return false;
  snprintf (what, sizeof what, "create with fault '%s' at request %d", kind, at + 1);
  made = newly_made (t, before);
  note_made (t, a, token);
  return is_honest (t, a, made, token, what);
}

static int
requests_of_create (struct test *t, const char *offer)
{
  struct strike x = { .call = "create" };
  const char *token = new_token (t);
  const json_t *before = truth (t), *made;
  int n = strike_requests (t, &x, create_args (t, offer, token));

  made = newly_made (t, before);
  if (!t->failed &&
      expect_text (t, json_array_size (made) == 1, "none or several",
                   "a create without faults makes one machine") &&
      is_found (t, token, json_str (json_array_get (made, 0), "id", "")))
    unmake (t, t->made.at[t->made.n - 1]);
  return n;
}

static void
sweep_create (struct test *t, const char *const *faults, size_t nfaults)
{
  uint64_t price;
  const char *offer = cheapest (t, &price);
  int n = offer ? requests_of_create (t, offer) : 0;

  for (size_t f = 0; f < nfaults; f++)
    for (int at = 0; at < n; at++)
      if (t->failed || !strike_create (t, offer, faults[f], at))
        return;
}

CASE (create_lost)
{
  static const char *const faults[] = { "lost-reply", "drop", "broken", "bad-gateway",
                                        "short-body" };

  sweep_create (t, faults, N_ELEMENTS (faults));
}

CASE (create_garbled)
{
  static const char *const faults[] = { "garbage", "huge", "truncated", "unauthorized",
                                        "throttled" };

  sweep_create (t, faults, N_ELEMENTS (faults));
}

static void
hang (struct test *t, const char *offer, int at)
{
  const char *token = new_token (t);
  const json_t *before = truth (t), *made;
  struct answer *a;
  char what[100];

  if (!again (t) || !fault (t, "hang", 1, at, json_pack ("{s:f}", "seconds", 5.0)))
    return;
  a = ask_within (t, HANG_DEADLINE_MS, "create", create_args (t, offer, token));
  calm (t);
  note_made (t, a, token);
  made = newly_made (t, before);
  snprintf (what, sizeof what, "create whose request %d is answered after its deadline", at + 1);
  if (is_honest (t, a, made, token, what))
    expect (t, a->took_ms <= kit_patience (t->kit, HANG_DEADLINE_MS + SOON_MS), a,
            "%s returns within a second of the deadline", what);
}

CASE (create_timeout)
{
  uint64_t price;
  const char *offer = cheapest (t, &price);
  int n = offer ? requests_of_create (t, offer) : 0;

  for (int at = 0; at < n && !t->failed && !t->skipped; at++)
    hang (t, offer, at);
}

/* Wherever it is that the cloud says so: some request of the create must. */
CASE (out_of_stock)
{
  uint64_t price;
  const char *offer = cheapest (t, &price);
  int n = offer ? requests_of_create (t, offer) : 0;
  struct strike x = { .call = "create", .fault = "out-of-stock" };
  struct answer *a = NULL;
  bool seen = false;

  for (int at = 0; at < n && !t->failed && !seen; at++) {
    const char *token = new_token (t);
    const json_t *before = truth (t);

    a = strike (t, &x, at, create_args (t, offer, token));
    if (!a)
      return;
    seen = a->kind == ERR_CAPACITY && json_array_size (newly_made (t, before)) == 0;
    note_made (t, a, token);
  }
  if (a)
    expect (t, seen, a, "a create that the cloud refuses for want of stock: capacity");
}
