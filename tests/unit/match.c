/* match.c - matching: every exclusion code with its text, the order, fractions, budgets, the
 * nearest price */
#include "config.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/match.h"
#include "tests/unit/tap.h"

static const int64_t now = INT64_C (1800000000000);

/* Jansson's own parser, so that tests may be written with single quotes. */
static json_t *
js (const char *text)
{
  AUTO_FREE char *copy = strdup (text);
  json_t *j;

  for (char *p = copy; *p; p++)
    if (*p == '\'')
      *p = '"';
  j = json_loads (copy, 0, NULL);
  if (!j) {
    printf ("Bail out! bad JSON in a test: %s\n", text);
    exit (1);
  }
  return j;
}

static void
item (struct offers *o, const char *provider, const char *text, int64_t at)
{
  AUTO_JSON json_t *j = js (text);

  offers_item (o, provider, j, at);
}

/* One scope, completely. */
static void
list (struct offers *o, const char *provider, const char *offers, int64_t at)
{
  AUTO_FREE char *text = NULL;

  if (asprintf (&text, "{'offers':[%s]}", offers) < 0)
    abort ();
  offers_begin (o, provider);
  item (o, provider, text, at);
  item (o, provider, "{'scope':{'scope':'','how':'complete'}}", at);
  offers_end (o, provider, true, at);
}

static struct offers *
table (const char *provider, const char *offers)
{
  struct offers *o = offers_new (NULL);

  offers_provider (o, provider, "fakecloud", 1u << 8);
  offers_state (o, provider, OFFERS_UP, NULL);
  list (o, provider, offers, now);
  return o;
}

#define H100                                                                                       \
 "'gpu_name':'H100','gpu_count':1,'vram_mib':81920,'vcpus':16,'ram_mib':204800,'disk_gib':200,"    \
 "'kind':'vm','market':'on-demand','availability':'available','arch':'x86_64','region':'oslo-1',"  \
 "'country':'NO','interconnect':'pcie','driver':'570.86','price_udollar':2000000"

static struct match_context
context (void)
{
  struct match_context c = MATCH_CONTEXT_INIT;

  c.now_ms = now;
  return c;
}

static void
get_filter (struct filter *f, const char *text)
{
  AUTO_JSON json_t *j = js (text);
  struct err e = ERR_INIT;

  if (filter_parse (f, j, MARKET_ON_DEMAND, &e) < 0) {
    printf ("Bail out! filter %s: %s\n", text, e.text);
    exit (1);
  }
}

static int
first_reject (void *ctx, const struct offer_at *a, enum exclusion code, const char *text)
{
  (void) a;
  snprintf (ctx, 300, "%s: %s", exclusion_name (code), text);
  return 1;
}

/* The one offer's code and text in a table, with a context. */
static void
why_in (struct offers *o, const char *filter, const struct match_context *c, const char *want)
{
  char got[300] = "it fits";
  struct err e = ERR_INIT;
  struct filter f;
  struct match m;

  get_filter (&f, filter);
  match_explain (o, &f, c, first_reject, got, &e);
  is_str (got, want, filter);
  match_run (o, &f, c, &m, &e);
  ok ((m.n == 1) == (strcmp (want, "it fits") == 0), "... and match_run agrees");
  match_done (&m);
  filter_done (&f);
}

static void
why (const char *offer, const char *filter, const char *want)
{
  struct match_context c = context ();
  struct offers *o = table ("p", offer);

  why_in (o, filter, &c, want);
  offers_free (o);
}

#define OFFER "{'offer_ref':'a'," H100 "}"

static void
codes (void)
{
  why (OFFER, "{}", "it fits");
  why (OFFER, "{'gpu':[{'model':'H100'}]}", "it fits");
  why (OFFER, "{'gpu':[{'model':'A100'},{'model':'H100'}]}", "it fits");
  why (OFFER, "{'gpu':[{'model':'H200'}]}", "gpu-model: it is H100-80GB-PCIe, wanted H200");
  why (OFFER, "{'gpu':[{'model':'H100-SXM'}]}", "gpu-model: it is H100-80GB-PCIe, wanted H100-SXM");
  why (OFFER, "{'gpu':[{'model':'none'}]}", "gpu-model: it is H100-80GB-PCIe, wanted no GPU");
  why (OFFER, "{'gpu':[{'model':'H100','min':2}]}", "gpu-count: it has 1, wanted 2");
  why (OFFER, "{'gpu':[{'model':'H100','min':2,'max':0}]}",
       "gpu-count: it has 1, wanted 2 or more");
  why (OFFER, "{'gpu':[{'model':'H100','min':2,'max':4}]}", "gpu-count: it has 1, wanted 2 to 4");
  why (OFFER, "{'gpu':[{'model':'any'}]}", "it fits");
  why (OFFER, "{'vram_gib':80}", "it fits");
  why (OFFER, "{'vram_gib':81}", "vram: 80 GiB per GPU, wanted 81");
  why (OFFER, "{'total_vram_gib':160}", "vram: 80 GiB in all GPUs, wanted 160");
  why (OFFER, "{'vcpus':17}", "vcpus: 16 vCPUs, wanted 17");
  why (OFFER, "{'ram_gib':201}", "ram: 200 GiB of memory, wanted 201");
  why (OFFER, "{'disk_gib':201}", "disk: 200 GiB of disk, wanted 201");
  why (OFFER, "{'market':'spot'}", "market: it is on-demand, wanted spot");
  why (OFFER, "{'market':'any'}", "it fits");
  why (OFFER, "{'kind':'baremetal'}", "kind: it is a vm, wanted baremetal");
  why (OFFER, "{'arch':'aarch64'}", "arch: architecture x86_64, wanted aarch64");
  why (OFFER, "{'arch':'amd64'}", "it fits");
  why (OFFER, "{'interconnect':'sxm'}", "interconnect: interconnect pcie, wanted sxm");
  why (OFFER, "{'interconnect':'PCIe'}", "it fits");
  why (OFFER, "{'min_driver':'570.100'}", "driver: driver 570.86, wanted 570.100 or newer");
  why (OFFER, "{'min_driver':'570'}", "it fits");
  why (OFFER, "{'region':['oslo-2','stavanger']}",
       "region: region oslo-1, wanted oslo-2, stavanger");
  why (OFFER, "{'region':['OSLO-1']}", "it fits");
  why (OFFER, "{'country':['SE']}", "region: country NO, wanted SE");
  why (OFFER, "{'exclude':['p']}", "excluded: p is excluded");
  why (OFFER, "{'provider':['p/other']}", "excluded: p is not among the providers asked for");
  why (OFFER, "{'max_price_udollar':1990000}", "price: $2.00/h, wanted at most $1.99");
  why (OFFER, "{'max_price_udollar':2000000}", "it fits");
}

static void
more_codes (void)
{
  why ("{'offer_ref':'a','cloud':'hyperstack'," H100 "}", "{'exclude':['p/hyperstack']}",
       "excluded: p/hyperstack is excluded");
  why ("{'offer_ref':'a','cloud':'hyperstack'," H100 "}", "{'provider':['p/Hyperstack']}",
       "it fits");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1}", "{}",
       "price-unknown: p names no price");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1,'currency':'EUR'}", "{}",
       "price-unknown: p names no price");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':0}", "{}", "it fits");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1,'disk_gib':10,'disk_max_"
       "gib':500}",
       "{}", "price-unknown: p names no price for the disk");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1,'disk_gib':10,'disk_max_"
       "gib':500}",
       "{'disk_gib':600}", "disk: 500 GiB of disk at most, wanted 600");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1,'availability':'none'}",
       "{}", "stock: p has none left");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1,'stock':0}", "{}",
       "stock: p has none left");
  why ("{'offer_ref':'a','gpu_name':'Frobnicator 9','gpu_count':1,'price_udollar':1}",
       "{'gpu':[{'model':'H100'}]}", "gpu-model: it is Frobnicator 9, wanted H100");
  why ("{'offer_ref':'a','gpu_name':'Frobnicator 9','gpu_count':1,'price_udollar':1}",
       "{'vram_gib':1}", "vram: its GPU memory is not known, wanted 1 GiB");
  why ("{'offer_ref':'a','gpu_name':'Frobnicator 9','gpu_count':1,'price_udollar':1}",
       "{'gpu':[{'model':'any'}]}", "it fits");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':8,'price_udollar':20000000}",
       "{'max_price_udollar':2400000,'max_price_per':'gpu'}",
       "price: $2.50/h per GPU, wanted at most $2.40");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':8,'price_udollar':20000000}",
       "{'max_price_udollar':2500000,'max_price_per':'gpu'}", "it fits");
  why ("{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':1}", "{'vcpus':1}",
       "vcpus: vCPUs not known, wanted 1");
}

static void
cpu_and_fractions (void)
{
  static const char cpu[] = "{'offer_ref':'c','vcpus':4,'ram_mib':16384,'price_udollar':100000}";
  static const char eighth[] = "{'offer_ref':'f','gpu_name':'L4','gpu_count':1,'gpu_denominator':8,"
                               "'vram_mib':2861,'price_udollar':100000}";

  why (cpu, "{}", "gpu-model: it has no GPU, wanted a GPU");
  why (cpu, "{'gpu':[]}", "it fits");
  why (cpu, "{'gpu':[{'model':'none'}],'vcpus':4}", "it fits");
  why (cpu, "{'gpu':[{'model':'H100'}]}", "gpu-model: it has no GPU, wanted H100");
  why (cpu, "{'gpu':[],'vram_gib':1}", "vram: its GPU memory is not known, wanted 1 GiB");
  why (eighth, "{'gpu':[{'model':'L4'}]}", "gpu-model: it is L4/8, wanted L4");
  why (eighth, "{'gpu':[{'model':'L4/8'}]}", "it fits");
  why (eighth, "{'gpu':[{'model':'L4/4'}]}", "gpu-model: it is L4/8, wanted L4/4");
  why (eighth, "{'gpu':[{'model':'any'}]}", "gpu-model: it is L4/8, wanted any GPU");
  why (eighth, "{'gpu':[{'model':'L4/8'}],'vram_gib':3}", "it fits");
  why (eighth, "{'gpu':[{'model':'L4/8'}],'vram_gib':4}", "vram: 3 GiB per GPU, wanted 4");
}

static void
supply (void)
{
  const struct memory_what what = { "fakecloud", "oslo-1", "h100x1", "on-demand", "p", NULL };
  struct memory_what other = what;
  struct match_context c = context ();
  struct offers *o = table ("p", "{'offer_ref':'a','instance_type':'h100x1'," H100 "}");
  struct memory *m = memory_new ();

  c.memory = m;
  memory_fail (m, &what, MEMORY_CAPACITY, "OUT_OF_STOCK", now - 1000);
  why_in (o, "{}", &c, "capacity-memory: capacity, 1 time: OUT_OF_STOCK; again in 119 s");
  memory_fail (m, &what, MEMORY_MISMATCH, "7 GPUs of 8", now - 1000);
  why_in (o, "{}", &c, "capacity-memory: mismatch, 1 time: 7 GPUs of 8; again in 1799 s");
  memory_success (m, &what, now);
  other.provider = "q";
  memory_fail (m, &other, MEMORY_QUOTA, "limit 0", now - 1000);
  memory_fail (m, &other, MEMORY_MONEY, "$0 left", now - 1000);
  why_in (o, "{}", &c, "it fits");
  memory_fail (m, &what, MEMORY_QUOTA, "limit 0", now - 1000);
  why_in (o, "{}", &c, "quota: quota, 1 time: limit 0; again in 599 s");
  memory_success (m, &what, now);
  why_in (o, "{}", &c, "it fits");
  for (int i = 0; i < 2; i++) {
    other = (struct memory_what){ "fakecloud", "elsewhere", i ? "x" : "y", "on-demand", "p", NULL };
    memory_fail (m, &other, MEMORY_QUOTA, "limit 8", now - 1000);
  }
  why_in (o, "{}", &c, "quota: quota, 1 time: limit 8; again in 599 s");
  memory_fail (m, &what, MEMORY_MONEY, "$0 left", now - 1000);
  why_in (o, "{}", &c, "balance: money, 1 time: $0 left; again in 599 s");
  memory_success (m, &what, now);
  why_in (o, "{}", &c, "it fits");
  memory_bar (m, "p", "oslo-2", "AuthFailure", now);
  why_in (o, "{}", &c, "it fits");
  memory_bar (m, "p", "oslo-1", "AuthFailure", now);
  why_in (o, "{}", &c, "provider-down: p oslo-1 is barred: AuthFailure");
  memory_bar (m, "p", NULL, "401", now);
  why_in (o, "{}", &c, "provider-down: p is barred: 401");
  memory_unbar (m, "p");
  why_in (o, "{}", &c, "it fits");
  memory_free (m);

  c.memory = NULL;
  offers_state (o, "p", OFFERS_DOWN, "connection refused");
  why_in (o, "{}", &c, "provider-down: p is down: connection refused");
  offers_state (o, "p", OFFERS_STARTING, NULL);
  why_in (o, "{}", &c, "provider-down: p has not answered yet");
  offers_state (o, "p", OFFERS_PAUSED, "by hand");
  why_in (o, "{}", &c, "provider-paused: p is paused: by hand");
  offers_state (o, "p", OFFERS_BALANCE, "$0.12 left");
  why_in (o, "{}", &c, "balance: p is out of money: $0.12 left");
  offers_state (o, "p", OFFERS_QUOTA, "0 vCPUs");
  why_in (o, "{}", &c, "quota: p is out of quota: 0 vCPUs");
  offers_state (o, "p", OFFERS_UP, NULL);
  c.now_ms = now + 15 * 60000;
  why_in (o, "{}", &c, "it fits");
  c.now_ms = now + 15 * 60000 + 1000;
  why_in (o, "{}", &c, "stale: last seen 901 s ago, more than 900 s");
  offers_free (o);
}

static void
places (void)
{
  static const char *const near[] = { "p:oslo-1", "q:x" }, *const sub[] = { "p/hyper:oslo-1" },
                           *const far[] = { "p:oslo-2" };
  const struct match_locality localities[] = { { "near", near, 2 },
                                               { "far", far, 1 },
                                               { "sub", sub, 1 } };
  struct match_context c = context ();
  struct offers *o =
      table ("p", "{'offer_ref':'a','cloud':'other','fabric':'hyperstack'," H100 "}");

  c.localities = localities;
  c.nlocalities = 3;
  why_in (o, "{'locality':'near'}", &c, "it fits");
  why_in (o, "{'locality':'far'}", &c, "locality-mismatch: p oslo-1 is not in locality far");
  why_in (o, "{'locality':'sub'}", &c, "locality-mismatch: p oslo-1 is not in locality sub");
  c.cluster_locality = "far";
  why_in (o, "{}", &c, "locality-mismatch: p oslo-1 is not in locality far");
  c.cluster_locality = NULL;
  c.cluster = "spoke-a";
  c.home_provider = "p";
  c.home_cloud = "other";
  c.home_region = "oslo-1";
  why_in (o, "{}", &c, "it fits");
  c.home_region = "oslo-2";
  why_in (o, "{}", &c,
          "locality-mismatch: p oslo-1, but pods of cluster spoke-a talk across machines and its "
          "first node "
          "is at p/other oslo-2");
  c.home_provider = NULL;
  c.cni = "kuberouter";
  why_in (o, "{}", &c, "it fits");
  c.cross_node = true;
  why_in (o, "{}", &c,
          "fabric: network hyperstack drops pod traffic that is not wrapped, and cluster spoke-a "
          "uses kuberouter");
  c.cni = "calico-vxlan";
  why_in (o, "{}", &c, "it fits");
  c.kubernetes = true;
  why_in (o, "{}", &c, "it fits");
  offers_provider (o, "p", "fakecloud", 0);
  why_in (o, "{}", &c, "no-kubernetes: a vm of p cannot host Kubernetes");
  list (o, "p", "{'offer_ref':'a','caps':['hosts-kubernetes']," H100 "}", now);
  why_in (o, "{}", &c, "it fits");
  offers_free (o);
}

static void
budgets (void)
{
  struct match_context c = context ();
  struct offers *o = table ("p", OFFER);
  const char *tried[1];
  struct offer_at a;

  c.cap_udollar = 1500000;
  why_in (o, "{}", &c, "price: $2.00/h, and the budget has $1.50/h left");
  c.cap_udollar = UINT64_MAX;
  c.ttl_ms = 4 * 3600000;
  why_in (o, "{'max_cost_udollar':8000000}", &c, "it fits");
  why_in (o, "{'max_cost_udollar':7000000}", &c,
          "price: $2.00/h until its end costs more than $7.00");
  ok (offers_find_ref (o, "p", "a", &a), "found by ref");
  tried[0] = a.text->id;
  c.tried = tried;
  c.ntried = 1;
  why_in (o, "{}", &c, "excluded: it was already tried for this rent");
  offers_free (o);
}

static void
refused (struct offers *o, const struct match_context *c, const char *filter, const char *want)
{
  struct err e = ERR_INIT;
  struct filter f;
  struct match m;

  get_filter (&f, filter);
  ok (match_run (o, &f, c, &m, &e) < 0 && m.n == 0, "refused: %s", filter);
  is_str (e.text, want, "... with its reason");
  filter_done (&f);
}

static void
errors (void)
{
  const struct match_locality localities[] = { { "eu-north", NULL, 0 } };
  struct match_context c = context ();
  struct offers *o = table ("shadeform", OFFER);

  c.localities = localities;
  c.nlocalities = 1;
  refused (o, &c, "{'provider':['shadefrom']}",
           "no provider is called 'shadefrom', did you mean 'shadeform'?");
  refused (o, &c, "{'exclude':['zzz']}", "no provider is called 'zzz'");
  refused (o, &c, "{'locality':'eu-nort'}",
           "no locality is called 'eu-nort', did you mean 'eu-north'?");
  refused (o, &c, "{'max_cost_udollar':1}", "'max_cost_udollar' needs an end: give a ttl");
  offers_free (o);
}

/* The refs in order of rank. */
static void
ranks (struct offers *o, const struct match_context *c, const char *filter, const char *want)
{
  char got[200] = "";
  struct err e = ERR_INIT;
  struct filter f;
  struct match m;

  get_filter (&f, filter);
  match_run (o, &f, c, &m, &e);
  for (size_t i = 0; i < m.n && strlen (got) < 150; i++)
    strcat (strcat (got, i ? " " : ""), m.at[i].offer.text->ref);
  is_str (got, want, filter);
  match_done (&m);
  filter_done (&f);
}

static void
ranking (void)
{
  const struct memory_what good = { "fakecloud", NULL, "t-e", "on-demand", NULL, NULL };
  struct match_context c = context ();
  struct memory *m = memory_new ();
  struct offers *o = table (
      "p",
      "{'offer_ref':'h','gpu_name':'H100','gpu_count':4,'price_udollar':5000000},"
      "{'offer_ref':'g','gpu_name':'H100','gpu_count':2,'price_udollar':6000000},"
      "{'offer_ref':'f','gpu_name':'H100','gpu_count':1,'price_udollar':3000000,'instance_type':'t-"
      "f'},"
      "{'offer_ref':'e','gpu_name':'H100','gpu_count':1,'price_udollar':3000000,'instance_type':'t-"
      "e'},"
      "{'offer_ref':'d','gpu_name':'H100','gpu_count':1,'price_udollar':3000000,'availability':'"
      "low'},"
      "{'offer_ref':'c','gpu_name':'H100','gpu_count':1,'price_udollar':3000000,'availability':'"
      "available'},"
      "{'offer_ref':'b','gpu_name':'H100','gpu_count':1,'market':'spot','price_udollar':1000000},"
      "{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':2990000,'price_ip_udollar':"
      "20000},"
      "{'offer_ref':'z','gpu_name':'H100','gpu_count':1}");

  ranks (o, &c, "{'gpu':[{'model':'H100'}]}", "c d e f a");
  c.memory = m;
  memory_success (m, &good, now);
  ranks (o, &c, "{'gpu':[{'model':'H100'}]}", "c d e f a");
  memory_success (m, &(struct memory_what){ "fakecloud", NULL, "t-f", "on-demand", NULL, NULL }, now);
  memory_free (m);
  m = memory_new ();
  c.memory = m;
  memory_success (m, &(struct memory_what){ "fakecloud", NULL, "t-f", "on-demand", NULL, NULL }, now);
  ranks (o, &c, "{'gpu':[{'model':'H100'}]}", "c d f e a");
  ranks (o, &c, "{'gpu':[{'model':'H100'}],'market':'spot'}", "b");
  ranks (o, &c, "{'gpu':[{'model':'H100'}],'market':'any'}", "b c d f e a");
  ranks (o, &c, "{'gpu':[{'model':'H100','min':2,'max':0}]}", "h g");
  ranks (o, &c, "{'gpu':[{'model':'H100','min':2}]}", "g");
  memory_free (m);
  offers_free (o);
}

static void
disks (void)
{
  struct match_context c = context ();
  struct offers *o = table (
      "p",
      "{'offer_ref':'range','gpu_name':'L4','gpu_count':1,'price_udollar':1000000,'disk_gib':50,"
      "'disk_max_gib':1000,'price_disk_gib_udollar':1000},"
      "{'offer_ref':'fixed','gpu_name':'L4','gpu_count':1,'price_udollar':1060000,'disk_gib':400}");

  ranks (o, &c, "{}", "range fixed");
  ranks (o, &c, "{'disk_gib':200}", "fixed range");
  ranks (o, &c, "{'disk_gib':500}", "range");
  offers_free (o);
}

static void
many (void)
{
  struct offers *o = offers_new (NULL);
  struct match_context c = context ();
  struct err e = ERR_INIT;
  struct filter f;
  struct match m;
  size_t bad = 0;

  offers_provider (o, "p", "fakecloud", 0);
  offers_state (o, "p", OFFERS_UP, NULL);
  offers_begin (o, "p");
  for (int i = 0; i < 3000; i++) {
    AUTO_FREE char *text = NULL;

    if (asprintf (
            &text,
            "{'offers':[{'offer_ref':'r%04d','gpu_name':'H100','gpu_count':1,'price_udollar':%d}]}",
            i, (i * 7919) % 1000 * 1000) < 0)
      abort ();
    item (o, "p", text, now);
  }
  item (o, "p", "{'scope':{'scope':'','how':'complete'}}", now);
  offers_end (o, "p", true, now);
  get_filter (&f, "{}");
  match_run (o, &f, &c, &m, &e);
  is_num ((int64_t) m.n, 3000, "3,000 offers match");
  for (size_t i = 1; i < m.n; i++) {
    const struct match_pick *a = &m.at[i - 1], *b = &m.at[i];

    bad += a->price_udollar > b->price_udollar ||
           (a->price_udollar == b->price_udollar &&
            strcmp (a->offer.text->ref, b->offer.text->ref) >= 0);
  }
  is_num ((int64_t) bad, 0, "in the order of price, then name");
  match_done (&m);
  filter_done (&f);
  offers_free (o);
}

static void
nearest_price (void)
{
  struct match_context c = context ();
  struct err e = ERR_INIT;
  struct offers *o = table (
      "p",
      "{'offer_ref':'a','gpu_name':'H100','gpu_count':1,'price_udollar':2490000,'region':'oslo-1'},"
      "{'offer_ref':'b','gpu_name':'H100','gpu_count':1,'price_udollar':3000000},"
      "{'offer_ref':'c','gpu_name':'L4','gpu_count':1,'price_udollar':300000}");
  char text[256];
  struct filter f;
  struct match m;

  get_filter (&f, "{'gpu':[{'model':'H100'}],'max_price_udollar':2000000}");
  match_run (o, &f, &c, &m, &e);
  match_summary (&m, text, sizeof text);
  is_str (text,
          "none of 3 offers fits: 1 gpu-model, 2 price; the cheapest that only its price excludes "
          "costs "
          "$2.49/h (p oslo-1)",
          "the summary says what it would cost");
  {
    AUTO_JSON json_t *j = match_excluded_json (&m);
    AUTO_FREE char *got = json_canonical (j);

    is_str (got, "{\"gpu-model\":1,\"price\":2}", "codes are counted");
  }
  match_done (&m);
  filter_done (&f);
  offers_free (o);
  o = offers_new (NULL);
  get_filter (&f, "{}");
  match_run (o, &f, &c, &m, &e);
  match_summary (&m, text, sizeof text);
  is_str (text, "no offers are known yet", "an empty table says so");
  match_done (&m);
  filter_done (&f);
  offers_free (o);
}

int
main (void)
{
  codes ();
  more_codes ();
  cpu_and_fractions ();
  supply ();
  places ();
  budgets ();
  errors ();
  ranking ();
  disks ();
  many ();
  nearest_price ();
  return done ();
}
