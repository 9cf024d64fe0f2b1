/* strike.h - which calls kill the children that serve them
 *
 * Three deaths of a child under one call (its name and key) without a success in between, and the
 * call is refused for a while; after that one more try, and a longer while.  Pure: the caller
 * brings the time.
 */
#ifndef GPUB_STRIKE_H
#define GPUB_STRIKE_H

#include <stdint.h>

#include "core/vec.h"

enum { STRIKES_OUT = 3, STRIKES_MAX = 256 };

struct strike {
  char *call, *key;
  unsigned n;
  int64_t until; /* refused until then; 0 while n < STRIKES_OUT */
};

struct strikes {
  VEC (struct strike) list;
};

/* One more death; returns how many.  first and longest bound the refusal. */
unsigned strike_add (struct strikes *s, const char *call, const char *key, int64_t now,
                     int64_t first, int64_t longest);
unsigned strike_count (const struct strikes *s, const char *call, const char *key);
int64_t strike_refused (const struct strikes *s, const char *call, const char *key,
                        int64_t now); /* for ms */
void strike_clear (struct strikes *s, const char *call, const char *key);
void strikes_done (struct strikes *s);

#endif
