/* match.c - which offers fit, in which order, and why the others do not */
#include "config.h"

#include <gpubroker/provider.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/match_int.h"

enum { FEW = 48, DIGIT = 256 };

static void
insertion_sort (struct ranked *r, size_t n)
{
  for (size_t i = 1; i < n; i++) {
    struct ranked x = r[i];
    size_t j = i;

    for (; j > 0 && r[j - 1].key > x.key; j--)
      r[j] = r[j - 1];
    r[j] = x;
  }
}

/* One stable pass over one byte of the keys. */
static void
radix_pass (const struct ranked *from, struct ranked *to, size_t n, int shift)
{
  size_t count[DIGIT] = { 0 }, at = 0;

  for (size_t i = 0; i < n; i++)
    count[from[i].key >> shift & 0xff]++;
  for (int d = 0; d < DIGIT; d++) {
    size_t here = count[d];

    count[d] = at;
    at += here;
  }
  for (size_t i = 0; i < n; i++)
    to[count[from[i].key >> shift & 0xff]++] = from[i];
}

/* Bytes that all keys share are not looked at: prices differ in two or three. */
void
rank_sort (struct ranked *r, size_t n)
{
  struct ranked *from = r, *to, *spare;
  uint64_t differ = 0;

  if (n < FEW) {
    insertion_sort (r, n);
    return;
  }
  spare = to = malloc (n * sizeof *r);
  if (!spare)
    abort ();
  for (size_t i = 1; i < n; i++)
    differ |= r[i].key ^ r[0].key;
  for (int shift = 0; shift < 64; shift += 8) {
    struct ranked *swap = from;

    if (!(differ >> shift & 0xff))
      continue;
    radix_pass (from, to, n, shift);
    from = to;
    to = swap;
  }
  if (from != r)
    memcpy (r, from, n * sizeof *r);
  free (spare);
}

/* Price first; then availability, then whether it worked lately; the table's order (name) is the
 * last word. */
static uint64_t
rank_key (const struct query *q, const struct offer *x, uint64_t price)
{
  static const uint64_t availability[] = {
    [GPUB_AVAIL_UNKNOWN] = 2,
    [GPUB_AVAIL_NONE] = 3,
    [GPUB_AVAIL_LOW] = 1,
    [GPUB_AVAIL_AVAILABLE] = 0,
  };

  return price << 3 | availability[x->availability] << 1 | !keyset_has (&q->good, x->key);
}

struct span { /* where a list's offers are in the numbering of all of them */
  const struct query_prov *prov;
  const struct offer_list *list;
  uint32_t first;
};

struct found {
  VEC (struct span) spans;
  VEC (struct ranked) ranks;
};

static void
take (const struct query *q, struct found *f, const struct offer *x, uint32_t at, uint64_t price)
{
  struct ranked *r = vec_push (&f->ranks);

  r->key = rank_key (q, x, price);
  r->at = at;
}

static void
note_nearest (struct match *m, const struct offer_at *a, uint64_t price)
{
  if (m->nearest.offer.hot && m->nearest.price_udollar <= price)
    return;
  m->nearest.offer = *a;
  m->nearest.price_udollar = price;
}

static void
consider (const struct query *q, const struct span *s, size_t i, struct match *m, struct found *f)
{
  uint64_t price = OFFER_NO_PRICE;
  enum exclusion code = query_check (q, s->prov, &s->list->hot[i], &price);
  const struct offer_at a = { &s->list->hot[i], &s->list->text[i], s->prov->prov->name };

  if (!code && q->c->ntried && query_tried (q, a.text->id))
    code = EXCL_EXCLUDED;
  if (code == EXCL_PRICE)
    note_nearest (m, &a, price);
  if (!code)
    take (q, f, a.hot, s->first + (uint32_t) i, price);
  m->excluded[code]++;
}

static void
walk_list (const struct query *q, const struct query_prov *p, const struct offer_list *l,
           struct match *m, struct found *f)
{
  const struct span *last = f->spans.n ? &f->spans.at[f->spans.n - 1] : NULL;
  const struct span s = { p, l, last ? last->first + (uint32_t) last->list->n : 0 };

  *vec_push (&f->spans) = s;
  for (size_t i = 0; i < l->n; i++) {
    if (!l->hot[i].seen_s)
      continue;
    m->considered++;
    consider (q, &s, i, m, f);
  }
}

static struct match_pick
pick (const struct found *f, const struct ranked *r)
{
  size_t lo = 0, hi = f->spans.n;
  const struct span *s;

  while (hi - lo > 1) {
    size_t mid = (lo + hi) / 2;

    if (f->spans.at[mid].first <= r->at)
      lo = mid;
    else
      hi = mid;
  }
  s = &f->spans.at[lo];
  return (struct match_pick){
    { &s->list->hot[r->at - s->first], &s->list->text[r->at - s->first], s->prov->prov->name },
    r->key >> 3,
  };
}

static void
order (struct found *f, struct match *m)
{
  rank_sort (f->ranks.at, f->ranks.n);
  m->n = f->ranks.n;
  m->at = malloc ((m->n + 1) * sizeof *m->at);
  if (!m->at)
    abort ();
  for (size_t i = 0; i < m->n; i++)
    m->at[i] = pick (f, &f->ranks.at[i]);
}

int
match_run (const struct offers *o, const struct filter *f, const struct match_context *c,
           struct match *m, struct err *e)
{
  struct found found = { VEC_EMPTY, VEC_EMPTY };
  struct query q;

  memset (m, 0, sizeof *m);
  if (query_init (&q, o, f, c, e) < 0)
    return -1;
  for (size_t i = 0; i < o->provs.n; i++)
    for (size_t j = 0; j < o->provs.at[i]->lists.n; j++)
      walk_list (&q, &q.provs[i], o->provs.at[i]->lists.at[j], m, &found);
  order (&found, m);
  m->excluded[EXCL_NONE] = 0;
  vec_free (&found.spans);
  vec_free (&found.ranks);
  query_done (&q);
  return 0;
}

void
match_done (struct match *m)
{
  free (m->at);
  memset (m, 0, sizeof *m);
}

static enum exclusion
judge (const struct query *q, const struct query_prov *p, const struct offer_at *a, char *text,
       size_t size)
{
  uint64_t price = OFFER_NO_PRICE;
  enum exclusion code = query_check (q, p, a->hot, &price);

  if (!code && query_tried (q, a->text->id))
    code = EXCL_EXCLUDED;
  match_text (q, p, a, code, price, text, size);
  return code;
}

static int
explain_list (const struct query *q, const struct query_prov *p, const struct offer_list *l,
              match_rejected *fn, void *ctx)
{
  for (size_t i = 0; i < l->n; i++) {
    const struct offer_at a = { &l->hot[i], &l->text[i], p->prov->name };
    char text[240];
    enum exclusion code = a.hot->seen_s ? judge (q, p, &a, text, sizeof text) : EXCL_NONE;

    if (code && fn (ctx, &a, code, text))
      return 1;
  }
  return 0;
}

int
match_explain (const struct offers *o, const struct filter *f, const struct match_context *c,
               match_rejected *fn, void *ctx, struct err *e)
{
  struct query q;
  int stop = 0;

  if (query_init (&q, o, f, c, e) < 0)
    return -1;
  for (size_t i = 0; i < o->provs.n && !stop; i++)
    for (size_t j = 0; j < o->provs.at[i]->lists.n && !stop; j++)
      stop = explain_list (&q, &q.provs[i], o->provs.at[i]->lists.at[j], fn, ctx);
  query_done (&q);
  return 0;
}

enum exclusion
match_one (const struct offers *o, const struct filter *f, const struct match_context *c,
           const struct offer_at *offer, char *text, size_t size)
{
  enum exclusion code = EXCL_EXCLUDED;
  struct err e = ERR_INIT;
  struct query q;

  if (query_init (&q, o, f, c, &e) < 0) {
    snprintf (text, size, "%s", e.text);
    return code;
  }
  for (size_t i = 0; i < o->provs.n; i++)
    if (strcmp (o->provs.at[i]->name, offer->provider) == 0)
      code = judge (&q, &q.provs[i], offer, text, size);
  query_done (&q);
  return code;
}

json_t *
match_excluded_json (const struct match *m)
{
  json_t *j = json_object ();

  for (int i = EXCL_NONE + 1; i < EXCL_END; i++)
    if (m->excluded[i])
      json_put_i64 (j, exclusion_name ((enum exclusion) i), m->excluded[i]);
  return j;
}

void
match_summary (const struct match *m, char *out, size_t size)
{
  const struct match_pick *near = &m->nearest;
  const char *between = ": ";
  char price[24];
  size_t n;

  if (!m->considered) {
    snprintf (out, size, "no offers are known yet");
    return;
  }
  if (m->n)
    n = (size_t) snprintf (out, size, "%zu of %u offers fit", m->n, m->considered);
  else
    n = (size_t) snprintf (out, size, "none of %u offers fits", m->considered);
  for (int i = EXCL_NONE + 1; i < EXCL_END && n < size; i++)
    if (m->excluded[i]) {
      n += (size_t) snprintf (out + n, size - n, "%s%u %s", between, m->excluded[i],
                              exclusion_name ((enum exclusion) i));
      between = ", ";
    }
  if (near->offer.hot && n < size)
    snprintf (out + n, size - n, "; the cheapest that only its price excludes costs %s/h (%s%s%s)",
              dollars_text (near->price_udollar, price), near->offer.provider,
              near->offer.text->region ? " " : "",
              near->offer.text->region ? near->offer.text->region : "");
}
