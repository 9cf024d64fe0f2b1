/* prints.c - floods stdout and stderr, with secrets and broken bytes among it */
#define GPUB_NAME "prints"
#include "tests/bad/bad.h"

static int32_t
print (void *self UNUSED, struct gpub_call *call, struct gpub_identity *id UNUSED,
       struct gpub_error *err UNUSED)
{
  const void *key = "";
  uint64_t len = 0;

  host->secret (call, "api_key", &key, &len);
  printf ("hello from a plugin, key %.*s\n", (int) len, (const char *) key);
  fprintf (stderr, "broken \xff\xfe bytes\n");
  for (int i = 0; i < 5000; i++)
    printf ("line %d\n", i);
  fflush (stdout);
  return GPUB_OK;
}

static const struct gpub_option options[] = {
  { sizeof options[0], "api_key", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL, "printed" },
};

BAD_ENTRY (.probe = print, .options = options, .noptions = 1, .options_stride = sizeof options[0])
