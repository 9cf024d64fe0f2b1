/* match_query.c - makes a filter and its context ready for a table */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/json.h"
#include "core/match_int.h"

/* Networks between machines that lose what is not wrapped: pods' own addresses and IPIP (protocol
 * 4) do not cross. */
static const char *const closed_fabrics[] = { "hyperstack" };

/* A CNI that wraps pod traffic in UDP or TCP. */
static bool
wraps (const char *cni)
{
  return strstr (cni, "vxlan") || strstr (cni, "geneve") || strstr (cni, "wireguard");
}

static uint8_t *
atom_bytes (const struct offers *o)
{
  uint8_t *bytes = calloc (o->atoms.names.n + 1, 1);

  if (!bytes)
    abort ();
  return bytes;
}

static uint8_t *
names_bytes (const struct offers *o, const json_t *list)
{
  uint8_t *bytes;
  const json_t *x;
  size_t i;

  if (!list)
    return NULL;
  bytes = atom_bytes (o);
  json_array_foreach ((json_t *) list, i, x)
    bytes[atom_find (&o->atoms, json_string_value (x))] = 1;
  bytes[0] = 0; /* not known is not that */
  return bytes;
}

/* "sxm" means every SXM board, and those have NVLink. */
static bool
interconnect_fits (const char *want, const char *have)
{
  if (strcasecmp (want, have) == 0)
    return true;
  if (strncasecmp (have, "sxm", 3) != 0)
    return false;
  return strcasecmp (want, "sxm") == 0 || strcasecmp (want, "nvlink") == 0;
}

static void
prepare_interconnect (struct query *q)
{
  const struct atoms *a = &q->o->atoms;
  const char *want = q->f->interconnect;

  if (!want)
    return;
  q->interconnect = atom_bytes (q->o);
  for (size_t i = 1; i < a->names.n; i++)
    q->interconnect[i] = interconnect_fits (want, a->names.at[i]);
  if (strncasecmp (want, "sxm", 3) == 0 || strcasecmp (want, "nvlink") == 0)
    q->form = GPU_FORM_SXM;
  else if (strcasecmp (want, "pcie") == 0)
    q->form = GPU_FORM_PCIE;
}

static void
prepare_fabric (struct query *q)
{
  if (!q->c->cross_node || !q->c->cni || wraps (q->c->cni))
    return;
  q->fabric = atom_bytes (q->o);
  for (size_t i = 0; i < N_ELEMENTS (closed_fabrics); i++)
    q->fabric[atom_find (&q->o->atoms, closed_fabrics[i])] = 1;
  q->fabric[0] = 0;
}

static void
keyset_add (struct keyset *s, uint64_t key)
{
  size_t i = key & s->mask;

  while (s->slots[i] && s->slots[i] != key)
    i = (i + 1) & s->mask;
  s->slots[i] = key;
}

static void
keyset_reserve (struct keyset *s, size_t n)
{
  size_t slots = 16;

  while (slots < n * 2)
    slots *= 2;
  s->slots = calloc (slots, sizeof *s->slots);
  if (!s->slots)
    abort ();
  s->mask = slots - 1;
}

static void
prepare_memory (struct query *q)
{
  const struct memory *m = q->c->memory;
  size_t n = memory_count (m);

  if (!n)
    return;
  keyset_reserve (&q->blocked, n);
  keyset_reserve (&q->good, n);
  for (size_t i = 0; i < n; i++) {
    const struct memory_entry *x = memory_at (m, i);

    if (q->c->now_ms < x->until_ms)
      keyset_add (&q->blocked, x->key);
    if (memory_entry_good (x, q->c->now_ms))
      keyset_add (&q->good, x->key);
  }
}

static int
no_such (const char *what, const char *name, const char *const *names, size_t n, struct err *e)
{
  const char *near = nearest (name, names, n);

  return err_set (e, ERR_INVALID, "no %s is called '%.60s'%s%s%s", what, name,
                  near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int
no_provider (const struct offers *o, const char *name, struct err *e)
{
  const char *names[64];
  size_t n;

  for (n = 0; n < o->provs.n && n < N_ELEMENTS (names); n++)
    names[n] = o->provs.at[n]->name;
  return no_such ("provider", name, names, n, e);
}

/* "NAME", "NAME/SUBCLOUD", either with ":REGION" behind it. */
struct named {
  char provider[64];
  const char *cloud, *region; /* NULL: not said */
  char copy[256];
};

static void
split_name (struct named *n, const char *text, bool with_region)
{
  char *slash, *colon;

  snprintf (n->copy, sizeof n->copy, "%s", text);
  colon = with_region ? strchr (n->copy, ':') : NULL;
  if (colon)
    *colon = '\0';
  slash = strchr (n->copy, '/');
  if (slash)
    *slash = '\0';
  snprintf (n->provider, sizeof n->provider, "%.63s", n->copy);
  n->cloud = slash ? slash + 1 : NULL;
  n->region = colon ? colon + 1 : NULL;
}

static struct query_prov *
find_prov (const struct query *q, const char *name)
{
  for (size_t i = 0; i < q->o->provs.n; i++)
    if (strcmp (q->o->provs.at[i]->name, name) == 0)
      return &q->provs[i];
  return NULL;
}

/* Atom of a sub-cloud; one that no offer has becomes an atom that no offer can have. */
static uint16_t
cloud_atom (const struct offers *o, const char *name)
{
  uint16_t id = atom_find (&o->atoms, name);

  return id ? id : UINT16_MAX;
}

static int
prepare_names (struct query *q, const json_t *list, bool exclude, struct err *e)
{
  const json_t *x;
  size_t i;

  json_array_foreach ((json_t *) list, i, x) {
    struct query_prov *p;
    struct named n;

    split_name (&n, json_string_value (x), false);
    p = find_prov (q, n.provider);
    if (!p)
      return no_provider (q->o, n.provider, e);
    if (n.cloud && exclude)
      *vec_push (&p->excluded_clouds) = cloud_atom (q->o, n.cloud);
    else if (n.cloud)
      *vec_push (&p->wanted_clouds) = cloud_atom (q->o, n.cloud);
    else
      *(exclude ? &p->excluded : &p->wanted) = true;
  }
  return 0;
}

static const struct match_locality *
find_locality (const struct match_context *c, const char *name, struct err *e)
{
  const char *names[64];
  size_t n;

  for (size_t i = 0; i < c->nlocalities; i++)
    if (strcmp (c->localities[i].name, name) == 0)
      return &c->localities[i];
  for (n = 0; n < c->nlocalities && n < N_ELEMENTS (names); n++)
    names[n] = c->localities[n].name;
  no_such ("locality", name, names, n, e);
  return NULL;
}

static int
prepare_locality (struct query *q, const char *name, bool cluster, struct err *e)
{
  const struct match_locality *l = name ? find_locality (q->c, name, e) : NULL;

  if (!l)
    return name ? -1 : 0;
  for (size_t i = 0; i < l->nmembers; i++) {
    struct query_prov *p;
    struct place place;
    struct named n;

    split_name (&n, l->members[i], true);
    p = find_prov (q, n.provider);
    if (!p || !n.region)
      continue;
    place.cloud = n.cloud ? cloud_atom (q->o, n.cloud) : 0;
    place.region = atom_find (&q->o->atoms, n.region);
    if (!place.region)
      continue;
    if (cluster)
      *vec_push (&p->near) = place;
    else
      *vec_push (&p->locality) = place;
  }
  return 0;
}

static enum exclusion
state_code (enum offers_state s)
{
  static const enum exclusion codes[] = {
    [OFFERS_STARTING] = EXCL_PROVIDER_DOWN, [OFFERS_UP] = EXCL_NONE,
    [OFFERS_DOWN] = EXCL_PROVIDER_DOWN,     [OFFERS_PAUSED] = EXCL_PROVIDER_PAUSED,
    [OFFERS_BALANCE] = EXCL_BALANCE,        [OFFERS_QUOTA] = EXCL_QUOTA,
  };

  return codes[s];
}

static void
prepare_bars (struct query *q, struct query_prov *p)
{
  const struct memory *m = q->c->memory;

  p->barred = m ? memory_barred (m, p->prov->name, NULL, q->c->now_ms) : NULL;
  for (size_t i = 0; i < memory_count (m); i++) {
    const struct memory_entry *x = memory_at (m, i);
    const char *region = memory_bars_region (x, p->prov->name);
    uint16_t atom = region && q->c->now_ms < x->until_ms ? atom_find (&q->o->atoms, region) : 0;

    if (atom)
      *vec_push (&p->barred_regions) = atom;
  }
}

static void
prepare_refusals (struct query *q, struct query_prov *p)
{
  const struct memory *m = q->c->memory;
  const char *name = p->prov->name;

  p->broke = m ? memory_broke (m, name, q->c->now_ms) : NULL;
  for (size_t i = 0; i < memory_count (m); i++) {
    const struct memory_entry *x = memory_at (m, i);
    const char *area;
    bool spot;

    if (q->c->now_ms >= x->until_ms || !memory_of_account (x, name))
      continue;
    p->refused = true;
    if ((area = memory_area (x, name, &spot)) && (!*area || atom_find (&q->o->atoms, area)))
      *vec_push (&p->refusals) = (struct area){ *area ? atom_find (&q->o->atoms, area) : 0, spot };
  }
}

static void
prepare_provs (struct query *q)
{
  q->provs = calloc (q->o->provs.n + 1, sizeof *q->provs);
  if (!q->provs)
    abort ();
  for (size_t i = 0; i < q->o->provs.n; i++) {
    struct query_prov *p = &q->provs[i];

    p->prov = q->o->provs.at[i];
    p->state = state_code (p->prov->state);
    p->wanted = q->f->provider == NULL;
    prepare_bars (q, p);
    prepare_refusals (q, p);
  }
}

static int
prepare_price (struct query *q, struct err *e)
{
  const struct filter *f = q->f;
  uint64_t by_cost = UINT64_MAX;

  if (f->max_cost_udollar != UINT64_MAX && !q->c->ttl_ms)
    return err_set (e, ERR_INVALID, "'max_cost_udollar' needs an end: give a ttl");
  if (f->max_cost_udollar != UINT64_MAX)
    by_cost = (uint64_t) ((double) f->max_cost_udollar * 3600000.0 / (double) q->c->ttl_ms);
  q->max_price = f->max_price_per_gpu ? UINT64_MAX : f->max_price_udollar;
  q->max_gpu_price = f->max_price_per_gpu ? f->max_price_udollar : UINT64_MAX;
  if (by_cost < q->max_price)
    q->max_price = by_cost;
  if (q->c->cap_udollar < q->max_price)
    q->max_price = q->c->cap_udollar;
  return 0;
}

static void
prepare_words (struct query *q)
{
  const struct filter *f = q->f;
  const struct match_context *c = q->c;
  int64_t oldest = (c->now_ms - (int64_t) q->o->conf.expire_ms) / 1000;

  q->oldest_s = oldest > 0 ? (uint32_t) oldest : 0;
  q->min_driver = driver_number (f->min_driver);
  if (f->arch)
    q->arch = strcmp (f->arch, "x86_64") == 0 ? ARCH_X86_64 : ARCH_AARCH64;
  q->region = names_bytes (q->o, f->region);
  q->country = names_bytes (q->o, f->country);
  prepare_interconnect (q);
  prepare_fabric (q);
  if (!c->home_provider)
    return;
  q->home.cloud = c->home_cloud && *c->home_cloud ? cloud_atom (q->o, c->home_cloud) : 0;
  q->home.region = atom_find (&q->o->atoms, c->home_region);
}

int
query_init (struct query *q, const struct offers *o, const struct filter *f,
            const struct match_context *c, struct err *e)
{
  memset (q, 0, sizeof *q);
  q->o = o;
  q->f = f;
  q->c = c;
  prepare_provs (q);
  prepare_words (q);
  prepare_memory (q);
  if (prepare_names (q, f->provider, false, e) == 0 &&
      prepare_names (q, f->exclude, true, e) == 0 &&
      prepare_locality (q, f->locality, false, e) == 0 &&
      prepare_locality (q, c->cluster_locality, true, e) == 0 && prepare_price (q, e) == 0)
    return 0;
  query_done (q);
  return -1;
}

void
query_done (struct query *q)
{
  for (size_t i = 0; q->provs && i < q->o->provs.n; i++) {
    vec_free (&q->provs[i].wanted_clouds);
    vec_free (&q->provs[i].excluded_clouds);
    vec_free (&q->provs[i].barred_regions);
    vec_free (&q->provs[i].refusals);
    vec_free (&q->provs[i].locality);
    vec_free (&q->provs[i].near);
  }
  free (q->provs);
  free (q->region);
  free (q->country);
  free (q->interconnect);
  free (q->fabric);
  free (q->blocked.slots);
  free (q->good.slots);
}
