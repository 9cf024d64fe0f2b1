/* start_check.c - does every plugin load, and does it know the options it is given?
 *
 * The plugin is asked in a process of its own (gpubroker-provider --describe); the check of names
 * is the one that the process itself makes at start, so that both say the same.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/start.h"

enum { OUTPUT_MAX = 65536, DESCRIBE_MS = 5000 };

extern char **environ;

static char *
program (void)
{
  const char *folder = getenv ("GPUB_LIBEXECDIR");
  char *path;

  if (asprintf (&path, "%s/gpubroker-provider", folder ? folder : PKGLIBEXECDIR) < 0)
    abort ();
  return path;
}

/* What comes until its end, or until the time is over; at most size - 1 bytes. */
static void
gather (int fd, int64_t until, char *out, size_t size)
{
  size_t n = 0;
  ssize_t got;

  for (;;) {
    int64_t left = until - clock_boot_ms ();
    struct pollfd p = { fd, POLLIN, 0 };

    if (left <= 0 || n == size - 1 || poll (&p, 1, (int) left) <= 0)
      break;
    got = read (fd, out + n, size - 1 - n);
    if (got <= 0)
      break;
    n += (size_t) got;
  }
  out[n] = '\0';
}

/* Standard output of the program; -1 when it failed, or took too long. */
static int
capture (char *const argv[], char *out, size_t size)
{
  int64_t until = clock_boot_ms () + DESCRIBE_MS;
  posix_spawn_file_actions_t fa;
  int fds[2], status = -1;
  pid_t pid;

  if (pipe (fds) < 0)
    return -1;
  posix_spawn_file_actions_init (&fa);
  posix_spawn_file_actions_adddup2 (&fa, fds[1], 1);
  posix_spawn_file_actions_adddup2 (&fa, fds[1], 2);
  posix_spawn_file_actions_addclose (&fa, fds[0]);
  if (posix_spawn (&pid, argv[0], &fa, NULL, argv, environ) != 0)
    pid = -1;
  posix_spawn_file_actions_destroy (&fa);
  close (fds[1]);
  gather (fds[0], until, out, size);
  close (fds[0]);
  if (pid > 0 && clock_boot_ms () >= until) {
    kill (pid, SIGKILL);
    snprintf (out, size, "it did not say within %d s which options it has", DESCRIBE_MS / 1000);
  }
  if (pid > 0)
    waitpid (pid, &status, 0);
  return pid > 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : -1;
}

static const char *
option_name (const json_t *options, const char *key)
{
  const json_t *o;
  size_t i;

  json_array_foreach (options, i, o) {
    if (strcmp (json_str (o, "name", ""), key) == 0)
      return key;
  }
  return NULL;
}

static int
check_options (const struct conf *c, const struct conf_provider *p, const json_t *described,
               struct err *e)
{
  const json_t *options = json_object_get (described, "options"), *o;
  const char *names[64], *key, *near;
  json_t *value;
  size_t i, n = 0;

  json_array_foreach (options, i, o) {
    if (n < N_ELEMENTS (names))
      names[n++] = json_str (o, "name", "");
  }
  json_object_foreach (p->options, key, value) {
    if (option_name (options, key))
      continue;
    near = nearest (key, names, n);
    return err_set (e, ERR_INVALID, "%s:%u: provider %s: plugin %s has no option '%s'%s%s%s",
                    c->path, p->line, p->name, p->plugin, key, near ? ", did you mean '" : "",
                    near ? near : "", near ? "'?" : "");
  }
  return 0;
}

/* What the plugin says of itself; NULL, and why in e. */
static json_t *
describe (const struct conf *c, const struct conf_provider *p, struct err *e)
{
  AUTO_FREE char *path = program (), *out = malloc (OUTPUT_MAX);
  char *const argv[] = { path, (char *) "--describe", p->plugin, NULL };

  if (!out)
    abort ();
  if (capture (argv, out, OUTPUT_MAX) == 0)
    return json_loads (out, 0, NULL);
  err_set (e, ERR_INVALID, "%s:%u: provider %s: %.180s", c->path, p->line, p->name, out);
  return NULL;
}

/* NAME_file is a secret in a file, unless the plugin has an option of that very name. */
static void
declare (struct conf_provider *p, const json_t *described)
{
  const json_t *o;
  const char *names[64];
  size_t i, n = 0;

  json_array_foreach (json_object_get (described, "options"), i, o) {
    if (n < N_ELEMENTS (names))
      names[n++] = json_str (o, "name", "");
  }
  conf_provider_declared (p, names, n);
}

int
start_check_plugins (struct conf *c, struct err *e)
{
  for (size_t i = 0; i < c->nproviders; i++) {
    struct conf_provider *p = &c->providers[i];
    AUTO_JSON json_t *described = describe (c, p, e);

    if (!described)
      return -1;
    declare (p, described);
    if (check_options (c, p, described, e) < 0)
      return -1;
  }
  return 0;
}

/* One provider's fault costs only itself: its process will say what is wrong. */
void
start_declare (struct conf *c)
{
  for (size_t i = 0; i < c->nproviders; i++) {
    struct conf_provider *p = &c->providers[i];
    struct err e = ERR_INIT;
    AUTO_JSON json_t *described = p->nsecrets ? describe (c, p, &e) : NULL;

    if (described)
      declare (p, described);
    else if (p->nsecrets)
      log_at (LOG_WARNING, "plugin.undescribed", "error=\"%s\"", e.text);
  }
}
