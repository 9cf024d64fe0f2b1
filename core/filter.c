/* filter.c - FILTER of docs/protocol.md: what a caller wants, parsed and checked once */
#include "config.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/filter.h"
#include "core/json.h"

/* A million dollars: more is a mistake, and sums over many leases must not overflow. */
#define MONEY_MAX 1000000000000ll

static const struct json_member members[] = {
  { "gpu", JSON_ARRAY, false },
  { "vram_gib", JSON_INTEGER, false },
  { "total_vram_gib", JSON_INTEGER, false },
  { "vcpus", JSON_INTEGER, false },
  { "ram_gib", JSON_INTEGER, false },
  { "disk_gib", JSON_INTEGER, false },
  { "market", JSON_STRING, false },
  { "region", JSON_ARRAY, false },
  { "country", JSON_ARRAY, false },
  { "provider", JSON_ARRAY, false },
  { "exclude", JSON_ARRAY, false },
  { "locality", JSON_STRING, false },
  { "kind", JSON_STRING, false },
  { "arch", JSON_STRING, false },
  { "interconnect", JSON_STRING, false },
  { "min_driver", JSON_STRING, false },
  { "max_price_udollar", JSON_INTEGER, false },
  { "max_price_per", JSON_STRING, false },
  { "max_cost_udollar", JSON_INTEGER, false },
};

static const struct json_member gpu_members[] = {
  { "model", JSON_STRING, true },
  { "min", JSON_INTEGER, false },
  { "max", JSON_INTEGER, false },
};

static const char *const markets[] = { "on-demand", "spot", "any" };
static const char *const kinds[] = { "vm", "baremetal", "container", "any" };

static int
word (const char *name, const char *const *words, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (words[i], name) == 0)
      return (int) i;
  return -1;
}

const char *
filter_market_name (enum filter_market m)
{
  return markets[m];
}

int
filter_market_parse (const char *name)
{
  return word (name, markets, N_ELEMENTS (markets));
}

uint32_t
driver_number (const char *version)
{
  uint32_t part[2] = { 0, 0 };

  for (int i = 0; version && i < 2; i++) {
    while (isdigit ((unsigned char) *version) && part[i] < 10000)
      part[i] = part[i] * 10 + (uint32_t) (*version++ - '0');
    if (*version != '.')
      break;
    version++;
  }
  return part[0] * 1000 + (part[1] < 1000 ? part[1] : 999);
}

static int
read_number (const json_t *json, const char *name, uint32_t *out, struct err *e)
{
  int64_t n = json_i64 (json, name, 0);

  if (n < 0 || n > 100000000)
    return err_set (e, ERR_INVALID, "'%s' must be between 0 and 100000000", name);
  *out = (uint32_t) n;
  return 0;
}

static int
read_numbers (struct filter *f, struct err *e)
{
  const struct {
    const char *name;
    uint32_t *at;
  } numbers[] = {
    { "vram_gib", &f->vram_gib }, { "total_vram_gib", &f->total_vram_gib },
    { "vcpus", &f->vcpus },       { "ram_gib", &f->ram_gib },
    { "disk_gib", &f->disk_gib },
  };

  for (size_t i = 0; i < N_ELEMENTS (numbers); i++)
    if (read_number (f->json, numbers[i].name, numbers[i].at, e) < 0)
      return -1;
  return 0;
}

static int
read_money (const json_t *json, const char *name, uint64_t *out, struct err *e)
{
  int64_t n = json_i64 (json, name, 0);

  if (n < 0 || n > MONEY_MAX)
    return err_set (e, ERR_INVALID, "'%s' is %lld: micro-dollars, 0 to %lld", name, (long long) n,
                    MONEY_MAX);
  *out = json_object_get (json, name) ? (uint64_t) n : UINT64_MAX;
  return 0;
}

static int
read_names (const json_t *json, const char *name, const json_t **out, struct err *e)
{
  const json_t *list = json_object_get (json, name), *x;
  size_t i;

  if (json_array_size (list) > FILTER_MAX_NAMES)
    return err_set (e, ERR_INVALID, "'%s' has more than %d entries", name, FILTER_MAX_NAMES);
  json_array_foreach (
      (json_t *) list, i,
      x) if (!json_is_string (x) ||
             !*json_string_value (x)) return err_set (e, ERR_INVALID,
                                                      "'%s' must be a list of names", name);
  *out = json_array_size (list) ? list : NULL;
  return 0;
}

static int
unknown_model (const char *name, struct err *e)
{
  const char *near = gpu_suggest (name);

  return err_code (e, ERR_INVALID, "gpu-model", "no GPU model is called '%.60s'%s%s%s", name,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int
read_model (struct filter_gpu *g, const char *name, struct err *e)
{
  g->any = strcasecmp (name, "any") == 0;
  g->none = strcasecmp (name, "none") == 0;
  if (g->any || g->none || gpu_resolve (name, &g->gpu) == 0)
    return 0;
  return unknown_model (name, e);
}

static int
read_count (struct filter_gpu *g, const json_t *j, struct err *e)
{
  int64_t min = json_i64 (j, "min", 1), max = json_i64 (j, "max", min);

  if (min < 1 || min > 1024)
    return err_set (e, ERR_INVALID, "'min' of a gpu must be between 1 and 1024");
  if (max != 0 && (max < min || max > 1024))
    return err_set (e, ERR_INVALID, "'max' of a gpu must be 0 (no bound) or at least its 'min'");
  g->min = (uint32_t) min;
  g->max = (uint32_t) max;
  return 0;
}

static int
read_gpus (struct filter *f, struct err *e)
{
  const json_t *list = json_object_get (f->json, "gpu"), *j;
  size_t i;

  f->gpu_said = list != NULL;
  if (json_array_size (list) > FILTER_MAX_GPUS)
    return err_set (e, ERR_INVALID, "'gpu' has more than %d entries", FILTER_MAX_GPUS);
  json_array_foreach ((json_t *) list, i, j)
  {
    struct filter_gpu *g = &f->gpus[f->ngpus++];

    if (!json_is_object (j))
      return err_set (e, ERR_INVALID, "an entry of 'gpu' must be an object with 'model'");
    if (json_check (j, gpu_members, N_ELEMENTS (gpu_members), e) < 0)
      return err_add (e, "gpu");
    if (read_model (g, json_str (j, "model", ""), e) < 0 || read_count (g, j, e) < 0)
      return -1;
  }
  return 0;
}

static int
read_words (struct filter *f, enum filter_market market, struct err *e)
{
  int m = filter_market_parse (json_str (f->json, "market", markets[market]));
  int kind = word (json_str (f->json, "kind", "any"), kinds, N_ELEMENTS (kinds));
  int per = word (json_str (f->json, "max_price_per", "machine"),
                  (const char *const[]){ "machine", "gpu" }, 2);

  if (m < 0)
    return err_set (e, ERR_INVALID, "'market' must be \"on-demand\", \"spot\" or \"any\"");
  if (kind < 0 || kind == KIND_CONTAINER)
    return err_set (e, ERR_INVALID, "'kind' must be \"vm\", \"baremetal\" or \"any\"");
  if (per < 0)
    return err_set (e, ERR_INVALID, "'max_price_per' must be \"machine\" or \"gpu\"");
  f->market = (enum filter_market) m;
  f->kind = (enum filter_kind) kind;
  f->max_price_per_gpu = per == 1;
  return 0;
}

/* Both spellings of an architecture. */
static int
read_arch (struct filter *f, struct err *e)
{
  static const char *const names[][2] = {
    { "x86_64", "x86_64" },
    { "amd64", "x86_64" },
    { "aarch64", "aarch64" },
    { "arm64", "aarch64" },
  };
  const char *arch = json_str (f->json, "arch", NULL);

  for (size_t i = 0; arch && i < N_ELEMENTS (names); i++)
    if (strcmp (names[i][0], arch) == 0) {
      f->arch = names[i][1];
      return 0;
    }
  return arch ? err_set (e, ERR_INVALID, "'arch' must be \"x86_64\" or \"aarch64\"") : 0;
}

static int
read_texts (struct filter *f, struct err *e)
{
  f->locality = json_str (f->json, "locality", NULL);
  f->interconnect = json_str (f->json, "interconnect", NULL);
  f->min_driver = json_str (f->json, "min_driver", NULL);
  if (f->min_driver && !driver_number (f->min_driver))
    return err_set (e, ERR_INVALID, "'min_driver' must be a version such as \"550.90\"");
  if (read_names (f->json, "region", &f->region, e) < 0 ||
      read_names (f->json, "country", &f->country, e) < 0 ||
      read_names (f->json, "provider", &f->provider, e) < 0)
    return -1;
  return read_names (f->json, "exclude", &f->exclude, e);
}

static int
parse (struct filter *f, enum filter_market market, struct err *e)
{
  if (json_check (f->json, members, N_ELEMENTS (members), e) < 0)
    return err_add (e, "filter");
  if (read_gpus (f, e) < 0 || read_numbers (f, e) < 0 || read_words (f, market, e) < 0 ||
      read_arch (f, e) < 0 || read_texts (f, e) < 0 ||
      read_money (f->json, "max_price_udollar", &f->max_price_udollar, e) < 0)
    return -1;
  return read_money (f->json, "max_cost_udollar", &f->max_cost_udollar, e);
}

int
filter_parse (struct filter *f, const json_t *json, enum filter_market market, struct err *e)
{
  memset (f, 0, sizeof *f);
  if (json && !json_is_object (json))
    return err_set (e, ERR_INVALID, "a filter must be an object");
  f->json = json ? json_incref ((json_t *) json) : json_object ();
  if (parse (f, market, e) == 0)
    return 0;
  filter_done (f);
  return -1;
}

void
filter_done (struct filter *f)
{
  json_decref (f->json);
  memset (f, 0, sizeof *f);
}

static json_t *
gpus_json (const struct filter *f)
{
  json_t *list = json_array ();

  for (uint32_t i = 0; i < f->ngpus; i++) {
    const struct filter_gpu *g = &f->gpus[i];
    char name[64];

    gpu_name (&g->gpu, name, sizeof name);
    json_array_append_new (list, json_pack ("{s:s, s:i, s:i}", "model",
                                            g->any    ? "any"
                                            : g->none ? "none"
                                                      : name,
                                            "min", (int) g->min, "max", (int) g->max));
  }
  return list;
}

json_t *
filter_json (const struct filter *f)
{
  json_t *j = json_copy (f->json);

  if (f->gpu_said)
    json_object_set_new (j, "gpu", gpus_json (f));
  json_put_str (j, "market", markets[f->market]);
  json_put_str (j, "kind", kinds[f->kind]);
  json_put_str (j, "arch", f->arch);
  return j;
}
