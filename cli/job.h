/* job.h - mutations, watched to their end
 *
 * A broker may restart and ZeroMQ may lose a reply, so silence is answered: what was not accepted
 * is sent again with its key, what was accepted is asked after with `wait`.
 */
#ifndef GPUB_JOB_H
#define GPUB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

struct job {
  const char *verb;
  json_t *body; /* owned */
  char request[65];
  char wait[65]; /* the request id of a `wait` for it; "" for none */
  char lease[64], operation[64];
  bool accepted, finished, failed;
  json_t *doc; /* owned: the final object, the ERROR when it failed, or `accepted` with --no-wait */
};

/* Takes the body.  A key is added to a mutation that has none; a rent's name implies its own. */
void job_init (struct job *j, const char *verb, json_t *body);
/* Attaches to what a lease does already. */
void job_init_watch (struct job *j, const char *lease);
void job_done (struct job *j);

/* Runs all of them at once; those that were cut short have failed with `timeout` or `unreachable`.
 * on_accepted may be NULL. */
void jobs_run (struct cli *c, struct job *jobs, size_t n,
               void (*on_accepted) (struct cli *c, const struct job *j));
/* Prints all that came of them, frees them, and returns the first failure's exit code or 0.
 * tell prints one job for people. */
int jobs_report (struct cli *c, struct job *jobs, size_t n,
                 void (*tell) (struct cli *c, const struct job *j));

#endif
