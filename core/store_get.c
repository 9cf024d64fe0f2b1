/* store_get.c - reading: at start, and for what is no longer in memory
 *
 * A row that cannot be read may be a machine that is paid for: it breaks the turn, and stops a
 * start.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/store_sql.h"

/* Slots after those of store_put.c. */
enum {
  GET_META = 8,
  GET_LEASE,
  GET_NAME,
  GET_ATTEMPTS,
  GET_OP,
  GET_KEY,
  GET_OPS,
  GET_RUNNING,
  GET_EVENTS,
  GET_LEASE_EVENTS,
  GET_LOG,
  GET_LIVE,
  GET_ENDED
};

static const char *
text (sqlite3_stmt *q, int i)
{
  const char *t = (const char *) sqlite3_column_text (q, i);

  return t ? t : "";
}

static json_t *
doc (sqlite3_stmt *q, int i)
{
  return json_loads (text (q, i), 0, NULL);
}

/* Is there a further row?  After the last one, and after an error, the statement is reset. */
static bool
row (struct store *s, sqlite3_stmt *q, const char *what)
{
  int rc = q ? sqlite3_step (q) : SQLITE_DONE; /* without one, the turn is broken already */

  if (rc == SQLITE_ROW)
    return true;
  if (rc != SQLITE_DONE)
    store_break (s, what);
  sqlite3_reset (q);
  return false;
}

/* A row that is there and makes no sense. */
static void
unreadable (struct store *s, const char *what, int64_t number)
{
  if (!s->broken)
    err_set (&s->why, ERR_INVALID,
             "store %s: %s%lld cannot be read: restore a backup (docs/operations.md)", s->path,
             what, (long long) number);
  s->broken = true;
}

static int
outcome (const struct store *s, struct err *e)
{
  if (s->broken && e)
    *e = s->why;
  return s->broken ? -1 : 0;
}

char *
store_meta (struct store *s, const char *key)
{
  sqlite3_stmt *q = store_statement (s, GET_META, "SELECT value FROM meta WHERE key = ?");
  char *value = NULL;

  sqlite3_bind_text (q, 1, key, -1, SQLITE_STATIC);
  if (row (s, q, "meta"))
    value = strdup (text (q, 0));
  sqlite3_reset (q);
  return value;
}

static int64_t
number (struct store *s, const char *what)
{
  sqlite3_stmt *q = NULL;
  int64_t n = 0;

  if (sqlite3_prepare_v2 (s->db, what, -1, &q, NULL) != SQLITE_OK)
    store_break (s, what);
  else if (row (s, q, what))
    n = sqlite3_column_int64 (q, 0);
  sqlite3_finalize (q);
  return n;
}

int64_t
store_last_event (struct store *s)
{
  return number (s, "SELECT max (seq) FROM event");
}

int64_t
store_max_lease (struct store *s)
{
  return number (s, "SELECT max (number) FROM lease");
}

int64_t
store_max_op (struct store *s)
{
  return number (s, "SELECT max (number) FROM op");
}

/* ---- leases: every statement selects number, doc ---- */

static int
load_attempts (struct store *s, struct lease *l)
{
  sqlite3_stmt *q =
      store_statement (s, GET_ATTEMPTS, "SELECT doc FROM attempt WHERE lease = ? ORDER BY number");
  int bad = 0;

  sqlite3_bind_int64 (q, 1, l->number);
  while (row (s, q, "attempts")) {
    AUTO_JSON json_t *j = doc (q, 0);

    bad += !attempt_unpack (l, j);
  }
  return bad || s->broken ? -1 : 0;
}

static struct lease *
load_lease (struct store *s, sqlite3_stmt *q)
{
  AUTO_JSON json_t *j = doc (q, 1);
  int64_t n = sqlite3_column_int64 (q, 0);
  struct lease *l = lease_unpack (j);

  if (l && l->number == n && load_attempts (s, l) == 0)
    return l;
  unreadable (s, "lease l", n);
  lease_free (l);
  return NULL;
}

static int
each_lease (struct store *s, sqlite3_stmt *q, store_lease_fn *fn, void *ctx, struct err *e)
{
  while (row (s, q, "leases")) {
    struct lease *l = load_lease (s, q);

    if (!l)
      break;
    fn (ctx, l);
  }
  sqlite3_reset (q);
  return outcome (s, e);
}

/* An ended lease with an attempt that is not over is live: its machine still is. */
int
store_each_live (struct store *s, store_lease_fn *fn, void *ctx, struct err *e)
{
  sqlite3_stmt *q = store_statement (
      s, GET_LIVE, "SELECT number, doc FROM lease WHERE ended = 0 ORDER BY number");

  return each_lease (s, q, fn, ctx, e);
}

int
store_each_ended (struct store *s, int64_t before, int64_t limit, store_lease_fn *fn, void *ctx,
                  struct err *e)
{
  sqlite3_stmt *q = store_statement (s, GET_ENDED,
                                     "SELECT number, doc FROM lease WHERE ended = 1 AND number < ?"
                                     " ORDER BY number DESC LIMIT ?");

  sqlite3_bind_int64 (q, 1, before ? before : INT64_MAX);
  sqlite3_bind_int64 (q, 2, limit);
  return each_lease (s, q, fn, ctx, e);
}

static struct lease *
one_lease (struct store *s, sqlite3_stmt *q)
{
  struct lease *l = row (s, q, "lease") ? load_lease (s, q) : NULL;

  sqlite3_reset (q);
  return l;
}

struct lease *
store_lease (struct store *s, int64_t n)
{
  sqlite3_stmt *q =
      store_statement (s, GET_LEASE, "SELECT number, doc FROM lease WHERE number = ?");

  sqlite3_bind_int64 (q, 1, n);
  return one_lease (s, q);
}

struct lease *
store_lease_by_name (struct store *s, const char *name)
{
  sqlite3_stmt *q = store_statement (
      s, GET_NAME, "SELECT number, doc FROM lease WHERE name = ? ORDER BY number DESC LIMIT 1");

  sqlite3_bind_text (q, 1, name, -1, SQLITE_STATIC);
  return one_lease (s, q);
}

/* ---- operations: the same ---- */

static struct op *
load_op (struct store *s, sqlite3_stmt *q)
{
  AUTO_JSON json_t *j = doc (q, 1);
  struct op *o = op_unpack (j);

  if (!o)
    unreadable (s, "operation op", sqlite3_column_int64 (q, 0));
  return o;
}

static struct op *
one_op (struct store *s, sqlite3_stmt *q)
{
  struct op *o = row (s, q, "operation") ? load_op (s, q) : NULL;

  sqlite3_reset (q);
  return o;
}

struct op *
store_op (struct store *s, int64_t n)
{
  sqlite3_stmt *q = store_statement (s, GET_OP, "SELECT number, doc FROM op WHERE number = ?");

  sqlite3_bind_int64 (q, 1, n);
  return one_op (s, q);
}

struct op *
store_op_by_key (struct store *s, const char *owner, const char *key)
{
  sqlite3_stmt *q =
      store_statement (s, GET_KEY, "SELECT number, doc FROM op WHERE owner = ? AND key = ?");

  sqlite3_bind_text (q, 1, owner, -1, SQLITE_STATIC);
  sqlite3_bind_text (q, 2, key, -1, SQLITE_STATIC);
  return one_op (s, q);
}

static int
each_op (struct store *s, sqlite3_stmt *q, store_op_fn *fn, void *ctx, struct err *e)
{
  while (row (s, q, "operations")) {
    struct op *o = load_op (s, q);

    if (!o)
      break;
    fn (ctx, o);
  }
  sqlite3_reset (q);
  return outcome (s, e);
}

int
store_each_running (struct store *s, store_op_fn *fn, void *ctx, struct err *e)
{
  return each_op (s,
                  store_statement (s, GET_RUNNING,
                                   "SELECT number, doc FROM op WHERE running = 1 ORDER BY number"),
                  fn, ctx, e);
}

int
store_each_op (struct store *s, int64_t lease, store_op_fn *fn, void *ctx, struct err *e)
{
  sqlite3_stmt *q =
      store_statement (s, GET_OPS, "SELECT number, doc FROM op WHERE lease = ? ORDER BY number");

  sqlite3_bind_int64 (q, 1, lease);
  return each_op (s, q, fn, ctx, e);
}

/* ---- the feed and the log ---- */

static int
each_row (struct store *s, sqlite3_stmt *q, const char *what, store_row_fn *fn, void *ctx)
{
  while (row (s, q, what))
    fn (ctx, sqlite3_column_int64 (q, 0), sqlite3_column_int64 (q, 1), text (q, 2), text (q, 3));
  return s->broken ? -1 : 0;
}

int
store_each_event (struct store *s, int64_t after, int64_t lease, int64_t limit, store_row_fn *fn,
                  void *ctx)
{
  sqlite3_stmt *q =
      lease ? store_statement (s, GET_LEASE_EVENTS,
                               "SELECT seq, ms, topic, body FROM event WHERE seq > ?1 AND"
                               " lease = ?3 ORDER BY seq LIMIT ?2")
            : store_statement (s, GET_EVENTS,
                               "SELECT seq, ms, topic, body FROM event WHERE seq > ?1"
                               " ORDER BY seq LIMIT ?2");

  sqlite3_bind_int64 (q, 1, after);
  sqlite3_bind_int64 (q, 2, limit);
  if (lease)
    sqlite3_bind_int64 (q, 3, lease);
  return each_row (s, q, "events", fn, ctx);
}

int
store_each_log (struct store *s, int64_t lease, store_row_fn *fn, void *ctx)
{
  sqlite3_stmt *q = store_statement (
      s, GET_LOG, "SELECT id, ms, step, text FROM log WHERE lease = ? ORDER BY id");

  sqlite3_bind_int64 (q, 1, lease);
  return each_row (s, q, "log", fn, ctx);
}
