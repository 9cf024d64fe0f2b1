/* shadeform.c - the provider table, its options, and the probe */
#include "config.h"

#include <string.h>

#include "plugins/shadeform/shadeform.h"

static const struct gpub_option options[] = {
  PLUG_OPTION ("api_key", GPUB_OPT_STRING, GPUB_OPT_REQUIRED | GPUB_OPT_SECRET, NULL,
               "API key of the Shadeform workspace"),
  PLUG_OPTION ("endpoint", GPUB_OPT_STRING, 0, "https://api.shadeform.ai/v1",
               "base URL of the API"),
  PLUG_OPTION (
      "shade_cloud", GPUB_OPT_BOOL, 0, "true",
      "rent through Shadeform's own accounts; false: through the cloud accounts linked to yours"),
  PLUG_OPTION (
      "images", GPUB_OPT_LIST, 0, NULL,
      "preferred images, best first; else the first one with GPU driver and container toolkit"),
};

static void
shadeform_close (void *self)
{
  struct shadeform *s = self;

  if (!s)
    return;
  free (s->endpoint);
  json_decref (s->images);
  free (s);
}

static int32_t
shadeform_open (const struct gpub_host *host, struct gpub_call *call,
                const struct gpub_config *config, void **self, struct gpub_error *err)
{
  struct shadeform *s = calloc (1, sizeof *s);
  const char *shade_cloud = plug_option (config, "shade_cloud");
  int32_t rc;

  (void) call;
  if (!s)
    return plug_error (err, GPUB_E_INTERNAL, "out of memory");
  s->host = host;
  s->images = plug_option_list (config, "images");
  s->shade_cloud = !shade_cloud || strcmp (shade_cloud, "false") != 0;
  rc = plug_endpoint (config, &s->endpoint, err);
  if (rc == GPUB_OK)
    *self = s;
  else
    shadeform_close (s);
  return rc;
}

static int32_t
shadeform_probe (void *self, struct gpub_call *call, struct gpub_identity *identity,
                 struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body = NULL;
  int32_t rc = instances_read (&c, &body);

  if (rc == GPUB_OK)
    snprintf (identity->text, sizeof identity->text, "%zu instances in the account",
              json_array_size (json_object_get (body, "instances")));
  return rc;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "shadeform",
  .version = PACKAGE_VERSION,
  .description = "Shadeform: one API in front of many GPU clouds",
  .options = options,
  .noptions = N_ELEMENTS (options),
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_TAGS | GPUB_CAP_STARTUP_SCRIPT | GPUB_CAP_SPOT | GPUB_CAP_KILL_SWITCH |
          GPUB_CAP_HOSTS_KUBERNETES,
  .max_parallel = 8,
  .visibility_lag_ms = 30 * 1000,
  .user_data_max = USER_DATA_MAX,
  .user_data_flags = GPUB_USER_DATA_PLAIN | GPUB_USER_DATA_AFTER_ACTIVE,
  .open = shadeform_open,
  .close = shadeform_close,
  .probe = shadeform_probe,
  .list_offers = shadeform_list_offers,
  .create = shadeform_create,
  .get = shadeform_get,
  .find = shadeform_find,
  .list = shadeform_list,
  .remove = shadeform_remove,
  .set_not_after = shadeform_set_not_after,
};

const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
