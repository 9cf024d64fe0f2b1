/* api.c - requests to Shadeform, and what its answers mean
 *
 * Its specification declares 200 answers only, so nothing about errors is certain: the status
 * decides first, the words second, and a body need not be JSON.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/rest.h"
#include "plugins/shadeform/shadeform.h"

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

/* 409 is how business is refused here, not a name that is taken: it may pass. */
static int32_t
kind_of (int status, bool change, const char *code, const char *text)
{
  int32_t kind = plug_kind_of_refusal (status, change, code, text);

  return kind == GPUB_E_CONFLICT ? GPUB_E_UNAVAILABLE : kind;
}

static int32_t
refused (const struct rest *api, const char *what, bool change, const struct gpub_http_response *r)
{
  json_auto_t *body = plug_object (r);
  const char *text = text_of (body), *code = code_of (body);

  rest_refused (api, r, code);
  return plug_error (api->err, kind_of (r->status, change, code, text),
                     "%s: HTTP %d%s%.60s%s%.120s", what, r->status, *code ? " " : "", code,
                     *text ? ": " : "", text);
}

static int32_t
answered (const struct rest *api, const char *what, bool change, const struct gpub_http_response *r,
          json_t **out)
{
  if (r->status < 200 || r->status > 299)
    return refused (api, what, change, r);
  if (!out)
    return GPUB_OK;
  *out = plug_object (r);
  return *out ? GPUB_OK : rest_garbled (api, what, change, r, "JSON object");
}

static struct rest
api_of (const struct ctx *c)
{
  return (struct rest){ c->s->host, c->call, c->err, c->s->endpoint, "X-API-KEY", answered };
}

int32_t
api_get (const struct ctx *c, const char *what, const char *path, json_t **out)
{
  const struct rest api = api_of (c);

  return rest_get (&api, what, path, out);
}

int32_t
api_post (const struct ctx *c, const char *what, const char *path, const json_t *body, json_t **out)
{
  const struct rest api = api_of (c);

  return rest_change (&api, what, "POST", path, body, out);
}

int32_t
api_list (const struct ctx *c, const char *what, const char *path, const char *member,
          json_t **body)
{
  const struct rest api = api_of (c);

  return rest_list (&api, what, path, member, body);
}
