/* types.c - instance types: what the catalogue says, and what is known to be wrong there */
#include "config.h"

#include <math.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { TYPES_FRESH_MS = 60 * 60 * 1000, GPUS_MAX = 64, PAGE_SIZE = 100 };

/* By the beginning of the type; 0 and NULL leave what the catalogue says. */
static const struct {
  const char *type, *gpu;
  uint32_t gpus, denominator;
  uint64_t vram_mib;
} overrides[] = {
  { "p5en.", "H200", 8, 0, 144384 }, /* "NVIDIA" */
  { "p5e.", "H200", 8, 0, 144384 },  /* "NVIDIA" */
  { "p5.4xlarge", "H100", 1, 0, 0 }, /* 0 GPUs */
  { "g6f.large", "L4", 1, 8, 3072 }, /* 0 GPUs: parts of one */
  { "g6f.xlarge", "L4", 1, 8, 3072 },   { "g6f.2xlarge", "L4", 1, 4, 6144 },
  { "g6f.4xlarge", "L4", 1, 2, 12288 }, { "gr6f.4xlarge", "L4", 1, 2, 12288 },
  { "g5.", NULL, 0, 0, 24576 }, /* 22888 MiB of 24 GiB */
  { "g6.", NULL, 0, 0, 24576 },         { "gr6.", NULL, 0, 0, 24576 },
  { "g6e.", NULL, 0, 0, 49152 }, /* 45776 of 48 GiB */
  { "p6-b200.", "B200", 8, 0, 183359 }, { "p6-b300.", "B300", 8, 0, 275040 },
};

static const struct {
  const char *type, *name;
} interconnects[] = {
  { "p3", "sxm2" }, { "p4", "sxm4" }, { "p5", "sxm5" }, { "p6", "sxm6" }, { "g", "pcie" },
};

const char *
type_interconnect (const struct type *t)
{
  for (size_t i = 0; t->gpus > 0 && i < N_ELEMENTS (interconnects); i++)
    if (strncmp (t->name, interconnects[i].type, strlen (interconnects[i].type)) == 0)
      return interconnects[i].name;
  return NULL;
}

static bool
has_text (const json_t *list, const char *text)
{
  const json_t *row;
  size_t i;

  json_array_foreach (list, i, row)
    if (json_is_string (row) && strcmp (json_string_value (row), text) == 0)
      return true;
  return false;
}

static void
read_gpu (const json_t *row, struct type *t)
{
  const json_t *gpus = json_object_get (json_object_get (row, "gpuInfo"), "gpus"),
               *gpu = json_array_get (gpus, 0);
  double part = strtod (json_str (gpu, "gpuPartitionSize", "0"), NULL);

  t->usable = json_array_size (gpus) < 2 &&
              strcmp (json_str (gpu, "manufacturer", "NVIDIA"), "NVIDIA") == 0;
  t->gpu = json_str (gpu, "name", NULL);
  t->gpus = (uint32_t) num (gpu, "count");
  t->vram_mib = num (json_object_get (gpu, "memoryInfo"), "sizeInMiB");
  if (t->gpus == 0 && part > 0 && part < 1) {
    t->gpus = 1;
    t->denominator = (uint32_t) lround (1 / part);
  }
}

static void
correct (struct type *t)
{
  for (size_t i = 0; i < N_ELEMENTS (overrides); i++) {
    if (strncmp (t->name, overrides[i].type, strlen (overrides[i].type)) != 0)
      continue;
    if (overrides[i].gpu)
      t->gpu = overrides[i].gpu;
    if (overrides[i].gpus)
      t->gpus = overrides[i].gpus;
    if (overrides[i].denominator)
      t->denominator = overrides[i].denominator;
    if (overrides[i].vram_mib)
      t->vram_mib = overrides[i].vram_mib;
    return;
  }
}

static bool
name_take (const char *name)
{
  size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789.-");

  return n > 2 && n < FIELD_MAX && name[n] == '\0';
}

bool
type_read (const json_t *row, struct type *t)
{
  const json_t *classes = json_object_get (row, "supportedUsageClasses"),
               *archs = json_object_get (json_object_get (row, "processorInfo"),
                                         "supportedArchitectures");

  *t = (struct type){
    .name = json_str (row, "instanceType", ""),
    .arch = has_text (archs, "x86_64")  ? "x86_64"
            : has_text (archs, "arm64") ? "aarch64"
                                        : NULL,
    .vcpus = (uint32_t) num (json_object_get (row, "vCpuInfo"), "defaultVCpus"),
    .ram_mib = num (json_object_get (row, "memoryInfo"), "sizeInMiB"),
    .metal = strcmp (json_str (row, "bareMetal", ""), "true") == 0,
    .on_demand = has_text (classes, "on-demand"),
    .spot = has_text (classes, "spot"),
  };
  if (!name_take (t->name) || !t->arch)
    return false;
  read_gpu (row, t);
  correct (t);
  return t->usable && t->gpus <= GPUS_MAX && (t->gpus > 0) == (t->gpu != NULL) &&
         (!t->gpu || *t->gpu);
}

/* Of a page of 10 KiB a type, what type_read looks at. */
static json_t *
slim (const json_t *row)
{
  static const char *const members[] = { "instanceType",         "vCpuInfo",  "memoryInfo",
                                         "processorInfo",        "bareMetal", "gpuInfo",
                                         "supportedUsageClasses" };
  json_t *out = json_object ();

  for (size_t i = 0; i < N_ELEMENTS (members); i++)
    if (json_object_get (row, members[i]))
      json_object_set (out, members[i], json_object_get (row, members[i]));
  return out;
}

void
types_filter (const struct ctx *c, struct query *q)
{
  const json_t *pattern;
  size_t i;

  json_array_foreach (c->s->types, i, pattern)
    if (i == 0)
      query_filter (q, "instance-type", json_string_value (pattern));
    else
      query_or (q, json_string_value (pattern));
}

int32_t
types_read (const struct ctx *c, json_t **rows)
{
  AUTO_QUERY struct query q = query_new ("DescribeInstanceTypes");
  json_auto_t *all = NULL, *slimmed = NULL;
  const json_t *row;
  struct type t;
  size_t i;
  int32_t rc;

  if ((*rows = cache_get (c, "types", TYPES_FRESH_MS)))
    return GPUB_OK;
  types_filter (c, &q);
  query_int (&q, "MaxResults", PAGE_SIZE);
  rc = ec2_pages (c, "list instance types", &q, "instanceTypeSet", &all);
  if (rc != GPUB_OK)
    return rc;
  slimmed = json_array ();
  json_array_foreach (all, i, row)
    if (type_read (row, &t))
      json_array_append_new (slimmed, slim (row));
  if (json_array_size (slimmed) == 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "list instance types: none of %zu rows is readable", json_array_size (all));
  cache_put (c, "types", slimmed); /* what was not understood is not remembered */
  *rows = json_incref (slimmed);
  return GPUB_OK;
}

static void
take_zone (json_t *zones_of, const char *type, const char *zone)
{
  json_t *zones = json_object_get (zones_of, type);

  if (!*type || !*zone || has_text (zones, zone))
    return;
  if (!zones)
    json_object_set_new (zones_of, type, zones = json_array ());
  json_array_append_new (zones, json_string (zone));
}

int32_t
zones_read (const struct ctx *c, json_t **zones_of_type)
{
  AUTO_QUERY struct query q = query_new ("DescribeInstanceTypeOfferings");
  json_auto_t *all = NULL, *zones_of = NULL;
  const json_t *row;
  size_t i;
  int32_t rc;

  if ((*zones_of_type = cache_get (c, "zones", TYPES_FRESH_MS)))
    return GPUB_OK;
  query_add (&q, "LocationType", "availability-zone");
  types_filter (c, &q);
  query_int (&q, "MaxResults", 1000);
  rc = ec2_pages (c, "list type offerings", &q, "instanceTypeOfferingSet", &all);
  if (rc != GPUB_OK)
    return rc;
  zones_of = json_object ();
  json_array_foreach (all, i, row)
    take_zone (zones_of, json_str (row, "instanceType", ""), json_str (row, "location", ""));
  if (json_object_size (zones_of) == 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "list type offerings: none of %zu rows is readable", json_array_size (all));
  cache_put (c, "zones", zones_of);
  *zones_of_type = json_incref (zones_of);
  return GPUB_OK;
}
