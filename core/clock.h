/* clock.h - the two clocks, and the seam through which tests set them
 *
 * GPUB_TEST_CLOCK_OFFSET_MS in the environment shifts wall time (never the boot clock); it is read once.
 */
#ifndef GPUB_CLOCK_H
#define GPUB_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms (void); /* since 1970 UTC; may jump */
int64_t clock_boot_ms (void); /* CLOCK_BOOTTIME: counts suspend, never jumps, restarts at reboot */
void clock_set_offset (int64_t ms);

#endif
