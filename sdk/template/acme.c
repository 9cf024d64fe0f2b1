/* acme.c - the table that gpubroker sees, its options, and the probe */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acme.h"

static const struct gpub_option options[] = {
  { sizeof options[0], "api_key", GPUB_OPT_STRING, GPUB_OPT_REQUIRED | GPUB_OPT_SECRET, NULL,
    "API key of the Acme account" },
  { sizeof options[0], "endpoint", GPUB_OPT_STRING, 0, "https://api.acme.example/v1",
    "base URL of the API" },
};

static const char *
option (const struct gpub_config *config, const char *name)
{
  for (uint64_t i = 0; i < config->count; i++)
    if (strcmp (config->values[i].key, name) == 0)
      return config->values[i].value;
  return "";
}

/* Options only, no traffic.  An error names the option. */
static int32_t
acme_open (const struct gpub_host *host, struct gpub_call *call, const struct gpub_config *config,
           void **self, struct gpub_error *err)
{
  const char *endpoint = option (config, "endpoint");
  struct acme *a;
  size_t n = strlen (endpoint);

  (void) call;
  if (strncmp (endpoint, "https://", 8) != 0 && strncmp (endpoint, "http://", 7) != 0)
    return acme_error (err, GPUB_E_INVALID, "endpoint: '%.100s' is no URL", endpoint);
  while (endpoint[n - 1] == '/')
    n--;
  a = calloc (1, sizeof *a);
  if (!a || !(a->endpoint = strndup (endpoint, n)))
    return acme_error (err, GPUB_E_INTERNAL, "out of memory");
  a->host = host;
  *self = a;
  return GPUB_OK;
}

static void
acme_close (void *self)
{
  struct acme *a = self;

  free (a->endpoint);
  free (a);
}

static int32_t
acme_probe (void *self, struct gpub_call *call, struct gpub_identity *out, struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *account = NULL;
  int32_t rc = api_read (&c, "/account", &account);

  if (rc == GPUB_OK)
    snprintf (out->account, sizeof out->account, "%s", str (account, "name"));
  return rc;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "acme",
  .version = "1.0",
  .description = "Acme Cloud",
  .options = options,
  .noptions = sizeof options / sizeof options[0],
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_TAGS | GPUB_CAP_USER_DATA | GPUB_CAP_KILL_SWITCH |
          GPUB_CAP_HOSTS_KUBERNETES,
  .max_parallel = 4,
  .idempotency_window_s = 24 * 3600,
  .user_data_max = 16 * 1024,
  .user_data_flags = GPUB_USER_DATA_PLAIN,
  .open = acme_open,
  .close = acme_close,
  .probe = acme_probe,
  .list_offers = acme_list_offers,
  .create = acme_create,
  .get = acme_get,
  .find = acme_find,
  .list = acme_list,
  .remove = acme_remove,
  .set_not_after = acme_set_not_after,
};

GPUB_EXPORT const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
