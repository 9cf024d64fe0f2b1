/* garbage.c - breaks the contract of every struct it emits; which way is said by the offer_ref or
 * the name */
#define GPUB_NAME "garbage"
#include "tests/bad/bad.h"

static int32_t
bad_offer (struct gpub_call *call, const char *how)
{
  static char huge[4096];
  struct gpub_offer o = { .size = sizeof o, .offer_ref = "ok", .gpu_name = "H100" };

  memset (huge, 'x', sizeof huge - 1);
  if (strcmp (how, "size-0") == 0)
    o.size = 0;
  else if (strcmp (how, "size-huge") == 0)
    o.size = 1ull << 60;
  else if (strcmp (how, "size-short") ==
           0) /* an older plugin's struct: nothing beyond it may be read */
    o.size = offsetof (struct gpub_offer, gpu_name);
  else if (strcmp (how, "no-ref") == 0)
    o.offer_ref = NULL;
  else if (strcmp (how, "long-ref") == 0)
    o.offer_ref = huge;
  else if (strcmp (how, "bytes") == 0)
    o.gpu_name = "H\xff\xc3(100\xed\xa0\x80\x01";
  else if (strcmp (how, "long-name") == 0)
    o.gpu_name = huge;
  else if (strcmp (how, "market") == 0)
    o.market = 77;
  else if (strcmp (how, "price") == 0) {
    o.known = GPUB_OFFER_PRICE;
    o.price_udollar = UINT64_MAX;
  }
  return host->emit_offer (call, &o);
}

static int32_t
list_offers (void *self UNUSED, struct gpub_call *call, const struct gpub_offer_query *q,
             struct gpub_error *err)
{
  const char *how = q->offer_ref ? q->offer_ref : "";

  if (strcmp (how, "code") == 0)
    return 4711;
  if (strcmp (how, "negative") == 0)
    return -1;
  if (strcmp (how, "error") == 0) {
    for (size_t i = 0; i < sizeof err->text; i++)
      err->text[i] = "no NUL "[i % 7];
    memset (err->provider_code, '\xff', sizeof err->provider_code);
    return GPUB_E_QUOTA;
  }
  if (strcmp (how, "wrong-emit") == 0)
    host->emit_machine (call,
                        &(struct gpub_machine){ .size = sizeof (struct gpub_machine), .id = "x" });
  else
    bad_offer (call, how); /* and ignores what it returned */
  return host->scope_done (call, "bad", GPUB_SCOPE_COMPLETE, GPUB_OK, NULL) ? GPUB_OK : GPUB_OK;
}

static int32_t
find (void *self UNUSED, struct gpub_call *call, const struct gpub_find *f,
      struct gpub_error *err UNUSED)
{
  struct gpub_kv tags[200];
  struct gpub_resource r = { .size = sizeof r, .kind = "disk", .id = "d1", .billable = 1 };
  struct gpub_machine m = { .size = sizeof m,
                            .id = "m1",
                            .state = 99,
                            .resources = &r,
                            .nresources = 1,
                            .resources_stride = sizeof r,
                            .tags = tags,
                            .ntags = 0 };
  static char data[1100];

  for (int i = 0; i < 200; i++)
    tags[i] = (struct gpub_kv){ i == 199 ? GPUB_TAG_TOKEN : i % 2 ? "a" : "b", "v" };
  if (strcmp (f->name, "count") == 0)
    m.nresources = 1ull << 60;
  else if (strcmp (f->name, "stride") == 0)
    m.resources_stride = 0;
  else if (strcmp (f->name, "null") == 0)
    m.resources = NULL;
  else if (strcmp (f->name, "tags") == 0)
    m.ntags = 200;
  else if (strcmp (f->name, "data") == 0)
    m.plugin_data = memset (data, 'd', sizeof data - 1);
  else if (strcmp (f->name, "no-id") == 0)
    m.id = "";
  host->emit_machine (call, &m);
  return GPUB_OK;
}

static int32_t
get (void *self UNUSED, struct gpub_call *call UNUSED, const struct gpub_ref *ref UNUSED,
     struct gpub_error *err UNUSED)
{
  return GPUB_OK; /* without a machine */
}

static int32_t
console (void *self UNUSED, struct gpub_call *call UNUSED, const struct gpub_ref *ref UNUSED,
         char *out UNUSED, uint64_t cap, uint64_t *len, struct gpub_error *err UNUSED)
{
  *len = cap * 1000;
  return GPUB_OK;
}

BAD_ENTRY (.list_offers = list_offers, .find = find, .get = get, .console_log = console)
