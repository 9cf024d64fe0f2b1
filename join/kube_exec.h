/* kube_exec.h - credentials from a program that a kubeconfig names, after client-go's rules
 *
 * One program runs once for all calls that need it, and its answer is kept until it expires or is
 * refused.  Only a kubeconfig of the broker's own configuration may name one.
 */
#ifndef GPUB_KUBE_EXEC_H
#define GPUB_KUBE_EXEC_H

#include "join/kube.h"
#include "join/kube_config.h"

struct credential {
  char *token, *cert, *key; /* a token, or a certificate with its key, or both */
  int64_t expires_ms;       /* wall clock; INT64_MAX: it does not say */
  unsigned generation;      /* never 0 */
};

/* Is what stands under `exec` something that can be run here? */
int exec_check (const json_t *exec, struct err *e);
/* refused: the generation that the server did not take (any more); 0: none.  Code kubeconfig-exec.
 */
int exec_credential (struct kube_call *c, const struct kubeconfig *k, unsigned refused,
                     struct credential *out, struct err *e);
void credential_done (struct credential *c); /* zeroes it */

#endif
