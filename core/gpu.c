/* gpu.c - what a GPU is called, and which GPU that is
 *
 * A name is cut into words.  Facets are taken out of them, noise is dropped, and what is left,
 * squeezed together, is looked up.  A name as a whole is tried first, because a few say more than
 * their words do ("GH200 480GB" is 96 GiB).
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/gpu.h"
#include "core/gpu_table.h"
#include "core/json.h"

enum { WORDS_MAX = 12, WORD_SIZE = GPU_KEY_MAX, NAME_MAX_BYTES = 80, SLICE_MAX = 64 };

static const char *const noise[] = {
    "NVIDIA",   "AMD",    "INTEL", "TESLA",      "GEFORCE", "QUADRO", "INSTINCT", "GPU",
    "GRAPHICS", "HBM2",   "HBM2E", "HBM3",       "HBM3E",   "GDDR5",  "GDDR6",    "GDDR6X",
    "GDDR7",    "TENSOR", "CORE",  "GENERATION", "EDITION", "NVLINK",
};

/* Brand words carry nothing even where the memory's kind does. */
enum { BRANDS = 9 };

static const char *const forms[GPU_FORM_END] = {
    [GPU_FORM_PCIE] = "pcie",
    [GPU_FORM_SXM] = "sxm",
    [GPU_FORM_NVL] = "nvl",
    [GPU_FORM_OAM] = "oam",
};

static struct gpu_table table;

int
gpu_table (struct err *e)
{
  return table.nmodels ? 0 : gpu_table_parse (gpus_conf, &table, e);
}

static const struct gpu_model *
model (const struct gpu *g)
{
  if (!g->family || gpu_table (NULL) < 0 || g->family > table.nmodels)
    return NULL;
  return &table.models[g->family - 1];
}

const char *
gpu_form_name (enum gpu_form f)
{
  return f < GPU_FORM_END ? forms[f] : NULL;
}

struct words {
  char at[WORDS_MAX][WORD_SIZE];
  size_t n;
};

static void
split (const char *name, struct words *w)
{
  size_t len = 0;

  w->n = 0;
  for (;; name++) {
    if (isalnum ((unsigned char)*name)) {
      if (len + 1 < WORD_SIZE && w->n < WORDS_MAX)
        w->at[w->n][len++] = (char)toupper ((unsigned char)*name);
    } else if (len) {
      w->at[w->n++][len] = '\0';
      len = 0;
    }
    if (!*name || w->n == WORDS_MAX)
      return;
  }
}

static void
drop (struct words *w, size_t i, size_t n)
{
  memmove (w->at[i], w->at[i + n], (w->n - i - n) * WORD_SIZE);
  w->n -= n;
}

static void
drop_noise (struct words *w, size_t nnoise)
{
  for (size_t i = w->n; i-- > 0;)
    for (size_t j = 0; j < nnoise; j++)
      if (strcmp (w->at[i], noise[j]) == 0) {
        drop (w, i, 1);
        break;
      }
}

static void
join (const struct words *w, char *out, size_t size)
{
  size_t n = 0;

  out[0] = '\0';
  for (size_t i = 0; i < w->n; i++)
    n += (size_t)snprintf (out + (n < size ? n : size), n < size ? size - n : 0, "%s", w->at[i]);
}

/* The digits a word starts with; *rest is what follows them. */
static unsigned
digits (const char *word, const char **rest)
{
  unsigned n = 0;

  for (*rest = word; isdigit ((unsigned char)**rest) && n < 100000; ++*rest)
    n = n * 10 + (unsigned)(**rest - '0');
  return n;
}

static bool
is_unit (const char *s)
{
  return strcmp (s, "G") == 0 || strcmp (s, "GB") == 0 || strcmp (s, "GIB") == 0;
}

/* "80GB" or "80 GB". */
static void
take_vram (struct words *w, struct gpu *g)
{
  for (size_t i = w->n; i-- > 0;) {
    const char *rest;
    unsigned n = digits (w->at[i], &rest);
    bool split_unit = *rest == '\0' && i + 1 < w->n && is_unit (w->at[i + 1]);

    if (!n || rest == w->at[i] || !(is_unit (rest) || split_unit))
      continue;
    g->vram_gib = (uint16_t)n;
    drop (w, i, split_unit ? 2 : 1);
    return;
  }
}

static int
form_of (const char *word)
{
  if (strncmp (word, "SXM", 3) == 0 && (!word[3] || (isdigit ((unsigned char)word[3]) && !word[4])))
    return GPU_FORM_SXM;
  if (strcmp (word, "PCIE") == 0 || strcmp (word, "PCI") == 0)
    return GPU_FORM_PCIE;
  if (strcmp (word, "NVL") == 0)
    return GPU_FORM_NVL;
  return strcmp (word, "OAM") == 0 ? GPU_FORM_OAM : GPU_FORM_ANY;
}

static void
take_form (struct words *w, struct gpu *g)
{
  for (size_t i = w->n; i-- > 0;) {
    int f = form_of (w->at[i]);

    if (f == GPU_FORM_ANY)
      continue;
    g->form = (uint8_t)f;
    drop (w, i, 1);
  }
}

static bool
is_vgpu (const char *word)
{
  const char *rest;

  return digits (word, &rest) && rest[0] && strchr ("QCAB", rest[0]) && !rest[1];
}

/* MIG and vGPU: the sizes that follow are the slice's, not the card's. */
static void
take_slice (const char *name, struct words *w, struct gpu *g)
{
  for (size_t i = w->n; i-- > 0;) {
    bool mig = strcmp (w->at[i], "MIG") == 0;

    if (!mig && strcmp (w->at[i], "GRID") != 0 && !(i && is_vgpu (w->at[i])))
      continue;
    g->fraction = GPU_SLICE;
    if (mig)
      w->n = i;
    else
      drop (w, i, 1);
  }
  if (g->fraction || w->n < 3)
    return;
  for (const char *p = strchr (name, '.'); p && p > name; p = strchr (p + 1, '.'))
    if ((p[-1] == 'g' || p[-1] == 'G') && isdigit ((unsigned char)p[1])) { /* 1g.10gb */
      g->fraction = GPU_SLICE;
      w->n -= 2;
      return;
    }
}

/* "L4/8" and "L4 1/8": an eighth.  Cuts it off the name. */
static void
take_fraction (char *name, struct gpu *g)
{
  char *slash = strrchr (name, '/');
  const char *rest;
  unsigned n = slash ? digits (slash + 1, &rest) : 0;

  if (n < 2 || n > SLICE_MAX || *rest)
    return;
  g->fraction = (uint8_t)n;
  *slash = '\0';
  if (slash - name > 2 && slash[-1] == '1' && !isalnum ((unsigned char)slash[-2]))
    slash[-1] = '\0';
}

/* A form that is written against the model: "H100SXM". */
static const struct gpu_key *
find_glued (char *key, struct gpu *g)
{
  static const char *const ends[] = {"SXM", "SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "PCIE", "NVL"};
  size_t len = strlen (key);

  for (size_t i = 0; i < N_ELEMENTS (ends); i++) {
    size_t n = strlen (ends[i]);

    if (len <= n || strcmp (key + len - n, ends[i]) != 0)
      continue;
    key[len - n] = '\0';
    g->form = (uint8_t)form_of (ends[i]);
    return gpu_table_find (&table, key);
  }
  return NULL;
}

/* The size the table knows that is near enough to be meant; 0 when none is. */
static unsigned
nominal (const struct gpu_model *m, uint64_t mib, unsigned denominator)
{
  unsigned best = 0;
  uint64_t best_off = UINT64_MAX;

  for (int i = 0; i < GPU_SIZES && m->vram[i]; i++) {
    uint64_t whole = (uint64_t)m->vram[i] * 1024 / denominator;
    uint64_t off = mib > whole ? mib - whole : whole - mib;

    if (mib * 100 < whole * 90 || mib * 100 > whole * 107 || off >= best_off)
      continue;
    best = m->vram[i];
    best_off = off;
  }
  return best;
}

/* What goes without saying: the only form, the only size; and the size as the table has it. */
static void
settle (struct gpu *g)
{
  const struct gpu_model *m = model (g);
  unsigned size = g->vram_gib ? nominal (m, (uint64_t)g->vram_gib * 1024, 1) : 0;

  if (size)
    g->vram_gib = (uint16_t)size;
  if (!g->vram_gib && !m->vram[1])
    g->vram_gib = m->vram[0];
  if (!g->form && m->forms && (m->forms & (m->forms - 1)) == 0)
    while (!(m->forms & 1u << g->form))
      g->form++;
}

static int
take (struct gpu *g, const struct gpu_key *k)
{
  g->family = k->model;
  if (k->vram)
    g->vram_gib = k->vram;
  if (k->form)
    g->form = k->form;
  settle (g);
  return 0;
}

static int
resolve (char *name, struct gpu *g)
{
  const struct gpu_key *k;
  char key[GPU_KEY_MAX];
  struct words w;

  take_fraction (name, g);
  if (strchr (name, '/')) /* "L4/0" is not an L40 */
    return -1;
  split (name, &w);
  drop_noise (&w, BRANDS);
  join (&w, key, sizeof key);
  k = gpu_table_find (&table, key);
  if (k)
    return take (g, k);
  drop_noise (&w, N_ELEMENTS (noise));
  take_slice (name, &w, g);
  take_vram (&w, g);
  take_form (&w, g);
  join (&w, key, sizeof key);
  k = gpu_table_find (&table, key);
  if (!k)
    k = find_glued (key, g);
  return k ? take (g, k) : -1;
}

int
gpu_resolve (const char *name, struct gpu *g)
{
  char copy[NAME_MAX_BYTES + 1];

  memset (g, 0, sizeof *g);
  if (!name || strlen (name) > NAME_MAX_BYTES || gpu_table (NULL) < 0)
    return -1;
  strcpy (copy, name);
  if (resolve (copy, g) == 0)
    return 0;
  memset (g, 0, sizeof *g);
  return -1;
}

const char *
gpu_suggest (const char *name)
{
  const char *names[512], *near;
  char key[GPU_KEY_MAX];
  size_t n;

  if (gpu_table (NULL) < 0)
    return NULL;
  for (n = 0; n < table.nkeys && n < N_ELEMENTS (names); n++)
    names[n] = table.keys[n].key;
  gpu_squeeze (name, key, sizeof key);
  near = nearest (key, names, n);
  return near ? table.models[gpu_table_find (&table, near)->model - 1].name : NULL;
}

bool
gpu_matches (const struct gpu *want, const struct gpu *have)
{
  if (want->family != have->family || (want->vram_gib && want->vram_gib != have->vram_gib) ||
      (want->form && want->form != have->form))
    return false;
  if (want->fraction == GPU_SLICE)
    return have->fraction != 0;
  return want->fraction == have->fraction;
}

const char *
gpu_family (const struct gpu *g)
{
  const struct gpu_model *m = model (g);

  return m ? m->name : NULL;
}

const char *
gpu_vendor (const struct gpu *g)
{
  const struct gpu_model *m = model (g);

  return m ? m->vendor : NULL;
}

static const char *
upper_form (enum gpu_form f)
{
  static const char *const names[GPU_FORM_END] = {"", "-PCIe", "-SXM", "-NVL", "-OAM"};

  return names[f];
}

void
gpu_name (const struct gpu *g, char *out, size_t size)
{
  const struct gpu_model *m = model (g);
  char vram[16] = "", fraction[16] = "";

  if (size)
    *out = '\0';
  if (!m)
    return;
  if (g->vram_gib && m->vram[1])
    snprintf (vram, sizeof vram, "-%uGB", g->vram_gib);
  if (g->fraction == GPU_SLICE)
    strcpy (fraction, " MIG");
  else if (g->fraction > 1)
    snprintf (fraction, sizeof fraction, "/%u", g->fraction);
  snprintf (out, size, "%s%s%s%s", m->name, vram,
            m->forms & (m->forms - 1) ? upper_form (g->form) : "", fraction);
}

unsigned
gpu_vram_gib (const struct gpu *g)
{
  const struct gpu_model *m = model (g);
  unsigned least = g->vram_gib;

  for (int i = 0; m && !g->vram_gib && i < GPU_SIZES && m->vram[i]; i++)
    if (!least || m->vram[i] < least)
      least = m->vram[i];
  return least;
}

static uint64_t
largest (const struct gpu_model *m)
{
  uint64_t most = 0;

  for (int i = 0; i < GPU_SIZES && m->vram[i]; i++)
    most = m->vram[i] > most ? m->vram[i] : most;
  return most * 1024;
}

/* Nothing to compare with: believed when it could be a GPU's at all. */
static uint64_t
check_unknown (uint64_t mib, uint64_t ram_mib)
{
  if (mib && mib <= 512)
    mib *= 1024;
  return mib == ram_mib || mib > UINT64_C (512) * 1024 ? 0 : mib;
}

uint64_t
gpu_check_vram (struct gpu *g, uint64_t vram_mib, uint64_t ram_mib, unsigned count)
{
  unsigned parts = g->fraction && g->fraction != GPU_SLICE ? g->fraction : 1;
  const struct gpu_model *m = model (g);
  const uint64_t guesses[] = {vram_mib, vram_mib * 1024, count > 1 ? vram_mib / count : 0};

  if (!m)
    return check_unknown (vram_mib, ram_mib);
  for (size_t i = 0; vram_mib && i < N_ELEMENTS (guesses); i++) {
    unsigned size = guesses[i] ? nominal (m, guesses[i], parts) : 0;

    if (!size)
      continue;
    g->vram_gib = (uint16_t)size;
    return guesses[i];
  }
  /* Less than the card has is believed, since a slice may hide behind it; more is not. */
  if (vram_mib > 512 && vram_mib != ram_mib && vram_mib < largest (m))
    return vram_mib;
  return (uint64_t)gpu_vram_gib (g) * 1024 / parts;
}
