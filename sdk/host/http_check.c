/* http_check.c - what a plugin may ask of the network
 *
 * https, or http:// to an address that the operator wrote into this provider's own configuration,
 * or, by flag, to the link-local metadata services of clouds.
 */
#include "config.h"

#include <string.h>

#include "sdk/host/http.h"

enum { HEADERS_MAX = 128, METHOD_MAX = 16, URL_MAX = 16 * 1024 };

static bool
is_token (const char *s, size_t max)
{
  size_t n =
      strspn (s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~");

  return n > 0 && n <= max && s[n] == '\0';
}

/* The prefix ends at the end of a host, port or path element, so that http://api does not allow
 * http://api.evil. */
static bool
is_configured (const struct host *h, const char *url)
{
  for (size_t i = 0; i < h->options.plain.n; i++) {
    const char *base = h->options.plain.at[i];
    size_t n = strlen (base);

    if (strncmp (url, base, n) == 0 && (base[n - 1] == '/' || strchr ("/?#", url[n])))
      return true;
  }
  return false;
}

static bool
is_link_local (const char *host)
{
  int a, b, end = 0;

  if (strcmp (host, "[fd00:ec2::254]") == 0)
    return true;
  return sscanf (host, "169.254.%d.%d%n", &a, &b, &end) == 2 && host[end] == '\0' && a >= 0 &&
         a < 256 && b >= 0 && b < 256;
}

static int
check_parts (const struct host *h, const struct gpub_http_request *rq, const char *scheme,
             const char *host, struct err *e)
{
  if (strcmp (scheme, "https") == 0)
    return 0;
  if (strcmp (scheme, "http") != 0)
    return err_set (e, ERR_INVALID, "scheme '%.20s' is not https", scheme);
  if (is_configured (h, rq->url) ||
      ((rq->flags & GPUB_HTTP_PLAIN_LINK_LOCAL) && is_link_local (host)))
    return 0;
  return err_set (e, ERR_INVALID,
                  "http:// to %.100s: only https, or an address from this provider's options",
                  host);
}

static int
check_url (const struct host *h, const struct gpub_http_request *rq, struct err *e)
{
  CURLU *u = curl_url ();
  char *scheme = NULL, *host = NULL, *user = NULL;
  int rc;

  if (strnlen (rq->url, URL_MAX) == URL_MAX ||
      curl_url_set (u, CURLUPART_URL, rq->url, 0) != CURLUE_OK ||
      curl_url_get (u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
      curl_url_get (u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
    rc = err_set (e, ERR_INVALID, "the url is malformed");
  else if (curl_url_get (u, CURLUPART_USER, &user, 0) == CURLUE_OK)
    rc = err_set (e, ERR_INVALID, "the url carries a user name");
  else
    rc = check_parts (h, rq, scheme, host, e);
  curl_free (scheme);
  curl_free (host);
  curl_free (user);
  curl_url_cleanup (u);
  return rc;
}

static int
check_headers (const struct gpub_http_request *rq, struct err *e)
{
  if (rq->nheaders > HEADERS_MAX || (rq->nheaders && !rq->headers))
    return err_set (e, ERR_INVALID, "%llu headers", (unsigned long long) rq->nheaders);
  for (uint64_t i = 0; i < rq->nheaders; i++) {
    const struct gpub_kv *kv = &rq->headers[i];

    if (!kv->key || !is_token (kv->key, 256))
      return err_set (e, ERR_INVALID, "header %llu has no proper name", (unsigned long long) i);
    if (!kv->value || strpbrk (kv->value, "\r\n"))
      return err_set (e, ERR_INVALID, "header '%.60s' has a line break or no value", kv->key);
  }
  return 0;
}

int
http_check (const struct host *h, const struct gpub_http_request *rq, struct err *e)
{
  uint32_t effect = rq->flags & (GPUB_HTTP_SAFE | GPUB_HTTP_MUTATES);

  if (effect != GPUB_HTTP_SAFE && effect != GPUB_HTTP_MUTATES)
    return err_set (e, ERR_INVALID, "a request needs exactly one of SAFE and MUTATES");
  if (!rq->method || !rq->url || !is_token (rq->method, METHOD_MAX))
    return err_set (e, ERR_INVALID, "a request needs a method and a url");
  if (rq->body_len && !rq->body)
    return err_set (e, ERR_INVALID, "a body of %llu bytes at NULL",
                    (unsigned long long) rq->body_len);
  if (check_url (h, rq, e) < 0)
    return -1;
  return check_headers (rq, e);
}
