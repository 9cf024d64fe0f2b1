/* memory.h - what failed lately, so that no client walks into it again
 *
 * Three kinds of entry.  A *block* is about one product, whoever sells it: (underlying cloud,
 * region, type, market) had no stock, delivered something else or booted too late; it lasts minutes
 * and widens while it repeats.  A *refusal* is about an account: out of money, or of quota.  A
 * *bar* is, too: AUTH or INVALID from a provider, or from one of its regions.  Pure: the caller
 * gives the time.
 */
#ifndef GPUB_MEMORY_H
#define GPUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

enum memory_why {
  MEMORY_CAPACITY,
  MEMORY_QUOTA,
  MEMORY_MISMATCH,
  MEMORY_LATE_BOOT,
  MEMORY_MONEY,
  MEMORY_WHY_END
};

struct memory_what { /* what failed; NULL and "" are the same */
  const char
      *cloud; /* the underlying cloud, the provider's plugin where there is none: offers_what() */
  const char *region;
  const char *type;     /* instance type */
  const char *market;   /* "on-demand" or "spot" */
  const char *provider; /* whose account */
  const char *area;     /* where the cloud counts its quotas apart: a region; NULL: nowhere */
};

struct memory_entry {
  uint64_t key;
  enum memory_why why;
  uint32_t times; /* in a row */
  int64_t since_ms, until_ms, success_ms;
  char *name; /* "hyperstack/NORWAY-1/n3-H100x1/on-demand", for people */
  char *text; /* the failure's own text */
};

struct memory;
struct memory *memory_new (void);
void memory_free (struct memory *m);

uint64_t memory_key (const struct memory_what *w);

/* A failure; widens what is there.  Returns until when it blocks.  MEMORY_QUOTA and MEMORY_MONEY
 * are of the account alone, all others of everybody. */
int64_t memory_fail (struct memory *m, const struct memory_what *w, enum memory_why why,
                     const char *text, int64_t now_ms);
/* It was delivered: the block and what its account was refused go, and the offer wins ties for an
 * hour. */
void memory_success (struct memory *m, const struct memory_what *w, int64_t now_ms);
/* The block that holds now, or NULL. */
const struct memory_entry *memory_blocked (const struct memory *m, uint64_t key, int64_t now_ms);
bool memory_succeeded (const struct memory *m, uint64_t key, int64_t now_ms);

/* Every entry, for who has to look at many offers at once. */
size_t memory_count (const struct memory *m);
const struct memory_entry *memory_at (const struct memory *m, size_t i);
bool memory_entry_good (const struct memory_entry *x, int64_t now_ms); /* succeeded lately */
/* The region that an entry bars for this provider; NULL when it is another's or about no region. */
const char *memory_bars_region (const struct memory_entry *x, const char *provider);

/* What its account was refused. */
const struct memory_entry *memory_broke (const struct memory *m, const char *provider,
                                         int64_t now_ms);
const struct memory_entry *memory_quota (const struct memory *m, const struct memory_what *w,
                                         int64_t now_ms);
bool memory_of_account (const struct memory_entry *x, const char *provider);
/* The key that memory_quota's entry of a type has: of the type's own key and the account. */
uint64_t memory_account_key (uint64_t key, const char *provider);
/* The area that an entry refuses to this provider, "" for all of it; NULL when it is another's or
 * about no area. */
const char *memory_area (const struct memory_entry *x, const char *provider, bool *spot);
void memory_forgive (struct memory *m, const char *provider); /* somebody says that it is mended */

/* AUTH or INVALID: bars a provider (region NULL) or one region of it. */
void memory_bar (struct memory *m, const char *provider, const char *region, const char *text,
                 int64_t now_ms);
void memory_unbar (struct memory *m, const char *provider); /* and all its regions */
const struct memory_entry *memory_barred (const struct memory *m, const char *provider,
                                          const char *region, int64_t now_ms);

/* Any change since the last call of this?  So that the store writes only what is new. */
bool memory_changed (struct memory *m);
/* Forgets what is over.  The store keeps memory_json; memory_load adds what it reads there and
 * skips what it does not understand. */
void memory_expire (struct memory *m, int64_t now_ms);
json_t *memory_json (const struct memory *m);
void memory_load (struct memory *m, const json_t *j, int64_t now_ms);

const char *memory_why_name (enum memory_why w);
/* The kind of failure as failure memory sees it: 0 block or refusal (*why set), 1 bar, -1 nothing
 * to remember. */
int memory_classify (const struct err *e, enum memory_why *why);

#endif
