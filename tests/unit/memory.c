/* memory.c - failure memory: widening, decay, bars, what the store keeps */
#include "config.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/memory.h"
#include "tests/unit/tap.h"

#define MINUTE INT64_C (60000)

static const int64_t now = INT64_C (1800000000000);
static const struct memory_what h100 = { "hyperstack", "NORWAY-1", "n3-H100x1",
                                         "on-demand",  NULL,       NULL };
static const struct memory_what spot = {
  "hyperstack", "NORWAY-1", "n3-H100x1", "spot", NULL, NULL
};

static void
widening (void)
{
  struct memory *m = memory_new ();
  uint64_t key = memory_key (&h100);
  int64_t t = now;

  ok (!memory_blocked (m, key, now), "nothing is blocked at first");
  is_num (memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t) - t, 2 * MINUTE,
          "a first failure: two minutes");
  ok (memory_blocked (m, key, t + 2 * MINUTE - 1) && !memory_blocked (m, key, t + 2 * MINUTE),
      "no less, no more");
  ok (!memory_blocked (m, memory_key (&spot), t), "another market is another thing");
  t += 3 * MINUTE;
  is_num (memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t) - t, 4 * MINUTE, "again: four");
  t += 5 * MINUTE;
  is_num (memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t) - t, 8 * MINUTE, "again: eight");
  for (int i = 0; i < 10; i++)
    memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t);
  is_num (memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t) - t, 30 * MINUTE,
          "never more than thirty");
  t += 61 * MINUTE;
  is_num (memory_fail (m, &h100, MEMORY_CAPACITY, "none left", t) - t, 2 * MINUTE,
          "long after it is a first one");
  is_num (memory_fail (m, &h100, MEMORY_MISMATCH, "7 GPUs", t) - t, 30 * MINUTE,
          "another reason begins anew");
  is_num (memory_blocked (m, key, t)->times, 1, "and is counted so");
  memory_success (m, &h100, t);
  ok (!memory_blocked (m, key, t) && memory_succeeded (m, key, t), "success lifts it");
  ok (memory_succeeded (m, key, t + 59 * MINUTE) && !memory_succeeded (m, key, t + 60 * MINUTE),
      "for an hour");
  is_num (memory_fail (m, &h100, MEMORY_LATE_BOOT, "20 min", t) - t, 5 * MINUTE, "a late boot");
  memory_free (m);
}

static void
bars (void)
{
  struct memory *m = memory_new ();

  memory_bar (m, "aws", "eu-south-1", "AuthFailure", now);
  ok (memory_barred (m, "aws", "eu-south-1", now) && !memory_barred (m, "aws", "eu-west-1", now) &&
          !memory_barred (m, "aws", NULL, now),
      "a region is barred alone");
  memory_bar (m, "aws", NULL, "401", now);
  is_str (memory_barred (m, "aws", "eu-west-1", now)->text, "401", "a provider with all of them");
  ok (!memory_barred (m, "aws-us", NULL, now), "but not its namesake");
  memory_bar (m, "aws-us", "x", "no", now);
  ok (!memory_barred (m, "aws", NULL, now + 5 * MINUTE), "for five minutes");
  memory_unbar (m, "aws");
  ok (!memory_barred (m, "aws", "eu-south-1", now) && memory_barred (m, "aws-us", "x", now),
      "lifted by hand");
  memory_free (m);
}

static void
kept (void)
{
  struct memory *m = memory_new (), *n = memory_new ();
  AUTO_JSON json_t *j = NULL, *again = NULL,
                   *odd = json_pack ("[{s:s}, s, {s:s, s:s}]", "name", "x", "y", "name", "z", "why",
                                     "bad-luck");
  AUTO_FREE char *a = NULL, *b = NULL;

  ok (!memory_changed (m), "nothing to write at first");
  memory_fail (m, &h100, MEMORY_CAPACITY, "none left", now);
  memory_bar (m, "aws", "eu-south-1", "AuthFailure", now);
  memory_success (m, &spot, now);
  ok (memory_changed (m) && !memory_changed (m), "a change is told once");
  j = memory_json (m);
  memory_load (n, j, now);
  again = memory_json (n);
  a = json_canonical (j);
  b = json_canonical (again);
  is_str (b, a, "what was kept comes back");
  ok (memory_blocked (n, memory_key (&h100), now) && memory_barred (n, "aws", "eu-south-1", now) &&
          memory_succeeded (n, memory_key (&spot), now),
      "and works");
  memory_load (n, odd, now);
  memory_load (n, NULL, now);
  is_num ((int64_t) memory_count (n), 3, "what is not understood is skipped");
  memory_free (n);
  n = memory_new ();
  memory_load (n, j, now - 1000 * MINUTE);
  ok (!memory_blocked (n, memory_key (&h100), now - 1000 * MINUTE + 31 * MINUTE),
      "a clock set back blocks nothing for long");
  memory_expire (m, now + 10 * MINUTE);
  is_num ((int64_t) memory_count (m), 3, "what still says something stays");
  memory_expire (m, now + 100 * MINUTE);
  is_num ((int64_t) memory_count (m), 0, "and goes when it does not");
  for (int i = 0; i < 5000; i++) {
    char type[16];

    snprintf (type, sizeof type, "t%d", i);
    memory_fail (m, &(struct memory_what){ "c", "r", type, "spot", NULL, NULL }, MEMORY_CAPACITY,
                 "", now);
  }
  ok (memory_count (m) <= 4096, "a flood of failures is bounded");
  memory_free (m);
  memory_free (n);
}

/* Two accounts, a and b, of one cloud; r is counted apart, unless area is NULL. */
static struct memory_what
what_of (const char *provider, const char *region, const char *type, const char *market, bool apart)
{
  return (struct memory_what){ "cloud", region, type, market, provider, apart ? region : NULL };
}

static void
accounts (void)
{
  enum { NOTHING, STOCK, MONEY, QUOTA };
  static const struct {
    const char *region, *type, *market;
    enum memory_why why;
    bool apart;
  } fails[] = {
    { "r", "small", "on-demand", MEMORY_CAPACITY, true }, /* 0 */
    { "r", "small", "on-demand", MEMORY_MONEY, true },    /* 1 */
    { "r", "small", "on-demand", MEMORY_QUOTA, true },    /* 2 */
    { "r", "big", "on-demand", MEMORY_QUOTA, true },      /* 3: with 2 */
    { "r", "small", "spot", MEMORY_QUOTA, true },         /* 4 */
    { "r", "small", "on-demand", MEMORY_QUOTA, false },   /* 5 */
    { "s", "big", "on-demand", MEMORY_QUOTA, false },     /* 6: with 5 */
    { "s", "big", "on-demand", MEMORY_QUOTA, true },      /* 7: with 2 */
  };
  static const struct {
    int first, second; /* of fails; -1: none */
    const char *provider, *region, *type, *market;
    int want;
  } cases[] = {
    { 0, -1, "a", "r", "small", "on-demand", STOCK },
    { 0, -1, "b", "r", "small", "on-demand", STOCK },
    { 0, -1, "a", "r", "big", "on-demand", NOTHING },
    { 1, -1, "a", "r", "small", "on-demand", MONEY },
    { 1, -1, "a", "s", "big", "spot", MONEY },
    { 1, -1, "b", "r", "small", "on-demand", NOTHING },
    { 2, -1, "a", "r", "small", "on-demand", QUOTA },
    { 2, -1, "b", "r", "small", "on-demand", NOTHING },
    { 2, -1, "a", "r", "big", "on-demand", NOTHING },
    { 2, -1, "a", "s", "small", "on-demand", NOTHING },
    { 2, 3, "a", "r", "other", "on-demand", QUOTA },
    { 2, 3, "b", "r", "other", "on-demand", NOTHING },
    { 2, 3, "a", "r", "other", "spot", NOTHING },
    { 2, 3, "a", "s", "small", "on-demand", NOTHING },
    { 2, 2, "a", "r", "other", "on-demand", NOTHING },
    { 2, 4, "a", "r", "other", "on-demand", NOTHING },
    { 2, 7, "a", "r", "other", "on-demand", NOTHING },
    { 2, 7, "a", "s", "other", "on-demand", NOTHING },
    { 5, 6, "a", "t", "other", "on-demand", QUOTA },
    { 5, 6, "b", "t", "other", "on-demand", NOTHING },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    struct memory *m = memory_new ();
    struct memory_what w = what_of (cases[i].provider, cases[i].region, cases[i].type,
                                    cases[i].market, cases[i].first < 5);
    int got;

    for (int k = 0; k < 2; k++) {
      int f = k ? cases[i].second : cases[i].first;
      struct memory_what x;

      if (f < 0)
        continue;
      x = what_of ("a", fails[f].region, fails[f].type, fails[f].market, fails[f].apart);
      memory_fail (m, &x, fails[f].why, "no", now);
    }
    got = memory_blocked (m, memory_key (&w), now)   ? STOCK
          : memory_broke (m, cases[i].provider, now) ? MONEY
          : memory_quota (m, &w, now)                ? QUOTA
                                                     : NOTHING;
    ok (got == cases[i].want, "failures %d and %d, then %s/%s/%s/%s: %d", cases[i].first,
        cases[i].second, cases[i].provider, cases[i].region, cases[i].type, cases[i].market, got);
    memory_free (m);
  }
}

static void
mended (void)
{
  struct memory_what small = what_of ("a", "r", "small", "on-demand", true);
  struct memory_what big = what_of ("a", "r", "big", "on-demand", true);
  struct memory *m = memory_new (), *n = memory_new ();
  AUTO_JSON json_t *j = NULL;
  bool is_spot;

  is_num (memory_fail (m, &small, MEMORY_MONEY, "no", now) - now, 10 * MINUTE,
          "money: ten minutes");
  is_num (memory_fail (m, &small, MEMORY_QUOTA, "no", now) - now, 10 * MINUTE, "so is quota");
  memory_fail (m, &big, MEMORY_QUOTA, "no", now);
  j = memory_json (m);
  memory_load (n, j, now);
  ok (memory_broke (n, "a", now) && memory_quota (n, &small, now), "both outlive a restart");
  ok (memory_blocked (n, memory_account_key (memory_key (&small), "a"), now) != NULL,
      "the key of a type and an account is that of its entry");
  memory_unbar (m, "a");
  ok (memory_broke (m, "a", now) != NULL, "a listing that works proves no money");
  memory_success (m, &small, now);
  ok (!memory_broke (m, "a", now) && !memory_quota (m, &small, now), "a machine does, and quota");
  ok (memory_quota (m, &big, now) &&
          !memory_quota (m, &(struct memory_what){ "cloud", "r", "x", "on-demand", "a", "r" }, now),
      "but not for another type");
  memory_forgive (n, "b");
  ok (memory_broke (n, "a", now) != NULL, "another account's check changes nothing");
  memory_forgive (n, "a");
  is_num ((int64_t) memory_count (n), 0, "its own forgets it all");
  memory_fail (n, &small, MEMORY_QUOTA, "no", now);
  memory_fail (n, &big, MEMORY_QUOTA, "no", now);
  for (size_t i = 0; i < memory_count (n); i++)
    if (memory_area (memory_at (n, i), "a", &is_spot))
      is_str (memory_area (memory_at (n, i), "a", &is_spot), "r", "an area is told");
  memory_free (m);
  memory_free (n);
}

static void
classify (enum err_kind kind, const char *code, int want, enum memory_why want_why,
          const char *name)
{
  struct err e = { .kind = kind };
  enum memory_why why = MEMORY_CAPACITY;
  int got;

  snprintf (e.code, sizeof e.code, "%s", code ? code : "");
  snprintf (e.text, sizeof e.text, "%s", name);
  got = memory_classify (&e, &why);

  ok (got == want && (got || why == want_why), "%s", name);
}

int
main (void)
{
  widening ();
  bars ();
  kept ();
  accounts ();
  mended ();
  classify (ERR_CAPACITY, "OUT_OF_STOCK", 0, MEMORY_CAPACITY, "capacity blocks");
  classify (ERR_QUOTA, "", 0, MEMORY_QUOTA, "a limit is a quota");
  classify (ERR_QUOTA, "", 0, MEMORY_MONEY, "Insufficient balance: that is money");
  classify (ERR_QUOTA, "", 0, MEMORY_MONEY, "create VM: HTTP 402: that is, too");
  classify (ERR_QUOTA, "INSUFFICIENT_FUNDS", 0, MEMORY_MONEY, "and a code may say so");
  classify (ERR_CAPACITY, "", 0, MEMORY_CAPACITY, "balance of stock is stock");
  classify (ERR_INTERNAL, "gpu-absent", 0, MEMORY_MISMATCH, "a missing GPU is a mismatch");
  classify (ERR_UNAVAILABLE, "ssh-timeout", 0, MEMORY_LATE_BOOT, "no SSH in time is a late boot");
  classify (ERR_AUTH, "", 1, MEMORY_CAPACITY, "auth bars");
  classify (ERR_INVALID, NULL, 1, MEMORY_CAPACITY, "invalid bars");
  classify (ERR_UNAVAILABLE, "", -1, MEMORY_CAPACITY, "a bad moment is forgotten");
  return done ();
}
