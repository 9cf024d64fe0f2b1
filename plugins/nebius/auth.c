/* auth.c - the token of a call: a fixed one, a service account's, or that of the machine we run on
 *
 * Tokens live in memory only and are renewed before a tenth of their life is left.  Two calls may
 * renew at once; nobody waits for another's request.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "plugins/nebius/nebius.h"

enum { TOKEN_MAX = 16 << 10, FORM_MAX = 16 << 10, LIFE_MOST_S = 7 * 86400, ANSWER_MAX = 64 << 10 };

void
token_free (char *token)
{
  if (token)
    explicit_bzero (token, strlen (token));
  free (token);
}

/* ---- The remembered one ---- */

static char *
recall (struct nebius *s, const unsigned char of[static 32], int64_t now_ms)
{
  char *text = NULL;

  pthread_mutex_lock (&s->lock);
  if (s->token.text && now_ms < s->token.renew_ms && memcmp (s->token.of, of, 32) == 0)
    text = strdup (s->token.text);
  pthread_mutex_unlock (&s->lock);
  return text;
}

static void
remember (struct nebius *s, const unsigned char of[static 32], const char *text, int64_t now_ms,
          int64_t life_s)
{
  pthread_mutex_lock (&s->lock);
  token_free (s->token.text);
  s->token.text = strdup (text);
  memcpy (s->token.of, of, 32);
  s->token.renew_ms = now_ms + life_s * 900;
  pthread_mutex_unlock (&s->lock);
}

/* ---- A new one ---- */

static bool
token_valid (const char *text)
{
  size_t n = strlen (text);

  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return false;
  return n > 0 && n <= TOKEN_MAX;
}

static int64_t
life_of (const json_t *body, int64_t now_ms)
{
  int64_t s = json_i64 (body, "expires_in", 0), until;

  if (s <= 0 && rfc3339_parse (json_str (body, "expires_at", ""), &until))
    s = (until - now_ms) / 1000;
  return s < 0 ? 0 : s > LIFE_MOST_S ? LIFE_MOST_S : s;
}

static int32_t
kind_of_status (int status)
{
  if (status == 429)
    return GPUB_E_RATE_LIMITED;
  return status >= 400 && status <= 499 && status != 408 ? GPUB_E_AUTH : GPUB_E_UNAVAILABLE;
}

static int32_t
take_answer (const struct ctx *c, const char *what, const unsigned char of[static 32],
             const struct gpub_http_response *r, char **token)
{
  json_auto_t *body = plug_object (r);
  const char *text = json_str (body, "access_token", "");
  const char *type = json_str (body, "token_type", "Bearer");
  int64_t now_ms = c->s->host->now_ms (c->call);

  c->err->http_status = r->status;
  c->err->retry_after_ms = r->retry_after_ms;
  if (r->status != 200)
    return plug_error (c->err, kind_of_status (r->status), "%s: HTTP %d %.60s: %.100s", what,
                       r->status, json_str (body, "error", ""),
                       json_str (body, "error_description", ""));
  if (!token_valid (text) || strcasecmp (type, "Bearer") != 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "%s: the answer holds no usable token", what);
  remember (c->s, of, text, now_ms, life_of (body, now_ms));
  *token = strdup (text);
  return GPUB_OK;
}

static int32_t
ask (const struct ctx *c, const char *what, struct gpub_http_request *q,
     const unsigned char of[static 32], char **token)
{
  struct gpub_http_response r = { .size = sizeof r };
  int32_t rc = c->s->host->http (c->call, q, &r, c->err);

  return rc == GPUB_OK ? take_answer (c, what, of, &r, token) : rc;
}

/* RFC 8693; it has no effect, so the host may repeat it. */
static int32_t
exchange (const struct ctx *c, const char *credentials, size_t len, const unsigned char *of,
          char **token)
{
  static const struct gpub_kv headers[] = { { "content-type", "application/x-www-form-urlencoded" },
                                            { "accept", "application/json" } };
  char form[FORM_MAX] =
      "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
      "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
      "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt"
      "&subject_token=";
  const char *why = NULL;
  char *jwt = jwt_make (credentials, len, c->s->host->now_ms (c->call) / 1000, &why);
  struct gpub_http_request q = {
    .size = sizeof q,
    .method = "POST",
    .url = c->s->token_url,
    .headers = headers,
    .nheaders = N_ELEMENTS (headers),
    .body = form,
    .flags = GPUB_HTTP_SAFE,
    .max_body = ANSWER_MAX,
  };
  int32_t rc;

  if (!jwt)
    return plug_error (c->err, GPUB_E_AUTH, "credentials: %s", why);
  if (url_append (form, sizeof form, jwt)) {
    q.body_len = strlen (form);
    rc = ask (c, "exchange credentials for a token", &q, of, token);
  } else
    rc = plug_error (c->err, GPUB_E_AUTH, "credentials: the assertion is too long");
  token_free (jwt);
  explicit_bzero (form, sizeof form);
  return rc;
}

/* The service account of the virtual machine that the broker runs on. */
static int32_t
ask_vm (const struct ctx *c, const unsigned char *of, char **token)
{
  static const struct gpub_kv headers[] = { { "metadata", "true" } };
  struct gpub_http_request q = {
    .size = sizeof q,
    .method = "GET",
    .url = c->s->vm_token_url,
    .headers = headers,
    .nheaders = N_ELEMENTS (headers),
    .flags = GPUB_HTTP_SAFE | GPUB_HTTP_PLAIN_LINK_LOCAL,
    .max_body = ANSWER_MAX,
  };

  return ask (c, "ask the metadata service for a token", &q, of, token);
}

static int32_t
fixed (const struct ctx *c, const char *bytes, uint64_t len, char **token)
{
  while (len && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r' || bytes[len - 1] == ' '))
    len--;
  *token = strndup (bytes, len);
  if (strlen (*token) == len && token_valid (*token))
    return GPUB_OK;
  token_free (*token);
  *token = NULL;
  return plug_error (c->err, GPUB_E_AUTH,
                     "token is empty, too long, or has a character that no token has");
}

int32_t
token_get (const struct ctx *c, bool fresh, char **token)
{
  const struct gpub_host *host = c->s->host;
  const void *bytes = NULL;
  uint64_t len = 0;
  unsigned char of[SHA256_DIGEST_LENGTH] = { 0 };

  *token = NULL;
  if (host->secret (c->call, "token", &bytes, &len) == GPUB_OK && len)
    return fixed (c, bytes, len, token);
  if (!c->s->vm_token && (host->secret (c->call, "credentials", &bytes, &len) != GPUB_OK || !len))
    return plug_error (c->err, GPUB_E_AUTH,
                       "no credentials: set credentials_file, token_file or vm_token");
  if (!c->s->vm_token)
    SHA256 (bytes, len, of);
  if (!fresh && (*token = recall (c->s, of, host->now_ms (c->call))))
    return GPUB_OK;
  return c->s->vm_token ? ask_vm (c, of, token) : exchange (c, bytes, len, of, token);
}
