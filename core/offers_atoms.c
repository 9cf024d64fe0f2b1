/* offers_atoms.c - names as small numbers, and strings that live as long as their list */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/offers_int.h"

enum { BLOCK = 16 * 1024 };

static void *
must (void *p)
{
  if (!p)
    abort ();
  return p;
}

static uint32_t
hash (const char *name)
{
  uint32_t h = 2166136261u;

  for (; *name; name++)
    h = (h ^ (uint32_t) tolower ((unsigned char) *name)) * 16777619u;
  return h;
}

void
atoms_init (struct atoms *a)
{
  memset (a, 0, sizeof *a);
  a->nslots = 256;
  a->slots = must (calloc (a->nslots, sizeof *a->slots));
  *vec_push (&a->names) = must (strdup (""));
}

void
atoms_done (struct atoms *a)
{
  for (size_t i = 0; i < a->names.n; i++)
    free (a->names.at[i]);
  vec_free (&a->names);
  free (a->slots);
}

/* The slot that holds the name, or the free one where it belongs. */
static uint16_t *
slot (const struct atoms *a, const char *name)
{
  size_t i = hash (name) & (a->nslots - 1);

  while (a->slots[i] && strcasecmp (a->names.at[a->slots[i]], name) != 0)
    i = (i + 1) & (a->nslots - 1);
  return &a->slots[i];
}

static void
grow (struct atoms *a)
{
  a->nslots *= 2;
  free (a->slots);
  a->slots = must (calloc (a->nslots, sizeof *a->slots));
  for (size_t i = 1; i < a->names.n; i++)
    *slot (a, a->names.at[i]) = (uint16_t) i;
}

uint16_t
atom_find (const struct atoms *a, const char *name)
{
  return name && *name ? *slot (a, name) : 0;
}

uint16_t
atom_add (struct atoms *a, const char *name)
{
  uint16_t id = atom_find (a, name);

  if (id || !name || !*name || a->names.n >= ATOMS_MAX)
    return id;
  id = (uint16_t) a->names.n;
  *vec_push (&a->names) = must (strdup (name));
  if (a->names.n * 2 > a->nslots)
    grow (a);
  else
    *slot (a, name) = id;
  return id;
}

struct arena_block {
  struct arena_block *next;
  size_t used, size;
  char at[];
};

char *
arena_copy (struct arena *a, const char *bytes, size_t len)
{
  struct arena_block *b = a->blocks;
  char *p;

  if (!b || b->size - b->used < len + 1) {
    size_t size = len + 1 > BLOCK ? len + 1 : BLOCK;

    b = must (malloc (sizeof *b + size));
    b->next = a->blocks;
    b->used = 0;
    b->size = size;
    a->blocks = b;
  }
  p = b->at + b->used;
  memcpy (p, bytes, len);
  p[len] = '\0';
  b->used += len + 1;
  return p;
}

void
arena_done (struct arena *a)
{
  struct arena_block *b = a->blocks, *next;

  for (; b; b = next) {
    next = b->next;
    free (b);
  }
  a->blocks = NULL;
}
