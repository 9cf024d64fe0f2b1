/* kube_bootstrap.h - join tokens of a k0s cluster that no operator hosts (type "kubeconfig") */
#ifndef GPUB_KUBE_BOOTSTRAP_H
#define GPUB_KUBE_BOOTSTRAP_H

#include "join/kube_plane.h"

kube_call_fn bootstrap_mint, bootstrap_invalidate;

/* A k0s join token for a worker.  Caller zeroes and frees. */
char *join_token_encode (const char *server, const char *ca, const char *token);

#endif
