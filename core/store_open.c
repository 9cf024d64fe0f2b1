/* store_open.c - opening: whose it is, whether it is whole, which version it has
 *
 * What cannot be used is left as it was found: nothing is repaired or begun afresh in its place.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

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

  /* A lease is asked for by its name alone; what is old is found by when it ended. */
  "DROP INDEX lease_name;"
  "CREATE INDEX lease_name ON lease (name, number) WHERE name IS NOT NULL;"
  "CREATE INDEX lease_old ON lease (ended_ms) WHERE ended = 1;"
  "CREATE INDEX op_old ON op (ended_ms) WHERE running = 0;",
};

static int
sql (struct store *s, const char *text, struct err *e)
{
  return sqlite3_exec (s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_fail (s, e, text);
}

/* The first column of the first row, at most 200 bytes of it. */
static int
ask (struct store *s, const char *text, char out[200], struct err *e)
{
  sqlite3_stmt *q = NULL;
  int rc = -1;

  if (sqlite3_prepare_v2 (s->db, text, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step (q) == SQLITE_ROW) {
    const char *said = (const char *) sqlite3_column_text (q, 0);

    snprintf (out, 200, "%s", said ? said : "");
    for (char *c = out; *c; c++)
      if (*c == '\n')
        *c = ' ';
    rc = 0;
  } else {
    store_fail (s, e, text);
  }
  sqlite3_finalize (q);
  return rc;
}

/* ---- whose it is ---- */

static int
owned (const char *path, const struct stat *st, struct err *e)
{
  if (st->st_uid != geteuid ())
    return err_set (e, ERR_INVALID,
                    "%s belongs to uid %u, gpubrokerd runs as uid %u: run it as that user, or "
                    "chown -R state_dir",
                    path, (unsigned) st->st_uid, (unsigned) geteuid ());
  if (st->st_mode & 022)
    return err_set (e, ERR_INVALID, "%s can be written by others: chmod go-w it", path);
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
    return err_set (e, ERR_INVALID,
                    "%s: %s: state_dir must be readable and writable for gpubrokerd's user", path,
                    strerror (errno));
  if (flock (s->lock, LOCK_EX | LOCK_NB) < 0)
    return err_set (e, ERR_CONFLICT,
                    "%s is held: another gpubrokerd uses this state_dir: stop it first", path);
  return 0;
}

static int
check_owner (struct store *s, const char *folder, struct err *e)
{
  struct stat st;

  if (stat (folder, &st) < 0)
    return err_set (e, ERR_INVALID, "state_dir %s: %s", folder, strerror (errno));
  if (owned (folder, &st, e) < 0)
    return -1;
  if (stat (s->path, &st) < 0)
    return errno == ENOENT ? 0 : err_set (e, ERR_INVALID, "%s: %s", s->path, strerror (errno));
  if (!S_ISREG (st.st_mode))
    return err_set (e, ERR_INVALID, "%s is no file: move it away", s->path);
  return owned (s->path, &st, e);
}

/* ---- whether it is whole ---- */

static int
open_file (struct store *s, int flags, struct err *e)
{
  if (sqlite3_open_v2 (s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    return s->db ? store_fail (s, e, "open")
                 : err_set (e, ERR_INTERNAL, "store %s: out of memory", s->path);
  sqlite3_busy_timeout (s->db, 2000);
  return 0;
}

/* SQLite would open what it cannot write all the same. */
static int
check_writable (struct store *s, struct err *e)
{
  if (sqlite3_db_readonly (s->db, "main") == 0)
    return 0;
  return err_set (e, ERR_INVALID,
                  "store %s is read-only: make file, folder and mount writable for gpubrokerd's "
                  "user",
                  s->path);
}

static int
check_whole (struct store *s, struct err *e)
{
  char said[200] = "";

  if (ask (s, "PRAGMA quick_check (1)", said, e) < 0)
    return -1;
  if (strcmp (said, "ok") == 0)
    return 0;
  return err_set (e, ERR_INVALID, "store %s is damaged: restore a backup (docs/operations.md): %s",
                  s->path, said);
}

/* ---- which version it has ---- */

static int
keep_old (struct store *s, int from, struct err *e)
{
  char to[4200];

  snprintf (to, sizeof to, "%s.v%d", s->path, from);
  return store_backup (s, to, e);
}

static int
check_version (struct store *s, int *version, struct err *e)
{
  int known = (int) N_ELEMENTS (migrations);
  char text[200];

  if (ask (s, "PRAGMA user_version", text, e) < 0)
    return -1;
  *version = atoi (text);
  if (*version < 0 || *version > known)
    return err_set (e, ERR_INVALID,
                    "store %s has version %d, this gpubrokerd knows up to %d: install the newer "
                    "one again, or restore %s.v%d",
                    s->path, *version, known, s->path, known);
  if (ask (s, "SELECT count (*) FROM sqlite_schema", text, e) < 0)
    return -1;
  if (*version == 0 && strcmp (text, "0") != 0)
    return err_set (e, ERR_INVALID, "store %s is another program's database: move it away",
                    s->path);
  return 0;
}

static int
migrate (struct store *s, int from, struct err *e)
{
  int to = (int) N_ELEMENTS (migrations);
  char pragma[64];

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

/* ---- all of it ---- */

static struct store *
new_store (const char *folder)
{
  struct store *s = calloc (1, sizeof *s);

  if (!s)
    abort ();
  s->lock = -1;
  snprintf (s->path, sizeof s->path, "%s/gpubroker.db", folder);
  return s;
}

struct store *
store_open (const char *folder, struct err *e)
{
  struct store *s = new_store (folder);
  int version;

  if (check_owner (s, folder, e) == 0 && lock (s, folder, e) == 0 &&
      open_file (s, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e) == 0 &&
      check_writable (s, e) == 0 && check_version (s, &version, e) == 0 &&
      sql (s, "PRAGMA journal_mode = WAL", e) == 0 &&
      sql (s, "PRAGMA synchronous = FULL", e) == 0 &&
      sql (s, "PRAGMA secure_delete = ON", e) == 0 && check_whole (s, e) == 0 &&
      migrate (s, version, e) == 0)
    return s;
  store_close (s);
  return NULL;
}

int
store_copy (const char *folder, const char *to, struct err *e)
{
  struct store *s = new_store (folder);
  int version, rc = -1;

  if (open_file (s, SQLITE_OPEN_READWRITE, e) == 0 && check_whole (s, e) == 0 &&
      check_version (s, &version, e) == 0)
    rc = store_backup (s, to, e);
  store_close (s);
  return rc;
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
