/* sign.c - signature version 4
 *
 * libcurl's own depends on its version in what it signs wrongly; this one is a page, and checked
 * against published vectors.
 */
#include "config.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/cleanup.h"
#include "plugins/aws/sign.h"

enum { SHA_SIZE = 32, HEX_SIZE = 2 * SHA_SIZE + 1, SCOPE_SIZE = 160, NAMES_SIZE = 256 };

static void
hex (const unsigned char *bytes, char out[static HEX_SIZE])
{
  for (int i = 0; i < SHA_SIZE; i++)
    snprintf (out + 2 * i, 3, "%02x", bytes[i]);
}

static void
mac (const void *key, size_t key_len, const char *text, unsigned char out[static SHA_SIZE])
{
  if (!HMAC (EVP_sha256 (), key, (int) key_len, (const unsigned char *) text, strlen (text), out,
             NULL))
    abort ();
}

static void
digest_hex (const void *bytes, size_t len, char out[static HEX_SIZE])
{
  unsigned char md[SHA_SIZE];

  if (!EVP_Digest (len ? bytes : "", len, md, NULL, EVP_sha256 (), NULL))
    abort ();
  hex (md, out);
}

void
sign_date (int64_t now_ms, char date[static SIGN_DATE_SIZE])
{
  time_t t = (time_t) (now_ms / 1000);
  struct tm tm;

  gmtime_r (&t, &tm);
  strftime (date, SIGN_DATE_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

static void
header_names (const struct sign *s, char names[static NAMES_SIZE])
{
  size_t n = 0;

  names[0] = '\0';
  for (size_t i = 0; i < s->nheaders && n < NAMES_SIZE; i++)
    n += (size_t) snprintf (names + n, NAMES_SIZE - n, "%s%s", i ? ";" : "", s->headers[i].key);
}

static void
canonical_hex (const struct sign *s, const char *names, char out[static HEX_SIZE])
{
  AUTO_FREE char *text = NULL;
  char body[HEX_SIZE];
  size_t len;
  FILE *f = open_memstream (&text, &len);

  if (!f)
    abort ();
  digest_hex (s->body, s->body_len, body);
  fprintf (f, "%s\n%s\n\n", s->method, s->path);
  for (size_t i = 0; i < s->nheaders; i++)
    fprintf (f, "%s:%s\n", s->headers[i].key, s->headers[i].value);
  fprintf (f, "\n%s\n%s", names, body);
  if (fclose (f))
    abort ();
  digest_hex (text, len, out);
  explicit_bzero (text, len); /* a session token is among the headers */
}

static void
derive (const struct sign *s, const struct keys *k, const char *day,
        unsigned char key[static SHA_SIZE])
{
  char first[4 + KEY_SECRET_MAX];

  snprintf (first, sizeof first, "AWS4%s", k->secret);
  mac (first, strlen (first), day, key);
  explicit_bzero (first, sizeof first);
  mac (key, SHA_SIZE, s->region, key);
  mac (key, SHA_SIZE, s->service, key);
  mac (key, SHA_SIZE, "aws4_request", key);
}

void
sign_v4 (const struct sign *s, const struct keys *k, const char *date,
         char authorization[static SIGN_AUTHORIZATION_SIZE])
{
  char scope[SCOPE_SIZE], names[NAMES_SIZE], request[HEX_SIZE], day[9], signature[HEX_SIZE];
  char text[SCOPE_SIZE + HEX_SIZE + 64];
  unsigned char key[SHA_SIZE];

  snprintf (day, sizeof day, "%.8s", date);
  snprintf (scope, sizeof scope, "%s/%s/%s/aws4_request", day, s->region, s->service);
  header_names (s, names);
  canonical_hex (s, names, request);
  snprintf (text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, request);
  derive (s, k, day, key);
  mac (key, sizeof key, text, key);
  hex (key, signature);
  explicit_bzero (key, sizeof key);
  snprintf (authorization, SIGN_AUTHORIZATION_SIZE,
            "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", k->id, scope,
            names, signature);
}
