/* kube_pods.h - the rows of verification that need pods on the node
 *
 * A namespace of its own, a handful of pods bound to two nodes, their logs through the API server.
 * Everything goes in the end, also when the call is cancelled; what a killed runner left goes at
 * the next run.
 */
#ifndef GPUB_KUBE_PODS_H
#define GPUB_KUBE_PODS_H

#include "join/kube_plane.h"

enum pods_verdict { PODS_UNTESTED, PODS_PASS, PODS_FAIL };

struct pods_row {
  int number; /* of the verification matrix in docs/cluster-codes.md */
  enum pods_verdict verdict;
  const char *code;
  char text[200];
};

enum { PODS_ROWS = 7 };

struct pods {
  /* what is wanted */
  struct plane *plane;
  const char *node, *resource;
  int64_t gpus;
  int64_t until_ms; /* boot clock */
  /* what came of it */
  struct pods_row rows[PODS_ROWS];
  json_t *gpu; /* {"gpus":[{"name","memory_mib"}], "driver", "cuda"}, or NULL; the caller's */
};

/* -1: nothing could be tried at all. */
int pods_run (struct pods *p, struct err *e);

#endif
