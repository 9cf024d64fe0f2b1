/* cleanup.h - scope-bound ownership; configure fails without the attribute */
#ifndef GPUB_CLEANUP_H
#define GPUB_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#define PRINTF(a, b) __attribute__ ((__format__ (__printf__, a, b)))
#define MUST_CHECK   __attribute__ ((__warn_unused_result__))
#define FALLTHROUGH  __attribute__ ((__fallthrough__))

#define N_ELEMENTS(a) (sizeof (a) / sizeof (a)[0])

static inline void
cleanup_free (void *p)
{
  free (*(void **) p);
}

static inline void
cleanup_close (int *fd)
{
  if (*fd >= 0)
    close (*fd);
}

static inline void
cleanup_json (json_t **j)
{
  json_decref (*j);
}

#define AUTO_FREE  __attribute__ ((__cleanup__ (cleanup_free)))
#define AUTO_CLOSE __attribute__ ((__cleanup__ (cleanup_close)))
#define AUTO_JSON  __attribute__ ((__cleanup__ (cleanup_json)))

/* Hand an AUTO_* pointer on to somebody else: return STEAL (p). */
#define STEAL(p)                                                                                   \
  __extension__ ({                                                                                 \
    __typeof__ (p) stolen_ = (p);                                                                  \
    (p) = NULL;                                                                                    \
    stolen_;                                                                                       \
  })

#endif
