/* filter.h - FILTER of docs/protocol.md: what a caller wants, parsed and checked once
 *
 * Names that only the offer table can resolve (regions, providers) stay strings; match.c looks them
 * up once per query.
 */
#ifndef GPUB_FILTER_H
#define GPUB_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"
#include "core/gpu.h"

enum filter_market { MARKET_ON_DEMAND, MARKET_SPOT, MARKET_ANY };
enum filter_kind { KIND_VM, KIND_BAREMETAL, KIND_CONTAINER, KIND_ANY };

struct filter_gpu {
  struct gpu gpu;
  bool any;          /* model "any": every model, known or not */
  bool none;         /* model "none": a machine without GPU */
  uint32_t min, max; /* max 0: no upper bound */
};

enum { FILTER_MAX_GPUS = 16, FILTER_MAX_NAMES = 32 };

struct filter {
  bool gpu_said; /* there was a `gpu` member; with ngpus 0 machines without GPU count too */
  struct filter_gpu gpus[FILTER_MAX_GPUS];
  uint32_t ngpus;
  uint32_t vram_gib, total_vram_gib, vcpus, ram_gib, disk_gib; /* at least; 0: not asked */
  enum filter_market market;
  enum filter_kind kind;
  /* Lists of strings, NULL when not said; borrowed from `json`. */
  const json_t *region, *country, *provider, *exclude;
  const char *locality, *arch, *interconnect, *min_driver; /* NULL when not said; likewise */
  uint64_t max_price_udollar;                              /* UINT64_MAX: none */
  bool max_price_per_gpu;
  uint64_t max_cost_udollar; /* UINT64_MAX: none */
  json_t *json;              /* what it was made from, a reference of its own */
};

/* NULL json is an empty filter.  Strict: unknown members, wrong types and unknown GPU names are
 * refused by name, with the nearest right one.  market is the default when the filter says none. */
int filter_parse (struct filter *f, const json_t *json, enum filter_market market, struct err *e);
void filter_done (struct filter *f);
/* The filter with everything spelled out (canonical GPU names, market, kind): what a lease keeps.
 * Caller owns it. */
json_t *filter_json (const struct filter *f);

const char *filter_market_name (enum filter_market m);
/* MARKET_ON_DEMAND, MARKET_SPOT, MARKET_ANY, or -1. */
int filter_market_parse (const char *name);

/* "550.90" -> comparable number, 0 when it is none. */
uint32_t driver_number (const char *version);

#endif
