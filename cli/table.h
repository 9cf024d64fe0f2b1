/* table.h - columns for people; one that is empty in every row is not shown */
#ifndef GPUB_TABLE_H
#define GPUB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/vec.h"

struct column {
  const char *title;
  bool right;
};

struct table {
  const struct column *columns;
  size_t n;
  VEC (char *) cells;
};

/* The columns must outlive the table. */
void table_init (struct table *t, const struct column *columns, size_t n);
/* The next cell, row by row.  NULL and "" are empty. */
void table_put (struct table *t, const char *text);
void table_print (const struct table *t, FILE *f, bool colour);
void table_done (struct table *t);

#endif
