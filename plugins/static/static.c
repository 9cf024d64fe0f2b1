/* static.c - the provider table of machines one already owns */
#include "config.h"

#include "plugins/static/static.h"

static const struct gpub_option options[] = {
  {
      .size = sizeof options[0],
      .name = "hosts",
      .type = GPUB_OPT_JSON,
      .flags = GPUB_OPT_REQUIRED,
      .help = "list of machines: address, port, user, name, gpu, gpus, vram_gib, price, zone, ...",
  },
};

static void
static_close (void *self)
{
  struct plant *p = self;

  if (!p)
    return;
  for (size_t i = 0; i < p->machines.n; i++)
    json_decref (p->machines.at[i].conf);
  vec_free (&p->machines);
  pthread_mutex_destroy (&p->lock);
  free (p);
}

static int32_t
static_open (const struct gpub_host *host, struct gpub_call *call, const struct gpub_config *config,
             void **self, struct gpub_error *err)
{
  struct plant *p = calloc (1, sizeof *p);
  int32_t rc;

  (void) call;
  if (!p)
    return plug_error (err, GPUB_E_INTERNAL, "out of memory");
  p->host = host;
  pthread_mutex_init (&p->lock, NULL);
  rc = hosts_read (p, plug_option (config, "hosts"), err);
  if (rc == GPUB_OK)
    *self = p;
  else
    static_close (p);
  return rc;
}

static int32_t
static_probe (void *self, struct gpub_call *call, struct gpub_identity *identity,
              struct gpub_error *err)
{
  struct visit v = { self, call, err };
  AUTO_JSON json_t *claims = NULL;
  int32_t rc = claims_read (&v, &claims);

  snprintf (identity->account, sizeof identity->account, "static");
  snprintf (identity->text, sizeof identity->text, "%zu machines, %zu claimed", v.plant->machines.n,
            json_object_size (claims));
  return rc;
}

static const struct gpub_provider provider = {
  .size = sizeof provider,
  .abi = GPUB_ABI,
  .name = "static",
  .version = PACKAGE_VERSION,
  .description = "machines you already own",
  .options = options,
  .noptions = N_ELEMENTS (options),
  .options_stride = sizeof options[0],
  .caps = GPUB_CAP_TAGS | GPUB_CAP_HOSTS_KUBERNETES | GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_REUSED,
  .max_parallel = 8,
  .idempotency_window_s = 10u * 365 * 24 * 3600, /* a token is known as long as its claim stands */
  .open = static_open,
  .close = static_close,
  .probe = static_probe,
  .list_offers = static_list_offers,
  .create = static_create,
  .get = static_get,
  .find = static_find,
  .list = static_list,
  .remove = static_remove,
};

const struct gpub_provider *
gpub_provider_entry (uint32_t host_abi)
{
  return host_abi == GPUB_ABI ? &provider : NULL;
}
