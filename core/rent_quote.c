/* rent_quote.c - the price of one offer, now; and the attempt that is committed at that price
 *
 * The commit is the point of no return: from there on a machine may exist.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

/* ---- quoting: the price of that one offer, now ---- */

enum { QUOTE_TRIES = 4 };

static void
quote_item (struct lease *l, struct attempt *a, const json_t *item)
{
  const json_t *offer;
  size_t i;

  (void) a;
  json_array_foreach (json_object_get (item, "offers"), i, offer) {
    if (strcmp (json_str (offer, "offer_ref", ""), json_str (l->quoted, "ref", "-")) == 0)
      json_object_set (l->quoted, "raw", (json_t *) offer);
  }
}

static void commit (struct lease *l, uint64_t price);

static void
use_up (struct lease *l, const char *offer_id)
{
  if (!l->tried)
    l->tried = json_object ();
  json_object_set_new (l->tried, offer_id, json_integer (json_i64 (l->tried, offer_id, 0) + 1));
}

/* Passed over without an attempt: the next look must not meet it again. */
static void
skip (struct lease *l, const char *why)
{
  log_at (LOG_NOTICE, "offer.skipped", "lease=%s offer=%s why=\"%s\"", l->id,
          json_str (l->quoted, "id", "?"), why);
  feed_step (l, "quote", why);
  use_up (l, json_str (l->quoted, "id", "?"));
  engine_save (l);
  engine_later (l, 0);
}

static void
quoted (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const json_t *raw = json_object_get (l->quoted, "raw");
  int64_t cap = json_i64 (l->quoted, "cap", INT64_MAX);
  uint64_t price;
  char why[300];

  (void) a;
  if (r->err.kind == ERR_UNAVAILABLE && ++l->tries < QUOTE_TRIES) {
    feed_step (l, "quote", r->err.text);
    engine_later (l, backoff (&l->broker->times, l->tries));
    return;
  }
  if (r->err.kind != ERR_NONE || !raw) {
    snprintf (why, sizeof why, "%s", r->err.kind != ERR_NONE ? r->err.text : "the offer is gone");
    skip (l, why);
    return;
  }
  price = offers_quote (l->broker->offers, raw, (uint32_t) json_i64 (l->quoted, "disk", 0));
  if (price == OFFER_NO_PRICE || (int64_t) price > cap) {
    snprintf (why, sizeof why, "the price is now $%.4f/h, at most $%.4f/h is allowed",
              price == OFFER_NO_PRICE ? 0.0 : (double) price / 1e6, (double) cap / 1e6);
    skip (l, why);
    return;
  }
  if (strcmp (json_str (raw, "availability", "unknown"), "none") == 0) {
    skip (l, "out of stock now");
    return;
  }
  commit (l, price);
}

static int64_t
price_cap (const struct filter *f, const struct offer *o)
{
  if (f->max_price_udollar == UINT64_MAX)
    return INT64_MAX;
  return (int64_t) f->max_price_udollar * (f->max_price_per_gpu && o->gpus ? o->gpus : 1);
}

void
rent_quote (struct lease *l, struct provider *p, const struct match_pick *pick)
{
  const struct offer_text *t = pick->offer.text;
  struct broker *b = l->broker;
  char what[200];
  struct filter f;
  uint32_t disk;

  if (filter_parse (&f, json_object_get (l->request, "filter"), b->conf.defaults.market, NULL) < 0)
    return;
  disk = offers_disk (b->offers, pick->offer.hot, f.disk_gib);
  json_decref (l->quoted);
  l->quoted =
      json_pack ("{s:s, s:s, s:s, s:I, s:I, s:o}", "id", t->id, "ref", t->ref, "provider", p->name,
                 "disk", (json_int_t) disk, "cap", (json_int_t) price_cap (&f, pick->offer.hot),
                 "offer", offers_json (b->offers, &pick->offer, f.disk_gib, now_ms ()));
  filter_done (&f);
  snprintf (what, sizeof what, "%s%s%s %s %s", p->name, t->cloud ? "/" : "",
            t->cloud ? t->cloud : "", t->region ? t->region : "",
            t->instance_type ? t->instance_type : t->ref);
  feed_step (l, "quote", what);
  call_lease (
      l, p->child,
      &(struct call){ "list_offers",
                      json_pack ("{s:s, s:I}", "offer_ref", t->ref, "disk_gib", (json_int_t) disk),
                      b->times.listing, false, NULL, 0, quote_item, quoted });
}

/* ---- committing ---- */

/* A function of the installation, the lease, the attempt, its time (an older copy of the books
 * gives a number out again) and the exact bytes that will be sent. */
static void
make_token (const struct attempt *a, char out[33])
{
  AUTO_FREE char *args = json_canonical (a->create);
  char text[160];
  unsigned char md[EVP_MAX_MD_SIZE];
  EVP_MD_CTX *c = EVP_MD_CTX_new ();

  snprintf (text, sizeof text, "%s/%lld/%lld/%lld/", a->lease->broker->instance,
            (long long) a->lease->number, (long long) a->number, (long long) a->started_ms);
  EVP_DigestInit_ex (c, EVP_sha256 (), NULL);
  EVP_DigestUpdate (c, text, strlen (text));
  EVP_DigestUpdate (c, args, strlen (args));
  EVP_DigestFinal_ex (c, md, NULL);
  EVP_MD_CTX_free (c);
  for (int i = 0; i < 16; i++)
    snprintf (out + 2 * i, 3, "%02x", md[i]);
}

static json_t *
keys (const struct lease *l)
{
  json_t *all = json_array ();

  json_array_append_new (all, json_string (l->broker->key.line));
  json_array_extend (all, json_object_get (l->request, "ssh_keys"));
  return all;
}

static json_t *
create_args (struct attempt *a)
{
  struct lease *l = a->lease;
  const char *user_data = json_str (l->request, "user_data", NULL);
  json_t *j = json_pack ("{s:s, s:I, s:s, s:o, s:o}", "offer_ref", json_str (l->quoted, "ref", ""),
                         "max_price_udollar", (json_int_t) a->max_price_udollar, "name", a->name,
                         "tags", json_object (), "ssh_public_keys", keys (l));

  json_put_i64 (j, "disk_gib", json_i64 (l->quoted, "disk", 0));
  json_put_i64 (j, "not_after_ms", attempt_not_after (l->expires_ms));
  if (json_object_get (l->request, "open"))
    json_object_set (j, "ports", json_object_get (l->request, "open"));
  if (user_data) {
    json_put_str (j, "user_data", user_data);
    json_put_str (j, "user_data_kind", json_str (l->request, "user_data_kind", "script"));
  }
  return j;
}

static void
mark (struct attempt *a)
{
  json_t *tags = json_object_get (a->create, "tags");
  char number[24], token[33];

  make_token (a, token);
  set_str (&a->token, token);
  snprintf (number, sizeof number, "%lld", (long long) a->lease->number);
  json_put_str (a->create, "token", token);
  json_put_str (tags, "gpubroker-owner", a->lease->broker->instance);
  json_put_str (tags, "gpubroker-lease", number);
  json_put_str (tags, "gpubroker-token", token);
}

static void
commit (struct lease *l, uint64_t price)
{
  int64_t cap = json_i64 (l->quoted, "cap", INT64_MAX), ttl = json_i64 (l->request, "ttl_ms", 0);
  struct err e = ERR_INIT;
  struct attempt *a;
  char name[51];

  if (budget_admit (l->broker, l->owner, (int64_t) price, l, &e) < 0) {
    engine_cause (l, e.code, "%s", e.text);
    engine_event (l, LEV_EXHAUSTED);
    return;
  }
  if (ttl && l->expires_ms == 0)
    l->expires_ms = now_ms () + ttl;
  a = attempt_new (l);
  attempt_name (a, name);
  set_str (&a->name, name);
  set_str (&a->provider, json_str (l->quoted, "provider", NULL));
  a->offer = json_incref (json_object_get (l->quoted, "offer"));
  a->price_udollar = (int64_t) price;
  a->max_price_udollar = cap == INT64_MAX ? (int64_t) price : cap;
  a->wanted = a->fresh = true;
  a->started_ms = a->sent_wall_ms = now_ms ();
  a->create = create_args (a);
  mark (a);
  use_up (l, json_str (l->quoted, "id", "?"));
  json_decref (l->quoted);
  l->quoted = NULL;
  attempt_save (a);
  engine_event (l, LEV_COMMITTED);
}
