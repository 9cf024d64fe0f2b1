/* ssh_script.h - what is sent to a node: the command that is run there and the shell text on its
 * stdin */
#ifndef GPUB_SSH_SCRIPT_H
#define GPUB_SSH_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

enum { SCRIPT_NONCE = 32 };

/* join/node/NAME.sh, embedded when the runner is built. */
struct node_script {
  const char *name, *text;
};
extern const struct node_script node_scripts[]; /* ends with a NULL name */

struct script_run {
  const char *script; /* "worker", "leave", "check" */
  const json_t *params;
  const char *hash;  /* [A-Za-z0-9._-], at most 64 */
  const char *token; /* NULL: none */
};

void script_nonce (char nonce[SCRIPT_NONCE + 1]);
/* sha256 of the script and its parameters: names a run when the caller has no name for it. */
void script_hash (const char *script, const json_t *params, char hash[65]);
int script_check (const struct script_run *r, struct err *e);

/* The command: greets with the nonce, becomes root where that needs no password, reads shell from
 * stdin. All callers free; texts with a token are zeroed by the caller first. */
char *script_command (const char *nonce);
char *script_probe (void);
char *script_log (void);
char *script_kubeconfig (void); /* the machine's boot log and ours, their ends */
/* Start the run, or attach to it; then follow what it prints for at most wait_s. */
char *script_launch (const struct script_run *r, const char *nonce, int wait_s);
/* Follow it on, from a byte of its output. */
char *script_follow (const struct script_run *r, int64_t offset, int wait_s);

#endif
