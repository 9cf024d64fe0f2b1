/* kube_render.c - texts for `clusters render`: manifests, Helm values, scrape jobs, a dashboard
 *
 * Nothing is asked of any cluster: the text is for one that may not be there yet.  In a template
 * @name@ stands for a value, written as a JSON string or number, which YAML reads as well; a line
 * whose value is not known is left out.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "join/kube_render.h"

static const char cluster[] =
#include "join/k0smotron-cluster.yaml.h"
    ;
static const char device_plugin[] =
#include "join/nvidia-device-plugin.yaml.h"
    ;
static const char gpu_operator[] =
#include "join/gpu-operator-values.yaml.h"
    ;
static const char dcgm_exporter[] =
#include "join/dcgm-exporter.yaml.h"
    ;
static const char juicefs[] =
#include "join/juicefs-values.yaml.h"
    ;
static const char prometheus[] =
#include "join/prometheus-scrape.yaml.h"
    ;
static const char dashboard[] =
#include "join/gpu-dashboard.json.h"
    ;

static const struct part {
  const char *name, *text;
  const char *needs[3]; /* members without which it makes no sense */
} parts[] = {
  { "cluster", cluster, { "k0s_version", "control_plane", "namespace" } },
  { "device-plugin", device_plugin, { NULL } },
  { "gpu-operator", gpu_operator, { NULL } },
  { "dcgm-exporter", dcgm_exporter, { NULL } },
  { "juicefs", juicefs, { NULL } },
  { "prometheus", prometheus, { "server" } },
  { "dashboard", dashboard, { NULL } },
};

static const struct part *
find (const char *name, struct err *e)
{
  const char *names[N_ELEMENTS (parts)], *near;

  for (size_t i = 0; i < N_ELEMENTS (parts); i++) {
    names[i] = parts[i].name;
    if (strcmp (parts[i].name, name) == 0)
      return &parts[i];
  }
  near = nearest (name, names, N_ELEMENTS (parts));
  err_set (e, ERR_INVALID,
           "no part '%.40s'%s%s%s; there are cluster, device-plugin, gpu-operator, dcgm-exporter, "
           "juicefs, prometheus and dashboard",
           name, near ? ", did you mean '" : "", near ? near : "", near ? "'" : "");
  return NULL;
}

/* ---- values ---- */

static void
put_format (json_t *j, const char *name, const char *fmt, const char *what)
{
  char text[200];

  snprintf (text, sizeof text, fmt, what);
  json_put_str (j, name, text);
}

/* Kubernetes objects spell v1.34.10+k0s.0 with a '-'. */
static void
put_version (json_t *j, const char *version)
{
  char text[64];
  char *plus;

  if (!version)
    return;
  snprintf (text, sizeof text, "%s", version);
  plus = strchr (text, '+');
  if (plus)
    *plus = '-';
  json_put_str (j, "k0s_version", text);
}

/* A NodePort is a port of every node of the management cluster, and those have a range. */
static void
put_service (json_t *j, const char *type)
{
  bool node_port = strcmp (type, "NodePort") == 0;

  json_put_str (j, "service", type);
  json_put_i64 (j, "api_port", node_port ? 30443 : 6443);
  json_put_i64 (j, "konnectivity_port", node_port ? 30132 : 8132);
}

json_t *
kube_values (const json_t *k, const json_t *params)
{
  const char *name = json_str (k, "name", "");
  json_t *j = json_object ();

  put_format (j, "api", "k0smotron.io/%s", json_str (params, "api", "v1beta2"));
  json_put_str (j, "control_plane", json_str (k, "control_plane", NULL));
  json_put_str (j, "namespace", json_str (k, "namespace", NULL));
  put_version (j, json_str (k, "k0s_version", NULL));
  put_service (j, json_str (params, "service", "LoadBalancer"));
  json_put_str (j, "address", json_str (params, "address", NULL));
  json_object_set_new (j, "storage",
                       json_sprintf ("%dGi", (int) json_i64 (params, "storage_gib", 5)));
  json_put_i64 (j, "mtu", json_i64 (params, "mtu", 1450));
  json_put_str (j, "device_plugin_image",
                json_str (k, "device_plugin_image", "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"));
  json_put_str (j, "dcgm_image", "nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04");
  json_put_str (j, "cluster", name);
  json_put_str (j, "server", json_str (params, "server", NULL));
  put_format (j, "job", "gpubroker-%.100s", name);
  put_format (j, "kubeconfig", "/etc/prometheus/gpubroker/%.100s.kubeconfig", name);
  put_format (j, "token_file", "/etc/prometheus/gpubroker/%.100s.token", name);
  put_format (j, "ca_file", "/etc/prometheus/gpubroker/%.100s.ca", name);
  return j;
}

/* ---- templates ---- */

/* The name between two '@' at `at`, and where it ends; NULL: this '@' is no placeholder. */
static const char *
placeholder (const char *at, const char *end, char *name, size_t size)
{
  size_t n = strspn (at + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");

  if (n == 0 || n >= size || at + 1 + n >= end || at[1 + n] != '@')
    return NULL;
  memcpy (name, at + 1, n);
  name[n] = '\0';
  return at + n + 2;
}

/* Is there a value for everything in this line? */
static bool
known (const char *at, const char *end, const json_t *values)
{
  char name[40];

  for (; at < end; at++)
    if (*at == '@' && placeholder (at, end, name, sizeof name) && !json_object_get (values, name))
      return false;
  return true;
}

static void
fill_line (FILE *out, const char *at, const char *end, const json_t *values)
{
  char name[40];

  while (at < end) {
    const char *next = *at == '@' ? placeholder (at, end, name, sizeof name) : NULL;

    if (next)
      json_dumpf (json_object_get (values, name), out, JSON_ENCODE_ANY);
    else
      fputc (*at, out);
    at = next ? next : at + 1;
  }
}

char *
kube_fill (const char *text, const json_t *values)
{
  char *all = NULL;
  size_t len = 0;
  FILE *out = open_memstream (&all, &len);

  if (!out)
    abort ();
  while (*text) {
    const char *end = text + strcspn (text, "\n");

    end += *end == '\n';
    if (known (text, end, values))
      fill_line (out, text, end, values);
    text = end;
  }
  fclose (out);
  return all;
}

static int
check_choice (const json_t *params, const char *member, const char *one, const char *other,
              struct err *e)
{
  const char *is = json_str (params, member, one);

  if (strcmp (is, one) == 0 || strcmp (is, other) == 0)
    return 0;
  return err_set (e, ERR_INVALID, "%s is '%.40s', not %s or %s", member, is, one, other);
}

static int
check (const struct part *part, const json_t *values, const json_t *params, struct err *e)
{
  if (check_choice (params, "api", "v1beta2", "v1beta1", e) < 0 ||
      check_choice (params, "service", "LoadBalancer", "NodePort", e) < 0)
    return -1;
  if (part->text == cluster && !json_object_get (values, "address") &&
      strcmp (json_str (values, "service", ""), "NodePort") == 0)
    return err_code (e, ERR_INVALID, "address-absent",
                     "a NodePort needs an address that rented machines reach");
  for (size_t i = 0; i < N_ELEMENTS (part->needs) && part->needs[i]; i++)
    if (!json_object_get (values, part->needs[i]))
      return err_set (e, ERR_INVALID, "part %s needs %s", part->name, part->needs[i]);
  return 0;
}

json_t *
kube_render (struct kube_call *c, struct err *e)
{
  const json_t *params = json_object_get (c->args, "params");
  const struct part *part = find (json_str (c->args, "part", "cluster"), e);
  AUTO_JSON json_t *values = kube_values (c->cluster, params);
  AUTO_FREE char *text = NULL;

  if (!part || check (part, values, params, e) < 0)
    return NULL;
  text = kube_fill (part->text, values);
  return json_pack ("{s:s, s:s}", "part", part->name, "text", text);
}
