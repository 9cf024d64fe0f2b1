/* leaks-files.c - leaves a file open at every probe */
#include <unistd.h>

#define GPUB_NAME "leaks-files"
#include "tests/bad/bad.h"

static int32_t
leak (void *self, struct gpub_call *call, struct gpub_identity *id, struct gpub_error *err)
{
  return dup (1) < 0 ? GPUB_E_INTERNAL : bad_probe (self, call, id, err);
}

BAD_ENTRY (.probe = leak)
