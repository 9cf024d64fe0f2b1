/* store_sql.h - shared by the store*.c files only */
#ifndef GPUB_STORE_SQL_H
#define GPUB_STORE_SQL_H

#include <sqlite3.h>

#include "core/store.h"

enum { STORE_STATEMENTS = 24 };

struct store {
  sqlite3 *db;
  char path[4096];
  int lock;
  bool open;   /* a transaction is */
  bool broken; /* a put or a read failed: this turn must not be committed */
  bool marked; /* the next put begins a savepoint */
  bool saved;  /* there is one */
  struct err why;
  sqlite3_stmt *prepared[STORE_STATEMENTS];
};

void store_begin (struct store *s);
void store_break (struct store *s, const char *what);
/* Says what SQLite said last about WHAT, and what to do about it. */
int store_fail (struct store *s, struct err *e, const char *what);
/* The prepared statement of a slot, reset and ready to bind; NULL (and the turn broken) when SQL
 * refuses it. */
sqlite3_stmt *store_statement (struct store *s, unsigned slot, const char *text);

#endif
