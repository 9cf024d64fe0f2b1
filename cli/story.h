/* story.h - a lease told to people: what it is, what it costs, what to type next */
#ifndef GPUB_STORY_H
#define GPUB_STORY_H

#include <stdio.h>

#include "cli/job.h"

/* The lines of `show`, and what a rent that worked ends with. */
void story_lease (FILE *f, const json_t *lease);
/* A job that failed: the error, and what became of its lease. */
void story_failed (struct cli *c, const struct job *j);

#endif
