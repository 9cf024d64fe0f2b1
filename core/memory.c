/* memory.c - what failed lately, so that no client walks into it again
 *
 * One table for all kinds of entry: a bar is an entry whose key is of the provider (and region)
 * alone; for those of an account see memory_account.c.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/memory_int.h"

#define MINUTES(n) ((n) *INT64_C (60000))

enum { TEXT_MAX = 240, ENTRIES_MAX = 4096 };

static const char *const why_names[MEMORY_WHY_END] = {
  [MEMORY_CAPACITY] = "capacity",   [MEMORY_QUOTA] = "quota", [MEMORY_MISMATCH] = "mismatch",
  [MEMORY_LATE_BOOT] = "late-boot", [MEMORY_MONEY] = "money",
};

/* How long the first failure blocks, and the widest it grows to.  Stock comes back in minutes; an
 * account's limit and a cloud that delivers the wrong card do not. */
static const struct {
  int64_t first, most;
} spans[MEMORY_WHY_END] = {
  [MEMORY_CAPACITY] = { MINUTES (2), MINUTES (30) },
  [MEMORY_QUOTA] = { MINUTES (10), MINUTES (120) },
  [MEMORY_MISMATCH] = { MINUTES (30), MINUTES (720) },
  [MEMORY_LATE_BOOT] = { MINUTES (5), MINUTES (60) },
  [MEMORY_MONEY] = { MINUTES (10), MINUTES (60) },
};

static const int64_t bar_first = MINUTES (5), bar_most = MINUTES (60);
static const int64_t success_holds = MINUTES (60);

struct memory *
memory_new (void)
{
  struct memory *m = calloc (1, sizeof *m);

  if (!m)
    abort ();
  return m;
}

static void
entry_done (struct memory_entry *x)
{
  free (x->name);
  free (x->text);
}

void
memory_free (struct memory *m)
{
  if (!m)
    return;
  for (size_t i = 0; i < m->all.n; i++)
    entry_done (&m->all.at[i]);
  vec_free (&m->all);
  free (m);
}

uint64_t
memory_hash (uint64_t h, const char *text)
{
  if (h == 0)
    h = UINT64_C (0xcbf29ce484222325);
  for (; *text; text++)
    h = (h ^ (unsigned char) *text) * UINT64_C (0x100000001b3);
  return h;
}

static uint64_t
hash (const char *name)
{
  return memory_hash (0, name);
}

const char *
memory_or_dash (const char *s)
{
  return s && *s ? s : "-";
}

void
memory_block_name (const struct memory_what *w, char out[static MEMORY_NAME_MAX])
{
  snprintf (out, MEMORY_NAME_MAX, "%s/%s/%s/%s", memory_or_dash (w->cloud),
            memory_or_dash (w->region), memory_or_dash (w->type), memory_or_dash (w->market));
}

/* A colon that no block's name starts with keeps the kinds apart. */
static void
bar_name (const char *provider, const char *region, char *out, size_t size)
{
  snprintf (out, size, "bar:%s%s%s", provider, region ? "/" : "", region ? region : "");
}

uint64_t
memory_key (const struct memory_what *w)
{
  char name[MEMORY_NAME_MAX];

  memory_block_name (w, name);
  return hash (name);
}

static struct memory_entry *
find (const struct memory *m, uint64_t key)
{
  for (size_t i = 0; i < m->all.n; i++)
    if (m->all.at[i].key == key)
      return &m->all.at[i];
  return NULL;
}

void
memory_drop (struct memory *m, size_t i)
{
  entry_done (&m->all.at[i]);
  vec_drop (&m->all, i);
}

/* A flood of failures: what ends first is forgotten first. */
static void
make_room (struct memory *m)
{
  size_t first = 0;

  if (m->all.n < ENTRIES_MAX)
    return;
  for (size_t i = 1; i < m->all.n; i++)
    if (m->all.at[i].until_ms < m->all.at[first].until_ms)
      first = i;
  memory_drop (m, first);
}

static struct memory_entry *
find_or_add (struct memory *m, const char *name)
{
  uint64_t key = hash (name);
  struct memory_entry *x = find (m, key);

  if (x)
    return x;
  make_room (m);
  x = vec_push (&m->all);
  x->key = key;
  x->name = strdup (name);
  x->text = strdup ("");
  return x;
}

static void
set_text (struct memory_entry *x, const char *text)
{
  free (x->text);
  x->text = strndup (text ? text : "", TEXT_MAX);
}

static int64_t
widen (int64_t first, int64_t most, uint32_t times)
{
  int64_t span = first;

  for (uint32_t i = 1; i < times && span < most; i++)
    span *= 2;
  return span < most ? span : most;
}

/* A failure long after the last block ended is a first one again. */
static void
block (struct memory_entry *x, int64_t first, int64_t most, int64_t now_ms)
{
  if (x->times && now_ms > x->until_ms + most)
    x->times = 0;
  if (!x->times)
    x->since_ms = now_ms;
  x->times++;
  x->until_ms = now_ms + widen (first, most, x->times);
}

const struct memory_entry *
memory_hold (struct memory *m, const char *name, enum memory_why why, const char *text,
             int64_t now_ms)
{
  struct memory_entry *x = find_or_add (m, name);

  if (x->why != why)
    x->times = 0;
  x->why = why;
  block (x, spans[why].first, spans[why].most, now_ms);
  set_text (x, text);
  m->changed = true;
  return x;
}

int64_t
memory_fail (struct memory *m, const struct memory_what *w, enum memory_why why, const char *text,
             int64_t now_ms)
{
  char name[MEMORY_NAME_MAX];

  if (why == MEMORY_QUOTA || why == MEMORY_MONEY)
    return memory_account_fail (m, w, why, text, now_ms);
  memory_block_name (w, name);
  return memory_hold (m, name, why, text, now_ms)->until_ms;
}

void
memory_success (struct memory *m, const struct memory_what *w, int64_t now_ms)
{
  struct memory_entry *x;
  char name[MEMORY_NAME_MAX];

  memory_account_success (m, w);
  memory_block_name (w, name);
  x = find_or_add (m, name);
  x->times = 0;
  x->until_ms = 0;
  x->success_ms = now_ms;
  m->changed = true;
}

const struct memory_entry *
memory_blocked (const struct memory *m, uint64_t key, int64_t now_ms)
{
  const struct memory_entry *x = m ? find (m, key) : NULL;

  return x && now_ms < x->until_ms ? x : NULL;
}

bool
memory_succeeded (const struct memory *m, uint64_t key, int64_t now_ms)
{
  const struct memory_entry *x = m ? find (m, key) : NULL;

  return x && memory_entry_good (x, now_ms);
}

size_t
memory_count (const struct memory *m)
{
  return m ? m->all.n : 0;
}

const struct memory_entry *
memory_at (const struct memory *m, size_t i)
{
  return &m->all.at[i];
}

bool
memory_entry_good (const struct memory_entry *x, int64_t now_ms)
{
  return x->success_ms && now_ms - x->success_ms < success_holds;
}

const char *
memory_bars_region (const struct memory_entry *x, const char *provider)
{
  size_t n = strlen (provider);

  if (strncmp (x->name, "bar:", 4) != 0 || strncmp (x->name + 4, provider, n) != 0 ||
      x->name[4 + n] != '/')
    return NULL;
  return x->name + 5 + n;
}

void
memory_bar (struct memory *m, const char *provider, const char *region, const char *text,
            int64_t now_ms)
{
  struct memory_entry *x;
  char name[512];

  bar_name (provider, region, name, sizeof name);
  x = find_or_add (m, name);
  block (x, bar_first, bar_most, now_ms);
  set_text (x, text);
  m->changed = true;
}

void
memory_unbar (struct memory *m, const char *provider)
{
  char name[512];
  size_t len;

  bar_name (provider, NULL, name, sizeof name);
  len = strlen (name);
  for (size_t i = m->all.n; i-- > 0;) {
    struct memory_entry *x = &m->all.at[i];

    if (strncmp (x->name, name, len) != 0 || (x->name[len] && x->name[len] != '/'))
      continue;
    memory_drop (m, i);
    m->changed = true;
  }
}

const struct memory_entry *
memory_barred (const struct memory *m, const char *provider, const char *region, int64_t now_ms)
{
  const struct memory_entry *x;
  char name[512];

  bar_name (provider, NULL, name, sizeof name);
  x = memory_blocked (m, hash (name), now_ms);
  if (x || !region)
    return x;
  bar_name (provider, region, name, sizeof name);
  return memory_blocked (m, hash (name), now_ms);
}

bool
memory_changed (struct memory *m)
{
  bool changed = m->changed;

  m->changed = false;
  return changed;
}

/* An entry is over when neither its block, its widening nor its success says anything any more. */
void
memory_expire (struct memory *m, int64_t now_ms)
{
  for (size_t i = m->all.n; i-- > 0;) {
    struct memory_entry *x = &m->all.at[i];
    int64_t most = strncmp (x->name, "bar:", 4) == 0 ? bar_most : spans[x->why].most;

    if (now_ms <= x->until_ms + most || now_ms - x->success_ms < success_holds)
      continue;
    memory_drop (m, i);
    m->changed = true;
  }
}

json_t *
memory_json (const struct memory *m)
{
  json_t *list = json_array ();

  for (size_t i = 0; i < m->all.n; i++) {
    const struct memory_entry *x = &m->all.at[i];
    json_t *j = json_object ();

    json_put_str (j, "name", x->name);
    json_put_str (j, "why", why_names[x->why]);
    json_put_str (j, "text", x->text);
    json_put_i64 (j, "times", x->times);
    json_put_i64 (j, "since_ms", x->since_ms);
    json_put_i64 (j, "until_ms", x->until_ms);
    json_put_i64 (j, "success_ms", x->success_ms);
    json_array_append_new (list, j);
  }
  return list;
}

static int
why_parse (const char *name)
{
  for (int i = 0; i < MEMORY_WHY_END; i++)
    if (strcmp (name, why_names[i]) == 0)
      return i;
  return -1;
}

/* A clock that jumped back must not leave a block for years: none outlives its widest span from
 * now. */
static int64_t
bounded (int64_t until_ms, int64_t most, int64_t now_ms)
{
  return until_ms > now_ms + most ? now_ms + most : until_ms;
}

void
memory_load (struct memory *m, const json_t *list, int64_t now_ms)
{
  const json_t *j;
  size_t i;

  json_array_foreach (list, i, j) {
    const char *name = json_str (j, "name", NULL);
    int why = why_parse (json_str (j, "why", ""));
    struct memory_entry *x;

    if (!name || why < 0)
      continue;
    x = find_or_add (m, name);
    x->why = (enum memory_why) why;
    x->times = (uint32_t) json_i64 (j, "times", 1);
    x->since_ms = json_i64 (j, "since_ms", now_ms);
    x->until_ms = bounded (json_i64 (j, "until_ms", 0),
                           strncmp (name, "bar:", 4) == 0 ? bar_most : spans[why].most, now_ms);
    x->success_ms = bounded (json_i64 (j, "success_ms", 0), 0, now_ms);
    set_text (x, json_str (j, "text", ""));
  }
}

const char *
memory_why_name (enum memory_why w)
{
  return w < MEMORY_WHY_END ? why_names[w] : "unknown";
}

/* Plugins have one kind for money and quota; the words of their clouds tell them apart. */
static bool
is_money (const struct err *e)
{
  static const char *const words[] = {
    "balance", "funds", "wallet", "payment", "credit", "HTTP 402"
  };

  for (size_t i = 0; i < N_ELEMENTS (words); i++)
    if (strcasestr (e->text, words[i]) || strcasestr (e->code, words[i]))
      return true;
  return false;
}

int
memory_classify (const struct err *e, enum memory_why *why)
{
  static const struct {
    const char *code;
    enum memory_why why;
  } codes[] = { { "late-boot", MEMORY_LATE_BOOT },
                { "ssh-timeout", MEMORY_LATE_BOOT },
                { "ssh-refused", MEMORY_LATE_BOOT },
                { "gpu-absent", MEMORY_MISMATCH },
                { "gpu-missing", MEMORY_MISMATCH },
                { "gpu-count", MEMORY_MISMATCH },
                { "gpu-count-mismatch", MEMORY_MISMATCH },
                { "gpu-model-mismatch", MEMORY_MISMATCH },
                { "gpu-memory-mismatch", MEMORY_MISMATCH },
                { "gpu-hang", MEMORY_MISMATCH },
                { "driver-library-mismatch", MEMORY_MISMATCH },
                { "price-mismatch", MEMORY_MISMATCH } };

  for (size_t i = 0; i < N_ELEMENTS (codes); i++)
    if (strcmp (e->code, codes[i].code) == 0) {
      *why = codes[i].why;
      return 0;
    }
  if (e->kind == ERR_CAPACITY || e->kind == ERR_QUOTA) {
    *why = e->kind == ERR_CAPACITY ? MEMORY_CAPACITY : is_money (e) ? MEMORY_MONEY : MEMORY_QUOTA;
    return 0;
  }
  return e->kind == ERR_AUTH || e->kind == ERR_INVALID ? 1 : -1;
}
