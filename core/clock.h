/* clock.h - the two clocks, and the seam through which tests set them
 *
 * GPUB_TEST_CLOCK_OFFSET_MS in the environment shifts wall time (never the boot clock); it is read
 * once. GPUB_TEST_CLOCK names a file of eight bytes, an int64_t in the machine's order: the
 * milliseconds by which both clocks are ahead.  It may grow while the process runs, which is like a
 * suspend of that length.
 */
#ifndef GPUB_CLOCK_H
#define GPUB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ms (void); /* since 1970 UTC; may jump */
int64_t clock_boot_ms (void); /* CLOCK_BOOTTIME: counts suspend, never jumps, restarts at reboot */
/* Both clocks at one moment.  A boot clock counts within one boot only. */
struct moment {
  int64_t wall_ms, boot_ms;
  char boot_id[40];
};
void clock_moment (struct moment *m);
/* Did wall time jump between the two?  Over a restart of the machine only backwards can be seen. */
bool clock_jumped (const struct moment *then, const struct moment *now);

void clock_set_offset (int64_t ms);
int64_t clock_ahead_ms (void); /* of both clocks before the kernel's; 0 outside of tests */

#endif
