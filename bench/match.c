/* match.c - how long matching and ranking take, beside the plain way: JSON objects as they came,
 * qsort
 *
 * Prints microseconds of the median of many runs.  The filters: one that a person would write (a
 * twelfth of the offers are the model asked for), and the worst one, which everything matches and
 * which therefore has to sort all.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "core/match.h"

static const char *const models[] = {
  "H100", "H200", "B200", "A100-80GB", "A100-40GB", "L40S",
  "L4",   "A10",  "T4",   "RTX 4090",  "RTX A6000", "V100-32GB"
};
static const char *const regions[] = { "oslo-1", "montreal-1", "eu-north1", "us-east-1",
                                       "us-west-2" };

static const int64_t now = INT64_C (1800000000000);

static uint32_t seed = 1;

static uint32_t
roll (uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

static double
us (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static json_t *
make_offer (size_t i)
{
  int gpus = 1 << roll (4);

  return json_pack ("{s:o, s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:s}", "offer_ref",
                    json_sprintf ("ref-%06zu", i), "gpu_name", models[roll (N_ELEMENTS (models))],
                    "region", regions[roll (N_ELEMENTS (regions))], "market",
                    roll (4) ? "on-demand" : "spot", "gpu_count", gpus, "price_udollar",
                    (json_int_t) (200 + roll (4000)) * gpus * 1000, "vcpus", 16 * gpus, "ram_mib",
                    65536 * gpus, "availability", "available");
}

static struct offers *
fill (size_t n, json_t **plain)
{
  struct offers *o = offers_new (NULL);
  AUTO_JSON json_t *scope = json_pack ("{s:{s:s, s:s}}", "scope", "scope", "", "how", "complete");

  offers_provider (o, "p", "cloud", 1u << 8);
  offers_state (o, "p", OFFERS_UP, NULL);
  offers_begin (o, "p");
  for (size_t i = 0; i < n; i++) {
    AUTO_JSON json_t *item = NULL;

    plain[i] = make_offer (i);
    item = json_pack ("{s:[O]}", "offers", plain[i]);
    offers_item (o, "p", item, now);
  }
  offers_item (o, "p", scope, now);
  offers_end (o, "p", now);
  return o;
}

static int
by_price (const void *a, const void *b)
{
  int64_t x = json_i64 (*(json_t *const *) a, "price_udollar", 0);
  int64_t y = json_i64 (*(json_t *const *) b, "price_udollar", 0);

  return (x > y) - (x < y);
}

/* Knows three of the two dozen reasons, no texts and no ties. */
static size_t
plain_match (json_t *const *all, size_t n, const char *model, json_t **out)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++) {
    if (model && strcmp (json_str (all[i], "gpu_name", ""), model) != 0)
      continue;
    if (model && json_i64 (all[i], "gpu_count", 0) != 1)
      continue;
    if (model && strcmp (json_str (all[i], "market", ""), "on-demand") != 0)
      continue;
    out[found++] = all[i];
  }
  qsort (out, found, sizeof *out, by_price);
  return found;
}

static int
by_double (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static void
measure (size_t n, const char *filter, const char *model)
{
  enum { RUNS = 21 };
  AUTO_FREE json_t **plain = calloc (n, sizeof *plain);
  AUTO_FREE json_t **out = calloc (n, sizeof *out);
  AUTO_JSON json_t *j = json_loads (filter, 0, NULL);
  struct match_context c = MATCH_CONTEXT_INIT;
  double ours[RUNS], theirs[RUNS];
  size_t found = 0, plainly = 0;
  struct err e = ERR_INIT;
  struct offers *o;
  struct filter f;

  c.now_ms = now;
  o = fill (n, plain);
  if (filter_parse (&f, j, MARKET_ON_DEMAND, &e) < 0)
    abort ();
  for (int i = 0; i < RUNS; i++) {
    double start = us (), middle;
    struct match m;

    if (match_run (o, &f, &c, &m, &e) < 0)
      abort ();
    middle = us ();
    plainly = plain_match (plain, n, model, out);
    theirs[i] = us () - middle;
    ours[i] = middle - start;
    found = m.n;
    match_done (&m);
  }
  if (found != plainly)
    fprintf (stderr, "bench: the two ways disagree: %zu and %zu\n", found, plainly);
  qsort (ours, RUNS, sizeof *ours, by_double);
  qsort (theirs, RUNS, sizeof *theirs, by_double);
  printf ("match %6zu offers, %6zu fit: %9.1f us; the plain way %9.1f us; ratio %.2f\n", n, found,
          ours[RUNS / 2], theirs[RUNS / 2], theirs[RUNS / 2] / ours[RUNS / 2]);
  for (size_t i = 0; i < n; i++)
    json_decref (plain[i]);
  filter_done (&f);
  offers_free (o);
}

int
main (void)
{
  static const size_t sizes[] = { 1000, 10000, 90000 };

  for (size_t i = 0; i < N_ELEMENTS (sizes); i++)
    measure (sizes[i], "{\"gpu\":[{\"model\":\"H100\"}]}", "H100");
  for (size_t i = 0; i < N_ELEMENTS (sizes); i++)
    measure (sizes[i], "{\"market\":\"any\"}", NULL);
  return 0;
}
