/* store.c - opening, migrating and committing
 *
 * WAL with synchronous=FULL: a committed turn survives power loss.  What is written and read is in
 * store_put.c and store_get.c.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/fault.h"
#include "core/log.h"
#include "core/store_sql.h"

/* Each entry brings the file from version i to i + 1; entries are never changed, only appended. */
static const char *const migrations[] = {
  "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
  "CREATE TABLE lease (number INTEGER PRIMARY KEY, owner TEXT NOT NULL, name TEXT, ended INTEGER "
  "NOT NULL,"
  "                    ended_ms INTEGER NOT NULL, doc TEXT NOT NULL);"
  "CREATE INDEX lease_ended ON lease (ended, number);"
  "CREATE INDEX lease_name ON lease (owner, name) WHERE name IS NOT NULL;"
  "CREATE TABLE attempt (lease INTEGER NOT NULL, number INTEGER NOT NULL, doc TEXT NOT NULL,"
  "                      PRIMARY KEY (lease, number)) WITHOUT ROWID;"
  "CREATE TABLE op (number INTEGER PRIMARY KEY, lease INTEGER NOT NULL, owner TEXT NOT NULL, key "
  "TEXT,"
  "                 running INTEGER NOT NULL, ended_ms INTEGER NOT NULL, doc TEXT NOT NULL);"
  "CREATE UNIQUE INDEX op_key ON op (owner, key) WHERE key IS NOT NULL;"
  "CREATE INDEX op_lease ON op (lease);"
  "CREATE INDEX op_running ON op (running) WHERE running = 1;"
  "CREATE TABLE event (seq INTEGER PRIMARY KEY, ms INTEGER NOT NULL, lease INTEGER NOT NULL,"
  "                    topic TEXT NOT NULL, body TEXT NOT NULL);"
  "CREATE INDEX event_lease ON event (lease, seq);"
  "CREATE TABLE log (id INTEGER PRIMARY KEY, lease INTEGER NOT NULL, ms INTEGER NOT NULL,"
  "                  step TEXT NOT NULL, text TEXT NOT NULL);"
  "CREATE INDEX log_lease ON log (lease, id);",
};

int
store_fail (struct store *s, struct err *e, const char *what)
{
  return err_set (e, ERR_INTERNAL, "store %s: %s: %s", s->path, what, sqlite3_errmsg (s->db));
}

static int
sql (struct store *s, const char *text, struct err *e)
{
  return sqlite3_exec (s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_fail (s, e, text);
}

static int
version (struct store *s)
{
  sqlite3_stmt *q = NULL;
  int v = -1;

  if (sqlite3_prepare_v2 (s->db, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step (q) == SQLITE_ROW)
    v = sqlite3_column_int (q, 0);
  sqlite3_finalize (q);
  return v;
}

static int
keep_old (struct store *s, int from, struct err *e)
{
  char to[4200];

  snprintf (to, sizeof to, "%s.v%d", s->path, from);
  return store_backup (s, to, e);
}

static int
migrate (struct store *s, struct err *e)
{
  int from = version (s), to = (int) N_ELEMENTS (migrations);
  char pragma[64];

  if (from < 0 || from > to)
    return err_set (e, ERR_INVALID,
                    "store %s has version %d, this gpubrokerd knows up to %d: use a newer one",
                    s->path, from, to);
  if (from > 0 && from < to && keep_old (s, from, e) < 0)
    return -1;
  for (int v = from; v < to; v++) {
    snprintf (pragma, sizeof pragma, "PRAGMA user_version = %d", v + 1);
    if (sql (s, "BEGIN IMMEDIATE", e) < 0 || sql (s, migrations[v], e) < 0 ||
        sql (s, pragma, e) < 0 || sql (s, "COMMIT", e) < 0)
      return -1;
  }
  return 0;
}

/* Two daemons on one store would both rent; the second one ends here. */
static int
lock (struct store *s, const char *folder, struct err *e)
{
  char path[4200];

  snprintf (path, sizeof path, "%s/lock", folder);
  s->lock = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (s->lock < 0)
    return err_set (e, ERR_INVALID, "%s: %s", path, strerror (errno));
  if (flock (s->lock, LOCK_EX | LOCK_NB) < 0)
    return err_set (e, ERR_CONFLICT, "%s is held: another gpubrokerd uses this state_dir", path);
  return 0;
}

struct store *
store_open (const char *folder, struct err *e)
{
  struct store *s = calloc (1, sizeof *s);

  if (!s)
    abort ();
  s->lock = -1;
  snprintf (s->path, sizeof s->path, "%s/gpubroker.db", folder);
  if (lock (s, folder, e) < 0)
    goto fail;
  if (sqlite3_open_v2 (s->path, &s->db,
                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                       NULL) != SQLITE_OK) {
    err_set (e, ERR_INVALID, "store %s: %s", s->path,
             s->db ? sqlite3_errmsg (s->db) : "out of memory");
    goto fail;
  }
  chmod (s->path, 0600);
  sqlite3_busy_timeout (s->db, 2000);
  if (sql (s, "PRAGMA journal_mode = WAL", e) < 0 || sql (s, "PRAGMA synchronous = FULL", e) < 0 ||
      sql (s, "PRAGMA secure_delete = ON", e) < 0 || migrate (s, e) < 0)
    goto fail;
  return s;
fail:
  store_close (s);
  return NULL;
}

void
store_close (struct store *s)
{
  if (!s)
    return;
  for (size_t i = 0; i < STORE_STATEMENTS; i++)
    sqlite3_finalize (s->prepared[i]);
  sqlite3_close (s->db);
  if (s->lock >= 0)
    close (s->lock);
  free (s);
}

void
store_begin (struct store *s)
{
  if (s->open || s->broken)
    return;
  if (sqlite3_exec (s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK)
    s->open = true;
  else
    store_break (s, "begin");
}

void
store_break (struct store *s, const char *what)
{
  if (!s->broken)
    store_fail (s, &s->why, what);
  s->broken = true;
}

bool
store_dirty (const struct store *s)
{
  return s->open || s->broken;
}

int
store_commit (struct store *s, struct err *e)
{
  if (s->open && !s->broken) {
    fault_die ("commit", false);
    if (sqlite3_exec (s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
      store_break (s, "commit");
    fault_die ("commit", true);
  }
  s->open = false;
  if (!s->broken)
    return 0;
  sqlite3_exec (s->db, "ROLLBACK", NULL, NULL, NULL);
  if (e)
    *e = s->why;
  return -1;
}

int
store_backup (struct store *s, const char *to, struct err *e)
{
  sqlite3_backup *b;
  sqlite3 *out = NULL;
  int rc = -1;

  if (sqlite3_open_v2 (to, &out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK &&
      chmod (to, 0600) == 0 && (b = sqlite3_backup_init (out, "main", s->db, "main"))) {
    rc = sqlite3_backup_step (b, -1) == SQLITE_DONE ? 0 : -1;
    sqlite3_backup_finish (b);
  }
  if (rc < 0)
    err_set (e, ERR_INTERNAL, "backup to %s: %s", to, out ? sqlite3_errmsg (out) : "out of memory");
  sqlite3_close (out);
  return rc;
}
