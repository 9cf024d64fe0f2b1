/* freeze.c - when the clock or the books cannot be believed, nothing is ended by itself
 *
 * The clock: a moment is noted in the store each minute, so that a jump while the daemon was down
 * is seen, too.  The noted moment stays while it is frozen: a clock that comes back thaws it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

enum { NOTE_EVERY_MS = 60000 };

#define NUMBER_MAX (INT64_C (1) << 53) /* no store counts that far */

static void
note (struct broker *b, const struct moment *now)
{
  AUTO_JSON json_t *j = json_pack ("{s:I, s:I, s:s}", "wall_ms", (json_int_t) now->wall_ms,
                                   "boot_ms", (json_int_t) now->boot_ms, "boot_id", now->boot_id);
  AUTO_FREE char *text = json_canonical (j);

  b->freeze.noted = *now;
  store_put_meta (b->store, "moment", text);
}

void
freeze_tick (struct broker *b)
{
  struct freeze *f = &b->freeze;
  struct moment now;
  char text[200];

  clock_moment (&now);
  if (clock_jumped (&f->noted, &now)) {
    snprintf (text, sizeof text,
              "the clock says %lld, before that it said %lld: nothing ends by itself; set the "
              "clock, or: gpubroker-cli providers resume broker",
              (long long) now.wall_ms, (long long) f->noted.wall_ms);
    if (!f->clock)
      feed_alarm (b, "clock-jumped", text);
    f->clock = true;
    return;
  }
  if (f->clock)
    feed_broker (b, "clock-agrees", "the clock is where it was expected again");
  f->clock = false;
  if (strcmp (f->noted.boot_id, now.boot_id) != 0 ||
      now.boot_ms - f->noted.boot_ms >= NOTE_EVERY_MS)
    note (b, &now);
}

static int64_t
meta_number (const struct broker *b, const char *key)
{
  AUTO_FREE char *text = store_meta (b->store, key);

  return text ? strtoll (text, NULL, 10) : 0;
}

void
freeze_start (struct broker *b)
{
  AUTO_FREE char *text = store_meta (b->store, "moment");
  AUTO_JSON json_t *j = text ? json_loads (text, 0, NULL) : NULL;
  struct moment *m = &b->freeze.noted;
  int64_t floor = meta_number (b, "lease_floor");

  m->wall_ms = json_i64 (j, "wall_ms", 0);
  m->boot_ms = json_i64 (j, "boot_ms", 0);
  snprintf (m->boot_id, sizeof m->boot_id, "%s", json_str (j, "boot_id", ""));
  b->freeze.books = meta_number (b, "books_frozen") != 0;
  if (b->next_lease <= floor)
    b->next_lease = floor + 1;
  freeze_tick (b);
}

int64_t
freeze_floor (const struct broker *b)
{
  return meta_number (b, "lease_floor");
}

bool
freeze_holds (const struct broker *b)
{
  return b->freeze.clock || b->freeze.books;
}

static void
freeze_books (struct broker *b, const char *why)
{
  char text[300];

  if (b->freeze.books)
    return;
  snprintf (text, sizeof text,
            "%s: an old or a cloned store? Nothing ends by itself; look at the orphans and leases, "
            "then: gpubroker-cli providers resume broker",
            why);
  b->freeze.books = true;
  store_put_meta (b->store, "books_frozen", "1");
  feed_alarm (b, "books-old", text);
}

/* One that the operator had a look at, when he last said that all is well, does not freeze again.
 */
void
freeze_unknown (struct broker *b, const char *machine, int64_t created_ms)
{
  int64_t thawed_ms = meta_number (b, "thawed_ms");
  char why[160];

  if (thawed_ms && created_ms <= thawed_ms)
    return;
  snprintf (why, sizeof why, "machine %.63s carries our mark and is of no attempt in these books",
            machine);
  freeze_books (b, why);
}

void
freeze_number (struct broker *b, int64_t number)
{
  char why[160], floor[24];

  if (number < b->next_lease)
    return;
  snprintf (why, sizeof why,
            "a machine carries our mark and lease number %lld, these books go up to %lld",
            (long long) number, (long long) b->next_lease - 1);
  if (number < NUMBER_MAX) { /* never give it out a second time */
    b->next_lease = number + 1;
    snprintf (floor, sizeof floor, "%lld", (long long) number);
    store_put_meta (b->store, "lease_floor", floor);
  }
  freeze_books (b, why);
}

void
freeze_thaw (struct broker *b, const char *who)
{
  struct moment now;
  char text[24];

  clock_moment (&now);
  note (b, &now);
  snprintf (text, sizeof text, "%lld", (long long) now.wall_ms);
  store_put_meta (b->store, "thawed_ms", text);
  store_put_meta (b->store, "books_frozen", "0");
  if (store_failed (b->store))
    return;
  b->freeze.clock = b->freeze.books = false;
  feed_broker (b, "thawed", who);
}
