/* api.c - requests to Hyperstack, and what its answers mean
 *
 * An answer of 200 may say "status": false, and then it is the refusal that its error_reason names;
 * the bare list of the price book has no envelope at all.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

enum { URL_MAX = 2048, BODY_MAX = 8 << 20, PAGES_MAX = 200, RATE_PAUSE_MS = 20 * 1000 };

/* What a status means to a read and to a change.  A server that fails in the middle of a change may
 * have made it; a name that is taken may have been taken by this very change, sent before. */
static const struct {
  int from, to;
  int32_t read, change;
} statuses[] = {
  { 300, 399, GPUB_E_UNAVAILABLE, GPUB_E_UNAVAILABLE }, /* nothing here redirects: a proxy did */
  { 401, 401, GPUB_E_AUTH, GPUB_E_AUTH },
  { 402, 402, GPUB_E_QUOTA, GPUB_E_QUOTA },
  { 403, 403, GPUB_E_AUTH, GPUB_E_AUTH },
  { 404, 404, GPUB_E_NOT_FOUND, GPUB_E_NOT_FOUND },
  { 408, 408, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  { 409, 409, GPUB_E_UNAVAILABLE, GPUB_E_CONFLICT },
  { 429, 429, GPUB_E_RATE_LIMITED, GPUB_E_RATE_LIMITED },
  { 400, 499, GPUB_E_INVALID, GPUB_E_INVALID },
  { 500, 599, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
};

static const struct {
  const char *reason;
  int status;
} reasons[] = {
  { "bad_request", 400 }, { "unauthorized", 401 },  { "forbidden", 403 },    { "not_found", 404 },
  { "not_allowed", 405 }, { "already_exist", 409 }, { "server_error", 500 },
};

static int32_t
kind_of_status (int status, bool change)
{
  for (size_t i = 0; i < N_ELEMENTS (statuses); i++)
    if (status >= statuses[i].from && status <= statuses[i].to)
      return change ? statuses[i].change : statuses[i].read;
  return change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE;
}

/* A refusal in the dress of a success that gives no reason proves nothing about what was done. */
static int
status_of_reason (const char *reason)
{
  for (size_t i = 0; i < N_ELEMENTS (reasons); i++)
    if (strcmp (reason, reasons[i].reason) == 0)
      return reasons[i].status;
  return 500;
}

/* 400 is how money and stock are refused, besides all that is malformed. */
static int32_t
kind_of (int status, bool change, const char *text)
{
  bool about_wish = change && status >= 400 && status <= 422 && status != 401 && status != 404;
  int32_t kind = about_wish ? plug_kind_of_text (text) : GPUB_OK;

  return kind != GPUB_OK ? kind : kind_of_status (status, change);
}

static int32_t
refused (const struct ctx *c, const char *what, bool change, const struct gpub_http_response *r,
         const json_t *body)
{
  const char *text = json_str (body, "message", ""), *reason = json_str (body, "error_reason", "");
  bool disguised = r->status >= 200 && r->status <= 299;
  int status = disguised ? status_of_reason (reason) : r->status;
  int32_t kind = kind_of (status, change, text);

  if (disguised && change && plug_kind_of_text (text) != GPUB_OK)
    kind = plug_kind_of_text (text);
  c->err->http_status = r->status;
  c->err->retry_after_ms = r->retry_after_ms;
  if (kind == GPUB_E_RATE_LIMITED && r->retry_after_ms == 0)
    c->err->retry_after_ms = RATE_PAUSE_MS; /* it lasts until the minute is over */
  snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", reason);
  return plug_error (c->err, kind, "%s: HTTP %d%s%s%.140s", what, r->status,
                     disguised ? " with status false" : "", *text ? ": " : "", text);
}

static int32_t
answered (const struct ctx *c, const char *what, bool change, const struct gpub_http_response *r,
          json_t **out)
{
  json_auto_t *body = plug_json (r);

  if (r->status < 200 || r->status > 299 || json_is_false (json_object_get (body, "status")))
    return refused (c, what, change, r, body);
  if (!json_is_object (body) && !json_is_array (body)) {
    c->err->http_status = r->status;
    return plug_error (c->err, change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE,
                       "%s: the answer of %llu bytes is no JSON", what,
                       (unsigned long long) r->body_len);
  }
  if (out)
    *out = json_incref (body);
  return GPUB_OK;
}

static int32_t
exchange (const struct ctx *c, const char *what, struct gpub_http_request *q, json_t **out)
{
  struct gpub_http_response r = { .size = sizeof r };
  bool change = q->flags & GPUB_HTTP_MUTATES;
  char key[PLUG_KEY_MAX] = "";
  struct gpub_kv headers[] = { { "api_key", key },
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
request (const struct ctx *c, const char *what, const char *method, const char *path,
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

  if ((size_t) snprintf (url, sizeof url, "%s%s", c->s->endpoint, path) >= sizeof url)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the URL is longer than %d bytes", what,
                       URL_MAX);
  return exchange (c, what, &q, out);
}

int32_t
api_get (const struct ctx *c, const char *what, const char *path, json_t **out)
{
  return request (c, what, "GET", path, NULL, GPUB_HTTP_SAFE, out);
}

int32_t
api_change (const struct ctx *c, const char *what, const char *method, const char *path,
            const json_t *body, json_t **out)
{
  AUTO_FREE char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;

  if (body && !text)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the request is not UTF-8", what);
  return request (c, what, method, path, text, GPUB_HTTP_MUTATES, out);
}

/* ---- Lists ---- */

/* A list that does not exist says that this is no such API, not that something is gone. */
static int32_t
read_list (const struct ctx *c, const char *what, const char *path, const char *member,
           json_t **body)
{
  int32_t rc = api_get (c, what, path, body);

  if (rc == GPUB_E_NOT_FOUND)
    return plug_error (c->err, GPUB_E_INVALID, "%s: HTTP 404: is '%.100s' the API?", what,
                       c->s->endpoint);
  if (rc == GPUB_OK && !json_is_array (member ? json_object_get (*body, member) : *body))
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: the answer has no list", what);
  return rc;
}

int32_t
api_list (const struct ctx *c, const char *what, const char *path, const char *member,
          json_t **rows)
{
  json_auto_t *body = NULL;
  int32_t rc = read_list (c, what, path, member, &body);

  if (rc == GPUB_OK)
    *rows = json_incref (member ? json_object_get (body, member) : body);
  return rc;
}

/* Adds the rows that were not seen yet, known by their id; how many that were.  Pages are cut from
 * a list that changes meanwhile. */
static size_t
add_new (json_t *rows, json_t *seen, const json_t *page)
{
  json_t *row;
  size_t i, news = 0;

  json_array_foreach (page, i, row) {
    AUTO_FREE char *id = json_dumps (json_object_get (row, "id"), JSON_ENCODE_ANY);

    if (id && json_object_get (seen, id))
      continue;
    if (id)
      json_object_set_new (seen, id, json_true ());
    json_array_append (rows, row);
    news++;
  }
  return news;
}

/* The service may cut pages shorter than asked, so only its count or a page without news ends the
 * list; a full page is always followed by another request. */
int32_t
api_pages (const struct ctx *c, const char *what, const char *path, const char *member,
           json_t **rows, bool *whole)
{
  json_auto_t *all = json_array (), *seen = json_object ();
  int64_t count = -1;

  for (int page = 1; page <= PAGES_MAX; page++) {
    json_auto_t *body = NULL;
    char paged[256];
    size_t got, news;
    int32_t rc;

    snprintf (paged, sizeof paged, "%s?page=%d&pageSize=%d", path, page, PAGE_SIZE);
    if ((rc = read_list (c, what, paged, member, &body)) != GPUB_OK)
      return rc;
    count = json_i64 (body, "count", -1);
    got = json_array_size (json_object_get (body, member));
    news = add_new (all, seen, json_object_get (body, member));
    if (news == 0 || (got < PAGE_SIZE && (int64_t) json_array_size (all) >= count))
      break;
  }
  *whole = (int64_t) json_array_size (all) >= count;
  *rows = json_incref (all);
  return GPUB_OK;
}
