/* kube_node.c - cordon, evict, delete, and how nodes are
 *
 * A budget's 429 is an answer, not a failure: it is asked again until the deadline, then left to
 * the caller, who decides with force.  Pods of a node whose kubelet is silent never end, so they
 * are not waited for.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_node.h"
#include "join/kube_text.h"

enum { ROUND_MS = 1000, LEASE_FRESH_MS = 40000, TIMEOUT_MS = 300000 };

int
node_lease_age (struct kube_api *a, const char *node, int64_t *age_ms, struct err *e)
{
  bool found;
  AUTO_JSON json_t *lease = kube_find (
      a, &found, e, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/%s", node);
  int64_t at = rfc3339_ms (json_str_at (lease, "spec.renewTime", NULL));

  *age_ms = at < 0 ? INT64_MAX : clock_wall_ms () - at;
  return !found && e->kind != ERR_NONE ? -1 : 0;
}

struct drain {
  struct plane plane;
  const char *node;
  bool force, alive;
  int64_t until_ms; /* boot clock */
  struct err *e;
  int evicted, leaving;
  json_t *left; /* namespace/name of pods that were not evicted in this round */
};

/* Mirror pods are files on the node, DaemonSet pods come back: neither is evicted.  What has ended
 * needs nothing. */
static bool
is_skipped (const json_t *pod)
{
  const char *phase = json_str_at (pod, "status.phase", "");
  json_t *owner;
  size_t i;

  if (json_object_get (json_at (pod, "metadata.annotations"), "kubernetes.io/config.mirror") ||
      strcmp (phase, "Succeeded") == 0 || strcmp (phase, "Failed") == 0)
    return true;
  json_array_foreach (json_at (pod, "metadata.ownerReferences"), i, owner)
    if (strcmp (json_str (owner, "kind", ""), "DaemonSet") == 0)
      return true;
  return false;
}

static int
evict (struct drain *d, const char *ns, const char *name, struct err *e)
{
  AUTO_JSON json_t *body = json_pack ("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "policy/v1", "kind",
                                      "Eviction", "metadata", "name", name, "namespace", ns);
  char path[700];

  snprintf (path, sizeof path, "/api/v1/namespaces/%s/pods/%s/eviction", ns, name);
  return kube_api_send (d->plane.hosted, "POST", path, API_JSON, body, NULL, e);
}

static int
on_pod (json_t *pod, void *arg)
{
  const char *ns = json_str_at (pod, "metadata.namespace", ""),
             *name = json_str_at (pod, "metadata.name", "");
  struct drain *d = arg;
  struct err why = ERR_INIT;

  if (is_skipped (pod))
    return 0;
  if (json_at (pod, "metadata.deletionTimestamp")) {
    d->leaving++;
    return 0;
  }
  if (evict (d, ns, name, &why) == 0) {
    d->evicted++;
    d->leaving++;
  } else if (why.kind == ERR_RATE || why.kind == ERR_UNAVAILABLE || why.kind == ERR_UNKNOWN) {
    json_array_append_new (d->left, json_sprintf ("%s/%s", ns, name));
  } else if (why.kind != ERR_NOT_FOUND) {
    *d->e = why;
    return -1;
  }
  return call_check (d->plane.call, d->e);
}

static int
on_pod_forced (json_t *pod, void *arg)
{
  struct drain *d = arg;

  if (is_skipped (pod))
    return 0;
  if (!json_at (pod, "metadata.deletionTimestamp"))
    d->evicted++;
  return kube_delete (d->plane.hosted, d->e, "/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=0",
                      json_str_at (pod, "metadata.namespace", ""),
                      json_str_at (pod, "metadata.name", ""));
}

static int
pass (struct drain *d, int (*fn) (json_t *, void *))
{
  char path[400];

  d->leaving = 0;
  json_array_clear (d->left);
  snprintf (path, sizeof path, "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", d->node);
  return kube_each (d->plane.hosted, path, fn, d, d->e);
}

/* 1 when there is no such node. */
static int
cordon (struct drain *d)
{
  AUTO_JSON json_t *body = json_pack ("{s:{s:b}}", "spec", "unschedulable", 1), *node = NULL;
  int64_t age = 0;
  char path[300];

  snprintf (path, sizeof path, "/api/v1/nodes/%s", d->node);
  if (kube_api_send (d->plane.hosted, "PATCH", path, API_MERGE, body, &node, d->e) < 0) {
    if (d->e->kind != ERR_NOT_FOUND)
      return -1;
    *d->e = (struct err) ERR_INIT;
    return 1;
  }
  if (node_lease_age (d->plane.hosted, d->node, &age, d->e) < 0)
    return -1;
  d->alive = condition_true (node, "Ready") && age < LEASE_FRESH_MS;
  return 0;
}

static int
drain_rounds (struct drain *d)
{
  char text[80];

  for (;;) {
    int64_t left_ms = d->until_ms - clock_boot_ms ();

    if (pass (d, on_pod) < 0)
      return -1;
    if (json_array_size (d->left) == 0 && (d->leaving == 0 || !d->alive))
      return 0;
    if (left_ms <= ROUND_MS)
      break;
    snprintf (text, sizeof text, "%d evicted, %d on their way, %zu refused by a budget", d->evicted,
              d->leaving, json_array_size (d->left));
    call_progress (d->plane.call, "drain", "wait", text);
    if (call_sleep (d->plane.call, ROUND_MS, d->e) < 0)
      return -1;
  }
  return d->force ? pass (d, on_pod_forced) : 0;
}

json_t *
kube_drain (struct kube_call *c, struct err *e)
{
  int64_t timeout = json_i64 (c->args, "timeout_ms", TIMEOUT_MS),
          own = call_ms_left (c) - 2 * ROUND_MS;
  struct drain d = { .node = json_str (c->args, "node", ""),
                     .force = json_bool (c->args, "force", false),
                     .e = e };
  AUTO_JSON json_t *left = json_array ();
  int rc;

  if (!name_ok ("node", d.node, e))
    return NULL;
  d.left = left;
  d.until_ms =
      clock_boot_ms () + (timeout < own ? timeout : own); /* so that there is time left to answer */
  rc = plane_all (&d.plane, c, e);
  if (rc == 0)
    rc = cordon (&d);
  if (rc == 0)
    rc = drain_rounds (&d);
  plane_done (&d.plane);
  if (rc < 0)
    return NULL;
  return json_pack ("{s:i, s:i, s:O, s:b}", "evicted", d.evicted, "left",
                    (int) json_array_size (left) + (d.force && rc == 0 ? 0 : d.leaving), "blocked",
                    left, "node_alive", d.alive);
}

json_t *
kube_delete_node (struct kube_call *c, struct err *e)
{
  const char *node = json_str (c->args, "node", "");
  struct plane p;
  int rc;

  if (!name_ok ("node", node, e))
    return NULL;
  rc = plane_all (&p, c, e);
  if (rc == 0)
    rc = kube_delete (p.hosted, e, "/api/v1/nodes/%s", node);
  plane_done (&p);
  return rc == 0 ? json_object () : NULL;
}

static json_t *
node_health (const json_t *node, const char *resource)
{
  json_t *h = json_pack ("{s:b}", "ready", condition_true (node, "Ready"));
  int64_t since = rfc3339_ms (json_str (condition (node, "Ready"), "lastTransitionTime", NULL));
  int64_t gpus = quantity_int (json_str (json_at (node, "status.allocatable"), resource, NULL));

  if (since >= 0)
    json_put_i64 (h, "since_ms", since);
  json_put_i64 (h, "allocatable_gpus", gpus < 0 ? 0 : gpus);
  json_put_str (h, "uid", json_str_at (node, "metadata.uid", NULL));
  return h;
}

/* A node that is not there is told from one that could not be asked about: the whole call fails for
 * the latter. */
json_t *
kube_health (struct kube_call *c, struct err *e)
{
  const char *resource = json_str (c->args, "resource", "nvidia.com/gpu");
  AUTO_JSON json_t *nodes = json_object ();
  json_t *name;
  struct plane p;
  size_t i;
  int rc = plane_all (&p, c, e);

  json_array_foreach (json_object_get (c->args, "nodes"), i, name) {
    const char *n = json_is_string (name) ? json_string_value (name) : "";
    bool found;

    if (rc < 0 || !name_ok ("node", n, e) || call_check (c, e) < 0) {
      rc = -1;
      break;
    }
    AUTO_JSON json_t *node = kube_find (p.hosted, &found, e, "/api/v1/nodes/%s", n);
    if (!found && e->kind != ERR_NONE)
      rc = -1;
    else
      json_object_set_new (
          nodes, n,
          found ? node_health (node, resource)
                : json_pack ("{s:b, s:b, s:i}", "ready", 0, "missing", 1, "allocatable_gpus", 0));
  }
  plane_done (&p);
  return rc == 0 ? json_pack ("{s:O}", "nodes", nodes) : NULL;
}
