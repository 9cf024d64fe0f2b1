/* writes.c - tries to leave a file outside of its state folder */
#define GPUB_NAME "writes"
#include "tests/bad/bad.h"

static int32_t
probe (void *self UNUSED, struct gpub_call *call, struct gpub_identity *id,
       struct gpub_error *err UNUSED)
{
  const void *path = "";
  uint64_t len = 0;
  FILE *f;

  host->secret (call, "path", &path, &len);
  f = fopen (path, "w");
  snprintf (id->account, sizeof id->account, f ? "written" : "refused");
  if (f)
    fclose (f);
  return host->state_put (call, "kept", "x", 1);
}

static const struct gpub_option options[] = {
  { sizeof options[0], "path", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL, "what to write" },
};

BAD_ENTRY (.probe = probe, .options = options, .noptions = 1, .options_stride = sizeof options[0])
