/* memory_int.h - what memory.c and memory_account.c share */
#ifndef GPUB_MEMORY_INT_H
#define GPUB_MEMORY_INT_H

#include "core/memory.h"
#include "core/vec.h"

struct memory {
  VEC (struct memory_entry) all;
  bool changed;
};

enum { MEMORY_NAME_MAX = 512 };

void memory_block_name (const struct memory_what *w, char out[static MEMORY_NAME_MAX]);
/* Goes on from h; with 0 it begins. */
uint64_t memory_hash (uint64_t h, const char *text);
const char *memory_or_dash (const char *s);
/* A failure of what has this name; widens what is there. */
const struct memory_entry *memory_hold (struct memory *m, const char *name, enum memory_why why,
                                        const char *text, int64_t now_ms);
void memory_drop (struct memory *m, size_t i);

/* memory_account.c: MEMORY_QUOTA and MEMORY_MONEY.  Until when it blocks. */
int64_t memory_account_fail (struct memory *m, const struct memory_what *w, enum memory_why why,
                             const char *text, int64_t now_ms);
/* It could pay, and had the quota. */
void memory_account_success (struct memory *m, const struct memory_what *w);

#endif
