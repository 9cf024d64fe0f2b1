/* store_get.c - reading: at start, and for what is no longer in memory */
#include "config.h"

#include <string.h>

#include "core/store_sql.h"
#include "core/vec.h"

/* Slots after those of store_put.c. */
enum {
  GET_META = 8,
  GET_LEASE,
  GET_NAME,
  GET_ATTEMPTS,
  GET_OP,
  GET_KEY,
  GET_OPS,
  GET_EVENTS,
  GET_LOG,
  GET_NUMBER,
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

char *
store_meta (struct store *s, const char *key)
{
  sqlite3_stmt *q = store_statement (s, GET_META, "SELECT value FROM meta WHERE key = ?");
  char *value = NULL;

  sqlite3_bind_text (q, 1, key, -1, SQLITE_STATIC);
  if (sqlite3_step (q) == SQLITE_ROW)
    value = strdup (text (q, 0));
  sqlite3_reset (q);
  return value;
}

static int64_t
number (struct store *s, const char *what)
{
  sqlite3_stmt *q = NULL;
  int64_t n = 0;

  if (sqlite3_prepare_v2 (s->db, what, -1, &q, NULL) == SQLITE_OK && sqlite3_step (q) == SQLITE_ROW)
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

/* An attempt that cannot be read may be a machine that is paid for: -1, and nobody goes on without
 * it. */
static int
load_attempts (struct store *s, struct lease *l)
{
  int rc = 0;
  sqlite3_stmt *q =
      store_statement (s, GET_ATTEMPTS, "SELECT doc FROM attempt WHERE lease = ? ORDER BY number");

  sqlite3_bind_int64 (q, 1, l->number);
  while (sqlite3_step (q) == SQLITE_ROW) {
    AUTO_JSON json_t *j = doc (q, 0);

    if (!attempt_unpack (l, j))
      rc = -1;
  }
  sqlite3_reset (q);
  return rc;
}

static struct lease *
load_lease (struct store *s, sqlite3_stmt *q)
{
  AUTO_JSON json_t *j = doc (q, 0);
  struct lease *l = lease_unpack (j);

  if (l && load_attempts (s, l) < 0) {
    lease_free (l);
    return NULL;
  }
  return l;
}

static int
each_lease (struct store *s, sqlite3_stmt *q, store_lease_fn *fn, void *ctx, struct err *e)
{
  int rc;

  while ((rc = sqlite3_step (q)) == SQLITE_ROW) {
    struct lease *l = load_lease (s, q);

    if (!l)
      return err_set (e, ERR_INTERNAL, "store %s: a lease cannot be read: %.80s", s->path,
                      text (q, 0));
    fn (ctx, l);
  }
  sqlite3_reset (q);
  return rc == SQLITE_DONE ? 0 : store_fail (s, e, "leases");
}

/* An ended lease with an attempt that is not over is live: its machine still is. */
int
store_each_live (struct store *s, store_lease_fn *fn, void *ctx, struct err *e)
{
  sqlite3_stmt *q =
      store_statement (s, GET_LIVE, "SELECT doc FROM lease WHERE ended = 0 ORDER BY number");

  return q ? each_lease (s, q, fn, ctx, e) : store_fail (s, e, "leases");
}

int
store_each_ended (struct store *s, int64_t before, int64_t limit, store_lease_fn *fn, void *ctx,
                  struct err *e)
{
  sqlite3_stmt *q =
      store_statement (s, GET_ENDED,
                       "SELECT doc FROM lease WHERE ended = 1 AND (?1 = 0 OR number < ?1)"
                       " ORDER BY number DESC LIMIT ?2");

  if (!q)
    return store_fail (s, e, "leases");
  sqlite3_bind_int64 (q, 1, before);
  sqlite3_bind_int64 (q, 2, limit);
  return each_lease (s, q, fn, ctx, e);
}

struct lease *
store_lease (struct store *s, int64_t n)
{
  sqlite3_stmt *q = store_statement (s, GET_LEASE, "SELECT doc FROM lease WHERE number = ?");
  struct lease *l = NULL;

  sqlite3_bind_int64 (q, 1, n);
  if (sqlite3_step (q) == SQLITE_ROW)
    l = load_lease (s, q);
  sqlite3_reset (q);
  return l;
}

struct lease *
store_lease_by_name (struct store *s, const char *owner, const char *name)
{
  sqlite3_stmt *q =
      store_statement (s, GET_NAME,
                       "SELECT doc FROM lease WHERE name = ?1 AND (?2 IS NULL OR owner = ?2)"
                       " ORDER BY number DESC LIMIT 1");
  struct lease *l = NULL;

  sqlite3_bind_text (q, 1, name, -1, SQLITE_STATIC);
  if (owner)
    sqlite3_bind_text (q, 2, owner, -1, SQLITE_STATIC);
  if (sqlite3_step (q) == SQLITE_ROW)
    l = load_lease (s, q);
  sqlite3_reset (q);
  return l;
}

static struct op *
one_op (sqlite3_stmt *q)
{
  struct op *o = NULL;

  if (sqlite3_step (q) == SQLITE_ROW) {
    AUTO_JSON json_t *j = doc (q, 0);

    o = op_unpack (j);
  }
  sqlite3_reset (q);
  return o;
}

struct op *
store_op (struct store *s, int64_t n)
{
  sqlite3_stmt *q = store_statement (s, GET_OP, "SELECT doc FROM op WHERE number = ?");

  sqlite3_bind_int64 (q, 1, n);
  return one_op (q);
}

struct op *
store_op_by_key (struct store *s, const char *owner, const char *key)
{
  sqlite3_stmt *q = store_statement (s, GET_KEY, "SELECT doc FROM op WHERE owner = ? AND key = ?");

  sqlite3_bind_text (q, 1, owner, -1, SQLITE_STATIC);
  sqlite3_bind_text (q, 2, key, -1, SQLITE_STATIC);
  return one_op (q);
}

int
store_each_op (struct store *s, int64_t lease, bool running_only, store_op_fn *fn, void *ctx,
               struct err *e)
{
  sqlite3_stmt *q =
      store_statement (s, GET_OPS,
                       "SELECT doc FROM op WHERE (?1 = 0 OR lease = ?1) AND (?2 = 0 OR running = 1)"
                       " ORDER BY number");
  int rc;

  if (!q)
    return store_fail (s, e, "operations");
  sqlite3_bind_int64 (q, 1, lease);
  sqlite3_bind_int (q, 2, running_only);
  while ((rc = sqlite3_step (q)) == SQLITE_ROW) {
    AUTO_JSON json_t *j = doc (q, 0);
    struct op *o = op_unpack (j);

    if (!o)
      return err_set (e, ERR_INTERNAL, "store %s: an operation cannot be read: %.80s", s->path,
                      text (q, 0));
    fn (ctx, o);
  }
  sqlite3_reset (q);
  return rc == SQLITE_DONE ? 0 : store_fail (s, e, "operations");
}

static int
each_row (sqlite3_stmt *q, store_row_fn *fn, void *ctx)
{
  int rc;

  while ((rc = sqlite3_step (q)) == SQLITE_ROW)
    fn (ctx, sqlite3_column_int64 (q, 0), sqlite3_column_int64 (q, 1), text (q, 2), text (q, 3));
  sqlite3_reset (q);
  return rc == SQLITE_DONE ? 0 : -1;
}

int
store_each_event (struct store *s, int64_t after, int64_t lease, int64_t limit, store_row_fn *fn,
                  void *ctx)
{
  sqlite3_stmt *q = store_statement (
      s, GET_EVENTS,
      "SELECT seq, ms, topic, body FROM event WHERE seq > ?1 AND (?2 = 0 OR lease = ?2)"
      " ORDER BY seq LIMIT ?3");

  sqlite3_bind_int64 (q, 1, after);
  sqlite3_bind_int64 (q, 2, lease);
  sqlite3_bind_int64 (q, 3, limit);
  return each_row (q, fn, ctx);
}

int
store_each_log (struct store *s, int64_t lease, store_row_fn *fn, void *ctx)
{
  sqlite3_stmt *q = store_statement (
      s, GET_LOG, "SELECT id, ms, step, text FROM log WHERE lease = ? ORDER BY id");

  sqlite3_bind_int64 (q, 1, lease);
  return each_row (q, fn, ctx);
}
