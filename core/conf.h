/* conf.h - /etc/gpubroker/gpubroker.conf as typed structs
 *
 * Holds no secret: only where each one is.  Everything has a default, so that an absent group is a
 * zeroless struct. Money is micro-dollars, time milliseconds.  Strings are never NULL unless the
 * comment says so.
 */
#ifndef GPUB_CONF_H
#define GPUB_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"
#include "core/filter.h"

#define CONF_DEFAULT_PATH "/etc/gpubroker/gpubroker.conf"

struct conf_strings {
  char **at;
  size_t n;
};

enum conf_source { CONF_FILE, CONF_ENV, CONF_CREDENTIAL };

struct conf_secret {
  char *option; /* "api_key"; NULL: there is none */
  enum conf_source source;
  char *where; /* path, variable or name of a systemd credential */
  unsigned line;
};

struct conf_limits { /* UINT32_MAX and UINT64_MAX: no bound */
  uint32_t leases;
  uint64_t udollar_per_hour;
};

enum conf_rights { CONF_READ = 1, CONF_RENT = 2, CONF_ADMIN = 4 }; /* numbers of enum bus_rights */

struct conf_client { /* a uid on ipc, or a CURVE key on tcp */
  uint32_t uid;
  char *key; /* z85; NULL for a uid */
  char *principal;
  enum conf_rights rights;
  struct conf_limits limits;
};

struct conf_broker {
  char *name, *state_dir, *run_dir;
  char *provider_dir;                  /* NULL: where they were installed */
  char *notify_command, *metrics_file; /* NULL: none */
  int64_t metrics_every_ms;
  int log_level;                       /* syslog */
  uint32_t keep_days;
  int64_t orphans_release_after_ms; /* 0: orphans are only reported */
};

struct conf_bus {
  struct conf_strings requests, events;
  struct conf_client *uids;
  size_t nuids;
  struct conf_secret curve_secret_key;
  struct conf_client *clients;
  size_t nclients;
};

struct conf_defaults {
  int64_t ttl_ms, deadline_ms; /* ttl 0: none */
  uint64_t max_price_udollar;  /* UINT64_MAX: none */
  bool max_price_per_gpu;
  char *cluster; /* "NAME", "standalone" or "none" */
  bool on_failure_keep;
  int64_t keep_ms;
  enum filter_market market;
  uint32_t disk_gib;
  bool kubernetes;
  int64_t stale_ms, expire_ms; /* of offers: flagged, then excluded */
};

struct conf_all_limits {
  struct conf_limits all, per_owner;
  uint32_t joins, removals_per_round;
};

struct conf_provider {
  char *name, *plugin;
  bool paused;
  int64_t offers_every_ms, reconcile_every_ms;
  uint64_t balance_udollar; /* less on the account: an alarm; 0: never */
  int64_t balance_ms;       /* the same as time at the rate that is spent */
  json_t *http;    /* the reserved options, as CONFIG of docs/children.md wants them */
  json_t *options; /* everything else, no secrets in it */
  struct conf_secret *secrets;
  size_t nsecrets;
  unsigned line;
};

struct conf_cluster {
  char *name, *type; /* "k0smotron", "kubeconfig" or "standalone" */
  struct conf_secret kubeconfig;
  char *namespace_, *control_plane;
  char *k0s_version;          /* with "+k0s."; NULL: ask the cluster */
  char *k0s_url;              /* NULL: the release page's */
  char *k0s_sha256[2];        /* amd64, arm64; NULL: not pinned */
  char *cni;                  /* NULL: ask the cluster */
  bool cross_node;            /* required */
  char *locality;             /* NULL: none */
  char *gpu_stack;            /* "device-plugin", "gpu-operator", "none" */
  char *device_plugin_image;  /* NULL: the pinned one */
  char *test_image, *gpu_test_image, *test_egress, *storage_class; /* of verify --network */
  bool allow_private;         /* a control plane with a private address is meant */
  json_t *node_labels;        /* object of strings */
  struct conf_strings taints; /* "key=value:NoSchedule" */
  unsigned line;
};

struct conf_locality {
  char *name;
  struct conf_strings members; /* "PROVIDER[/SUBCLOUD]:REGION" */
};

struct conf {
  char *path;
  struct conf_broker broker;
  struct conf_bus bus;
  struct conf_defaults defaults;
  struct conf_all_limits limits;
  struct conf_provider *providers;
  size_t nproviders;
  struct conf_cluster *clusters;
  size_t nclusters;
  struct conf_locality *localities;
  size_t nlocalities;
};

/* On failure *c is empty and needs no conf_free. */
int conf_load (const char *path, struct conf *c, struct err *e);
/* The same from memory; path only names it in errors. */
int conf_parse (const char *text, const char *path, struct conf *c, struct err *e);
void conf_free (struct conf *c);

const struct conf_provider *conf_provider (const struct conf *c, const char *name);
const struct conf_cluster *conf_cluster (const struct conf *c, const char *name);
/* The same, if its control plane is elsewhere; NULL for one of its own. */
const struct conf_cluster *conf_hosted (const struct conf *c, const char *name);
bool conf_is_standalone (const struct conf_cluster *k);

/* At first every NAME_file, NAME_env and NAME_credential of a provider is taken for a secret.  Once
 * its plugin has said which options there are (gpubroker-provider --describe), those it declares
 * under their full name go back among the options. */
void conf_provider_declared (struct conf_provider *p, const char *const *names, size_t n);

/* Reads a secret: at most 64 KiB, whitespace at its end cut, NUL-ended for convenience.  A file
 * that others than its owner can read is refused.  The caller explicit_bzero()s and frees *bytes.
 * No error text has a byte of it. */
int conf_read_secret (const struct conf_secret *s, char **bytes, size_t *len, struct err *e);

/* "90s", "5m", "2h", "7d", "500ms" -> milliseconds; -1 when it is none. */
int64_t duration_parse (const char *text);

#endif
