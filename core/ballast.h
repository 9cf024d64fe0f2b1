/* ballast.h - room on the disk that is kept for letting go
 *
 * FOLDER/ballast takes room while there is plenty.  When the disk is nearly full it is given up:
 * what releases and removals write has that room, and nothing new is begun until there is room for
 * it again.
 */
#ifndef GPUB_BALLAST_H
#define GPUB_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

/* A release adds less than 8 KiB to the books (rows, feed, log), and the WAL stays near 4 MiB: this
 * is room for some 3,000 releases. */
#define BALLAST_BYTES (INT64_C (32) << 20)
/* Less than that is nearly full: the WAL and one checkpoint of it. */
#define BALLAST_LOW (INT64_C (8) << 20)

struct ballast {
  char path[4200]; /* "": none is kept */
  bool held;
};

enum ballast_change { BALLAST_SAME, BALLAST_GIVEN_UP, BALLAST_MADE };

/* Pure: should it be there, with so many bytes free beside it? */
bool ballast_wanted (int64_t free_bytes, bool held);

/* The first look is made here. */
void ballast_start (struct ballast *x, const char *folder);
/* Looks at the disk and does what it takes; cheap enough for every commit. */
enum ballast_change ballast_look (struct ballast *x);
void ballast_drop (struct ballast *x);
/* Nothing new is to be begun. */
bool ballast_full (const struct ballast *x);

#endif
