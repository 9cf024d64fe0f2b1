/* util.c - what the plugins of this tree share: options, money, time, keys, bodies */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "plugins/util.h"

enum {
  BODY_DEPTH = 32,
  BODY_TOKENS = 400 * 1000, /* a catalog of 2,000 types has about 150,000 */
  DOLLARS_MAX = 1000 * 1000,
};

int32_t
plug_error (struct gpub_error *err, int32_t kind, const char *fmt, ...)
{
  va_list ap;
  size_t n;

  if (!err)
    return kind;
  va_start (ap, fmt);
  vsnprintf (err->text, sizeof err->text, fmt, ap);
  va_end (ap);
  for (char *p = err->text; *p; p++)
    if ((unsigned char) *p < ' ' || *p == 0x7f)
      *p = ' ';
  for (n = strlen (err->text); n && (err->text[n - 1] == ' ' || err->text[n - 1] == '.'); n--)
    err->text[n - 1] = '\0';
  return kind;
}

void
plug_mask (char *text, const char *secret, size_t len)
{
  if (len == 0)
    return;
  for (char *p; (p = memmem (text, strlen (text), secret, len));)
    memset (p, '*', len);
}

const char *
plug_option (const struct gpub_config *config, const char *name)
{
  for (uint64_t i = 0; i < config->count; i++)
    if (strcmp (config->values[i].key, name) == 0)
      return config->values[i].value;
  return NULL;
}

json_t *
plug_option_list (const struct gpub_config *config, const char *name)
{
  const char *text = plug_option (config, name);

  return text ? json_loads (text, 0, NULL) : json_array ();
}

int32_t
plug_endpoint (const struct gpub_config *config, char **endpoint, struct gpub_error *err)
{
  const char *text = plug_option (config, "endpoint");
  size_t n;

  if (strncmp (text, "https://", 8) != 0 && strncmp (text, "http://", 7) != 0)
    return plug_error (err, GPUB_E_INVALID, "endpoint: '%.100s' is no http:// or https:// URL",
                       text);
  for (n = strlen (text); text[n - 1] == '/';)
    n--;
  *endpoint = strndup (text, n);
  return GPUB_OK;
}

uint32_t
plug_word (const struct plug_word *table, size_t n, const char *word, uint32_t otherwise)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (word, table[i].word) == 0)
      return table[i].value;
  return otherwise;
}

bool
udollar_parse (const char *s, uint64_t *udollar)
{
  uint64_t whole = 0, part = 0, unit = 100000;
  const char *p = s;

  if (!isdigit ((unsigned char) *p))
    return false;
  for (; isdigit ((unsigned char) *p); p++)
    if ((whole = whole * 10 + (uint64_t) (*p - '0')) > DOLLARS_MAX)
      return false;
  if (*p == '.') {
    bool more = false;

    if (!isdigit ((unsigned char) *++p))
      return false;
    for (; isdigit ((unsigned char) *p); p++, unit /= 10) {
      part += unit * (uint64_t) (*p - '0');
      more |= unit == 0 && *p != '0';
    }
    part += more;
  }
  *udollar = whole * 1000000 + part;
  return *p == '\0';
}

bool
rfc3339_parse (const char *text, int64_t *ms)
{
  struct tm tm = { 0 };
  const char *p = strptime (text, "%Y-%m-%dT%H:%M:%S", &tm);
  int millis = 0, unit = 100;
  long offset = 0;

  if (!p)
    return false;
  if (*p == '.')
    for (p++; isdigit ((unsigned char) *p); p++, unit /= 10)
      millis += unit * (*p - '0');
  if (*p == '+' || *p == '-') {
    int h, m, n = 0;

    if (sscanf (p + 1, "%2d:%2d%n", &h, &m, &n) != 2 || n != 5)
      return false;
    offset = (*p == '-' ? -60L : 60L) * (h * 60L + m);
    p += 6;
  } else if (*p == 'Z' || *p == 'z')
    p++;
  else
    return false;
  *ms = ((int64_t) timegm (&tm) - offset) * 1000 + millis;
  return *p == '\0';
}

void
rfc3339_print (int64_t ms, char out[RFC3339_SIZE])
{
  time_t t = (time_t) ((ms + 999) / 1000);
  struct tm tm;

  gmtime_r (&t, &tm);
  strftime (out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

const char *
ssh_key_identity (const char *line, size_t *len)
{
  const char *p = line += strspn (line, " \t\r\n");

  p += strcspn (p, " \t\r\n");
  if (*p != ' ')
    return NULL;
  *len = (size_t) (p - line) + 1 + strcspn (p + 1, " \t\r\n");
  return p[1] && *len > (size_t) (p - line) + 1 ? line : NULL;
}

bool
ssh_key_same (const char *a, const char *b)
{
  size_t na, nb;

  a = ssh_key_identity (a, &na);
  b = ssh_key_identity (b, &nb);
  return a && b && na == nb && memcmp (a, b, na) == 0;
}

char *
base64_encode (const void *bytes, size_t len)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *in = bytes;
  char *out = malloc ((len + 2) / 3 * 4 + 1), *p = out;

  if (!out)
    abort ();
  for (size_t i = 0; i < len; i += 3) {
    size_t have = len - i;
    uint32_t v = (uint32_t) in[i] << 16;

    v |= have > 1 ? (uint32_t) in[i + 1] << 8 : 0;
    v |= have > 2 ? in[i + 2] : 0;
    *p++ = digits[v >> 18];
    *p++ = digits[v >> 12 & 63];
    *p++ = have > 1 ? digits[v >> 6 & 63] : '=';
    *p++ = have > 2 ? digits[v & 63] : '=';
  }
  *p = '\0';
  return out;
}

bool
url_append (char *out, size_t size, const char *text)
{
  size_t n = strlen (out);

  for (; *text; text++) {
    unsigned char c = (unsigned char) *text;
    bool plain = isalnum (c) || strchr ("-._~", c);

    if (n + 4 > size)
      return false;
    n += (size_t) sprintf (out + n, plain ? "%c" : "%%%02X", c);
  }
  return true;
}

json_t *
plug_json (const struct gpub_http_response *r)
{
  if (!r->body || json_scan (r->body, r->body_len, BODY_DEPTH, BODY_TOKENS, NULL) < 0)
    return NULL;
  return json_loadb (r->body, r->body_len, 0, NULL);
}

json_t *
plug_object (const struct gpub_http_response *r)
{
  json_t *j = plug_json (r);

  if (json_is_object (j))
    return j;
  json_decref (j);
  return NULL;
}
