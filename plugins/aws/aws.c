/* aws.c - the provider table, its options, and the probe */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

static const struct gpub_option options[] = {
  PLUG_OPTION ("access_key_id", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL,
               "access key of an IAM user"),
  PLUG_OPTION ("secret_access_key", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL, "its secret"),
  PLUG_OPTION ("session_token", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL,
               "token that belongs to temporary keys"),
  PLUG_OPTION ("credentials_token", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL,
               "authorization for credentials_url"),
  PLUG_OPTION (
      "credentials_url", GPUB_OPT_STRING, 0, NULL,
      "a container's credentials endpoint, such as http://169.254.170.2/v2/credentials/ID"),
  PLUG_OPTION ("profile", GPUB_OPT_STRING, 0, NULL, "profile of the shared files"),
  PLUG_OPTION ("shared_credentials_file", GPUB_OPT_STRING, 0, NULL,
               "instead of ~/.aws/credentials"),
  PLUG_OPTION ("config_file", GPUB_OPT_STRING, 0, NULL, "instead of ~/.aws/config"),
  PLUG_OPTION ("imds", GPUB_OPT_BOOL, 0, "true", "ask the metadata service of an EC2 machine"),
  PLUG_OPTION ("regions", GPUB_OPT_LIST, 0, NULL,
               "regions to rent in; else all that the account has switched on"),
  PLUG_OPTION ("instance_types", GPUB_OPT_LIST, 0, NULL,
               "types to offer, with * for any text; else [\"g*\", \"p*\"], all that have GPUs"),
  PLUG_OPTION ("vpc", GPUB_OPT_STRING, 0, NULL,
               "VPC with a subnet in each zone to rent in; else the region's default"),
  PLUG_OPTION ("ssh_from", GPUB_OPT_STRING, 0, "0.0.0.0/0", "network that may reach port 22"),
  PLUG_OPTION (
      "ami_parameter", GPUB_OPT_STRING, 0,
      "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
      "SSM parameter with the image's id; x86_64 in it becomes arm64 for such types"),
  PLUG_OPTION ("ami_owner", GPUB_OPT_STRING, 0, "898082745236",
               "owner of the image where the parameter is not there"),
  PLUG_OPTION ("ami_name", GPUB_OPT_STRING, 0,
               "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *",
               "its name; the newest counts"),
  PLUG_OPTION ("ssh_user", GPUB_OPT_STRING, 0, "ubuntu", "user of the image"),
  PLUG_OPTION ("disk_gib", GPUB_OPT_INT, 0, "100", "disk where nobody asks for a size"),
  PLUG_OPTION ("ip_price", GPUB_OPT_MONEY, 0, "0.005", "public IPv4 address, dollars an hour"),
  PLUG_OPTION ("endpoint", GPUB_OPT_STRING, 0, NULL, "address of every service, for tests"),
  PLUG_OPTION ("endpoints", GPUB_OPT_JSON, 0, NULL,
               "addresses by service: { ec2, ssm, sts, pricing, imds }; {region} stands for it"),
};

static void
aws_close (void *self)
{
  struct aws *s = self;
  char *const texts[] = { s->owner,       s->endpoint,        s->profile,       s->shared_file,
                          s->config_file, s->credentials_url, s->ami_parameter, s->ami_owner,
                          s->ami_name,    s->ssh_user,        s->ssh_from,      s->vpc };

  for (size_t i = 0; i < N_ELEMENTS (texts); i++)
    free (texts[i]);
  json_decref (s->endpoints);
  json_decref (s->regions);
  json_decref (s->types);
  json_decref (s->cache);
  explicit_bzero (&s->keys, sizeof s->keys);
  pthread_mutex_destroy (&s->lock);
  pthread_mutex_destroy (&s->renewal);
  free (s);
}

static char *
text_option (const struct gpub_config *config, const char *name)
{
  const char *text = plug_option (config, name);

  return text ? strdup (text) : NULL;
}

static char *
file_option (const struct gpub_config *config, const char *name, const char *below_home)
{
  const char *text = plug_option (config, name), *home = getenv ("HOME");
  char path[1024];

  if (text)
    return strdup (text);
  snprintf (path, sizeof path, "%s/%s", home ? home : "", below_home);
  return strdup (path);
}

static void
fill (struct aws *s, const struct gpub_config *config)
{
  const char *json = plug_option (config, "endpoints");

  s->owner = strdup (config->owner ? config->owner : "");
  s->endpoint = text_option (config, "endpoint");
  s->endpoints = json ? json_loads (json, 0, NULL) : NULL;
  s->regions = plug_option_list (config, "regions");
  s->types = plug_option_list (config, "instance_types");
  s->profile = text_option (config, "profile");
  s->shared_file = file_option (config, "shared_credentials_file", ".aws/credentials");
  s->config_file = file_option (config, "config_file", ".aws/config");
  s->credentials_url = text_option (config, "credentials_url");
  s->ami_parameter = text_option (config, "ami_parameter");
  s->ami_owner = text_option (config, "ami_owner");
  s->ami_name = text_option (config, "ami_name");
  s->ssh_user = text_option (config, "ssh_user");
  s->ssh_from = text_option (config, "ssh_from");
  s->vpc = text_option (config, "vpc");
  s->ip_udollar = strtoull (plug_option (config, "ip_price"), NULL, 10);
  s->disk_gib = (uint32_t) strtoul (plug_option (config, "disk_gib"), NULL, 10);
  s->imds = strcmp (plug_option (config, "imds"), "true") == 0;
  if (json_array_size (s->types) == 0) {
    json_array_append_new (s->types, json_string ("g*"));
    json_array_append_new (s->types, json_string ("p*"));
  }
}

static int32_t
check (const struct aws *s, struct gpub_error *err)
{
  const json_t *row;
  size_t i;

  json_array_foreach (s->regions, i, row)
    if (!region_valid (json_string_value (row)))
      return plug_error (err, GPUB_E_INVALID, "regions: '%.40s' is no region such as us-east-1",
                         json_string_value (row));
  if (!strchr (s->ssh_from, '/'))
    return plug_error (err, GPUB_E_INVALID, "ssh_from: '%.60s' is no network such as 192.0.2.0/24",
                       s->ssh_from);
  if (s->disk_gib < 1 || s->disk_gib > DISK_MAX_GIB)
    return plug_error (err, GPUB_E_INVALID, "disk_gib: %u is not 1 to %d", s->disk_gib,
                       DISK_MAX_GIB);
  if (s->endpoint && strncmp (s->endpoint, "http://", 7) != 0 &&
      strncmp (s->endpoint, "https://", 8) != 0)
    return plug_error (err, GPUB_E_INVALID, "endpoint: '%.100s' is no http:// or https:// URL",
                       s->endpoint);
  if (s->endpoints && !json_is_object (s->endpoints))
    return plug_error (err, GPUB_E_INVALID, "endpoints: a group is wanted, { ec2 = \"...\"; }");
  return GPUB_OK;
}

static int32_t
aws_open (const struct gpub_host *host, struct gpub_call *call, const struct gpub_config *config,
          void **self, struct gpub_error *err)
{
  struct aws *s = calloc (1, sizeof *s);
  int32_t rc;

  (void) call;
  if (!s)
    return plug_error (err, GPUB_E_INTERNAL, "out of memory");
  s->host = host;
  s->cache = json_object ();
  pthread_mutex_init (&s->lock, NULL);
  pthread_mutex_init (&s->renewal, NULL);
  fill (s, config);
  rc = check (s, err);
  if (rc == GPUB_OK)
    *self = s;
  else
    aws_close (s);
  return rc;
}

static int32_t
aws_probe (void *self, struct gpub_call *call, struct gpub_identity *identity,
           struct gpub_error *err)
{
  struct aws *s = self;
  const char *region = json_string_value (json_array_get (s->regions, 0));
  struct ctx c = { s, call, err, region ? region : "us-east-1", 0 };
  char account[ACCOUNT_MAX], arn[200];
  int32_t rc = account_read (&c, account, arn, sizeof arn);

  if (rc != GPUB_OK)
    return rc;
  snprintf (identity->account, sizeof identity->account, "%s", account);
  snprintf (identity->text, sizeof identity->text, "%s", arn);
  return GPUB_OK;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "aws",
  .version = PACKAGE_VERSION,
  .description = "AWS: GPU machines of EC2",
  .options = options,
  .noptions = N_ELEMENTS (options),
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_TAGS | GPUB_CAP_USER_DATA | GPUB_CAP_SPOT |
          GPUB_CAP_OPEN_PORTS | GPUB_CAP_KILL_SWITCH | GPUB_CAP_CONSOLE | GPUB_CAP_HOSTS_KUBERNETES,
  .max_parallel = 8,
  .visibility_lag_ms = VISIBILITY_LAG_MS,
  .idempotency_window_s = 12 * 3600,
  .user_data_max = USER_DATA_MAX,
  .user_data_flags = GPUB_USER_DATA_PLAIN,
  .open = aws_open,
  .close = aws_close,
  .probe = aws_probe,
  .list_offers = aws_list_offers,
  .create = aws_create,
  .get = aws_get,
  .find = aws_find,
  .list = aws_list,
  .remove = aws_remove,
  .set_not_after = aws_set_not_after,
  .console_log = aws_console_log,
};

const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
