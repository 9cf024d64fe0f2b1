/* pipeline.c - from a machine that answers to a proven node, and back
 *
 * Each state has a list of steps; each step is one call to the ssh or the kube runner that may be
 * made again. A restart begins the state's list anew, which costs a question or two and repeats no
 * effect.
 */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"
#include "core/pipeline_args.h"
#include "core/pipeline_int.h"
#include "core/truth.h"

enum { TRIES = 3, LINK_TRIES = 40 };

enum {              /* when a step applies */
       CLUSTER = 1, /* the lease has one */
       ALONE = 2,   /* it has none */
       JOINED = 4,  /* the machine may hold credentials and have a Node */
       GPU = 8,
       DRAIN = 16,        /* draining is wanted */
       PINNED = 32,       /* SSH answered once */
       BEST_EFFORT = 64,  /* a failure is told and passed over: leaving never waits for the dead */
       TOKEN = 128,       /* it is given the join token */
       LENT_KEY = 256,    /* the machine's owner gave a key for the first contact */
       DIRTY = 512,       /* the machine has not been cleaned yet */
       AUTHORISED = 1024, /* our key was put on it */
       STANDALONE = 2048, /* it becomes a cluster of its own */
       OPENED = 4096,     /* whose API is open to the outside */
       OFFLINE = 8192,    /* of the kube runner, and yet no cluster is asked */
       NODE = 16384,      /* when it fails, it is to be done later */
};

struct step {
  enum lease_state state;
  const char *name;
  bool ssh;
  const char *call;
  unsigned flags;
  size_t time; /* how long its call may take: a member of struct times; the lease's for DRAIN */
  int64_t slack_ms; /* the runner ends its own wait first, and says how it went */
  json_t *(*args) (struct lease *l, struct attempt *a);
  pipeline_judge *judge; /* NULL: any answer is good */
};

/* clang-format off */
#define T(m) offsetof (struct times, m)
static const struct step steps[] = {
  /* in               name           ssh    call           when and how            time       slack */
  { LEASE_REACHABLE, "probe",       true,  "probe",       0,                       T (call),   0,     args_probe,   judge_probe },
  { LEASE_REACHABLE, "authorise",   true,  "run",         LENT_KEY,                T (call),   0,     args_authorise, judge_authorised },
  { LEASE_REACHABLE, "check",       true,  "run",         ALONE,                   T (join),   0,     args_check,   judge_script },
  { LEASE_JOINING,   "mint",        false, "mint",        CLUSTER,                 T (call),   0,     args_mint,    judge_mint },
  { LEASE_JOINING,   "bootstrap",   true,  "run",         CLUSTER | TOKEN,         T (join),   0,     args_worker,  judge_script },
  { LEASE_JOINING,   "render",      false, "render",      STANDALONE | GPU | OFFLINE, T (call), 0,    args_render,  judge_render },
  { LEASE_JOINING,   "standalone",  true,  "run",         STANDALONE,              T (join),   0,     args_standalone, judge_script },
  { LEASE_VERIFYING, "manifests",   false, "manifests",   CLUSTER | GPU,           T (call),   0,     args_cluster, NULL },
  { LEASE_VERIFYING, "verify",      false, "verify",      CLUSTER,                 T (verify), 10000, args_verify,  judge_verify },
  { LEASE_VERIFYING, "invalidate",  false, "invalidate",  CLUSTER,                 T (call),   0,     args_machine, NULL },
  /* The same again, which changes nothing and looks at everything. */
  { LEASE_VERIFYING, "render",      false, "render",      STANDALONE | GPU | OFFLINE, T (call), 0,    args_render,  judge_render },
  { LEASE_VERIFYING, "standalone",  true,  "run",         STANDALONE,              T (join),   0,     args_standalone, judge_script },
  { LEASE_VERIFYING, "kubeconfig",  true,  "kubeconfig",  STANDALONE,              T (call),   0,     args_probe,   judge_kubeconfig },
  { LEASE_VERIFYING, "reach",       false, "reach",       STANDALONE | OPENED | OFFLINE, T (verify), 5000, args_reach, NULL },
  { LEASE_FAILED_KEPT, "invalidate", false, "invalidate", CLUSTER | JOINED | BEST_EFFORT, T (call), 0, args_machine, NULL },
  { LEASE_DRAINING,  "drain",       false, "drain",       CLUSTER | JOINED | DRAIN | BEST_EFFORT, 0, 5000, args_drain, NULL },
  { LEASE_DRAINING,  "leave",       true,  "run",         PINNED | DIRTY | BEST_EFFORT, T (call), 0,  args_leave,   judge_left },
  { LEASE_DRAINING,  "delete-node", false, "delete_node", CLUSTER | JOINED | NODE | BEST_EFFORT, T (call), 0, args_node,   NULL },
  { LEASE_DRAINING,  "invalidate",  false, "invalidate",  CLUSTER | JOINED | BEST_EFFORT, T (call), 0, args_machine, NULL },
  /* The last, for it ends our way in. */
  { LEASE_DRAINING,  "forget",      true,  "run",         AUTHORISED | BEST_EFFORT,  T (call),   0,     args_forget, judge_ran },
};
#undef T
/* clang-format on */

bool
pipeline_has_cluster (const struct lease *l)
{
  return conf_hosted (&l->broker->conf, l->cluster);
}

static bool
is_alone (const struct lease *l)
{
  return !l->cluster || !conf_cluster (&l->broker->conf, l->cluster);
}

static bool
applies (const struct step *s, const struct lease *l, const struct attempt *a)
{
  bool cluster = pipeline_has_cluster (l), alone = is_alone (l);

  return !((s->flags & CLUSTER) && !cluster) && !((s->flags & ALONE) && !alone) &&
         !((s->flags & STANDALONE) && (cluster || alone)) &&
         !((s->flags & OPENED) && !args_opened (l)) && !((s->flags & JOINED) && !a->joined) &&
         !((s->flags & GPU) && truth_gpus (a->offer) == 0) &&
         !((s->flags & DRAIN) && l->no_drain) &&
         !((s->flags & PINNED) && !a->machine.hostkey && !(l->adopted && args_reused (a))) &&
         !((s->flags & LENT_KEY) && !lease_lent_key (l)) && !((s->flags & DIRTY) && a->cleaned) &&
         !((s->flags & AUTHORISED) && !a->authorised);
}

/* The step that runs now: the stage-th of this state's that applies; NULL behind the last. */
static const struct step *
current (const struct lease *l, const struct attempt *a)
{
  int n = 0;

  for (size_t i = 0; i < N_ELEMENTS (steps); i++)
    if (steps[i].state == l->state && n++ >= l->stage && applies (&steps[i], l, a))
      return &steps[i];
  return NULL;
}

static int
stage_of (const struct step *s)
{
  int n = 0;

  for (const struct step *t = steps; t < s; t++)
    n += t->state == s->state;
  return n;
}

static void
finished (struct lease *l)
{
  enum lease_event ev = LEV_DRAINED;

  if (l->state == LEASE_FAILED_KEPT)
    return; /* and waits for somebody */
  if (l->state == LEASE_REACHABLE)
    ev = is_alone (l) ? LEV_CHECKED_ALONE : LEV_CHECKED;
  else if (l->state == LEASE_JOINING)
    ev = LEV_JOINED;
  else if (l->state == LEASE_VERIFYING)
    ev = LEV_VERIFIED;
  engine_event (l, ev);
}

/* ---- running ---- */

void
pipeline_item (struct lease *l, struct attempt *a, const json_t *i)
{
  const json_t *p = json_object_get (i, "progress");

  (void) a;
  if (p && strcmp (json_str (p, "state", ""), "ok") != 0)
    feed_step (l, json_str (p, "step", "step"), json_str (p, "text", ""));
}

static void
next_stage (struct lease *l, const struct step *s)
{
  if (l->stage_ms) /* not across a restart */
    metrics_step (&l->broker->metrics, s->name, now_ms () - l->stage_ms);
  l->stage = stage_of (s) + 1;
  l->tries = 0;
  l->stage_ms = now_ms ();
  engine_work (l);
}

static bool
link_failed (enum err_kind k)
{
  return k == ERR_UNAVAILABLE || k == ERR_RATE || k == ERR_UNKNOWN || k == ERR_CANCELLED ||
         k == ERR_INTERNAL;
}

/* A machine that goes on to somebody else with this tenant's secrets on it is worse than one that
 * is not free: it is asked again for as long as it takes, or until somebody says that it is clean
 * (release --no-drain). Takes f. */
static void
not_left (struct lease *l, json_t *f)
{
  if (l->tries++ == TRIES)
    feed_alarm (l->broker, "not-clean", l->id);
  feed_step (l, "leave", json_str (f, "message", "the machine was not cleaned"));
  json_decref (f);
  engine_later (l, backoff (&l->broker->times, l->tries));
}

/* Takes f. */
static void
step_failed (struct lease *l, const struct step *s, json_t *f, int tries)
{
  const char *code = json_str (f, "code", "failed");
  bool mismatch = truth_mismatch (code);

  if ((s->flags & DIRTY) && args_reused (lease_attempt (l)) && !l->no_drain) {
    not_left (l, f);
    return;
  }
  if (s->flags & BEST_EFFORT) {
    log_at (LOG_WARNING, "leave.skipped", "lease=%s step=%s code=%s", l->id, s->name, code);
    feed_step (l, s->name, json_str (f, "message", code));
    if (s->flags & NODE)
      lease_attempt (l)->node_left = true; /* saved when it ends */
    json_decref (f);
    next_stage (l, s);
    return;
  }
  if (!mismatch && json_bool (f, "retryable", false) && ++l->tries < tries) {
    feed_step (l, json_str (f, "step", s->name), json_str (f, "message", code));
    json_decref (f);
    engine_later (l, backoff (&l->broker->times, l->tries));
    return;
  }
  if (mismatch)
    pipeline_remember_mismatch (lease_attempt (l), json_str (f, "message", code));
  metrics_step_failed (&l->broker->metrics, s->name);
  engine_fail (l, f, mismatch);
}

static void
done (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = lease_attempt (l);
  const struct step *s = a ? current (l, a) : NULL;
  json_t *wrong;

  (void) none;
  if (!s) {
    engine_later (l, 0);
    return;
  }
  if (r->err.kind != ERR_NONE) {
    step_failed (l, s,
                 pipeline_failure (s->name,
                                   r->err.code[0] ? r->err.code : err_kind_name (r->err.kind),
                                   r->err.text, link_failed (r->err.kind)),
                 LINK_TRIES);
    return;
  }
  wrong = s->judge ? s->judge (l, a, r) : NULL;
  if (wrong)
    step_failed (l, s, wrong, TRIES);
  else
    next_stage (l, s);
}

static int64_t
deadline (const struct lease *l, const struct step *s)
{
  const char *times = (const char *) &l->broker->times;
  int64_t ms =
      s->flags & DRAIN ? l->drain_timeout_ms : *(const int64_t *) (const void *) (times + s->time);

  return ms + s->slack_ms;
}

static void
run_ssh (struct lease *l, struct attempt *a, const struct step *s)
{
  struct child_secret token = { "token", l->join_token,
                                l->join_token ? strlen (l->join_token) : 0 };
  size_t n = s->flags & TOKEN ? 1 : 0;

  rent_ssh (l, &(struct call){ s->call, s->args (l, a), deadline (l, s), false, &token, n,
                               pipeline_item, done });
}

/* A token lives in memory only; after a restart between mint and script it is asked for again. */
static void
rewind_to_mint (struct lease *l, const struct step *s)
{
  if ((s->flags & TOKEN) && !l->join_token)
    l->stage = 0;
}

/* limits.joins bounds how many machines are made nodes at once: the others wait, rented but
 * unhurried. */
static bool
has_place (const struct lease *l)
{
  const struct broker *b = l->broker;
  uint32_t busy = 0;

  for (size_t i = 0; i < b->leases.n; i++)
    busy += b->leases.at[i]->state == LEASE_JOINING && b->leases.at[i]->call;
  return busy < b->conf.limits.joins;
}

void
pipeline_work (struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  const struct step *s;

  if (l->state == LEASE_READY)
    return;
  if (!a) {
    engine_event (l, l->state == LEASE_DRAINING ? LEV_DRAINED : LEV_GONE);
    return;
  }
  s = current (l, a);
  if (!s) {
    finished (l);
    return;
  }
  rewind_to_mint (l, s);
  s = current (l, a);
  if (l->state == LEASE_JOINING && !has_place (l)) {
    feed_step (l, "join", "waiting: limits.joins machines are being joined");
    engine_later (l, l->broker->times.poll);
    return;
  }
  feed_step (l, s->name, "");
  if (s->ssh)
    run_ssh (l, a, s);
  else if (s->flags & OFFLINE)
    call_lease (l, l->broker->kube,
                &(struct call){ s->call, s->args (l, a), deadline (l, s), false, NULL, 0,
                                pipeline_item, done });
  else
    pipeline_kube (l, s->call, s->args (l, a), deadline (l, s), done);
}
