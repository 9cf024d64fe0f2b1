/* nebius.c - the provider table, its options, and the probe */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

static const struct gpub_option options[] = {
  PLUG_OPTION ("credentials", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL,
               "authorized key of a service account, the JSON with subject-credentials"),
  PLUG_OPTION ("token", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL,
               "a fixed access token, instead of credentials"),
  PLUG_OPTION ("vm_token", GPUB_OPT_BOOL, 0, "false",
               "use the service account of the Nebius machine that the broker runs on"),
  PLUG_OPTION ("tenant", GPUB_OPT_STRING, 0, NULL,
               "rent in every project of this tenant; else of every tenant that is visible"),
  PLUG_OPTION ("projects", GPUB_OPT_LIST, 0, NULL, "rent in these projects alone, one a region"),
  PLUG_OPTION ("images", GPUB_OPT_LIST, 0, NULL,
               "preferred image families, best first; else the newest Ubuntu with a GPU driver"),
  PLUG_OPTION ("endpoint", GPUB_OPT_STRING, 0, "https://{service}.api.nebius.cloud",
               "base URL of the API; {service} is replaced by the name of the service"),
  PLUG_OPTION ("token_url", GPUB_OPT_STRING, 0, "https://auth.eu.nebius.com/oauth2/token/exchange",
               "where credentials are exchanged for a token"),
  PLUG_OPTION ("vm_token_url", GPUB_OPT_STRING, 0, "http://169.254.169.254/v1/iam/sa/token",
               "where the metadata service gives the token of a machine"),
};

static void
nebius_close (void *self)
{
  struct nebius *s = self;

  if (!s)
    return;
  free (s->endpoint);
  free (s->token_url);
  free (s->vm_token_url);
  free (s->tenant);
  free (s->owner);
  json_decref (s->projects);
  json_decref (s->images);
  json_decref (s->prices);
  token_free (s->token.text);
  pthread_mutex_destroy (&s->lock);
  free (s);
}

/* Without a slash at its end. */
static int32_t
read_url (const struct gpub_config *config, const char *option, char **url, struct gpub_error *err)
{
  const char *text = plug_option (config, option);
  size_t n;

  if (strncmp (text, "https://", 8) != 0 && strncmp (text, "http://", 7) != 0)
    return plug_error (err, GPUB_E_INVALID, "%s: '%.100s' is no http:// or https:// URL", option,
                       text);
  for (n = strlen (text); text[n - 1] == '/';)
    n--;
  *url = strndup (text, n);
  return GPUB_OK;
}

static int32_t
check_projects (const struct nebius *s, struct gpub_error *err)
{
  char id[FIELD_MAX];
  const json_t *row;
  size_t i;

  json_array_foreach (s->projects, i, row)
    if (!field_take (id, sizeof id, json_string_value (row)))
      return plug_error (err, GPUB_E_INVALID, "projects: '%.60s' is no project id",
                         json_string_value (row));
  return GPUB_OK;
}

static int32_t
nebius_open (const struct gpub_host *host, struct gpub_call *call, const struct gpub_config *config,
             void **self, struct gpub_error *err)
{
  struct nebius *s = calloc (1, sizeof *s);
  const char *tenant = plug_option (config, "tenant"), *vm = plug_option (config, "vm_token");
  int32_t rc;

  (void) call;
  if (!s)
    return plug_error (err, GPUB_E_INTERNAL, "out of memory");
  pthread_mutex_init (&s->lock, NULL);
  s->host = host;
  s->projects = plug_option_list (config, "projects");
  s->images = plug_option_list (config, "images");
  s->prices = json_object ();
  s->tenant = strdup (tenant ? tenant : "");
  s->owner = strdup (config->owner ? config->owner : "");
  s->vm_token = vm && strcmp (vm, "true") == 0;
  rc = read_url (config, "endpoint", &s->endpoint, err);
  if (rc == GPUB_OK)
    rc = read_url (config, "token_url", &s->token_url, err);
  if (rc == GPUB_OK)
    rc = read_url (config, "vm_token_url", &s->vm_token_url, err);
  if (rc == GPUB_OK)
    rc = check_projects (s, err);
  if (rc == GPUB_OK)
    *self = s;
  else
    nebius_close (s);
  return rc;
}

static int32_t
nebius_probe (void *self, struct gpub_call *call, struct gpub_identity *identity,
              struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct projects ps;
  size_t bad = 0;
  int32_t rc = projects_read (&c, NULL, &ps);

  if (rc == GPUB_OK)
    rc = projects_verdict (&c, &ps);
  for (size_t i = 0; i < ps.n; i++)
    bad += ps.at[i].kind != GPUB_OK;
  if (rc == GPUB_OK) {
    snprintf (identity->account, sizeof identity->account, "%s", ps.at[0].tenant);
    snprintf (identity->text, sizeof identity->text, "%zu projects, %zu of them unreadable", ps.n,
              bad);
  }
  projects_done (&ps);
  return rc == GPUB_E_UNSUPPORTED
             ? plug_error (err, GPUB_E_INVALID, "is '%.100s' the API?", c.s->endpoint)
             : rc;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "nebius",
  .version = PACKAGE_VERSION,
  .description = "Nebius AI Cloud",
  .options = options,
  .noptions = N_ELEMENTS (options),
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_TAGS | GPUB_CAP_USER_DATA | GPUB_CAP_SPOT |
          GPUB_CAP_HOSTS_KUBERNETES,
  .max_parallel = 8,
  .visibility_lag_ms = 30 * 1000,
  .idempotency_window_s = 600,
  .user_data_max = USER_DATA_MAX - USER_DATA_ROOM,
  .user_data_flags = GPUB_USER_DATA_PLAIN,
  .open = nebius_open,
  .close = nebius_close,
  .probe = nebius_probe,
  .list_offers = nebius_list_offers,
  .create = nebius_create,
  .get = nebius_get,
  .find = nebius_find,
  .list = nebius_list,
  .remove = nebius_remove,
};

const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
