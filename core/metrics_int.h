/* metrics_int.h - shared by the metrics*.c files: one function prints the samples of one family */
#ifndef GPUB_METRICS_INT_H
#define GPUB_METRICS_INT_H

#include <stdio.h>

#include "core/broker.h"

struct page {
  FILE *f;
  struct broker *b;
  const char *name; /* of the family */
};

typedef void metric_fn (struct page *p);

/* metrics_books.c */
metric_fn metric_leases, metric_rate, metric_provider_rate, metric_spent, metric_leaked,
    metric_leaked_rate, metric_orphans, metric_orphans_rate;
/* metrics_providers.c */
metric_fn metric_offers, metric_offers_age, metric_cheapest, metric_calls, metric_errors,
    metric_restarts, metric_usable, metric_state, metric_balance;

/* metrics.c.  key NULL: no label.  part: "_sum" and the like. */
void sample2 (const struct page *p, const char *part, const char *key, const char *value,
              const char *key2, const char *value2, double number);
void sample (const struct page *p, const char *key, const char *value, double number);
double dollars (int64_t udollar);

#endif
