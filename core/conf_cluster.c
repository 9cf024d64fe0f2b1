/* conf_cluster.c - the list clusters and the group localities */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/conf_read.h"

static const char *const types[] = { "k0smotron", "kubeconfig", "standalone", NULL };
static const char *const stacks[] = { "device-plugin", "gpu-operator", "none", NULL };
static const char *const cross_node[] = { "optional", "required", NULL };

/* Reads a choice into a string member. */
static int
read_word (const config_setting_t *s, const char *path, const char *const *choices, char **out,
           struct err *e)
{
  const struct field f = { "", FIELD_CHOICE, 0, choices, NULL };
  int i = 0;

  if (conf_field (s, path, "a cluster", &f, &i, e) < 0)
    return -1;
  conf_set (out, choices[i]);
  return 0;
}

static int
read_type (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  return read_word (s, path, types, &((struct conf_cluster *) base)->type, e);
}

static int
read_stack (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  return read_word (s, path, stacks, &((struct conf_cluster *) base)->gpu_stack, e);
}

static int
read_cross_node (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const struct field f = { "", FIELD_CHOICE, 0, cross_node, NULL };
  int i = 0;

  if (conf_field (s, path, "a cluster", &f, &i, e) < 0)
    return -1;
  ((struct conf_cluster *) base)->cross_node = i == 1;
  return 0;
}

static int
read_kubeconfig (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  struct conf_secret *x = &((struct conf_cluster *) base)->kubeconfig;

  return conf_secret_setting (s, path, "a cluster", x, e) < 0 ? -1 : 0;
}

static bool
numbers (const char **p, int n)
{
  for (int i = 0; i < n; i++) {
    if (i && *(*p)++ != '.')
      return false;
    if (!isdigit ((unsigned char) **p))
      return false;
    while (isdigit ((unsigned char) **p))
      ++*p;
  }
  return true;
}

/* "v1.34.10+k0s.0"; Kubernetes objects cannot hold a '+' and spell it '-'. */
static int
read_version (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  const char *value = config_setting_get_string (s), *p = value;
  struct conf_cluster *c = base;
  char version[64];
  bool good;

  if (p && *p == 'v')
    p++;
  good = p && strlen (p) < sizeof version - 2 && numbers (&p, 3) && (*p == '+' || *p == '-') &&
         strncmp (p + 1, "k0s.", 4) == 0 && (p += 5, numbers (&p, 1)) && !*p;
  if (!good)
    return conf_error (s, path, e, "'k0s_version' in a cluster must look like \"v1.34.10+k0s.0\"");
  snprintf (version, sizeof version, "v%s", value + (*value == 'v'));
  *strpbrk (version, "+-") = '+';
  conf_set (&c->k0s_version, version);
  return 0;
}

static int
read_hex (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  const char *value = config_setting_get_string (s);
  int arch = strcmp (config_setting_name (s), "arm64") == 0;

  if (!value || strlen (value) != 64 || strspn (value, "0123456789abcdefABCDEF") != 64)
    return conf_error (s, path, e, "'%s' in k0s_sha256 must be 64 hexadecimal digits",
                       config_setting_name (s));
  conf_set (&((struct conf_cluster *) base)->k0s_sha256[arch], value);
  for (char *p = ((struct conf_cluster *) base)->k0s_sha256[arch]; *p; p++)
    *p = (char) tolower ((unsigned char) *p);
  return 0;
}

static int
read_sha256 (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  static const struct field fields[] = {
    { "amd64", FIELD_CUSTOM, 0, NULL, read_hex },
    { "arm64", FIELD_CUSTOM, 0, NULL, read_hex },
  };

  return conf_group (s, path, "k0s_sha256", fields, N_ELEMENTS (fields), base, e);
}

static int
add_label (const config_setting_t *s, json_t *labels, const char *path, struct err *e)
{
  AUTO_FREE char *pair =
      strdup (config_setting_get_string (s) ? config_setting_get_string (s) : "");
  char *eq = strchr (pair, '=');

  if (!eq || eq == pair)
    return conf_error (s, path, e, "'node_labels' in a cluster must be strings like \"team=ml\"");
  *eq = '\0';
  json_object_set_new (labels, pair, json_string (eq + 1));
  return 0;
}

/* A label's key has dots and slashes, which libconfig does not allow in a name: so they are strings
 * "key=value". */
static int
read_labels (const config_setting_t *s, void *base, const char *path, struct err *e)
{
  json_t *labels = ((struct conf_cluster *) base)->node_labels;

  if (config_setting_length (s) == 0 && config_setting_get_string (s))
    return add_label (s, labels, path, e);
  for (int i = 0; i < config_setting_length (s); i++)
    if (add_label (config_setting_get_elem (s, (unsigned) i), labels, path, e) < 0)
      return -1;
  return 0;
}

static const struct field fields[] = {
  { "name", FIELD_NAME, offsetof (struct conf_cluster, name), NULL, NULL },
  { "type", FIELD_CUSTOM, 0, NULL, read_type },
  { "kubeconfig_file", FIELD_CUSTOM, 0, NULL, read_kubeconfig },
  { "kubeconfig_env", FIELD_CUSTOM, 0, NULL, read_kubeconfig },
  { "kubeconfig_credential", FIELD_CUSTOM, 0, NULL, read_kubeconfig },
  { "namespace", FIELD_STRING, offsetof (struct conf_cluster, namespace_), NULL, NULL },
  { "control_plane", FIELD_STRING, offsetof (struct conf_cluster, control_plane), NULL, NULL },
  { "k0s_version", FIELD_CUSTOM, 0, NULL, read_version },
  { "k0s_url", FIELD_STRING, offsetof (struct conf_cluster, k0s_url), NULL, NULL },
  { "k0s_sha256", FIELD_CUSTOM, 0, NULL, read_sha256 },
  { "cni", FIELD_NAME, offsetof (struct conf_cluster, cni), NULL, NULL },
  { "cross_node", FIELD_CUSTOM, 0, NULL, read_cross_node },
  { "locality", FIELD_NAME, offsetof (struct conf_cluster, locality), NULL, NULL },
  { "gpu_stack", FIELD_CUSTOM, 0, NULL, read_stack },
  { "device_plugin_image", FIELD_STRING, offsetof (struct conf_cluster, device_plugin_image), NULL,
    NULL },
  { "test_image", FIELD_STRING, offsetof (struct conf_cluster, test_image), NULL, NULL },
  { "gpu_test_image", FIELD_STRING, offsetof (struct conf_cluster, gpu_test_image), NULL, NULL },
  { "test_egress", FIELD_STRING, offsetof (struct conf_cluster, test_egress), NULL, NULL },
  { "storage_class", FIELD_STRING, offsetof (struct conf_cluster, storage_class), NULL, NULL },
  { "allow_private", FIELD_BOOL, offsetof (struct conf_cluster, allow_private), NULL, NULL },
  { "node_labels", FIELD_CUSTOM, 0, NULL, read_labels },
  { "taints", FIELD_STRINGS, offsetof (struct conf_cluster, taints), NULL, NULL },
};

static int
check_cluster (const config_setting_t *s, struct conf_cluster *c, const char *path, struct err *e)
{
  if (strcmp (c->name, "none") == 0 ||
      (strcmp (c->name, "standalone") == 0) != conf_is_standalone (c))
    return conf_error (
        s, path, e,
        "a cluster of type '%s' cannot be named '%s': that word has a meaning of its own", c->type,
        c->name);
  if (!c->kubeconfig.option && !conf_is_standalone (c))
    return conf_error (s, path, e, "cluster '%s' needs 'kubeconfig_file'", c->name);
  if (strcmp (c->type, "k0smotron") == 0 && !c->control_plane)
    conf_set (&c->control_plane, c->name);
  for (size_t i = 0; i < c->taints.n; i++) {
    const char *effect = strrchr (c->taints.at[i], ':');

    if (!effect ||
        (strcmp (effect, ":NoSchedule") != 0 && strcmp (effect, ":PreferNoSchedule") != 0 &&
         strcmp (effect, ":NoExecute") != 0))
      return conf_error (s, path, e,
                         "taint '%.60s' of cluster '%s' must look like \"key=value:NoSchedule\"",
                         c->taints.at[i], c->name);
  }
  return 0;
}

bool
conf_is_standalone (const struct conf_cluster *k)
{
  return strcmp (k->type, "standalone") == 0;
}

static void
cluster_defaults (struct conf_cluster *c, const char *type)
{
  c->node_labels = json_object ();
  conf_set (&c->type, type);
  conf_set (&c->gpu_stack, stacks[0]);
  conf_set (&c->namespace_, "default");
}

/* There is always one named standalone; the configuration may say how it is made. */
void
conf_add_standalone (struct conf *c)
{
  struct conf_cluster *k = NULL;

  for (size_t i = 0; i < c->nclusters; i++)
    if (conf_is_standalone (&c->clusters[i]))
      k = &c->clusters[i];
  if (!k) {
    if (!c->clusters)
      c->clusters = calloc (1, sizeof *c->clusters);
    if (!c->clusters)
      abort ();
    k = &c->clusters[c->nclusters++]; /* there is room for it */
    cluster_defaults (k, "standalone");
    conf_set (&k->name, "standalone");
  }
  if (!k->k0s_version)
    conf_set (&k->k0s_version, "v1.34.10+k0s.0");
}

static int
read_cluster (const config_setting_t *s, struct conf_cluster *c, const char *path, struct err *e)
{
  const char *name = NULL;
  char where[64];

  cluster_defaults (c, types[0]);
  c->line = config_setting_source_line (s);
  if (!config_setting_is_group (s))
    return conf_error (s, path, e, "clusters must be a list of groups: ( { name = ...; } )");
  if (config_setting_lookup_string (s, "name", &name) != CONFIG_TRUE)
    return conf_error (s, path, e, "a cluster needs a 'name'");
  snprintf (where, sizeof where, "cluster '%.32s'", name);
  if (conf_group (s, path, where, fields, N_ELEMENTS (fields), c, e) < 0)
    return -1;
  return check_cluster (s, c, path, e);
}

int
conf_read_clusters (const config_setting_t *s, struct conf *c, struct err *e)
{
  if (!config_setting_is_list (s))
    return conf_error (s, c->path, e, "clusters must be a list: ( { name = ...; }, ... )");
  c->clusters = calloc ((size_t) config_setting_length (s) + 1, sizeof *c->clusters);
  if (!c->clusters)
    abort ();
  for (int i = 0; i < config_setting_length (s); i++) {
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    struct conf_cluster *k = &c->clusters[c->nclusters++];

    if (read_cluster (x, k, c->path, e) < 0)
      return -1;
    for (size_t j = 0; j + 1 < c->nclusters; j++)
      if (strcmp (c->clusters[j].name, k->name) == 0)
        return conf_error (x, c->path, e,
                           "cluster '%s' is already on line %u: give it another name", k->name,
                           c->clusters[j].line);
  }
  return 0;
}

static int
check_member (const config_setting_t *s, const char *member, const struct conf *c, struct err *e)
{
  char provider[64];
  size_t n = strcspn (member, "/:");
  const char *colon = strchr (member, ':');

  if (!colon || !n || !colon[1] || n >= sizeof provider)
    return conf_error (
        s, c->path, e,
        "'%.60s' in locality '%s' must be \"PROVIDER:REGION\" or \"PROVIDER/SUBCLOUD:REGION\"",
        member, config_setting_name (s));
  memcpy (provider, member, n);
  provider[n] = '\0';
  if (!conf_provider (c, provider))
    return conf_error (s, c->path, e, "locality '%s' names provider '%s', which is not configured",
                       config_setting_name (s), provider);
  return 0;
}

int
conf_read_localities (const config_setting_t *s, struct conf *c, struct err *e)
{
  if (!config_setting_is_group (s))
    return conf_error (s, c->path, e,
                       "localities must be a group: { name = [ \"provider:region\" ]; }");
  c->localities = calloc ((size_t) config_setting_length (s) + 1, sizeof *c->localities);
  if (!c->localities)
    abort ();
  for (int i = 0; i < config_setting_length (s); i++) {
    static const struct field f = { "", FIELD_STRINGS, 0, NULL, NULL };
    const config_setting_t *x = config_setting_get_elem (s, (unsigned) i);
    struct conf_locality *l = &c->localities[c->nlocalities++];

    conf_set (&l->name, config_setting_name (x));
    if (conf_field (x, c->path, "localities", &f, &l->members, e) < 0)
      return -1;
    for (size_t j = 0; j < l->members.n; j++)
      if (check_member (x, l->members.at[j], c, e) < 0)
        return -1;
  }
  return 0;
}
