/* api.c - requests to Shadeform, and what its answers mean
 *
 * Its specification declares 200 answers only, so nothing about errors is certain: the status
 * decides first, the words second, and a body need not be JSON.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"

enum { URL_MAX = 2048, BODY_MAX = 8 << 20 };

/* What a status means to a read and to a change.  A server that fails in the middle of a change may
 * have made it. */
static const struct {
  int from, to;
  int32_t read, change;
} statuses[] = {
  { 300, 399, GPUB_E_UNAVAILABLE,
    GPUB_E_UNAVAILABLE }, /* nothing here redirects: somebody stands between */
  { 401, 401, GPUB_E_AUTH, GPUB_E_AUTH },
  { 402, 402, GPUB_E_QUOTA, GPUB_E_QUOTA },
  { 403, 403, GPUB_E_AUTH, GPUB_E_AUTH },
  { 404, 404, GPUB_E_NOT_FOUND, GPUB_E_NOT_FOUND },
  { 408, 408, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  { 409, 409, GPUB_E_UNAVAILABLE, GPUB_E_UNAVAILABLE },
  { 429, 429, GPUB_E_RATE_LIMITED, GPUB_E_RATE_LIMITED },
  { 400, 499, GPUB_E_INVALID, GPUB_E_INVALID },
  { 500, 599, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
};

static int32_t
kind_of_status (int status, bool change)
{
  for (size_t i = 0; i < N_ELEMENTS (statuses); i++)
    if (status >= statuses[i].from && status <= statuses[i].to)
      return change ? statuses[i].change : statuses[i].read;
  return change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE;
}

/* error.message, message, error, in this order; "" when the answer says nothing readable. */
static const char *
text_of (const json_t *body)
{
  const json_t *error = json_object_get (body, "error");
  const char *text = json_str (error, "message", NULL);

  if (!text)
    text = json_str (body, "message", NULL);
  return text ? text : json_is_string (error) ? json_string_value (error) : "";
}

static const char *
code_of (const json_t *body)
{
  const char *code = json_str (body, "error_code", NULL);

  if (!code)
    code = json_str (body, "code", NULL);
  return code ? code : json_str (json_object_get (body, "error"), "code", "");
}

/* Only 400, 402, 403, 409 and 422 are about the wish; the words of other statuses change nothing.
 */
static int32_t
kind_of (int status, bool change, const char *code, const char *text)
{
  bool about_wish =
      change && (status == 400 || status == 402 || status == 403 || status == 409 || status == 422);
  int32_t kind = about_wish ? plug_kind_of_text (code) : GPUB_OK;

  if (kind == GPUB_OK && about_wish)
    kind = plug_kind_of_text (text);
  return kind != GPUB_OK ? kind : kind_of_status (status, change);
}

static int32_t
refused (const struct ctx *c, const char *what, bool change, const struct gpub_http_response *r)
{
  json_auto_t *body = plug_object (r);
  const char *text = text_of (body), *code = code_of (body);

  c->err->http_status = r->status;
  c->err->retry_after_ms = r->retry_after_ms;
  snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", code);
  return plug_error (c->err, kind_of (r->status, change, code, text), "%s: HTTP %d%s%.60s%s%.120s",
                     what, r->status, *code ? " " : "", code, *text ? ": " : "", text);
}

static int32_t
answered (const struct ctx *c, const char *what, bool change, const struct gpub_http_response *r,
          json_t **out)
{
  if (r->status < 200 || r->status > 299)
    return refused (c, what, change, r);
  if (!out)
    return GPUB_OK;
  *out = plug_object (r);
  if (*out)
    return GPUB_OK;
  c->err->http_status = r->status;
  return plug_error (c->err, change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE,
                     "%s: the answer of %llu bytes is no JSON object", what,
                     (unsigned long long) r->body_len);
}

static int32_t
exchange (const struct ctx *c, const char *what, struct gpub_http_request *q, json_t **out)
{
  struct gpub_http_response r = { .size = sizeof r };
  bool change = q->flags & GPUB_HTTP_MUTATES;
  char key[PLUG_KEY_MAX] = "";
  struct gpub_kv headers[] = { { "X-API-KEY", key },
                               { "Accept", "application/json" },
                               { "Content-Type", "application/json" } };
  size_t len = 0;
  int32_t rc = plug_key (c->s->host, c->call, "api_key", key, &len, c->err);

  if (rc != GPUB_OK)
    return rc;
  q->headers = headers;
  q->nheaders = q->body ? 3 : 2;
  rc = c->s->host->http (c->call, q, &r, c->err);
  if (rc == GPUB_OK)
    rc = answered (c, what, change, &r, out);
  else if (change && r.sent != GPUB_SENT_NO)
    rc = GPUB_E_UNKNOWN;
  plug_mask (c->err->text, key, len);
  explicit_bzero (key, sizeof key);
  return rc;
}

static int32_t
request (const struct ctx *c, const char *what, const char *path, const char *body, uint32_t flags,
         json_t **out)
{
  char url[URL_MAX];
  struct gpub_http_request q = {
    .size = sizeof q,
    .method = flags & GPUB_HTTP_SAFE ? "GET" : "POST",
    .url = url,
    .body = body,
    .body_len = body ? strlen (body) : 0,
    .flags = flags,
    .max_body = BODY_MAX,
  };

  if ((size_t) snprintf (url, sizeof url, "%s%s", c->s->endpoint, path) >= sizeof url)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the URL is longer than %d bytes", what,
                       URL_MAX);
  return exchange (c, what, &q, out);
}

int32_t
api_get (const struct ctx *c, const char *what, const char *path, json_t **out)
{
  return request (c, what, path, NULL, GPUB_HTTP_SAFE, out);
}

int32_t
api_post (const struct ctx *c, const char *what, const char *path, const json_t *body, json_t **out)
{
  AUTO_FREE char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;

  if (body && !text)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the request is not UTF-8", what);
  return request (c, what, path, text, GPUB_HTTP_MUTATES, out);
}
