/* hyperstack_parts.c - prices, stock, sizes, images, machines of Hyperstack; no traffic */
#include "config.h"

#include <string.h>

#include "plugins/hyperstack/hyperstack.h"
#include "plugins/tags.h"
#include "tests/unit/tap.h"

static json_t *
parse (const char *text)
{
  json_t *j = json_loads (text, JSON_DECODE_ANY, NULL);

  if (!j)
    abort ();
  return j;
}

static void
test_refs (void)
{
  static const char *const bad[] = { "", "|", "a|", "|b", "a", "a|b|c", "a\n|b" };
  char region[FIELD_MAX], name[FIELD_MAX], longest[300];

  ok (ref_parse ("CANADA-1|n3-H100x1", region, name), "a reference is read");
  is_str (region, "CANADA-1", "its region");
  is_str (name, "n3-H100x1", "its flavor");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    ok (!ref_parse (bad[i], region, name), "no reference, %zu", i);
  memset (longest, 'a', sizeof longest - 1);
  longest[150] = '|';
  longest[sizeof longest - 1] = '\0';
  ok (!ref_parse (longest, region, name), "a reference that is too long is refused");
}

static void
test_prices (void)
{
  static const struct {
    const char *value;
    uint64_t want; /* 0: not known */
  } rows[] = {
    { "0.58", 580000 },    { "2", 2000000 },        { "\"6.750000000\"", 6750000 },
    { "\"0E-9\"", 0 },     { "\"1.5E-2\"", 15000 }, { "0", 0 },
    { "-1", 0 },           { "\"-1\"", 0 },         { "\"\"", 0 },
    { "\"1.5x\"", 0 },     { "\" 1\"", 0 },         { "\"nan\"", 0 },
    { "\"infinity\"", 0 }, { "null", 0 },           { "true", 0 },
    { "1e300", 0 },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    struct catalog k = { .prices = json_pack ("[{s:s, s:o}]", "name", "L40", "value",
                                              parse (rows[i].value)) };
    uint64_t price = 0;
    bool known = price_of (&k, "L40", 1, &price);

    ok (known == (rows[i].want > 0) && (!known || price == rows[i].want), "the price %s",
        rows[i].value);
    ok (!price_of (&k, "L4", 1, &price), "is not that of another");
    catalog_done (&k);
  }
}

static void
flavor (struct flavor *f, json_t **row, const char *text)
{
  *row = parse (text);
  ok (flavor_read (f, NULL, *row), "a flavor: %.60s", text);
}

static void
test_sizes (void)
{
  static const struct {
    const char *gpu;
    uint64_t gib;
  } rows[] = {
    { "H100-80G-PCIe", 80 },
    { "H100-80G-PCIe-NVLink", 80 },
    { "H200-141G-SXM5", 141 },
    { "L40", 48 },
    { "RTX-A6000", 48 },
    { "RTX-A4000", 16 },
    { "RTX-PRO-6000-SE", 96 },
    { "A100-80G", 80 },
    { "B300", 0 },
    { "X-9Gx-1", 0 },
    { "X--G-", 0 },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    struct flavor f = { .gpu = rows[i].gpu };

    is_num ((int64_t) flavor_vram_mib (&f), (int64_t) rows[i].gib * 1024, rows[i].gpu);
  }
}

static void
test_stock (void)
{
  static const struct {
    const char *flag, *model;
    uint32_t avail;
    int64_t stock;
  } rows[] = {
    { "true", "{\"available\":\"10+\",\"configurations\":{\"2x\":5}}", GPUB_AVAIL_AVAILABLE, 5 },
    { "true", "{\"available\":\"10+\",\"configurations\":{\"2x\":1}}", GPUB_AVAIL_LOW, 1 },
    { "true", "{\"available\":\"10+\",\"configurations\":{\"1x\":9}}", GPUB_AVAIL_NONE, 0 },
    { "false", "{\"available\":\"10+\",\"configurations\":{\"2x\":5}}", GPUB_AVAIL_NONE, 0 },
    { "true", "{\"available\":\"10+\"}", GPUB_AVAIL_AVAILABLE, 5 },
    { "true", "{\"available\":\"1\"}", GPUB_AVAIL_NONE, 0 },
    { "true", "{\"available\":\"many\"}", GPUB_AVAIL_AVAILABLE, -1 },
    { "true", "{\"available\":\"1\",\"configurations\":{\"2x\":-3}}", GPUB_AVAIL_AVAILABLE, -1 },
    { "null", "{}", GPUB_AVAIL_UNKNOWN, -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    json_auto_t *row = NULL, *model = parse (rows[i].model);
    struct catalog k = { 0 };
    struct flavor f;
    char text[200];
    int64_t stock;

    snprintf (text, sizeof text,
              "{\"name\":\"n\",\"region_name\":\"R\",\"gpu\":\"L40\",\"gpu_count\":2,"
              "\"stock_available\":%s}",
              rows[i].flag);
    flavor (&f, &row, text);
    json_object_set_new (model, "model", json_string ("L40"));
    k.stocks = json_pack ("[{s:s, s:[O]}]", "region", "R", "models", model);
    is_num (flavor_stock (&k, &f, &stock), rows[i].avail, rows[i].model);
    is_num (stock, rows[i].stock, "its number");
    catalog_done (&k);
  }
}

static void
test_flavors (void)
{
  static const char *const bad[] = {
    "{}",
    "{\"name\":\"n3-H100x1-k8s\",\"region_name\":\"R\",\"gpu\":\"H\",\"gpu_count\":1}",
    "{\"name\":\"n\",\"region_name\":\"R\",\"gpu\":null,\"gpu_count\":1}",
    "{\"name\":\"n\",\"region_name\":\"R\",\"gpu\":\"H\"}",
    "{\"name\":\"n|m\",\"region_name\":\"R\",\"gpu\":\"\",\"gpu_count\":0}",
  };
  json_auto_t *row = NULL, *spot = NULL;
  struct flavor f;

  for (size_t i = 0; i < N_ELEMENTS (bad); i++) {
    json_auto_t *j = parse (bad[i]);

    ok (!flavor_read (&f, NULL, j), "left out: %.70s", bad[i]);
  }
  flavor (&f, &row, "{\"name\":\"n\",\"region_name\":\"R\",\"gpu\":null,\"gpu_count\":0}");
  ok (!flavor_is_spot (&f), "nothing says spot");
  flavor (&f, &spot,
          "{\"name\":\"n\",\"region_name\":\"R\",\"gpu\":\"H\",\"gpu_count\":1,"
          "\"labels\":[null,{\"label\":\"SPOT vm\"}]}");
  ok (flavor_is_spot (&f), "a label does");
}

static void
test_images (void)
{
  json_auto_t *groups = parse (
      "[null,{\"region_name\":\"R\",\"images\":[null,{\"name\":\"Windows R999\"},"
      "{\"name\":\"Ubuntu Server 24.04 LTS (Noble Numbat)\"},"
      "{\"name\":\"Ubuntu Server 22.04 LTS R535 CUDA 12.2 with Docker\"},"
      "{\"name\":\"Ubuntu Server 22.04 LTS R535 CUDA 12.2\"},"
      "{\"name\":\"Ubuntu Server 22.04 LTS R999 CUDA 12.2\",\"region_name\":\"other\"},"
      "{\"name\":\"Ubuntu Server 22.04 LTS R600 CUDA 12.2\",\"flavor_restrictions\":"
      "{\"restriction_type\":\"hard\",\"compatible_flavors\":[{\"flavor_name\":\"big\"}]}}]}]");
  json_auto_t *none = json_array (), *wish = parse ("[\"Windows R999\"]");
  struct hyperstack s = { .images = none };
  struct flavor gpu = { .region = "R", .name = "small", .gpu = "L40", .gpus = 1 };
  struct flavor big = { .region = "R", .name = "big", .gpu = "L40", .gpus = 8 };
  struct flavor cpu = { .region = "R", .name = "cpu", .gpu = "" };
  char driver[16];

  is_str (image_choose (&s, groups, &gpu), "Ubuntu Server 22.04 LTS R535 CUDA 12.2",
          "a driver, without Docker");
  is_str (image_choose (&s, groups, &big), "Ubuntu Server 22.04 LTS R600 CUDA 12.2",
          "what is bound to a flavor is for that one");
  is_str (image_choose (&s, groups, &cpu), "Ubuntu Server 24.04 LTS (Noble Numbat)",
          "no driver without a GPU");
  s.images = wish;
  is_str (image_choose (&s, groups, &gpu), "Windows R999", "unless the operator says otherwise");
  cpu.region = "elsewhere";
  ok (image_choose (&s, groups, &cpu) == NULL, "no image of another region");
  ok (image_driver ("x R535.1 y", driver) && strcmp (driver, "535.1") == 0, "a driver is read");
  ok (!image_driver ("x Rocky y", driver) && !image_driver ("R535", driver) &&
          !image_driver ("x R535a", driver),
      "other words are none");
}

static void
test_vm (void)
{
  static const struct {
    const char *vm;
    uint32_t state;
    bool address;
  } rows[] = {
    { "{\"status\":\"ACTIVE\"}", GPUB_STATE_RUNNING, false },
    { "{\"status\":\"ACTIVE\",\"vm_state\":\"active\",\"floating_ip\":\"192.0.2.1\"}",
      GPUB_STATE_RUNNING, true },
    { "{\"status\":\"ACTIVE\",\"floating_ip\":\"192.0.2.1\",\"floating_ip_status\":\"ATTACHING\"}",
      GPUB_STATE_RUNNING, false },
    { "{\"status\":\"ACTIVE\",\"floating_ip\":\"\",\"floating_ip_status\":\"ATTACHED\"}",
      GPUB_STATE_RUNNING, false },
    { "{\"status\":\"ACTIVE\",\"vm_state\":\"error\"}", GPUB_STATE_ERROR, false },
    { "{\"status\":\"ACTIVE\",\"vm_state\":\"dreaming\"}", GPUB_STATE_UNKNOWN, false },
    { "{\"status\":\"SHUTOFF\"}", GPUB_STATE_STOPPED, false },
    { "{\"status\":\"BUILD\"}", GPUB_STATE_CREATING, false },
    { "{\"status\":\"MIGRATING\"}", GPUB_STATE_UNKNOWN, false },
    { "{\"status\":true}", GPUB_STATE_UNKNOWN, false },
  };
  json_auto_t *vm = parse ("{\"id\":287813,\"environment\":{\"region\":\"CANADA-1\"},"
                           "\"labels\":[null,\"mine\",\"gpubroker-token=a=b\"]}");
  json_auto_t *bare = parse ("{\"id\":\"x\",\"environment\":\"plain\",\"labels\":\"a=b\"}");
  char id[ID_SIZE];

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    json_auto_t *j = parse (rows[i].vm);

    is_num (vm_state (j), rows[i].state, rows[i].vm);
    ok ((vm_address (j) != NULL) == rows[i].address, "its address");
  }
  ok (vm_id (vm, id) && strcmp (id, "287813") == 0, "an id is a number");
  is_str (vm_region (vm), "CANADA-1", "the environment has the region");
  ok (tags_ours (vm_labels (vm)) && !tags_ours (vm_labels (bare)), "the mark is a label of ours");
  ok (!vm_id (bare, id) && !vm_region (bare), "what says neither has none");
}

int
main (void)
{
  test_refs ();
  test_prices ();
  test_sizes ();
  test_stock ();
  test_flavors ();
  test_images ();
  test_vm ();
  return done ();
}
