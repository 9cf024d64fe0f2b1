/* heap.h - timers by time: a binary heap over slots, so that an id can be cancelled without a
 * search
 *
 * An id is (generation << 32 | slot + 1): a timer that fired or was cancelled cannot be hit by its
 * old id.
 */
#ifndef GPUB_HEAP_H
#define GPUB_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/vec.h"

struct timer {
  int64_t at;
  uint64_t seq;               /* of two at one time, the older goes first */
  uint32_t generation, place; /* place in the heap while armed */
  bool armed;
  void (*fn) (void *ctx);
  void *ctx;
};

struct heap {
  VEC (struct timer) slots;
  VEC (uint32_t) order; /* slots, by time */
  VEC (uint32_t) unused;
  uint64_t seq;
};

uint64_t heap_add (struct heap *h, int64_t at, void (*fn) (void *ctx), void *ctx);
void heap_cancel (struct heap *h, uint64_t id);
/* Takes the first timer if it is due at now and was added before seq `before`. */
bool heap_take (struct heap *h, int64_t now, uint64_t before, struct timer *out);
int64_t heap_next (const struct heap *h); /* INT64_MAX when empty */
void heap_free (struct heap *h);

#endif
