/* truth.c - is what was delivered what was bought?
 *
 * A card shows a little less memory than it is sold with (24 GiB: 23,028 MiB), hence the tolerance.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu.h"
#include "core/json.h"
#include "core/truth.h"

enum { TOLERANCE_PERCENT = 88 };

static const json_t *
gpu_of (const json_t *offer)
{
  return json_object_get (offer, "gpu");
}

int64_t
truth_gpus (const json_t *offer)
{
  return json_i64 (gpu_of (offer), "count", 0);
}

int64_t
truth_mem_mib (const json_t *offer)
{
  int64_t fraction = json_i64 (gpu_of (offer), "fraction", 1);

  if (fraction > 1)
    return 0;
  return json_i64 (gpu_of (offer), "vram_gib", 0) * 1024 * TOLERANCE_PERCENT / 100;
}

static void
sold_as (const json_t *offer, struct gpu *g)
{
  const char *model = json_str (gpu_of (offer), "model", NULL);

  memset (g, 0, sizeof *g);
  if (!model || gpu_resolve (model, g) < 0)
    gpu_resolve (json_str (gpu_of (offer), "raw", ""), g);
}

void
truth_pattern (const json_t *offer, char *out, size_t size)
{
  const char *family;
  struct gpu g;

  sold_as (offer, &g);
  family = gpu_family (&g);
  out[0] = '\0';
  if (family)
    snprintf (out, size, "(^|[^A-Za-z0-9])%s([^A-Za-z0-9]|$)", family);
}

/* What the card calls itself says more than the offer did, once it is known. */
static void
delivered (const json_t *facts, struct gpu *g)
{
  const json_t *first = json_array_get (json_object_get (facts, "gpus"), 0);
  struct gpu have;

  if (first && gpu_resolve (json_str (first, "name", ""), &have) == 0 && have.family == g->family)
    *g = have;
}

void
truth_product (const json_t *offer, const json_t *facts, char *out, size_t size)
{
  int64_t vram = json_i64 (gpu_of (offer), "vram_gib", 0);
  const char *family;
  struct gpu g;

  sold_as (offer, &g);
  delivered (facts, &g);
  if (g.vram_gib)
    vram = g.vram_gib;
  family = gpu_family (&g);
  if (!family)
    family = json_str (gpu_of (offer), "raw", "GPU");
  if (vram)
    snprintf (out, size, "NVIDIA-%s-%lldGB", family, (long long) vram);
  else
    snprintf (out, size, "NVIDIA-%s", family);
  for (char *p = out; *p; p++)
    if (*p == ' ')
      *p = '-';
}

static json_t *
failure (const char *code, const char *text)
{
  return json_pack ("{s:s, s:s, s:s, s:b}", "step", "gpu", "code", code, "message", text,
                    "retryable", 0);
}

static json_t *
check_each (const json_t *offer, const json_t *facts)
{
  int64_t least = truth_mem_mib (offer);
  struct gpu sold, have;
  char text[256];
  json_t *gpu;
  size_t i;

  sold_as (offer, &sold);
  json_array_foreach (json_object_get (facts, "gpus"), i, gpu) {
    const char *name = json_str (gpu, "name", "");
    int64_t mem = json_i64 (gpu, "memory_mib", 0);

    if (sold.family && gpu_resolve (name, &have) == 0 && have.family != sold.family) {
      snprintf (text, sizeof text, "bought %s, the machine has %s", gpu_family (&sold), name);
      return failure ("gpu-model-mismatch", text);
    }
    if (mem && mem < least) {
      snprintf (text, sizeof text, "bought GPUs of at least %lld MiB, one has %lld MiB",
                (long long) least, (long long) mem);
      return failure ("gpu-memory-mismatch", text);
    }
  }
  return NULL;
}

json_t *
truth_check (const json_t *offer, const json_t *facts)
{
  const char *smi = json_str (facts, "gpu_smi", "");
  int64_t want = truth_gpus (offer), have;
  char text[256], *end;

  have = strtoll (smi, &end, 10);
  if (want == 0 || end == smi || *end)
    return NULL;
  if (have < want) {
    snprintf (text, sizeof text, "bought %lld GPUs, the machine has %lld", (long long) want,
              (long long) have);
    return failure (have ? "gpu-count-mismatch" : "gpu-absent", text);
  }
  return check_each (offer, facts);
}

bool
truth_mismatch (const char *code)
{
  static const char *const codes[] = { "gpu-absent",         "gpu-count-mismatch",
                                       "gpu-model-mismatch", "gpu-memory-mismatch",
                                       "gpu-unhealthy",      "xid" };

  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    if (strcmp (codes[i], code) == 0)
      return true;
  return false;
}
