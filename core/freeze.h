/* freeze.h - when the clock or the books cannot be believed, nothing is ended by itself
 *
 * Releases that a person asks for go on; TTLs, deadlines and keep-until wait.
 */
#ifndef GPUB_FREEZE_H
#define GPUB_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

struct broker;

struct freeze {
  struct moment noted; /* the last moment at which both clocks agreed */
  bool clock, books;   /* why it is frozen */
};

void freeze_start (struct broker *b);
void freeze_tick (struct broker *b);
bool freeze_holds (const struct broker *b);
/* A machine of ours shows the number of a lease that these books never gave out: an old or a cloned
 * store. */
void freeze_number (struct broker *b, int64_t number);
/* Lease numbers up to it were given out by other books than these. */
int64_t freeze_floor (const struct broker *b);
/* The same as freeze_number, for a machine of a lease that is in the books, and was made by no
 * attempt of theirs; created_ms 0: not known. */
void freeze_unknown (struct broker *b, const char *machine, int64_t created_ms);
/* The admin says that all is well: as of now. */
void freeze_thaw (struct broker *b, const char *who);

#endif
