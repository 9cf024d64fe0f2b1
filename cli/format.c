/* format.c - numbers as people read them */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cli/format.h"
#include "core/json.h"

const char *
fmt_money (char *buf, int64_t udollar)
{
  int64_t part = udollar % 1000000;

  if (udollar > 0 && udollar < 10000) /* a cent would round it away */
    snprintf (buf, FMT, "$0.%06" PRId64, part);
  else
    snprintf (buf, FMT, "$%" PRId64 ".%02" PRId64, (udollar + 5000) / 1000000,
              (udollar + 5000) % 1000000 / 10000);
  return buf;
}

const char *
fmt_span (char *buf, int64_t ms)
{
  int64_t s = (ms < 0 ? 0 : ms) / 1000;

  if (s < 60)
    snprintf (buf, FMT, "%" PRId64 "s", s);
  else if (s < 3600)
    snprintf (buf, FMT, "%" PRId64 "m %02" PRId64 "s", s / 60, s % 60);
  else if (s < 48 * 3600)
    snprintf (buf, FMT, "%" PRId64 "h %02" PRId64 "m", s / 3600, s / 60 % 60);
  else
    snprintf (buf, FMT, "%" PRId64 "d %02" PRId64 "h", s / 86400, s / 3600 % 24);
  return buf;
}

const char *
fmt_time (char *buf, int64_t ms)
{
  time_t t = (time_t) (ms / 1000);
  struct tm tm;

  if (!gmtime_r (&t, &tm) || !strftime (buf, FMT, "%Y-%m-%d %H:%M UTC", &tm))
    snprintf (buf, FMT, "?");
  return buf;
}

/* The member's number, or -1: none of ours is negative. */
static const char *
of (char *buf, const json_t *obj, const char *key, const char *(*fmt) (char *, int64_t))
{
  int64_t n = json_i64 (obj, key, -1);

  buf[0] = '\0';
  return n < 0 ? buf : fmt (buf, n);
}

static const char *
fmt_int (char *buf, int64_t n)
{
  snprintf (buf, FMT, "%" PRId64, n);
  return buf;
}

const char *
fmt_money_of (char *buf, const json_t *obj, const char *key)
{
  return of (buf, obj, key, fmt_money);
}

const char *
fmt_span_of (char *buf, const json_t *obj, const char *key)
{
  return of (buf, obj, key, fmt_span);
}

const char *
fmt_time_of (char *buf, const json_t *obj, const char *key)
{
  return of (buf, obj, key, fmt_time);
}

const char *
fmt_int_of (char *buf, const json_t *obj, const char *key)
{
  return of (buf, obj, key, fmt_int);
}

const char *
fmt_gpu (char *buf, size_t size, const json_t *gpu)
{
  const char *model = json_str (gpu, "model", json_str (gpu, "raw", NULL));
  int64_t count = json_i64 (gpu, "count", 0), part = json_i64 (gpu, "fraction", 0),
          vram = json_i64 (gpu, "vram_gib", 0);
  char share[FMT] = "", memory[FMT] = "";

  if (!model || count == 0) {
    snprintf (buf, size, "-");
    return buf;
  }
  if (part > 1)
    snprintf (share, sizeof share, "1/%" PRId64 " ", part);
  if (vram > 0)
    snprintf (memory, sizeof memory, " %" PRId64 "G", vram);
  snprintf (buf, size, "%" PRId64 "x %s%s%s", count, share, model, memory);
  return buf;
}

const char *
fmt_cloud (char *buf, size_t size, const json_t *obj)
{
  const char *provider = json_str (obj, "provider", ""), *cloud = json_str (obj, "cloud", NULL);

  snprintf (buf, size, "%s%s%s", provider, cloud ? "/" : "", cloud ? cloud : "");
  return buf;
}
