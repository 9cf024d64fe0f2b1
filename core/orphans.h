/* orphans.h - what the clouds show with a gpubroker mark and the books do not account for
 *
 * Three kinds of marks are told apart, and only what carries ours, whole, can ever be taken over.
 * Taking over makes a lease: it bills in the books, can be released as any other, and never ends by
 * itself.
 */
#ifndef GPUB_ORPHANS_H
#define GPUB_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct broker;
struct lease;
struct provider;

enum mark_whose { MARK_NONE, MARK_OTHER, MARK_OURS };

struct mark {
  enum mark_whose whose;
  const char *owner, *token; /* "" when absent; they live as long as the tags */
  int64_t lease;             /* 0: no number */
};

/* mark.c, pure */
struct mark mark_of (const json_t *tags, const char *instance);
bool mark_whole (const struct mark *m); /* ours, with number and token */
const char *mark_name (enum mark_whose whose);

/* Whether the rule orphans_release_after may end one now. */
struct orphan_case {
  struct mark mark;
  bool ignored, complete; /* complete: its scope was listed whole */
  bool frozen;            /* the clock, the books or the provider */
  int64_t floor;          /* lease numbers up to it were given out by other books */
  int64_t next;           /* lease numbers from it were given out by nobody */
  int64_t first_seen_ms, now_ms, grace_ms; /* grace 0: the rule is off */
};
bool orphan_due (const struct orphan_case *c);

/* orphans.c - the list of each provider, and what is remembered of it in the store.  An orphan is
 * the machine or resource as `list` brought it; a machine has the kind "machine". */
void orphans_begin (struct provider *p);
void orphans_see (struct provider *p, const char *kind, const json_t *thing);
void orphans_scope (struct provider *p, const json_t *scope);
void orphans_end (struct provider *p);            /* the list was answered */
bool orphans_complete (const struct provider *p); /* ... and it left no scope out */
json_t *orphan_json (const struct provider *p, const json_t *orphan); /* docs/schema/orphan.json */
bool orphan_ignored (const struct provider *p, const json_t *orphan);
void orphan_ignore (struct provider *p, const json_t *orphan, bool ignored);
void orphan_text (const struct provider *p, const json_t *orphan, char *text, size_t size);

/* orphan_lease.c */
struct lease *orphan_adopt (struct provider *p, const json_t *orphan, const char *owner);
/* For lost books: into the lease of its number, billed since the cloud made it. */
struct lease *orphan_rebuild (struct provider *p, const json_t *orphan);
/* Adopts it and begins its release. */
struct lease *orphan_release (struct provider *p, const json_t *orphan, const char *owner);
void orphans_rule (struct provider *p); /* orphans_release_after, once a list */

#endif
