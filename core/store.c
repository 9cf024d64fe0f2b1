/* store.c - a turn's transaction, a request's savepoint, a copy
 *
 * WAL with synchronous=FULL: a committed turn survives power loss.  Opening is in store_open.c;
 * what is written and read in store_put.c and store_get.c.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fault.h"
#include "core/store_sql.h"

/* What a person can do about it, by SQLite's primary code.  ERR_INVALID: until somebody does,
 * starting again is useless. */
int
store_fail (struct store *s, struct err *e, const char *what)
{
  static const struct {
    int code;
    enum err_kind kind;
    const char *remedy;
  } all[] = {
    { SQLITE_NOTADB, ERR_INVALID, ": restore a backup (docs/operations.md)" },
    { SQLITE_CORRUPT, ERR_INVALID, ": restore a backup (docs/operations.md)" },
    { SQLITE_READONLY, ERR_INVALID, ": make it writable for gpubrokerd's user" },
    { SQLITE_CANTOPEN, ERR_INVALID, ": make file and folder writable for gpubrokerd's user" },
    { SQLITE_PERM, ERR_INVALID, ": make file and folder writable for gpubrokerd's user" },
    { SQLITE_FULL, ERR_UNAVAILABLE, ": make room on that disk" },
    { SQLITE_IOERR, ERR_UNAVAILABLE, ": the disk fails, look at the kernel's log" },
    { SQLITE_BUSY, ERR_UNAVAILABLE, ": end the other program that holds it" },
    { SQLITE_OK, ERR_INTERNAL, "" },
  };
  int code = sqlite3_errcode (s->db) & 0xff;
  size_t i = 0;

  while (all[i].code != code && all[i].code != SQLITE_OK)
    i++;
  return err_set (e, all[i].kind, "store %s: %.60s: %s%s", s->path, what, sqlite3_errmsg (s->db),
                  all[i].remedy);
}

static bool
sql (struct store *s, const char *text)
{
  return sqlite3_exec (s->db, text, NULL, NULL, NULL) == SQLITE_OK;
}

void
store_break (struct store *s, const char *what)
{
  if (!s->broken)
    store_fail (s, &s->why, what);
  s->broken = true;
}

void
store_begin (struct store *s)
{
  if (s->broken)
    return;
  if (!s->open && !(s->open = sql (s, "BEGIN IMMEDIATE")))
    store_break (s, "begin");
  else if (s->marked && !s->saved && !(s->saved = sql (s, "SAVEPOINT request")))
    store_break (s, "savepoint");
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
    if (!sql (s, "COMMIT"))
      store_break (s, "commit");
    fault_die ("commit", true);
  }
  s->open = false;
  if (!s->broken)
    return 0;
  sql (s, "ROLLBACK");
  if (e)
    *e = s->why;
  return -1;
}

/* ---- one request of a turn ---- */

void
store_mark (struct store *s)
{
  s->marked = !s->broken;
  s->saved = false;
}

bool
store_failed (const struct store *s)
{
  return s->broken;
}

void
store_keep (struct store *s)
{
  if (s->saved && !sql (s, "RELEASE request"))
    store_break (s, "release");
  s->marked = s->saved = false;
}

/* SQLite ends the whole transaction itself after some errors: then the turn is lost. */
int
store_undo (struct store *s, struct err *why)
{
  bool lost = !s->marked || (s->open && sqlite3_get_autocommit (s->db));

  if (!lost && s->saved)
    lost = !sql (s, "ROLLBACK TO request") || !sql (s, "RELEASE request");
  *why = s->why;
  s->marked = s->saved = false;
  s->broken = lost;
  return lost ? -1 : 0;
}

/* ---- copies ---- */

/* VACUUM INTO reads one moment of the books, and writers go on meanwhile. */
static int
vacuum_into (struct store *s, const char *to, struct err *e)
{
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2 (s->db, "VACUUM INTO ?", -1, &q, NULL);

  sqlite3_bind_text (q, 1, to, -1, SQLITE_STATIC);
  rc = rc == SQLITE_OK && sqlite3_step (q) == SQLITE_DONE ? 0 : store_fail (s, e, "copy");
  sqlite3_finalize (q);
  return rc;
}

static int
sync_file (const char *path, struct err *e)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);

  return fd >= 0 && fsync (fd) == 0 ? 0
                                    : err_set (e, ERR_INTERNAL, "%s: %s", path, strerror (errno));
}

/* Under another name until it is whole: a file with the right name is a good backup. */
int
store_backup (struct store *s, const char *to, struct err *e)
{
  char part[4300];
  int fd;

  snprintf (part, sizeof part, "%s.part", to);
  unlink (part);
  fd = open (part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set (e, ERR_INVALID, "%s: %s", part, strerror (errno));
  close (fd);
  if (vacuum_into (s, part, e) == 0 && sync_file (part, e) == 0) {
    if (rename (part, to) == 0)
      return 0;
    err_set (e, ERR_INVALID, "%s: %s", to, strerror (errno));
  }
  unlink (part);
  return -1;
}
