/* offers_list.c - one raw offer, as the provider host sends it, into the table's form
 *
 * A provider can say anything: what cannot be sold as it stands is refused with its reason, and
 * what is merely odd (another currency, memory that no such card has) counts as not known.
 */
#include "config.h"

#include <gpubroker/provider.h>
#include <stdio.h>
#include <string.h>

#include "core/filter.h"
#include "core/json.h"
#include "core/offers_int.h"

enum { REF_MAX = 512, GPUS_MAX = 255, ABSURD = 1 << 26 };

#define PRICE_ABSURD (INT64_C (1) << 50)

_Static_assert(sizeof (struct offer) == 64, "what the matcher reads of an offer is one cache line");

static const char *const kinds[] = { "vm", "baremetal", "container" };
static const char *const markets[] = { "on-demand", "spot" };
static const char *const availabilities[] = { "unknown", "none", "low", "available" };
static const char *const archs[] = { NULL, "x86_64", "aarch64" };
static const char *const caps[] = {
  "idempotent-create", "tags",        "user-data", "startup-script",   "spot",
  "open-ports",        "kill-switch", "console",   "hosts-kubernetes", "reused"
};

static int
word (const char *name, const char *const *words, size_t n, int otherwise)
{
  for (size_t i = 0; name && i < n; i++)
    if (words[i] && strcmp (words[i], name) == 0)
      return (int) i;
  return otherwise;
}

static uint32_t
count (const json_t *raw, const char *name)
{
  int64_t n = json_i64 (raw, name, 0);

  return n > 0 && n < ABSURD ? (uint32_t) n : 0;
}

static bool
printable (const char *s)
{
  for (; *s; s++)
    if ((unsigned char) *s < 0x20 || *s == 0x7f)
      return false;
  return true;
}

static int
check (const json_t *raw, struct err *e)
{
  const char *ref = json_str (raw, "offer_ref", "");
  const char *gpu = json_str (raw, "gpu_name", "");
  int64_t gpus = json_i64 (raw, "gpu_count", *gpu ? -1 : 0);

  if (!*ref || strlen (ref) > REF_MAX || !printable (ref))
    return err_set (e, ERR_INVALID, "an offer without a printable offer_ref of at most 512 bytes");
  if (gpus < 0 || gpus > GPUS_MAX)
    return err_set (e, ERR_INVALID, "offer %.60s does not say how many '%.40s' it has", ref, gpu);
  if (word (json_str (raw, "kind", "vm"), kinds, N_ELEMENTS (kinds), -1) < 0)
    return err_set (e, ERR_INVALID, "offer %.60s is of an unknown kind", ref);
  if (word (json_str (raw, "market", "on-demand"), markets, N_ELEMENTS (markets), -1) < 0)
    return err_set (e, ERR_INVALID, "offer %.60s is of an unknown market", ref);
  return 0;
}

void
offer_prices (const json_t *raw, uint64_t *price, uint64_t *ip, uint32_t *disk)
{
  int64_t machine = json_i64 (raw, "price_udollar", -1);
  int64_t address = json_i64 (raw, "price_ip_udollar", 0);
  int64_t gib = json_i64 (raw, "price_disk_gib_udollar", -1);

  *ip = address > 0 && address < PRICE_ABSURD ? (uint64_t) address : 0;
  *disk = gib < 0 || gib >= UINT32_MAX ? UINT32_MAX : (uint32_t) gib;
  *price = OFFER_NO_PRICE;
  if (machine >= 0 && machine < PRICE_ABSURD &&
      strcmp (json_str (raw, "currency", "USD"), "USD") == 0)
    *price = (uint64_t) machine + *ip;
}

uint64_t
offer_price (const struct offer *x, uint32_t disk_gib, uint32_t default_gib)
{
  uint32_t want = disk_gib ? disk_gib : default_gib;

  if (!disk_gib && want > x->disk_max_gib)
    want = x->disk_max_gib;
  if (x->price_udollar == OFFER_NO_PRICE || !x->disk_max_gib || want <= x->disk_gib)
    return x->price_udollar;
  if (x->disk_price_udollar == UINT32_MAX)
    return OFFER_NO_PRICE;
  return x->price_udollar + (uint64_t) (want - x->disk_gib) * x->disk_price_udollar;
}

/* The form, where the name is silent and the interconnect is not. */
static void
form_from (struct gpu *g, const char *interconnect)
{
  char name[64], faceted[80];
  struct gpu with;

  if (!g->family || g->form || !interconnect || strncmp (interconnect, "nvlink", 6) == 0)
    return;
  snprintf (name, sizeof name, "%s", gpu_family (g));
  snprintf (faceted, sizeof faceted, "%s %.12s", name, interconnect);
  if (gpu_resolve (faceted, &with) == 0 && with.family == g->family)
    g->form = with.form;
}

static void
read_gpu (struct offer *x, const json_t *raw)
{
  const char *name = json_str (raw, "gpu_name", NULL);
  uint32_t parts = count (raw, "gpu_denominator");
  uint64_t mib;

  x->gpus = (uint8_t) json_i64 (raw, "gpu_count", 0);
  if (!x->gpus)
    return;
  gpu_resolve (name, &x->gpu);
  if (parts > 1)
    x->gpu.fraction = (uint8_t) (parts < GPU_SLICE ? parts : GPU_SLICE);
  form_from (&x->gpu, json_str (raw, "interconnect", NULL));
  mib = gpu_check_vram (&x->gpu, count (raw, "vram_mib"), count (raw, "ram_mib"), x->gpus);
  x->vram_mib = (uint32_t) mib;
}

static uint32_t
mib_to_gib (uint32_t mib)
{
  return (mib + 512) / 1024;
}

static void
read_size (struct offer *x, const json_t *raw)
{
  uint32_t vcpus = count (raw, "vcpus");

  x->vcpus = (uint16_t) (vcpus < UINT16_MAX ? vcpus : UINT16_MAX);
  x->ram_gib = mib_to_gib (count (raw, "ram_mib"));
  x->disk_gib = count (raw, "disk_gib");
  x->disk_max_gib = count (raw, "disk_max_gib");
  if (x->disk_max_gib <= x->disk_gib)
    x->disk_max_gib = 0;
  x->driver = driver_number (json_str (raw, "driver", NULL));
}

static void
read_names (struct offer *x, struct offers *o, const struct offers_prov *p, const json_t *raw)
{
  const struct memory_what what = offers_what (o, p->name, raw);
  struct atoms *a = &o->atoms;

  x->key = memory_key (&what);
  x->region = atom_add (a, json_str (raw, "region", NULL));
  x->country = atom_add (a, json_str (raw, "country", NULL));
  x->cloud = atom_add (a, json_str (raw, "cloud", NULL));
  x->fabric = atom_add (a, json_str (raw, "fabric", NULL));
  x->interconnect = atom_add (a, json_str (raw, "interconnect", NULL));
  x->kind = (unsigned) word (json_str (raw, "kind", "vm"), kinds, N_ELEMENTS (kinds), 0) & 3;
  x->market = (unsigned) word (json_str (raw, "market", "on-demand"), markets, 2, 0) & 1;
  x->arch = (unsigned) word (json_str (raw, "arch", NULL), archs, N_ELEMENTS (archs), 0) & 3;
  x->availability = (unsigned) word (json_str (raw, "availability", NULL), availabilities,
                                     N_ELEMENTS (availabilities), 0) &
                    3;
  if (json_i64 (raw, "stock", 1) == 0)
    x->availability = GPUB_AVAIL_NONE;
}

static uint32_t
read_caps (const json_t *raw)
{
  const json_t *x;
  uint32_t bits = 0;
  size_t i;

  json_array_foreach (json_object_get (raw, "caps"), i, x) {
    int bit = word (json_string_value (x), caps, N_ELEMENTS (caps), -1);

    if (bit >= 0)
      bits |= 1u << bit;
  }
  return bits;
}

/* Neighbours in a listing share most of their names: what is equal to the last offer's is its
 * string. */
static const char *
keep (struct offer_list *l, const json_t *raw, const char *name, const char *last)
{
  const char *s = json_str (raw, name, NULL);

  if (!s)
    return NULL;
  return last && strcmp (last, s) == 0 ? last : arena_copy (&l->arena, s, strlen (s));
}

static void
read_id (char *out, size_t size, const char *provider, const char *ref)
{
  uint64_t h = UINT64_C (0xcbf29ce484222325);

  for (const char *p = provider; *p; p++)
    h = (h ^ (unsigned char) *p) * UINT64_C (0x100000001b3);
  h = (h ^ 0xff) * UINT64_C (0x100000001b3);
  for (const char *p = ref; *p; p++)
    h = (h ^ (unsigned char) *p) * UINT64_C (0x100000001b3);
  snprintf (out, size, "%012llx", (unsigned long long) (h ^ h >> 48) & 0xffffffffffffULL);
}

static void
read_text (struct offer_list *l, struct offer_text *t, const struct offer_text *last,
           const struct offers_prov *p, const json_t *raw)
{
  static const struct offer_text none;

  last = last ? last : &none;
  t->ref = keep (l, raw, "offer_ref", NULL);
  read_id (t->id, sizeof t->id, p->name, t->ref);
  t->scope = l->scope;
  t->region = keep (l, raw, "region", last->region);
  t->zone = keep (l, raw, "zone", last->zone);
  t->cloud = keep (l, raw, "cloud", last->cloud);
  t->instance_type = keep (l, raw, "instance_type", last->instance_type);
  t->gpu_raw = keep (l, raw, "gpu_name", last->gpu_raw);
  t->image = keep (l, raw, "image", last->image);
  t->fabric = keep (l, raw, "fabric", last->fabric);
  t->driver = keep (l, raw, "driver", last->driver);
  t->caps = read_caps (raw);
  t->caps_known = json_is_array (json_object_get (raw, "caps"));
  t->stock = json_object_get (raw, "stock") ? count (raw, "stock") : UINT32_MAX;
  t->boot_max_ms = count (raw, "boot_max_ms");
}

static json_t *
gpu_json (const struct offer *x, const struct offer_text *t)
{
  json_t *j = json_object ();
  char name[64];

  json_put_i64 (j, "count", x->gpus);
  if (!x->gpus)
    return j;
  gpu_name (&x->gpu, name, sizeof name);
  json_put_str (j, "model", *name ? name : NULL);
  json_put_str (j, "family", gpu_family (&x->gpu));
  json_put_str (j, "raw", t->gpu_raw);
  if (offer_vram_gib (x))
    json_put_i64 (j, "vram_gib", offer_vram_gib (x));
  json_put_str (j, "form", gpu_form_name ((enum gpu_form) x->gpu.form));
  if (x->gpu.fraction > 1 && x->gpu.fraction != GPU_SLICE)
    json_put_i64 (j, "fraction", x->gpu.fraction);
  return j;
}

static json_t *
caps_json (uint32_t bits)
{
  json_t *list = json_array ();

  for (size_t i = 0; i < N_ELEMENTS (caps); i++)
    if (bits & 1u << i)
      json_array_append_new (list, json_string (caps[i]));
  return list;
}

static void
put_count (json_t *j, const char *name, uint32_t n)
{
  if (n)
    json_put_i64 (j, name, n);
}

static json_t *
offer_json (const struct offer *x, const struct offer_text *t, const struct offers_prov *p,
            const json_t *raw)
{
  static const char *const same[] = { "cloud",        "region", "country", "zone",  "instance_type",
                                      "interconnect", "driver", "image",   "fabric" };
  json_t *j = json_object ();

  json_put_str (j, "id", t->id);
  json_put_str (j, "provider", p->name);
  json_put_str (j, "offer_ref", t->ref);
  for (size_t i = 0; i < N_ELEMENTS (same); i++)
    json_put_str (j, same[i], json_str (raw, same[i], NULL));
  json_object_set_new (j, "gpu", gpu_json (x, t));
  put_count (j, "vcpus", x->vcpus);
  put_count (j, "ram_gib", x->ram_gib);
  put_count (j, "disk_gib", x->disk_gib);
  put_count (j, "disk_max_gib", x->disk_max_gib);
  json_put_str (j, "kind", kinds[x->kind]);
  json_put_str (j, "market", markets[x->market]);
  json_put_str (j, "arch", archs[x->arch]);
  json_put_str (j, "availability", availabilities[x->availability]);
  if (t->stock != UINT32_MAX)
    json_put_i64 (j, "stock", t->stock);
  if (t->caps_known)
    json_object_set_new (j, "caps", caps_json (t->caps));
  return j;
}

static int
render (struct offer_list *l, struct offer *x, struct offer_text *t, const struct offers_prov *p,
        const json_t *raw, struct err *e)
{
  AUTO_JSON json_t *j = offer_json (x, t, p, raw);
  AUTO_FREE char *text = json_dumps (j, JSON_COMPACT);

  if (!text)
    return err_set (e, ERR_INVALID, "offer %.60s cannot be written as JSON", t->ref);
  t->json_len = (uint32_t) strlen (text) - 1;
  t->json = arena_copy (&l->arena, text, t->json_len);
  return 0;
}

static void
reserve (struct offer_list *l)
{
  if (l->n < l->cap)
    return;
  l->cap = l->cap ? l->cap * 2 : 32;
  l->hot = realloc (l->hot, l->cap * sizeof *l->hot);
  l->text = realloc (l->text, l->cap * sizeof *l->text);
  if (!l->hot || !l->text)
    abort ();
}

int
offer_list_add (struct offer_list *l, struct offers *o, const struct offers_prov *p,
                const json_t *raw, uint32_t seen_s, struct err *e)
{
  struct offer *x;
  struct offer_text *t;

  if (check (raw, e) < 0)
    return -1;
  reserve (l);
  x = &l->hot[l->n];
  t = &l->text[l->n];
  memset (x, 0, sizeof *x);
  memset (t, 0, sizeof *t);
  x->seen_s = seen_s;
  offer_prices (raw, &x->price_udollar, &t->price_ip_udollar, &x->disk_price_udollar);
  read_gpu (x, raw);
  read_size (x, raw);
  read_names (x, o, p, raw);
  read_text (l, t, l->n ? t - 1 : NULL, p, raw);
  x->kubernetes = ((t->caps_known ? t->caps : p->caps) & GPUB_CAP_HOSTS_KUBERNETES) != 0;
  if (render (l, x, t, p, raw, e) < 0)
    return -1;
  l->n++;
  return 0;
}

void
offer_list_free (struct offer_list *l)
{
  if (!l)
    return;
  arena_done (&l->arena);
  free (l->scope);
  free (l->hot);
  free (l->text);
  free (l);
}

struct pair {
  struct offer hot;
  struct offer_text text;
};

static int
by_ref (const void *a, const void *b)
{
  return strcmp (((const struct pair *) a)->text.ref, ((const struct pair *) b)->text.ref);
}

void
offer_list_sort (struct offer_list *l)
{
  struct pair *pairs = calloc (l->n + 1, sizeof *pairs);

  if (!pairs)
    abort ();
  for (size_t i = 0; i < l->n; i++)
    pairs[i] = (struct pair){ l->hot[i], l->text[i] };
  qsort (pairs, l->n, sizeof *pairs, by_ref);
  for (size_t i = 0; i < l->n; i++) {
    l->hot[i] = pairs[i].hot;
    l->text[i] = pairs[i].text;
  }
  free (pairs);
}
