/* rent.c - from a wish to a machine that answers SSH: choose, quote, commit, order, wait */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

enum { KILL_SLACK_MS = 15 * 60 * 1000, MAX_ATTEMPTS = 12, MAX_TRIED = 64, QUOTE_TRIES = 4 };

/* ---- choosing ---- */

static const struct attempt *
first_node (const struct broker *b, const char *cluster)
{
  for (size_t i = 0; i < b->leases.n; i++) {
    const struct lease *l = b->leases.at[i];
    const struct attempt *a = lease_attempt (l);

    if (a && a->joined && l->cluster && strcmp (l->cluster, cluster) == 0)
      return a;
  }
  return NULL;
}

void
rent_match_context (struct broker *b, const struct filter *f, const char *cluster, int64_t ttl_ms,
                    struct match_context *c)
{
  const struct conf_cluster *k = cluster ? conf_cluster (&b->conf, cluster) : NULL;
  const struct attempt *home = k && k->cross_node ? first_node (b, cluster) : NULL;

  (void) f;
  *c = (struct match_context) MATCH_CONTEXT_INIT;
  c->now_ms = now_ms ();
  c->memory = b->memory;
  c->localities = b->localities;
  c->nlocalities = b->conf.nlocalities;
  c->kubernetes = cluster && strcmp (cluster, "none") != 0;
  c->ttl_ms = ttl_ms;
  if (k) {
    c->cluster = k->name;
    c->cluster_locality = k->locality;
    c->cross_node = k->cross_node;
    c->cni = k->cni;
  }
  if (home) {
    c->home_provider = home->provider;
    c->home_cloud = json_str (home->offer, "cloud", NULL);
    c->home_region = json_str (home->offer, "region", NULL);
  }
}

static size_t
tried (const struct lease *l, const char **ids)
{
  const char *id;
  json_t *times;
  size_t n = 0;

  json_object_foreach (l->tried, id, times)
    if (n < MAX_TRIED)
      ids[n++] = id;
  return n;
}

static void
exhausted (struct lease *l, const struct match *m)
{
  char text[400];

  if (l->nattempts == 0) {
    match_summary (m, text, sizeof text);
    engine_cause (l, "no-offer", "%s", text);
  } else {
    engine_cause (
        l, "offers-exhausted", "every matching offer failed, %zu tried; the last: %s", l->nattempts,
        l->attempts[l->nattempts - 1]->reason_text ? l->attempts[l->nattempts - 1]->reason_text
                                                   : "?");
  }
  engine_event (l, LEV_EXHAUSTED);
}

static bool
can (const struct provider *p, const char *what)
{
  size_t i;
  json_t *cap;

  json_array_foreach (p->caps, i, cap) {
    if (strcmp (json_string_value (cap), what) == 0)
      return true;
  }
  return false;
}

/* What the offer alone does not show: can the provider do what was asked beside the machine? */
static bool
able (const struct provider *p, const struct lease *l)
{
  bool script = strcmp (json_str (l->request, "user_data_kind", "script"), "script") == 0;

  if (json_array_size (json_object_get (l->request, "open")) && !can (p, "open-ports"))
    return false;
  if (!json_object_get (l->request, "user_data"))
    return true;
  return can (p, "user-data") || (script && can (p, "startup-script"));
}

static void quote (struct lease *l, struct provider *p, const struct match_pick *pick);

static void
take_best (struct lease *l, const struct match *m)
{
  struct broker *b = l->broker;

  for (size_t i = 0; i < m->n; i++) {
    struct provider *p = provider_find (b, m->at[i].offer.provider);

    if (!p || !able (p, l))
      continue;
    quote (l, p, &m->at[i]);
    return;
  }
  exhausted (l, m);
}

static void
choose (struct lease *l)
{
  struct broker *b = l->broker;
  const char *ids[MAX_TRIED];
  struct match_context c;
  struct match m = { 0 };
  struct filter f;
  struct err e = ERR_INIT;

  if (filter_parse (&f, json_object_get (l->request, "filter"), b->conf.defaults.market, &e) < 0) {
    engine_cause (l, "bad-request", "%s", e.text);
    engine_event (l, LEV_EXHAUSTED);
    return;
  }
  rent_match_context (b, &f, l->cluster, json_i64 (l->request, "ttl_ms", 0), &c);
  c.tried = ids;
  c.ntried = tried (l, ids);
  if (match_run (b->offers, &f, &c, &m, &e) < 0) {
    engine_cause (l, "bad-request", "%s", e.text);
    engine_event (l, LEV_EXHAUSTED);
  } else if (m.n == 0 && providers_starting (b)) {
    feed_step (l, "offers", "waiting for providers that are being started");
    engine_later (l, b->times.poll);
  } else if (m.n == 0 || l->nattempts >= MAX_ATTEMPTS) {
    exhausted (l, &m);
  } else {
    take_best (l, &m);
  }
  match_done (&m);
  filter_done (&f);
}

/* ---- quoting: the price of that one offer, now ---- */

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
price_cap (const struct lease *l, const struct filter *f, const struct offer *o)
{
  (void) l;
  if (f->max_price_udollar == UINT64_MAX)
    return INT64_MAX;
  return (int64_t) f->max_price_udollar * (f->max_price_per_gpu && o->gpus ? o->gpus : 1);
}

static void
quote (struct lease *l, struct provider *p, const struct match_pick *pick)
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
                 "disk", (json_int_t) disk, "cap", (json_int_t) price_cap (l, &f, pick->offer.hot),
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

/* A function of the installation, the lease, the attempt, its time (an older copy of the books gives
 * a number out again) and the exact bytes that will be sent. */
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
  json_put_i64 (j, "not_after_ms", l->expires_ms ? l->expires_ms + KILL_SLACK_MS : 0);
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
  snprintf (name, sizeof name, "gpub-%.4s-%s-%lld", l->broker->instance, l->id,
            (long long) a->number);
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

/* ---- pending: look at the cluster before any money is spent, then choose ---- */

static void
linted (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const json_t *findings = json_object_get (r->value, "findings"), *f;
  size_t i;

  (void) a;
  if (r->err.kind != ERR_NONE) {
    if (++l->tries < 5) {
      feed_step (l, "lint", r->err.text);
      engine_later (l, backoff (&l->broker->times, l->tries));
      return;
    }
    engine_cause (l, r->err.code[0] ? r->err.code : "cluster-unreachable", "cluster %s: %s",
                  l->cluster, r->err.text);
    engine_event (l, LEV_EXHAUSTED);
    return;
  }
  json_array_foreach (findings, i, f) {
    if (strcmp (json_str (f, "severity", ""), "error") == 0) {
      engine_cause (l, json_str (f, "code", "cluster-lint"), "cluster %s: %s", l->cluster,
                    json_str (f, "text", ""));
      engine_event (l, LEV_EXHAUSTED);
      return;
    }
    feed_step (l, "lint", json_str (f, "text", ""));
  }
  l->stage = 1;
  choose (l);
}

void
rent_pending (struct lease *l)
{
  bool cluster = l->cluster && conf_cluster (&l->broker->conf, l->cluster);

  if (!cluster)
    l->stage = 1;
  if (l->stage == 1)
    choose (l);
  else
    pipeline_lint (l, linted);
}

/* ---- ordering ---- */

void
rent_ordering (struct lease *l)
{
  struct attempt *a = lease_attempt (l);

  if (!a) {
    engine_event (l, LEV_NEXT);
    return;
  }
  if (a->state == ATTEMPT_CREATED) {
    engine_event (l, LEV_CREATED);
    return;
  }
  feed_step (l, a->state == ATTEMPT_UNKNOWN ? "find" : "create", a->provider);
  attempt_work (a);
}

/* ---- booting ---- */

json_t *
rent_target (const struct attempt *a)
{
  static const char *const usual[] = { "ubuntu", "root", "debian" };
  const struct machine *m = &a->machine;
  json_t *users = json_array (), *t;

  if (m->ssh_user)
    json_array_append_new (users, json_string (m->ssh_user));
  for (size_t i = 0; i < N_ELEMENTS (usual) && !m->hostkey; i++)
    if (!m->ssh_user || strcmp (m->ssh_user, usual[i]) != 0)
      json_array_append_new (users, json_string (usual[i]));
  t = json_pack ("{s:s, s:I, s:o}", "host", m->address, "port",
                 (json_int_t) (m->ssh_port ? m->ssh_port : 22), "users", users);
  json_put_str (t, "hostkey", m->hostkey);
  return t;
}

/* The first time another offer may do better; a machine that somebody kept or used stays the one.
 */
static void
failed_boot (struct lease *l, const char *code, const char *text, enum lease_event ev)
{
  struct attempt *a = lease_attempt (l);

  if (l->ready_ms || l->failed) {
    engine_fail (l,
                 json_pack ("{s:s, s:s, s:s, s:b}", "step", "boot", "code", code, "message", text,
                            "retryable", 1),
                 false);
    return;
  }
  if (a)
    attempt_reason (a, code, text);
  feed_step (l, "boot", text);
  engine_event (l, ev);
}

static bool
too_late (struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  struct memory_what what;

  if (freeze_holds (l->broker) || now_ms () < l->state_ms + l->broker->times.boot)
    return false;
  what = offers_what (l->broker->offers, a->provider, a->offer);
  memory_fail (l->broker->memory, &what, MEMORY_LATE_BOOT, "it did not answer SSH in time",
               now_ms ());
  failed_boot (l, "late-boot", l->step_text ? l->step_text : "it did not answer SSH in time",
               LEV_NEXT);
  return true;
}

static void
answers (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = lease_attempt (l);

  (void) none;
  if (r->err.kind == ERR_NONE) {
    set_str (&a->machine.hostkey, json_str (r->value, "hostkey", a->machine.hostkey));
    set_str (&a->machine.ssh_user, json_str (r->value, "user", a->machine.ssh_user));
    attempt_save (a);
    json_decref (l->facts);
    l->facts = json_incref (json_object_get (r->value, "facts"));
    engine_event (l, LEV_REACHED);
    return;
  }
  if (r->err.kind == ERR_CONFLICT) {
    engine_fail (l,
                 json_pack ("{s:s, s:s, s:s, s:b}", "step", "ssh", "code", r->err.code, "message",
                            r->err.text, "retryable", 0),
                 false);
    return;
  }
  feed_step (l, "ssh", r->err.text);
  if (!too_late (l)) {
    l->stage = 0; /* the address may have changed */
    engine_later (l, l->broker->times.ssh_retry);
  }
}

static void
boot_item (struct lease *l, struct attempt *none, const json_t *item)
{
  struct attempt *a = lease_attempt (l);
  const json_t *machine;
  size_t i;

  (void) none;
  json_array_foreach (json_object_get (item, "machines"), i, machine) {
    json_object_set (l->quoted, "machine", (json_t *) machine);
    attempt_learn (a, machine);
  }
}

static void
judge (struct lease *l, const json_t *machine)
{
  struct attempt *a = lease_attempt (l);
  const char *state = json_str (machine, "state", "unknown"),
             *raw = json_str (machine, "raw_state", state);

  if (strcmp (state, "error") == 0) {
    struct err why = { .kind = err_kind_parse (json_str (machine, "fail_kind", "capacity")) };

    snprintf (why.text, sizeof why.text, "%s",
              json_str (machine, "fail_text", "the provider says error"));
    attempt_remember (a, &why);
    failed_boot (l, "machine-error", why.text, LEV_NEXT);
  } else if (strcmp (state, "stopped") == 0 || strcmp (state, "deleting") == 0 ||
             strcmp (state, "stopping") == 0) {
    failed_boot (l, "machine-stopped", raw, LEV_STOPPED);
  } else if (strcmp (state, "running") == 0 && a->machine.address) {
    l->stage = 1;
    engine_work (l);
  } else {
    feed_step (l, "boot", raw);
    if (!too_late (l))
      engine_later (l, l->broker->times.poll);
  }
}

static void
booted (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = lease_attempt (l);
  struct provider *p = provider_find (l->broker, a->provider);
  const json_t *machine = json_object_get (l->quoted, "machine");
  bool gone = attempt_answer_gone (a, r);

  (void) none;
  if (r->err.kind == ERR_NONE && machine && !gone) {
    a->absent = 0;
    judge (l, machine);
    return;
  }
  /* Not found soon after a create is the cloud's lag; later, and again, it is the truth. */
  if (gone && now_ms () > a->sent_wall_ms + p->visibility_lag_ms &&
      ++a->absent >= 3) {
    failed_boot (l, "machine-vanished", "the provider says that it is gone", LEV_GONE);
    return;
  }
  feed_step (l, "boot", gone ? "the provider does not show it" : r->err.text);
  if (!too_late (l))
    engine_later (l, backoff (&l->broker->times, ++l->tries));
}

void
rent_booting (struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  struct provider *p = a ? provider_find (l->broker, a->provider) : NULL;

  if (!a) {
    engine_event (l, LEV_GONE);
    return;
  }
  if (!p) {
    engine_later (l, l->broker->times.retry_max);
    return;
  }
  if (l->stage == 1) {
    call_lease (l, l->broker->ssh,
                &(struct call){ "probe", json_pack ("{s:o}", "target", rent_target (a)), 30000,
                                false, NULL, 0, NULL, answers });
    return;
  }
  json_decref (l->quoted);
  l->quoted = json_object ();
  call_lease (l, p->child,
              &(struct call){ "get", attempt_ref (a), l->broker->times.call, false, NULL, 0,
                              boot_item, booted });
}
