/* emit.c - offers and machines travel in batches; what costs money waits until it is in the books
 *
 * The daemon bounds the tokens of a frame, so a batch is bounded in them too.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/host/host.h"

enum { BATCH_MAX = 64, BATCH_BYTES = 200 * 1024, BATCH_TOKENS = WIRE_ANSWER_TOKENS - 64 };

/* As json_scan() counts them. */
static size_t
count_tokens (const char *text)
{
  size_t n = 0;
  bool in_string = false;

  for (; *text; text++) {
    if (in_string && *text == '\\')
      text++;
    else if (*text == '"')
      n += (in_string = !in_string);
    else if (!in_string)
      n += strchr ("{[,:", *text) != NULL;
  }
  return n;
}

static void
append (struct batch *b, const char *text, size_t len)
{
  if (b->len + len + 1 > b->cap) {
    b->cap = (b->len + len + 1) * 2;
    b->text = realloc (b->text, b->cap);
    if (!b->text)
      abort ();
  }
  memcpy (b->text + b->len, text, len);
  b->len += len;
}

void
emit_flush (struct gpub_call *c)
{
  struct batch *b = &c->batch;

  if (b->n == 0)
    return;
  append (b, "]}", 2);
  out_text (&c->host->out, WIRE_ITEM, c->id, 0, b->text, b->len);
  b->len = b->n = b->tokens = 0;
}

static int32_t
stopped (struct gpub_call *c)
{
  return call_fail (c, GPUB_E_CANCELLED, "%s was %s", c->type->name,
                    call_left_ms (c) ? "cancelled" : "not done by its deadline");
}

/* The one gate of all emits. */
static int32_t
may_emit (struct gpub_call *c, unsigned what, const char *name)
{
  if (c->failed != GPUB_OK)
    return c->failed;
  if (!c->type || !(c->type->emits & what))
    return call_fail (c, GPUB_E_INTERNAL, "the plugin emits a %s in %s", name,
                      c->type ? c->type->name : "open");
  return GPUB_OK;
}

static int32_t
add (struct gpub_call *c, const char *list, const json_t *j)
{
  AUTO_FREE char *text = json_dumps (j, JSON_COMPACT);
  struct batch *b = &c->batch;
  size_t len, tokens;
  char head[32];

  if (!text)
    return call_fail (c, GPUB_E_INTERNAL, "an element of %s is no JSON", list);
  len = strlen (text);
  tokens = count_tokens (text) + 1;
  if (len > BATCH_BYTES || tokens > BATCH_TOKENS)
    return call_fail (c, GPUB_E_INTERNAL, "an element of %s has %zu bytes and %zu tokens", list,
                      len, tokens);
  if (b->n == BATCH_MAX || b->len + len > BATCH_BYTES || b->tokens + tokens > BATCH_TOKENS)
    emit_flush (c);
  if (b->n == 0)
    append (b, head, (size_t) snprintf (head, sizeof head, "{\"%s\":[", list));
  else
    append (b, ",", 1);
  append (b, text, len);
  b->n++;
  b->tokens += tokens;
  return out_wait_room (&c->host->out, c) ? GPUB_OK : stopped (c);
}

/* In the books of the daemon before this returns, or the plugin is told to stop. */
static int32_t
send_and_wait (struct gpub_call *c, const char *name, json_t *j)
{
  AUTO_JSON json_t *body = json_pack ("{s:o}", name, j);
  unsigned want;
  bool acked;

  pthread_mutex_lock (&c->lock);
  want = c->acks + 1;
  pthread_mutex_unlock (&c->lock);
  out_json (&c->host->out, WIRE_ITEM, c->id, WIRE_WANT_ACK, body);
  call_wait (c, call_left_ms (c), want);
  pthread_mutex_lock (&c->lock);
  acked = c->acks >= want;
  pthread_mutex_unlock (&c->lock);
  /* A daemon that hung up reads on but sends no more: it has the item, and a cancelled create would
   * be untrue. */
  return acked || atomic_load (&c->stop) == STOP_DRAIN ? GPUB_OK : stopped (c);
}

int32_t
emit_offer (struct gpub_call *c, const struct gpub_offer *o)
{
  struct err e = ERR_INIT;
  AUTO_JSON json_t *j = NULL;
  int32_t rc = may_emit (c, EMITS_OFFERS, "offer");

  if (rc != GPUB_OK)
    return rc;
  j = encode_offer (o, &e);
  if (!j)
    return call_fail (c, GPUB_E_INTERNAL, "%s", e.text);
  c->offers++;
  return add (c, "offers", j);
}

int32_t
emit_machine (struct gpub_call *c, const struct gpub_machine *m)
{
  struct err e = ERR_INIT;
  AUTO_JSON json_t *j = NULL;
  int32_t rc = may_emit (c, EMITS_MACHINES, "machine");

  if (rc != GPUB_OK)
    return rc;
  j = encode_machine (m, &e);
  if (!j)
    return call_fail (c, GPUB_E_INTERNAL, "%s", e.text);
  c->machines++;
  if (c->type->emits & ACK_MACHINES)
    return send_and_wait (c, "machines", json_pack ("[O]", j));
  return add (c, "machines", j);
}

int32_t
emit_resource (struct gpub_call *c, const struct gpub_resource *r)
{
  struct err e = ERR_INIT;
  json_t *j;
  int32_t rc = may_emit (c, EMITS_RESOURCES, "resource");

  if (rc != GPUB_OK)
    return rc;
  j = encode_stray (r, &e);
  if (!j)
    return call_fail (c, GPUB_E_INTERNAL, "%s", e.text);
  c->resources++;
  emit_flush (c);
  return send_and_wait (c, "resource", j);
}

static const char *
error_text (const struct gpub_error *err, char *buf, size_t size)
{
  if (!err || err->size < offsetof (struct gpub_error, text) + sizeof err->text)
    return "";
  text_copy (buf, size, err->text, sizeof err->text);
  return buf;
}

int32_t
emit_scope (struct gpub_call *c, const char *scope, uint32_t how, int32_t kind,
            const struct gpub_error *err)
{
  static const char *const hows[] = { "complete", "partial", "failed" };
  char text[256];
  json_t *j;
  int32_t rc = may_emit (c, EMITS_SCOPES, "scope");

  if (rc != GPUB_OK)
    return rc;
  if (how >= N_ELEMENTS (hows))
    return call_fail (c, GPUB_E_INTERNAL, "scope_done with how=%" PRIu32, how);
  emit_flush (c);
  j = json_object ();
  json_object_set_new (j, "scope", text_json (scope ? scope : "", 256));
  json_put_str (j, "how", hows[how]);
  json_put_str (j, "kind", err_kind_name ((enum err_kind) kind));
  snprintf (text, sizeof text, "%s", error_text (err, text, sizeof text));
  secrets_redact (c->host, text);
  json_put_str (j, "text", text);
  {
    AUTO_JSON json_t *body = json_pack ("{s:o}", "scope", j);

    out_json (&c->host->out, WIRE_ITEM, c->id, 0, body);
  }
  return out_wait_room (&c->host->out, c) ? GPUB_OK : stopped (c);
}
