/* model_json.c - leases, attempts and operations as the outside sees them (docs/schema)
 *
 * Tokens, create arguments and plugin data never leave.
 */
#include "config.h"

#include "core/json.h"
#include "core/model.h"

static void
put_time (json_t *j, const char *key, int64_t ms)
{
  if (ms)
    json_put_i64 (j, key, ms);
}

static void
put_reason (json_t *j, const char *key, const char *code_key, const char *code,
            const char *text_key, const char *text)
{
  json_t *r;

  if (!code)
    return;
  r = json_object ();
  json_put_str (r, code_key, code);
  json_put_str (r, text_key, text ? text : "");
  json_object_set_new (j, key, r);
}

json_t *
attempt_json (const struct attempt *a, int64_t now_ms)
{
  json_t *j = json_object ();

  json_put_i64 (j, "number", a->number);
  json_put_str (j, "provider", a->provider);
  json_put_str (j, "machine_name", a->name);
  json_put_str (j, "state", attempt_state_name (a->state));
  json_put_i64 (j, "price_udollar", a->price_udollar);
  json_put_i64 (j, "spent_udollar", attempt_spent (a, now_ms));
  put_time (j, "started_ms", a->started_ms);
  put_time (j, "ended_ms", a->ended_ms);
  if (a->offer)
    json_object_set (j, "offer", a->offer);
  put_reason (j, "reason", "code", a->reason_code, "text", a->reason_text);
  if (a->reason_code)
    json_put_str (json_object_get (j, "reason"), "kind", a->reason_kind);
  return j;
}

static json_t *
machine_json (const struct attempt *a)
{
  static const char *const from_gpu[][2] = { { "gpu", "model" },
                                             { "gpu_count", "count" },
                                             { "vram_gib", "vram_gib" } };
  const struct machine *m = &a->machine;
  const json_t *gpu = json_object_get (a->offer, "gpu");
  json_t *j = json_object ();

  json_put_str (j, "provider", a->provider);
  json_put_str (j, "id", m->id);
  json_put_str (j, "scope", m->scope);
  json_put_str (j, "address", m->address);
  json_put_str (j, "ssh_user", m->ssh_user);
  json_put_str (j, "hostkey", m->hostkey);
  json_put_str (j, "state", m->state);
  json_put_str (j, "raw_state", m->raw_state);
  json_put_str (j, "cloud", m->cloud ? m->cloud : json_str (a->offer, "cloud", NULL));
  json_put_str (j, "region", m->region ? m->region : json_str (a->offer, "region", NULL));
  json_put_str (j, "instance_type",
                m->instance_type ? m->instance_type : json_str (a->offer, "instance_type", NULL));
  if (m->address)
    json_put_i64 (j, "ssh_port", m->ssh_port ? m->ssh_port : 22);
  for (size_t i = 0; i < N_ELEMENTS (from_gpu); i++)
    if (json_object_get (gpu, from_gpu[i][1]))
      json_object_set (j, from_gpu[i][0], json_object_get (gpu, from_gpu[i][1]));
  return j;
}

static void
put_whole (json_t *j, const struct lease *l, int64_t now_ms)
{
  json_t *attempts = json_array (), *resources = json_array ();

  for (size_t i = 0; i < l->nattempts; i++) {
    json_array_append_new (attempts, attempt_json (l->attempts[i], now_ms));
    if (l->attempts[i]->resources && !attempt_ended (l->attempts[i]->state))
      json_array_extend (resources, l->attempts[i]->resources);
  }
  json_object_set_new (j, "attempts", attempts);
  json_object_set_new (j, "resources", resources);
}

static void
put_step (json_t *j, const struct lease *l)
{
  json_t *step;

  if (!l->step_name)
    return;
  step = json_object ();
  json_put_str (step, "name", l->step_name);
  json_put_str (step, "text", l->step_text ? l->step_text : "");
  json_put_i64 (step, "since_ms", l->stage_ms ? l->stage_ms : l->state_ms);
  json_object_set_new (j, "step", step);
}

static void
put_request (json_t *j, const struct lease *l)
{
  static const char *const members[] = { "filter", "labels", "open", "on_failure" };

  for (size_t i = 0; i < N_ELEMENTS (members); i++)
    if (json_object_get (l->request, members[i]))
      json_object_set (j, members[i], json_object_get (l->request, members[i]));
}

json_t *
lease_json (const struct lease *l, int64_t now_ms, bool whole)
{
  const struct attempt *a = lease_attempt (l);
  json_t *j = json_object ();

  json_put_str (j, "id", l->id);
  json_put_i64 (j, "number", l->number);
  json_put_str (j, "name", l->name);
  json_put_str (j, "owner", l->owner);
  json_put_str (j, "cluster", l->cluster);
  json_put_str (j, "state", lease_state_name (l->state));
  put_reason (j, "cause", "code", l->cause_code, "message", l->cause_text);
  put_time (j, "created_ms", l->created_ms);
  put_time (j, "ready_ms", l->ready_ms);
  put_time (j, "ended_ms", l->ended_ms);
  put_time (j, "expires_ms", l->expires_ms);
  put_time (j, "deadline_ms", l->deadline_ms);
  put_time (j, "keep_until_ms", l->keep_until_ms);
  json_put_i64 (j, "price_udollar", lease_rate (l));
  json_put_i64 (j, "spent_udollar", lease_spent (l, now_ms));
  put_request (j, l);
  put_step (j, l);
  if (l->failure)
    json_object_set (j, "failure", l->failure);
  if (a) {
    json_put_str (j, "node", a->name);
    json_object_set_new (j, "attempt", attempt_json (a, now_ms));
    json_object_set_new (j, "machine", machine_json (a));
  }
  if (whole)
    put_whole (j, l, now_ms);
  return j;
}

json_t *
op_json (const struct op *o)
{
  char lease[24];
  json_t *j = json_object ();

  json_put_str (j, "id", o->id);
  json_put_str (j, "verb", o->verb);
  json_put_str (j, "owner", o->owner);
  json_put_str (j, "key", o->key);
  json_put_str (j, "state", op_state_name (o->state));
  put_time (j, "started_ms", o->started_ms);
  put_time (j, "ended_ms", o->ended_ms);
  if (o->lease) {
    snprintf (lease, sizeof lease, "l%lld", (long long) o->lease);
    json_put_str (j, "lease", lease);
  }
  if (o->error)
    json_object_set (j, "error", o->error);
  return j;
}
