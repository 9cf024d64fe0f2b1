/* kube_pods.c - runs the network matrix: servers first, then the pods that try to reach them */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_pods_int.h"

enum { ROUND_MS = 500 };

/* An image that does not come is no fault of the network between the nodes: it has a code of its
 * own. */
static const char *
stuck (const json_t *pod)
{
  const json_t *status = json_array_get (json_at (pod, "status.containerStatuses"), 0);
  const char *reason = json_str_at (status, "state.waiting.reason", "");

  return strstr (reason, "Image") ? reason : NULL;
}

static int
look (struct run *r, enum pod_id id)
{
  struct pod *p = &r->pods[id];
  AUTO_JSON json_t *pod =
      kube_get (r->api, r->e, "/api/v1/namespaces/%s/pods/%s", r->ns, kinds[id].name);
  const char *phase = json_str_at (pod, "status.phase", ""), *image;
  char text[200];

  if (!pod) {
    bool link = r->e->kind == ERR_UNAVAILABLE || r->e->kind == ERR_RATE;

    if (link)
      *r->e = (struct err) ERR_INIT;
    return link ? 0 : -1;
  }
  snprintf (p->ip, sizeof p->ip, "%s", json_str_at (pod, "status.podIP", ""));
  image = stuck (pod);
  if (image) {
    snprintf (text, sizeof text, "test-image-pull: %.150s",
              json_str_at (json_array_get (json_at (pod, "status.containerStatuses"), 0),
                           "state.waiting.message", image));
    pods_give_up (r, id, text);
  } else if (strcmp (phase, "Failed") == 0) {
    snprintf (text, sizeof text, "%.60s %.130s", json_str_at (pod, "status.reason", "it failed"),
              json_str_at (pod, "status.message", ""));
    pods_give_up (r, id, text);
  } else if (kinds[id].serves ? strcmp (phase, "Running") == 0 && p->ip[0]
                              : strcmp (phase, "Succeeded") == 0)
    p->over = true;
  return 0;
}

/* Until those between have served or ended. */
static int
wait_for (struct run *r, const enum pod_id *ids, size_t n)
{
  for (;;) {
    size_t waiting = 0;

    for (size_t i = 0; i < n; i++) {
      struct pod *p = &r->pods[ids[i]];

      if (p->started && !p->over && look (r, ids[i]) < 0)
        return -1;
      waiting += p->started && !p->over;
    }
    if (!waiting)
      return 0;
    if (clock_boot_ms () >= r->want->until_ms)
      break;
    if (call_sleep (r->want->plane->call, ROUND_MS, r->e) < 0)
      return -1;
  }
  for (size_t i = 0; i < n; i++)
    if (r->pods[ids[i]].started && !r->pods[ids[i]].over)
      pods_give_up (r, ids[i], "it was not done in time");
  return 0;
}

/* The other node's pod does not come up: that is said, and the rest is tested as on one node. */
static void
without_peer (struct run *r)
{
  static const int needing[] = { 8, 11 };
  struct pod *p = &r->pods[PEER_SERVER];
  bool pull = strncmp (p->problem, "test-image-pull", 15) == 0;
  char text[200];

  if (!p->problem[0])
    return;
  p->ip[0] = '\0';
  snprintf (text, sizeof text, "the pod on %.60s: %.120s", r->peer, p->problem);
  for (size_t i = 0; i < N_ELEMENTS (needing); i++)
    pods_say (r, needing[i], PODS_FAIL, pull ? "test-image-pull" : "test-pod-failed", text);
}

static int
start_all (struct run *r)
{
  static const enum pod_id servers[] = { SERVER, PEER_SERVER };

  if (pods_learn (r) < 0 || pods_start (r, SERVER) < 0)
    return -1;
  if (r->peer[0] && (pods_service (r) < 0 || pods_start (r, PEER_SERVER) < 0))
    return -1;
  if (r->want->gpus > 0 && pods_start (r, GPU) < 0)
    return -1;
  if (json_str (r->cluster, "storage_class", NULL) &&
      (pods_claim (r) < 0 || pods_start (r, STORAGE) < 0))
    return -1;
  if (wait_for (r, servers, N_ELEMENTS (servers)) < 0)
    return -1;
  if (r->pods[SERVER].problem[0]) {
    pods_give_up (r, PROBE, r->pods[SERVER].problem);
    pods_give_up (r, HOST, r->pods[SERVER].problem);
    return 0;
  }
  without_peer (r);
  return pods_start (r, PROBE) < 0 || pods_start (r, HOST) < 0 ? -1 : 0;
}

static int
run_all (struct run *r)
{
  static const enum pod_id tellers[] = { GPU, STORAGE, PROBE, HOST };

  if (start_all (r) < 0 || wait_for (r, tellers, N_ELEMENTS (tellers)) < 0)
    return -1;
  for (size_t i = 0; i < N_ELEMENTS (tellers); i++) {
    const struct pod *p = &r->pods[tellers[i]];

    if (p->started && !p->problem[0] && pods_hear (r, tellers[i]) < 0)
      return -1;
    pods_conclude (r, tellers[i]);
  }
  return 0;
}

int
pods_run (struct pods *p, struct err *e)
{
  struct run r = { .want = p, .api = p->plane->hosted, .cluster = p->plane->call->cluster, .e = e };
  int rc;

  p->gpu = json_pack ("{s:[]}", "gpus");
  pods_init_rows (&r);
  rc = pods_open (&r);
  if (rc == 0) {
    rc = run_all (&r);
    pods_close (&r);
  }
  return rc;
}
