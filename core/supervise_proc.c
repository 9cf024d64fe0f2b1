/* supervise_proc.c - one process: spawn, bytes in and out, its end
 *
 * Its end has two halves: it is lost (no more frames, its calls end) and it is reaped (its pid is
 * free).  A process that closes the connection is killed and lost when reaped, for then we can say
 * what it died of.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/supervise_int.h"

extern char **environ;

static void
find_program (const char *name, char *path, size_t size)
{
  const char *dir = getenv ("GPUB_LIBEXECDIR");

  if (strchr (name, '/'))
    snprintf (path, size, "%s", name);
  else
    snprintf (path, size, "%s/%s", dir && *dir ? dir : PKGLIBEXECDIR, name);
}

/* Everything else of ours is CLOEXEC.  Its own process group, so that what it forks dies with it.
 */
static int
spawn (const char *path, char **argv, int fd, pid_t *pid)
{
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none, all;
  int rc;

  sigemptyset (&none);
  sigfillset (&all);
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, fd, WIRE_FD);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, 2, 1);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr,
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setpgroup (&attr, 0);
  rc = posix_spawn (pid, path, &files, &attr, argv, environ);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&files);
  return rc;
}

static void
lost (struct proc *p)
{
  struct child *c = p->child;
  bool crashed = !p->doomed && !p->closing && !p->refused;

  if (p->stage == PROC_LOST)
    return;
  p->stage = PROC_LOST;
  loop_cancel (c->sup->loop, p->timer);
  loop_unwatch (c->sup->loop, p->fd);
  close (p->fd);
  p->fd = -1;
  wire_buf_free (&p->in);
  wire_buf_free (&p->out);
  if (p->err.kind == ERR_NONE)
    err_code (&p->err, ERR_UNAVAILABLE, "child-died", "%s ended", c->name);
  if (crashed || p->refused)
    child_note_error (c, &p->err);
  calls_of_dead (p, crashed);
  if (c->main == p)
    child_lost_main (c, p->refused, p->up_at ? clock_boot_ms () - p->up_at : 0);
}

static void
kill_group (const struct proc *p)
{
  kill (-p->pid, SIGKILL);
  kill (p->pid, SIGKILL);
}

void
proc_break (struct proc *p, const struct err *e)
{
  if (p->stage == PROC_LOST)
    return;
  log_at (LOG_ERR, "child.broken", "name=%s pid=%d error=\"%s\"", p->child->name, (int) p->pid,
          e->text);
  if (p->err.kind == ERR_NONE)
    err_code (&p->err, ERR_UNAVAILABLE, "child-died", "%s: %s", p->child->name, e->text);
  kill_group (p);
  lost (p);
}

void
proc_kill (struct proc *p)
{
  if (p->stage == PROC_LOST)
    return;
  p->doomed = true;
  kill_group (p);
}

static void
lost_due (void *ctx)
{
  struct proc *p = ctx;

  p->timer = 0;
  kill_group (p);
  lost (p);
  supervise_deliver (p->child->sup);
}

void
proc_hung_up (struct proc *p)
{
  struct loop *loop = p->child->sup->loop;

  loop_unwatch (loop, p->fd);
  if (p->closing)
    return; /* its own timer runs */
  if (!p->refused)
    kill_group (p);
  loop_cancel (loop, p->timer);
  p->timer = loop_after (loop, EOF_GRACE_MS, lost_due, p);
}

static void
too_slow (void *ctx)
{
  struct proc *p = ctx;
  struct supervisor *s = p->child->sup;
  struct err e = ERR_INIT;

  p->timer = 0;
  err_set (&e, ERR_UNAVAILABLE, "no %s within %lld ms", p->stage == PROC_HELLO ? "HELLO" : "READY",
           (long long) (p->stage == PROC_HELLO ? s->times.hello : s->times.ready));
  proc_break (p, &e);
  supervise_deliver (s);
}

struct proc *
proc_start (struct child *c, bool cell, struct err *e)
{
  struct proc *p = calloc (1, sizeof *p);
  char path[1024];
  int fds[2], rc;

  if (!p)
    abort ();
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
    free (p);
    err_set (e, ERR_UNAVAILABLE, "socketpair: %s", strerror (errno));
    return NULL;
  }
  find_program (c->argv[0], path, sizeof path);
  rc = spawn (path, c->argv, fds[1], &p->pid);
  close (fds[1]);
  p->fd = fds[0];
  p->child = c;
  p->cell = cell;
  TAILQ_INIT (&p->calls);
  if (rc != 0) {
    close (p->fd);
    free (p);
    err_set (e, ERR_UNAVAILABLE, "start %s: %s", path, strerror (rc));
    return NULL;
  }
  TAILQ_INSERT_TAIL (&c->procs, p, link);
  p->events = EPOLLIN;
  loop_watch (c->sup->loop, p->fd, EPOLLIN, proc_event, p, NULL);
  p->timer = loop_after (c->sup->loop, c->sup->times.hello, too_slow, p);
  log_at (LOG_INFO, "child.start", "name=%s pid=%d%s", c->name, (int) p->pid,
          cell ? " cell=1" : "");
  return p;
}

void
proc_configured (struct proc *p)
{
  struct loop *loop = p->child->sup->loop;

  p->stage = PROC_CONFIGURED;
  loop_cancel (loop, p->timer);
  p->timer = loop_after (loop, p->child->sup->times.ready, too_slow, p);
}

void
proc_up (struct proc *p, size_t parallel)
{
  p->stage = PROC_UP;
  p->parallel = parallel;
  p->up_at = clock_boot_ms ();
  loop_cancel (p->child->sup->loop, p->timer);
  pulse_start (p);
}

void
proc_retire (struct proc *p)
{
  p->retired = true;
  if (p->child->main == p)
    p->child->main = NULL;
}

static void
stop_due (void *ctx)
{
  struct proc *p = ctx;

  p->timer = 0;
  log_at (LOG_WARNING, "child.killed", "name=%s pid=%d reason=\"did not end\"", p->child->name,
          (int) p->pid);
  proc_kill (p);
}

void
proc_close (struct proc *p)
{
  struct supervisor *s = p->child->sup;

  if (p->stage == PROC_LOST || p->closing)
    return;
  proc_retire (p);
  p->closing = true;
  loop_cancel (s->loop, p->timer);
  p->timer = loop_after (s->loop, s->times.stop, stop_due, p);
}

static bool
held_by_mutation (const struct proc *p)
{
  const struct call *k;
  int64_t now = clock_boot_ms ();

  TAILQ_FOREACH (k, &p->calls, link)
    if (k->mutates && k->sent && k->deadline > now)
      return true;
  return false;
}

void
proc_check_idle (struct proc *p)
{
  if (p->stage == PROC_LOST || p->closing || p->doomed)
    return;
  if (p->stuck) {
    if (held_by_mutation (p))
      return;
    log_at (LOG_WARNING, "child.killed", "name=%s pid=%d reason=\"it or a call did not return\"",
            p->child->name, (int) p->pid);
    proc_kill (p);
  } else if ((p->retired || p->cell) && p->ncalls == 0) {
    proc_close (p);
  }
}

static void
tell_death (struct proc *p, int status)
{
  const char *how = WIFSIGNALED (status) ? "signal" : "status";
  int n = WIFSIGNALED (status) ? WTERMSIG (status) : WEXITSTATUS (status);
  bool expected = p->closing || p->doomed;

  log_at (expected ? LOG_INFO : LOG_ERR, expected ? "child.ended" : "child.died",
          "name=%s pid=%d %s=%d calls=%zu", p->child->name, (int) p->pid, how, n, p->ncalls);
  if (p->err.kind == ERR_NONE)
    err_code (&p->err, ERR_UNAVAILABLE, "child-died", "%s died: %s %d", p->child->name, how, n);
}

void
proc_reaped (struct proc *p, int status)
{
  struct child *c = p->child;

  /* What it said last is still in the socket; a process it left behind may hold that open, so it is
   * bounded. */
  if (p->stage != PROC_LOST)
    proc_read (p, 64);
  if (p->stage != PROC_LOST || p->err.kind == ERR_NONE)
    tell_death (p, status);
  lost (p);
  TAILQ_REMOVE (&c->procs, p, link);
  proc_free (p);
  child_check_stopped (c);
}

struct call *
proc_call (const struct proc *p, uint32_t id)
{
  struct call *k;

  TAILQ_FOREACH (k, &p->calls, link)
    if (k->id == id && k->sent)
      return k;
  return NULL;
}

/* Not reaped: the caller keeps the pid. */
void
proc_free (struct proc *p)
{
  struct loop *loop = p->child->sup->loop;

  if (p->stage != PROC_LOST) {
    loop_cancel (loop, p->timer);
    loop_unwatch (loop, p->fd);
    close (p->fd);
  }
  wire_buf_free (&p->in);
  wire_buf_free (&p->out);
  free (p);
}
