/* kube_manifests.c - what a cluster needs once for its GPUs to be schedulable
 *
 * Two device plug-ins on one node register the same resource twice, so somebody else's is found
 * before ours is applied.  Server-side apply under our own field manager leaves alone what others
 * have set, and what is equal.
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "join/kube_plane.h"
#include "join/kube_render.h"

static const char device_plugin[] =
#include "join/nvidia-device-plugin.yaml.h"
    ;

#define OUR_NAME "nvidia-device-plugin-daemonset"

struct search {
  char found[160]; /* namespace/name of a device plug-in that is not ours */
};

static bool
is_device_plugin (const char *image)
{
  return strstr (image, "k8s-device-plugin") || strstr (image, "nvidia-gpu-device-plugin");
}

static int
look_at (json_t *ds, void *arg)
{
  const char *ns = json_str_at (ds, "metadata.namespace", ""),
             *name = json_str_at (ds, "metadata.name", "");
  struct search *s = arg;
  json_t *container;
  size_t i;

  json_array_foreach (json_at (ds, "spec.template.spec.containers"), i, container) {
    if (!is_device_plugin (json_str (container, "image", "")))
      continue;
    if (strcmp (ns, "kube-system") == 0 && strcmp (name, OUR_NAME) == 0 &&
        strcmp (json_str (json_at (ds, "metadata.labels"), "app.kubernetes.io/managed-by", ""),
                "gpubroker") == 0)
      continue;
    snprintf (s->found, sizeof s->found, "%.70s/%.80s", ns, name);
    return 1;
  }
  return 0;
}

static int
apply (struct plane *p, const char *text, json_t *applied, struct err *e)
{
  AUTO_JSON json_t *obj = yaml_parse (text, strlen (text), true, e), *before = NULL, *after = NULL;
  char path[300], query[360], label[300];
  bool found;

  if (!obj)
    return -1;
  snprintf (path, sizeof path, "/apis/apps/v1/namespaces/%s/daemonsets/%s",
            json_str_at (obj, "metadata.namespace", ""), json_str_at (obj, "metadata.name", ""));
  before = kube_find (p->hosted, &found, e, "%s", path);
  if (!found && e->kind != ERR_NONE)
    return -1;
  snprintf (query, sizeof query, "%s?fieldManager=gpubroker&fieldValidation=Strict", path);
  if (kube_api_send (p->hosted, "PATCH", query, API_APPLY, obj, &after, e) < 0)
    return -1;
  if (strcmp (json_str_at (before, "metadata.resourceVersion", ""),
              json_str_at (after, "metadata.resourceVersion", "-")) == 0)
    return 0;
  snprintf (label, sizeof label, "DaemonSet/%s/%s", json_str_at (obj, "metadata.namespace", ""),
            json_str_at (obj, "metadata.name", ""));
  json_array_append_new (applied, json_string (label));
  return 0;
}

static int
apply_filled (struct plane *p, const char *template, json_t *applied, struct err *e)
{
  AUTO_JSON json_t *values = kube_values (p->call->cluster, NULL);
  AUTO_FREE char *text = kube_fill (template, values);

  return apply (p, text, applied, e);
}

json_t *
kube_manifests (struct kube_call *c, struct err *e)
{
  const char *stack = json_str (c->cluster, "gpu_stack", "device-plugin");
  AUTO_JSON json_t *applied = json_array (), *findings = json_array ();
  struct search s = { "" };
  struct plane p;
  int rc = plane_all (&p, c, e);

  if (rc == 0 && strcmp (stack, "device-plugin") == 0) {
    rc = kube_each (p.hosted, "/apis/apps/v1/daemonsets", look_at, &s, e) < 0 ? -1 : 0;
    if (rc == 0 && s.found[0])
      json_array_append_new (
          findings,
          json_pack ("{s:s, s:s, s:s+}", "code", "device-plugin-foreign", "severity", "warning",
                     "text", "left as it is: another device plug-in runs as DaemonSet ", s.found));
    else if (rc == 0)
      rc = apply_filled (&p, device_plugin, applied, e);
  }
  plane_done (&p);
  return rc == 0 ? json_pack ("{s:O, s:O}", "applied", applied, "findings", findings) : NULL;
}
