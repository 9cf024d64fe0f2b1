/* table.c - columns for people; one that is empty in every row is not shown */
#include "config.h"

#include <stdint.h>

#include "cli/table.h"

void
table_init (struct table *t, const struct column *columns, size_t n)
{
  *t = (struct table){ .columns = columns, .n = n, .cells = VEC_EMPTY };
}

void
table_put (struct table *t, const char *text)
{
  char *copy = strdup (text ? text : "");

  if (!copy)
    abort ();
  *vec_push (&t->cells) = copy;
}

void
table_done (struct table *t)
{
  for (size_t i = 0; i < t->cells.n; i++)
    free (t->cells.at[i]);
  vec_free (&t->cells);
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static size_t
width (const char *s)
{
  size_t n = 0;

  for (; *s; s++)
    n += ((unsigned char) *s & 0xc0) != 0x80;
  return n;
}

static size_t
column_width (const struct table *t, size_t column)
{
  size_t most = 0;

  for (size_t i = column; i < t->cells.n; i += t->n)
    if (width (t->cells.at[i]) > most)
      most = width (t->cells.at[i]);
  if (most == 0)
    return 0;
  return most > width (t->columns[column].title) ? most : width (t->columns[column].title);
}

/* Blanks are held back until something follows them, so that no line ends in one. */
static void
put_cell (FILE *f, const char *text, size_t room, bool right, size_t *blanks)
{
  size_t pad = room - width (text);

  if (right)
    *blanks += pad;
  if (*text) {
    fprintf (f, "%*s%s", (int) *blanks, "", text);
    *blanks = 0;
  }
  *blanks += 2 + (right ? 0 : pad);
}

static void
put_row (const struct table *t, FILE *f, const size_t *room, char *const *cells)
{
  size_t blanks = 0;

  for (size_t i = 0; i < t->n; i++)
    if (room[i])
      put_cell (f, cells ? cells[i] : t->columns[i].title, room[i], t->columns[i].right, &blanks);
}

void
table_print (const struct table *t, FILE *f, bool colour)
{
  size_t *room = calloc (t->n, sizeof *room);

  if (!room)
    abort ();
  for (size_t i = 0; i < t->n; i++)
    room[i] = column_width (t, i);
  fputs (colour ? "\033[1m" : "", f);
  put_row (t, f, room, NULL);
  fputs (colour ? "\033[0m\n" : "\n", f);
  for (size_t i = 0; i + t->n <= t->cells.n; i += t->n) {
    put_row (t, f, room, t->cells.at + i);
    fputc ('\n', f);
  }
  free (room);
}
