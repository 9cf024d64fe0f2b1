/* clock.c - the two clocks */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/clock.h"

enum { JUMP_MS = 10 * 60000 };

static int64_t offset_ms;
static int asked;

static int64_t
read_ms (clockid_t id)
{
  struct timespec ts;

  clock_gettime (id, &ts);
  return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
clock_wall_ms (void)
{
  if (!asked) {
    const char *s = getenv ("GPUB_TEST_CLOCK_OFFSET_MS");

    asked = 1;
    if (s)
      offset_ms = strtoll (s, NULL, 10);
  }
  return read_ms (CLOCK_REALTIME) + offset_ms;
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
