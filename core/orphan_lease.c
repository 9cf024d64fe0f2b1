/* orphan_lease.c - an orphan becomes a lease: taken over by a person, or to be ended
 *
 * What the rent wished for is not in a mark.  So such a lease is degraded, never ready, until
 * `retry` proved it; it has no time to live and no cluster, and it is called adopted.  Before
 * anything of it is removed, its mark is asked for again (attempt_check.c).
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"
#include "core/orphans.h"

/* The number in the mark, so that the next list finds it, unless the books gave it to another. */
static int64_t
number_for (struct broker *b, int64_t wanted)
{
  struct lease *old;

  if (wanted >= b->next_lease || engine_lease (b, wanted))
    return b->next_lease++;
  old = store_lease (b->store, wanted);
  if (!old)
    return wanted;
  lease_free (old);
  return b->next_lease++;
}

static struct lease *
new_lease (struct broker *b, int64_t number, const char *owner, int64_t since_ms)
{
  struct lease *l = lease_new (number);

  l->adopted = true;
  l->state = LEASE_DEGRADED;
  l->created_ms = since_ms;
  l->state_ms = now_ms ();
  l->keep_on_failure = true;
  l->keep_ms = b->conf.defaults.keep_ms;
  l->drain_timeout_ms = 300000;
  l->request = json_object ();
  set_str (&l->owner, owner);
  set_str (&l->cluster, "none");
  engine_take (b, l);
  return l;
}

static void
add_resource (struct attempt *a, const json_t *o)
{
  set_str (&a->machine.scope, json_str (o, "scope", NULL));
  a->billed = json_bool (o, "billable", false);
  a->created_ms = a->started_ms;
  attempt_learn_resource (a, o);
}

/* The number at the end of the machine's name, "gpub-5f0c-l17-2". */
static void
number_of_name (struct attempt *a)
{
  const struct lease *l = a->lease;
  const char *dash = strrchr (a->name, '-');
  long long n = dash ? strtoll (dash + 1, NULL, 10) : 0,
            last = l->nattempts > 1 ? l->attempts[l->nattempts - 2]->number : 0;

  if (n > last && n < 10000)
    a->number = n;
}

static struct attempt *
new_attempt (struct lease *l, const struct provider *p, const json_t *o, int64_t since_ms)
{
  struct mark m = mark_of (json_object_get (o, "tags"), p->broker->instance);
  bool machine = strcmp (json_str (o, "kind", ""), "machine") == 0;
  struct attempt *a = attempt_new (l);

  a->state = ATTEMPT_CREATED;
  a->wanted = true;
  a->started_ms = a->sent_wall_ms = since_ms;
  a->price_udollar = json_i64 (o, "price_udollar", 0);
  set_str (&a->provider, p->name);
  set_str (&a->token, m.token);
  set_str (&a->name, json_str (o, "name", json_str (o, "id", "")));
  number_of_name (a);
  if (machine)
    attempt_learn (a, o);
  else
    add_resource (a, o);
  attempt_save (a);
  return a;
}

static void
strike_out (struct provider *p, const json_t *orphan)
{
  const json_t *o;
  size_t i;

  json_array_foreach (p->orphans, i, o) {
    if (o == orphan) {
      json_array_remove (p->orphans, i);
      return;
    }
  }
}

struct lease *
orphan_adopt (struct provider *p, const json_t *orphan, const char *owner)
{
  struct mark m = mark_of (json_object_get (orphan, "tags"), p->broker->instance);
  int64_t now = now_ms ();
  struct lease *l = new_lease (p->broker, number_for (p->broker, m.lease), owner, now);
  struct attempt *a = new_attempt (l, p, orphan, now);

  engine_cause (l, "adopted",
                "%s was taken over from its mark for %s; what it was rented for is not known",
                a->name, owner);
  engine_save (l);
  feed_lease (p->broker, l, "adopted", l->cause_text);
  strike_out (p, orphan); /* last: the orphan may live there alone */
  return l;
}

struct lease *
orphan_rebuild (struct provider *p, const json_t *orphan)
{
  struct broker *b = p->broker;
  struct mark m = mark_of (json_object_get (orphan, "tags"), b->instance);
  int64_t now = now_ms (), since = json_i64 (orphan, "created_ms", now);
  struct lease *l = engine_lease (b, m.lease);

  if (since <= 0 || since > now)
    since = now;
  if (!l || !l->adopted)
    l = new_lease (b, number_for (b, m.lease), "rebuilt", since);
  new_attempt (l, p, orphan, since);
  engine_cause (l, "rebuilt", "the books were lost; this is what the mark in the cloud says");
  engine_save (l);
  feed_lease (b, l, "rebuilt", l->cause_text);
  strike_out (p, orphan);
  return l;
}

struct lease *
orphan_release (struct provider *p, const json_t *orphan, const char *owner)
{
  struct lease *l = orphan_adopt (p, orphan, owner);

  engine_cause (l, "released", "%s had our mark and was in no lease", l->attempts[0]->name);
  engine_event (l, LEV_RELEASE);
  return l;
}

/* ---- orphans_release_after ---- */

static bool
due (const struct provider *p, const json_t *o, int64_t floor)
{
  const struct broker *b = p->broker;
  AUTO_JSON json_t *j = orphan_json (p, o);
  struct orphan_case c = { .mark = mark_of (json_object_get (o, "tags"), b->instance),
                           .ignored = orphan_ignored (p, o),
                           .complete = json_bool (o, "complete", false),
                           .frozen = freeze_holds (b) || p->frozen,
                           .floor = floor,
                           .next = b->next_lease,
                           .first_seen_ms = json_i64 (j, "first_seen_ms", 0),
                           .now_ms = now_ms (),
                           .grace_ms = b->conf.broker.orphans_release_after_ms };

  return orphan_due (&c);
}

void
orphans_rule (struct provider *p)
{
  uint32_t left = p->broker->conf.limits.removals_per_round;
  int64_t floor = freeze_floor (p->broker);
  char text[300];

  for (size_t i = json_array_size (p->orphans); i-- > 0 && left > 0;) {
    const json_t *o = json_array_get (p->orphans, i);

    if (!due (p, o, floor))
      continue;
    orphan_text (p, o, text, sizeof text);
    feed_provider (p->broker, p->name, "orphan-released", text);
    orphan_release (p, o, "broker");
    left--;
  }
}
