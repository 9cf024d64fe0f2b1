/* format.c - numbers as people read them */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/format.h"
#include "core/json.h"

/* A cent would round small amounts away: they get four places, tiny ones six. */
const char *
fmt_money (char *buf, int64_t udollar)
{
  int64_t unit = udollar == 0 || udollar >= 10000 ? 10000 : udollar >= 100 ? 100 : 1;
  int places = unit == 10000 ? 2 : unit == 100 ? 4 : 6;
  int64_t n = (udollar + unit / 2) / unit, whole = 1000000 / unit;

  snprintf (buf, FMT, "$%" PRId64 ".%0*" PRId64, n / whole, places, n % whole);
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
  char share[FMT] = "", memory[FMT] = "", gb[FMT];

  if (!model || count == 0) {
    snprintf (buf, size, "-");
    return buf;
  }
  if (part > 1)
    snprintf (share, sizeof share, "1/%" PRId64 " ", part);
  snprintf (gb, sizeof gb, "%" PRId64 "GB", vram);
  if (vram > 0 && !strstr (model, gb)) /* "A100-80GB" says it already */
    snprintf (memory, sizeof memory, " %" PRId64 "G", vram);
  snprintf (buf, size, "%" PRId64 "x %s%s%s", count, share, model, memory);
  return buf;
}

const char *
fmt_machine_gpu (char *buf, size_t size, const json_t *machine)
{
  AUTO_JSON json_t *gpu = json_object ();

  json_put_str (gpu, "model", json_str (machine, "gpu", NULL));
  json_put_i64 (gpu, "count", json_i64 (machine, "gpu_count", 0));
  json_put_i64 (gpu, "vram_gib", json_i64 (machine, "vram_gib", 0));
  buf[0] = '\0';
  return json_object_get (machine, "gpu_count") ? fmt_gpu (buf, size, gpu) : buf;
}

const char *
fmt_cloud (char *buf, size_t size, const json_t *obj)
{
  const char *provider = json_str (obj, "provider", ""), *cloud = json_str (obj, "cloud", NULL);

  snprintf (buf, size, "%s%s%s", provider, cloud ? "/" : "", cloud ? cloud : "");
  return buf;
}
