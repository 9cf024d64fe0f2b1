/* run.c - one call, from its JSON to its RESULT
 *
 * What the plugin returns is a claim; run_verdict() says what the daemon may believe.
 */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "sdk/host/host.h"

enum { CONSOLE_MAX = 48 * 1024 };

static struct gpub_error *
refuse (struct gpub_error *err, const struct err *e)
{
  error_fill (err, "%s", e->text);
  return err;
}

static int32_t
run_probe (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  struct gpub_identity id = { .size = sizeof id };
  int32_t rc = c->host->plugin.probe (c->host->self, c, &id, err);

  json_object_set_new (value, "account", text_json (id.account, sizeof id.account));
  json_object_set_new (value, "text", text_json (id.text, sizeof id.text));
  if (id.known & GPUB_IDENTITY_BALANCE)
    json_put_i64 (value, "balance_udollar", (int64_t) id.balance_udollar);
  return rc;
}

static int32_t
run_list_offers (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  struct gpub_offer_query q;
  struct err e = ERR_INIT;
  int32_t rc;

  if (decode_query (c, &q, &e) < 0)
    return refuse (err, &e), e.kind;
  rc = c->host->plugin.list_offers (c->host->self, c, &q, err);
  json_put_i64 (value, "offers", (int64_t) c->offers);
  return rc;
}

static int32_t
run_create (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  struct gpub_create a;
  struct err e = ERR_INIT;

  (void) value;
  if (decode_create (c, &a, &e) < 0)
    return refuse (err, &e), e.kind;
  return c->host->plugin.create (c->host->self, c, &a, err);
}

static int32_t
on_ref (struct gpub_call *c,
        int32_t (*call) (void *, struct gpub_call *, const struct gpub_ref *, struct gpub_error *),
        struct gpub_error *err)
{
  struct gpub_ref ref;
  struct err e = ERR_INIT;

  if (decode_ref (c, &ref, &e) < 0)
    return refuse (err, &e), e.kind;
  return call (c->host->self, c, &ref, err);
}

static int32_t
run_get (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  (void) value;
  return on_ref (c, c->host->plugin.get, err);
}

static int32_t
run_remove (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  (void) value;
  return on_ref (c, c->host->plugin.remove, err);
}

static int32_t
run_find (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  struct gpub_find f;
  struct err e = ERR_INIT;
  int32_t rc;

  if (decode_find (c, &f, &e) < 0)
    return refuse (err, &e), e.kind;
  rc = c->host->plugin.find (c->host->self, c, &f, err);
  json_put_i64 (value, "machines", (int64_t) c->machines);
  return rc;
}

static int32_t
run_list (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  int32_t rc = c->host->plugin.list (c->host->self, c, err);

  json_put_i64 (value, "machines", (int64_t) c->machines);
  return rc;
}

static int32_t
run_set_not_after (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  struct gpub_ref ref;
  struct err e = ERR_INIT;

  (void) value;
  if (!c->host->plugin.set_not_after)
    return error_fill (err, "this plugin cannot move a machine's end"), GPUB_E_UNSUPPORTED;
  if (decode_ref (c, &ref, &e) < 0)
    return refuse (err, &e), e.kind;
  return c->host->plugin.set_not_after (c->host->self, c, &ref, json_i64 (c->args, "ms", 0), err);
}

static int32_t
run_console_log (struct gpub_call *c, json_t *value, struct gpub_error *err)
{
  char *text = call_alloc (c, CONSOLE_MAX);
  struct gpub_ref ref;
  struct err e = ERR_INIT;
  uint64_t len = 0;
  int32_t rc;

  if (!c->host->plugin.console_log)
    return error_fill (err, "this plugin cannot read consoles"), GPUB_E_UNSUPPORTED;
  if (decode_ref (c, &ref, &e) < 0)
    return refuse (err, &e), e.kind;
  rc = c->host->plugin.console_log (c->host->self, c, &ref, text, CONSOLE_MAX - 1, &len, err);
  if (len > CONSOLE_MAX - 1)
    return call_fail (c, GPUB_E_INTERNAL, "console_log says that it wrote %llu bytes into %d",
                      (unsigned long long) len, CONSOLE_MAX - 1);
  text[len] = '\0';
  json_object_set_new (value, "text", text_json (text, CONSOLE_MAX));
  return rc;
}

static const struct call_type types[] = {
  { "probe", 0, run_probe },
  { "list_offers", EMITS_OFFERS | EMITS_SCOPES, run_list_offers },
  { "create", EMITS_MACHINES | EMITS_RESOURCES | MUST_EMIT_MACHINE | ACK_MACHINES, run_create },
  { "get", EMITS_MACHINES | EMITS_RESOURCES | MUST_EMIT_ONE, run_get },
  { "find", EMITS_MACHINES | EMITS_RESOURCES | EMITS_SCOPES, run_find },
  { "list", EMITS_MACHINES | EMITS_RESOURCES | EMITS_SCOPES, run_list },
  { "remove", EMITS_RESOURCES, run_remove },
  { "set_not_after", 0, run_set_not_after },
  { "console_log", 0, run_console_log },
};

const struct call_type *
run_type (const char *name)
{
  for (size_t i = 0; i < N_ELEMENTS (types); i++)
    if (strcmp (types[i].name, name) == 0)
      return &types[i];
  return NULL;
}

static int32_t
believe (const struct gpub_call *c, int32_t rc, const char **why)
{
  if (rc < GPUB_OK || rc > GPUB_E_INTERNAL) {
    *why = "the plugin returned a kind that does not exist";
    return GPUB_E_INTERNAL;
  }
  if (c->failed != GPUB_OK && (rc == GPUB_OK || c->failed == GPUB_E_INTERNAL)) {
    *why = c->failed_text;
    return c->failed;
  }
  if (rc == GPUB_OK && (c->type->emits & MUST_EMIT_MACHINE) && c->machines == 0) {
    *why = "the plugin returned ok without a machine";
    return GPUB_E_INTERNAL;
  }
  if (rc == GPUB_OK && (c->type->emits & MUST_EMIT_ONE) && c->machines + c->resources == 0) {
    *why = "the plugin returned ok without a machine or a resource";
    return GPUB_E_INTERNAL;
  }
  return rc;
}

/* A change may have been made: sent without a definitive answer, or made with nobody told of the
 * machine. */
static bool
may_have_changed (const struct gpub_call *c)
{
  return c->maybe || (c->effect && (c->type->emits & ACK_MACHINES) && c->machines == 0);
}

int32_t
run_verdict (const struct gpub_call *c, int32_t rc, const char **why)
{
  int32_t kind = believe (c, rc, why);

  if (may_have_changed (c) &&
      (kind == GPUB_E_UNAVAILABLE || kind == GPUB_E_CANCELLED || kind == GPUB_E_INTERNAL))
    return GPUB_E_UNKNOWN;
  return kind;
}

static void
send_result (struct host *h, uint32_t id, int32_t kind, json_t *value, const struct gpub_error *err,
             const char *why)
{
  AUTO_JSON json_t *j = json_object ();
  char text[sizeof err->text], code[sizeof err->provider_code], request[sizeof err->request_id];

  json_put_str (j, "kind", err_kind_name ((enum err_kind) kind));
  if (kind == GPUB_OK) {
    json_object_set (j, "value", value);
    out_json (&h->out, WIRE_RESULT, id, 0, j);
    return;
  }
  text_copy (text, sizeof text, why ? why : err->text, sizeof text - 1);
  text_copy (code, sizeof code, err->provider_code, sizeof err->provider_code);
  text_copy (request, sizeof request, err->request_id, sizeof err->request_id);
  secrets_redact (h, text);
  json_put_str (j, "text", text);
  json_put_str (j, "code", code);
  json_put_i64 (j, "http_status", err->http_status);
  json_put_i64 (j, "retry_after_ms", err->retry_after_ms);
  json_put_str (j, "request_id", request);
  out_json (&h->out, WIRE_RESULT, id, 0, j);
}

void
run_refuse (struct host *h, uint32_t id, enum err_kind kind, const char *text)
{
  struct gpub_error err = { .size = sizeof err };

  send_result (h, id, (int32_t) kind, NULL, &err, text);
}

void
run_call (struct gpub_call *c)
{
  AUTO_JSON json_t *value = json_object ();
  struct gpub_error err = { .size = sizeof err };
  const char *why = NULL;
  int32_t rc = GPUB_E_CANCELLED;

  if (call_stopped (c))
    error_fill (&err, "%s was cancelled while it waited for its turn", c->type->name);
  else
    rc = c->type->run (c, value, &err);
  emit_flush (c);
  rc = run_verdict (c, rc, &why);
  send_result (c->host, c->id, rc, value, &err, why);
}
