/* report.c - what went wrong, told to people: the fault, the hint, and what is still being paid for
 *
 * The `details` of an ERROR hold objects of several kinds; each is known by the members it has.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/format.h"

enum { LOG_LINES = 15, REJECTIONS = 25 };

static void
tail (FILE *f, const json_t *lines)
{
  size_t n = json_array_size (lines), i = n > LOG_LINES ? n - LOG_LINES : 0;

  for (; i < n; i++)
    fprintf (f, "    | %s\n", json_string_value (json_array_get (lines, i)));
}

void
report_failure (FILE *f, const json_t *failure)
{
  const char *hint = json_str (failure, "hint", NULL);
  char span[FMT], until[FMT], price[FMT];

  fprintf (f, "  %s: %s (%s)", json_str (failure, "step", "?"), json_str (failure, "message", ""),
           json_str (failure, "code", "?"));
  if (*fmt_span_of (span, failure, "spent_ms"))
    fprintf (f, " after %s", span);
  fputc ('\n', f);
  tail (f, json_object_get (failure, "log_tail"));
  if (hint)
    fprintf (f, "  hint: %s\n", hint);
  if (*fmt_time_of (until, failure, "keep_until_ms"))
    fprintf (f, "  %s is kept until %s and bills %s/h\n",
             json_str (failure, "machine", "the machine"), until,
             fmt_money_of (price, failure, "price_udollar"));
}

static void
attempt (FILE *f, const json_t *a)
{
  const json_t *offer = json_object_get (a, "offer"), *reason = json_object_get (a, "reason");
  const char *kind = json_str (reason, "kind", NULL), *code = json_str (reason, "code", "?");
  char cloud[128], n[FMT], price[FMT];

  fmt_cloud (cloud, sizeof cloud, offer ? offer : a);
  fprintf (f, "  %s. %s %s %s %s/h: %s", fmt_int_of (n, a, "number"), cloud,
           json_str (offer, "region", ""), json_str (offer, "instance_type", ""),
           fmt_money_of (price, a, "price_udollar"), json_str (a, "state", "?"));
  if (reason && kind && strcmp (kind, code) != 0)
    fprintf (f, ", %s: %s (%s)", kind, json_str (reason, "text", ""), code);
  else if (reason)
    fprintf (f, ", %s (%s)", json_str (reason, "text", ""), code);
  fputc ('\n', f);
}

void
report_attempts (FILE *f, const json_t *attempts)
{
  size_t i;
  json_t *a;

  json_array_foreach (attempts, i, a)
    attempt (f, a);
}

static void
rejection (FILE *f, const json_t *r)
{
  const json_t *offer = json_object_get (r, "offer");
  char cloud[128], gpu[96], price[FMT];

  fmt_cloud (cloud, sizeof cloud, offer);
  fmt_money_of (price, offer, "price_udollar");
  fprintf (f, "  %-18s %s %s %s %s%s%s\n", json_str (r, "code", "?"),
           fmt_gpu (gpu, sizeof gpu, json_object_get (offer, "gpu")), cloud,
           json_str (offer, "region", ""), price, *price ? "/h: " : "", json_str (r, "text", ""));
}

void
report_rejections (FILE *f, const json_t *list, size_t most)
{
  size_t i, shown = 0, more = 0, models = 0;
  json_t *r;

  json_array_foreach (list, i, r) {
    if (!json_object_get (r, "offer") || !json_object_get (r, "code"))
      continue;
    if (strcmp (json_str (r, "code", ""), "gpu-model") == 0)
      models++;
    else if (shown < most && ++shown)
      rejection (f, r);
    else
      more++;
  }
  if (more)
    fprintf (f, "  and %zu more: --json\n", more);
  if (models)
    fprintf (f, "  and %zu of other GPU models\n", models);
}

/* Anything else: its words, or how often a reason occurred. */
static void
other (FILE *f, const json_t *d)
{
  const char *code = json_str (d, "code", NULL),
             *text = json_str (d, "text", json_str (d, "message", NULL));
  char count[FMT];

  if (*fmt_int_of (count, d, "count"))
    fprintf (f, "  %sx %s%s%s\n", count, code ? code : "", text ? ": " : "", text ? text : "");
  else if (code || text)
    fprintf (f, "  %s%s%s\n", code ? code : "", code && text ? ": " : "", text ? text : "");
}

/* Operations and leases are for programs; who called prints what matters of them. */
static void
detail (FILE *f, const json_t *d)
{
  if (json_object_get (d, "step") && json_object_get (d, "retryable"))
    report_failure (f, d);
  else if (json_object_get (d, "provider") && json_object_get (d, "number"))
    attempt (f, d);
  else if (!json_object_get (d, "offer") && !json_object_get (d, "owner") &&
           !json_object_get (d, "operation") && !json_object_get (d, "lease"))
    other (f, d);
}

void
report_error (FILE *f, const json_t *error)
{
  const char *hint = json_str (error, "hint", NULL);
  const json_t *details = json_object_get (error, "details");
  size_t i;
  json_t *d;

  fprintf (f, "gpubroker-cli: %s (%s)\n", json_str (error, "message", "no message"),
           json_str (error, "code", "internal"));
  json_array_foreach (details, i, d)
    detail (f, d);
  report_rejections (f, details, REJECTIONS);
  if (hint && *hint)
    fprintf (f, "  hint: %s\n", hint);
}
