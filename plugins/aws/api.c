/* api.c - signed requests, and what answers mean
 *
 * Everything is a POST, reads too: which ones change something is said by who asks.  A definite
 * code is believed whatever the status; an answer to a change that is of no known shape proves
 * nothing.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { BODY_MAX = 8 << 20, PAGES_MAX = 200, HOST_MAX = 512, RATE_PAUSE_MS = 2000 };

#define EC2_VERSION "2016-11-15"
#define STS_VERSION "2011-06-15"
#define FORM        "application/x-www-form-urlencoded; charset=utf-8"
#define AMZ_JSON    "application/x-amz-json-1.1"

struct request {
  const char *what, *service, *region;
  const char *type, *target; /* target: of JSON services, else NULL */
  const char *root;          /* what an answer in XML begins with, else NULL */
  const char *body;
  uint32_t flags, timeout_ms;
};

/* ---- Where ---- */

static const char *
default_host (const struct request *q, char *out, size_t size)
{
  snprintf (out, size, "https://%s%s.%s.amazonaws.com%s",
            strcmp (q->service, "pricing") == 0 ? "api." : "", q->service, q->region,
            strncmp (q->region, "cn-", 3) == 0 ? ".cn" : "");
  return out;
}

/* "{region}" in a configured address stands for the region. */
static void
place (const char *text, const char *region, char *out, size_t size)
{
  const char *hole = strstr (text, "{region}");
  int before = (int) (hole ? hole - text : (ptrdiff_t) strlen (text));

  snprintf (out, size, "%.*s%.31s%.200s", before < 200 ? before : 200, text, hole ? region : "",
            hole ? hole + 8 : "");
}

static void
url_of (const struct ctx *c, const struct request *q, char url[static HOST_MAX])
{
  char usual[HOST_MAX];
  const char *text = json_str (c->s->endpoints, q->service, c->s->endpoint);
  size_t n;

  place (text ? text : default_host (q, usual, sizeof usual), q->region, url, HOST_MAX - 1);
  for (n = strlen (url); n && url[n - 1] == '/';)
    n--;
  strcpy (url + n, "/");
}

/* ---- What an answer says ---- */

static const char *
header (const struct gpub_http_response *r, const char *name)
{
  for (uint64_t i = 0; i < r->nheaders; i++)
    if (strcmp (r->headers[i].key, name) == 0)
      return r->headers[i].value;
  return "";
}

static const json_t *
error_of (const json_t *body)
{
  const json_t *errors = json_object_get (body, "Errors");
  const json_t *error = json_object_get (errors ? errors : body, "Error");

  return error ? error : body;
}

static const char *
code_of (const struct request *q, const json_t *body)
{
  const char *code =
      q->target ? json_str (body, "__type", "") : json_str (error_of (body), "Code", "");
  const char *hash = strrchr (code, '#');

  return hash ? hash + 1 : code;
}

static int32_t
skewed (const struct ctx *c, const struct request *q, const char *code, int64_t seconds)
{
  return plug_error (c->err, GPUB_E_AUTH,
                     "%s: %.40s: the clock of this machine is %lld s %s that of AWS: set it",
                     q->what, code, (long long) (seconds < 0 ? -seconds : seconds),
                     seconds < 0 ? "behind" : "ahead of");
}

/* Its text quotes what was signed, the session token included. */
static bool
quotes (const char *code)
{
  return strcmp (code, "SignatureDoesNotMatch") == 0 ||
         strcmp (code, "InvalidSignatureException") == 0 ||
         strcmp (code, "IncompleteSignature") == 0;
}

static int32_t
refused (const struct ctx *c, const struct request *q, const struct gpub_http_response *r,
         const json_t *body)
{
  const char *code = code_of (q, body), *text = json_str (error_of (body), "Message", "");
  int32_t kind = code_kind (code, r->status, q->flags & GPUB_HTTP_MUTATES);
  int64_t seconds;

  if (!*text)
    text = json_str (body, "message", "");
  c->err->http_status = r->status;
  c->err->retry_after_ms = r->retry_after_ms;
  if (kind == GPUB_E_RATE_LIMITED && r->retry_after_ms == 0)
    c->err->retry_after_ms = RATE_PAUSE_MS;
  snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", code);
  snprintf (
      c->err->request_id, sizeof c->err->request_id, "%s",
      json_str (body, "RequestID", json_str (body, "RequestId", header (r, "x-amzn-requestid"))));
  if (kind == GPUB_E_AUTH && clock_skew (r, c->s->host->now_ms (c->call), &seconds))
    return skewed (c, q, code, seconds);
  if (quotes (code))
    text = "is the secret key the right one for this key id";
  return plug_error (c->err, kind, "%s%s%s: HTTP %d%s%s%s%.130s", q->what, c->region ? " in " : "",
                     c->region ? c->region : "", r->status, *code ? ": " : "", code,
                     *text ? ": " : "", text);
}

static json_t *
parse (const struct request *q, const struct gpub_http_response *r, char root[static XML_NAME_MAX])
{
  root[0] = '\0';
  return q->target ? plug_object (r) : xml_parse (r->body, r->body_len, root);
}

static int32_t
judge (const struct ctx *c, const struct request *q, const struct gpub_http_response *r,
       json_t **out)
{
  char root[XML_NAME_MAX];
  json_auto_t *body = parse (q, r, root);

  if (r->status < 200 || r->status > 299)
    return refused (c, q, r, body);
  if (!json_is_object (body) || (q->root && strcmp (root, q->root) != 0)) {
    c->err->http_status = r->status;
    return plug_error (c->err, q->flags & GPUB_HTTP_MUTATES ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE,
                       "%s: the answer of %llu bytes is no %s", q->what,
                       (unsigned long long) r->body_len, q->root ? q->root : "JSON object");
  }
  if (out)
    *out = json_incref (body);
  return GPUB_OK;
}

/* ---- Sending ---- */

static void
mask (const struct ctx *c, const struct keys *k)
{
  plug_mask (c->err->text, k->secret, strlen (k->secret));
  plug_mask (c->err->text, k->token, strlen (k->token));
}

static int32_t
send_signed (const struct ctx *c, const struct request *q, const struct keys *k, json_t **out)
{
  char url[HOST_MAX], host[HOST_MAX], date[SIGN_DATE_SIZE], authorization[SIGN_AUTHORIZATION_SIZE];
  const char *authority, *path;
  struct gpub_kv headers[SIGN_HEADERS_MAX];
  struct gpub_http_response r = { .size = sizeof r };
  size_t n = 0;
  int32_t rc;

  url_of (c, q, url);
  authority = strstr (url, "://") ? strstr (url, "://") + 3 : url;
  path = authority + strcspn (authority, "/");
  snprintf (host, sizeof host, "%.*s", (int) (path - authority), authority);
  sign_date (c->s->host->now_ms (c->call), date);
  headers[n++] = (struct gpub_kv){ "content-type", q->type };
  headers[n++] = (struct gpub_kv){ "host", host };
  headers[n++] = (struct gpub_kv){ "x-amz-date", date };
  if (*k->token)
    headers[n++] = (struct gpub_kv){ "x-amz-security-token", k->token };
  if (q->target)
    headers[n++] = (struct gpub_kv){ "x-amz-target", q->target };
  sign_v4 (
      &(struct sign){ "POST", path, q->region, q->service, headers, n, q->body, strlen (q->body) },
      k, date, authorization);
  headers[n++] = (struct gpub_kv){ "authorization", authorization };
  rc = c->s->host->http (c->call,
                         &(struct gpub_http_request){
                             .size = sizeof (struct gpub_http_request),
                             .method = "POST",
                             .url = url,
                             .headers = headers,
                             .nheaders = n,
                             .body = q->body,
                             .body_len = strlen (q->body),
                             .flags = q->flags,
                             .timeout_ms = q->timeout_ms,
                             .max_body = BODY_MAX,
                         },
                         &r, c->err);
  if (rc == GPUB_OK)
    return judge (c, q, &r, out);
  return (q->flags & GPUB_HTTP_MUTATES) && r.sent != GPUB_SENT_NO ? GPUB_E_UNKNOWN : rc;
}

/* Keys may end sooner than they said: then nothing was done, and new ones may do. */
static int32_t
send_request (const struct ctx *c, const struct request *q, json_t **out)
{
  struct keys k;
  int32_t rc = keys_get (c, &k);

  if (rc == GPUB_OK) {
    rc = send_signed (c, q, &k, out);
    mask (c, &k);
  }
  if (rc == GPUB_E_AUTH && strncmp (c->err->provider_code, "ExpiredToken", 12) == 0) {
    keys_refused (c, &k);
    rc = keys_get (c, &k);
    if (rc == GPUB_OK)
      rc = send_signed (c, q, &k, out);
    mask (c, &k);
  } else if (rc == GPUB_E_AUTH)
    keys_refused (c, &k);
  explicit_bzero (&k, sizeof k);
  return rc;
}

static int32_t
send_query (const struct ctx *c, const char *what, struct query *q, const char *service,
            const char *version, uint32_t flags, uint32_t timeout_ms, json_t **out)
{
  char root[XML_NAME_MAX];

  snprintf (root, sizeof root, "%sResponse", q->action);
  query_add (q, "Version", version);
  return send_request (
      c,
      &(struct request){ what, service, c->region, FORM, NULL, root, q->text, flags, timeout_ms },
      out);
}

int32_t
ec2_read (const struct ctx *c, const char *what, struct query *q, json_t **out)
{
  return send_query (c, what, q, "ec2", EC2_VERSION, GPUB_HTTP_SAFE, c->read_ms, out);
}

int32_t
ec2_change (const struct ctx *c, const char *what, struct query *q, uint32_t timeout_ms,
            json_t **out)
{
  return send_query (c, what, q, "ec2", EC2_VERSION, GPUB_HTTP_MUTATES, timeout_ms, out);
}

int32_t
sts_read (const struct ctx *c, const char *what, struct query *q, json_t **out)
{
  return send_query (c, what, q, "sts", STS_VERSION, GPUB_HTTP_SAFE, 0, out);
}

int32_t
json_read (const struct ctx *c, const char *what, const char *service, const char *target,
           const json_t *body, json_t **out)
{
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);
  const char *region = strcmp (service, "pricing") == 0 ? "us-east-1" : c->region;

  if (!text)
    return plug_error (c->err, GPUB_E_INVALID, "%s: the request is not UTF-8", what);
  return send_request (c,
                       &(struct request){ what, service, region, AMZ_JSON, target, NULL, text,
                                          GPUB_HTTP_SAFE, c->read_ms },
                       out);
}

/* ---- Pages ---- */

static int32_t
one_page (const struct ctx *c, const char *what, const struct query *q, const char *set,
          const char *token, json_t **body)
{
  AUTO_QUERY struct query page = query_new (q->action);
  const json_t *list;
  int32_t rc;

  free (page.text);
  page.text = strdup (q->text);
  page.len = q->len;
  page.cap = q->len + 1;
  if (*token)
    query_add (&page, "NextToken", token);
  rc = ec2_read (c, what, &page, body);
  list = json_object_get (*body, set);
  if (rc == GPUB_OK && !json_is_array (list) &&
      (!json_is_string (list) || *json_string_value (list)))
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: the answer has no %s", what, set);
  return rc;
}

int32_t
ec2_pages (const struct ctx *c, const char *what, const struct query *q, const char *set,
           json_t **rows)
{
  json_auto_t *all = json_array (), *tokens = json_object ();
  char token[1024] = "";

  for (int i = 0; i < PAGES_MAX; i++) {
    json_auto_t *body = NULL;
    const char *next;
    int32_t rc = one_page (c, what, q, set, token, &body);

    if (rc != GPUB_OK)
      return rc;
    json_array_extend (all, json_object_get (body, set));
    next = json_str (body, "nextToken", "");
    if (!*next) {
      *rows = json_incref (all);
      return GPUB_OK;
    }
    if (strlen (next) >= sizeof token || json_object_get (tokens, next))
      break;
    strcpy (token, next);
    json_object_set_new (tokens, token, json_true ());
  }
  return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: the pages do not end", what);
}

/* ---- Reading ---- */

const char *
sub_str (const json_t *j, const char *outer, const char *inner, const char *otherwise)
{
  return json_str (json_object_get (j, outer), inner, otherwise);
}

uint64_t
num (const json_t *j, const char *key)
{
  const char *text = json_str (j, key, "");
  size_t n = strspn (text, "0123456789");

  return n > 0 && n < 15 && text[n] == '\0' ? strtoull (text, NULL, 10) : 0;
}
