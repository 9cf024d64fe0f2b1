/* api_lease.c - what can be done to a lease that is there */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/api.h"

void
api_release (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);

  if (!l || !api_span (q, q->body, "drain_timeout_ms", 0)) {
    lease_free (old);
    return;
  }
  l->no_drain = !json_bool (q->body, "drain", true);
  l->evict_force = json_bool (q->body, "evict_force", false);
  l->drain_timeout_ms = json_i64 (q->body, "drain_timeout_ms", 300000);
  if (old || lease_ended (l->state)) { /* releasing again is no error */
    struct op *o = api_accept (q, "release", l, NULL);

    ops_finish (q->b, o, NULL);
    lease_free (old);
    return;
  }
  if (!l->cause_code)
    engine_cause (l, "released", "by %s", q->r->principal);
  engine_save (l);
  api_accept (q, "release", l, NULL);
  engine_event (l, LEV_RELEASE);
}

void
api_join (struct ask *q)
{
  static const char *const of_hosts[] = { "identity",    "name",       "ttl_ms",
                                          "deadline_ms", "on_failure", "labels" };
  const char *cluster = json_str (q->body, "cluster", "");
  struct lease *old, *l;
  bool alone;

  if (json_object_get (q->body, "host")) {
    api_join_host (q);
    return;
  }
  for (size_t i = 0; i < N_ELEMENTS (of_hosts); i++)
    if (json_object_get (q->body, of_hosts[i])) {
      api_refuse (q, "bad-request", NULL, "join: '%s' goes with a host", of_hosts[i]);
      return;
    }
  l = api_find (q, json_str (q->body, "lease", NULL), true, &old);
  if (!l)
    return;
  alone = !l->cluster || strcmp (l->cluster, "none") == 0;
  if (!conf_cluster (&q->b->conf, cluster)) {
    api_refuse (q, "not-found", "see: gpubroker-cli clusters", "no cluster '%.60s'", cluster);
  } else if (old || l->state != LEASE_READY || (!alone && strcmp (l->cluster, cluster) != 0)) {
    api_refuse (q, "conflict", NULL,
                "%s is %s%s%s: only a ready machine outside of any cluster can join one", l->id,
                lease_state_name (l->state), alone ? "" : " in ", alone ? "" : l->cluster);
  } else {
    set_str (&l->cluster, cluster);
    l->deadline_ms = now_ms () + q->b->conf.defaults.deadline_ms;
    engine_save (l);
    api_accept (q, "join", l, NULL);
    engine_event (l, LEV_JOIN);
  }
  lease_free (old);
}

void
api_again (struct ask *q, struct lease *l)
{
  l->deadline_ms = now_ms () + q->b->conf.defaults.deadline_ms;
  l->keep_until_ms = 0;
  api_accept (q, "retry", l, NULL);
  engine_event (l, LEV_RETRY);
}

void
api_retry (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);

  if (!l)
    return;
  if (old || (l->state != LEASE_FAILED_KEPT && l->state != LEASE_DEGRADED)) {
    api_refuse (q, "conflict", NULL,
                "%s is %s: only a lease that failed and was kept can be tried again", l->id,
                lease_state_name (l->state));
  } else {
    api_again (q, l);
  }
  lease_free (old);
}

void
api_verify (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);

  if (!l)
    return;
  if (old || l->state != LEASE_READY || !conf_cluster (&q->b->conf, l->cluster)) {
    api_refuse (q, "conflict", NULL, "%s is %s: only a ready node of a cluster can be verified",
                l->id, lease_state_name (l->state));
  } else {
    api_accept (q, "verify", l,
                json_bool (q->body, "network", false) ? json_pack ("{s:b}", "network", 1) : NULL);
    engine_event (l, LEV_VERIFY);
  }
  lease_free (old);
}

/* ---- extend: the cloud's kill switch moves first, then the books ---- */

static void
extended (struct lease *l, struct attempt *a, const struct call_result *r)
{
  struct broker *b = l->broker;
  struct op *o = NULL;

  (void) a;
  for (size_t i = 0; i < b->ops.n; i++)
    if (b->ops.at[i]->lease == l->number && b->ops.at[i]->state == OP_RUNNING &&
        strcmp (b->ops.at[i]->verb, "extend") == 0)
      o = b->ops.at[i];
  if (!o)
    return;
  if (r && r->err.kind != ERR_NONE && r->err.kind != ERR_UNSUPPORTED) {
    ops_finish (b, o,
                json_pack ("{s:s, s:s, s:b}", "code", "provider-down", "message", r->err.text,
                           "retryable", 1));
    return;
  }
  l->expires_ms = json_i64 (o->accepted, "expires_ms", l->expires_ms);
  l->warned = false;
  engine_save (l);
  feed_lease (b, l, "extended", NULL);
  ops_finish (b, o, NULL);
}

static void
move_kill_switch (struct lease *l, struct attempt *a, int64_t until)
{
  struct provider *p = provider_find (l->broker, a->provider);
  json_t *args = attempt_ref (a);

  json_put_i64 (args, "ms", attempt_not_after (until));
  call_attempt (a, p->child,
                &(struct call){ "set_not_after", args, l->broker->times.call, true, NULL, 0, NULL,
                                extended });
}

static void
extend (struct lease *l, int64_t until)
{
  struct attempt *a = lease_attempt (l);

  if (a && l->expires_ms && provider_find (l->broker, a->provider))
    move_kill_switch (l, a, until);
  else
    extended (l, NULL, NULL);
}

void
api_extend_again (struct broker *b)
{
  for (size_t i = 0; i < b->ops.n; i++) {
    const struct op *o = b->ops.at[i];
    struct lease *l = engine_lease (b, o->lease);

    if (l && o->state == OP_RUNNING && strcmp (o->verb, "extend") == 0)
      extend (l, json_i64 (o->accepted, "expires_ms", l->expires_ms));
  }
}

void
api_extend (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);
  struct attempt *a = l ? lease_attempt (l) : NULL;
  int64_t until;

  if (!l || !api_span (q, q->body, "ttl_ms", 1)) {
    lease_free (old);
    return;
  }
  until = now_ms () + json_i64 (q->body, "ttl_ms", 0);
  if (old || l->state >= LEASE_DRAINING) {
    api_refuse (q, "conflict", NULL, "%s is %s", l->id, lease_state_name (l->state));
  } else if (a && a->call) {
    turn_error (q->b, &q->ticket, "busy", NULL, NULL, "%s has a call in flight to its provider",
                l->id);
  } else {
    api_accept (q, "extend", l, json_pack ("{s:I}", "expires_ms", (json_int_t) until));
    if (!store_failed (q->b->store)) /* else the cloud would hear of what is not in the books */
      extend (l, until);
  }
  lease_free (old);
}

/* ---- the rest ---- */

void
api_cancel (struct ask *q)
{
  const char *id = json_str (q->body, "operation", "");
  struct op *old = NULL, *o = strncmp (id, "op", 2) == 0
                                  ? ops_find (q->b, strtoll (id + 2, NULL, 10), &old)
                                  : NULL;
  struct lease *l = o ? engine_lease (q->b, o->lease) : NULL;

  if (!o) {
    api_refuse (q, "not-found", NULL, "no operation '%.60s'", id);
  } else if (strcmp (o->owner, q->owner) != 0 && q->r->rights < BUS_ADMIN) {
    api_refuse (q, "denied", NULL, "%s belongs to %s", o->id, o->owner);
  } else if (o->state != OP_RUNNING || strcmp (o->verb, "rent") != 0 || !l) {
    api_refuse (q, "conflict", NULL, "%s is %s: only a rent that runs can be cancelled", o->id,
                o->state == OP_RUNNING ? o->verb : "over");
  } else {
    engine_cause (l, "cancelled", "by %s", q->r->principal);
    api_accept (q, "release", l, NULL);
    engine_event (l, LEV_RELEASE);
  }
  op_free (old);
}

void
api_ssh_info (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);
  struct attempt *a = l ? lease_attempt (l) : NULL;

  if (l && (!a || !a->machine.address))
    api_refuse (q, "conflict", NULL, "%s is %s and has no address", l->id,
                lease_state_name (l->state));
  else if (l) {
    json_t *j = json_object ();

    json_put_str (j, "host", a->machine.address);
    json_put_i64 (j, "port", a->machine.ssh_port ? a->machine.ssh_port : 22);
    json_put_str (j, "user", a->machine.ssh_user ? a->machine.ssh_user : "root");
    json_put_str (j, "hostkey", a->machine.hostkey);
    api_final (q, j);
  }
  lease_free (old);
}
