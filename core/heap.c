/* heap.c - timers by time */
#include "config.h"

#include "core/heap.h"

static bool
earlier (const struct heap *h, uint32_t a, uint32_t b)
{
  const struct timer *x = &h->slots.at[a], *y = &h->slots.at[b];

  return x->at != y->at ? x->at < y->at : x->seq < y->seq;
}

static void
put (struct heap *h, uint32_t place, uint32_t slot)
{
  h->order.at[place] = slot;
  h->slots.at[slot].place = place;
}

static void
up (struct heap *h, uint32_t place, uint32_t slot)
{
  for (; place > 0 && earlier (h, slot, h->order.at[(place - 1) / 2]); place = (place - 1) / 2)
    put (h, place, h->order.at[(place - 1) / 2]);
  put (h, place, slot);
}

static void
down (struct heap *h, uint32_t place, uint32_t slot)
{
  uint32_t n = (uint32_t) h->order.n;

  for (uint32_t kid; (kid = 2 * place + 1) < n; place = kid) {
    if (kid + 1 < n && earlier (h, h->order.at[kid + 1], h->order.at[kid]))
      kid++;
    if (!earlier (h, h->order.at[kid], slot))
      break;
    put (h, place, h->order.at[kid]);
  }
  put (h, place, slot);
}

static uint32_t
take_slot (struct heap *h)
{
  if (h->unused.n)
    return h->unused.at[--h->unused.n];
  vec_push (&h->slots);
  return (uint32_t) h->slots.n - 1;
}

uint64_t
heap_add (struct heap *h, int64_t at, void (*fn) (void *ctx), void *ctx)
{
  uint32_t slot = take_slot (h), generation = h->slots.at[slot].generation;

  h->slots.at[slot] = (struct timer){
    .at = at, .seq = h->seq++, .generation = generation, .armed = true, .fn = fn, .ctx = ctx
  };
  vec_push (&h->order);
  up (h, (uint32_t) h->order.n - 1, slot);
  return (uint64_t) generation << 32 | (slot + 1);
}

static void
remove_slot (struct heap *h, uint32_t slot)
{
  struct timer *t = &h->slots.at[slot];
  uint32_t place = t->place, last = h->order.at[--h->order.n];

  t->armed = false;
  t->generation++;
  *vec_push (&h->unused) = slot;
  if (last == slot)
    return;
  if (place > 0 && earlier (h, last, h->order.at[(place - 1) / 2]))
    up (h, place, last);
  else
    down (h, place, last);
}

void
heap_cancel (struct heap *h, uint64_t id)
{
  uint32_t slot = (uint32_t) id - 1;

  if (id && slot < h->slots.n && h->slots.at[slot].armed &&
      h->slots.at[slot].generation == (uint32_t) (id >> 32))
    remove_slot (h, slot);
}

bool
heap_take (struct heap *h, int64_t now, uint64_t before, struct timer *out)
{
  const struct timer *t;

  if (h->order.n == 0)
    return false;
  t = &h->slots.at[h->order.at[0]];
  if (t->at > now || t->seq >= before)
    return false;
  *out = *t;
  remove_slot (h, h->order.at[0]);
  return true;
}

int64_t
heap_next (const struct heap *h)
{
  return h->order.n ? h->slots.at[h->order.at[0]].at : INT64_MAX;
}

void
heap_free (struct heap *h)
{
  vec_free (&h->slots);
  vec_free (&h->order);
  vec_free (&h->unused);
}
