/* offers_int.h - the inside of the offer table, for offers_*.c and match*.c alone
 *
 * An atom is a small number for a name, without regard to case: what the matcher compares instead
 * of strings.
 */
#ifndef GPUB_OFFERS_INT_H
#define GPUB_OFFERS_INT_H

#include "core/offers.h"
#include "core/vec.h"

enum { ATOMS_MAX = 60000 };

struct atoms {
  VEC (char *) names; /* [0] is "not known" */
  uint16_t *slots;    /* open addressing; 0: free */
  size_t nslots;      /* a power of two */
};

void atoms_init (struct atoms *a);
void atoms_done (struct atoms *a);
/* 0 for NULL, "" and when there are too many. */
uint16_t atom_add (struct atoms *a, const char *name);
/* 0 when nobody has that name. */
uint16_t atom_find (const struct atoms *a, const char *name);

/* Strings that live as long as their list. */
struct arena {
  struct arena_block *blocks;
};

char *arena_copy (struct arena *a, const char *bytes, size_t len);
void arena_done (struct arena *a);

struct offer_list { /* what one scope offers */
  char *scope;
  struct offer *hot;
  struct offer_text *text;
  size_t n, cap;
  struct arena arena;
};

struct offers_prov {
  char *name, *plugin;
  uint32_t caps;
  enum offers_state state;
  char *state_text;
  VEC (struct offer_list *) lists;
  VEC (struct offer_list *) staged; /* of the listing that runs */
  bool staged_complete, complete;
  int64_t listed_ms;
  uint32_t skipped, staged_skipped;
  char problem[160];
};

struct offers {
  struct offers_config conf;
  struct atoms atoms;
  VEC (struct offers_prov *) provs; /* by name: the order of the table breaks ties */
};

struct offers_prov *offers_prov (const struct offers *o, const char *name);

void offer_list_free (struct offer_list *l);
/* Adds one raw offer; -1 with the reason when it breaks a rule. */
int offer_list_add (struct offer_list *l, struct offers *o, const struct offers_prov *p,
                    const json_t *raw, uint32_t seen_s, struct err *e);
/* By ref, since the table's order is what breaks ties. */
void offer_list_sort (struct offer_list *l);
/* The prices of a raw offer: machine + address, the address alone, a GiB of disk. */
void offer_prices (const json_t *raw, uint64_t *price, uint64_t *ip, uint32_t *disk);
/* offers_price() without the table. */
uint64_t offer_price (const struct offer *x, uint32_t disk_gib, uint32_t default_gib);

/* Of one GPU, as it is sold where that is known, unless what is delivered is clearly less. */
static inline uint32_t
offer_vram_gib (const struct offer *x)
{
  uint32_t sold = x->gpu.fraction < 2 ? x->gpu.vram_gib : 0;

  if (sold && (!x->vram_mib || x->vram_mib >= sold * 1024 / 10 * 9))
    return sold;
  return (x->vram_mib + 512) / 1024;
}

#endif
