/* hyperstack.c - the provider table, its options, and the probe */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

static const struct gpub_option options[] = {
  PLUG_OPTION ("api_key", GPUB_OPT_STRING, GPUB_OPT_REQUIRED | GPUB_OPT_SECRET, NULL,
               "API key of the Hyperstack account"),
  PLUG_OPTION ("endpoint", GPUB_OPT_STRING, 0, "https://infrahub-api.nexgencloud.com/v1",
               "base URL of the API"),
  PLUG_OPTION (
      "environments", GPUB_OPT_LIST, 0, NULL,
      "environments to rent in, one a region; else default-<region>, made where it is missing"),
  PLUG_OPTION ("images", GPUB_OPT_LIST, 0, NULL,
               "preferred images, best first; else the Ubuntu Server with the newest GPU driver"),
  PLUG_OPTION ("ssh_from", GPUB_OPT_STRING, 0, "0.0.0.0/0", "network that may reach port 22"),
};

static void
hyperstack_close (void *self)
{
  struct hyperstack *s = self;

  if (!s)
    return;
  free (s->endpoint);
  free (s->ssh_from);
  json_decref (s->environments);
  json_decref (s->images);
  free (s);
}

static int32_t
hyperstack_open (const struct gpub_host *host, struct gpub_call *call,
                 const struct gpub_config *config, void **self, struct gpub_error *err)
{
  struct hyperstack *s = calloc (1, sizeof *s);
  int32_t rc;

  (void) call;
  if (!s)
    return plug_error (err, GPUB_E_INTERNAL, "out of memory");
  s->host = host;
  s->environments = plug_option_list (config, "environments");
  s->images = plug_option_list (config, "images");
  s->ssh_from = strdup (plug_option (config, "ssh_from"));
  rc = plug_endpoint (config, &s->endpoint, err);
  if (rc == GPUB_OK && !strchr (s->ssh_from, '/'))
    rc = plug_error (err, GPUB_E_INVALID, "ssh_from: '%.60s' is no network such as 192.0.2.0/24",
                     s->ssh_from);
  if (rc == GPUB_OK)
    *self = s;
  else
    hyperstack_close (s);
  return rc;
}

/* The key counts; a balance that may not be read is left out. */
static void
fill_balance (const struct ctx *c, struct gpub_identity *identity)
{
  json_auto_t *body = NULL;
  const json_t *data, *credit;

  if (api_get (c, "read balance", "/billing/user-credit/credit", &body) != GPUB_OK)
    return;
  data = json_object_get (body, "data");
  credit = json_object_get (data, "credit");
  if (json_is_number (credit) && json_number_value (credit) < 1e12) {
    double dollars = json_number_value (credit);

    identity->balance_udollar = dollars > 0 ? (uint64_t) (dollars * 1e6) : 0;
    identity->known |= GPUB_IDENTITY_BALANCE;
  }
  if (!json_bool (data, "can_create_instance", true))
    snprintf (identity->text, sizeof identity->text,
              "the account may create no machine: add money to it");
}

static int32_t
hyperstack_probe (void *self, struct gpub_call *call, struct gpub_identity *identity,
                  struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *body = NULL;
  const json_t *user;
  int32_t rc = api_expect (&c, "check key", "/auth/me", &body);

  if (rc != GPUB_OK)
    return rc;
  user = json_object_get (body, "user");
  snprintf (identity->account, sizeof identity->account, "%s",
            json_str (user, "email", json_str (user, "username", "")));
  fill_balance (&c, identity);
  return GPUB_OK;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "hyperstack",
  .version = PACKAGE_VERSION,
  .description = "Hyperstack: GPU machines of NexGen Cloud",
  .options = options,
  .noptions = N_ELEMENTS (options),
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_TAGS | GPUB_CAP_USER_DATA | GPUB_CAP_OPEN_PORTS | GPUB_CAP_CONSOLE |
          GPUB_CAP_HOSTS_KUBERNETES,
  .max_parallel = 8,
  .visibility_lag_ms = 30 * 1000,
  .user_data_max = USER_DATA_MAX,
  .user_data_flags = GPUB_USER_DATA_PLAIN,
  .open = hyperstack_open,
  .close = hyperstack_close,
  .probe = hyperstack_probe,
  .list_offers = hyperstack_list_offers,
  .create = hyperstack_create,
  .get = hyperstack_get,
  .find = hyperstack_find,
  .list = hyperstack_list,
  .remove = hyperstack_remove,
  .console_log = hyperstack_console_log,
};

const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
