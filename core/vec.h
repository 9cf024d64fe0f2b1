/* vec.h - a growable array: struct { T *at; size_t n, cap; }
 *
 *   VEC (struct offer) v = VEC_EMPTY;
 *   *vec_push (&v) = offer;           the new element is zeroed
 *   for (size_t i = 0; i < v.n; i++) use (&v.at[i]);
 *   vec_free (&v);
 *
 * Out of memory ends the process: everything that matters is durable, and a half-done turn is worse.
 */
#ifndef GPUB_VEC_H
#define GPUB_VEC_H

#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
  struct {                                                                                         \
    type *at;                                                                                      \
    size_t n, cap;                                                                                 \
  }
#define VEC_EMPTY { NULL, 0, 0 }

static inline void *
vec_grow_ (void *at, size_t n, size_t *cap, size_t size)
{
  if (n < *cap)
    return at;
  *cap = *cap ? *cap * 2 : 8;
  at = realloc (at, *cap * size);
  if (!at)
    abort ();
  return at;
}

#define vec_push(v)                                                                                \
  (((v)->at = vec_grow_ ((v)->at, (v)->n, &(v)->cap, sizeof *(v)->at)),                            \
   memset (&(v)->at[(v)->n], 0, sizeof *(v)->at), &(v)->at[(v)->n++])
#define vec_free(v) (free ((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)
/* Removes element i by moving the last one there. */
#define vec_drop(v, i) ((v)->at[i] = (v)->at[--(v)->n])

#endif
