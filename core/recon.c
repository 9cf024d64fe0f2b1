/* recon.c - what the clouds list against what the books say
 *
 * Only what is seen counts here: it goes to the attempt it belongs to, or is an orphan.  What a
 * list does not show proves nothing.
 */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/orphans.h"

/* Another machine with the token of a rent is its duplicate; with that of an adopted lease it is an
 * orphan of its own. */
static struct attempt *
with_token (const struct lease *l, const struct provider *p, const char *token, const json_t *thing)
{
  struct attempt *first = NULL;

  for (size_t i = 0; l && i < l->nattempts; i++) {
    struct attempt *a = l->attempts[i];

    if (!a->token || strcmp (a->token, token) != 0 || strcmp (a->provider, p->name) != 0)
      continue;
    if (attempt_holds (a, thing))
      return a;
    if (!first && !l->adopted)
      first = a;
  }
  return first;
}

static struct attempt *
live (const struct provider *p, const struct mark *m, const json_t *thing)
{
  struct broker *b = p->broker;
  struct attempt *a = with_token (engine_lease (b, m->lease), p, m->token, thing);

  for (size_t i = 0; !a && i < b->leases.n; i++) /* adopted under another number */
    if (b->leases.at[i]->adopted)
      a = with_token (b->leases.at[i], p, m->token, thing);
  return a;
}

bool
recon_known (struct provider *p, const json_t *thing)
{
  struct mark m = mark_of (json_object_get (thing, "tags"), p->broker->instance);
  const struct attempt *a = m.whose == MARK_OURS ? live (p, &m, thing) : NULL;

  return a && !attempt_ended (a->state);
}

/* Takes what the cloud shows to the attempt with that token, in memory or in the store. */
static bool
known (struct provider *p, const json_t *machine, const struct mark *m)
{
  struct attempt *a = live (p, m, machine);
  struct lease *l = engine_lease (p->broker, m->lease), *old = NULL;

  if (!a && !l) {
    l = old = store_lease (p->broker->store, m->lease);
    a = with_token (old, p, m->token, machine);
  }
  if (l && !a && !l->adopted) /* every token is in the books before it is sent */
    freeze_unknown (p->broker, json_str (machine, "name", "?"),
                    json_i64 (machine, "created_ms", 0));
  if (!a) {
    lease_free (old);
    return false;
  }
  if (old) { /* over in our books, and yet there: it comes back to be removed */
    engine_take (p->broker, old);
    feed_alarm (p->broker, "reappeared", a->name);
  }
  attempt_see (a, machine);
  engine_save (a->lease);
  return true;
}

static void
machine (struct provider *p, const json_t *j)
{
  struct mark m = mark_of (json_object_get (j, "tags"), p->broker->instance);
  const char *state = json_str (j, "state", "");

  if (strcmp (state, "gone") == 0 || strcmp (state, "deleting") == 0)
    return;
  if (m.whose == MARK_OURS)
    freeze_number (p->broker, m.lease);
  if (m.whose != MARK_OURS || !known (p, j, &m))
    orphans_see (p, "machine", j);
}

/* One whose machine is still to go goes with it. */
static void
resource (struct provider *p, const json_t *j)
{
  struct mark m = mark_of (json_object_get (j, "tags"), p->broker->instance);
  struct attempt *a = m.whose == MARK_OURS ? live (p, &m, j) : NULL;

  if (m.whose == MARK_OURS)
    freeze_number (p->broker, m.lease);
  if (a && !attempt_ended (a->state))
    attempt_learn_resource (a, j);
  else
    orphans_see (p, json_str (j, "kind", "resource"), j);
}

static void
list_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  struct provider *p = ctx;
  const json_t *j;
  size_t i;

  json_array_foreach (json_object_get (item, "machines"), i, j)
    machine (p, j);
  if (json_object_get (item, "resource"))
    resource (p, json_object_get (item, "resource"));
  if (json_object_get (item, "scope"))
    orphans_scope (p, json_object_get (item, "scope"));
  if (strcmp (json_str (json_object_get (item, "scope"), "how", ""), "complete") == 0)
    p->some_scope = true;
  if (want_ack)
    child_ack (p->child, id);
}

static void
reconcile_timer (void *ctx)
{
  struct provider *p = ctx;

  p->reconcile_timer = 0;
  provider_reconcile (p);
}

static void
list_result (void *ctx, uint32_t id, const struct call_result *r)
{
  struct provider *p = ctx;

  (void) id;
  p->reconciling = false;
  p->looked = p->looked || r->err.kind == ERR_NONE || p->some_scope;
  if (r->err.kind == ERR_NONE) {
    orphans_end (p);
    if (p->broker->rebuild) {
      rebuild_listed (p);
    } else {
      watch_end (p);
      orphans_rule (p);
    }
  }
  p->reconcile_timer = loop_after (p->broker->loop, provider_jitter (p->conf->reconcile_every_ms),
                                   reconcile_timer, p);
}

void
provider_reconcile (struct provider *p)
{
  if (p->reconciling || !p->up || p->broker->stopping)
    return;
  loop_cancel (p->broker->loop, p->reconcile_timer);
  p->reconcile_timer = 0;
  p->reconciling = true;
  p->some_scope = false;
  orphans_begin (p);
  watch_begin (p);
  provider_ask (p, "list", NULL, p->broker->times.listing, list_item, list_result);
}
