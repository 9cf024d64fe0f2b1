/* conf.c - /etc/gpubroker/gpubroker.conf as typed structs
 *
 * The parts read themselves (conf_*.c); here is their order, and what only the whole can tell.
 */
#include "config.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/conf_read.h"
#include "core/json.h"

/* Localities come after providers, whose names they use. */
static const struct {
  const char *name;
  int (*read) (const config_setting_t *s, struct conf *c, struct err *e);
} parts[] = {
  { "broker", conf_read_broker },         { "bus", conf_read_bus },
  { "defaults", conf_read_defaults },     { "limits", conf_read_limits },
  { "providers", conf_read_providers },   { "clusters", conf_read_clusters },
  { "localities", conf_read_localities },
};

static int
check_names (const config_setting_t *root, const char *path, struct err *e)
{
  struct field fields[N_ELEMENTS (parts)];

  for (size_t i = 0; i < N_ELEMENTS (parts); i++)
    fields[i] = (struct field){ parts[i].name, FIELD_IGNORE, 0, NULL, NULL };
  return conf_group (root, path, "the configuration", fields, N_ELEMENTS (fields), NULL, e);
}

static int
default_bus (struct conf *c, struct err *e)
{
  AUTO_FREE char *requests = NULL, *events = NULL;

  if (strlen (c->broker.run_dir) > 80) /* sun_path holds 107 bytes */
    return err_set (e, ERR_INVALID, "%s: 'run_dir' in broker is too long for a socket's path",
                    c->path);
  if (asprintf (&requests, "ipc://%s/bus", c->broker.run_dir) < 0 ||
      asprintf (&events, "ipc://%s/events", c->broker.run_dir) < 0)
    abort ();
  if (!c->bus.requests.n)
    conf_strings_add (&c->bus.requests, requests);
  if (!c->bus.events.n)
    conf_strings_add (&c->bus.events, events);
  return 0;
}

/* Nobody named: root and whoever runs the daemon. */
static void
default_uids (struct conf *c)
{
  const uint32_t uids[] = { 0, geteuid () };
  char principal[32];

  if (c->bus.uids || c->bus.nclients)
    return;
  c->bus.nuids = uids[1] ? 2 : 1;
  c->bus.uids = calloc (2, sizeof *c->bus.uids);
  if (!c->bus.uids)
    abort ();
  for (size_t i = 0; i < c->bus.nuids; i++) {
    snprintf (principal, sizeof principal, "uid:%u", uids[i]);
    c->bus.uids[i] = (struct conf_client){
      .uid = uids[i],
      .principal = strdup (principal),
      .rights = CONF_ADMIN,
      .limits = { UINT32_MAX, UINT64_MAX },
    };
  }
}

static int
no_cluster (const config_setting_t *s, const struct conf *c, struct err *e)
{
  const char *names[64] = { "standalone", "none" }, *near;
  size_t n = 2;

  for (size_t i = 0; i < c->nclusters && n < N_ELEMENTS (names); i++)
    names[n++] = c->clusters[i].name;
  near = nearest (c->defaults.cluster, names, n);
  return conf_error (
      s, c->path, e, "'cluster' in defaults names '%s', which is not configured%s%s%s",
      c->defaults.cluster, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int
check_defaults (const config_t *f, const struct conf *c, struct err *e)
{
  const char *name = c->defaults.cluster;

  if (strcmp (name, "standalone") == 0 || strcmp (name, "none") == 0 || conf_cluster (c, name))
    return 0;
  return no_cluster (config_lookup (f, "defaults.cluster"), c, e);
}

static const struct conf_locality *
locality (const struct conf *c, const char *name)
{
  for (size_t i = 0; i < c->nlocalities; i++)
    if (strcmp (c->localities[i].name, name) == 0)
      return &c->localities[i];
  return NULL;
}

static int
check_localities (const struct conf *c, struct err *e)
{
  for (size_t i = 0; i < c->nclusters; i++) {
    const struct conf_cluster *k = &c->clusters[i];

    if (k->locality && !locality (c, k->locality))
      return err_set (e, ERR_INVALID,
                      "%s:%u: cluster '%s' names locality '%s', which is not in localities",
                      c->path, k->line, k->name, k->locality);
  }
  return 0;
}

static int
read_parts (const config_t *f, struct conf *c, struct err *e)
{
  if (check_names (config_root_setting (f), c->path, e) < 0)
    return -1;
  for (size_t i = 0; i < N_ELEMENTS (parts); i++) {
    const config_setting_t *s = config_lookup (f, parts[i].name);

    if (s && parts[i].read (s, c, e) < 0)
      return -1;
  }
  conf_add_standalone (c);
  default_uids (c);
  if (default_bus (c, e) < 0 || check_defaults (f, c, e) < 0)
    return -1;
  return check_localities (c, e);
}

static int
syntax_error (const config_t *f, const char *path, struct err *e)
{
  const char *file = config_error_file (f), *text = config_error_text (f);

  if (config_error_type (f) == CONFIG_ERR_FILE_IO)
    return err_set (e, ERR_INVALID, "%s: cannot be read: %s", file ? file : path, strerror (errno));
  return err_set (e, ERR_INVALID, "%s:%d: %s%s", file ? file : path, config_error_line (f), text,
                  strcmp (text, "syntax error") == 0
                      ? " (a missing ';', quote or bracket, here or just before?)"
                      : "");
}

static int
read_config (config_t *f, int parsed, const char *path, struct conf *c, struct err *e)
{
  int rc;

  memset (c, 0, sizeof *c);
  if (parsed != CONFIG_TRUE)
    return syntax_error (f, path, e);
  conf_set (&c->path, path);
  conf_part_defaults (c);
  rc = read_parts (f, c, e);
  if (rc < 0)
    conf_free (c);
  return rc;
}

/* Whoever can write the configuration can run commands as the daemon. */
static int
check_file (const char *path, struct err *e)
{
  struct stat st;

  if (stat (path, &st) < 0)
    return err_set (e, ERR_INVALID, "%s: %s%s", path, strerror (errno),
                    errno == ENOENT ? "; write one, or name another with --config" : "");
  if (!S_ISREG (st.st_mode))
    return err_set (e, ERR_INVALID, "%s: is no regular file", path);
  if (st.st_uid != 0 && st.st_uid != geteuid ())
    return err_set (e, ERR_INVALID, "%s: belongs to uid %u: it must be root's or the daemon's own",
                    path, st.st_uid);
  if (st.st_mode & S_IWOTH)
    return err_set (e, ERR_INVALID, "%s: everybody can write it: chmod o-w it", path);
  return 0;
}

int
conf_load (const char *path, struct conf *c, struct err *e)
{
  AUTO_FREE char *copy = strdup (path);
  config_t f;
  int rc;

  memset (c, 0, sizeof *c);
  if (check_file (path, e) < 0)
    return -1;
  config_init (&f);
  config_set_include_dir (&f, dirname (copy));
  errno = 0;
  rc = read_config (&f, config_read_file (&f, path), path, c, e);
  config_destroy (&f);
  return rc;
}

int
conf_parse (const char *text, const char *path, struct conf *c, struct err *e)
{
  config_t f;
  int rc;

  config_init (&f);
  rc = read_config (&f, config_read_string (&f, text), path, c, e);
  config_destroy (&f);
  return rc;
}

static void
free_clients (struct conf_client *all, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    free (all[i].key);
    free (all[i].principal);
  }
  free (all);
}

static void
free_provider (struct conf_provider *p)
{
  free (p->name);
  free (p->plugin);
  json_decref (p->http);
  json_decref (p->options);
  for (size_t i = 0; i < p->nsecrets; i++)
    conf_secret_free (&p->secrets[i]);
  free (p->secrets);
}

static void
free_cluster (struct conf_cluster *k)
{
  char *strings[] = { k->name,        k->type,           k->namespace_,    k->control_plane,
                      k->k0s_version, k->k0s_url,        k->k0s_sha256[0], k->k0s_sha256[1],
                      k->cni,         k->locality,       k->gpu_stack,     k->device_plugin_image,
                      k->test_image,  k->gpu_test_image, k->test_egress,   k->storage_class };

  for (size_t i = 0; i < N_ELEMENTS (strings); i++)
    free (strings[i]);
  conf_secret_free (&k->kubeconfig);
  json_decref (k->node_labels);
  conf_strings_free (&k->taints);
}

static void
free_broker (struct conf_broker *b)
{
  free (b->name);
  free (b->state_dir);
  free (b->run_dir);
  free (b->provider_dir);
  free (b->notify_command);
  free (b->metrics_file);
}

void
conf_free (struct conf *c)
{
  free (c->path);
  free_broker (&c->broker);
  conf_strings_free (&c->bus.requests);
  conf_strings_free (&c->bus.events);
  conf_secret_free (&c->bus.curve_secret_key);
  free_clients (c->bus.uids, c->bus.nuids);
  free_clients (c->bus.clients, c->bus.nclients);
  free (c->defaults.cluster);
  for (size_t i = 0; i < c->nproviders; i++)
    free_provider (&c->providers[i]);
  free (c->providers);
  for (size_t i = 0; i < c->nclusters; i++)
    free_cluster (&c->clusters[i]);
  free (c->clusters);
  for (size_t i = 0; i < c->nlocalities; i++) {
    free (c->localities[i].name);
    conf_strings_free (&c->localities[i].members);
  }
  free (c->localities);
  memset (c, 0, sizeof *c);
}

const struct conf_provider *
conf_provider (const struct conf *c, const char *name)
{
  for (size_t i = 0; i < c->nproviders; i++)
    if (strcmp (c->providers[i].name, name) == 0)
      return &c->providers[i];
  return NULL;
}

const struct conf_cluster *
conf_cluster (const struct conf *c, const char *name)
{
  for (size_t i = 0; i < c->nclusters; i++)
    if (strcmp (c->clusters[i].name, name) == 0)
      return &c->clusters[i];
  return NULL;
}

const struct conf_cluster *
conf_hosted (const struct conf *c, const char *name)
{
  const struct conf_cluster *k = name ? conf_cluster (c, name) : NULL;

  return k && !conf_is_standalone (k) ? k : NULL;
}
