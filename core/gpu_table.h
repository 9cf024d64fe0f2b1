/* gpu_table.h - core/gpus.conf in memory; for gpu.c alone */
#ifndef GPUB_GPU_TABLE_H
#define GPUB_GPU_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { GPU_KEY_MAX = 48, GPU_SIZES = 4 };

struct gpu_model {
  char *name, *vendor;
  uint16_t vram[GPU_SIZES]; /* 0-ended unless full */
  unsigned forms;           /* bit per enum gpu_form */
};

struct gpu_key { /* a name with case and separators taken out, and what it stands for */
  char key[GPU_KEY_MAX];
  uint16_t model; /* index + 1 */
  uint16_t vram;
  uint8_t form;
};

struct gpu_table {
  struct gpu_model *models;
  size_t nmodels;
  struct gpu_key *keys; /* sorted */
  size_t nkeys;
};

/* Upper case, letters and digits alone. */
void gpu_squeeze (const char *name, char *out, size_t size);
int gpu_table_parse (const char *text, struct gpu_table *t, struct err *e);
void gpu_table_done (struct gpu_table *t);
const struct gpu_key *gpu_table_find (const struct gpu_table *t, const char *key);

/* The compiled-in text. */
extern const char gpus_conf[];

#endif
