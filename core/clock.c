/* clock.c - the two clocks */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"

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
