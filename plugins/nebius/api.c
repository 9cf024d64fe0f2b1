/* api.c - one unary call: framed, authorised, sent, and its end understood
 *
 * The host speaks HTTP/2; an answer counts only when its trailers say so.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { URL_MAX = 512, BODY_MAX = 12 << 20, PAGES_MAX = 1000, TRIES = 3, PAUSE_MS = 300 };

void
message_cleanup (void *message)
{
  ProtobufCMessage *m = *(ProtobufCMessage **) message;

  if (m)
    protobuf_c_message_free_unpacked (m, NULL);
}

/* ---- The answer ---- */

static int32_t
refused (const struct ctx *c, const struct method *m, const struct refusal *r)
{
  snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", r->code);
  c->err->retry_after_ms = r->retry_after_ms;
  return plug_error (c->err, r->kind, "%s: %s%s%.150s", m->what, r->code, *r->text ? ": " : "",
                     r->text);
}

/* What a proxy on the way says, in gRPC's own translation. */
static int
code_of_http (int status)
{
  static const struct {
    int status, code;
  } table[] = { { 400, GRPC_INTERNAL },
                { 401, GRPC_UNAUTHENTICATED },
                { 403, GRPC_PERMISSION_DENIED },
                { 404, GRPC_UNIMPLEMENTED },
                { 429, GRPC_RESOURCE_EXHAUSTED } };

  for (size_t i = 0; i < N_ELEMENTS (table); i++)
    if (table[i].status == status)
      return table[i].code;
  return status >= 500 ? GRPC_UNAVAILABLE : GRPC_UNKNOWN;
}

static int32_t
proxied (const struct ctx *c, const struct method *m, const struct gpub_http_response *r,
         bool change)
{
  char text[64];
  struct refusal why;

  snprintf (text, sizeof text, "HTTP %d without a gRPC status", r->status);
  refusal_read (&why, code_of_http (r->status), text, NULL, change);
  if (r->status == 429) {
    why.kind = GPUB_E_RATE_LIMITED;
    why.retry_after_ms = r->retry_after_ms ? r->retry_after_ms : why.retry_after_ms;
  }
  return refused (c, m, &why);
}

static int32_t
take_message (const struct ctx *c, const struct method *m, bool change,
              const struct gpub_http_response *r, ProtobufCMessage **out)
{
  int32_t kind = change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE;
  const char *why;
  size_t len = 0;
  const uint8_t *bytes = grpc_message (r->body, r->body_len, &len, &why);

  if (!bytes)
    return plug_error (c->err, kind, "%s: the answer is %s", m->what, why);
  *out = grpc_unpack (m->answer, bytes, len);
  return *out ? GPUB_OK
              : plug_error (c->err, kind, "%s: the answer of %zu bytes cannot be unpacked", m->what,
                            len);
}

static int32_t
take_end (const struct ctx *c, const struct method *m, bool change,
          const struct gpub_http_response *r, const struct grpc_end *end, ProtobufCMessage **out)
{
  AUTO_MSG Nb__Status *status = NULL;
  struct refusal why;

  if (end->code == GRPC_OK)
    return take_message (c, m, change, r, out);
  if (end->code < 0)
    return r->status == 200 ? plug_error (c->err, change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE,
                                          "%s: the answer ends without a status", m->what)
                            : proxied (c, m, r, change);
  if (end->details)
    status = (Nb__Status *) (void *) grpc_unpack (&nb__status__descriptor, end->details,
                                                  end->details_len);
  refusal_read (&why, end->code, end->message, status, change);
  if (end->retry_after_ms && why.kind == GPUB_E_RATE_LIMITED)
    why.retry_after_ms = end->retry_after_ms;
  return refused (c, m, &why);
}

static int32_t
answered (const struct ctx *c, const struct method *m, bool change,
          const struct gpub_http_response *r, ProtobufCMessage **out)
{
  struct grpc_end end;
  int32_t rc;

  c->err->http_status = r->status;
  for (uint64_t i = 0; i < r->nheaders; i++)
    if (strcmp (r->headers[i].key, "x-request-id") == 0)
      snprintf (c->err->request_id, sizeof c->err->request_id, "%s", r->headers[i].value);
  grpc_end_read (&end, r);
  rc = take_end (c, m, change, r, &end, out);
  grpc_end_done (&end);
  return rc;
}

/* ---- The question ---- */

/* "{service}" of the endpoint is what the host name of a service begins with. */
static bool
url_of (const struct nebius *s, const struct method *m, char url[static URL_MAX])
{
  const char *mark = strstr (s->endpoint, "{service}");
  int before = mark ? (int) (mark - s->endpoint) : (int) strlen (s->endpoint);

  return snprintf (url, URL_MAX, "%.*s%s%s/%s", before, s->endpoint, mark ? m->service : "",
                   mark ? mark + strlen ("{service}") : "", m->path) < URL_MAX;
}

static int32_t
send_once (const struct ctx *c, const struct method *m, const char *key, const uint8_t *body,
           size_t len, const char *token, ProtobufCMessage **out)
{
  char url[URL_MAX], timeout[24];
  AUTO_FREE char *bearer = NULL;
  struct gpub_http_response r = { .size = sizeof r };
  struct gpub_kv headers[] = { { "content-type", "application/grpc+proto" },
                               { "te", "trailers" },
                               { "grpc-timeout", timeout },
                               { "authorization", "" },
                               { "x-idempotency-key", key } };
  struct gpub_http_request q = {
    .size = sizeof q,
    .method = "POST",
    .url = url,
    .headers = headers,
    .nheaders = N_ELEMENTS (headers) - !key,
    .body = body,
    .body_len = len,
    .flags = (key ? GPUB_HTTP_MUTATES : GPUB_HTTP_SAFE) | GPUB_HTTP_HTTP2_REQUIRED,
    .max_body = BODY_MAX,
  };
  int32_t rc;

  if (!url_of (c->s, m, url) || asprintf (&bearer, "Bearer %s", token) < 0)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the URL is longer than %d bytes", m->what,
                       URL_MAX);
  c->err->provider_code[0] = c->err->request_id[0] = '\0';
  headers[3].value = bearer;
  snprintf (timeout, sizeof timeout, "%um", c->s->host->ms_left (c->call));
  rc = c->s->host->http (c->call, &q, &r, c->err);
  if (rc == GPUB_OK)
    rc = answered (c, m, key != NULL, &r, out);
  else if (key && r.sent != GPUB_SENT_NO)
    rc = GPUB_E_UNKNOWN;
  plug_mask (c->err->text, token, strlen (token));
  explicit_bzero (bearer, strlen (bearer));
  return rc;
}

/* A token that is refused may have been revoked before its time: one more try with a new one.  What
 * was not authenticated was not done. */
static int32_t
send_authorised (const struct ctx *c, const struct method *m, const char *key, const uint8_t *body,
                 size_t len, ProtobufCMessage **out)
{
  int32_t rc = GPUB_E_AUTH;

  for (int try = 0; try < 2; try++) {
    char *token = NULL;

    if ((rc = token_get (c, try > 0, &token)) != GPUB_OK)
      return rc;
    rc = send_once (c, m, key, body, len, token, out);
    token_free (token);
    if (rc != GPUB_E_AUTH || strcmp (c->err->provider_code, "UNAUTHENTICATED") != 0)
      break;
  }
  return rc;
}

int32_t
api_read (const struct ctx *c, const struct method *m, const void *in, void *out)
{
  size_t len;
  AUTO_FREE uint8_t *body = grpc_frame (in, &len);
  int32_t rc = GPUB_E_UNAVAILABLE;

  for (int try = 0; try < TRIES; try++) {
    if (try > 0 && c->s->host->sleep (c->call, (uint32_t) (PAUSE_MS << try)) != GPUB_OK)
      break;
    rc = send_authorised (c, m, NULL, body, len, out);
    if (rc != GPUB_E_UNAVAILABLE || strcmp (c->err->provider_code, "UNAVAILABLE") != 0)
      break;
  }
  return rc;
}

int32_t
api_change (const struct ctx *c, const struct method *m, const char *key, const void *in, void *out)
{
  size_t len;
  AUTO_FREE uint8_t *body = grpc_frame (in, &len);

  return send_authorised (c, m, key, body, len, out);
}

/* ---- Lists ---- */

static const char *
next_token (const ProtobufCMessage *page)
{
  const ProtobufCFieldDescriptor *f =
      protobuf_c_message_descriptor_get_field_by_name (page->descriptor, "next_page_token");
  char *const *token = (char *const *) (const void *) ((const char *) page + f->offset);

  return *token ? *token : "";
}

/* A list that leads back to the same page would never end. */
int32_t
api_pages (const struct ctx *c, const struct method *m, const void *in, char **page_token,
           page_fn fn, void *ctx)
{
  AUTO_FREE char *token = strdup ("");

  for (int n = 0; n < PAGES_MAX; n++) {
    AUTO_MSG ProtobufCMessage *page = NULL;
    int32_t rc;

    *page_token = token;
    if ((rc = api_read (c, m, in, &page)) != GPUB_OK || (rc = fn (ctx, page)) != GPUB_OK)
      return rc;
    if (*next_token (page) == '\0')
      return GPUB_OK;
    if (strcmp (next_token (page), token) == 0)
      return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: a page leads to itself", m->what);
    free (token);
    token = strdup (next_token (page));
  }
  return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: no end after %d pages", m->what, PAGES_MAX);
}
