/* principal.c - who may ask, and how much */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bus/principal.h"
#include "core/vec.h"

struct principal *
principals_find (const struct principals *p, const char *user_id)
{
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i]->listed && strcmp (p->at[i]->user_id, user_id) == 0)
      return p->at[i];
  return NULL;
}

static struct principal *
find_or_add (struct principals *p, const char *user_id)
{
  struct principal *who;

  for (size_t i = 0; i < p->n; i++)
    if (strcmp (p->at[i]->user_id, user_id) == 0)
      return p->at[i];
  who = calloc (1, sizeof *who);
  if (!who)
    abort ();
  snprintf (who->user_id, sizeof who->user_id, "%s", user_id);
  who->tokens = p->burst;
  return *vec_push (p) = who;
}

void
principals_load (struct principals *p, const struct bus_uid *uids, size_t n)
{
  for (size_t i = 0; i < p->n; i++)
    p->at[i]->listed = 0;
  for (size_t i = 0; i < n; i++) {
    char user_id[sizeof p->at[0]->user_id];
    struct principal *who;

    snprintf (user_id, sizeof user_id, "uid:%" PRIu32, uids[i].uid);
    who = find_or_add (p, user_id);
    snprintf (who->name, sizeof who->name, "%s", *uids[i].principal ? uids[i].principal : user_id);
    who->rights = uids[i].rights;
    who->listed = 1;
  }
}

void
principals_sweep (struct principals *p)
{
  for (size_t i = p->n; i-- > 0;)
    if (!p->at[i]->listed) {
      free (p->at[i]);
      vec_drop (p, i);
    }
}

void
principals_done (struct principals *p)
{
  for (size_t i = 0; i < p->n; i++)
    free (p->at[i]);
  vec_free (p);
}

uint32_t
principal_take (const struct principals *p, struct principal *who, int64_t now_ms)
{
  if (now_ms > who->filled_ms) {
    who->tokens += (double) (now_ms - who->filled_ms) * p->rate / 1000;
    if (who->tokens > p->burst)
      who->tokens = p->burst;
    who->filled_ms = now_ms;
  }
  if (who->tokens < 1)
    return (uint32_t) ((1 - who->tokens) * 1000 / p->rate) + 1;
  who->tokens--;
  return 0;
}
