/* kube_pods_make.c - what the network matrix makes in a cluster: a namespace, pods, a Service, a
 * claim */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_pods_int.h"
#include "join/kube_render.h"
#include "join/kube_text.h"

enum { RETRY_MS = 500, STALE_MS = 3600000, CLEAN_MS = 20000, ACCOUNT_MS = 15000 };

#define TEST_LABEL "gpubroker.io/test"
#define TEST_IMAGE "busybox:1.37"
#define GPU_IMAGE  "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"
#define EGRESS_URL "https://registry.k8s.io/"

static const char pod_yaml[] =
#include "join/test-pod.yaml.h"
    ;
static const char server_sh[] =
#include "join/test-server.sh.h"
    ;
static const char probe_sh[] =
#include "join/test-probe.sh.h"
    ;
static const char host_sh[] =
#include "join/test-host.sh.h"
    ;
static const char gpu_sh[] =
#include "join/test-gpu.sh.h"
    ;
static const char storage_sh[] =
#include "join/test-storage.sh.h"
    ;

const struct kind kinds[PODS] = {
  [SERVER] = { "server", server_sh, NODE, false, true, { 0 } },
  [PEER_SERVER] = { "peer", server_sh, PEER, false, true, { 0 } },
  [GPU] = { "gpu", gpu_sh, NODE, false, false, { 7 } },
  [PROBE] = { "probe", probe_sh, NODE, false, false, { 8, 10, 11, 13 } },
  [HOST] = { "host", host_sh, NODE, true, false, { 9 } },
  [STORAGE] = { "storage", storage_sh, NODE, false, false, { 14 } },
};

/* ---- the namespace ---- */

static int
sweep_one (json_t *ns, void *arg)
{
  struct run *r = arg;
  int64_t at = rfc3339_ms (json_str_at (ns, "metadata.creationTimestamp", NULL));
  struct err why = ERR_INIT;

  if (at > 0 && clock_wall_ms () - at > STALE_MS && !json_at (ns, "metadata.deletionTimestamp"))
    kube_delete (r->api, &why, "/api/v1/namespaces/%s", json_str_at (ns, "metadata.name", ""));
  return 0;
}

int
pods_open (struct run *r)
{
  unsigned char bytes[4] = { 0 };
  AUTO_JSON json_t *body = NULL;

  RAND_bytes (bytes, sizeof bytes);
  snprintf (r->ns, sizeof r->ns, "gpubroker-test-%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
            bytes[3]);
  if (kube_each (r->api, "/api/v1/namespaces?labelSelector=gpubroker.io%2Ftest", sweep_one, r,
                 r->e) < 0)
    return -1;
  body = json_pack ("{s:s, s:s, s:{s:s, s:{s:s, s:s}}}", "apiVersion", "v1", "kind", "Namespace",
                    "metadata", "name", r->ns, "labels", TEST_LABEL, "network",
                    "pod-security.kubernetes.io/enforce", "privileged");
  return kube_api_send (r->api, "POST", "/api/v1/namespaces", API_JSON, body, NULL, r->e);
}

/* Goes in all cases, in a time of its own: the call may be over. */
void
pods_close (struct run *r)
{
  struct kube_call *c = r->want->plane->call;
  int64_t deadline = c->deadline_ms;
  bool cancelled = atomic_exchange (&c->cancelled, false);
  struct err why = ERR_INIT;

  c->deadline_ms = clock_boot_ms () + CLEAN_MS;
  for (size_t i = 0; i < PODS; i++)
    if (r->pods[i].started)
      kube_delete (r->api, &why, "/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=0", r->ns,
                   kinds[i].name);
  kube_delete (r->api, &why, "/api/v1/namespaces/%s", r->ns);
  c->deadline_ms = deadline;
  if (cancelled)
    atomic_store (&c->cancelled, true);
}

/* ---- pods ---- */

static json_t *
env_of (const struct run *r)
{
  const char *egress = json_str (r->cluster, "test_egress", EGRESS_URL);
  const struct {
    const char *name, *value;
  } vars[] = {
    { "SERVER", r->pods[SERVER].ip },
    { "PEER", r->pods[PEER_SERVER].ip },
    { "PEER_NODE", r->peer },
    { "SERVICE", r->service },
    { "DNS_PODS", r->dns_pods },
    { "DNS_SERVICE", r->dns_service },
    { "EGRESS", egress },
  };
  json_t *env = json_pack ("[{s:s, s:{s:{s:s}}}]", "name", "POD_IP", "valueFrom", "fieldRef",
                           "fieldPath", "status.podIP");

  for (size_t i = 0; i < N_ELEMENTS (vars); i++)
    json_array_append_new (env,
                           json_pack ("{s:s, s:s}", "name", vars[i].name, "value", vars[i].value));
  return env;
}

static void
put_gpus (json_t *values, const struct run *r)
{
  json_object_set_new (
      values, "resources",
      json_pack ("{s:{s:I}}", "limits", r->want->resource, (json_int_t) r->want->gpus));
}

static void
put_volume (json_t *values)
{
  json_object_set_new (values, "mounts",
                       json_pack ("[{s:s, s:s}]", "name", "data", "mountPath", "/data"));
  json_object_set_new (
      values, "volumes",
      json_pack ("[{s:s, s:{s:s}}]", "name", "data", "persistentVolumeClaim", "claimName", "data"));
}

static json_t *
pod_object (const struct run *r, enum pod_id id)
{
  const struct kind *k = &kinds[id];
  AUTO_JSON json_t *values = json_object ();
  AUTO_FREE char *text = NULL;

  json_put_str (values, "name", k->name);
  json_put_str (values, "node", k->where == PEER ? r->peer : r->want->node);
  json_object_set_new (values, "host", json_boolean (k->host));
  json_put_str (values, "image",
                id == GPU ? json_str (r->cluster, "gpu_test_image", GPU_IMAGE)
                          : json_str (r->cluster, "test_image", TEST_IMAGE));
  json_put_str (values, "script", k->script);
  json_object_set_new (values, "env", env_of (r));
  if (id == GPU)
    put_gpus (values, r);
  if (id == STORAGE)
    put_volume (values);
  text = kube_fill (pod_yaml, values);
  return yaml_parse (text, strlen (text), true, r->e);
}

/* A new namespace has its default account a moment later; pods before that are refused. */
int
pods_start (struct run *r, enum pod_id id)
{
  AUTO_JSON json_t *pod = pod_object (r, id);
  int64_t until = clock_boot_ms () + ACCOUNT_MS;
  char path[120];

  if (!pod)
    return -1;
  snprintf (path, sizeof path, "/api/v1/namespaces/%s/pods?fieldValidation=Strict", r->ns);
  while (kube_api_send (r->api, "POST", path, API_JSON, pod, NULL, r->e) < 0) {
    if (!strstr (r->e->text, "serviceaccount") || clock_boot_ms () >= until)
      return -1;
    *r->e = (struct err) ERR_INIT;
    if (call_sleep (r->want->plane->call, RETRY_MS, r->e) < 0)
      return -1;
  }
  r->pods[id].started = true;
  return 0;
}

/* ---- what they are told ---- */

static int
find_peer (json_t *node, void *arg)
{
  struct run *r = arg;
  const char *name = json_str_at (node, "metadata.name", "");

  if (strcmp (name, r->want->node) == 0 || strlen (name) >= sizeof r->peer ||
      !condition_true (node, "Ready") || json_at (node, "metadata.deletionTimestamp"))
    return 0;
  snprintf (r->peer, sizeof r->peer, "%s", name);
  return 1;
}

static int
find_dns (json_t *pod, void *arg)
{
  struct run *r = arg;
  size_t n = strlen (r->dns_pods);
  const char *ip = json_str_at (pod, "status.podIP", "");

  if (*ip && condition_true (pod, "Ready"))
    snprintf (r->dns_pods + n, sizeof r->dns_pods - n, "%s%s", n ? " " : "", ip);
  return 0;
}

static int
learn_dns (struct run *r)
{
  bool found;
  AUTO_JSON json_t *service = NULL;

  if (kube_each (r->api, "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns",
                 find_dns, r, r->e) < 0)
    return -1;
  service = kube_find (r->api, &found, r->e, "/api/v1/namespaces/kube-system/services/kube-dns");
  snprintf (r->dns_service, sizeof r->dns_service, "%s",
            json_str_at (service, "spec.clusterIP", ""));
  return !found && r->e->kind != ERR_NONE ? -1 : 0;
}

int
pods_service (struct run *r)
{
  AUTO_JSON json_t *body = json_pack ("{s:s, s:s, s:{s:s}, s:{s:{s:s}, s:[{s:i}]}}", "apiVersion",
                                      "v1", "kind", "Service", "metadata", "name", "peer", "spec",
                                      "selector", TEST_LABEL, "peer", "ports", "port", 8080);
  AUTO_JSON json_t *service = NULL;
  char path[120];

  snprintf (path, sizeof path, "/api/v1/namespaces/%s/services", r->ns);
  if (kube_api_send (r->api, "POST", path, API_JSON, body, &service, r->e) < 0)
    return -1;
  snprintf (r->service, sizeof r->service, "%s", json_str_at (service, "spec.clusterIP", ""));
  return 0;
}

int
pods_claim (struct run *r)
{
  const char *class = json_str (r->cluster, "storage_class", NULL);
  AUTO_JSON json_t *body =
      json_pack ("{s:s, s:s, s:{s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion", "v1", "kind",
                 "PersistentVolumeClaim", "metadata", "name", "data", "spec", "storageClassName",
                 class, "accessModes", "ReadWriteOnce", "resources", "requests", "storage", "1Gi");
  char path[120];

  snprintf (path, sizeof path, "/api/v1/namespaces/%s/persistentvolumeclaims", r->ns);
  return kube_api_send (r->api, "POST", path, API_JSON, body, NULL, r->e);
}

int
pods_learn (struct run *r)
{
  return kube_each (r->api, "/api/v1/nodes", find_peer, r, r->e) < 0 ? -1 : learn_dns (r);
}
