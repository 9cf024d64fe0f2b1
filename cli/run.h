/* run.h - jobs while they run; for job.c and job-reply.c alone */
#ifndef GPUB_RUN_H
#define GPUB_RUN_H

#include "cli/job.h"
#include "cli/progress.h"

struct run {
  struct cli *c;
  struct job *jobs;
  size_t n;
  struct progress progress;
  bool reached;                   /* some request left for the broker */
  int64_t heard, asked, deadline; /* boot clock; deadline < 0: none */
  void (*on_accepted) (struct cli *c, const struct job *j);
};

/* Takes doc. */
void job_finish (struct job *j, json_t *doc, bool failed);
void run_send_wait (struct run *r, struct job *j);
void run_handle (struct run *r, int kind, const struct gpubc_reply *reply);

#endif
