/* crashes-in-list.c - a fault in a plugin must cost its own process only */
#define GPUB_NAME "crashes-in-list"
#include "tests/bad/bad.h"

static int32_t
crash (void *self UNUSED, struct gpub_call *call, struct gpub_error *err UNUSED)
{
  struct gpub_machine m = { .size = sizeof m, .id = "seen-before-the-crash" };

  host->emit_machine (call, &m);
  host->log (call, GPUB_LOG_INFO, "bad.crash", "now");
  abort ();
}

BAD_ENTRY (.list = crash)
