/* fault.c - dying on purpose at the N-th commit or frame, for tests */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fault.h"

static struct {
  bool asked, after;
  char point[32];
  long n; /* passages left */
} fault;

static void
ask (void)
{
  const char *s = getenv ("GPUB_TEST_KILL"), *colon = s ? strchr (s, ':') : NULL;
  char *end;

  fault.asked = true;
  if (!colon || (size_t) (colon - s) >= sizeof fault.point)
    return;
  memcpy (fault.point, s, (size_t) (colon - s));
  fault.n = strtol (colon + 1, &end, 10);
  fault.after = *end == '+';
}

bool
fault_active (const char *point)
{
  if (!fault.asked)
    ask ();
  return fault.n > 0 && strcmp (fault.point, point) == 0;
}

bool
fault_hit (const char *point, bool after)
{
  return fault_active (point) && (fault.after == after ? --fault.n == 0 : false);
}

void
fault_die (const char *point, bool after)
{
  if (fault_hit (point, after))
    kill (getpid (), SIGKILL);
}
