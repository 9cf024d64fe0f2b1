/* attempts.c - what is known of an attempt's machine, and what that makes of the attempt
 *
 * A committed attempt means "perhaps sent".
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

void
attempt_save (struct attempt *a)
{
  undo_touch (a->lease);
  store_put_attempt (a->lease->broker->store, a->lease, a);
}

void
attempt_reason (struct attempt *a, const char *code, const char *text)
{
  set_str (&a->reason_code, code);
  set_str (&a->reason_text, text);
  attempt_save (a);
}

static void
timer (void *ctx)
{
  struct attempt *a = ctx;

  a->timer = 0;
  attempt_work (a);
}

void
attempt_later (struct attempt *a, int64_t ms)
{
  loop_cancel (a->lease->broker->loop, a->timer);
  a->timer = loop_after (a->lease->broker->loop, ms, timer, a);
}

/* The cloud's word counts where it can be true: not before we asked, not in the future. */
static int64_t
billed_from (const struct attempt *a)
{
  int64_t now = now_ms (), said = a->machine.created_ms;

  return said < a->started_ms || said > now ? now : said;
}

void
attempt_happens (struct attempt *a, enum attempt_event ev)
{
  bool was_current = a == lease_attempt (a->lease);
  enum attempt_state was = a->state;

  if (!attempt_next (a->state, a->wanted, ev, &a->state))
    return;
  if (ev == AEV_UNWANTED || a->state == ATTEMPT_REMOVING)
    a->wanted = false;
  if (ev == AEV_MACHINE && !a->billed) {
    a->billed = true;
    a->created_ms = billed_from (a);
  }
  if (attempt_ended (a->state)) {
    a->ended_ms = now_ms ();
    spent_ended (a, 1);
    a->wanted = false;
  } else if (attempt_ended (was)) {
    spent_ended (a, -1);
    a->ended_ms = 0;
    a->gone_seen = 0;
  }
  if (a->state != ATTEMPT_SENT && a->state != ATTEMPT_UNKNOWN) {
    json_decref (a->create); /* its fate is known: those bytes are never sent again */
    a->create = NULL;
  }
  a->fresh = false;
  if (was_current && !a->wanted)
    call_give_up (
        a->lease); /* it is about this machine: nobody would know what to do with the answer */
  if (was != a->state) {
    a->tries = a->absent = 0;
    loop_cancel (a->lease->broker->loop, a->timer);
    a->timer = 0;
  }
  attempt_save (a);
  if (attempt_ended (a->state) && lease_ended (a->lease->state)) {
    engine_save (a->lease); /* its row says whether it is over, and now it may be */
    a->lease->broker->some_over = true;
  }
  if (was != a->state || ev == AEV_UNWANTED) {
    log_at (LOG_INFO, "attempt", "lease=%s attempt=%lld state=%s machine=%s", a->lease->id,
            (long long) a->number, attempt_state_name (a->state),
            a->machine.id ? a->machine.id : "-");
    attempt_later (a, 0);
    engine_later (a->lease, 0);
  }
}

/* ---- what the cloud says ---- */

void
attempt_learn (struct attempt *a, const json_t *j)
{
  static const struct {
    const char *name;
    size_t at;
  } strings[] = {
    { "id", offsetof (struct machine, id) },
    { "scope", offsetof (struct machine, scope) },
    { "plugin_data", offsetof (struct machine, plugin_data) },
    { "address", offsetof (struct machine, address) },
    { "state", offsetof (struct machine, state) },
    { "raw_state", offsetof (struct machine, raw_state) },
    { "cloud", offsetof (struct machine, cloud) },
    { "region", offsetof (struct machine, region) },
    { "instance_type", offsetof (struct machine, instance_type) },
  };
  struct machine *m = &a->machine;
  const json_t *resources = json_object_get (j, "resources");

  for (size_t i = 0; i < N_ELEMENTS (strings); i++)
    if (json_str (j, strings[i].name, NULL))
      set_str ((char **) (void *) ((char *) m + strings[i].at),
               json_str (j, strings[i].name, NULL));
  if (!m->hostkey && json_str (j, "ssh_user", NULL)) /* once pinned, the user that worked stays */
    set_str (&m->ssh_user, json_str (j, "ssh_user", NULL));
  m->ssh_port = json_i64 (j, "ssh_port", m->ssh_port);
  m->created_ms = json_i64 (j, "created_ms", m->created_ms);
  if (json_array_size (resources)) {
    json_decref (a->resources);
    a->resources = json_deep_copy (resources);
  }
  a->shown = !m->state || (strncmp (m->state, "stop", 4) != 0 && strcmp (m->state, "error") != 0 &&
                           strcmp (m->state, "gone") != 0);
  attempt_happens (a, AEV_MACHINE);
}

static bool
holds_resource (const struct attempt *a, const json_t *resource)
{
  const json_t *have;
  size_t i;

  json_array_foreach (a->resources, i, have) {
    if (strcmp (json_str (have, "id", ""), json_str (resource, "id", "")) == 0 &&
        strcmp (json_str (have, "kind", ""), json_str (resource, "kind", "")) == 0)
      return true;
  }
  return false;
}

bool
attempt_holds (const struct attempt *a, const json_t *thing)
{
  const char *id = json_str (thing, "id", "");

  if (strcmp (json_str (thing, "kind", "machine"), "machine") == 0)
    return a->machine.id && strcmp (a->machine.id, id) == 0;
  return holds_resource (a, thing);
}

void
attempt_learn_resource (struct attempt *a, const json_t *resource)
{
  static const char *const members[] = { "kind", "id", "scope", "billable", "price_udollar" };
  json_t *own;

  if (holds_resource (a, resource))
    return;
  own = json_object (); /* not its tags, which have the token */
  for (size_t i = 0; i < N_ELEMENTS (members); i++)
    if (json_object_get (resource, members[i]))
      json_object_set (own, members[i], json_object_get (resource, members[i]));
  if (!a->resources)
    a->resources = json_array ();
  json_array_append_new (a->resources, own);
  attempt_save (a);
}

json_t *
attempt_ref (const struct attempt *a)
{
  const struct machine *m = &a->machine;
  json_t *ref = json_object ();

  json_put_str (ref, "id", m->id ? m->id : "");
  json_put_str (ref, "scope", m->scope ? m->scope : json_str (a->offer, "scope", NULL));
  json_put_str (ref, "name", a->name);
  json_put_str (ref, "token", a->token);
  json_put_str (ref, "plugin_data", m->plugin_data);
  json_put_i64 (ref, "created_ms", m->created_ms ? m->created_ms : a->started_ms);
  if (a->resources)
    json_object_set (ref, "resources", a->resources);
  return json_pack ("{s:o}", "ref", ref);
}

void
attempt_name (const struct attempt *a, char name[51])
{
  snprintf (name, 51, "gpub-%.4s-%s-%lld", a->lease->broker->instance, a->lease->id,
            (long long) a->number);
}

/* The broker's own release comes first; the cloud's kill switch is for a broker that cannot. */
int64_t
attempt_not_after (int64_t expires_ms)
{
  enum { KILL_SLACK_MS = 15 * 60 * 1000 };

  return expires_ms ? expires_ms + KILL_SLACK_MS : 0;
}

static bool
same_machine (const struct attempt *a, const json_t *machine)
{
  return a->machine.id && strcmp (a->machine.id, json_str (machine, "id", "")) == 0;
}

/* A second machine for one token: the cloud did the create twice.  It is ours and not wanted. */
static void
duplicate (struct attempt *a, const json_t *machine)
{
  struct attempt *twin;

  for (size_t i = 0; i < a->lease->nattempts; i++)
    if (same_machine (a->lease->attempts[i], machine))
      return;
  twin = attempt_new (a->lease);
  set_str (&twin->provider, a->provider);
  set_str (&twin->token, a->token);
  set_str (&twin->name, a->name);
  twin->offer = json_incref (a->offer);
  twin->price_udollar = a->price_udollar;
  twin->started_ms = a->started_ms;
  set_str (&twin->reason_code, "duplicate");
  set_str (&twin->reason_text, "the cloud made a second machine from one request");
  attempt_learn (twin, machine);
}

void
attempt_see (struct attempt *a, const json_t *machine)
{
  a->seen = true;
  if (a->machine.id && !same_machine (a, machine))
    duplicate (a, machine);
  else
    attempt_learn (a, machine);
}

void
attempt_item (struct lease *l, struct attempt *a, const json_t *item)
{
  const json_t *machine, *scope = json_object_get (item, "scope");
  size_t i;

  (void) l;
  json_array_foreach (json_object_get (item, "machines"), i, machine)
    attempt_see (a, machine);
  if (json_object_get (item, "resource"))
    attempt_learn_resource (a, json_object_get (item, "resource"));
  if (scope && strcmp (json_str (scope, "how", ""), "complete") == 0)
    a->scopes_done = true;
  else if (scope)
    a->scopes_bad = true;
}
