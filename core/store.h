/* store.h - what must survive: SQLite behind a few verbs
 *
 * One writer.  A turn of the loop is one transaction: the first put opens it, store_commit closes
 * it, and only then may anything leave the process.  A put or a read that fails breaks the turn:
 * store_commit then fails too, the caller drops what it wanted to send and exits; the next start
 * finds the last committed turn.  What cannot be read never passes for what is not there.
 *
 * A request within a turn can be taken back alone: store_mark before it, then store_keep, or
 * store_undo when store_failed.
 */
#ifndef GPUB_STORE_H
#define GPUB_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/model.h"

struct store;

/* Opens (or makes) FOLDER/gpubroker.db, checks and locks it, and migrates it forward; the old file
 * is kept beside it. */
struct store *store_open (const char *folder, struct err *e);
void store_close (struct store *s);

void store_put_lease (struct store *s, const struct lease *l);
void store_put_attempt (struct store *s, const struct lease *l, const struct attempt *a);
void store_put_op (struct store *s, const struct op *o);
/* The next number of the feed, without gaps. */
int64_t store_put_event (struct store *s, int64_t ms, int64_t lease, const char *topic,
                         const json_t *body);
void store_put_log (struct store *s, int64_t lease, int64_t ms, const char *step, const char *text);
void store_put_meta (struct store *s, const char *key, const char *value);

bool store_dirty (const struct store *s);
int store_commit (struct store *s, struct err *e);

void store_mark (struct store *s);
bool store_failed (const struct store *s);
void store_keep (struct store *s);
/* Takes back what was put since the mark and says why; -1: the whole turn is lost. */
int store_undo (struct store *s, struct err *why);

/* Reads see this turn's own puts. */
char *store_meta (struct store *s, const char *key); /* caller frees; NULL when unset */
int64_t store_last_event (struct store *s);
int64_t store_max_lease (struct store *s);
int64_t store_max_op (struct store *s);
/* Leases with their attempts; ended: those that are over, newest first, below `before` (0: all).
 * A row that cannot be read ends it with an error that names the lease. */
typedef void store_lease_fn (void *ctx, struct lease *l); /* takes l */
int store_each_live (struct store *s, store_lease_fn *fn, void *ctx, struct err *e);
int store_each_ended (struct store *s, int64_t before, int64_t limit, store_lease_fn *fn, void *ctx,
                      struct err *e);
struct lease *store_lease (struct store *s, int64_t number);
struct lease *store_lease_by_name (struct store *s, const char *name); /* newest */
struct op *store_op (struct store *s, int64_t number);
struct op *store_op_by_key (struct store *s, const char *owner, const char *key);
typedef void store_op_fn (void *ctx, struct op *o); /* takes o */
int store_each_running (struct store *s, store_op_fn *fn, void *ctx, struct err *e);
int store_each_op (struct store *s, int64_t lease, store_op_fn *fn, void *ctx, struct err *e);
typedef void store_row_fn (void *ctx, int64_t seq, int64_t ms, const char *a, const char *b);
/* topic, body; lease 0: of all */
int store_each_event (struct store *s, int64_t after, int64_t lease, int64_t limit,
                      store_row_fn *fn, void *ctx);
/* step, text */
int store_each_log (struct store *s, int64_t lease, store_row_fn *fn, void *ctx);
/* Forgets operations, logs and events older than that, and leases that ended before it. */
void store_prune (struct store *s, int64_t before_ms);
/* A consistent copy while running, readable by its owner alone; what was at TO is replaced. */
int store_backup (struct store *s, const char *to, struct err *e);
/* The same from another process, whether a daemon runs or not. */
int store_copy (const char *folder, const char *to, struct err *e);

#endif
