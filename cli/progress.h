/* progress.h - what running operations do, on standard error
 *
 * On a terminal the current step's line is rewritten as time passes; elsewhere each step is one
 * plain line.
 */
#ifndef GPUB_PROGRESS_H
#define GPUB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct progress {
  bool tty, quiet;
  bool open; /* the terminal's line waits for its newline */
  int64_t started_ms;
  char shown[320]; /* lease, state, step and text of the last line */
};

void progress_init (struct progress *p, bool tty, bool quiet);
void progress_show (struct progress *p, const json_t *progress);
void progress_tick (struct progress *p); /* once a second: the elapsed time moves on a terminal */
void progress_end (struct progress *p);

#endif
