/* gpu.h - what a GPU is called, and which GPU that is
 *
 * The table is core/gpus.conf, compiled in, so that a daemon and its table are always of one
 * version.  A name resolves to a family and facets; a facet that was not said is 0 and, in a query,
 * matches every value.
 */
#ifndef GPUB_GPU_H
#define GPUB_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum gpu_form {
  GPU_FORM_ANY,
  GPU_FORM_PCIE,
  GPU_FORM_SXM,
  GPU_FORM_NVL,
  GPU_FORM_OAM,
  GPU_FORM_END
};

/* A fraction that was asked for without saying which: any slice of a card. */
enum { GPU_SLICE = 255 };

struct gpu {
  uint16_t family;   /* index into the table + 1; 0: not known */
  uint16_t vram_gib; /* of the whole card as it is sold; 0: not said */
  uint8_t form;      /* enum gpu_form */
  uint8_t fraction;  /* 0: whole cards; N: each is 1/N of one; GPU_SLICE */
};

/* Parses the compiled-in table once; only a broken build fails.  Everything below calls it by
 * itself. */
int gpu_table (struct err *e);

/* 0, or -1 and *g zeroed when no model has that name.  "H100", "NVIDIA H100 80GB HBM3", "a100-80g",
 * "L4/8". */
int gpu_resolve (const char *name, struct gpu *g);
/* The nearest name that does resolve, for "did you mean"; NULL when nothing is near.  Static
 * memory. */
const char *gpu_suggest (const char *name);

/* Is what we have what was asked for?  A facet that is asked for but not known does not match. */
bool gpu_matches (const struct gpu *want, const struct gpu *have);

const char *gpu_family (const struct gpu *g); /* "RTX A6000"; NULL when not known */
const char *gpu_vendor (const struct gpu *g); /* "nvidia"; NULL when not known */
const char *gpu_form_name (enum gpu_form f);  /* "sxm"; NULL for ANY */
/* "H100-80GB-SXM", with no more facets than are known; "" when the family is not. */
void gpu_name (const struct gpu *g, char *out, size_t size);
/* The memory of one card: as said, else the least that the model is sold with; 0 when not known. */
unsigned gpu_vram_gib (const struct gpu *g);

/* What a cloud says about memory, checked: GiB given as MiB, the sum over all GPUs, and the host's
 * memory are recognised.  Sets g->vram_gib where the table knows the model.  Returns the MiB of one
 * (fractional) GPU as the cloud delivers it, 0 when nothing believable was said. */
uint64_t gpu_check_vram (struct gpu *g, uint64_t vram_mib, uint64_t ram_mib, unsigned count);

#endif
