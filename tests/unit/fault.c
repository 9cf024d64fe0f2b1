/* fault.c - the N-th frame: this process or the child dies there, for every N, and not elsewhere */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/fault.h"
#include "core/supervise.h"
#include "tests/unit/tap.h"

enum { CALLS = 3, FRAMES = 2 + CALLS }; /* SECRET, CONFIG, a CALL each */

static struct supervisor *sup;

static int
flush (void *ctx)
{
  (void) ctx;
  supervisor_flush (sup);
  return 0;
}

static void
count (void *ctx, uint32_t id, const struct call_result *r)
{
  int *ended = ctx;

  (void) id, (void) r;
  ++*ended;
}

/* The daemon's part; exits 0 when each call has ended once. */
static void
scenario (const char *kill_at)
{
  struct supervise_times times = supervise_times_default;
  struct loop *loop = loop_new (NULL);
  const char *dir = getenv ("GPUB_BUILDDIR");
  char program[1024];
  const char *argv[] = { program, NULL };
  struct child_secret key = { "key", "k3y", 3 };
  struct child_spec spec = {
    .name = "bad", .role = "test", .argv = argv, .secrets = &key, .nsecrets = 1
  };
  int ended = 0;
  struct child_call want = {
    .call = "echo", .deadline_ms = 5000, .on_result = count, .ctx = &ended
  };
  struct child *c;
  int64_t end;

  setenv ("GPUB_TEST_KILL", kill_at, 1);
  snprintf (program, sizeof program, "%s/bad-child", dir ? dir : ".");
  times.delay_min = 20;
  sup = supervisor_new (loop, &times, NULL);
  loop_each (loop, flush, NULL);
  c = child_new (sup, &spec, NULL, NULL);
  for (int i = 0; i < CALLS; i++)
    child_call (c, &want);
  end = clock_boot_ms () + 8000;
  while (ended < CALLS && clock_boot_ms () < end)
    loop_turn (loop, 50, NULL);
  child_free (c);
  supervisor_free (sup);
  loop_free (loop);
  _exit (ended == CALLS ? 0 : 1);
}

static int
run (const char *point, int n, const char *after)
{
  char kill_at[64];
  int status = -1;
  pid_t pid;

  snprintf (kill_at, sizeof kill_at, "%s:%d%s", point, n, after);
  fflush (stdout);
  pid = fork ();
  if (pid == 0)
    scenario (kill_at);
  waitpid (pid, &status, 0);
  return status;
}

static void
test_frame (const char *after)
{
  int status;

  for (int n = 1; n <= FRAMES; n++) {
    status = run ("frame", n, after);
    ok (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL, "frame:%d%s ends the daemon", n,
        after);
  }
  status = run ("frame", FRAMES + 1, after);
  ok (WIFEXITED (status) && WEXITSTATUS (status) == 0, "there is no frame %d", FRAMES + 1);
}

static void
test_child_frame (const char *after)
{
  for (int n = 1; n <= FRAMES; n++) {
    int status = run ("child-frame", n, after);

    ok (WIFEXITED (status) && WEXITSTATUS (status) == 0, "child-frame:%d%s: every call ends once",
        n, after);
  }
}

static void
test_off (void)
{
  ok (!fault_active ("frame") && !fault_hit ("frame", false),
      "without the variable nothing is counted");
}

int
main (void)
{
  alarm (120);
  unsetenv ("GPUB_TEST_KILL");
  test_frame ("");
  test_frame ("+");
  test_child_frame ("");
  test_child_frame ("+");
  test_off ();
  return done ();
}
