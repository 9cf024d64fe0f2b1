/* api_cost.c - what was spent, from the books: per owner, provider, GPU or day */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/api.h"

enum { DAY_MS = 86400000 };

struct sums {
  const char *by;
  int64_t since, now;
  json_t *rows; /* key: row */
  json_t *last; /* key: the lease that was added last, so that each counts once */
  int64_t total, rate;
};

static void
add (struct sums *s, const struct lease *l, const char *key, int64_t spent, int64_t ms,
     int64_t rate)
{
  json_t *row = json_object_get (s->rows, key);

  if (!row) {
    row = json_pack ("{s:s, s:i, s:i, s:i, s:i}", "key", key, "leases", 0, "machine_ms", 0,
                     "spent_udollar", 0, "rate_udollar", 0);
    json_object_set_new (s->rows, key, row);
  }
  if (json_i64 (s->last, key, 0) != l->number)
    json_put_i64 (row, "leases", json_i64 (row, "leases", 0) + 1);
  json_put_i64 (s->last, key, l->number);
  json_put_i64 (row, "machine_ms", json_i64 (row, "machine_ms", 0) + ms);
  json_put_i64 (row, "spent_udollar", json_i64 (row, "spent_udollar", 0) + spent);
  json_put_i64 (row, "rate_udollar", json_i64 (row, "rate_udollar", 0) + rate);
  s->total += spent;
  s->rate += rate;
}

static void
add_days (struct sums *s, const struct attempt *a, int64_t from, int64_t to, int64_t rate)
{
  while (from < to) {
    int64_t next = (from / DAY_MS + 1) * DAY_MS, end = next < to ? next : to;
    time_t day = (time_t) (from / 1000);
    struct tm tm;
    char key[16];

    gmtime_r (&day, &tm);
    strftime (key, sizeof key, "%Y-%m-%d", &tm);
    add (s, a->lease, key, attempt_price (a, end - from), end - from, end == to ? rate : 0);
    from = end;
  }
}

/* What an adopted machine has is not known. */
static const char *
gpu_of (const struct attempt *a)
{
  const json_t *gpu = json_object_get (a->offer, "gpu");

  return a->offer ? json_str (gpu, "model", json_str (gpu, "raw", "none")) : "unknown";
}

static const char *
key_of (const struct sums *s, const struct attempt *a)
{
  if (strcmp (s->by, "provider") == 0)
    return a->provider;
  return strcmp (s->by, "gpu") == 0 ? gpu_of (a) : a->lease->owner;
}

static void
add_attempt (struct sums *s, const struct attempt *a)
{
  int64_t from = a->created_ms > s->since ? a->created_ms : s->since,
          to = a->ended_ms ? a->ended_ms : s->now;
  int64_t rate = attempt_ended (a->state) ? 0 : a->price_udollar;

  if (!a->billed || to <= from)
    return;
  if (strcmp (s->by, "day") == 0)
    add_days (s, a, from, to, rate);
  else
    add (s, a->lease, key_of (s, a), attempt_price (a, to - from), to - from, rate);
}

static void
add_lease (void *ctx, struct lease *l)
{
  for (size_t i = 0; i < l->nattempts; i++)
    add_attempt (ctx, l->attempts[i]);
}

static void
add_ended (void *ctx, struct lease *l)
{
  add_lease (ctx, l);
  lease_free (l);
}

void
api_cost (struct ask *q)
{
  struct sums s = { .by = json_str (q->body, "by", "owner"),
                    .since = json_i64 (q->body, "since_ms", 0),
                    .now = now_ms (),
                    .rows = json_object (),
                    .last = json_object () };
  json_t *rows = json_array (), *row;
  const char *key;

  for (size_t i = 0; i < q->b->leases.n; i++)
    add_lease (&s, q->b->leases.at[i]);
  store_each_ended (q->b->store, 0, INT64_MAX, add_ended, &s, NULL);
  json_object_foreach (s.rows, key, row)
    json_array_append (rows, row);
  json_decref (s.last);
  json_decref (s.rows);
  api_final (q, json_pack ("{s:o, s:I, s:I}", "rows", rows, "total_udollar", (json_int_t) s.total,
                           "rate_udollar", (json_int_t) s.rate));
}
