/* api.c - one request to Acme's API, what its answer means, and lists page by page */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acme.h"

enum { URL_SIZE = 1024, KEY_SIZE = 256, PAGES_MOST = 1000, BODY_MOST = 4 << 20 };

int32_t
acme_error (struct gpub_error *err, int32_t kind, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (err->text, sizeof err->text, fmt, ap);
  va_end (ap);
  return kind;
}

const char *
str (const json_t *object, const char *key)
{
  const char *s = json_string_value (json_object_get (object, key));

  return s ? s : "";
}

int64_t
num (const json_t *object, const char *key)
{
  return json_integer_value (json_object_get (object, key));
}

/* The status first, then the code where one status has two meanings.  What stands here decides
 * what the broker does next: look every line up in your cloud's documentation. */
static int32_t
kind_of (int32_t status, const char *code)
{
  static const struct {
    int32_t status;
    const char *code; /* NULL: any */
    int32_t kind;
  } meanings[] = {
    { 401, NULL, GPUB_E_AUTH },
    { 403, NULL, GPUB_E_AUTH },
    { 402, NULL, GPUB_E_QUOTA },
    { 404, NULL, GPUB_E_NOT_FOUND },
    { 409, "out_of_stock", GPUB_E_CAPACITY },
    { 409, "token_reused", GPUB_E_CONFLICT },
    { 409, NULL, GPUB_E_UNAVAILABLE },
    { 429, NULL, GPUB_E_RATE_LIMITED },
  };

  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
    if (meanings[i].status == status && (!meanings[i].code || strcmp (meanings[i].code, code) == 0))
      return meanings[i].kind;
  return status >= 400 && status < 500 ? GPUB_E_INVALID : GPUB_E_UNAVAILABLE;
}

static int32_t
refused (const struct ctx *c, const char *path, const struct gpub_http_response *r)
{
  json_auto_t *body = json_loadb (r->body, r->body_len, 0, NULL);

  c->err->http_status = r->status;
  c->err->retry_after_ms = r->retry_after_ms;
  snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", str (body, "code"));
  return acme_error (c->err, kind_of (r->status, str (body, "code")), "%.60s: HTTP %d %.120s", path,
                     r->status, str (body, "message"));
}

/* An answer that cannot be read is no answer: the host makes UNKNOWN of it after a change. */
static int32_t
understood (const struct ctx *c, const char *path, const struct gpub_http_response *r, json_t **out)
{
  if (r->status < 200 || r->status > 299)
    return refused (c, path, r);
  if (!out)
    return GPUB_OK;
  *out = json_loadb (r->body, r->body_len, 0, NULL);
  if (json_is_object (*out))
    return GPUB_OK;
  json_decref (*out);
  *out = NULL;
  return acme_error (c->err, GPUB_E_UNAVAILABLE, "%.60s: the answer is no JSON object", path);
}

static int32_t
authorization (const struct ctx *c, char out[KEY_SIZE + 8])
{
  const void *key;
  uint64_t len;
  int32_t rc = c->acme->host->secret (c->call, "api_key", &key, &len);

  if (rc != GPUB_OK || len > KEY_SIZE)
    return acme_error (c->err, GPUB_E_AUTH, "api_key: none, or longer than %d bytes", KEY_SIZE);
  snprintf (out, KEY_SIZE + 8, "Bearer %.*s", (int) len, (const char *) key);
  return GPUB_OK;
}

static int32_t
send_request (const struct ctx *c, struct gpub_http_request *q, const char *path, json_t **out)
{
  char url[URL_SIZE], bearer[KEY_SIZE + 8];
  struct gpub_kv headers[] = { { "Authorization", bearer },
                               { "Content-Type", "application/json" } };
  struct gpub_http_response r = { .size = sizeof r };
  int32_t rc = authorization (c, bearer);

  if (rc != GPUB_OK)
    return rc;
  if ((size_t) snprintf (url, sizeof url, "%s%s", c->acme->endpoint, path) >= sizeof url)
    return acme_error (c->err, GPUB_E_INVALID, "%.60s: too long for a URL", path);
  q->size = sizeof *q;
  q->url = url;
  q->headers = headers;
  q->nheaders = q->body ? 2 : 1;
  q->max_body = BODY_MOST;
  rc = c->acme->host->http (c->call, q, &r, c->err);
  return rc == GPUB_OK ? understood (c, path, &r, out) : rc;
}

int32_t
api_read (const struct ctx *c, const char *path, json_t **out)
{
  struct gpub_http_request q = { .method = "GET", .flags = GPUB_HTTP_SAFE };

  return send_request (c, &q, path, out);
}

int32_t
api_change (const struct ctx *c, const char *method, const char *path, const json_t *body,
            json_t **out)
{
  char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;
  struct gpub_http_request q = {
    .method = method,
    .flags = GPUB_HTTP_MUTATES,
    .body = text,
    .body_len = text ? strlen (text) : 0,
  };
  int32_t rc = send_request (c, &q, path, out);

  free (text);
  return rc;
}

int32_t
api_pages (const struct ctx *c, const char *path, const char *list,
           int32_t (*row) (const struct ctx *, const json_t *, void *), void *arg)
{
  int64_t page = 1;

  for (int n = 0; n < PAGES_MOST; n++) {
    json_auto_t *body = NULL;
    const json_t *rows, *element;
    char where[URL_SIZE];
    size_t i;
    int32_t rc;

    snprintf (where, sizeof where, "%s?page=%lld", path, (long long) page);
    rc = api_read (c, where, &body);
    rows = json_object_get (body, list);
    if (rc == GPUB_OK && !json_is_array (rows))
      rc = acme_error (c->err, GPUB_E_UNAVAILABLE, "%.60s: the answer has no '%s'", path, list);
    json_array_foreach (rows, i, element) {
      if (rc == GPUB_OK)
        rc = row (c, element, arg);
    }
    if (rc != GPUB_OK || (page = num (body, "next_page")) == 0)
      return rc;
  }
  return acme_error (c->err, GPUB_E_UNAVAILABLE, "%.60s: more than %d pages", path, PAGES_MOST);
}
