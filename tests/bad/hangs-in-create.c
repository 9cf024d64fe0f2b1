/* hangs-in-create.c - emits a machine, then neither returns nor looks at cancellation */
#include <unistd.h>

#define GPUB_NAME "hangs-in-create"
#include "tests/bad/bad.h"

static int32_t
hang (void *self UNUSED, struct gpub_call *call, const struct gpub_create *args UNUSED,
      struct gpub_error *err UNUSED)
{
  struct gpub_machine m = { .size = sizeof m, .id = "hanging" };

  host->emit_machine (call, &m);
  for (;;)
    pause ();
  return GPUB_OK;
}

BAD_ENTRY (.create = hang)
