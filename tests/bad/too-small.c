/* too-small.c - the right ABI, and a struct that ends before its required calls */
#define GPUB_NAME "too-small"
#include "tests/bad/bad.h"

const struct gpub_provider *
gpub_provider_entry (uint32_t abi UNUSED)
{
  static struct gpub_provider p = { .size = offsetof (struct gpub_provider, open),
                                    .abi = GPUB_ABI,
                                    .name = GPUB_NAME };

  return &p;
}
