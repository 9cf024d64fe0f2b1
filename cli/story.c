/* story.c - a lease told to people: what it is, what it costs, what to type next */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "cli/format.h"
#include "cli/story.h"
#include "core/clock.h"

PRINTF (3, 4)
static void
field (FILE *f, const char *name, const char *fmt, ...)
{
  va_list ap;

  fprintf (f, "  %-10s ", name);
  va_start (ap, fmt);
  vfprintf (f, fmt, ap);
  va_end (ap);
  fputc ('\n', f);
}

static void
word (FILE *f, const char *name, const char *value)
{
  if (value && *value)
    field (f, name, "%s", value);
}

/* "2026-01-31 12:00 UTC (in 5m 00s)" */
static void
when (FILE *f, const char *name, const json_t *lease, const char *key)
{
  int64_t ms = json_i64 (lease, key, 0), left = ms - clock_wall_ms ();
  char time[FMT], span[FMT];

  if (ms == 0)
    return;
  fmt_time (time, ms);
  fmt_span (span, left < 0 ? -left : left);
  field (f, name, "%s (%s%s%s)", time, left < 0 ? "" : "in ", span, left < 0 ? " ago" : "");
}

static void
machine (FILE *f, const json_t *lease)
{
  const json_t *m = json_object_get (lease, "machine");
  char cloud[128], gpu[128];

  if (!json_is_object (m))
    return;
  word (f, "cloud", fmt_cloud (cloud, sizeof cloud, m));
  word (f, "region", json_str (m, "region", NULL));
  word (f, "type", json_str (m, "instance_type", NULL));
  word (f, "machine", json_str (m, "id", NULL));
  word (f, "gpu", fmt_machine_gpu (gpu, sizeof gpu, m));
  if (json_str (m, "address", NULL))
    field (f, "address", "%s@%s port %lld", json_str (m, "ssh_user", "?"),
           json_str (m, "address", ""), (long long) json_i64 (m, "ssh_port", 22));
}

static void
price (FILE *f, const json_t *lease)
{
  int64_t gpus = json_i64 (json_object_get (lease, "machine"), "gpu_count", 0);
  int64_t cost = json_i64 (lease, "price_udollar", -1);
  char hour[FMT], gpu[FMT], spent[FMT];

  if (cost >= 0 && gpus > 1)
    field (f, "price", "%s/h (%s/GPU-h)", fmt_money (hour, cost), fmt_money (gpu, cost / gpus));
  else if (cost >= 0)
    field (f, "price", "%s/h", fmt_money (hour, cost));
  word (f, "spent", fmt_money_of (spent, lease, "spent_udollar"));
}

static void
labels (FILE *f, const json_t *lease)
{
  const char *key;
  json_t *value;
  char text[400] = "";
  size_t n = 0;

  json_object_foreach (json_object_get (lease, "labels"), key, value) {
    if (n < sizeof text && json_is_string (value))
      n += (size_t) snprintf (text + n, sizeof text - n, "%s%s=%s", n ? " " : "", key,
                              json_string_value (value));
  }
  word (f, "labels", text);
}

void
story_lease (FILE *f, const json_t *lease)
{
  const json_t *step = json_object_get (lease, "step"), *cause = json_object_get (lease, "cause");

  fprintf (f, "%s  %s\n", json_str (lease, "id", "?"), json_str (lease, "state", "?"));
  word (f, "name", json_str (lease, "name", NULL));
  word (f, "owner", json_str (lease, "owner", NULL));
  word (f, "step", json_str (step, "text", json_str (step, "name", NULL)));
  if (cause)
    field (f, "cause", "%s (%s)", json_str (cause, "message", ""), json_str (cause, "code", "?"));
  machine (f, lease);
  word (f, "cluster", json_str (lease, "cluster", NULL));
  word (f, "node", json_str (lease, "node", NULL));
  price (f, lease);
  labels (f, lease);
  when (f, "created", lease, "created_ms");
  when (f, "ready", lease, "ready_ms");
  when (f, "ended", lease, "ended_ms");
  if (json_object_get (lease, "ended_ms"))
    return;
  when (f, "expires", lease, "expires_ms");
  when (f, "kept until", lease, "keep_until_ms");
}

/* The LEASE that came with an error, else a fresh look at it; NULL when neither can be had.  Owned.
 */
static json_t *
lease_of (struct cli *c, const struct job *j)
{
  AUTO_JSON json_t *body = json_pack ("{s:s}", "lease", j->lease), *reply = NULL, *error = NULL;
  json_t *d;
  size_t i;

  json_array_foreach (json_object_get (j->doc, "details"), i, d) {
    json_t *inner = json_object_get (d, "lease");

    if (json_is_object (inner))
      return json_incref (inner);
    if (json_object_get (d, "number") && json_object_get (d, "owner"))
      return json_incref (d);
  }
  if (!j->lease[0] || cli_interrupted ())
    return NULL;
  reply = ask_try (c, "lease", body, &error);
  return reply ? json_incref (json_object_get (reply, "lease")) : NULL;
}

static bool
has_failure (const json_t *error)
{
  json_t *d;
  size_t i;

  json_array_foreach (json_object_get (error, "details"), i, d)
    if (json_object_get (d, "step") && json_object_get (d, "retryable"))
      return true;
  return false;
}

/* A machine that is kept bills on: say so, and the three ways on. */
static void
kept (FILE *f, const json_t *lease)
{
  const char *id = json_str (lease, "id", "?");
  char cost[FMT], until[FMT];

  fmt_money_of (cost, lease, "price_udollar");
  fmt_time_of (until, lease, "keep_until_ms");
  fprintf (f, "  %s is kept%s%s and bills %s/h\n", json_str (lease, "node", "the machine"),
           *until ? " until " : "", until, *cost ? cost : "?");
  fprintf (f,
           "  look at it: gpubroker-cli ssh %s\n  try again:  gpubroker-cli retry %s\n  give it "
           "up: gpubroker-cli release %s\n",
           id, id, id);
}

void
story_failed (struct cli *c, const struct job *j)
{
  const char *code = json_str (j->doc, "code", "");
  AUTO_JSON json_t *lease = NULL;
  const json_t *failure;

  out_error (c, j->doc, NULL);
  if (exit_of (code) != EXIT_FAILED && exit_of (code) != EXIT_EXHAUSTED)
    return;
  lease = lease_of (c, j);
  failure = json_object_get (lease, "failure");
  if (json_is_object (failure) && !has_failure (j->doc))
    report_failure (stderr, failure);
  if (strcmp (json_str (lease, "state", ""), "failed-kept") == 0)
    kept (stderr, lease);
}
