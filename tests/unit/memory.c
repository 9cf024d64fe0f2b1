/* memory.c - failure memory: widening, decay, bars, what the store keeps */
#include "config.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/memory.h"
#include "tests/unit/tap.h"

#define MINUTE INT64_C (60000)

static const int64_t now = INT64_C (1800000000000);
static const struct memory_what h100 = { "hyperstack", "NORWAY-1", "n3-H100x1", "on-demand" };
static const struct memory_what spot = { "hyperstack", "NORWAY-1", "n3-H100x1", "spot" };

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
  is_num (memory_fail (m, &spot, MEMORY_QUOTA, "0 of 0", t) - t, 10 * MINUTE, "a quota");
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
    memory_fail (m, &(struct memory_what){ "c", "r", type, "spot" }, MEMORY_CAPACITY, "", now);
  }
  ok (memory_count (m) <= 4096, "a flood of failures is bounded");
  memory_free (m);
  memory_free (n);
}

static void
classify (enum err_kind kind, const char *code, int want, enum memory_why want_why,
          const char *name)
{
  enum memory_why why = MEMORY_CAPACITY;
  int got = memory_classify (kind, code, &why);

  ok (got == want && (got || why == want_why), "%s", name);
}

int
main (void)
{
  widening ();
  bars ();
  kept ();
  classify (ERR_CAPACITY, "OUT_OF_STOCK", 0, MEMORY_CAPACITY, "capacity blocks");
  classify (ERR_QUOTA, "", 0, MEMORY_QUOTA, "quota blocks");
  classify (ERR_INTERNAL, "gpu-absent", 0, MEMORY_MISMATCH, "a missing GPU is a mismatch");
  classify (ERR_UNAVAILABLE, "ssh-timeout", 0, MEMORY_LATE_BOOT, "no SSH in time is a late boot");
  classify (ERR_AUTH, "", 1, MEMORY_CAPACITY, "auth bars");
  classify (ERR_INVALID, NULL, 1, MEMORY_CAPACITY, "invalid bars");
  classify (ERR_UNAVAILABLE, "", -1, MEMORY_CAPACITY, "a bad moment is forgotten");
  return done ();
}
