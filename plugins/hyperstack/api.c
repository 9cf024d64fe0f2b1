/* api.c - requests to Hyperstack, and what its answers mean
 *
 * An answer of 200 may say "status": false, and then it is the refusal that its error_reason names;
 * the bare list of the price book has no envelope at all.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"
#include "plugins/rest.h"

enum { PAGES_MAX = 200, RATE_PAUSE_MS = 20 * 1000 };

static const struct plug_word reasons[] = {
  { "bad_request", 400 }, { "unauthorized", 401 },  { "forbidden", 403 },    { "not_found", 404 },
  { "not_allowed", 405 }, { "already_exist", 409 }, { "server_error", 500 },
};

/* A refusal in the dress of a success that gives no reason proves nothing about what was done. */
static int
status_of_reason (const char *reason)
{
  return (int) plug_word (reasons, N_ELEMENTS (reasons), reason, 500);
}

static int32_t
refused (const struct rest *api, const char *what, bool change, const struct gpub_http_response *r,
         const json_t *body)
{
  const char *text = json_str (body, "message", ""), *reason = json_str (body, "error_reason", "");
  bool disguised = r->status >= 200 && r->status <= 299;
  int status = disguised ? status_of_reason (reason) : r->status;
  int32_t kind = plug_kind_of_refusal (status, change, "", text);

  if (disguised && change && plug_kind_of_text (text) != GPUB_OK)
    kind = plug_kind_of_text (text);
  rest_refused (api, r, reason);
  if (kind == GPUB_E_RATE_LIMITED && r->retry_after_ms == 0)
    api->err->retry_after_ms = RATE_PAUSE_MS; /* it lasts until the minute is over */
  return plug_error (api->err, kind, "%s: HTTP %d%s%s%.140s", what, r->status,
                     disguised ? " with status false" : "", *text ? ": " : "", text);
}

static int32_t
answered (const struct rest *api, const char *what, bool change, const struct gpub_http_response *r,
          json_t **out)
{
  json_auto_t *body = plug_json (r);

  if (r->status < 200 || r->status > 299 || json_is_false (json_object_get (body, "status")))
    return refused (api, what, change, r, body);
  if (!json_is_object (body) && !json_is_array (body))
    return rest_garbled (api, what, change, r, "JSON");
  if (out)
    *out = json_incref (body);
  return GPUB_OK;
}

static struct rest
api_of (const struct ctx *c)
{
  return (struct rest){ c->s->host, c->call, c->err, c->s->endpoint, "api_key", answered };
}

int32_t
api_get (const struct ctx *c, const char *what, const char *path, json_t **out)
{
  const struct rest api = api_of (c);

  return rest_get (&api, what, path, out);
}

int32_t
api_expect (const struct ctx *c, const char *what, const char *path, json_t **out)
{
  const struct rest api = api_of (c);

  return rest_expect (&api, what, rest_get (&api, what, path, out));
}

int32_t
api_change (const struct ctx *c, const char *what, const char *method, const char *path,
            const json_t *body, json_t **out)
{
  const struct rest api = api_of (c);

  return rest_change (&api, what, method, path, body, out);
}

/* ---- Lists ---- */

int32_t
api_list (const struct ctx *c, const char *what, const char *path, const char *member,
          json_t **rows)
{
  const struct rest api = api_of (c);
  json_auto_t *body = NULL;
  int32_t rc = rest_list (&api, what, path, member, &body);

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
  const struct rest api = api_of (c);
  json_auto_t *all = json_array (), *seen = json_object ();
  int64_t count = -1;

  for (int page = 1; page <= PAGES_MAX; page++) {
    json_auto_t *body = NULL;
    char paged[256];
    size_t got, news;
    int32_t rc;

    snprintf (paged, sizeof paged, "%s?page=%d&pageSize=%d", path, page, PAGE_SIZE);
    if ((rc = rest_list (&api, what, paged, member, &body)) != GPUB_OK)
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
