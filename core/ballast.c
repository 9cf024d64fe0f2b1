/* ballast.c - room on the disk that is kept for letting go */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/ballast.h"
#include "core/cleanup.h"

/* Twice the mark on the way back, so that it does not come and go. */
bool
ballast_wanted (int64_t free_bytes, bool held)
{
  return held ? free_bytes >= BALLAST_LOW : free_bytes >= BALLAST_BYTES + 2 * BALLAST_LOW;
}

/* What an unprivileged process may take; unknown is plenty. */
static int64_t
free_bytes (const struct ballast *x)
{
  char folder[sizeof x->path];
  struct statvfs st;

  snprintf (folder, sizeof folder, "%s", x->path);
  *strrchr (folder, '/') = '\0';
  return statvfs (folder, &st) == 0 ? (int64_t) st.f_bavail * (int64_t) st.f_frsize : INT64_MAX;
}

static bool
make (struct ballast *x)
{
  AUTO_CLOSE int fd = open (x->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  if (fd >= 0 && posix_fallocate (fd, 0, BALLAST_BYTES) == 0)
    return true;
  unlink (x->path);
  return false;
}

void
ballast_drop (struct ballast *x)
{
  if (*x->path)
    unlink (x->path);
  x->held = false;
}

enum ballast_change
ballast_look (struct ballast *x)
{
  bool wanted;

  if (!*x->path || (wanted = ballast_wanted (free_bytes (x), x->held)) == x->held)
    return BALLAST_SAME;
  if (!wanted) {
    ballast_drop (x);
    return BALLAST_GIVEN_UP;
  }
  x->held = make (x);
  return x->held ? BALLAST_MADE : BALLAST_SAME;
}

void
ballast_start (struct ballast *x, const char *folder)
{
  struct stat st;

  snprintf (x->path, sizeof x->path, "%s/ballast", folder);
  x->held = stat (x->path, &st) == 0 && st.st_size == BALLAST_BYTES;
  ballast_look (x);
}

bool
ballast_full (const struct ballast *x)
{
  return *x->path && !x->held;
}
