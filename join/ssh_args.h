/* ssh_args.h - what a CALL of the daemon asks for: where, as whom, and what */
#ifndef GPUB_SSH_ARGS_H
#define GPUB_SSH_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "join/ssh_script.h"

enum { ARGS_USERS_MAX = 4 };

enum ssh_kind { SSH_PROBE, SSH_LOG, SSH_KUBECONFIG, SSH_RUN };

struct ssh_args {
  json_t *body;                                       /* holds what is borrowed below */
  const char *host, *users[ARGS_USERS_MAX], *hostkey; /* hostkey: NULL when none is pinned */
  int port;
  size_t nusers;
  enum ssh_kind kind;
  struct script_run run;
  char hash[65], *token;
};

/* Fills *a, which the caller ends with ssh_args_done also after a failure.  token may be NULL. */
int ssh_args_read (struct ssh_args *a, const json_t *body, const char *token, size_t token_len,
                   struct err *e);
void ssh_args_done (struct ssh_args *a); /* zeroes the token */

#endif
