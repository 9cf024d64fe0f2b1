/* kube_token.h - k0s join tokens: base64 of gzip of a kubeconfig, all of it to be distrusted */
#ifndef GPUB_KUBE_TOKEN_H
#define GPUB_KUBE_TOKEN_H

#include <stdint.h>

#include "core/err.h"
#include "join/kube_config.h"

/* Codes token-base64 token-gzip token-yaml.  Call kubeconfig_done either way. */
int join_token_decode (const char *text, size_t len, struct kubeconfig *k, struct err *e);

struct token_want {
  const char *ca;     /* the cluster's CA; NULL: not compared */
  int port;           /* the API's port from outside; 0: not compared */
  bool allow_private; /* the machines can reach private addresses */
  int64_t now_ms;
};
/* Codes token-role token-format token-server address-private token-ca ca-invalid ca-expired
 * token-ca-stale token-port. */
int join_token_check (const struct kubeconfig *k, const struct token_want *want, struct err *e);

#endif
