/* conf_parts.c - the groups broker, defaults and limits */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/conf_read.h"

#define HOURS(n)   ((n) *INT64_C (3600000))
#define MINUTES(n) ((n) *INT64_C (60000))

void
conf_part_defaults (struct conf *c)
{
  conf_set (&c->broker.name, "gpubroker");
  conf_set (&c->broker.state_dir, "/var/lib/gpubroker");
  conf_set (&c->broker.run_dir, "/run/gpubroker");
  c->broker.log_level = 6;
  c->broker.keep_days = 30;
  c->broker.metrics_every_ms = 15000;

  c->defaults.ttl_ms = HOURS (12);
  c->defaults.deadline_ms = MINUTES (45);
  c->defaults.max_price_udollar = UINT64_MAX;
  conf_set (&c->defaults.cluster, "standalone");
  c->defaults.on_failure_keep = true;
  c->defaults.keep_ms = HOURS (1);
  c->defaults.market = MARKET_ON_DEMAND;
  c->defaults.disk_gib = 100;
  c->defaults.kubernetes = true;
  c->defaults.stale_ms = MINUTES (3);
  c->defaults.expire_ms = MINUTES (15);

  c->limits.all.leases = c->limits.per_owner.leases = UINT32_MAX;
  c->limits.all.udollar_per_hour = c->limits.per_owner.udollar_per_hour = UINT64_MAX;
  c->limits.joins = 32;
  c->limits.removals_per_round = 5;
}

static const char *const levels[] = { "emerg",  "alert", "crit",  "error", "warning",
                                      "notice", "info",  "debug", NULL };

int
conf_read_broker (const config_setting_t *s, struct conf *c, struct err *e)
{
  static const struct field fields[] = {
    { "name", FIELD_NAME, offsetof (struct conf_broker, name), NULL, NULL },
    { "state_dir", FIELD_PATH, offsetof (struct conf_broker, state_dir), NULL, NULL },
    { "run_dir", FIELD_PATH, offsetof (struct conf_broker, run_dir), NULL, NULL },
    { "provider_dir", FIELD_PATH, offsetof (struct conf_broker, provider_dir), NULL, NULL },
    { "notify_command", FIELD_PATH, offsetof (struct conf_broker, notify_command), NULL, NULL },
    { "metrics_file", FIELD_PATH, offsetof (struct conf_broker, metrics_file), NULL, NULL },
    { "metrics_every", FIELD_DURATION, offsetof (struct conf_broker, metrics_every_ms), NULL,
      NULL },
    { "log_level", FIELD_CHOICE, offsetof (struct conf_broker, log_level), levels, NULL },
    { "keep_days", FIELD_COUNT, offsetof (struct conf_broker, keep_days), NULL, NULL },
    { "orphans_release_after", FIELD_TTL, offsetof (struct conf_broker, orphans_release_after_ms),
      NULL, NULL },
  };

  if (conf_group (s, c->path, "broker", fields, N_ELEMENTS (fields), &c->broker, e) < 0)
    return -1;
  if (c->broker.metrics_every_ms < 1000)
    return conf_error (s, c->path, e, "'metrics_every' in broker must be at least \"1s\"");
  return 0;
}

/* "keep", "keep:2h" or "release". */
static int
read_on_failure (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  const char *value = config_setting_get_string (s);
  struct conf_defaults *d = base;
  int64_t keep = d->keep_ms;

  if (value && strcmp (value, "release") == 0) {
    d->on_failure_keep = false;
    return 0;
  }
  if (value && strncmp (value, "keep:", 5) == 0)
    keep = duration_parse (value + 5);
  else if (!value || strcmp (value, "keep") != 0)
    keep = -1;
  if (keep < 0)
    return conf_error (s, path, e,
                       "'on_failure' in defaults must be \"release\", \"keep\" or \"keep:1h\"");
  d->on_failure_keep = true;
  d->keep_ms = keep;
  return 0;
}

static int
read_market (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const char *const names[] = { "on-demand", "spot", "any", NULL };
  static const struct field f = { "market", FIELD_CHOICE, 0, names, NULL };
  int market = 0;

  if (conf_field (s, path, "defaults", &f, &market, e) < 0)
    return -1;
  ((struct conf_defaults *) base)->market = (enum filter_market) market;
  return 0;
}

static int
read_max_price_per (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const char *const names[] = { "machine", "gpu", NULL };
  static const struct field f = { "max_price_per", FIELD_CHOICE, 0, names, NULL };
  int per = 0;

  if (conf_field (s, path, "defaults", &f, &per, e) < 0)
    return -1;
  ((struct conf_defaults *) base)->max_price_per_gpu = per == 1;
  return 0;
}

int
conf_read_defaults (const config_setting_t *s, struct conf *c, struct err *e)
{
  static const struct field fields[] = {
    { "ttl", FIELD_TTL, offsetof (struct conf_defaults, ttl_ms), NULL, NULL },
    { "deadline", FIELD_DURATION, offsetof (struct conf_defaults, deadline_ms), NULL, NULL },
    { "max_price", FIELD_MONEY, offsetof (struct conf_defaults, max_price_udollar), NULL, NULL },
    { "max_price_per", FIELD_CUSTOM, 0, NULL, read_max_price_per },
    { "cluster", FIELD_NAME, offsetof (struct conf_defaults, cluster), NULL, NULL },
    { "on_failure", FIELD_CUSTOM, 0, NULL, read_on_failure },
    { "market", FIELD_CUSTOM, 0, NULL, read_market },
    { "disk_gib", FIELD_COUNT, offsetof (struct conf_defaults, disk_gib), NULL, NULL },
    { "kubernetes", FIELD_BOOL, offsetof (struct conf_defaults, kubernetes), NULL, NULL },
    { "offers_stale_after", FIELD_DURATION, offsetof (struct conf_defaults, stale_ms), NULL, NULL },
    { "offers_expire_after", FIELD_DURATION, offsetof (struct conf_defaults, expire_ms), NULL,
      NULL },
  };
  struct conf_defaults *d = &c->defaults;

  if (conf_group (s, c->path, "defaults", fields, N_ELEMENTS (fields), d, e) < 0)
    return -1;
  if (d->expire_ms < d->stale_ms)
    return conf_error (
        s, c->path, e,
        "'offers_expire_after' in defaults must not be less than 'offers_stale_after'");
  if (d->deadline_ms == 0)
    return conf_error (s, c->path, e, "'deadline' in defaults must be more than 0s");
  return 0;
}

static const struct field limit_fields[] = {
  { "leases", FIELD_COUNT, offsetof (struct conf_limits, leases), NULL, NULL },
  { "dollars_per_hour", FIELD_MONEY, offsetof (struct conf_limits, udollar_per_hour), NULL, NULL },
};

static int
read_per_owner (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  return conf_group (s, path, "limits.per_owner", limit_fields, N_ELEMENTS (limit_fields),
                     &((struct conf_all_limits *) base)->per_owner, e);
}

int
conf_read_limits (const config_setting_t *s, struct conf *c, struct err *e)
{
  static const struct field fields[] = {
    { "leases", FIELD_COUNT, offsetof (struct conf_all_limits, all.leases), NULL, NULL },
    { "dollars_per_hour", FIELD_MONEY, offsetof (struct conf_all_limits, all.udollar_per_hour),
      NULL, NULL },
    { "joins", FIELD_COUNT, offsetof (struct conf_all_limits, joins), NULL, NULL },
    { "removals_per_round", FIELD_COUNT, offsetof (struct conf_all_limits, removals_per_round),
      NULL, NULL },
    { "per_owner", FIELD_CUSTOM, 0, NULL, read_per_owner },
  };

  if (conf_group (s, c->path, "limits", fields, N_ELEMENTS (fields), &c->limits, e) < 0)
    return -1;
  if (c->limits.joins == 0)
    return conf_error (s, c->path, e, "'joins' in limits must be at least 1");
  return 0;
}
