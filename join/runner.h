/* runner.h - what main.c needs of the two runners */
#ifndef GPUB_RUNNER_H
#define GPUB_RUNNER_H

/* Serve gpubrokerd on fd 3 until it closes its end; the value is the exit status. */
int ssh_main (void);
int kube_main (void);

#endif
