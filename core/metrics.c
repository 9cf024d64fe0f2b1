/* metrics.c - what a dashboard wants to know, in Prometheus' text format
 *
 * One row per family in the table at the end; its function prints the samples.
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "core/metrics_int.h"

/* ---- counted here ---- */

static struct step_time *
step (struct metrics *m, const char *name)
{
  for (size_t i = 0; i < METRICS_STEPS; i++) {
    if (!m->steps[i].name)
      m->steps[i].name = name;
    if (strcmp (m->steps[i].name, name) == 0)
      return &m->steps[i];
  }
  return &m->steps[METRICS_STEPS - 1];
}

void
metrics_step (struct metrics *m, const char *name, int64_t ms)
{
  struct step_time *s = step (m, name);

  s->ms += ms > 0 ? ms : 0;
  s->n++;
}

void
metrics_step_failed (struct metrics *m, const char *name)
{
  step (m, name)->failed++;
}

void
metrics_alarm (struct metrics *m, const char *what)
{
  if (!m->alarms)
    m->alarms = json_object ();
  json_put_i64 (m->alarms, what, json_i64 (m->alarms, what, 0) + 1);
}

/* ---- samples ---- */

/* Label values are the outside's words: three bytes would end them early. */
static void
quoted (FILE *f, const char *text)
{
  fputc ('"', f);
  for (; *text; text++) {
    if (*text == '\n')
      fputs ("\\n", f);
    else if (*text == '"' || *text == '\\')
      fprintf (f, "\\%c", *text);
    else
      fputc (*text, f);
  }
  fputc ('"', f);
}

void
sample2 (const struct page *p, const char *part, const char *key, const char *value,
         const char *key2, const char *value2, double number)
{
  fprintf (p->f, "%s%s", p->name, part);
  if (key) {
    fprintf (p->f, "{%s=", key);
    quoted (p->f, value);
    if (key2) {
      fprintf (p->f, ",%s=", key2);
      quoted (p->f, value2);
    }
    fputc ('}', p->f);
  }
  fprintf (p->f, " %.15g\n", number);
}

void
sample (const struct page *p, const char *key, const char *value, double number)
{
  sample2 (p, "", key, value, NULL, NULL, number);
}

double
dollars (int64_t udollar)
{
  return (double) udollar / 1e6;
}

static void
info (struct page *p)
{
  sample2 (p, "", "version", PACKAGE_VERSION, "instance_uuid", p->b->instance, 1);
}

static void
written (struct page *p)
{
  sample (p, NULL, NULL, (double) now_ms () / 1e3);
}

static void
frozen (struct page *p)
{
  sample (p, "why", "clock", p->b->freeze.clock);
  sample (p, "why", "books", p->b->freeze.books);
}

/* ---- steps, events, the bus ---- */

static void
steps (struct page *p)
{
  const struct step_time *s = p->b->metrics.steps;

  for (size_t i = 0; i < METRICS_STEPS && s[i].name; i++) {
    sample2 (p, "_sum", "step", s[i].name, NULL, NULL, (double) s[i].ms / 1e3);
    sample2 (p, "_count", "step", s[i].name, NULL, NULL, (double) s[i].n);
  }
}

static void
steps_failed (struct page *p)
{
  const struct step_time *s = p->b->metrics.steps;

  for (size_t i = 0; i < METRICS_STEPS && s[i].name; i++)
    sample (p, "step", s[i].name, (double) s[i].failed);
}

static void
alarms (struct page *p)
{
  const char *what;
  json_t *n;

  json_object_foreach (p->b->metrics.alarms, what, n)
    sample (p, "what", what, (double) json_integer_value (n));
}

static void
events (struct page *p)
{
  sample (p, NULL, NULL, (double) p->b->seq);
}

static void
requests (struct page *p)
{
  struct bus_counters c;

  bus_counters (p->b->bus, &c);
  sample (p, NULL, NULL, (double) c.requests);
}

static void
refused (struct page *p)
{
  struct bus_counters c;

  bus_counters (p->b->bus, &c);
  sample (p, "why", "denied", (double) c.refused);
  sample (p, "why", "bad-frame", (double) c.bad_frames);
  sample (p, "why", "busy", (double) c.busy);
}

/* clang-format off */
static const struct {
  const char *name, *type, *help;
  void (*samples) (struct page *);
} families[] = {
  { "gpubroker_info", "gauge", "Version and installation; always 1.", info },
  { "gpubroker_written_timestamp_seconds", "gauge", "When this file was written.", written },
  { "gpubroker_frozen", "gauge", "1 while nothing ends by itself, and why.", frozen },
  { "gpubroker_leases", "gauge", "Leases that are not over, by state.", metric_leases },
  { "gpubroker_spend_dollars_per_hour", "gauge", "What is committed now, reserves of pending rents included.", metric_rate },
  { "gpubroker_provider_spend_dollars_per_hour", "gauge", "What is billed now at each provider.", metric_provider_rate },
  { "gpubroker_spent_dollars_total", "counter", "What was spent since the books began.", metric_spent },
  { "gpubroker_leaked", "gauge", "Machines that could not be ended yet.", metric_leaked },
  { "gpubroker_leaked_dollars_per_hour", "gauge", "What they cost.", metric_leaked_rate },
  { "gpubroker_orphans", "gauge", "Things with our mark and in no lease, ignored ones not counted.", metric_orphans },
  { "gpubroker_orphans_dollars_per_hour", "gauge", "What they cost, as far as it is known.", metric_orphans_rate },
  { "gpubroker_offers", "gauge", "Offers that are known.", metric_offers },
  { "gpubroker_offers_age_seconds", "gauge", "Since the last listing of offers ended.", metric_offers_age },
  { "gpubroker_cheapest_gpu_dollars_per_hour", "gauge", "Of one GPU, of what could be rented now.", metric_cheapest },
  { "gpubroker_provider_usable", "gauge", "1: up, not paused, and the last look at it worked.", metric_usable },
  { "gpubroker_provider_state", "gauge", "The state that it is in; always 1.", metric_state },
  { "gpubroker_provider_calls_total", "counter", "Calls of the plugin, since the daemon started.", metric_calls },
  { "gpubroker_provider_errors_total", "counter", "Calls that failed.", metric_errors },
  { "gpubroker_provider_restarts_total", "counter", "Of the plugin's process.", metric_restarts },
  { "gpubroker_provider_balance_dollars", "gauge", "What the account says it has.", metric_balance },
  { "gpubroker_step_seconds", "summary", "How long steps took that ended well.", steps },
  { "gpubroker_step_failures_total", "counter", "Steps that failed for good.", steps_failed },
  { "gpubroker_alarms_total", "counter", "Alarms since the daemon started.", alarms },
  { "gpubroker_events_total", "counter", "Events since the books began.", events },
  { "gpubroker_bus_requests_total", "counter", "Requests, since the daemon started.", requests },
  { "gpubroker_bus_refused_total", "counter", "Requests that reached no verb, and why.", refused },
};
/* clang-format on */

char *
metrics_render (struct broker *b)
{
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream (&text, &size);

  if (!f)
    abort ();
  for (size_t i = 0; i < N_ELEMENTS (families); i++) {
    struct page p = { f, b, families[i].name };

    fprintf (f, "# HELP %s %s\n# TYPE %s %s\n", families[i].name, families[i].help,
             families[i].name, families[i].type);
    families[i].samples (&p);
  }
  if (fclose (f) != 0)
    abort ();
  return text;
}
