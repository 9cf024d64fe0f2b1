/* children.c - the real children under the supervisor: they come up, answer, and end when told */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/sshkey.h"
#include "core/supervise.h"
#include "tests/unit/tap.h"

static struct loop *loop;
static struct supervisor *sup;
static char build[900], dir[] = "/tmp/gpub-children-XXXXXX";
static int ended, offers;
static struct err last;
static char text[256];

static int
flush (void *ctx)
{
  (void) ctx;
  supervisor_flush (sup);
  return 0;
}

static void
on_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  (void) want_ack;
  offers += (int) json_array_size (json_object_get (item, "offers"));
  child_ack (ctx, id);
}

static void
on_result (void *ctx, uint32_t id, const struct call_result *r)
{
  (void) ctx, (void) id;
  ended++;
  last = r->err;
  snprintf (text, sizeof text, "%s", json_str (r->value, "text", ""));
}

static bool
until_state (struct child *c, enum child_state state)
{
  int64_t end = clock_boot_ms () + 15000;

  while (child_state (c) != state && clock_boot_ms () < end)
    loop_turn (loop, 50, NULL);
  return child_state (c) == state;
}

static bool
ask (struct child *c, const char *call, json_t *args)
{
  struct child_call want = {
    .call = call,
    .args = args,
    .deadline_ms = 10000,
    .on_item = on_item,
    .on_result = on_result,
    .ctx = c,
  };
  int64_t end = clock_boot_ms () + 15000;
  int before = ended;

  child_call (c, &want);
  while (ended == before && clock_boot_ms () < end)
    loop_turn (loop, 50, NULL);
  return ended == before + 1;
}

static void
stop (struct child *c, const char *name)
{
  child_stop (c);
  ok (until_state (c, CHILD_STOPPED), "%s stops when told", name);
  child_free (c);
  loop_turn (loop, 0, NULL);
}

static void
test_provider (void)
{
  char plugin[1024], state[64];
  const char *argv[] = { "gpubroker-provider", NULL };
  AUTO_JSON json_t *config = NULL;
  struct child_spec spec = { .name = "lab", .role = "provider", .argv = argv };
  struct child *c;
  AUTO_FREE char *copy = NULL;

  snprintf (plugin, sizeof plugin, "%s/static.so", dir);
  if (asprintf (&copy, "cp '%s/.libs/static.so' %s && chmod 755 %s", build, plugin, plugin) < 0 ||
      system (copy) != 0) {
    printf ("ok %d - a provider under the supervisor # SKIP static.so is not built\n", ++tap_n);
    return;
  }
  snprintf (state, sizeof state, "%s/state", dir);
  config = json_pack ("{s:s, s:s, s:s, s:s, s:{s:[{s:s,s:s,s:i}]}, s:{}}", "name", "lab", "plugin",
                      plugin, "owner", "6c1f3a52-6d39-4f0e-8b64-0f1b1ad4a3aa", "state_dir", state,
                      "options", "hosts", "address", "10.0.0.5", "gpu", "L40S", "price", 0, "http");
  spec.config = config;
  c = child_new (sup, &spec, NULL, NULL);
  ok (until_state (c, CHILD_UP), "a provider comes up");
  is_str (json_str (json_object_get (child_ready (c), "provider"), "name", ""), "static",
          "READY names its plugin");
  ok (ask (c, "probe", NULL) && last.kind == ERR_NONE, "probe");
  is_str (text, "1 machines, 0 claimed", "its answer");
  ok (ask (c, "list_offers", json_pack ("{s:n, s:i}", "offer_ref", "disk_gib", 100)) && offers == 1,
      "its offers");
  ok (ask (c, "dance", NULL) && last.kind != ERR_NONE, "a call it does not know fails: %s",
      last.text);
  stop (c, "a provider");
}

static void
test_runner (const char *flag, const char *role, bool with_key)
{
  const char *argv[] = { "gpubroker-runner", flag, NULL };
  struct sshkey key;
  struct child_secret secret = { "ssh_key", key.secret, 0 };
  struct child_spec spec = { .name = role, .role = role, .argv = argv, .flags = CHILD_REPLAY };
  struct child *c;

  if (with_key) {
    sshkey_make (&key, "gpubroker@test", NULL);
    secret.len = key.secret_len;
    spec.secrets = &secret;
    spec.nsecrets = 1;
  }
  c = child_new (sup, &spec, NULL, NULL);
  ok (until_state (c, CHILD_UP), "the %s runner comes up", role);
  ok (ask (c, "dance", NULL) && last.kind != ERR_NONE, "a call it does not know fails: %s",
      last.text);
  if (with_key)
    ok (ask (c, "probe",
             json_pack ("{s:{s:s,s:i,s:[s]}, s:s}", "target", "host", "127.0.0.1", "port", 1,
                        "users", "root", "nonce", "n")) &&
            last.kind == ERR_UNAVAILABLE,
        "a machine that refuses is unavailable: %s %s", last.code, last.text);
  stop (c, role);
}

int
main (void)
{
  const char *b = getenv ("GPUB_BUILDDIR");
  char command[64];

  alarm (120);
  snprintf (build, sizeof build, "%s", b ? b : ".");
  setenv ("GPUB_LIBEXECDIR", build, 1);
  log_level (LOG_ERR);
  if (!mkdtemp (dir))
    return 1;
  chmod (dir, 0755);
  loop = loop_new (NULL);
  sup = supervisor_new (loop, NULL, NULL);
  loop_each (loop, flush, NULL);
  test_provider ();
  test_runner ("--ssh", "ssh", true);
  test_runner ("--kube", "kube", false);
  ok (waitpid (-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no process is left");
  supervisor_free (sup);
  loop_free (loop);
  snprintf (command, sizeof command, "rm -rf %s", dir);
  ok (system (command) == 0, "cleaned up");
  return done ();
}
