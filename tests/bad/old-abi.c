/* old-abi.c - built against another ABI */
#define GPUB_NAME "old-abi"
#include "tests/bad/bad.h"

const struct gpub_provider *
gpub_provider_entry (uint32_t abi UNUSED)
{
  static struct gpub_provider p = { .size = sizeof p, .abi = GPUB_ABI + 41, .name = GPUB_NAME };

  return &p;
}
