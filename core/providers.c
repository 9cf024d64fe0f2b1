/* providers.c - one child per configured provider: offers in, machines compared
 *
 * Everything here is a read.  What a list shows of ours is fed to the attempt it belongs to; what
 * it does not show proves nothing.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/evp.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"

struct provider *
provider_find (struct broker *b, const char *name)
{
  for (size_t i = 0; i < b->providers.n; i++)
    if (name && strcmp (b->providers.at[i]->name, name) == 0)
      return b->providers.at[i];
  return NULL;
}

bool
provider_can (const struct provider *p, const char *what)
{
  const json_t *cap;
  size_t i;

  json_array_foreach (p->caps, i, cap) {
    if (json_is_string (cap) && strcmp (json_string_value (cap), what) == 0)
      return true;
  }
  return false;
}

void
provider_pause_key (const char *name, char *out, size_t size)
{
  snprintf (out, size, "paused:%.100s", name);
}

static bool
coming (const struct provider *p)
{
  bool lately = now_ms () < p->down_ms + p->broker->times.comeback;
  struct offers_info info = { 0 };

  if (p->paused || p->problem.kind == ERR_AUTH || p->problem.kind == ERR_INVALID)
    return false;
  if (!p->up)
    return lately;
  offers_info (p->broker->offers, p->name, &info);
  return info.listed_ms == 0 && (p->problem.kind == ERR_NONE || lately);
}

bool
providers_starting (const struct broker *b)
{
  for (size_t i = 0; i < b->providers.n; i++)
    if (coming (b->providers.at[i]))
      return true;
  return false;
}

int64_t
provider_jitter (int64_t ms)
{
  return ms - ms / 10 + (int64_t) (random () % (ms / 5 + 1));
}

void
provider_ask (struct provider *p, const char *call, json_t *args, int64_t deadline_ms,
              void (*on_item) (void *, uint32_t, const json_t *, bool),
              void (*on_result) (void *, uint32_t, const struct call_result *))
{
  p->calls++;
  child_call (p->child, &(struct child_call){ .call = call,
                                              .args = args,
                                              .deadline_ms = deadline_ms,
                                              .on_item = on_item,
                                              .on_result = on_result,
                                              .ctx = p });
}

/* Its offers count only while it is up, not paused and its credentials hold. */
static void
tell_offers (struct provider *p)
{
  enum offers_state s = OFFERS_UP;

  if (p->paused)
    s = OFFERS_PAUSED;
  else if (!p->up)
    s = OFFERS_DOWN;
  else if (p->problem.kind == ERR_AUTH)
    s = OFFERS_DOWN;
  offers_state (p->broker->offers, p->name, s, p->problem.text);
}

static void
judged (struct provider *p, const char *what, const struct err *e)
{
  bool was = p->problem.kind != ERR_NONE, is = e->kind != ERR_NONE;

  p->errors += is;
  if (is && (!was || p->problem.kind != e->kind))
    feed_provider (p->broker, p->name, "failing", e->text);
  if (!is && was)
    feed_provider (p->broker, p->name, "well", what);
  p->problem = *e;
  if (e->kind == ERR_AUTH)
    memory_bar (p->broker->memory, p->name, NULL, e->text, now_ms ());
  else if (!is)
    memory_unbar (p->broker->memory, p->name);
  tell_offers (p);
}

/* ---- offers ---- */

static void
offer_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  struct provider *p = ctx;

  offers_item (p->broker->offers, p->name, item, now_ms ());
  if (want_ack)
    child_ack (p->child, id);
}

static void
refresh_timer (void *ctx)
{
  struct provider *p = ctx;

  p->refresh_timer = 0;
  provider_refresh (p);
}

static void
offer_result (void *ctx, uint32_t id, const struct call_result *r)
{
  struct provider *p = ctx;

  (void) id;
  offers_end (p->broker->offers, p->name, r->err.kind == ERR_NONE, now_ms ());
  p->listing = false;
  judged (p, "offers are listed again", &r->err);
  if (!p->refresh_timer)
    p->refresh_timer =
        loop_after (p->broker->loop, provider_jitter (p->conf->offers_every_ms), refresh_timer, p);
}

void
provider_refresh (struct provider *p)
{
  if (p->listing || !p->up || p->broker->stopping)
    return;
  loop_cancel (p->broker->loop, p->refresh_timer);
  p->refresh_timer = 0;
  p->listing = true;
  offers_begin (p->broker->offers, p->name);
  provider_ask (p, "list_offers",
                json_pack ("{s:I}", "disk_gib", (json_int_t) p->broker->conf.defaults.disk_gib),
                p->broker->times.listing, offer_item, offer_result);
}

/* ---- life ---- */

static void probe (void *provider);

static void
probe_result (void *ctx, uint32_t id, const struct call_result *r)
{
  struct provider *p = ctx;

  (void) id;
  judged (p, "credentials work", &r->err);
  if (r->err.kind == ERR_NONE) {
    json_decref (p->identity);
    p->identity = json_deep_copy (r->value);
    balance_look (p);
  }
  loop_cancel (p->broker->loop, p->probe_timer);
  p->probe_timer = loop_after (p->broker->loop, provider_jitter (p->broker->times.probe), probe, p);
}

static void
probe (void *ctx)
{
  struct provider *p = ctx;

  p->probe_timer = 0;
  if (p->up && !p->broker->stopping)
    provider_ask (p, "probe", NULL, p->broker->times.call, NULL, probe_result);
}

static void
capable (struct provider *p)
{
  static const struct {
    const char *name;
    uint32_t bit;
  } caps[] = {
    { "idempotent-create", 1u << 0 },
    { "tags", 1u << 1 },
    { "user-data", 1u << 2 },
    { "startup-script", 1u << 3 },
    { "spot", 1u << 4 },
    { "open-ports", 1u << 5 },
    { "kill-switch", 1u << 6 },
    { "console", 1u << 7 },
    { "hosts-kubernetes", 1u << 8 },
    { "reused", 1u << 9 },
  };
  const json_t *d = json_object_get (child_ready (p->child), "provider");
  uint32_t bits = 0;

  json_decref (p->caps);
  p->caps = json_incref (json_object_get (d, "caps"));
  for (size_t i = 0; i < N_ELEMENTS (caps); i++)
    if (provider_can (p, caps[i].name))
      bits |= caps[i].bit;
  p->idempotent = bits & 1;
  p->visibility_lag_ms = json_i64 (d, "visibility_lag_ms", 0);
  if (p->visibility_lag_ms > p->broker->times.lag)
    p->visibility_lag_ms = p->broker->times.lag;
  p->idempotency_ms = json_i64 (d, "idempotency_window_s", 0) * 1000;
  offers_provider (p->broker->offers, p->name, json_str (d, "name", p->conf->plugin), bits);
}

static void
on_state (void *ctx, struct child *c, enum child_state state)
{
  struct provider *p = ctx;
  bool was = p->up;

  (void) c;
  p->up = state == CHILD_UP;
  if (was && !p->up)
    p->down_ms = now_ms ();
  feed_provider (p->broker, p->name, child_state_name (state), "");
  if (p->up && !was) {
    capable (p);
    probe (p);
    provider_refresh (p);
    provider_reconcile (p);
  }
  tell_offers (p);
}

/* Is this another configuration than the one that the process has?  Notes it. */
static bool
configured (struct provider *p, const json_t *config, const struct child_secret *secrets, size_t n)
{
  AUTO_FREE char *text = json_canonical (config);
  unsigned char md[EVP_MAX_MD_SIZE] = { 0 };
  EVP_MD_CTX *c = EVP_MD_CTX_new ();
  bool other;

  EVP_DigestInit_ex (c, EVP_sha256 (), NULL);
  EVP_DigestUpdate (c, text, strlen (text));
  for (size_t i = 0; i < n; i++) {
    EVP_DigestUpdate (c, secrets[i].name, strlen (secrets[i].name) + 1);
    EVP_DigestUpdate (c, secrets[i].bytes, secrets[i].len);
  }
  EVP_DigestFinal_ex (c, md, NULL);
  EVP_MD_CTX_free (c);
  other = memcmp (md, p->digest, sizeof p->digest) != 0;
  memcpy (p->digest, md, sizeof p->digest);
  return other;
}

/* Reads what the provider needs to know of the configuration; its secrets stay here until they are
 * sent. */
int
provider_configure (struct provider *p, struct err *e)
{
  const struct conf_provider *c = p->conf;
  VEC (struct child_secret) secrets = VEC_EMPTY;
  AUTO_JSON json_t *config = NULL;
  char folder[4096];
  int rc = 0;

  snprintf (folder, sizeof folder, "%s/provider", p->broker->conf.broker.state_dir);
  mkdir (folder, 0700);
  snprintf (folder, sizeof folder, "%s/provider/%s", p->broker->conf.broker.state_dir, c->name);
  mkdir (folder, 0700);
  config = json_pack ("{s:s, s:s, s:s, s:s, s:O}", "name", c->name, "plugin", c->plugin, "owner",
                      p->broker->instance, "state_dir", folder, "options", c->options);
  if (c->http)
    json_object_set (config, "http", c->http);
  for (size_t i = 0; i < c->nsecrets && rc == 0; i++) {
    struct child_secret *s = vec_push (&secrets);
    char *bytes = NULL;

    s->name = c->secrets[i].option;
    rc = conf_read_secret (&c->secrets[i], &bytes, &s->len, e);
    s->bytes = bytes;
    if (rc == 0)
      redact_register (bytes, s->len);
  }
  if (rc == 0 && p->child && configured (p, config, secrets.at, secrets.n))
    child_reconfigure (p->child, config, secrets.at, secrets.n);
  else if (rc == 0 && !p->child && configured (p, config, secrets.at, secrets.n))
    p->child = child_new (
        p->broker->supervisor,
        &(struct child_spec){ .name = c->name,
                              .role = "provider",
                              .argv = (const char *const[]){ "gpubroker-provider", NULL },
                              .config = config,
                              .secrets = secrets.at,
                              .nsecrets = secrets.n },
        on_state, p);
  for (size_t i = 0; i < secrets.n; i++)
    if (secrets.at[i].bytes) {
      explicit_bzero ((void *) secrets.at[i].bytes, secrets.at[i].len);
      free ((void *) secrets.at[i].bytes);
    }
  vec_free (&secrets);
  return rc;
}

/* What was said by hand holds across restarts; the configuration says how it begins. */
static bool
paused (const struct broker *b, const struct conf_provider *c)
{
  char key[128];
  AUTO_FREE char *said = NULL;

  provider_pause_key (c->name, key, sizeof key);
  said = store_meta (b->store, key);
  return said ? said[0] == '1' : c->paused;
}

int
provider_start (struct broker *b, const struct conf_provider *c, struct err *e)
{
  struct provider *p = calloc (1, sizeof *p);

  if (!p)
    abort ();
  p->broker = b;
  p->conf = c;
  set_str (&p->name, c->name); /* outlives a reload */
  p->down_ms = now_ms ();
  p->paused = paused (b, c);
  if (provider_configure (p, e) < 0) {
    free (p->name);
    free (p);
    return err_add (e, "provider %s", c->name);
  }
  *vec_push (&b->providers) = p;
  offers_provider (b->offers, p->name, c->plugin, 0);
  offers_state (b->offers, p->name, OFFERS_STARTING, "it has not answered yet");
  return 0;
}

int
providers_start (struct broker *b, struct err *e)
{
  for (size_t i = 0; i < b->conf.nproviders; i++)
    if (provider_start (b, &b->conf.providers[i], e) < 0)
      return -1;
  return 0;
}

json_t *
provider_json (const struct provider *p)
{
  AUTO_JSON json_t *d = child_describe (p->child);
  json_t *j = json_object (), *offers = json_object ();
  struct offers_info info = { 0 };

  json_put_str (j, "name", p->name);
  json_put_str (j, "plugin", p->conf->plugin);
  json_put_str (j, "version",
                json_str (json_object_get (child_ready (p->child), "provider"), "version", NULL));
  json_put_str (j, "state", p->paused ? "paused" : child_state_name (child_state (p->child)));
  if (p->caps)
    json_object_set (j, "caps", p->caps);
  if (p->problem.kind != ERR_NONE)
    json_object_set_new (j, "error",
                         json_pack ("{s:s, s:s, s:s}", "kind", err_kind_name (p->problem.kind),
                                    "code", p->problem.code, "text", p->problem.text));
  else if (json_str (d, "last_error", NULL) && child_state (p->child) != CHILD_UP)
    json_object_set_new (
        j, "error",
        json_pack ("{s:s, s:s}", "kind", "unavailable", "text", json_str (d, "last_error", "")));
  offers_info (p->broker->offers, p->name, &info);
  json_put_i64 (offers, "count", info.count);
  json_object_set_new (offers, "complete", json_boolean (info.complete));
  if (info.listed_ms)
    json_put_i64 (offers, "age_ms", now_ms () - info.listed_ms);
  json_object_set_new (j, "offers", offers);
  if (p->identity)
    json_object_set (j, "probe", p->identity);
  json_put_i64 (j, "restarts", json_i64 (d, "restarts", 0));
  json_put_i64 (j, "in_flight", (int64_t) child_in_flight (p->child));
  json_put_i64 (j, "calls", (int64_t) p->calls);
  json_put_i64 (j, "errors", (int64_t) p->errors);
  return j;
}
