/* api_orphans.c - what no lease accounts for: looked at, ignored, taken over, ended
 *
 * A name is looked up among what the last lists showed and nowhere else: an id that a cloud did not
 * list with our mark does not exist here.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/api.h"
#include "core/orphans.h"

void
api_orphans (struct ask *q)
{
  bool others = json_bool (q->body, "all", false);
  json_t *list = json_array (), *o;
  size_t k;

  for (size_t i = 0; i < q->b->providers.n; i++) {
    const struct provider *p = q->b->providers.at[i];

    json_array_foreach (p->orphans, k, o) {
      struct mark m = mark_of (json_object_get (o, "tags"), q->b->instance);

      if (others || m.whose == MARK_OURS)
        json_array_append_new (list, orphan_json (p, o));
    }
  }
  api_final (q, json_pack ("{s:o}", "orphans", list));
}

/* Its id, or kind:id. */
static bool
called (const json_t *o, const char *name)
{
  const char *id = json_str (o, "id", ""), *kind = json_str (o, "kind", "");
  size_t n = strlen (kind);

  return strcmp (id, name) == 0 ||
         (strncmp (name, kind, n) == 0 && name[n] == ':' && strcmp (name + n + 1, id) == 0);
}

/* NULL: refused. */
static json_t *
find (struct ask *q, struct provider **out)
{
  const char *name = json_str (q->body, "provider", ""), *id = json_str (q->body, "id", "");
  struct provider *p = *out = provider_find (q->b, name);
  json_t *o, *found = NULL;
  size_t i;

  if (!p) {
    api_refuse (q, "not-found", "see: gpubroker-cli providers", "no provider '%.60s'", name);
    return NULL;
  }
  json_array_foreach (p->orphans, i, o) {
    if (!called (o, id))
      continue;
    if (found) {
      api_refuse (q, "conflict", "say KIND:ID", "%s/%.60s may be %.40s:%.60s or %.40s:%.60s",
                  p->name, id, json_str (found, "kind", ""), id, json_str (o, "kind", ""), id);
      return NULL;
    }
    found = o;
  }
  if (!found)
    api_refuse (q, "not-found", "see: gpubroker-cli orphans", "no orphan %s/%.60s", p->name, id);
  return found;
}

/* The same, and it is ours; whole: a mark that lacks a part was not put there by a rent of ours. */
static json_t *
find_ours (struct ask *q, struct provider **p, bool whole)
{
  json_t *o = find (q, p);
  struct mark m;

  if (!o)
    return NULL;
  m = mark_of (json_object_get (o, "tags"), q->b->instance);
  if (mark_whole (&m) || (m.whose == MARK_OURS && !whole))
    return o;
  if (m.whose == MARK_OURS)
    api_refuse (q, "denied", "end it at the cloud, if it is yours",
                "the mark of %s/%.60s lacks its lease number or token", (*p)->name,
                json_str (o, "id", ""));
  else
    api_refuse (q, "denied", "only whoever made it may end it",
                "%s/%.60s carries the mark of %s%.60s", (*p)->name, json_str (o, "id", ""),
                m.whose == MARK_OTHER ? "another broker: " : "nobody", m.owner);
  return NULL;
}

void
api_orphan_ignore (struct ask *q)
{
  bool ignored = json_bool (q->body, "ignored", true);
  struct provider *p;
  json_t *o = find_ours (q, &p, false);
  char text[300];

  if (!o)
    return;
  orphan_ignore (p, o, ignored);
  snprintf (text, sizeof text, "%.100s by %.100s", json_str (o, "id", ""), q->r->principal);
  feed_provider (q->b, p->name, ignored ? "orphan-ignored" : "orphan-unignored", text);
  api_final (q, json_pack ("{s:o}", "orphan", orphan_json (p, o)));
}

void
api_orphan_adopt (struct ask *q)
{
  struct provider *p;
  json_t *o = find_ours (q, &p, true);
  struct lease *l = o ? orphan_adopt (p, o, q->owner) : NULL;

  if (l)
    ops_finish (q->b, api_accept (q, "adopt", l, NULL), NULL);
}

/* Without `yes` only what would be ended is told. */
void
api_orphan_release (struct ask *q)
{
  struct provider *p;
  json_t *o = find_ours (q, &p, true);
  struct lease *l;

  if (!o)
    return;
  if (!json_bool (q->body, "yes", false)) {
    api_final (q, json_pack ("{s:b, s:o}", "dry_run", 1, "orphan", orphan_json (p, o)));
    return;
  }
  if (freeze_holds (q->b)) {
    api_refuse (q, "conflict", "look at it, then: gpubroker-cli providers resume broker",
                "nothing without a lease is ended while the %s cannot be believed",
                q->b->freeze.clock ? "clock" : "books");
    return;
  }
  l = orphan_release (p, o, q->owner);
  api_accept (q, "release", l, NULL);
}
