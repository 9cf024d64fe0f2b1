/* memory_account.c - what an account was refused for want of money or quota
 *
 * It is nobody else's, though they rent from the same cloud.  Money is the whole account's.  A
 * quota may be of one size of machine alone (AWS counts vCPUs by family), so the first refusal is
 * about that type; a second type shows that the whole area (a region, or the account where the
 * cloud counts so) is meant, of that market.
 *
 * Names: "money:PROVIDER", "CLOUD/REGION/TYPE/MARKET@PROVIDER", "area:PROVIDER/MARKET/AREA".
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/memory_int.h"

static void
money_name (const char *provider, char out[static MEMORY_NAME_MAX])
{
  snprintf (out, MEMORY_NAME_MAX, "money:%s", provider);
}

static void
area_name (const struct memory_what *w, char out[static MEMORY_NAME_MAX])
{
  snprintf (out, MEMORY_NAME_MAX, "area:%s/%s/%s", memory_or_dash (w->provider),
            memory_or_dash (w->market), w->area ? w->area : "");
}

static void
quota_name (const struct memory_what *w, char out[static MEMORY_NAME_MAX])
{
  size_t n;

  memory_block_name (w, out);
  n = strlen (out);
  snprintf (out + n, MEMORY_NAME_MAX - n, "@%s", memory_or_dash (w->provider));
}

uint64_t
memory_account_key (uint64_t key, const char *provider)
{
  return memory_hash (memory_hash (key, "@"), provider);
}

static bool
ends_with (const char *text, const char *end)
{
  size_t n = strlen (text), m = strlen (end);

  return n >= m && strcmp (text + n - m, end) == 0;
}

/* An entry about another type of the same account, area and market. */
static bool
is_sibling (const struct memory_entry *x, const struct memory_what *w, int64_t now_ms)
{
  const char *region = strchr (x->name, '/');
  char own[MEMORY_NAME_MAX], end[160];
  size_t n = w->area ? strlen (w->area) : 0;

  quota_name (w, own);
  snprintf (end, sizeof end, "/%s@%s", memory_or_dash (w->market), memory_or_dash (w->provider));
  return now_ms < x->until_ms && region && ends_with (x->name, end) && strcmp (x->name, own) != 0 &&
         (n == 0 || (strncmp (region + 1, w->area, n) == 0 && region[1 + n] == '/'));
}

static bool
has_sibling (const struct memory *m, const struct memory_what *w, int64_t now_ms)
{
  for (size_t i = 0; i < m->all.n; i++)
    if (is_sibling (&m->all.at[i], w, now_ms))
      return true;
  return false;
}

int64_t
memory_account_fail (struct memory *m, const struct memory_what *w, enum memory_why why,
                     const char *text, int64_t now_ms)
{
  char name[MEMORY_NAME_MAX];

  if (why == MEMORY_MONEY) {
    money_name (memory_or_dash (w->provider), name);
    return memory_hold (m, name, why, text, now_ms)->until_ms;
  }
  if (has_sibling (m, w, now_ms)) {
    area_name (w, name);
    memory_hold (m, name, why, text, now_ms);
  }
  quota_name (w, name);
  return memory_hold (m, name, why, text, now_ms)->until_ms;
}

void
memory_account_success (struct memory *m, const struct memory_what *w)
{
  char names[3][MEMORY_NAME_MAX];

  money_name (memory_or_dash (w->provider), names[0]);
  area_name (w, names[1]);
  quota_name (w, names[2]);
  for (size_t i = m->all.n; i-- > 0;)
    for (size_t k = 0; k < N_ELEMENTS (names); k++)
      if (strcmp (m->all.at[i].name, names[k]) == 0) {
        memory_drop (m, i);
        break;
      }
}

static const struct memory_entry *
holds (const struct memory *m, const char *name, int64_t now_ms)
{
  return memory_blocked (m, memory_hash (0, name), now_ms);
}

const struct memory_entry *
memory_broke (const struct memory *m, const char *provider, int64_t now_ms)
{
  char name[MEMORY_NAME_MAX];

  money_name (provider, name);
  return holds (m, name, now_ms);
}

const char *
memory_area (const struct memory_entry *x, const char *provider, bool *spot)
{
  size_t n = strlen (provider);
  const char *market = x->name + 5 + n + 1, *end;

  if (strncmp (x->name, "area:", 5) != 0 || strncmp (x->name + 5, provider, n) != 0 ||
      x->name[5 + n] != '/' || !(end = strchr (market, '/')))
    return NULL;
  *spot = strncmp (market, "spot/", 5) == 0;
  return end + 1;
}

bool
memory_of_account (const struct memory_entry *x, const char *provider)
{
  char end[80];
  bool spot;

  snprintf (end, sizeof end, "@%s", provider);
  return x->why == MEMORY_MONEY ? strcmp (x->name + strlen ("money:"), provider) == 0
                                : ends_with (x->name, end) || memory_area (x, provider, &spot);
}

const struct memory_entry *
memory_quota (const struct memory *m, const struct memory_what *w, int64_t now_ms)
{
  struct memory_what all = *w;
  const struct memory_entry *x;
  char name[MEMORY_NAME_MAX];

  quota_name (w, name);
  if ((x = holds (m, name, now_ms)))
    return x;
  area_name (w, name);
  if ((x = holds (m, name, now_ms)))
    return x;
  all.area = NULL;
  area_name (&all, name);
  return holds (m, name, now_ms);
}

void
memory_forgive (struct memory *m, const char *provider)
{
  for (size_t i = m->all.n; i-- > 0;)
    if (memory_of_account (&m->all.at[i], provider)) {
      memory_drop (m, i);
      m->changed = true;
    }
}
