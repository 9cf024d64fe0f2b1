/* clock.c - the two clocks */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/clock.h"

enum { JUMP_MS = 10 * 60000 };

static int64_t offset_ms;
static const volatile int64_t *ahead; /* NULL: time is not simulated */
static int asked;

static const volatile int64_t *
map_ahead (const char *path)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  void *at = fd >= 0 ? mmap (NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

  return at == MAP_FAILED ? NULL : at;
}

static void
ask (void)
{
  const char *offset = getenv ("GPUB_TEST_CLOCK_OFFSET_MS"), *file = getenv ("GPUB_TEST_CLOCK");

  asked = 1;
  offset_ms = offset ? strtoll (offset, NULL, 10) : 0;
  ahead = file ? map_ahead (file) : NULL;
}

int64_t
clock_ahead_ms (void)
{
  if (!asked)
    ask ();
  return ahead ? *ahead : 0;
}

static int64_t
read_ms (clockid_t id)
{
  struct timespec ts;

  clock_gettime (id, &ts);
  return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + clock_ahead_ms ();
}

int64_t
clock_wall_ms (void)
{
  int64_t ms = read_ms (CLOCK_REALTIME); /* the first time, this asks for the offset, too */

  return ms + offset_ms;
}

int64_t
clock_boot_ms (void)
{
  return read_ms (CLOCK_BOOTTIME);
}

void
clock_set_offset (int64_t ms)
{
  asked = 1;
  offset_ms = ms;
}

void
clock_moment (struct moment *m)
{
  AUTO_CLOSE int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, m->boot_id, 36) : 0;

  m->boot_id[n > 0 ? n : 0] = '\0';
  m->wall_ms = clock_wall_ms ();
  m->boot_ms = clock_boot_ms ();
}

bool
clock_jumped (const struct moment *then, const struct moment *now)
{
  int64_t passed = now->wall_ms - then->wall_ms;

  if (then->wall_ms == 0)
    return false;
  if (strcmp (then->boot_id, now->boot_id) != 0)
    return passed < -JUMP_MS;
  passed -= now->boot_ms - then->boot_ms;
  return passed > JUMP_MS || passed < -JUMP_MS;
}
