/* session.c - one gpubroker-provider: its start with this or that configuration, and its end */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

enum { START_MS = 20000, END_MS = 6000, DEAD_MS = 2000 };

extern char **environ;

/* ---- start ---- */

static int
spawn (const struct kit *k, int fd, pid_t *pid)
{
  char *host = (char *) (uintptr_t) k->host;
  char *plain[] = { host, NULL };
  char *checked[] = { (char *) "valgrind",
                      (char *) "-q",
                      (char *) "--error-exitcode=99",
                      (char *) "--leak-check=full",
                      (char *) "--errors-for-leak-kinds=definite",
                      host,
                      NULL };
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  int rc;

  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, fd, WIRE_FD);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, 2, 1);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup (&attr, 0);
  rc = posix_spawnp (pid, k->valgrind ? "valgrind" : host, &files, &attr,
                     k->valgrind ? checked : plain, environ);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&files);
  return rc;
}

/* One changed letter: it keeps its form, so that it is the cloud that refuses it. */
static void
spoil (char *bytes, size_t len)
{
  for (size_t i = len * 2 / 3; i < len; i++) {
    char c = bytes[i];

    if ((c >= 'a' && c < 'z') || (c >= 'A' && c < 'Z') || (c >= '0' && c < '9')) {
      bytes[i]++;
      return;
    }
  }
  if (len > 0)
    bytes[0] ^= 1;
}

static void
put_secrets (struct session *s, const struct session_how *how)
{
  const struct kit *k = s->test->kit;

  for (size_t i = 0; i < k->secrets.n; i++) {
    const struct secret *x = &k->secrets.at[i];
    AUTO_FREE char *bytes = NULL;

    if (how && how->without_secret && strcmp (how->without_secret, x->name) == 0)
      continue;
    bytes = malloc (x->len + 1);
    if (!bytes)
      abort ();
    memcpy (bytes, x->bytes, x->len);
    if (how && how->wrong_secret && strcmp (how->wrong_secret, x->name) == 0)
      spoil (bytes, x->len);
    wire_put_secret (&s->out, 0, x->name, bytes, x->len, NULL);
    explicit_bzero (bytes, x->len);
  }
}

static void
add_recording (const struct test *t, json_t *http)
{
  const struct kit *k = t->kit;

  if (k->record) {
    AUTO_FREE char *folder = NULL;

    if (asprintf (&folder, "%s/%s", k->record, t->c->id) < 0)
      abort ();
    mkdir (folder, 0700); /* what is wrong with it the host tells */
    json_object_set_new (http, "record", json_sprintf ("%s/%u", folder, t->sessions));
  }
  if (k->replay)
    json_object_set_new (http, "replay",
                         json_sprintf ("%s/%s/%u", k->replay, t->c->id, t->sessions));
}

static void
put_config (struct session *s, const struct session_how *how)
{
  const struct kit *k = s->test->kit;
  AUTO_JSON json_t *http = json_deep_copy (k->http), *config = NULL;
  const json_t *options = how && how->options ? how->options : k->options;

  add_recording (s->test, http);
  config =
      json_pack ("{s:s, s:s, s:s, s:s, s:O, s:O}", "name", "conform", "plugin", k->plugin, "owner",
                 k->owner, "state_dir", s->test->state_dir, "options", options, "http", http);
  wire_put_json (&s->out, WIRE_CONFIG, 0, 0, config, NULL);
}

/* ---- the end ---- */

/* Reads on, so that what it says last is heard; false when it does not end. */
static bool
reap (struct session *s, int64_t ms)
{
  int64_t until = clock_boot_ms () + kit_patience (s->test->kit, ms);

  while (waitpid (s->pid, &s->status, WNOHANG) == 0) {
    if (clock_boot_ms () > until)
      return false;
    if (s->closed)
      poll (NULL, 0, 5);
    else
      session_move (s, 5);
  }
  while (!s->closed && session_move (s, 0) != MOVED_NOTHING)
    ;
  return true;
}

static void
say_status (const struct session *s, char *out, size_t size)
{
  if (WIFSIGNALED (s->status))
    snprintf (out, size, "it died of signal %d (%s)", WTERMSIG (s->status),
              strsignal (WTERMSIG (s->status)));
  else
    snprintf (out, size, "it ended with exit status %d", WEXITSTATUS (s->status));
}

static void
session_free (struct session *s)
{
  for (size_t i = 0; i < s->answers.n; i++) {
    s->answers.at[i]->done = true;
    *vec_push (&s->test->old) = s->answers.at[i];
  }
  vec_free (&s->answers);
  wire_buf_free (&s->in);
  wire_buf_free (&s->out);
  json_decref (s->ready);
  close (s->fd);
  if (s->test->s == s)
    s->test->s = NULL;
  free (s);
}

void
session_kill (struct session *s)
{
  kill (-s->pid, SIGKILL);
  waitpid (s->pid, &s->status, 0);
  session_free (s);
}

void
session_lost (struct session *s, const char *during)
{
  char how[200];

  if (!s->closed || !reap (s, DEAD_MS)) {
    expect_text (s->test, false, "it hangs", "'%s' returns in time", during);
    session_kill (s);
    return;
  }
  say_status (s, how, sizeof how);
  expect_text (s->test, false, how, "the process survives '%s'", during);
  kill (-s->pid, SIGKILL); /* whatever it forked */
  session_free (s);
}

static void
nothing_left (struct test *t, pid_t group)
{
  int left = proc_group_size (group);
  char got[60];

  snprintf (got, sizeof got, "%d processes", left);
  expect_text (t, left == 0, got, "no process of the plugin is left behind");
  if (left > 0)
    kill (-group, SIGKILL);
}

void
session_end (struct session *s)
{
  struct test *t = s->test;
  char how[200];

  shutdown (s->fd, SHUT_WR);
  if (!reap (s, END_MS)) {
    expect_text (t, false, "it still runs", "the process ends within %d s of the hang-up",
                 END_MS / 1000);
    session_kill (s);
    return;
  }
  say_status (s, how, sizeof how);
  expect_text (t, WIFEXITED (s->status) && WEXITSTATUS (s->status) == 0, how,
               "exit status 0 after the hang-up");
  nothing_left (t, s->pid);
  session_free (s);
}

/* A plugin that refused its configuration has ended by itself. */
static void
end_refused (struct session *s)
{
  if (reap (s, END_MS))
    session_free (s);
  else
    session_lost (s, "open");
}

static bool
has_ready (const void *s)
{
  return ((const struct session *) s)->ready != NULL;
}

static struct session *
session_start (struct test *t, const struct session_how *how)
{
  struct session *s = calloc (1, sizeof *s);
  int fds[2];

  if (!s || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
    abort ();
  t->sessions++;
  s->test = t;
  s->fd = fds[0];
  if (spawn (t->kit, fds[1], &s->pid) != 0)
    abort ();
  close (fds[1]);
  put_secrets (s, how);
  put_config (s, how);
  return s;
}

bool
is_refused (const struct test *t)
{
  return t->s && strcmp (json_str (t->s->ready, "kind", ""), "ok") != 0;
}

void
stop (struct test *t)
{
  if (is_refused (t))
    end_refused (t->s);
  else if (t->s)
    session_end (t->s);
}

bool
again_with (struct test *t, const struct session_how *how)
{
  stop (t);
  t->s = session_start (t, how);
  if (!session_wait (t->s, has_ready, t->s, START_MS)) {
    session_lost (t->s, "open");
    return false;
  }
  return !t->failed;
}

bool
again (struct test *t)
{
  return again_with (t, NULL) && is_ready (t);
}

bool
is_ready (struct test *t)
{
  const json_t *r = t->s ? t->s->ready : NULL;
  char got[400];

  snprintf (got, sizeof got, "%s \"%s\"", json_str (r, "kind", "nothing"),
            json_str (r, "text", ""));
  return expect_text (t, t->s && !is_refused (t), got, "the plugin opens with this configuration");
}
