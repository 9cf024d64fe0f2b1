/* values.c - what people type, read strictly: all of the text or nothing
 *
 * strtol and friends take signs, spaces and hexadecimal, so the digits are read here.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "cli/values.h"

#define UDOLLAR   INT64_C (1000000)
#define MONEY_MAX INT64_C (1000000000) /* dollars */
#define SPAN_MAX  (INT64_C (3650) * 24 * 3600 * 1000)
#define SECOND_MS INT64_C (1000)
#define DAY_MS    (24 * 3600 * SECOND_MS)

/* Reads digits at *s and moves it behind them.  -1 when there is none or the number is above max.
 */
static int
digits (const char **s, int64_t max, int64_t *out)
{
  const char *p = *s;
  int64_t n = 0;

  if (*p < '0' || *p > '9')
    return -1;
  for (; *p >= '0' && *p <= '9'; p++) {
    n = n * 10 + (*p - '0');
    if (n > max)
      return -1;
  }
  *s = p;
  *out = n;
  return 0;
}

int
parse_count (const char *s, int64_t min, int64_t max, int64_t *out, struct err *e)
{
  const char *p = s;

  if (digits (&p, max, out) < 0 || *p || *out < min)
    return err_set (e, ERR_INVALID, "'%.60s' is not a number from %lld to %lld", s, (long long) min,
                    (long long) max);
  return 0;
}

static int
money (const char **s, int64_t *udollar)
{
  int64_t whole, unit = UDOLLAR;

  *s += **s == '$';
  if (digits (s, MONEY_MAX, &whole) < 0)
    return -1;
  *udollar = whole * UDOLLAR;
  if (**s != '.')
    return 0;
  for (++*s; **s >= '0' && **s <= '9'; ++*s) {
    unit /= 10;
    if (unit == 0)
      return -1;
    *udollar += (**s - '0') * unit;
  }
  return unit == UDOLLAR ? -1 : 0;
}

int
parse_money (const char *s, int64_t *udollar, struct err *e)
{
  const char *p = s;

  if (money (&p, udollar) < 0 || *p)
    return err_set (e, ERR_INVALID, "'%.60s' is not an amount of dollars such as 2.50", s);
  return 0;
}

int
parse_price (const char *s, int64_t *udollar, const char **per, struct err *e)
{
  const char *p = s;

  *per = NULL;
  if (money (&p, udollar) == 0) {
    if (strcmp (p, "/gpu") == 0 || strcmp (p, "/machine") == 0)
      *per = p + 1;
    if (!*p || *per)
      return 0;
  }
  return err_set (e, ERR_INVALID,
                  "'%.60s' is not a price per hour such as 2.50, 2.50/gpu or 2.50/machine", s);
}

struct unit {
  const char *name;
  int64_t size;
};

/* Moves *s behind the unit it begins with.  A unit ends where the letters end. */
static const struct unit *
unit_at (const char **s, const struct unit *units, size_t n)
{
  size_t len = strspn (*s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

  for (size_t i = 0; i < n; i++)
    if (strlen (units[i].name) == len && strncmp (*s, units[i].name, len) == 0) {
      *s += len;
      return &units[i];
    }
  return NULL;
}

int
parse_duration (const char *s, int64_t *ms, struct err *e)
{
  static const struct unit units[] = {
    { "w", 7 * DAY_MS },     { "d", DAY_MS },    { "h", 3600 * SECOND_MS },
    { "m", 60 * SECOND_MS }, { "s", SECOND_MS }, { "ms", 1 },
  };
  const struct unit *last = units + N_ELEMENTS (units), *u = NULL;
  const char *p = s;
  int64_t total = 0;

  while (*p) {
    const struct unit *before = u;
    int64_t n;

    if (digits (&p, SPAN_MAX, &n) < 0 || !(u = unit_at (&p, units, N_ELEMENTS (units))) ||
        (before && u <= before) || u >= last || n > (SPAN_MAX - total) / u->size) {
      u = NULL;
      break;
    }
    total += n * u->size;
  }
  if (!u)
    return err_set (e, ERR_INVALID, "'%.60s' is not a duration such as 90s, 45m, 4h, 2d or 1h30m",
                    s);
  *ms = total;
  return 0;
}

int
parse_gib (const char *s, int64_t *gib, struct err *e)
{
  static const struct unit units[] = {
    { "", 1 },     { "G", 1 },     { "GB", 1 },     { "GiB", 1 },
    { "T", 1024 }, { "TB", 1024 }, { "TiB", 1024 },
  };
  const struct unit *u = NULL;
  const char *p = s;

  if (digits (&p, 1 << 20, gib) == 0)
    u = unit_at (&p, units, N_ELEMENTS (units));
  if (!u || *p)
    return err_set (e, ERR_INVALID, "'%.60s' is not a size such as 80, 80G or 2T (GiB)", s);
  *gib *= u->size;
  return 0;
}

int
parse_since (const char *s, int64_t now_ms, int64_t *ms, struct err *e)
{
  struct tm tm = { 0 };
  const char *end;
  int64_t span;

  if (strlen (s) == 10 && (end = strptime (s, "%Y-%m-%d", &tm)) && !*end) {
    *ms = (int64_t) timegm (&tm) * SECOND_MS;
    return 0;
  }
  if (parse_duration (s, &span, NULL) < 0)
    return err_set (e, ERR_INVALID,
                    "'%.60s' is neither a duration such as 7d nor a day such as 2026-01-31", s);
  *ms = span < now_ms ? now_ms - span : 0;
  return 0;
}
