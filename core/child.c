/* child.c - what every child of gpubrokerd does first */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/child.h"

extern char **environ;

/* Everything else that the daemon's environment holds (perhaps keys) does not pass. */
static const char *const allowed[] = {
  "PATH", "HOME", "LANG", "TZ", "TMPDIR", "JOURNAL_STREAM", "GPUB_PROVIDER_PATH",
  "GPUB_TEST_CLOCK_OFFSET_MS", "GPUB_TEST_CLOCK", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
  "LSAN_OPTIONS", "MALLOC_PERTURB_",
};

static int
is_allowed (const char *pair)
{
  for (size_t i = 0; i < N_ELEMENTS (allowed); i++) {
    size_t n = strlen (allowed[i]);

    if (strncmp (pair, allowed[i], n) == 0 && pair[n] == '=')
      return 1;
  }
  return 0;
}

static void
trim_environment (void)
{
  char **out = environ;

  for (char **in = environ; *in; in++) {
    if (is_allowed (*in))
      *out++ = *in;
    else
      explicit_bzero (*in, strlen (*in));
  }
  *out = NULL;
}

int
child_confine (struct err *e)
{
  struct rlimit none = { 0, 0 };
  struct stat st;

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  prctl (PR_SET_DUMPABLE, 0);
  setrlimit (RLIMIT_CORE, &none);
  signal (SIGPIPE, SIG_IGN);
  signal (SIGTERM, SIG_IGN); /* the daemon ends us by closing fd 3 once sent effects are done */
  signal (SIGINT, SIG_IGN);
  signal (SIGHUP, SIG_IGN); /* sent to all of us, it is meant for the daemon: reload */
  trim_environment ();
  if (fstat (WIRE_FD, &st) < 0 || !S_ISSOCK (st.st_mode))
    return err_set (e, ERR_INVALID, "fd %d is no socket: gpubrokerd starts this program, not a person",
                    WIRE_FD);
  fcntl (WIRE_FD, F_SETFD, FD_CLOEXEC);
  return 0;
}

json_t *
child_hello (const char *role)
{
  return json_pack ("{s:s, s:[i,i], s:s, s:i}", "role", role, "wire", WIRE_VERSION, WIRE_VERSION,
                    "version", PACKAGE_VERSION, "pid", (int) getpid ());
}

int
child_capture_stdio (struct err *e)
{
  int null = open ("/dev/null", O_RDONLY | O_CLOEXEC), fds[2];

  if (null < 0 || pipe2 (fds, O_CLOEXEC) < 0)
    return err_set (e, ERR_INTERNAL, "stdio: %s", strerror (errno));
  dup2 (null, 0);
  dup2 (fds[1], 1);
  dup2 (fds[1], 2);
  fcntl (fds[0], F_SETFL, O_NONBLOCK);
  fcntl (1, F_SETFL, O_NONBLOCK); /* a full pipe loses a print, never a thread */
  close (null);
  close (fds[1]);
  return fds[0];
}
