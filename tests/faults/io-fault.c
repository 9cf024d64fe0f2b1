/* io-fault.c - preloaded into gpubrokerd: the N-th write to the books, or sync of them, fails
 *
 * GPUB_TEST_IO="write:7:ENOSPC" or "sync:3:EIO"; a "+" after the number: and all that follow.  A
 * line on standard error tells that it was met.  SQLite calls the C library like everybody else, so
 * the daemon is the real one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
  bool asked, on;
  char point[16];
  int error;
  long n;
} fault;

static void
ask (void)
{
  const char *s = getenv ("GPUB_TEST_IO"), *colon = s ? strchr (s, ':') : NULL;
  char *end = NULL;

  fault.asked = true;
  if (!colon || (size_t) (colon - s) >= sizeof fault.point)
    return;
  memcpy (fault.point, s, (size_t) (colon - s));
  fault.n = strtol (colon + 1, &end, 10);
  fault.on = *end == '+';
  fault.error = strstr (end, "ENOSPC") ? ENOSPC : EIO;
}

static bool
of_the_books (int fd)
{
  char link[64], path[512];
  ssize_t n;

  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink (link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = '\0';
  return strstr (path, "/gpubroker.db") && !strstr (path, "-shm");
}

static bool
fails (const char *point, int fd)
{
  static const char told[] = "io-fault met\n";

  if (!fault.asked)
    ask ();
  if (!fault.n || strcmp (point, fault.point) != 0 || !of_the_books (fd))
    return false;
  if (fault.n > 1) {
    fault.n--;
    return false;
  }
  if (!fault.on)
    fault.n = 0;
  if (write (2, told, sizeof told - 1) < 0)
    return false;
  errno = fault.error;
  return true;
}

/* The build hides symbols unless told. */
#define SEEN __attribute__ ((__visibility__ ("default")))

#define REAL(name) ((__typeof__ (&name)) (void *) dlsym (RTLD_NEXT, #name))

SEEN ssize_t
pwrite (int fd, const void *bytes, size_t n, off_t at)
{
  return fails ("write", fd) ? -1 : REAL (pwrite) (fd, bytes, n, at);
}

SEEN ssize_t
pwrite64 (int fd, const void *bytes, size_t n, off64_t at)
{
  return fails ("write", fd) ? -1 : REAL (pwrite64) (fd, bytes, n, at);
}

SEEN int
fsync (int fd)
{
  return fails ("sync", fd) ? -1 : REAL (fsync) (fd);
}

SEEN int
fdatasync (int fd)
{
  return fails ("sync", fd) ? -1 : REAL (fdatasync) (fd);
}
