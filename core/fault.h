/* fault.h - dying on purpose at the N-th commit or frame, for tests
 *
 * GPUB_TEST_KILL="POINT:N" kills this process with SIGKILL just before the N-th passage of that
 * point, "POINT:N+" just after it.  Points: commit; frame (one that the daemon writes to a child);
 * child-frame (the same, but the child is killed instead).  Without the variable it costs one
 * comparison.
 */
#ifndef GPUB_FAULT_H
#define GPUB_FAULT_H

#include <stdbool.h>

bool fault_active (const char *point);
/* Call with after=false before and after=true behind the thing.  True at the chosen passage. */
bool fault_hit (const char *point, bool after);
/* The same, and kills this process there. */
void fault_die (const char *point, bool after);

#endif
