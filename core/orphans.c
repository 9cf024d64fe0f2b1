/* orphans.c - the orphans of each provider, and what is remembered of them
 *
 * In the store, one document a provider: when each of ours was first seen and whether it is
 * ignored. One that is missing is remembered for a day, so that a list that fails to show it
 * forgets nothing.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/orphans.h"

enum { REMEMBER_MS = 24 * 3600 * 1000, KEY_MAX = 700 };

/* ---- notes ---- */

static void
meta_key (const struct provider *p, char out[128])
{
  snprintf (out, 128, "orphans:%.100s", p->name);
}

static json_t *
notes (struct provider *p)
{
  char key[128];

  if (!p->orphan_notes) {
    AUTO_FREE char *text = NULL;

    meta_key (p, key);
    text = store_meta (p->broker->store, key);
    p->orphan_notes = text ? json_loads (text, 0, NULL) : NULL;
    if (!json_is_object (p->orphan_notes)) {
      json_decref (p->orphan_notes);
      p->orphan_notes = json_object ();
    }
  }
  return p->orphan_notes;
}

static void
save_notes (const struct provider *p)
{
  AUTO_FREE char *text = json_canonical (p->orphan_notes);
  char key[128];

  meta_key (p, key);
  store_put_meta (p->broker->store, key, text);
}

static void
key_of (const json_t *o, char out[KEY_MAX])
{
  snprintf (out, KEY_MAX, "%.100s/%.512s", json_str (o, "kind", ""), json_str (o, "id", ""));
}

static json_t *
note_of (const struct provider *p, const json_t *o)
{
  char key[KEY_MAX];

  key_of (o, key);
  return json_object_get (p->orphan_notes, key);
}

/* true: it was not known before. */
static bool
remember (struct provider *p, const json_t *o, bool *dirty)
{
  json_t *note = note_of (p, o);
  char key[KEY_MAX];

  if (note) {
    *dirty |= json_object_del (note, "missing_ms") == 0;
    return false;
  }
  key_of (o, key);
  json_object_set_new (p->orphan_notes, key,
                       json_pack ("{s:I}", "first_ms", (json_int_t) now_ms ()));
  return *dirty = true;
}

static void
forget (struct provider *p, const json_t *seen, bool *dirty)
{
  int64_t now = now_ms ();
  const char *key;
  json_t *note;
  void *next;

  json_object_foreach_safe (p->orphan_notes, next, key, note)
  {
    int64_t missing = json_i64 (note, "missing_ms", 0);

    if (json_object_get (seen, key))
      continue;
    if (!missing)
      json_put_i64 (note, "missing_ms", now);
    else if (now - missing > REMEMBER_MS)
      json_object_del (p->orphan_notes, key);
    else
      continue;
    *dirty = true;
  }
}

bool
orphan_ignored (const struct provider *p, const json_t *o)
{
  return json_bool (note_of (p, o), "ignored", false);
}

void
orphan_ignore (struct provider *p, const json_t *o, bool ignored)
{
  json_t *note = note_of (p, o);

  json_object_set_new (note, "ignored", json_boolean (ignored));
  save_notes (p);
}

/* ---- a list ---- */

void
orphans_begin (struct provider *p)
{
  json_decref (p->seen);
  json_decref (p->scopes);
  p->seen = json_array ();
  p->scopes = json_object ();
}

void
orphans_see (struct provider *p, const char *kind, const json_t *thing)
{
  json_t *o = json_copy ((json_t *) thing);

  json_put_str (o, "kind", kind);
  json_array_append_new (p->seen, o);
}

void
orphans_scope (struct provider *p, const json_t *scope)
{
  bool complete = strcmp (json_str (scope, "how", ""), "complete") == 0;

  json_object_set_new (p->scopes, json_str (scope, "scope", ""), json_boolean (complete));
}

bool
orphans_complete (const struct provider *p)
{
  const char *name;
  json_t *how;

  json_object_foreach (p->scopes, name, how)
    if (!json_is_true (how))
      return false;
  return json_object_size (p->scopes) > 0;
}

/* Of a scope that the list did not name only a list without any gap says something. */
static bool
complete (const struct provider *p, const json_t *o)
{
  const json_t *own = json_object_get (p->scopes, json_str (o, "scope", ""));

  return own ? json_is_true (own) : orphans_complete (p);
}

/* What the last lists showed stays where this one saw only a part. */
static json_t *
merge (struct provider *p, json_t *keys)
{
  json_t *all = json_array (), *o;
  char key[KEY_MAX];
  size_t i;

  json_array_foreach (p->seen, i, o) {
    key_of (o, key);
    if (recon_known (p, o) || json_object_get (keys, key))
      continue;
    json_object_set_new (keys, key, json_true ());
    json_object_set_new (o, "complete", json_boolean (complete (p, o)));
    json_array_append (all, o);
  }
  json_array_foreach (p->orphans, i, o) {
    key_of (o, key);
    if (complete (p, o) || json_object_get (keys, key))
      continue;
    json_object_set_new (keys, key, json_true ());
    json_object_set_new (o, "complete", json_false ());
    json_array_append (all, o);
  }
  return all;
}

void
orphan_text (const struct provider *p, const json_t *o, char *text, size_t size)
{
  snprintf (text, size, "%.64s/%.100s (%.64s), $%.2f/h", p->name, json_str (o, "id", ""),
            json_str (o, "name", json_str (o, "kind", "")),
            (double) json_i64 (o, "price_udollar", 0) / 1e6);
}

static void
alarm_of (struct provider *p, size_t fresh, const json_t *first)
{
  char text[400], what[300];

  orphan_text (p, first, what, sizeof what);
  snprintf (text, sizeof text, "%zu more with our mark and in no lease: %s%s", fresh, what,
            fresh > 1 ? ", ...; see: gpubroker-cli orphans" : "");
  feed_alarm (p->broker, "orphans", text);
}

void
orphans_end (struct provider *p)
{
  AUTO_JSON json_t *keys = json_object ();
  json_t *all = merge (p, keys), *o;
  const json_t *first = NULL;
  bool dirty = false;
  size_t i, fresh = 0;

  notes (p);
  json_array_foreach (all, i, o) {
    struct mark m = mark_of (json_object_get (o, "tags"), p->broker->instance);

    if (m.whose == MARK_OURS && remember (p, o, &dirty) && fresh++ == 0)
      first = o;
  }
  forget (p, keys, &dirty);
  if (dirty)
    save_notes (p);
  json_decref (p->orphans);
  p->orphans = all;
  if (first)
    alarm_of (p, fresh, first);
}

/* ---- for the outside ---- */

json_t *
orphan_json (const struct provider *p, const json_t *o)
{
  static const char *const as_is[] = { "id",         "kind",          "scope",
                                       "name",       "state",         "cloud",
                                       "region",     "instance_type", "price_udollar",
                                       "created_ms", "resources" };
  struct mark m = mark_of (json_object_get (o, "tags"), p->broker->instance);
  json_t *j = json_pack ("{s:s, s:s}", "provider", p->name, "mark", mark_name (m.whose));

  for (size_t i = 0; i < N_ELEMENTS (as_is); i++)
    if (json_object_get (o, as_is[i]))
      json_object_set (j, as_is[i], json_object_get (o, as_is[i]));
  if (m.lease > 0)
    json_put_i64 (j, "lease_number", m.lease);
  json_put_str (j, "owner", m.owner[0] ? m.owner : NULL);
  if (note_of (p, o))
    json_put_i64 (j, "first_seen_ms", json_i64 (note_of (p, o), "first_ms", 0));
  json_object_set_new (j, "ignored", json_boolean (orphan_ignored (p, o)));
  return j;
}
