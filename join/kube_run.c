/* kube_run.c - a program run to its end: no shell, bounded time and output
 *
 * It leads a process group of its own, so that whatever it started ends with it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "join/kube_run.h"

enum { LOOK_MS = 100 };

extern char **environ;

void
run_word (struct run_command *r, const char *word)
{
  *vec_push (&r->argv) = strdup (word);
}

static void
drop_variable (struct run_command *r, const char *name)
{
  size_t n = strlen (name);

  for (size_t i = 0; i < r->envp.n; i++)
    if (strncmp (r->envp.at[i], name, n) == 0 && r->envp.at[i][n] == '=') {
      free (r->envp.at[i]);
      vec_drop (&r->envp, i);
      return;
    }
}

void
run_variable (struct run_command *r, const char *name, const char *value)
{
  char *pair;

  if (r->envp.n == 0)
    for (char **in = environ; *in; in++)
      *vec_push (&r->envp) = strdup (*in);
  if (!*name || strchr (name, '='))
    return;
  drop_variable (r, name);
  if (asprintf (&pair, "%s=%s", name, value) < 0)
    abort ();
  *vec_push (&r->envp) = pair;
}

void
run_done (struct run_command *r)
{
  for (size_t i = 0; i < r->argv.n; i++)
    free (r->argv.at[i]);
  for (size_t i = 0; i < r->envp.n; i++) {
    if (r->envp.at[i]) /* a kubeconfig may put a key into it */
      explicit_bzero (r->envp.at[i], strlen (r->envp.at[i]));
    free (r->envp.at[i]);
  }
  vec_free (&r->argv);
  vec_free (&r->envp);
}

/* stdout to `to`; nothing to read, nobody to complain to. */
static int
start (struct run_command *r, int to, pid_t *pid)
{
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none, all;
  int rc;

  sigemptyset (&none);
  sigfillset (&all);
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, to, 1);
  posix_spawn_file_actions_addopen (&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr,
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setpgroup (&attr, 0);
  *vec_push (&r->argv) = NULL;
  *vec_push (&r->envp) = NULL;
  rc = posix_spawnp (pid, r->argv.at[0], &files, &attr, r->argv.at, r->envp.at);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&files);
  return rc;
}

/* Reads until it closes its end; -1: too much, too long, or the call is over. */
static int
gather (struct kube_call *c, const struct run_command *r, int from, int64_t until,
        struct run_output *out, struct err *e)
{
  for (;;) {
    struct pollfd p = { from, POLLIN, 0 };
    ssize_t n;

    if (call_check (c, e) < 0)
      return -1;
    if (clock_boot_ms () >= until)
      return err_code (e, ERR_UNAVAILABLE, "kubeconfig-exec",
                       "kubeconfig: the program %.80s did not end within %d s", r->what,
                       (int) (r->ms / 1000));
    if (poll (&p, 1, LOOK_MS) <= 0)
      continue;
    n = read (from, out->bytes + out->len, RUN_OUTPUT_MAX - out->len);
    if (n == 0)
      return 0;
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return err_set (e, ERR_INTERNAL, "read %.80s: %s", r->what, strerror (errno));
    out->len += n > 0 ? (size_t) n : 0;
    if (out->len == RUN_OUTPUT_MAX)
      return err_code (e, ERR_INVALID, "kubeconfig-exec",
                       "kubeconfig: the program %.80s printed more than %d bytes", r->what,
                       RUN_OUTPUT_MAX);
  }
}

/* It may have closed its stdout and gone on.  What it started goes with it, before its number can
 * be somebody else's. */
static int
reap (struct kube_call *c, pid_t pid, int64_t until)
{
  siginfo_t info = { 0 };
  int status = 0;

  while (waitid (P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 &&
         clock_boot_ms () < until && call_sleep (c, LOOK_MS / 10, NULL) == 0)
    ;
  kill (-pid, SIGKILL);
  waitpid (pid, &status, 0);
  return status;
}

static int
judge (const struct run_command *r, int status, struct err *e)
{
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return 0;
  return err_code (e, ERR_UNAVAILABLE, "kubeconfig-exec",
                   "kubeconfig: the program %.80s ended with %s %d: run it by hand to see why",
                   r->what, WIFEXITED (status) ? "status" : "signal",
                   WIFEXITED (status) ? WEXITSTATUS (status) : WTERMSIG (status));
}

int
run_program (struct kube_call *c, struct run_command *r, struct run_output *out, struct err *e)
{
  int64_t until = clock_boot_ms () + r->ms;
  int fds[2], rc, status;
  pid_t pid;

  if (pipe2 (fds, O_CLOEXEC) < 0)
    return err_set (e, ERR_INTERNAL, "pipe: %s", strerror (errno));
  rc = start (r, fds[1], &pid);
  close (fds[1]);
  if (rc != 0) {
    close (fds[0]);
    return err_code (e, ERR_INVALID, "kubeconfig-exec",
                     "kubeconfig: the program %.80s cannot be run: %s", r->what, strerror (rc));
  }
  rc = gather (c, r, fds[0], until, out, e);
  close (fds[0]);
  out->bytes[out->len] = '\0';
  status = reap (c, pid, rc < 0 ? 0 : until);
  return rc < 0 ? -1 : judge (r, status, e);
}
