/* text.c - bytes of a plugin or a cloud made fit for JSON and logs
 *
 * Jansson refuses a string that is not UTF-8, and a lost listing for one bad byte would be worse
 * than the byte.
 */
#include "config.h"

#include <string.h>

#include <openssl/evp.h>

#include "sdk/host/host.h"

static const char replacement[] = "\xef\xbf\xbd";

/* The length of the sequence at p, 0 when it is none: overlong forms, surrogates and > U+10FFFF are
 * refused. */
static size_t
sequence (const unsigned char *p, size_t n)
{
  static const struct {
    unsigned char lo, hi;
    size_t len;
    unsigned char min2, max2;
  } forms[] = {
    { 0x01, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
    { 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
    { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
  };

  for (size_t i = 0; i < N_ELEMENTS (forms); i++) {
    if (*p < forms[i].lo || *p > forms[i].hi)
      continue;
    if (n < forms[i].len)
      return 0;
    if (forms[i].len > 1 && (p[1] < forms[i].min2 || p[1] > forms[i].max2))
      return 0;
    for (size_t k = 2; k < forms[i].len; k++)
      if ((p[k] & 0xc0) != 0x80)
        return 0;
    return forms[i].len;
  }
  return 0;
}

static size_t
clean (char *out, size_t size, const char *s, size_t max)
{
  const unsigned char *p = (const unsigned char *) s;
  size_t n = strnlen (s, max), at = 0;

  while (n > 0) {
    size_t len = sequence (p, n), put = len ? len : sizeof replacement - 1;

    if (at + put >= size)
      break;
    memcpy (out + at, len ? (const char *) p : replacement, put);
    at += put;
    p += len ? len : 1;
    n -= len ? len : 1;
  }
  out[at] = '\0';
  return at;
}

json_t *
text_json (const char *s, size_t max)
{
  AUTO_FREE char *buf = NULL;
  size_t size = max + sizeof replacement; /* what a replacement adds is cut at the end */

  if (!s)
    return NULL;
  buf = malloc (size);
  if (!buf)
    abort ();
  return json_stringn (buf, clean (buf, size, s, max));
}

void
text_copy (char *out, size_t size, const char *s, size_t max)
{
  clean (out, size, s, max);
  for (char *p = out; *p; p++)
    if ((unsigned char) *p < ' ' || *p == 0x7f)
      *p = ' ';
}

bool
text_is_utf8 (const char *s, size_t len)
{
  const unsigned char *p = (const unsigned char *) s;

  while (len > 0) {
    size_t n = sequence (p, len);

    if (n == 0)
      return false;
    p += n;
    len -= n;
  }
  return true;
}

char *
base64_encode (const void *bytes, size_t len)
{
  char *out = malloc ((len + 2) / 3 * 4 + 1);

  if (!out)
    abort ();
  out[EVP_EncodeBlock ((unsigned char *) out, bytes, (int) len)] = '\0';
  return out;
}

void *
base64_decode (const char *text, size_t *len, struct err *e)
{
  size_t n = strlen (text);
  unsigned char *out = malloc (n / 4 * 3 + 1);
  int got;

  if (!out)
    abort ();
  got = n % 4 == 0 ? EVP_DecodeBlock (out, (const unsigned char *) text, (int) n) : -1;
  if (got < 0) {
    free (out);
    err_set (e, ERR_INVALID, "user_data is not base64");
    return NULL;
  }
  for (size_t i = n; i > 0 && text[i - 1] == '='; i--)
    got--;
  out[got] = '\0';
  *len = (size_t) got;
  return out;
}
