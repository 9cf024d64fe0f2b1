/* help.h - what --help prints */
#ifndef GPUB_HELP_H
#define GPUB_HELP_H

#include "cli/cli.h"

/* About one command, or all of them with NULL; the exit code. */
int help_command (const struct cli *c, const struct command *about);

#endif
