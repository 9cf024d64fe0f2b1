/* strike.c - which calls kill the children that serve them */
#include "config.h"

#include "core/strike.h"

static struct strike *
look (const struct strikes *s, const char *call, const char *key)
{
  for (size_t i = 0; i < s->list.n; i++)
    if (strcmp (s->list.at[i].call, call) == 0 && strcmp (s->list.at[i].key, key) == 0)
      return &s->list.at[i];
  return NULL;
}

static void
forget (struct strikes *s, size_t i)
{
  free (s->list.at[i].call);
  free (s->list.at[i].key);
  vec_drop (&s->list, i);
}

/* The one with the fewest strikes has to go. */
static void
make_room (struct strikes *s)
{
  size_t least = 0;

  if (s->list.n < STRIKES_MAX)
    return;
  for (size_t i = 1; i < s->list.n; i++)
    if (s->list.at[i].n < s->list.at[least].n)
      least = i;
  forget (s, least);
}

static char *
copy (const char *text)
{
  char *s = strdup (text);

  if (!s)
    abort ();
  return s;
}

unsigned
strike_add (struct strikes *s, const char *call, const char *key, int64_t now, int64_t first,
            int64_t longest)
{
  struct strike *k = look (s, call, key);
  int64_t refuse = first;

  if (!k) {
    make_room (s);
    k = vec_push (&s->list);
    k->call = copy (call);
    k->key = copy (key);
  }
  if (++k->n < STRIKES_OUT)
    return k->n;
  for (unsigned i = STRIKES_OUT; i < k->n && refuse < longest; i++)
    refuse *= 2;
  k->until = now + (refuse < longest ? refuse : longest);
  return k->n;
}

unsigned
strike_count (const struct strikes *s, const char *call, const char *key)
{
  const struct strike *k = look (s, call, key);

  return k ? k->n : 0;
}

int64_t
strike_refused (const struct strikes *s, const char *call, const char *key, int64_t now)
{
  const struct strike *k = look (s, call, key);

  return k && k->until > now ? k->until - now : 0;
}

void
strike_clear (struct strikes *s, const char *call, const char *key)
{
  struct strike *k = look (s, call, key);

  if (k)
    forget (s, (size_t) (k - s->list.at));
}

void
strikes_done (struct strikes *s)
{
  while (s->list.n)
    forget (s, s->list.n - 1);
  vec_free (&s->list);
}
