/* jwt.c - the assertion with which a service account asks for a token: RS256, valid for a minute */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "core/json.h"
#include "plugins/nebius/nebius.h"

enum { VALID_S = 60, CREDENTIALS_MAX = 32 << 10, SIGNATURE_MAX = 2048 };

struct account {
  const char *kid, *id, *pem;
};

static bool
account_read (const json_t *file, struct account *a, const char **why)
{
  const json_t *j = json_object_get (file, "subject-credentials");
  const char *type = json_str (j, "type", "");

  *a = (struct account){ json_str (j, "kid", ""), json_str (j, "iss", ""),
                         json_str (j, "private-key", "") };
  *why = NULL;
  if (!json_is_object (j))
    *why = "it is no JSON object with subject-credentials";
  else if (*type && strcmp (type, "JWT") != 0)
    *why = "its type is not JWT";
  else if (strcmp (json_str (j, "alg", "RS256"), "RS256") != 0)
    *why = "its alg is not RS256";
  else if (!*a->kid || !*a->id || !*a->pem)
    *why = "it lacks kid, iss or private-key";
  else if (strcmp (a->id, json_str (j, "sub", "")) != 0)
    *why = "its iss and sub differ";
  return !*why;
}

/* {"alg",...}.{"iss",...}, as the signature covers it. */
static char *
signed_part (const struct account *a, int64_t now_s)
{
  json_auto_t *head = json_pack ("{s:s, s:s, s:s}", "alg", "RS256", "typ", "JWT", "kid", a->kid);
  json_auto_t *claims = json_pack ("{s:s, s:s, s:s, s:I, s:I}", "iss", a->id, "sub", a->id, "aud",
                                   "token-service.iam.new.nebiuscloud.net", "iat",
                                   (json_int_t) now_s, "exp", (json_int_t) now_s + VALID_S);
  AUTO_FREE char *one = json_dumps (head, JSON_COMPACT), *two = json_dumps (claims, JSON_COMPACT);
  AUTO_FREE char *a64 = one ? base64url_encode (one, strlen (one)) : NULL,
                 *b64 = two ? base64url_encode (two, strlen (two)) : NULL;
  char *out = NULL;

  if (!a64 || !b64 || asprintf (&out, "%s.%s", a64, b64) < 0)
    return NULL;
  return out;
}

static bool
sign (EVP_PKEY *key, const char *text, unsigned char *out, size_t *len)
{
  EVP_MD_CTX *md = EVP_MD_CTX_new ();
  bool good = md && EVP_DigestSignInit (md, NULL, EVP_sha256 (), NULL, key) == 1 &&
              EVP_DigestSign (md, out, len, (const unsigned char *) text, strlen (text)) == 1;

  EVP_MD_CTX_free (md);
  return good;
}

/* No pass phrase is ever asked for. */
static int
no_phrase (char *buf, int size, int writing, void *ctx)
{
  (void) buf, (void) size, (void) writing, (void) ctx;
  return -1;
}

static EVP_PKEY *
key_read (const char *pem, const char **why)
{
  BIO *bio = BIO_new_mem_buf (pem, -1);
  EVP_PKEY *key = PEM_read_bio_PrivateKey (bio, NULL, no_phrase, NULL);

  BIO_free (bio);
  ERR_clear_error ();
  if (key && EVP_PKEY_get_base_id (key) == EVP_PKEY_RSA && EVP_PKEY_get_size (key) <= SIGNATURE_MAX)
    return key;
  *why = key ? "its private key is no RSA key" : "its private key cannot be read";
  EVP_PKEY_free (key);
  return NULL;
}

static char *
make (const struct account *a, int64_t now_s, const char **why)
{
  EVP_PKEY *key = key_read (a->pem, why);
  AUTO_FREE char *part = key ? signed_part (a, now_s) : NULL, *tail = NULL;
  unsigned char signature[SIGNATURE_MAX];
  size_t len = sizeof signature;
  char *out = NULL;

  if (!key)
    return NULL;
  *why = "it cannot be signed with";
  if (part && sign (key, part, signature, &len)) {
    tail = base64url_encode (signature, len);
    if (asprintf (&out, "%s.%s", part, tail) < 0)
      out = NULL;
  }
  ERR_clear_error ();
  EVP_PKEY_free (key);
  return out;
}

char *
jwt_make (const char *credentials, size_t len, int64_t now_s, const char **why)
{
  json_auto_t *file = NULL;
  struct account a;

  *why = "it is no JSON object with subject-credentials";
  if (len > CREDENTIALS_MAX || json_scan (credentials, len, 8, 256, NULL) < 0)
    return NULL;
  file = json_loadb (credentials, len, 0, NULL);
  return account_read (file, &a, why) ? make (&a, now_s, why) : NULL;
}
