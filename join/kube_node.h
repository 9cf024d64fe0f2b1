/* kube_node.h - what drain and verify both ask of a node */
#ifndef GPUB_KUBE_NODE_H
#define GPUB_KUBE_NODE_H

#include "join/kube_plane.h"

/* How long ago the kubelet renewed its lease; INT64_MAX when there is none. */
int node_lease_age (struct kube_api *a, const char *node, int64_t *age_ms, struct err *e);

#endif
