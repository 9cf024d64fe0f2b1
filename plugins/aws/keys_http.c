/* keys_http.c - credentials from link-local addresses: a container's endpoint, and IMDSv2
 *
 * Nothing here is signed.  An instance's metadata service that does not answer means that we are
 * not on EC2: then this source has no keys, and says so quickly.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { TIMEOUT_MS = 2000, BODY_MAX = 64 * 1024, IMDS_TOKEN_MAX = 256 };

static int32_t
fetch (const struct ctx *c, const char *method, const char *url, const struct gpub_kv *header,
       struct gpub_http_response *r)
{
  const struct gpub_http_request q = {
    .size = sizeof q,
    .method = method,
    .url = url,
    .headers = header,
    .nheaders = header && header->value && *header->value,
    .flags = GPUB_HTTP_SAFE | GPUB_HTTP_PLAIN_LINK_LOCAL,
    .timeout_ms = TIMEOUT_MS,
    .max_body = BODY_MAX,
  };

  return c->s->host->http (c->call, &q, r, c->err);
}

static int32_t
keys_of_answer (const struct ctx *c, const char *who, const struct gpub_http_response *r,
                struct keys *k)
{
  json_auto_t *doc = r->status == 200 ? plug_object (r) : NULL;

  if (doc && keys_of_json (doc, k))
    return GPUB_OK;
  c->err->http_status = r->status;
  return plug_error (c->err, r->status >= 500 ? GPUB_E_UNAVAILABLE : GPUB_E_AUTH,
                     "%s: HTTP %d without usable credentials", who, r->status);
}

int32_t
keys_from_url (const struct ctx *c, struct keys *k)
{
  struct gpub_http_response r = { .size = sizeof r };
  const void *bytes = NULL;
  uint64_t n = 0;
  char token[KEY_TOKEN_MAX] = "";
  struct gpub_kv header = { "Authorization", token };
  int32_t rc;

  if (c->s->host->secret (c->call, "credentials_token", &bytes, &n) == GPUB_OK)
    snprintf (token, sizeof token, "%.*s", (int) (n < sizeof token ? n : 0), (const char *) bytes);
  token[strcspn (token, "\r\n")] = '\0';
  rc = fetch (c, "GET", c->s->credentials_url, &header, &r);
  explicit_bzero (token, sizeof token);
  return rc == GPUB_OK ? keys_of_answer (c, "credentials_url", &r, k) : rc;
}

/* ---- IMDSv2 ---- */

static bool
word (const struct gpub_http_response *r, char *out, size_t size)
{
  const char *body = r->body;
  size_t n = r->status == 200 ? strcspn (body, "\r\n") : 0;

  if (n == 0 || n >= size)
    return false;
  for (size_t i = 0; i < n; i++)
    if (body[i] <= ' ' || body[i] > '~')
      return false;
  memcpy (out, body, n);
  out[n] = '\0';
  return true;
}

int32_t
keys_from_imds (const struct ctx *c, struct keys *k)
{
  static const char roles[] = "/latest/meta-data/iam/security-credentials/";
  const char *base = json_str (c->s->endpoints, "imds", "http://169.254.169.254");
  const struct gpub_kv ttl = { "X-aws-ec2-metadata-token-ttl-seconds", "21600" };
  char url[512], token[IMDS_TOKEN_MAX], role[128];
  const struct gpub_kv header = { "X-aws-ec2-metadata-token", token };
  struct gpub_http_response r = { .size = sizeof r };

  snprintf (url, sizeof url, "%.200s/latest/api/token", base);
  if (fetch (c, "PUT", url, &ttl, &r) != GPUB_OK || !word (&r, token, sizeof token))
    return GPUB_E_NOT_FOUND;
  snprintf (url, sizeof url, "%.200s%s", base, roles);
  r = (struct gpub_http_response){ .size = sizeof r };
  if (fetch (c, "GET", url, &header, &r) != GPUB_OK || !word (&r, role, sizeof role))
    return GPUB_E_NOT_FOUND; /* a machine without a role */
  snprintf (url, sizeof url, "%.200s%s", base, roles);
  if (!url_append (url, sizeof url, role))
    return GPUB_E_NOT_FOUND;
  r = (struct gpub_http_response){ .size = sizeof r };
  if (fetch (c, "GET", url, &header, &r) != GPUB_OK)
    return GPUB_E_UNAVAILABLE;
  return keys_of_answer (c, "metadata service", &r, k);
}
