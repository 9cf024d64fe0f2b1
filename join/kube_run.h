/* kube_run.h - a program run to its end: no shell, bounded time and output */
#ifndef GPUB_KUBE_RUN_H
#define GPUB_KUBE_RUN_H

#include "core/vec.h"
#include "join/kube.h"

enum { RUN_OUTPUT_MAX = 64 * 1024 };

struct run_command {
  const char *what; /* for errors */
  int64_t ms;       /* at most, and never beyond the call's own deadline */
  VEC (char *) argv, envp;
};

struct run_output {
  char bytes[RUN_OUTPUT_MAX + 1]; /* NUL-ended */
  size_t len;
};

void run_word (struct run_command *r, const char *word);
/* Added to the environment that this process has; the last of a name counts. */
void run_variable (struct run_command *r, const char *name, const char *value);
/* 0: it ended with 0, and out has its stdout; stderr is dropped.  Code kubeconfig-exec. */
int run_program (struct kube_call *c, struct run_command *r, struct run_output *out, struct err *e);
void run_done (struct run_command *r); /* zeroes it */

#endif
