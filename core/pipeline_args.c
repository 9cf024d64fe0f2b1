/* pipeline_args.c - the arguments of the pipeline's calls, from a lease and its attempt */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/pipeline_args.h"
#include "core/truth.h"

static void
put_number (json_t *params, const char *name, int64_t value)
{
  char text[24];

  snprintf (text, sizeof text, "%lld", (long long) value);
  json_put_str (params, name, text);
}

/* ---- labels: the same on every provider ---- */

static void
put_label (json_t *labels, const char *name, const char *value)
{
  char clean[64];
  size_t n = 0;

  for (; value && *value && n < sizeof clean - 1; value++)
    clean[n++] = isalnum ((unsigned char) *value) || strchr ("-_.", *value) ? *value : '-';
  while (n && !isalnum ((unsigned char) clean[n - 1]))
    n--;
  clean[n] = '\0';
  if (n)
    json_put_str (labels, name, clean);
}

static json_t *
labels (const struct lease *l, const struct attempt *a)
{
  const struct conf_cluster *k = conf_cluster (&l->broker->conf, l->cluster);
  const json_t *offer = a->offer, *own = json_object_get (l->request, "labels");
  json_t *j = json_object (), *value;
  const char *name;
  char product[64];

  if (truth_gpus (offer)) {
    truth_product (offer, l->facts, product, sizeof product);
    put_label (j, "nvidia.com/gpu.present", "true");
    put_label (j, "nvidia.com/gpu.product", product);
  }
  put_label (j, "topology.kubernetes.io/region", json_str (offer, "region", NULL));
  put_label (j, "topology.kubernetes.io/zone",
             json_str (offer, "zone", json_str (offer, "region", NULL)));
  put_label (j, "gpubroker.io/lease", l->id);
  put_label (j, "gpubroker.io/provider", a->provider);
  put_label (j, "gpubroker.io/cloud", json_str (offer, "cloud", NULL));
  if (k && k->node_labels)
    json_object_update (j, k->node_labels);
  json_object_foreach ((json_t *) own, name, value)
    put_label (j, name, json_string_value (value));
  return j;
}

static void
put_label_list (json_t *params, const json_t *all)
{
  char text[4096];
  const char *name;
  json_t *value;
  size_t n = 0;

  text[0] = '\0';
  json_object_foreach ((json_t *) all, name, value) {
    if (n < sizeof text)
      n += (size_t) snprintf (text + n, sizeof text - n, "%s%s=%s", n ? "," : "", name,
                              json_string_value (value));
  }
  json_put_str (params, "LABELS", text);
}

static void
put_list (json_t *params, const char *name, const json_t *strings, char between)
{
  char text[20 * 1024]; /* 16 keys of at most 1,024 bytes, and what is between them */
  size_t i, n = 0;
  json_t *s;

  text[0] = '\0';
  json_array_foreach (strings, i, s) {
    if (n < sizeof text)
      n += (size_t) snprintf (text + n, sizeof text - n, "%s%c", json_string_value (s), between);
  }
  json_put_str (params, name, text);
}

/* ---- the node scripts ---- */

static json_t *
machine_params (const struct lease *l, const struct attempt *a)
{
  const json_t *filter = json_object_get (l->request, "filter");
  json_t *p = json_object ();
  char pattern[128];

  truth_pattern (a->offer, pattern, sizeof pattern);
  put_number (p, "GPU_COUNT", truth_gpus (a->offer));
  json_put_str (p, "GPU_PATTERN", pattern);
  put_number (p, "GPU_MEM_MIB", truth_mem_mib (a->offer));
  put_number (p, "DISK_GIB", json_i64 (filter, "min_free_gib", 0));
  json_put_str (p, "MIN_DRIVER", json_str (filter, "min_driver", ""));
  put_list (p, "SSH_KEYS", json_object_get (l->request, "ssh_keys"), '\n');
  return p;
}

/* Takes params. */
static json_t *
script (const struct attempt *a, const char *name, json_t *params)
{
  json_put_str (params, "OWNER", a->lease->broker->instance);
  return json_pack ("{s:o, s:s, s:o}", "target", rent_target (a), "script", name, "params", params);
}

json_t *
args_probe (struct lease *l, struct attempt *a)
{
  (void) l;
  return json_pack ("{s:o}", "target", rent_target (a));
}

json_t *
args_check (struct lease *l, struct attempt *a)
{
  return script (a, "check", machine_params (l, a));
}

/* Image tags write v1.34.1-k0s.0 where the binary says v1.34.1+k0s.0. */
static void
put_version (json_t *params, const char *version)
{
  char text[64], *dash;

  snprintf (text, sizeof text, "%s", version);
  dash = strstr (text, "-k0s.");
  if (dash)
    *dash = '+';
  json_put_str (params, "K0S_VERSION", text);
}

/* "https://[2001:db8::1]:6443" -> host and port. */
static void
put_server (json_t *params, const char *url)
{
  const char *at = strstr (url, "://"), *colon = strrchr (url, ':');
  char host[256];

  at = at ? at + 3 : url;
  snprintf (host, sizeof host, "%.*s",
            (int) (colon && colon > at ? colon - at : (long) strlen (at)), at);
  if (host[0] == '[') {
    memmove (host, host + 1, strlen (host));
    host[strcspn (host, "]")] = '\0';
  }
  json_put_str (params, "API_HOST", host);
  put_number (params, "API_PORT", colon && colon > at ? strtoll (colon + 1, NULL, 10) : 443);
}

const struct attempt *
args_attempt_named (const struct broker *b, const char *node)
{
  for (size_t i = 0; i < b->leases.n; i++) {
    const struct attempt *a = lease_attempt (b->leases.at[i]);

    if (a && a->name && strcmp (a->name, node) == 0)
      return a;
  }
  return NULL;
}

/* An earlier lease of ours left its node on this machine, and is over. */
static void
put_leftover (json_t *params, const struct lease *l)
{
  const char *owner = json_str (l->facts, "installed_by", ""),
             *node = json_str (l->facts, "installed_as", "");

  if (strcmp (owner, l->broker->instance) == 0 && !args_attempt_named (l->broker, node))
    json_put_str (params, "LEFTOVER", node);
}

/* Which k0s, as which node, with which labels. */
static json_t *
node_params (const struct lease *l, const struct attempt *a, const struct conf_cluster *k,
             const char *version)
{
  AUTO_JSON json_t *all = labels (l, a);
  json_t *p = machine_params (l, a);

  json_put_str (p, "NODE_NAME", a->name);
  put_version (p, version);
  json_put_str (p, "K0S_URL", k->k0s_url ? k->k0s_url : "");
  json_put_str (p, "K0S_SHA256_AMD64", k->k0s_sha256[0] ? k->k0s_sha256[0] : "");
  json_put_str (p, "K0S_SHA256_ARM64", k->k0s_sha256[1] ? k->k0s_sha256[1] : "");
  put_label_list (p, all);
  put_leftover (p, l);
  return p;
}

json_t *
args_worker (struct lease *l, struct attempt *a)
{
  const struct conf_cluster *k = conf_cluster (&l->broker->conf, l->cluster);
  AUTO_JSON json_t *taints = json_array ();
  json_t *p = node_params (
      l, a, k, k->k0s_version ? k->k0s_version : json_str (l->minted, "k0s_version", ""));

  for (size_t i = 0; i < k->taints.n; i++)
    json_array_append_new (taints, json_string (k->taints.at[i]));
  put_server (p, json_str (l->minted, "server", ""));
  json_put_str (p, "KONNECTIVITY_HOST", json_str (l->minted, "konnectivity_host", ""));
  put_number (p, "KONNECTIVITY_PORT", json_i64 (l->minted, "konnectivity_port", 0));
  put_list (p, "TAINTS", taints, ',');
  return script (a, "worker", p);
}

/* ---- a cluster of its own ---- */

json_t *
args_render (struct lease *l, struct attempt *a)
{
  json_t *j = args_cluster (l, a);

  json_put_str (j, "part", "device-plugin");
  return j;
}

json_t *
args_standalone (struct lease *l, struct attempt *a)
{
  const struct conf_cluster *k = conf_cluster (&l->broker->conf, l->cluster);
  json_t *p = node_params (l, a, k, k->k0s_version);
  bool plugin = strcmp (k->gpu_stack, "device-plugin") == 0 && truth_gpus (a->offer);

  json_put_str (p, "PUBLIC_HOST", a->machine.address ? a->machine.address : "");
  json_put_str (p, "MANIFEST_TEXT", plugin ? json_str (l->minted, "text", "") : "");
  return script (a, "standalone", p);
}

bool
args_opened (const struct lease *l)
{
  const json_t *rule;
  size_t i;

  json_array_foreach (json_object_get (l->request, "open"), i, rule)
    if (strcmp (json_str (rule, "proto", "tcp"), "tcp") == 0 &&
        json_i64 (rule, "from", 0) <= STANDALONE_PORT &&
        json_i64 (rule, "to", 0) >= STANDALONE_PORT)
      return true;
  return false;
}

json_t *
args_reach (struct lease *l, struct attempt *a)
{
  json_t *j = args_cluster (l, a);
  const char *host = a->machine.address ? a->machine.address : "";
  char url[300];

  snprintf (url, sizeof url, strchr (host, ':') ? "https://[%s]:%d" : "https://%s:%d", host,
            STANDALONE_PORT);
  json_put_str (j, "url", url);
  json_put_str (j, "ca", json_str (l->minted, "ca", ""));
  json_put_i64 (j, "timeout_ms", l->broker->times.verify);
  return j;
}

bool
args_reused (const struct attempt *a)
{
  const struct provider *p = provider_find (a->lease->broker, a->provider);

  return lease_own (a->lease) || (p && provider_can (p, "reused"));
}

/* A machine that goes on to somebody else is reset; one that is destroyed only loses its secrets.
 */
json_t *
args_leave (struct lease *l, struct attempt *a)
{
  (void) l;
  return script (
      a, "leave",
      json_pack ("{s:s, s:s}", "NODE_NAME", a->name, "RESET", args_reused (a) ? "1" : "0"));
}

json_t *
args_authorise (struct lease *l, struct attempt *a)
{
  return script (a, "authorise", json_pack ("{s:s}", "SSH_KEYS", l->broker->key.line));
}

json_t *
args_forget (struct lease *l, struct attempt *a)
{
  return script (a, "forget", json_pack ("{s:s}", "SSH_KEYS", l->broker->key.line));
}

/* ---- the cluster ---- */

json_t *
args_of_cluster (const struct conf_cluster *k)
{
  json_t *c = json_object ();

  json_put_str (c, "name", k->name);
  json_put_str (c, "type", k->type);
  json_put_str (c, "namespace", k->namespace_);
  json_put_str (c, "control_plane", k->control_plane);
  json_put_str (c, "k0s_version", k->k0s_version);
  json_put_str (c, "cni", k->cni);
  json_put_str (c, "cross_node", k->cross_node ? "required" : "no");
  json_put_str (c, "gpu_stack", k->gpu_stack);
  json_put_str (c, "device_plugin_image", k->device_plugin_image);
  json_put_str (c, "test_image", k->test_image);
  json_put_str (c, "gpu_test_image", k->gpu_test_image);
  json_put_str (c, "test_egress", k->test_egress);
  json_put_str (c, "storage_class", k->storage_class);
  json_object_set_new (c, "allow_private", json_boolean (k->allow_private));
  return json_pack ("{s:o}", "cluster", c);
}

json_t *
args_cluster (struct lease *l, struct attempt *a)
{
  (void) a;
  return args_of_cluster (conf_cluster (&l->broker->conf, l->cluster));
}

json_t *
args_machine (struct lease *l, struct attempt *a)
{
  json_t *j = args_cluster (l, a);

  json_put_str (j, "machine", a->name);
  return j;
}

json_t *
args_mint (struct lease *l, struct attempt *a)
{
  json_t *j = args_machine (l, a);

  json_put_i64 (j, "expiry_s", 900);
  json_object_set_new (j, "labels",
                       json_pack ("{s:s, s:s}", "gpubroker.io/owner", l->broker->instance,
                                  "gpubroker.io/lease", l->id));
  return j;
}

json_t *
args_node (struct lease *l, struct attempt *a)
{
  json_t *j = args_cluster (l, a);

  json_put_str (j, "node", a->name);
  return j;
}

json_t *
args_drain (struct lease *l, struct attempt *a)
{
  json_t *j = args_node (l, a);

  json_put_i64 (j, "timeout_ms", l->drain_timeout_ms);
  json_object_set_new (j, "force", json_boolean (l->evict_force));
  return j;
}

/* Did somebody ask for the matrix between nodes, too? */
static bool
wants_network (const struct lease *l)
{
  const struct broker *b = l->broker;

  for (size_t i = 0; i < b->ops.n; i++) {
    const struct op *o = b->ops.at[i];

    if (o->lease == l->number && o->state == OP_RUNNING && strcmp (o->verb, "verify") == 0 &&
        json_bool (o->accepted, "network", false))
      return true;
  }
  return false;
}

json_t *
args_verify (struct lease *l, struct attempt *a)
{
  json_t *j = args_node (l, a);

  json_put_i64 (j, "since_ms", a->started_ms);
  json_put_i64 (j, "timeout_ms", l->broker->times.verify);
  json_object_set_new (j, "gpu",
                       json_pack ("{s:I, s:s, s:I}", "count", (json_int_t) truth_gpus (a->offer),
                                  "resource", "nvidia.com/gpu", "stable_ms",
                                  (json_int_t) l->broker->times.stable));
  json_object_set_new (j, "labels", labels (l, a));
  json_object_set_new (j, "network", json_boolean (wants_network (l)));
  return j;
}

void
pipeline_remember_mismatch (struct attempt *a, const char *text)
{
  struct broker *b = a->lease->broker;
  struct memory_what what = offers_what (b->offers, a->provider, a->offer);

  memory_fail (b->memory, &what, MEMORY_MISMATCH, text, now_ms ());
}
