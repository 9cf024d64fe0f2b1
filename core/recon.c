/* recon.c - what the clouds list against what the books say
 *
 * Only what is seen counts here: it goes to the attempt it belongs to, or is an orphan.  What a
 * list does not show proves nothing.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"

static struct attempt *
with_token (struct lease *l, const struct provider *p, const char *token, const char *id)
{
  struct attempt *first = NULL;

  for (size_t i = 0; l && i < l->nattempts; i++) {
    struct attempt *a = l->attempts[i];

    if (!a->token || strcmp (a->token, token) != 0 || strcmp (a->provider, p->name) != 0)
      continue;
    if (a->machine.id && strcmp (a->machine.id, id) == 0)
      return a;
    if (!first)
      first = a;
  }
  return first;
}

/* Takes what the cloud shows to the attempt with that token, in memory or in the store. */
static bool
known (struct provider *p, const json_t *machine, int64_t number, const char *token)
{
  struct lease *l = engine_lease (p->broker, number), *old = NULL;
  struct attempt *a;

  if (!l)
    l = old = store_lease (p->broker->store, number);
  a = with_token (l, p, token, json_str (machine, "id", ""));
  if (!a) {
    lease_free (old);
    return false;
  }
  if (old) { /* over in our books, and yet there: it comes back to be removed */
    engine_take (p->broker, old);
    feed_alarm (p->broker, "reappeared", a->name);
  }
  attempt_see (a, machine);
  engine_save (l);
  return true;
}

static void
sort_out (struct provider *p, const json_t *machine)
{
  const json_t *tags = json_object_get (machine, "tags");
  const char *owner = json_str (tags, "gpubroker-owner", ""),
             *token = json_str (tags, "gpubroker-token", "");
  int64_t number = strtoll (json_str (tags, "gpubroker-lease", "0"), NULL, 10);
  const char *state = json_str (machine, "state", "");

  if (strcmp (owner, p->broker->instance) != 0 || strcmp (state, "gone") == 0 ||
      strcmp (state, "deleting") == 0)
    return;
  freeze_number (p->broker, number);
  if (!known (p, machine, number, token))
    json_array_append (p->seen, (json_t *) machine);
}

static void
list_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  struct provider *p = ctx;
  const json_t *machine;
  size_t i;

  json_array_foreach (json_object_get (item, "machines"), i, machine)
    sort_out (p, machine);
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
  char text[120];

  (void) id;
  p->reconciling = false;
  if (r->err.kind == ERR_NONE) {
    if (json_array_size (p->seen) > json_array_size (p->orphans)) {
      snprintf (text, sizeof text, "%zu machines carry our mark and are in no lease",
                json_array_size (p->seen));
      feed_alarm (p->broker, "orphans", text);
    }
    json_decref (p->orphans);
    p->orphans = json_incref (p->seen);
    watch_end (p);
  }
  json_decref (p->seen);
  p->seen = NULL;
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
  p->seen = json_array ();
  watch_begin (p);
  provider_ask (p, "list", NULL, p->broker->times.listing, list_item, list_result);
}
