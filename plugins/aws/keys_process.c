/* keys_process.c - the credential_process of a profile: a command that prints a JSON document
 *
 * It runs in this process's confinement (it can write nowhere but to the state folder), is given
 * half a minute, and what it says on stderr is not shown: some print what they were given.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/aws/aws.h"

enum { PROCESS_MS = 30 * 1000, TICK_MS = 100, OUTPUT_MAX = 64 * 1024 };

extern char **environ;

static int
start (const char *command, int out, pid_t *pid)
{
  char *const argv[] = { (char *) "sh", (char *) "-c", (char *) command, NULL };
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t all, none;
  int rc;

  sigfillset (&all);
  sigemptyset (&none);
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, out, 1);
  posix_spawn_file_actions_addopen (&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr,
                            POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup (&attr, 0);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setsigmask (&attr, &none);
  rc = posix_spawn (pid, "/bin/sh", &files, &attr, argv, environ);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&files);
  return rc;
}

/* Bytes read until the end of output; -1 when it took too long or said too much. */
static ssize_t
listen_to (const struct ctx *c, int fd, char *out)
{
  int64_t left = PROCESS_MS;
  ssize_t got;
  size_t n = 0;

  while (left > 0 && n < OUTPUT_MAX && !c->s->host->cancelled (c->call)) {
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int rc = poll (&p, 1, TICK_MS);

    if (rc == 0)
      left -= TICK_MS;
    if (rc <= 0)
      continue;
    got = read (fd, out + n, OUTPUT_MAX - n);
    if (got == 0)
      return (ssize_t) n;
    n += got > 0 ? (size_t) got : 0;
  }
  return -1;
}

static int
reap (pid_t pid)
{
  int status = -1;

  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return status;
}

static int32_t
parse (const struct ctx *c, const char *out, ssize_t n, int status, struct keys *k)
{
  json_auto_t *doc = NULL;

  if (n < 0)
    return plug_error (c->err, GPUB_E_AUTH,
                       "credential_process printed too much, or did not end within %d s",
                       PROCESS_MS / 1000);
  if (status != 0)
    return plug_error (c->err, GPUB_E_AUTH, "credential_process failed (%s %d)",
                       WIFEXITED (status) ? "exit" : "signal",
                       WIFEXITED (status) ? WEXITSTATUS (status) : WTERMSIG (status));
  doc = json_parse (out, (size_t) n, NULL);
  if (!doc || json_i64 (doc, "Version", 0) != 1 || !keys_of_json (doc, k))
    return plug_error (c->err, GPUB_E_AUTH,
                       "credential_process printed no version 1 document with keys");
  return GPUB_OK;
}

int32_t
keys_from_process (const struct ctx *c, const char *command, struct keys *k)
{
  AUTO_FREE char *out = malloc (OUTPUT_MAX + 1);
  int fds[2], status, rc;
  int32_t verdict;
  ssize_t n;
  pid_t pid;

  if (!out)
    abort ();
  if (pipe2 (fds, O_CLOEXEC) < 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "credential_process: %s", strerror (errno));
  rc = start (command, fds[1], &pid);
  close (fds[1]);
  if (rc != 0) {
    close (fds[0]);
    return plug_error (c->err, GPUB_E_AUTH, "credential_process: %s", strerror (rc));
  }
  n = listen_to (c, fds[0], out);
  close (fds[0]);
  if (n < 0)
    kill (-pid, SIGKILL);
  status = reap (pid);
  verdict = parse (c, out, n, status, k);
  explicit_bzero (out, OUTPUT_MAX);
  return verdict;
}
