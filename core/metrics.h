/* metrics.h - what a dashboard wants to know, in Prometheus' text format
 *
 * Rendering reads the broker and changes nothing; metrics_file.c writes.
 */
#ifndef GPUB_METRICS_H
#define GPUB_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct broker;

enum { METRICS_STEPS = 32 };

struct step_time {
  const char *name; /* of a static table */
  int64_t ms;
  uint64_t n, failed;
};

struct metrics { /* what is only counted here; since the start of the process */
  struct step_time steps[METRICS_STEPS];
  json_t *alarms; /* {what: n} */
  bool failing;   /* the file cannot be written */
};

void metrics_step (struct metrics *m, const char *name, int64_t ms);
void metrics_step_failed (struct metrics *m, const char *name);
void metrics_alarm (struct metrics *m, const char *what);

/* The whole file; caller frees. */
char *metrics_render (struct broker *b);

/* metrics_file.c: begins to write metrics_file, each metrics_every, while it is configured. */
void metrics_start (struct broker *b);

#endif
