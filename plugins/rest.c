/* rest.c - JSON over HTTP, one key in a header */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/rest.h"

enum { URL_MAX = 2048, BODY_MAX = 8 << 20 };

static int32_t
exchange (const struct rest *api, const char *what, struct gpub_http_request *q, json_t **out)
{
  struct gpub_http_response r = { .size = sizeof r };
  bool change = q->flags & GPUB_HTTP_MUTATES;
  char key[PLUG_KEY_MAX] = "";
  struct gpub_kv headers[] = { { api->key_header, key },
                               { "Accept", "application/json" },
                               { "Content-Type", "application/json" } };
  size_t len = 0;
  int32_t rc = plug_key (api->host, api->call, "api_key", key, &len, api->err);

  if (rc != GPUB_OK)
    return rc;
  q->headers = headers;
  q->nheaders = q->body ? 3 : 2;
  rc = api->host->http (api->call, q, &r, api->err);
  if (rc == GPUB_OK)
    rc = api->judge (api, what, change, &r, out);
  else if (change && r.sent != GPUB_SENT_NO)
    rc = GPUB_E_UNKNOWN;
  plug_mask (api->err->text, key, len);
  explicit_bzero (key, sizeof key);
  return rc;
}

static int32_t
request (const struct rest *api, const char *what, const char *method, const char *path,
         const char *body, uint32_t flags, json_t **out)
{
  char url[URL_MAX];
  struct gpub_http_request q = {
    .size = sizeof q,
    .method = method,
    .url = url,
    .body = body,
    .body_len = body ? strlen (body) : 0,
    .flags = flags,
    .max_body = BODY_MAX,
  };

  if ((size_t) snprintf (url, sizeof url, "%s%s", api->endpoint, path) >= sizeof url)
    return plug_error (api->err, GPUB_E_INVALID, "%s: the URL is longer than %d bytes", what,
                       URL_MAX);
  return exchange (api, what, &q, out);
}

int32_t
rest_get (const struct rest *api, const char *what, const char *path, json_t **out)
{
  return request (api, what, "GET", path, NULL, GPUB_HTTP_SAFE, out);
}

int32_t
rest_change (const struct rest *api, const char *what, const char *method, const char *path,
             const json_t *body, json_t **out)
{
  AUTO_FREE char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;

  if (body && !text)
    return plug_error (api->err, GPUB_E_INVALID, "%s: the request is not UTF-8", what);
  return request (api, what, method, path, text, GPUB_HTTP_MUTATES, out);
}

int32_t
rest_expect (const struct rest *api, const char *what, int32_t rc)
{
  if (rc != GPUB_E_NOT_FOUND)
    return rc;
  return plug_error (api->err, GPUB_E_INVALID, "%s: HTTP 404: is '%.100s' the API?", what,
                     api->endpoint);
}

int32_t
rest_list (const struct rest *api, const char *what, const char *path, const char *member,
           json_t **body)
{
  int32_t rc = rest_expect (api, what, rest_get (api, what, path, body));

  if (rc == GPUB_OK && !json_is_array (member ? json_object_get (*body, member) : *body))
    return plug_error (api->err, GPUB_E_UNAVAILABLE, "%s: the answer has no list", what);
  return rc;
}

int32_t
rest_garbled (const struct rest *api, const char *what, bool change,
              const struct gpub_http_response *r, const char *expected)
{
  api->err->http_status = r->status;
  return plug_error (api->err, change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE,
                     "%s: the answer of %llu bytes is no %s", what,
                     (unsigned long long) r->body_len, expected);
}

void
rest_refused (const struct rest *api, const struct gpub_http_response *r, const char *code)
{
  api->err->http_status = r->status;
  api->err->retry_after_ms = r->retry_after_ms;
  snprintf (api->err->provider_code, sizeof api->err->provider_code, "%s", code);
}
