/* store_put.c - writing: every put joins the turn's transaction */
#include "config.h"

#include <stdio.h>

#include "core/store_sql.h"

/* Slots of the prepared statements; reads have theirs in store_get.c. */
enum { PUT_LEASE, PUT_ATTEMPT, PUT_OP, PUT_EVENT, PUT_LOG, PUT_META };

sqlite3_stmt *
store_statement (struct store *s, unsigned slot, const char *text)
{
  if (!s->prepared[slot] && sqlite3_prepare_v3 (s->db, text, -1, SQLITE_PREPARE_PERSISTENT,
                                                &s->prepared[slot], NULL) != SQLITE_OK) {
    store_break (s, text);
    return NULL;
  }
  sqlite3_reset (s->prepared[slot]);
  sqlite3_clear_bindings (s->prepared[slot]);
  return s->prepared[slot];
}

static sqlite3_stmt *
put (struct store *s, unsigned slot, const char *text)
{
  store_begin (s);
  return s->broken ? NULL : store_statement (s, slot, text);
}

static void
run (struct store *s, sqlite3_stmt *q, const char *what)
{
  if (sqlite3_step (q) != SQLITE_DONE)
    store_break (s, what);
  sqlite3_reset (q);
}

static void
bind_text (sqlite3_stmt *q, int i, const char *text)
{
  sqlite3_bind_text (q, i, text, -1, SQLITE_TRANSIENT);
}

/* Takes j. */
static void
bind_json (sqlite3_stmt *q, int i, json_t *j)
{
  sqlite3_bind_text (q, i, json_dumps (j, JSON_COMPACT), -1, free);
  json_decref (j);
}

void
store_put_lease (struct store *s, const struct lease *l)
{
  sqlite3_stmt *q = put (s, PUT_LEASE, "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?, ?)");

  if (!q)
    return;
  sqlite3_bind_int64 (q, 1, l->number);
  bind_text (q, 2, l->owner ? l->owner : "");
  if (l->name)
    bind_text (q, 3, l->name);
  sqlite3_bind_int (q, 4, lease_over (l));
  sqlite3_bind_int64 (q, 5, l->ended_ms);
  bind_json (q, 6, lease_pack (l));
  run (s, q, "lease");
}

void
store_put_attempt (struct store *s, const struct lease *l, const struct attempt *a)
{
  sqlite3_stmt *q = put (s, PUT_ATTEMPT, "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?)");

  if (!q)
    return;
  sqlite3_bind_int64 (q, 1, l->number);
  sqlite3_bind_int64 (q, 2, a->number);
  bind_json (q, 3, attempt_pack (a));
  run (s, q, "attempt");
}

void
store_put_op (struct store *s, const struct op *o)
{
  sqlite3_stmt *q =
      put (s, PUT_OP,
           "INSERT INTO op VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE"
           " SET key = excluded.key, running = excluded.running, ended_ms = excluded.ended_ms,"
           " doc = excluded.doc");

  if (!q)
    return;
  sqlite3_bind_int64 (q, 1, o->number);
  sqlite3_bind_int64 (q, 2, o->lease);
  bind_text (q, 3, o->owner);
  if (o->key)
    bind_text (q, 4, o->key);
  sqlite3_bind_int (q, 5, o->state == OP_RUNNING);
  sqlite3_bind_int64 (q, 6, o->ended_ms);
  bind_json (q, 7, op_pack (o));
  run (s, q, "operation");
}

int64_t
store_put_event (struct store *s, int64_t ms, int64_t lease, const char *topic, const json_t *body)
{
  sqlite3_stmt *q = put (
      s, PUT_EVENT, "INSERT INTO event SELECT coalesce (max (seq), 0) + 1, ?, ?, ?, ? FROM event");

  if (!q)
    return 0;
  sqlite3_bind_int64 (q, 1, ms);
  sqlite3_bind_int64 (q, 2, lease);
  bind_text (q, 3, topic);
  bind_json (q, 4, json_incref ((json_t *) body));
  run (s, q, "event");
  return sqlite3_last_insert_rowid (s->db);
}

void
store_put_log (struct store *s, int64_t lease, int64_t ms, const char *step, const char *text)
{
  sqlite3_stmt *q = put (s, PUT_LOG, "INSERT INTO log (lease, ms, step, text) VALUES (?, ?, ?, ?)");

  if (!q)
    return;
  sqlite3_bind_int64 (q, 1, lease);
  sqlite3_bind_int64 (q, 2, ms);
  bind_text (q, 3, step);
  bind_text (q, 4, text);
  run (s, q, "log");
}

void
store_put_meta (struct store *s, const char *key, const char *value)
{
  sqlite3_stmt *q = put (s, PUT_META, "INSERT OR REPLACE INTO meta VALUES (?, ?)");

  if (!q)
    return;
  bind_text (q, 1, key);
  bind_text (q, 2, value);
  run (s, q, "meta");
}

#define OLD_LEASES                                                                                 \
 "SELECT number FROM lease WHERE ended = 1 AND ended_ms < %lld"                                    \
 " AND number < (SELECT max (number) FROM lease)"

/* The last of each kind always stays, and whole: numbers must never start again. */
void
store_prune (struct store *s, int64_t before_ms)
{
  char text[1024];

  store_begin (s);
  snprintf (text, sizeof text,
            "DELETE FROM attempt WHERE lease IN (" OLD_LEASES ");"
            "DELETE FROM log WHERE lease IN (" OLD_LEASES ");"
            "DELETE FROM lease WHERE number IN (" OLD_LEASES ");"
            "DELETE FROM op WHERE running = 0 AND ended_ms < %lld AND number < (SELECT max "
            "(number) FROM op);"
            /* oldest first, so that only what goes is looked at */
            "DELETE FROM event WHERE seq < coalesce ((SELECT seq FROM event WHERE ms >= %lld ORDER "
            "BY seq LIMIT 1), (SELECT max (seq) FROM event));",
            (long long) before_ms, (long long) before_ms, (long long) before_ms,
            (long long) before_ms, (long long) before_ms);
  if (!s->broken && sqlite3_exec (s->db, text, NULL, NULL, NULL) != SQLITE_OK)
    store_break (s, "prune");
}
