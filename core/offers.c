/* offers.c - the live table of what could be rented now
 *
 * A listing is staged and moves in scope by scope.  After a partial one the offers it did bring
 * replace their old selves (those are marked by seen_s 0) and the rest of the scope ages.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/offers_int.h"

enum { LISTS_PER_SCOPE = 4 };

struct offers *
offers_new (const struct offers_config *c)
{
  struct offers *o = calloc (1, sizeof *o);

  if (!o)
    abort ();
  atoms_init (&o->atoms);
  offers_configure (o, c);
  return o;
}

void
offers_configure (struct offers *o, const struct offers_config *c)
{
  static const struct offers_config zero;

  o->conf = c ? *c : zero;
  if (!o->conf.stale_ms)
    o->conf.stale_ms = 3 * 60000;
  if (!o->conf.expire_ms)
    o->conf.expire_ms = 15 * 60000;
  if (!o->conf.disk_gib)
    o->conf.disk_gib = 100;
}

static void
drop_staged (struct offers_prov *p)
{
  for (size_t i = 0; i < p->staged.n; i++)
    offer_list_free (p->staged.at[i]);
  p->staged.n = 0;
}

static void
prov_free (struct offers_prov *p)
{
  drop_staged (p);
  for (size_t i = 0; i < p->lists.n; i++)
    offer_list_free (p->lists.at[i]);
  vec_free (&p->lists);
  vec_free (&p->staged);
  free (p->name);
  free (p->plugin);
  free (p->state_text);
  free (p);
}

void
offers_free (struct offers *o)
{
  if (!o)
    return;
  for (size_t i = 0; i < o->provs.n; i++)
    prov_free (o->provs.at[i]);
  vec_free (&o->provs);
  atoms_done (&o->atoms);
  free (o);
}

struct offers_prov *
offers_prov (const struct offers *o, const char *name)
{
  for (size_t i = 0; i < o->provs.n; i++)
    if (strcmp (o->provs.at[i]->name, name) == 0)
      return o->provs.at[i];
  return NULL;
}

static struct offers_prov *
add_prov (struct offers *o, const char *name)
{
  struct offers_prov *p = calloc (1, sizeof *p);
  size_t i = o->provs.n;

  if (!p)
    abort ();
  p->name = strdup (name);
  *vec_push (&o->provs) = p;
  for (; i > 0 && strcmp (o->provs.at[i - 1]->name, name) > 0; i--)
    o->provs.at[i] = o->provs.at[i - 1];
  o->provs.at[i] = p;
  return p;
}

/* Offers that say nothing of their own follow the provider. */
static void
set_caps (struct offers_prov *p, uint32_t caps)
{
  bool kubernetes = (caps & UINT32_C (1) << 8) != 0; /* GPUB_CAP_HOSTS_KUBERNETES */

  p->caps = caps;
  for (size_t i = 0; i < p->lists.n; i++)
    for (size_t j = 0; j < p->lists.at[i]->n; j++)
      if (!p->lists.at[i]->text[j].caps_known)
        p->lists.at[i]->hot[j].kubernetes = kubernetes;
}

void
offers_provider (struct offers *o, const char *name, const char *plugin, uint32_t caps)
{
  struct offers_prov *p = offers_prov (o, name);

  if (!p)
    p = add_prov (o, name);
  free (p->plugin);
  p->plugin = strdup (plugin ? plugin : name);
  set_caps (p, caps);
}

void
offers_drop (struct offers *o, const char *name)
{
  for (size_t i = 0; i < o->provs.n; i++) {
    if (strcmp (o->provs.at[i]->name, name) != 0)
      continue;
    prov_free (o->provs.at[i]);
    o->provs.n--;
    memmove (&o->provs.at[i], &o->provs.at[i + 1], (o->provs.n - i) * sizeof o->provs.at[0]);
    return;
  }
}

void
offers_state (struct offers *o, const char *name, enum offers_state state, const char *text)
{
  struct offers_prov *p = offers_prov (o, name);

  if (!p)
    return;
  p->state = state;
  free (p->state_text);
  p->state_text = text && *text ? strndup (text, 200) : NULL;
}

void
offers_begin (struct offers *o, const char *provider)
{
  struct offers_prov *p = offers_prov (o, provider);

  if (!p)
    return;
  drop_staged (p);
  p->staged_complete = true;
  p->staged_skipped = 0;
}

static struct offer_list *
staged_list (struct offers_prov *p, const char *scope)
{
  struct offer_list *l;

  for (size_t i = 0; i < p->staged.n; i++)
    if (strcmp (p->staged.at[i]->scope, scope) == 0)
      return p->staged.at[i];
  l = calloc (1, sizeof *l);
  if (!l)
    abort ();
  l->scope = strdup (scope);
  *vec_push (&p->staged) = l;
  return l;
}

static struct offer_list *
take_staged (struct offers_prov *p, const char *scope)
{
  for (size_t i = 0; i < p->staged.n; i++) {
    struct offer_list *l = p->staged.at[i];

    if (strcmp (l->scope, scope) != 0)
      continue;
    vec_drop (&p->staged, i);
    offer_list_sort (l);
    return l;
  }
  return NULL;
}

static void
stage (struct offers *o, struct offers_prov *p, const json_t *raw, int64_t now_ms)
{
  struct err e = ERR_INIT;
  struct offer_list *l = staged_list (p, json_str (raw, "scope", ""));

  if (offer_list_add (l, o, p, raw, (uint32_t) (now_ms / 1000), &e) == 0)
    return;
  p->staged_skipped++;
  snprintf (p->problem, sizeof p->problem, "%.159s", e.text);
}

static void
drop_list (struct offers_prov *p, size_t i)
{
  offer_list_free (p->lists.at[i]);
  p->lists.n--;
  memmove (&p->lists.at[i], &p->lists.at[i + 1], (p->lists.n - i) * sizeof p->lists.at[0]);
}

static void
drop_scope (struct offers_prov *p, const char *scope)
{
  for (size_t i = p->lists.n; i-- > 0;)
    if (strcmp (p->lists.at[i]->scope, scope) == 0)
      drop_list (p, i);
}

/* Lists stay in the order of their scopes. */
static void
put_list (struct offers_prov *p, struct offer_list *l)
{
  size_t i = p->lists.n;

  *vec_push (&p->lists) = l;
  for (; i > 0 && strcmp (p->lists.at[i - 1]->scope, l->scope) > 0; i--)
    p->lists.at[i] = p->lists.at[i - 1];
  p->lists.at[i] = l;
}

static struct offer *
find_sorted (struct offer_list *l, const char *ref)
{
  size_t lo = 0, hi = l->n;

  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    int c = strcmp (l->text[mid].ref, ref);

    if (c == 0)
      return &l->hot[mid];
    if (c < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return NULL;
}

/* Returns how many lists the scope has. */
static size_t
mark_replaced (struct offers_prov *p, const struct offer_list *fresh)
{
  size_t lists = 0;

  for (size_t i = 0; i < p->lists.n; i++) {
    if (strcmp (p->lists.at[i]->scope, fresh->scope) != 0)
      continue;
    lists++;
    for (size_t j = 0; j < fresh->n; j++) {
      struct offer *old = find_sorted (p->lists.at[i], fresh->text[j].ref);

      if (old)
        old->seen_s = 0;
    }
  }
  return lists;
}

static void
merge_partial (struct offers_prov *p, struct offer_list *fresh)
{
  if (mark_replaced (p, fresh) >= LISTS_PER_SCOPE)
    for (size_t i = 0; i < p->lists.n; i++)
      if (strcmp (p->lists.at[i]->scope, fresh->scope) == 0) {
        drop_list (p, i); /* the oldest of them */
        break;
      }
  put_list (p, fresh);
}

static void
scope_done (struct offers_prov *p, const json_t *scope)
{
  const char *name = json_str (scope, "scope", ""), *how = json_str (scope, "how", "failed");
  struct offer_list *l = take_staged (p, name);

  if (strcmp (how, "complete") == 0) {
    drop_scope (p, name);
    if (l)
      put_list (p, l);
    return;
  }
  p->staged_complete = false;
  if (l)
    merge_partial (p, l);
}

void
offers_item (struct offers *o, const char *provider, const json_t *item, int64_t now_ms)
{
  struct offers_prov *p = offers_prov (o, provider);
  const json_t *scope = json_object_get (item, "scope"), *raw;
  size_t i;

  if (!p)
    return;
  json_array_foreach (json_object_get (item, "offers"), i, raw)
    stage (o, p, raw, now_ms);
  if (json_is_object (scope))
    scope_done (p, scope);
}

/* Scopes that are listed no more go when nothing in them can be rented any longer. */
static void
drop_expired (struct offers *o, struct offers_prov *p, int64_t now_ms)
{
  for (size_t i = p->lists.n; i-- > 0;) {
    const struct offer_list *l = p->lists.at[i];
    uint32_t newest = 0;

    for (size_t j = 0; j < l->n; j++)
      newest = l->hot[j].seen_s > newest ? l->hot[j].seen_s : newest;
    if ((int64_t) newest * 1000 + 2 * (int64_t) o->conf.expire_ms < now_ms)
      drop_list (p, i);
  }
}

void
offers_end (struct offers *o, const char *provider, bool answered, int64_t now_ms)
{
  struct offers_prov *p = offers_prov (o, provider);

  if (!p)
    return;
  while (p->staged.n) { /* a scope that nobody finished proves no absence */
    p->staged_complete = false;
    merge_partial (p, take_staged (p, p->staged.at[0]->scope));
  }
  p->complete = answered && p->staged_complete;
  p->skipped = p->staged_skipped;
  if (!p->skipped)
    p->problem[0] = '\0';
  if (answered)
    p->listed_ms = now_ms;
  drop_expired (o, p, now_ms);
}
