/* machines.c - offers, machines, and what the cloud itself says is there */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

/* A real cloud takes minutes to end a machine; the broker waits for ever. */
enum {
  GONE_FAKE_MS = 20000,
  GONE_LIVE_MS = 15 * 60 * 1000,
  POLL_FAKE_MS = 50,
  POLL_LIVE_MS = 5000,
  DAY_MS = 24 * 3600 * 1000
};

static const char public_key[] =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFak conform";

/* ---- offers ---- */

static const json_t *
baseline (struct test *t)
{
  if (!t->offers) {
    struct answer *a = ask (t, "list_offers", json_pack ("{s:n}", "offer_ref"));

    if (expect_kind (t, a, ERR_NONE, "list_offers"))
      t->offers = a->offers;
  }
  return t->offers;
}

/* Sold out, without a price, or in another currency: nothing the broker would rent. */
static bool
rentable (const json_t *o)
{
  return json_is_integer (json_object_get (o, "price_udollar")) &&
         strcmp (json_str (o, "availability", ""), "none") != 0 &&
         strcmp (json_str (o, "currency", "USD"), "USD") == 0 && json_str (o, "offer_ref", NULL);
}

/* An hour of it with the address and the disk that it comes with where nobody asks for another. */
uint64_t
all_in (const json_t *o)
{
  int64_t disk = json_i64 (o, "disk_gib", 0), most = json_i64 (o, "disk_max_gib", 0);
  int64_t more = json_i64 (o, "disk_default_gib", 0) - disk;

  return (uint64_t) (json_i64 (o, "price_udollar", 0) + json_i64 (o, "price_ip_udollar", 0) +
                     (most && more > 0 ? more * json_i64 (o, "price_disk_gib_udollar", 0) : 0));
}

static const json_t *
cheapest_but (struct test *t, const char *than)
{
  const json_t *best = NULL, *o;
  size_t i;

  json_array_foreach (baseline (t), i, o) {
    if (rentable (o) && !(than && strcmp (json_str (o, "offer_ref", ""), than) == 0) &&
        (!best || all_in (o) < all_in (best)))
      best = o;
  }
  return best;
}

const char *
cheapest (struct test *t, uint64_t *price_udollar)
{
  const json_t *o = cheapest_but (t, NULL);

  if (!expect_text (t, o, "no such offer", "list_offers shows an offer with a price and stock"))
    return NULL;
  *price_udollar = all_in (o);
  return json_str (o, "offer_ref", NULL);
}

const char *
other_offer (struct test *t, const char *than)
{
  return json_str (cheapest_but (t, than), "offer_ref", NULL);
}

/* ---- create ---- */

/* Short and the same in a replay: of the run, the case and a count. */
static uint32_t
number_of (const char *id)
{
  uint32_t h = 2166136261u;

  while (*id)
    h = (h ^ (unsigned char) *id++) * 16777619u;
  return h;
}

const char *
new_token (struct test *t)
{
  json_t *j = keep (
      t, json_sprintf ("%s%08x%04xc0de00c0de00", t->kit->run, number_of (t->c->id), ++t->tokens));

  return json_string_value (j);
}

/* A name of its own for each token, as the broker has one for each attempt. */
static json_t *
name_of (const char *token)
{
  return json_sprintf ("gpub-%.20s", token);
}

json_t *
create_args (struct test *t, const char *offer, const char *token)
{
  json_t *args = json_pack ("{s:s, s:I, s:s, s:o, s:[s]}", "offer_ref", offer, "max_price_udollar",
                            (json_int_t) 1000000000, "token", token, "name", name_of (token),
                            "ssh_public_keys", public_key);

  json_object_set_new (args, "tags",
                       json_pack ("{s:s, s:s, s:s}", "gpubroker-owner", t->kit->owner,
                                  "gpubroker-lease", "1", "gpubroker-token", token));
  return args;
}

struct made *
note_made (struct test *t, const struct answer *a, const char *token)
{
  const json_t *m = json_array_get (a->machines, 0);
  struct made *made;
  json_t *ref;

  if (!m)
    return NULL;
  ref = json_object ();
  for (size_t i = 0; i < 6; i++) {
    static const char *const names[] = { "id",          "scope",      "name",
                                         "plugin_data", "created_ms", "resources" };
    json_t *value = json_object_get (m, names[i]);

    if (value)
      json_object_set (ref, names[i], value);
  }
  json_put_str (ref, "token", token);
  made = *vec_push (&t->made) = calloc (1, sizeof *made);
  if (!made)
    abort ();
  *made =
      (struct made){ .id = strdup (json_str (m, "id", "")), .token = strdup (token), .ref = ref };
  return made;
}

bool
afford (struct test *t, uint64_t price_udollar)
{
  struct kit *k = t->kit;

  if (k->mode != MODE_LIVE)
    return true;
  if (k->spent_udollar + price_udollar > k->budget_udollar)
    return skip (t, "an hour of the cheapest machine ($%.4f) is beyond what is left of the budget",
                 (double) price_udollar / 1e6);
  k->spent_udollar += price_udollar;
  return true;
}

struct made *
make (struct test *t)
{
  uint64_t price;
  const char *offer = cheapest (t, &price), *token;
  struct made *m;
  struct answer *a;

  if (!offer || !afford (t, price))
    return NULL;
  token = new_token (t);
  a = ask (t, "create", create_args (t, offer, token));
  m = note_made (t, a, token);
  expect (t, a->kind == ERR_NONE && m, a, "create of offer %s: ok and a machine", offer);
  return t->failed ? NULL : m;
}

/* ---- asking about machines ---- */

json_t *
find_args (const char *token)
{
  return json_pack ("{s:s, s:o}", "token", token, "name", name_of (token));
}

/* A cloud that shows a machine late may be asked about one that is long made, and not be excused.
 */
void
make_old (json_t *ref)
{
  json_object_set_new (ref, "created_ms", json_integer (clock_wall_ms () - DAY_MS));
}

json_t *
ref_args (const struct made *m)
{
  return json_pack ("{s:O}", "ref", m->ref);
}

const json_t *
with_id (const json_t *machines, const char *id)
{
  const json_t *m;
  size_t i;

  json_array_foreach (machines, i, m) {
    if (strcmp (json_str (m, "id", ""), id) == 0)
      return m;
  }
  return NULL;
}

/* NULL: every scope that was named, and at least one. */
bool
scope_complete (const struct answer *a, const char *scope)
{
  const json_t *s;
  bool complete = false;
  size_t i;

  json_array_foreach (a->scopes, i, s) {
    if (scope && strcmp (json_str (s, "scope", ""), scope) != 0)
      continue;
    if (strcmp (json_str (s, "how", ""), "complete") != 0)
      return false;
    complete = true;
  }
  return complete;
}

/* ---- the end of a machine ---- */

static bool
is_gone (const struct answer *a)
{
  const json_t *m = json_array_get (a->machines, 0);

  return a->kind == ERR_NOT_FOUND ||
         (a->kind == ERR_NONE && strcmp (json_str (m, "state", ""), "gone") == 0);
}

static int64_t
gone_ms (const struct test *t)
{
  return t->kit->mode == MODE_LIVE ? GONE_LIVE_MS : GONE_FAKE_MS;
}

static void
pause_between (const struct test *t)
{
  if (t->kit->mode != MODE_REPLAY)
    poll (NULL, 0, t->kit->mode == MODE_LIVE ? POLL_LIVE_MS : POLL_FAKE_MS);
}

bool
wait_gone (struct test *t, struct made *m)
{
  int64_t end = clock_boot_ms () + kit_patience (t->kit, gone_ms (t));
  struct answer *a = ask (t, "get", ref_args (m));

  while (!is_gone (a) && !t->failed && clock_boot_ms () < end) {
    pause_between (t);
    a = ask (t, "get", ref_args (m));
  }
  m->gone = is_gone (a);
  return expect (t, m->gone, a, "get of %s after remove: not-found or state gone in the end",
                 m->id);
}

/* Some clouds remove nothing while they build it: unavailable is asked again, as the broker does.
 */
struct answer *
remove_patiently (struct test *t, const struct made *m)
{
  int64_t end = clock_boot_ms () + kit_patience (t->kit, gone_ms (t));
  struct answer *a = ask (t, "remove", ref_args (m));

  while (a->kind == ERR_UNAVAILABLE && !t->failed && clock_boot_ms () < end) {
    pause_between (t);
    a = ask (t, "remove", ref_args (m));
  }
  return a;
}

bool
unmake (struct test *t, struct made *m)
{
  return expect_kind (t, remove_patiently (t, m), ERR_NONE, "remove, in the end") &&
         wait_gone (t, m);
}

static bool
each_made (struct test *t, bool (*end) (struct test *, struct made *))
{
  bool all = true;

  for (size_t i = 0; i < t->made.n; i++) {
    struct made *m = t->made.at[i];

    t->failed = false;
    if (m->gone || end (t, m))
      continue;
    all = false;
    snprintf (m->stays, sizeof m->stays, "%.290s", t->got);
  }
  return all;
}

static bool
ask_remove (struct test *t, struct made *m)
{
  return expect_kind (t, remove_patiently (t, m), ERR_NONE, "remove, in the end");
}

/* Runs after each case, also after a failed one, so with a clean verdict: a machine that stays is
 * told whatever happened before.  All are removed before the end of any is waited for. */
void
remove_all_made (struct test *t)
{
  bool failed = t->failed;

  for (int tries = 0; tries < 3; tries++) {
    bool asked = each_made (t, ask_remove), gone = each_made (t, wait_gone);

    if (asked && gone)
      break;
  }
  for (size_t i = 0; i < t->made.n; i++)
    if (!t->made.at[i]->gone) {
      printf ("# STILL THERE: machine %s of token %s: %s\n", t->made.at[i]->id,
              t->made.at[i]->token, t->made.at[i]->stays);
      t->kit->left++;
      failed = true;
    }
  t->failed = failed;
}

/* ---- the fake ---- */

const json_t *
truth (struct test *t)
{
  json_t *all = fake_control (&t->kit->fake, "GET", "machines", NULL), *ours = json_array (), *m;
  size_t i;

  expect_text (t, all, "no such answer", "the fake answers GET machines");
  json_array_foreach (all, i, m) {
    if (!json_is_true (json_object_get (m, "foreign")) &&
        !json_is_integer (json_object_get (m, "ended_ms")) &&
        !json_is_integer (json_object_get (m, "gone_ms")))
      json_array_append (ours, m);
  }
  json_decref (all);
  return keep (t, ours);
}

bool
fault (struct test *t, const char *kind, int times, int skip_requests, json_t *more)
{
  json_t *body = more ? more : json_object ();
  json_t *answer;

  json_put_str (body, "on", "*");
  json_put_str (body, "kind", kind);
  json_put_i64 (body, "times", times);
  json_put_i64 (body, "skip", skip_requests);
  answer = fake_control (&t->kit->fake, "POST", "faults", body);
  if (!answer)
    return skip (t, "the fake knows no fault '%s'", kind);
  json_decref (answer);
  return true;
}

void
calm (struct test *t)
{
  if (t->kit->mode == MODE_FAKE)
    json_decref (fake_control (&t->kit->fake, "DELETE", "faults", NULL));
}

long
requests (struct test *t)
{
  json_t *all = fake_control (&t->kit->fake, "GET", "counters", NULL), *n;
  const char *endpoint;
  long sum = 0;

  if (!json_is_object (all))
    sum = -1;
  json_object_foreach (all, endpoint, n) {
    sum += (long) json_integer_value (n);
  }
  json_decref (all);
  return sum;
}
