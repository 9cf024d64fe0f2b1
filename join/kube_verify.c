/* kube_verify.c - is the node what was rented, and does it work?
 *
 * Rows are asked about in rounds until all pass or time is up: most of them are slow to become true
 * after a join, and a node that is left alone joins in seconds.  A row that could not be tried is
 * "not-tested", never a pass.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_node.h"
#include "join/kube_pods.h"
#include "join/kube_text.h"

enum {
  ROUND_MS = 1000,
  LEASE_FRESH_MS = 40000,
  CLOCK_SLACK_MS = 60000,
  STABLE_MS = 10000,
  TIMEOUT_MS = 600000
};

enum result { WAIT, PASS, FAIL, UNTESTED };

struct verify {
  struct plane plane;
  const char *name, *resource;
  json_t *node; /* of this round; NULL while it has not registered */
  int64_t since_ms, gpus, stable_ms;
  int64_t gpus_since; /* boot clock; 0: not right in the last round */
  bool network;       /* also the rows that need pods */
  struct pods pods;
  struct err *e;
};

/* What a row says: why it waits or failed, and under which code. */
struct say {
  char code[40], text[200];
};

static enum result PRINTF (4, 5)
    say (struct say *s, enum result r, const char *code, const char *fmt, ...)
{
  va_list ap;

  snprintf (s->code, sizeof s->code, "%s", code);
  va_start (ap, fmt);
  vsnprintf (s->text, sizeof s->text, fmt, ap);
  va_end (ap);
  return r;
}

static enum result
row_ready (struct verify *v, struct say *s)
{
  const json_t *ready = condition (v->node, "Ready");
  struct err why = ERR_INIT;
  int64_t age;

  if (!v->node)
    return say (s, WAIT, "node-missing", "node %s has not registered", v->name);
  if (!condition_true (v->node, "Ready"))
    return say (s, WAIT, "node-not-ready", "not Ready: %.150s",
                json_str (ready, "message", "no status yet"));
  if (node_lease_age (v->plane.hosted, v->name, &age, &why) < 0)
    return say (s, WAIT, "lease-stale", "%.150s", why.text);
  if (age == INT64_MAX)
    return say (s, WAIT, "lease-stale", "the kubelet has no lease");
  if (age >= LEASE_FRESH_MS)
    return say (s, WAIT, "lease-stale", "Ready, but its lease is %lld s old",
                (long long) age / 1000);
  return say (s, PASS, "node-ready", "Ready, lease %lld s old",
              (long long) (age > 0 ? age : 0) / 1000);
}

static enum result
row_fresh (struct verify *v, struct say *s)
{
  int64_t at = rfc3339_ms (json_str_at (v->node, "metadata.creationTimestamp", NULL));

  if (v->since_ms <= 0)
    return say (s, UNTESTED, "node-fresh", "when the join began was not given");
  if (at < v->since_ms - CLOCK_SLACK_MS)
    return say (s, WAIT, "node-old",
                "this Node object is from %lld s before the join: it is another machine's",
                (long long) (v->since_ms - at) / 1000);
  return say (s, PASS, "node-fresh", "registered by this join");
}

static enum result
row_versions (struct verify *v, struct say *s)
{
  const char *kubelet = json_str_at (v->node, "status.nodeInfo.kubeletVersion", "");
  const char *want = json_str (v->plane.call->cluster, "k0s_version", NULL), *skew;
  const char *plane = json_str_at (v->plane.object, "spec.version", want);
  struct kube_version have, top, asked;

  if (kube_version_parse (kubelet, &have) < 0)
    return say (s, WAIT, "node-info", "kubelet version \"%.40s\" is none", kubelet);
  if (kube_version_parse (plane, &top) < 0)
    return say (s, UNTESTED, "node-info", "kubelet %.40s; the control plane's version is not known",
                kubelet);
  skew = kube_version_skew (&have, &top);
  if (skew)
    return say (s, FAIL, "version-skew", "kubelet %.40s, control plane %.40s: %s", kubelet, plane,
                skew);
  if (kube_version_parse (want, &asked) == 0 &&
      (asked.minor != have.minor || asked.patch != have.patch || asked.major != have.major))
    return say (s, PASS, "node-info", "kubelet %.40s, though %.40s was asked for", kubelet, want);
  return say (s, PASS, "node-info", "kubelet %.40s, %.50s, %.60s", kubelet,
              json_str_at (v->node, "status.nodeInfo.containerRuntimeVersion", ""),
              json_str_at (v->node, "status.nodeInfo.osImage", ""));
}

static enum result
row_pressure (struct verify *v, struct say *s)
{
  static const char *const bad[] = { "MemoryPressure", "DiskPressure", "PIDPressure",
                                     "NetworkUnavailable" };

  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    if (condition_true (v->node, bad[i]))
      return say (s, WAIT, "node-pressure", "%s: %.140s", bad[i],
                  json_str (condition (v->node, bad[i]), "message", ""));
  return say (s, PASS, "node-pressure", "no pressure, network available");
}

struct dns {
  int pods, ready;
};

static int
on_dns_pod (json_t *pod, void *arg)
{
  struct dns *d = arg;

  d->pods++;
  d->ready += condition_true (pod, "Ready");
  return 0;
}

/* One Ready pod is enough: with a dead Node in the list the Deployment is never complete. */
static enum result
row_dns (struct verify *v, struct say *s)
{
  struct err why = ERR_INIT;
  struct dns d = { 0, 0 };
  bool found;

  if (kube_each (v->plane.hosted,
                 "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns", on_dns_pod,
                 &d, &why) < 0)
    return say (s, WAIT, "dns-down", "%.150s", why.text);
  if (d.ready > 0)
    return say (s, PASS, "dns", "%d of %d CoreDNS pods Ready", d.ready, d.pods);
  AUTO_JSON json_t *deployment = kube_find (
      v->plane.hosted, &found, &why, "/apis/apps/v1/namespaces/kube-system/deployments/coredns");
  if (!deployment && why.kind == ERR_NONE && d.pods == 0)
    return say (s, UNTESTED, "dns", "there is no CoreDNS in kube-system");
  return say (s, WAIT, "dns-down",
              "none of %d CoreDNS pods is Ready: host-to-pod traffic or the CNI", d.pods);
}

static enum result
row_gpus (struct verify *v, struct say *s)
{
  int64_t allocatable =
      quantity_int (json_str (json_at (v->node, "status.allocatable"), v->resource, NULL));
  int64_t capacity =
      quantity_int (json_str (json_at (v->node, "status.capacity"), v->resource, NULL));
  int64_t now = clock_boot_ms ();

  if (v->gpus <= 0)
    return say (s, UNTESTED, "gpus", "no GPU was asked for");
  if (strcmp (json_str (v->plane.call->cluster, "gpu_stack", "device-plugin"), "none") == 0)
    return say (s, UNTESTED, "gpus", "gpu_stack is none: nothing here advertises GPUs");
  if (allocatable != v->gpus || capacity != v->gpus) {
    v->gpus_since = 0;
    return say (s, WAIT, allocatable <= 0 ? "gpu-missing" : "gpu-count",
                "%s: %lld allocatable, %lld capacity, %lld rented", v->resource,
                (long long) (allocatable > 0 ? allocatable : 0),
                (long long) (capacity > 0 ? capacity : 0), (long long) v->gpus);
  }
  if (v->gpus_since == 0)
    v->gpus_since = now;
  if (now - v->gpus_since < v->stable_ms)
    return say (s, WAIT, "gpu-unstable", "%s: %lld, not yet for %lld s", v->resource,
                (long long) allocatable, (long long) v->stable_ms / 1000);
  return say (s, PASS, "gpus", "%s: %lld allocatable", v->resource, (long long) allocatable);
}

static enum result
row_kubelet (struct verify *v, struct say *s)
{
  struct err why = ERR_INIT;
  AUTO_JSON json_t *answer =
      kube_get (v->plane.hosted, &why, "/api/v1/nodes/%s/proxy/healthz", v->name);

  if (!answer)
    return say (s, WAIT, "kubelet-unreachable", "the API server does not reach the kubelet: %.130s",
                why.text);
  if (!json_is_string (answer) || strcmp (json_string_value (answer), "ok") != 0)
    return say (s, WAIT, "kubelet-unreachable", "the kubelet's healthz is not \"ok\"");
  return say (s, PASS, "kubelet", "the API server reaches the kubelet");
}

/* What --labels did not set at registration is set now. */
static enum result
row_labels (struct verify *v, struct say *s)
{
  json_t *want = json_object_get (v->plane.call->args, "labels"),
         *have = json_at (v->node, "metadata.labels"), *value;
  AUTO_JSON json_t *missing = json_object (), *body = NULL;
  struct err why = ERR_INIT;
  const char *key;
  char path[300];

  json_object_foreach (want, key, value)
    if (!json_equal (json_object_get (have, key), value))
      json_object_set (missing, key, value);
  if (json_object_size (missing) == 0)
    return say (s, PASS, "labels", "%zu labels as wanted", json_object_size (want));
  body = json_pack ("{s:{s:O}}", "metadata", "labels", missing);
  snprintf (path, sizeof path, "/api/v1/nodes/%s", v->name);
  if (kube_api_send (v->plane.hosted, "PATCH", path, API_MERGE, body, NULL, &why) < 0)
    return say (s, why.kind == ERR_INVALID ? FAIL : WAIT, "labels-refused", "%.150s", why.text);
  return say (s, PASS, "labels", "%zu labels set", json_object_size (missing));
}

static const struct row {
  int number; /* of the verification matrix in docs/cluster-codes.md */
  const char *name;
  enum result (*ask) (struct verify *v,
                      struct say *s); /* NULL: needs a pod that runs on the node */
} rows[] = {
  { 1, "node-ready", row_ready },
  { 2, "node-fresh", row_fresh },
  { 3, "node-info", row_versions },
  { 4, "node-pressure", row_pressure },
  { 5, "dns", row_dns },
  { 6, "gpus", row_gpus },
  { 7, "gpu-pod", NULL },
  { 8, "pod-to-pod", NULL },
  { 9, "host-to-pod", NULL },
  { 10, "dns-each", NULL },
  { 11, "service", NULL },
  { 12, "kubelet", row_kubelet },
  { 13, "egress", NULL },
  { 14, "storage", NULL },
  { 15, "labels", row_labels },
};
enum { N_ROWS = N_ELEMENTS (rows) };

struct state {
  enum result r;
  struct say s;
};

static int
read_node (struct verify *v)
{
  struct err why = ERR_INIT;
  bool found;

  json_decref (v->node);
  v->node = kube_find (v->plane.hosted, &found, &why, "/api/v1/nodes/%s", v->name);
  if (!found && why.kind == ERR_AUTH) {
    *v->e = why;
    return -1;
  }
  return 0; /* a server that does not answer now may in the next round */
}

static void
report (const struct verify *v, const struct row *row, const struct state *was,
        const struct state *now)
{
  static const char *const words[] = { "wait", "ok", "fail" };

  if (now->r == UNTESTED)
    return; /* the rows of the result say so; it is no step that was done */
  if (was->r != now->r || (now->r == WAIT && strcmp (was->s.code, now->s.code) != 0))
    call_progress (v->plane.call, row->name, words[now->r], now->s.text);
}

/* 1 when nothing is left to wait for, or waiting cannot help.  The node comes first: without it the
 * others say nothing. */
static int
ask_rows (struct verify *v, struct state *st)
{
  int waiting = 0, failed = 0;

  if (read_node (v) < 0)
    return -1;
  for (size_t i = 0; i < N_ROWS; i++) {
    struct state now = { .r = WAIT };

    if (!rows[i].ask || st[i].r == UNTESTED || st[i].r == FAIL ||
        (st[i].r == PASS && rows[i].number != 1))
      continue;
    if (!v->node && i > 0)
      now.r = say (&now.s, WAIT, "node-missing", "waits for the node");
    else
      now.r = rows[i].ask (v, &now.s);
    report (v, &rows[i], &st[i], &now);
    st[i] = now;
    waiting += now.r == WAIT;
    failed += now.r == FAIL;
  }
  return failed > 0 || waiting == 0;
}

/* Pods only on a node that is sound so far: what they would say of another is no news. */
static int
run_pods (struct verify *v, struct state *st, int64_t until)
{
  if (!v->network)
    return 0;
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].ask && (st[i].r == WAIT || st[i].r == FAIL))
      return 0;
  v->pods = (struct pods){
    .plane = &v->plane, .node = v->name, .resource = v->resource, .gpus = v->gpus, .until_ms = until
  };
  return pods_run (&v->pods, v->e);
}

static void
pod_row (const struct verify *v, const struct row *row, struct state *st)
{
  static const enum result of[] = {
    [PODS_UNTESTED] = UNTESTED, [PODS_PASS] = PASS, [PODS_FAIL] = FAIL
  };

  for (size_t i = 0; i < PODS_ROWS; i++) {
    const struct pods_row *p = &v->pods.rows[i];

    if (p->number == row->number) {
      st->r = say (&st->s, of[p->verdict], p->code, "%s", p->text);
      return;
    }
  }
  st->r = say (&st->s, UNTESTED, row->name, "needs pods on the node: verify --network");
}

static json_t *
summary (const struct verify *v, struct state *st)
{
  static const char *const words[] = { "fail", "pass", "fail", "not-tested" };
  AUTO_JSON json_t *list = json_array (), *node = json_object ();
  const char *waits = NULL, *fails = NULL, *code;
  int64_t gpus =
      quantity_int (json_str (json_at (v->node, "status.allocatable"), v->resource, NULL));

  for (size_t i = 0; i < N_ROWS; i++) {
    if (!rows[i].ask)
      pod_row (v, &rows[i], &st[i]);
    json_array_append_new (list, json_pack ("{s:i, s:s, s:s, s:s}", "row", rows[i].number, "code",
                                            st[i].s.code, "result", words[st[i].r], "text",
                                            st[i].s.text));
    if (st[i].r == WAIT && !waits)
      waits = st[i].s.code;
    if (st[i].r == FAIL && !fails)
      fails = st[i].s.code;
  }
  code = fails ? fails : waits ? waits : "ok";
  json_put_str (node, "name", v->name);
  json_put_str (node, "uid", json_str_at (v->node, "metadata.uid", NULL));
  json_put_str (node, "kubelet_version",
                json_str_at (v->node, "status.nodeInfo.kubeletVersion", NULL));
  json_put_str (node, "kernel", json_str_at (v->node, "status.nodeInfo.kernelVersion", NULL));
  json_put_str (node, "os", json_str_at (v->node, "status.nodeInfo.osImage", NULL));
  json_put_str (node, "runtime",
                json_str_at (v->node, "status.nodeInfo.containerRuntimeVersion", NULL));
  json_put_i64 (node, "allocatable_gpus", gpus > 0 ? gpus : 0);
  if (json_array_size (json_object_get (v->pods.gpu, "gpus")))
    json_object_set (node, "gpu_pod", v->pods.gpu);
  return json_pack ("{s:O, s:s, s:O}", "rows", list, "code", code, "node", node);
}

json_t *
kube_verify (struct kube_call *c, struct err *e)
{
  const json_t *gpu = json_object_get (c->args, "gpu");
  int64_t timeout = json_i64 (c->args, "timeout_ms", TIMEOUT_MS), own = call_ms_left (c) - ROUND_MS,
          until;
  struct state st[N_ROWS] = { 0 };
  struct verify v = { .name = json_str (c->args, "node", ""),
                      .resource = json_str (gpu, "resource", "nvidia.com/gpu"),
                      .gpus = json_i64 (gpu, "count", 0),
                      .stable_ms = json_i64 (gpu, "stable_ms", STABLE_MS),
                      .since_ms = json_i64 (c->args, "since_ms", 0),
                      .network = json_bool (c->args, "network", false),
                      .e = e };
  json_t *value = NULL;
  int rc = -1;

  if (!name_ok ("node", v.name, e))
    return NULL;
  until = clock_boot_ms () + (timeout < own ? timeout : own);
  if (plane_all (&v.plane, c, e) == 0)
    while ((rc = ask_rows (&v, st)) == 0 && clock_boot_ms () < until)
      if (call_sleep (c, ROUND_MS, e) < 0) {
        rc = -1;
        break;
      }
  if (rc >= 0 && run_pods (&v, st, until) < 0)
    rc = -1;
  if (rc >= 0)
    value = summary (&v, st);
  json_decref (v.pods.gpu);
  json_decref (v.node);
  plane_done (&v.plane);
  return value;
}
