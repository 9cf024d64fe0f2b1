/* clock.c - which moves of the two clocks are believed */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/unit/tap.h"

#define MINUTE INT64_C (60000)
#define YEAR   (365 * 24 * 60 * MINUTE)

static const int64_t wall = INT64_C (1800000000000);

static bool
moved (int64_t wall_by, int64_t boot_by, const char *boot_id)
{
  struct moment then = { wall, 1000, "a" }, now = { wall + wall_by, 1000 + boot_by, "" };

  snprintf (now.boot_id, sizeof now.boot_id, "%s", boot_id);
  return clock_jumped (&then, &now);
}

/* Both clocks go ahead as the file says, while the process runs: no jump, for they agree. */
static void
test_ahead (void)
{
  char path[] = "/tmp/gpub-clock-XXXXXX";
  int fd = mkstemp (path);
  int64_t ms = 0;
  struct moment then, now;

  if (!ok (fd >= 0 && pwrite (fd, &ms, sizeof ms, 0) == sizeof ms, "a file with a clock"))
    return;
  setenv ("GPUB_TEST_CLOCK", path, 1);
  clock_moment (&then);
  ms = YEAR;
  ok (pwrite (fd, &ms, sizeof ms, 0) == sizeof ms && clock_ahead_ms () == YEAR, "a year ahead");
  clock_moment (&now);
  ok (now.wall_ms - then.wall_ms >= YEAR && now.wall_ms - then.wall_ms < YEAR + MINUTE,
      "wall time is");
  ok (now.boot_ms - then.boot_ms >= YEAR && now.boot_ms - then.boot_ms < YEAR + MINUTE,
      "boot time is");
  ok (!clock_jumped (&then, &now), "and that is no jump");
  unlink (path);
  close (fd);
}

int
main (void)
{
  struct moment never = { 0, 0, "" }, now = { wall, 1000, "a" };

  ok (!clock_jumped (&never, &now), "with nothing noted there is no jump");
  ok (!moved (5 * MINUTE, 5 * MINUTE, "a"), "both clocks move together");
  ok (!moved (YEAR, YEAR, "a"), "also over a long stop of the daemon");
  ok (!moved (9 * MINUTE, 0, "a"), "a correction of some minutes is none");
  ok (moved (YEAR, MINUTE, "a"), "a year forward");
  ok (moved (-YEAR, MINUTE, "a"), "a year back");
  ok (moved (0, 20 * MINUTE, "a"), "wall time that stood still");
  ok (!moved (YEAR, -500, "b"), "another boot may come much later");
  ok (moved (-YEAR, -500, "b"), "but not before");
  test_ahead ();
  return done ();
}
