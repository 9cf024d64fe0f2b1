/* kube_plane.h - the cluster of a call: its API, and for k0smotron the hosted control plane behind
 * it */
#ifndef GPUB_KUBE_PLANE_H
#define GPUB_KUBE_PLANE_H

#include "join/kube_api.h"

struct plane {
  struct kube_call *call;
  struct kube_api
      *home; /* where the kubeconfig leads: the management cluster, or the cluster itself */
  struct kube_api *hosted; /* the cluster that machines join; may be home */
  bool k0smotron;
  const char *ns, *name; /* of the Cluster object; borrowed from the call */
  char api_version[16];  /* "v1beta2" */
  json_t *object;        /* the Cluster */
  char host[256], konnectivity_host[256];
  int port, konnectivity_port;
};

/* Reads the kubeconfig and opens home.  Call plane_done either way. */
int plane_open (struct plane *p, struct kube_call *c, struct err *e);
/* k0smotron: discovers the API version, reads the Cluster, works out the outside addresses.  Codes
 * k0smotron-absent, cluster-absent. */
int plane_read (struct plane *p, struct err *e);
/* Opens hosted with the operator's admin kubeconfig, its server replaced by the outside address.
 * Code kubeconfig-absent. */
int plane_open_hosted (struct plane *p, struct err *e);
/* All three: what a call that acts on nodes wants. */
int plane_all (struct plane *p, struct kube_call *c, struct err *e);
void plane_done (struct plane *p);

const char *plane_service_type (const struct plane *p);
bool plane_ready (const struct plane *p);
/* The hosted cluster's CA as PEM, or NULL when the operator keeps none.  Caller frees. */
char *plane_ca (struct plane *p, struct err *e);
bool plane_allow_private (const struct plane *p);

#endif
