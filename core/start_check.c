/* start_check.c - does every plugin load, and does it know the options it is given?
 *
 * The plugin is asked in a process of its own (gpubroker-provider --describe); the check of names
 * is the one that the process itself makes at start, so that both say the same.
 */
#include "config.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/json.h"
#include "core/start.h"

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

/* Standard output of the program, at most size - 1 bytes; -1 when it failed. */
static int
capture (char *const argv[], char *out, size_t size)
{
  posix_spawn_file_actions_t fa;
  size_t n = 0;
  ssize_t got;
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
  while (n < size - 1 && (got = read (fds[0], out + n, size - 1 - n)) > 0)
    n += (size_t) got;
  out[n] = '\0';
  close (fds[0]);
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

int
start_check_plugins (struct conf *c, struct err *e)
{
  AUTO_FREE char *path = program (), *out = malloc (65536);

  for (size_t i = 0; out && i < c->nproviders; i++) {
    const struct conf_provider *p = &c->providers[i];
    char *const argv[] = { path, (char *) "--describe", p->plugin, NULL };
    AUTO_JSON json_t *described = NULL;

    if (capture (argv, out, 65536) < 0)
      return err_set (e, ERR_INVALID, "%s:%u: provider %s: %.180s", c->path, p->line, p->name, out);
    described = json_loads (out, 0, NULL);
    if (check_options (c, p, described, e) < 0)
      return -1;
  }
  return 0;
}
