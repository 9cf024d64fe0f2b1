/* emits-forever.c - a listing without end, which stops only when emit says so */
#define GPUB_NAME "emits-forever"
#include "tests/bad/bad.h"

static int32_t
flood (void *self UNUSED, struct gpub_call *call, const struct gpub_offer_query *q UNUSED,
       struct gpub_error *err UNUSED)
{
  char ref[32];
  struct gpub_offer o = {
    .size = sizeof o, .offer_ref = ref, .gpu_name = "H100", .gpu_count = 1, .known = GPUB_OFFER_GPUS
  };
  int32_t rc = GPUB_OK;

  for (uint64_t i = 0; rc == GPUB_OK; i++) {
    snprintf (ref, sizeof ref, "offer-%llu", (unsigned long long) i);
    rc = host->emit_offer (call, &o);
  }
  return rc;
}

BAD_ENTRY (.list_offers = flood)
