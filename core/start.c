/* start.c - from a configuration to a running broker, and back
 *
 * Order matters: the store's lock before the socket, the books before the first request, children
 * last.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/log.h"
#include "core/start.h"

enum { TICK_MS = 1000, DAY_MS = 24 * 3600 * 1000 };

/* ---- times ---- */

static const struct times usual = {
  .poll = 5000,
  .gone = 10000,
  .retry_min = 1000,
  .retry_max = 60000,
  .ssh_retry = 5000,
  .boot = 40 * 60000,
  .knock = 2 * 60000,
  .create = 120000,
  .call = 60000,
  .listing = 90000,
  .probe = 5 * 60000,
  .join = 20 * 60000,
  .verify = 10 * 60000,
  .stable = 10000,
  .warn = 15 * 60000,
  .restart = 1000,
  .comeback = 60000,
  .lag = 10 * 60000,
  .grace = 5000,
  .ping = 10000,
};

static void
override_times (struct times *t)
{
  static const struct {
    const char *name;
    size_t at;
  } all[] = {
#define T(m) { #m, offsetof (struct times, m) }
    T (poll), T (gone),    T (retry_min), T (retry_max), T (ssh_retry), T (boot), T (create),
    T (call), T (listing), T (join),      T (verify),    T (stable),    T (warn), T (restart),
    T (lag),  T (knock),   T (grace),     T (ping),      T (probe),
#undef T
  };
  const char *text = getenv ("GPUB_TEST_TIMES");
  AUTO_FREE char *copy = text ? strdup (text) : NULL;
  char *save = NULL;

  for (char *pair = copy ? strtok_r (copy, ",", &save) : NULL; pair;
       pair = strtok_r (NULL, ",", &save)) {
    char *value = strchr (pair, '=');

    for (size_t i = 0; value && i < N_ELEMENTS (all); i++)
      if (strncmp (all[i].name, pair, (size_t) (value - pair)) == 0 &&
          all[i].name[value - pair] == '\0')
        *(int64_t *) (void *) ((char *) t + all[i].at) = strtoll (value + 1, NULL, 10);
  }
}

/* ---- the bus ---- */

static void
bus_ready (void *ctx, uint32_t events)
{
  (void) ctx;
  (void) events; /* turn_end pumps in every turn */
}

static void
fill_uids (const struct conf *c, struct bus_uid *uids)
{
  for (size_t i = 0; i < c->bus.nuids; i++) {
    uids[i].uid = c->bus.uids[i].uid;
    uids[i].rights = (enum bus_rights) c->bus.uids[i].rights;
    snprintf (uids[i].principal, sizeof uids[i].principal, "%s", c->bus.uids[i].principal);
  }
}

void
start_uids (struct broker *b)
{
  AUTO_FREE struct bus_uid *uids = calloc (b->conf.bus.nuids + 1, sizeof *uids);

  fill_uids (&b->conf, uids);
  bus_reload_uids (b->bus, uids, b->conf.bus.nuids);
}

static int
open_bus (struct broker *b, struct err *e)
{
  AUTO_FREE struct bus_uid *uids = calloc (b->conf.bus.nuids + 1, sizeof *uids);
  struct bus_config c = { .requests = (const char *const *) b->conf.bus.requests.at,
                          .nrequests = b->conf.bus.requests.n,
                          .events = (const char *const *) b->conf.bus.events.at,
                          .nevents = b->conf.bus.events.n,
                          .uids = uids,
                          .nuids = b->conf.bus.nuids };
  int fds[16];
  size_t n;

  fill_uids (&b->conf, uids);
  b->bus = bus_new (&c, api_request, b, e);
  if (!b->bus)
    return -1;
  n = bus_fds (b->bus, fds, N_ELEMENTS (fds));
  for (size_t i = 0; i < n; i++)
    if (loop_watch (b->loop, fds[i], EPOLLIN, bus_ready, b, e) < 0)
      return -1;
  return 0;
}

/* ---- children ---- */

static void
runner_state (void *ctx, struct child *c, enum child_state state)
{
  (void) ctx;
  log_at (LOG_INFO, "runner", "name=%s state=%s", child_name (c), child_state_name (state));
}

static int
start_children (struct broker *b, struct err *e)
{
  struct child_secret key = { "ssh_key", b->key.secret, b->key.secret_len };
  AUTO_JSON json_t *none = json_object ();

  b->ssh = child_new (
      b->supervisor,
      &(struct child_spec){ .name = "ssh",
                            .role = "ssh",
                            .argv = (const char *const[]){ "gpubroker-runner", "--ssh", NULL },
                            .config = none,
                            .secrets = &key,
                            .nsecrets = 1,
                            .flags = CHILD_REPLAY },
      runner_state, b);
  b->kube = child_new (
      b->supervisor,
      &(struct child_spec){ .name = "kube",
                            .role = "kube",
                            .argv = (const char *const[]){ "gpubroker-runner", "--kube", NULL },
                            .config = none },
      runner_state, b);
  clusters_start (b);
  return providers_start (b, e);
}

/* ---- time and signals ---- */

static void
tick (void *ctx)
{
  struct broker *b = ctx;

  turn_disk (b);
  freeze_tick (b);
  engine_tick (b);
  feed_tick ();
  ops_tick (b);
  bus_beat (b->bus, (uint64_t) b->epoch, (uint64_t) b->seq);
  loop_after (b->loop, TICK_MS, tick, b);
}

/* Results stay for keep_days. */
static void
prune (void *ctx)
{
  struct broker *b = ctx;

  if (!b->freeze.clock && !b->freeze.books) /* a year ahead, everything would be old */
    store_prune (b->store, now_ms () - (int64_t) b->conf.broker.keep_days * DAY_MS);
  loop_after (b->loop, DAY_MS / 24, prune, b);
}

static void
stopped (void *ctx)
{
  loop_stop (((struct broker *) ctx)->loop);
}

static void
stop (void *ctx)
{
  struct broker *b = ctx;

  if (b->stopping)
    return;
  b->stopping = true;
  log_at (LOG_NOTICE, "broker.stopping", "leases=%zu", b->leases.n);
  supervisor_stop (b->supervisor, stopped, b);
}

static void
reload (void *ctx)
{
  struct broker *b = ctx;
  struct err e = ERR_INIT;
  json_t *told = start_reload (b, &e);

  if (!told)
    log_at (LOG_ERR, "reload.refused", "error=\"%s\" action=\"the old configuration stays\"",
            e.text);
  json_decref (told);
}

static int
make_folders (const struct conf *c, struct err *e)
{
  const char *const folders[] = { c->broker.state_dir, c->broker.run_dir };

  for (size_t i = 0; i < N_ELEMENTS (folders); i++)
    if (mkdir (folders[i], i ? 0755 : 0700) < 0 && errno != EEXIST)
      return err_set (e, ERR_INVALID, "%s: %s", folders[i], strerror (errno));
  return 0;
}

static int
load_key (struct broker *b, struct err *e)
{
  char comment[96];

  snprintf (comment, sizeof comment, "gpubroker@%.80s", b->conf.broker.name);
  return sshkey_load_or_make (&b->key, b->conf.broker.state_dir, "ssh_key", comment, e);
}

static void
wake_all (struct broker *b)
{
  for (size_t i = 0; i < b->leases.n; i++)
    engine_later (b->leases.at[i],
                  (int64_t) i); /* paced: a thousand leases do not ask in one turn */
}

/* What serving and rebuilding both need. */
static int
start_base (struct broker *b, const char *instance, struct err *e)
{
  struct supervise_times start_times = supervise_times_default;

  b->started_boot_ms = clock_boot_ms ();
  b->times = usual;
  override_times (&b->times);
  srandom ((unsigned) clock_boot_ms ());
  if (make_folders (&b->conf, e) < 0 || !(b->loop = loop_new (e)) ||
      start_books (b, instance, e) < 0 || start_check_leases (b, &b->conf, e) < 0 ||
      load_key (b, e) < 0)
    return -1;
  b->offers = offers_new (&(struct offers_config){ (uint32_t) b->conf.defaults.stale_ms,
                                                   (uint32_t) b->conf.defaults.expire_ms,
                                                   b->conf.defaults.disk_gib });
  start_localities (b);
  start_times.delay_min = b->times.restart;
  start_times.grace = b->times.grace;
  start_times.ping = b->times.ping;
  b->supervisor = supervisor_new (b->loop, &start_times, e);
  if (!b->supervisor || loop_signal (b->loop, SIGTERM, stop, b, e) < 0 ||
      loop_signal (b->loop, SIGINT, stop, b, e) < 0)
    return -1;
  loop_each (b->loop, turn_end, b);
  return 0;
}

int
start_rebuild (struct broker *b, const char *instance, struct err *e)
{
  b->rebuild = true;
  if (start_base (b, instance, e) < 0 || providers_start (b, e) < 0)
    return -1;
  freeze_start (b);
  rebuild_begin (b);
  return 0;
}

int
start_broker (struct broker *b, struct err *e)
{
  if (start_base (b, NULL, e) < 0 || loop_signal (b->loop, SIGHUP, reload, b, e) < 0 ||
      open_bus (b, e) < 0 || start_children (b, e) < 0)
    return -1;
  loop_after (b->loop, TICK_MS, tick, b);
  feed_broker (b, "started", PACKAGE_VERSION);
  log_at (LOG_NOTICE, "broker.started",
          "version=%s instance=%s epoch=%lld leases=%zu providers=%zu", PACKAGE_VERSION,
          b->instance, (long long) b->epoch, b->leases.n, b->providers.n);
  if (ballast_full (&b->ballast))
    feed_alarm (b, "disk-full", "there was no room at the start: nothing new is begun; make room");
  freeze_start (b);
  identity_sweep (b);
  wake_all (b);
  api_extend_again (b);
  prune (b);
  metrics_start (b);
  return 0;
}

void
start_undo (struct broker *b)
{
  for (size_t i = 0; i < b->providers.n; i++)
    child_free (b->providers.at[i]->child);
  child_free (b->ssh);
  child_free (b->kube);
  supervisor_free (b->supervisor);
  bus_free (b->bus);
  store_close (b->store);
  sshkey_done (&b->key);
}
