/* cases_life.c - machines made, found and removed, while nothing goes wrong */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

enum { HOUR_MS = 3600 * 1000, MINUTE_MS = 60 * 1000, NAME_MAX_ = 50, FLOCK = 3, CROWD = 120 };

/* ---- one life ---- */

static bool
has_tags (const json_t *machine, const struct kit *k, const char *token)
{
  const json_t *tags = json_object_get (machine, "tags");

  return !kit_has_cap (k, "tags") ||
         (strcmp (json_str (tags, "gpubroker-owner", ""), k->owner) == 0 &&
          strcmp (json_str (tags, "gpubroker-token", ""), token) == 0 &&
          strcmp (json_str (tags, "gpubroker-lease", ""), "1") == 0);
}

/* Until the cloud shows it: a created machine may be missing for visibility_lag_ms. */
static struct answer *
find_until (struct test *t, const char *call, const char *token, const char *id)
{
  int64_t end = clock_boot_ms () + kit_number (t->kit, "visibility_lag_ms") + 1000;
  struct answer *a;

  do {
    a = ask (t, call, strcmp (call, "find") == 0 ? find_args (token) : NULL);
    if (t->failed || with_id (a->machines, id) || t->kit->mode == MODE_REPLAY)
      break;
    poll (NULL, 0, t->kit->mode == MODE_LIVE ? 2000 : 50);
  } while (clock_boot_ms () < end);
  return a;
}

static bool
shows (struct test *t, const char *call, const struct made *m)
{
  struct answer *a = find_until (t, call, m->token, m->id);
  const json_t *machine = with_id (a->machines, m->id);

  return expect (t, a->kind == ERR_NONE && machine, a, "'%s' shows machine %s", call, m->id) &&
         expect (t, scope_complete (a, json_str (m->ref, "scope", NULL)), a,
                 "scope_done (COMPLETE) for the machine's scope, '%s'",
                 json_str (m->ref, "scope", "none")) &&
         expect (t, has_tags (machine, t->kit, m->token), a,
                 "the tags that create was given, on machine %s in '%s'", m->id, call);
}

static bool
alone (struct test *t, const struct made *m)
{
  struct answer *a = ask (t, "find", find_args (m->token));

  return expect (t, json_array_size (a->machines) == 1 && with_id (a->machines, m->id), a,
                 "find of token %s: machine %s and no other", m->token, m->id);
}

static bool
lives (struct test *t, const struct made *m)
{
  struct answer *a = ask (t, "get", ref_args (m));
  const json_t *machine = with_id (a->machines, m->id);
  const char *state = json_str (machine, "state", "");

  return expect (t, a->kind == ERR_NONE && machine, a, "get shows machine %s", m->id) &&
         expect (t, strcmp (state, "creating") == 0 || strcmp (state, "running") == 0, a,
                 "a machine that was just made is creating or running");
}

static bool
left_nothing (struct test *t, const struct made *m)
{
  struct answer *a = ask (t, "list", NULL);
  const json_t *machine = with_id (a->machines, m->id), *r;
  const char *state = json_str (machine, "state", "gone");
  size_t i;

  json_array_foreach (a->resources, i, r) {
    if (json_is_true (json_object_get (r, "billable")))
      return expect (t, false, a, "nothing that bills is left, yet list shows %s %s",
                     json_str (r, "kind", "?"), json_str (r, "id", "?"));
  }
  return expect (t, strcmp (state, "gone") == 0 || strcmp (state, "deleting") == 0, a,
                 "list no longer shows machine %s", m->id);
}

CASE (life)
{
  struct made *m = make (t);

  if (!m || !expect_text (t, *m->id && json_str (m->ref, "scope", NULL), "one is missing",
                          "the machine has an id and a scope"))
    return;
  if (lives (t, m) && shows (t, "find", m) && shows (t, "list", m) && again (t) && lives (t, m) &&
      shows (t, "find", m) && unmake (t, m) &&
      expect_kind (t, ask (t, "remove", ref_args (m)), ERR_NONE, "remove, once more"))
    left_nothing (t, m);
}

CASE (remove_twice)
{
  struct made *m = make (t);

  if (m && expect_kind (t, remove_patiently (t, m), ERR_NONE, "remove, in the end") &&
      expect_kind (t, ask (t, "remove", ref_args (m)), ERR_NONE, "remove at once again") &&
      wait_gone (t, m))
    expect_kind (t, ask (t, "remove", ref_args (m)), ERR_NONE, "remove of a machine that is gone");
}

/* ---- what create is given ---- */

static char *
base64_zeros (int64_t bytes, const char *start)
{
  /* "#!/bin/sh\n" or "#cloud-config\n" with spaces and comments is what every cloud takes. */
  size_t size = (size_t) bytes, n = strlen (start);
  char *text = malloc (size + 1);

  if (!text)
    abort ();
  memset (text, '#', size);
  memcpy (text, start, n < size ? n : size);
  text[size] = '\0';
  return text;
}

static json_t *
encode (const char *text, size_t len)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *out = calloc (1, len * 4 / 3 + 8), *p = out;
  json_t *j;

  if (!out)
    abort ();
  for (size_t i = 0; i < len; i += 3) {
    unsigned v = (unsigned char) text[i] << 16;

    v |= i + 1 < len ? (unsigned) (unsigned char) text[i + 1] << 8 : 0;
    v |= i + 2 < len ? (unsigned char) text[i + 2] : 0;
    *p++ = digits[v >> 18];
    *p++ = digits[v >> 12 & 63];
    *p++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
    *p++ = i + 2 < len ? digits[v & 63] : '=';
  }
  j = json_string (out);
  free (out);
  return j;
}

static void
add_user_data (const struct kit *k, json_t *args)
{
  bool cloud = kit_has_cap (k, "user-data");
  int64_t most = kit_number (k, "user_data_max");
  AUTO_FREE char *text = NULL;

  if (most <= 0)
    return;
  most = most > 96 * 1024 ? 96 * 1024 : most; /* a frame holds no more */
  text = base64_zeros (most, cloud ? "#cloud-config\n" : "#!/bin/sh\n");
  json_object_set_new (args, "user_data", encode (text, (size_t) most));
  json_put_str (args, "user_data_kind", cloud ? "cloud" : "script");
}

static void
add_port (const struct kit *k, json_t *args)
{
  if (kit_has_cap (k, "open-ports"))
    json_object_set_new (args, "ports",
                         json_pack ("[{s:s, s:i, s:i, s:s}]", "proto", "tcp", "from", 6443, "to",
                                    6443, "cidr", "203.0.113.0/24"));
}

CASE (create_limits)
{
  uint64_t price;
  const char *offer = cheapest (t, &price), *token;
  char name[NAME_MAX_ + 1];
  struct made *m;
  struct answer *a;
  json_t *args;

  if (!offer || !afford (t, price))
    return;
  token = new_token (t);
  args = create_args (t, offer, token);
  memset (name, 'x', NAME_MAX_);
  name[NAME_MAX_] = '\0';
  memcpy (name, "gpub-", 5);
  memcpy (name + 5, token, 20);
  json_put_str (args, "name", name);
  json_object_set_new (args, "max_price_udollar", json_integer ((json_int_t) price));
  add_user_data (t->kit, args);
  add_port (t->kit, args);
  a = ask (t, "create", args);
  m = note_made (t, a, token);
  expect (
      t, a->kind == ERR_NONE && m, a,
      "create with a name of %d characters, user data of user_data_max bytes and the offer's own "
      "price as the most: ok and a machine",
      NAME_MAX_);
}

/* Nothing may be made: neither by what was answered nor in the cloud. */
static bool
makes_nothing (struct test *t, json_t *args, const char *token, const char *what,
               bool (*as) (enum err_kind))
{
  struct answer *a = ask (t, "create", args);

  note_made (t, a, token);
  if (!expect (t, json_array_size (a->machines) == 0 && as (a->kind), a, "%s, and no machine",
               what))
    return false;
  a = ask (t, "find", find_args (token));
  return expect (t, a->kind == ERR_NONE && json_array_size (a->machines) == 0, a,
                 "find of that token: no machine");
}

static bool
is_capacity (enum err_kind kind)
{
  return kind == ERR_CAPACITY;
}

static bool
is_refusal (enum err_kind kind)
{
  return kind == ERR_CAPACITY || kind == ERR_INVALID || kind == ERR_NOT_FOUND;
}

CASE (price_cap)
{
  uint64_t price;
  const char *offer = cheapest (t, &price), *token = new_token (t);
  json_t *args;

  if (!offer)
    return;
  if (price == 0) {
    skip (t, "the cheapest offer costs nothing");
    return;
  }
  args = create_args (t, offer, token);
  json_object_set_new (args, "max_price_udollar", json_integer ((json_int_t) price - 1));
  makes_nothing (t, args, token, "create with a max_price below the offer's price: capacity",
                 is_capacity);
}

CASE (bad_offer)
{
  const char *token = new_token (t);

  makes_nothing (t, create_args (t, "conform|no|such|offer", token), token,
                 "create of an unknown offer_ref: capacity, invalid or not-found", is_refusal);
}

/* ---- the token ---- */

CASE (create_twice)
{
  struct made *m = make (t);
  struct answer *a;

  if (!m)
    return;
  a = ask (t, "create", create_args (t, cheapest (t, &(uint64_t){ 0 }), m->token));
  expect (t, a->kind == ERR_NONE && with_id (a->machines, m->id), a,
          "create with the same bytes again: ok and machine %s", m->id);
  if (!again (t))
    return;
  a = ask (t, "create", create_args (t, cheapest (t, &(uint64_t){ 0 }), m->token));
  if (expect (t, a->kind == ERR_NONE && with_id (a->machines, m->id), a,
              "and in another process: ok and machine %s", m->id))
    alone (t, m);
}

/* The broker never does this on purpose.  Made twice, the second is removed as soon as it is seen.
 */
static bool
all_found (struct test *t, const struct made *m, const struct answer *a)
{
  struct answer *found = ask (t, "find", find_args (m->token));
  const json_t *made;
  size_t i;

  json_array_foreach (a->machines, i, made) {
    if (!expect (t, with_id (found->machines, json_str (made, "id", "")), found,
                 "find of that token shows machine %s", json_str (made, "id", "?")))
      return false;
  }
  return expect (t, with_id (found->machines, m->id), found, "find of that token shows machine %s",
                 m->id);
}

CASE (other_shape)
{
  struct made *m = make (t);
  uint64_t price;
  const char *other = m ? other_offer (t, cheapest (t, &price)) : NULL;
  struct answer *a;

  if (!m)
    return;
  if (!other) {
    skip (t, "there is only one offer");
    return;
  }
  a = ask (t, "create", create_args (t, other, m->token));
  if (json_array_size (a->machines) && !with_id (a->machines, m->id))
    note_made (t, a, m->token);
  if (expect (t, a->kind == ERR_CONFLICT || (a->kind == ERR_NONE && json_array_size (a->machines)),
              a, "create of another offer with the same token: conflict, or a machine"))
    all_found (t, m, a);
}

/* ---- beside other machines ---- */

static json_t *
stranger (struct test *t, int n)
{
  json_t *answer = fake_control (&t->kit->fake, "POST", "machines",
                                 json_pack ("{s:o}", "name", json_sprintf ("stranger-%d", n)));

  return answer ? keep (t, answer) : NULL;
}

static bool
still_there (struct test *t, const char *id)
{
  json_t *all = fake_control (&t->kit->fake, "GET", "machines", NULL);
  const json_t *m = with_id (all, id);
  bool there = m && !json_is_integer (json_object_get (m, "ended_ms")) &&
               !json_is_integer (json_object_get (m, "gone_ms"));

  json_decref (all);
  return there;
}

CASE (foreign)
{
  const json_t *other = stranger (t, 0);
  const char *id = json_str (other, "id", "");
  struct made *m = other ? make (t) : NULL;
  struct answer *a;

  if (!other)
    skip (t, "the fake adds no machine by POST machines");
  if (!m)
    return;
  a = ask (t, "list", NULL);
  if (!expect (t, a->kind == ERR_NONE && !with_id (a->machines, id), a,
               "list leaves out %s, a machine of somebody else", id) ||
      !unmake (t, m))
    return;
  expect_text (t, still_there (t, id), "it is gone", "machine %s of somebody else is still there",
               id);
}

/* Enough of them that every cloud's list has more than one page, and ours at its end. */
CASE (paging)
{
  struct made *ours[FLOCK];

  for (int i = 1; i <= CROWD; i++)
    if (!stranger (t, i)) {
      skip (t, "the fake adds no machine by POST machines");
      return;
    }
  for (int i = 0; i < FLOCK; i++)
    if (!(ours[i] = make (t)))
      return;
  for (int i = 0; i < FLOCK; i++)
    if (!shows (t, "list", ours[i]) || !shows (t, "find", ours[i]) || !alone (t, ours[i]))
      return;
}

CASE (parallel)
{
  int64_t most = kit_number (t->kit, "max_parallel");
  int n = most > 16 ? 16 : (int) most;
  struct answer *a[16];
  uint64_t price;
  const char *offer = cheapest (t, &price), *tokens[2];

  if (!offer)
    return;
  for (int i = 0; i < n; i++)
    a[i] = ask_begin (t, DEADLINE_MS, i % 2 ? "list" : "list_offers", NULL);
  for (int i = 0; i < n && !t->failed; i++)
    expect_kind (t, ask_end (t, a[i]), ERR_NONE, "list and list_offers, max_parallel at once");
  if (t->failed || t->kit->mode == MODE_LIVE)
    return;
  for (int i = 0; i < 2; i++)
    a[i] = ask_begin (t, DEADLINE_MS, "create", create_args (t, offer, tokens[i] = new_token (t)));
  for (int i = 0; i < 2; i++) {
    ask_end (t, a[i]);
    note_made (t, a[i], tokens[i]);
  }
  for (int i = 0; i < 2 && !t->failed; i++)
    expect (t, a[i]->kind == ERR_NONE || a[i]->kind == ERR_CAPACITY, a[i],
            "two creates at once: each ok, or capacity where there is one machine only");
  if (!t->failed && t->made.n == 2)
    expect (t, strcmp (t->made.at[0]->id, t->made.at[1]->id) != 0, a[1],
            "two tokens make two machines");
}

/* ---- optional calls ---- */

static bool
ends_at (struct test *t, const struct made *m, int64_t ms, const char *what)
{
  struct answer *a = ask (t, "get", ref_args (m));
  int64_t got = json_i64 (json_array_get (a->machines, 0), "not_after_ms", 0);

  return expect (t, got >= ms - MINUTE_MS && got <= ms + MINUTE_MS, a,
                 "get after %s: not_after_ms %lld (within a minute), it is %lld", what,
                 (long long) ms, (long long) got);
}

CASE (not_after)
{
  int64_t end = clock_wall_ms () + HOUR_MS;
  uint64_t price;
  const char *offer = cheapest (t, &price), *token = new_token (t);
  struct answer *a;
  struct made *m;
  json_t *args;

  if (!offer || !afford (t, price))
    return;
  args = create_args (t, offer, token);
  json_object_set_new (args, "not_after_ms", json_integer (end));
  a = ask (t, "create", args);
  m = note_made (t, a, token);
  if (!expect (t, a->kind == ERR_NONE && m, a, "create with not_after_ms: ok and a machine") ||
      !ends_at (t, m, end, "create") ||
      !json_is_true (json_object_get (t->kit->describe, "set_not_after")))
    return;
  args = ref_args (m);
  json_object_set_new (args, "ms", json_integer (end + HOUR_MS));
  if (expect_kind (t, ask (t, "set_not_after", args), ERR_NONE, "set_not_after"))
    ends_at (t, m, end + HOUR_MS, "set_not_after");
}

CASE (console)
{
  struct made *m = make (t);
  struct answer *a;

  if (!m)
    return;
  a = ask (t, "console_log", ref_args (m));
  expect (t,
          (a->kind == ERR_NONE && json_str (a->value, "text", NULL)) || a->kind == ERR_UNAVAILABLE,
          a, "console_log: ok and a text, or unavailable while there is none");
}
