/* offers.c - the table: scopes replace, merge and age; hostile offers; prices; what a listing shows
 */
#include "config.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/offers.h"
#include "tests/unit/tap.h"

static const int64_t now = INT64_C (1800000000000);

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
item (struct offers *o, const char *text, int64_t at)
{
  AUTO_JSON json_t *j = js (text);

  offers_item (o, "p", j, at);
}

static struct offers *
table (void)
{
  struct offers *o = offers_new (NULL);

  offers_provider (o, "p", "fakecloud", 0);
  offers_state (o, "p", OFFERS_UP, NULL);
  return o;
}

/* One listing of one scope. */
static void
list (struct offers *o, const char *scope, const char *how, const char *refs, int64_t at)
{
  AUTO_FREE char *end = NULL, *copy = strdup (refs);

  offers_begin (o, "p");
  for (char *ref = strtok (copy, " "); ref; ref = strtok (NULL, " ")) {
    AUTO_FREE char *text = NULL;

    if (asprintf (&text,
                  "{'offers':[{'offer_ref':'%s','scope':'%s','gpu_name':'L4','gpu_count':1,'price_"
                  "udollar':1}]}",
                  ref, scope) < 0)
      abort ();
    item (o, text, at);
  }
  if (*how) {
    if (asprintf (&end, "{'scope':{'scope':'%s','how':'%s'}}", scope, how) < 0)
      abort ();
    item (o, end, at);
  }
  offers_end (o, "p", true, at);
}

static int64_t
age (struct offers *o, const char *ref, int64_t at)
{
  struct offer_at a;
  AUTO_JSON json_t *j = NULL;

  if (!offers_find_ref (o, "p", ref, &a))
    return -1;
  j = offers_json (o, &a, 0, at);
  return json_i64 (j, "age_ms", -2);
}

static void
scopes (void)
{
  struct offers *o = table ();
  struct offers_info info;

  list (o, "eu", "complete", "a b", now);
  list (o, "us", "complete", "c", now);
  is_num (offers_count (o), 3, "two scopes, three offers");
  ok (offers_info (o, "p", &info) && info.complete && info.count == 3 && info.listed_ms == now,
      "listed completely");
  list (o, "eu", "complete", "b", now + 1000);
  is_num (offers_count (o), 2, "a complete scope replaces its own list alone");
  is_num (age (o, "c", now + 5000), 5000, "the other scope ages");
  is_num (age (o, "b", now + 5000), 4000, "this one is fresh");
  list (o, "eu", "failed", "", now + 60000);
  is_num (age (o, "b", now + 60000), 59000, "a failed scope keeps its offers, and they age");
  offers_info (o, "p", &info);
  ok (!info.complete, "and the listing is not complete");
  list (o, "eu", "partial", "d", now + 70000);
  is_num (offers_count (o), 3, "a partial one adds");
  list (o, "eu", "partial", "b d", now + 80000);
  is_num (offers_count (o), 3, "and replaces what it brings again");
  is_num (age (o, "b", now + 80000), 0, "which is fresh then");
  for (int i = 0; i < 20; i++)
    list (o, "eu", "partial", "b", now + 90000 + i);
  is_num (age (o, "b", now + 91000), 1000, "twenty partial ones later it is still there once");
  list (o, "eu", "", "e", now + 95000);
  ok (age (o, "e", now + 95000) == 0, "a scope that nobody finished counts as partial");
  list (o, "eu", "complete", "", now + 100000);
  is_num (offers_count (o), 1, "an empty complete scope is empty");
  list (o, "eu", "complete", "", now + 3600000);
  is_num (offers_count (o), 0, "a scope that is listed no more goes in the end");
  offers_free (o);
}

static void
interrupted (void)
{
  struct offers *o = table ();
  struct offers_info info;

  offers_begin (o, "p");
  offers_end (o, "p", false, now);
  ok (offers_info (o, "p", &info) && info.listed_ms == 0, "a first listing that failed is none");

  list (o, "eu", "complete", "a", now);
  offers_begin (o, "p");
  item (o, "{'offers':[{'offer_ref':'x','scope':'eu','gpu_name':'L4','gpu_count':1}]}", now);
  offers_begin (o, "p");
  item (o, "{'scope':{'scope':'eu','how':'failed'}}", now);
  offers_end (o, "p", true, now);
  ok (age (o, "a", now) == 0 && age (o, "x", now) == -1,
      "a listing that began anew forgets what was staged");
  offers_begin (o, "p");
  offers_end (o, "p", false, now + 5000);
  ok (offers_info (o, "p", &info) && info.listed_ms == now && !info.complete && info.count == 1,
      "a listing that failed is none: the last one stays, and it is not complete");
  offers_item (o, "nobody", NULL, now);
  offers_begin (o, "nobody");
  offers_end (o, "nobody", true, now);
  ok (!offers_info (o, "nobody", &(struct offers_info){ 0 }), "unknown providers are ignored");
  offers_drop (o, "p");
  is_num (offers_count (o), 0, "a provider goes with its offers");
  offers_free (o);
}

static void
hostile (void)
{
  static const char *const bad[] = {
    "{'gpu_name':'L4','gpu_count':1}",
    "{'offer_ref':'','gpu_count':0}",
    "{'offer_ref':'a\\u0007b','gpu_count':0}",
    "{'offer_ref':7,'gpu_count':0}",
    "{'offer_ref':'a','gpu_name':'L4'}",
    "{'offer_ref':'a','gpu_name':'L4','gpu_count':-1}",
    "{'offer_ref':'a','gpu_name':'L4','gpu_count':100000}",
    "{'offer_ref':'a','kind':'zeppelin'}",
    "{'offer_ref':'a','market':'black'}",
    "7",
    "null",
  };
  struct offers *o = table ();
  struct offers_info info;

  for (size_t i = 0; i < N_ELEMENTS (bad); i++) {
    AUTO_FREE char *text = NULL;

    if (asprintf (&text, "{'offers':[%s]}", bad[i]) < 0)
      abort ();
    offers_begin (o, "p");
    item (o, text, now);
    item (o, "{'scope':{'scope':'','how':'complete'}}", now);
    offers_end (o, "p", true, now);
    offers_info (o, "p", &info);
    ok (info.count == 0 && info.skipped == 1 && info.problem, "skipped: %s", bad[i]);
  }
  item (o, "{'offers':'x','scope':[]}", now);
  offers_begin (o, "p");
  item (
      o,
      "{'offers':[{'offer_ref':'a','vcpus':-4,'ram_mib':9000000000000,'disk_gib':'x','price_"
      "udollar':-1,"
      "'price_disk_gib_udollar':99999999999,'arch':'z80','availability':'soon','caps':['fly',3]}]}",
      now);
  item (o, "{'scope':{'scope':'','how':'complete'}}", now);
  offers_end (o, "p", true, now);
  {
    struct offer_at a;

    ok (offers_find_ref (o, "p", "a", &a), "odd values do not cost the offer");
    ok (!a.hot->vcpus && !a.hot->ram_gib && !a.hot->arch &&
            a.hot->price_udollar == OFFER_NO_PRICE && a.hot->disk_price_udollar == UINT32_MAX,
        "but count as not known");
  }
  offers_free (o);
}

static void
prices (void)
{
  static const char raw[] =
      "{'offer_ref':'a','price_udollar':1000000,'price_ip_udollar':4000,'disk_gib':50,"
      "'disk_max_gib':200,'price_disk_gib_udollar':100}";
  struct offers *o = table ();
  AUTO_FREE char *text = NULL;
  AUTO_JSON json_t *j = js (raw);
  struct offer_at a;

  if (asprintf (&text, "{'offers':[%s]}", raw) < 0)
    abort ();
  offers_begin (o, "p");
  item (o, text, now);
  item (o, "{'scope':{'scope':'','how':'complete'}}", now);
  offers_end (o, "p", true, now);
  ok (offers_find_ref (o, "p", "a", &a), "an offer with a disk to choose");
  is_num ((int64_t) offers_price (o, a.hot, 0), 1009000, "the default disk, 100 GiB");
  is_num ((int64_t) offers_price (o, a.hot, 20), 1004000, "a smaller one costs nothing more");
  is_num ((int64_t) offers_price (o, a.hot, 200), 1019000, "a larger one does");
  is_num ((int64_t) offers_quote (o, j, 200), 1019000, "a re-quote counts the same way");
  is_num (offers_disk (o, a.hot, 0), 100, "the disk to ask for");
  is_num (offers_disk (o, a.hot, 10), 50, "at least the minimum");
  is_num (offers_disk (o, a.hot, 900), 200, "at most the maximum");
  offers_configure (o, &(struct offers_config){ .disk_gib = 500 });
  is_num ((int64_t) offers_price (o, a.hot, 0), 1019000,
          "a default beyond the maximum is the maximum");
  json_object_del (j, "price_udollar");
  ok (offers_quote (o, j, 0) == OFFER_NO_PRICE, "no price is no price");
  offers_free (o);
}

/* What the bus sends, word for word. */
static void
shown (void)
{
  struct offers *o = table ();
  struct offer_at a, b;
  AUTO_FREE char *got = NULL;
  AUTO_JSON json_t *j = NULL;

  offers_begin (o, "p");
  item (o,
        "{'offers':[{'offer_ref':'H100_sxm5x8','scope':'s','cloud':'nebius','region':'oslo-norway-"
        "1','country':'NO',"
        "'instance_type':'H100_sxm5x8','gpu_name':'H100_sxm5','gpu_count':8,'vram_mib':81920,'"
        "vcpus':128,"
        "'ram_mib':1638400,'disk_gib':100,'disk_max_gib':1000,'price_udollar':16000000,'price_disk_"
        "gib_udollar':100,"
        "'price_ip_udollar':5000,'kind':'vm','market':'on-demand','availability':'low','stock':2,'"
        "arch':'x86_64',"
        "'interconnect':'sxm5','driver':'570.86','image':'ubuntu24','fabric':'nebius',"
        "'caps':['tags','hosts-kubernetes'],'boot_max_ms':120000},"
        "{'offer_ref':'x','scope':'s','gpu_name':'Frobnicator \\\"9\\\"','gpu_count':1}]}",
        now);
  item (o, "{'scope':{'scope':'s','how':'complete'}}", now);
  offers_end (o, "p", true, now);
  ok (offers_find_ref (o, "p", "H100_sxm5x8", &a) && offers_find (o, a.text->id, &b) &&
          a.text == b.text,
      "found by ref and by id");
  j = offers_json (o, &a, 200, now + 200000);
  ok (json_object_del (j, "id") == 0, "it has an id");
  got = json_canonical (j);
  is_str (
      got,
      "{\"age_ms\":200000,\"arch\":\"x86_64\",\"availability\":\"low\",\"caps\":[\"tags\",\"hosts-"
      "kubernetes\"],"
      "\"cloud\":\"nebius\",\"country\":\"NO\",\"disk_gib\":100,\"disk_max_gib\":1000,\"driver\":"
      "\"570.86\","
      "\"fabric\":\"nebius\",\"gpu\":{\"count\":8,\"family\":\"H100\",\"form\":\"sxm\",\"model\":"
      "\"H100-80GB-SXM\","
      "\"raw\":\"H100_sxm5\",\"vram_gib\":80},\"image\":\"ubuntu24\",\"instance_type\":\"H100_"
      "sxm5x8\","
      "\"interconnect\":\"sxm5\",\"kind\":\"vm\",\"market\":\"on-demand\",\"offer_ref\":\"H100_"
      "sxm5x8\","
      "\"price_gpu_udollar\":2001875,\"price_parts\":{\"disk_udollar\":10000,\"ip_udollar\":5000,"
      "\"machine_udollar\":16000000},\"price_udollar\":16015000,\"provider\":\"p\",\"ram_gib\":"
      "1600,"
      "\"region\":\"oslo-norway-1\",\"stale\":true,\"stock\":2,\"vcpus\":128}",
      "OFFER");
  {
    const struct memory_what what = offers_what (o, "p", j);

    is_str (what.cloud, "nebius", "failure memory knows it by its cloud");
    ok (memory_key (&what) == a.hot->key, "and by the same key as the table");
    ok (strcmp (offers_what (o, "p", NULL).cloud, "fakecloud") == 0,
        "a cloud of its own is its plugin");
  }
  ok (a.hot->kubernetes && a.text->boot_max_ms == 120000 && a.text->stock == 2,
      "and what the engine asks");
  {
    AUTO_JSON json_t *unknown = offers_unknown_gpus (o);
    AUTO_FREE char *text = json_canonical (unknown);

    is_str (text, "[{\"name\":\"Frobnicator \\\"9\\\"\",\"offers\":1}]",
            "unknown models are counted by their raw name");
  }
  ok (offers_find_ref (o, "p", "x", &a), "an unknown model is listed");
  json_decref (j);
  j = offers_json (o, &a, 0, now);
  ok (!json_object_get (j, "price_udollar") &&
          !json_object_get (json_object_get (j, "gpu"), "model") &&
          strcmp (json_str (json_object_get (j, "gpu"), "raw", ""), "Frobnicator \"9\"") == 0 &&
          !json_bool (j, "stale", true),
      "raw, and without a price");
  offers_free (o);
}

static void
ids (void)
{
  struct offers *o = table ();
  struct offer_at a;
  char id[16];

  list (o, "eu", "complete", "a b", now);
  offers_find_ref (o, "p", "a", &a);
  strcpy (id, a.text->id);
  is_num ((int64_t) strlen (id), 12, "an id has 12 digits");
  list (o, "eu", "complete", "b a c", now + 1000);
  offers_find_ref (o, "p", "a", &a);
  is_str (a.text->id, id, "and stays the same");
  offers_free (o);
  o = offers_new (NULL);
  offers_provider (o, "q", NULL, 0);
  ok (!offers_find (o, id, &a), "another table has none of it");
  offers_free (o);
}

int
main (void)
{
  scopes ();
  interrupted ();
  hostile ();
  prices ();
  shown ();
  ids ();
  return done ();
}
