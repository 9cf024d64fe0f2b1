/* gpu.c - GPU names: every alias of the table, the spellings seen in clouds, memory that clouds get
 * wrong */
#include "config.h"

#include <stdlib.h>

#include "core/gpu.h"
#include "core/gpu_table.h"
#include "tests/unit/tap.h"

static void
names_to (const char *name, const char *want)
{
  char got[64] = "";
  struct gpu g;

  gpu_resolve (name, &g);
  gpu_name (&g, got, sizeof got);
  is_str (got, want, name);
}

static void
spellings (void)
{
  static const struct {
    const char *name, *want;
  } rows[] = {
      {"H100", "H100"},
      {"h100", "H100"},
      {"H100-80GB-HBM3", "H100-80GB-SXM"},
      {"NVIDIA H100 80GB HBM3", "H100-80GB-SXM"},
      {"NVIDIA-H100-80GB-HBM3", "H100-80GB-SXM"},
      {"NVIDIA-H100-80GB", "H100-80GB"},
      {"NVIDIA H100 PCIe", "H100-PCIe"},
      {"NVIDIA H100 NVL", "H100-94GB-NVL"},
      {"H100_sxm5", "H100-SXM"},
      {"H100SXM5", "H100-SXM"},
      {"H100-80G-PCIe", "H100-80GB-PCIe"},
      {"H100-80G-PCIe-NVLink", "H100-80GB-PCIe"},
      {"gpu-h100-sxm", "H100-SXM"},
      {"gpu-h200-sxm", "H200-SXM"},
      {"H200-141G-SXM5", "H200-SXM"},
      {"gpu-b200-sxm-a", "B200"},
      {"gpu-b300-sxm", "B300"},
      {"NVIDIA B300 SXM6 AC", "B300"},
      {"B300-288GB", "B300"},
      {"B200-192GB", "B200"},
      {"gpu-l40s-a", "L40S"},
      {"gpu-l40s-d", "L40S"},
      {"gpu-gb200", "GB200"},
      {"A100-80GB", "A100-80GB"},
      {"A100_80G", "A100-80GB"},
      {"A100 80 GB", "A100-80GB"},
      {"NVIDIA A100-SXM4-40GB", "A100-40GB-SXM"},
      {"NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"},
      {"A100-80G-PCIe", "A100-80GB-PCIe"},
      {"Tesla V100-SXM2-16GB", "V100-16GB-SXM"},
      {"V100_32G", "V100-32GB"},
      {"Tesla T4", "T4"},
      {"T4g", "T4G"},
      {"RTX 4090", "RTX 4090"},
      {"rtx_4090", "RTX 4090"},
      {"RTX4090", "RTX 4090"},
      {"4090", "RTX 4090"},
      {"NVIDIA GeForce RTX 4090", "RTX 4090"},
      {"NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti"},
      {"RTX A6000", "RTX A6000"},
      {"RTX-A6000", "RTX A6000"},
      {"A6000", "RTX A6000"},
      {"A6000_plus", "RTX A6000"},
      {"RTX-A4000", "RTX A4000"},
      {"RTX6000", "RTX 6000"},
      {"Quadro RTX 6000", "RTX 6000"},
      {"RTX6000Ada", "RTX 6000 Ada"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"},
      {"RTXA6000", "RTX A6000"},
      {"RTX PRO 6000", "RTX PRO 6000"},
      {"RTX Pro 6000 SE", "RTX PRO 6000"},
      {"RTX PRO Server 6000", "RTX PRO 6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000"},
      {"L4", "L4"},
      {"L4/8", "L4/8"},
      {"L4 1/8", "L4/8"},
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100-80GB MIG"},
      {"A100-1g.5gb", "A100 MIG"},
      {"NVIDIA A10-4Q", "A10 MIG"},
      {"GRID A100-10C", "A100 MIG"},
      {"NVIDIA GH200 480GB", "GH200-96GB"},
      {"NVIDIA GH200 144G HBM3e", "GH200-144GB"},
      {"AMD Instinct MI300X", "MI300X"},
      {"Radeon Pro V520", "Radeon Pro V520"},
      {"Gaudi HL-205", ""},
      {"HL-205", "Gaudi"},
      {"NVIDIA", ""},
      {"", ""},
      {"H1000", ""},
      {"A100G", ""},
      {"80GB", ""},
      {"L4/0", ""},
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++)
    names_to (rows[i].name, rows[i].want);
}

static uint16_t
family (const char *name)
{
  struct gpu g;

  gpu_resolve (name, &g);
  return g.family;
}

static void
different (const char *a, const char *b)
{
  ok (family (a) && family (b) && family (a) != family (b), "%s is not %s", a, b);
}

/* Every name of the table stands for its model, whatever the separators. */
static void
every_key (void)
{
  struct err e = ERR_INIT;
  struct gpu_table t;
  size_t bad = 0;

  ok (gpu_table_parse (gpus_conf, &t, &e) == 0, "the table parses: %s", e.text);
  ok (t.nmodels > 80 && t.nkeys > 160, "%zu models, %zu names", t.nmodels, t.nkeys);
  for (size_t i = 0; i < t.nkeys; i++)
    if (family (t.keys[i].key) != t.keys[i].model) {
      printf ("# %s does not resolve to its model\n", t.keys[i].key);
      bad++;
    }
  is_num ((int64_t)bad, 0, "every squeezed name resolves to its model");
  for (size_t i = 0; i < t.nmodels; i++)
    if (family (t.models[i].name) != i + 1) {
      printf ("# %s does not resolve to itself\n", t.models[i].name);
      bad++;
    }
  is_num ((int64_t)bad, 0, "every model's name resolves to itself");
  gpu_table_done (&t);
}

static bool
fits (const char *want, const char *have)
{
  struct gpu w, h;

  return gpu_resolve (want, &w) == 0 && gpu_resolve (have, &h) == 0 && gpu_matches (&w, &h);
}

static void
matching (void)
{
  ok (fits ("H100", "NVIDIA H100 80GB HBM3"), "an unfaceted query matches the sxm form");
  ok (fits ("H100", "H100-PCIe"), "and the pcie form");
  ok (fits ("H100", "H100 NVL"), "and another memory");
  ok (fits ("H100-SXM", "H100_sxm5"), "a form matches its own");
  ok (!fits ("H100-SXM", "H100-PCIe"), "and not another");
  ok (!fits ("H100-SXM", "H100"), "nor one that is not known");
  ok (!fits ("A100-80GB", "A100-40GB"), "memory that was asked for is what counts");
  ok (!fits ("A100-80GB", "A100"), "memory that is not known does not count");
  ok (fits ("L40S-48GB", "L40S"), "the only memory there is is known");
  ok (!fits ("L4", "L4/8"), "a whole card is not a fraction");
  ok (!fits ("L4/8", "L4"), "nor the other way round");
  ok (fits ("L4/8", "L4 1/8") && !fits ("L4/8", "L4/4"), "a fraction matches its own");
  ok (fits ("A100 MIG", "A100/7") && !fits ("A100 MIG", "A100"), "any slice matches any fraction");
}

static void
vram (const char *name, uint64_t mib, uint64_t ram_mib, unsigned count, uint64_t want,
      unsigned want_gib, const char *what)
{
  struct gpu g;

  gpu_resolve (name, &g);
  is_num ((int64_t)gpu_check_vram (&g, mib, ram_mib, count), (int64_t)want, what);
  is_num (g.vram_gib, want_gib, "... and the model's memory is as sold");
}

static void
memory (void)
{
  struct gpu g;

  vram ("L4", 22888, 16384, 1, 22888, 24, "L4 as EC2 says it");
  vram ("L40S", 45776, 32768, 1, 45776, 48, "L40S as EC2 says it");
  vram ("H200", 144384, 2097152, 8, 144384, 141, "H200 as EC2 says it");
  vram ("B200", 183359, 2097152, 8, 183359, 180, "B200 as EC2 says it");
  vram ("B200", 196608, 2097152, 8, 196608, 180, "B200 as sellers say it");
  vram ("B300", 275040, 4194304, 8, 275040, 270, "B300 as EC2 says it");
  vram ("B300", 294912, 4194304, 8, 294912, 270, "B300 as sellers say it");
  vram ("A100", 81920, 1179648, 8, 81920, 80, "A100 with 80 GiB");
  vram ("A100", 40960, 1179648, 8, 40960, 40, "A100 with 40 GiB");
  vram ("A100", 0, 1179648, 8, 40960, 0, "A100 of unknown memory counts as the smallest");
  vram ("H100", 80, 204800, 1, 81920, 80, "GiB given as MiB");
  vram ("H100", 655360, 2097152, 8, 81920, 80, "the sum over eight GPUs");
  vram ("H100", 204800, 204800, 1, 65536, 0, "host memory given as the GPU's");
  vram ("L40S", 204800, 300000, 1, 49152, 48, "more than the card has");
  vram ("H100", 20480, 204800, 1, 20480, 0, "less than the card has: perhaps a slice");
  vram ("L4/8", 2861, 8192, 1, 2861, 24, "an eighth of an L4");
  vram ("L4/8", 0, 8192, 1, 3072, 24, "an eighth of an L4, not said");
  vram ("Unheard-of 9000", 49152, 65536, 1, 49152, 0, "an unknown model is believed");
  vram ("Unheard-of 9000", 65536, 65536, 1, 0, 0, "unless it is the host's memory");
  vram ("Unheard-of 9000", 48, 65536, 1, 49152, 0, "and GiB are seen");
  gpu_resolve ("A100", &g);
  is_num (gpu_vram_gib (&g), 40, "unsaid memory is the least there is");
}

static void
suggest (const char *name, const char *want)
{
  const char *got = gpu_suggest (name);

  if (want)
    is_str (got, want, name);
  else
    ok (!got, "nothing is near %s", name);
}

int
main (void)
{
  struct gpu g;

  spellings ();
  every_key ();
  different ("RTX6000", "RTX6000Ada");
  different ("RTX6000", "RTXA6000");
  different ("RTX6000", "RTX PRO 6000");
  different ("RTX6000Ada", "RTXA6000");
  different ("RTX6000Ada", "RTX PRO 6000");
  different ("RTXA6000", "RTX PRO 6000");
  different ("A10", "A10G");
  different ("A10", "A100");
  different ("L40", "L40S");
  different ("L4", "L40");
  different ("T4", "T4g");
  different ("V100", "V100S");
  different ("RTX 4090", "RTX 4090 D");
  different ("H100", "H200");
  matching ();
  memory ();
  suggest ("H1000", "H100");
  suggest ("RTX4091", "RTX 4090");
  suggest ("L40X", "L40");
  suggest ("banana-split", NULL);
  gpu_resolve ("MI300X", &g);
  is_str (gpu_vendor (&g), "amd", "the vendor is known");
  is_str (gpu_family (&g), "MI300X", "and the family");
  gpu_resolve (NULL, &g);
  ok (!g.family && !gpu_family (&g) && !gpu_vendor (&g), "no name is no model");
  return done ();
}
