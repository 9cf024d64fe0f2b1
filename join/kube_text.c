/* kube_text.c - base64, RFC 3339, versions, addresses */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#include "join/kube_text.h"

bool
name_ok (const char *what, const char *name, struct err *e)
{
  size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-.");
  bool ends = n > 0 && isalnum ((unsigned char) name[0]) && isalnum ((unsigned char) name[n - 1]);

  if (ends && n <= 253 && !name[n] && !strstr (name, ".."))
    return true;
  err_set (e, ERR_INVALID, "%s \"%.70s\" is no DNS name of lower-case letters, digits, '-' and '.'",
           what, name);
  return false;
}

static int
base64_digit (char c)
{
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *
base64_decode (const char *text, size_t len, size_t *out_len)
{
  AUTO_FREE char *out = malloc (len / 4 * 3 + 4);
  uint32_t bits = 0;
  size_t n = 0, digits = 0, pads = 0;

  if (!out)
    abort ();
  for (size_t i = 0; i < len; i++) {
    int d = base64_digit (text[i]);

    if (text[i] == '\r' || text[i] == '\n')
      continue;
    if (text[i] == '=') {
      pads++;
      continue;
    }
    if (d < 0 || pads)
      return NULL;
    bits = bits << 6 | (uint32_t) d;
    if (++digits % 4 == 0) {
      out[n++] = (char) (bits >> 16);
      out[n++] = (char) (bits >> 8);
      out[n++] = (char) bits;
    }
  }
  if ((digits + pads) % 4 != 0 || pads > 2 || digits % 4 == 1)
    return NULL;
  if (digits % 4 >= 2)
    out[n++] = (char) (bits >> (digits % 4 == 2 ? 4 : 10));
  if (digits % 4 == 3)
    out[n++] = (char) (bits >> 2);
  out[n] = '\0';
  *out_len = n;
  return STEAL (out);
}

int64_t
rfc3339_ms (const char *text)
{
  struct tm tm = { 0 };
  const char *p = text ? strptime (text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
  int64_t ms = 0, scale = 100;
  int h, m;

  if (!p)
    return -1;
  if (*p == '.')
    for (p++; isdigit ((unsigned char) *p); p++, scale /= 10)
      ms += (*p - '0') * scale;
  ms += (int64_t) timegm (&tm) * 1000;
  if (*p == 'Z' || *p == 'z')
    return p[1] ? -1 : ms;
  if ((*p != '+' && *p != '-') || sscanf (p + 1, "%2d:%2d", &h, &m) != 2)
    return -1;
  return ms - (*p == '+' ? 1 : -1) * (h * 60 + m) * 60000LL;
}

int64_t
quantity_int (const char *text)
{
  int64_t n = 0;

  if (!text || !*text || strlen (text) > 9)
    return -1;
  for (; *text; text++) {
    if (!isdigit ((unsigned char) *text))
      return -1;
    n = n * 10 + (*text - '0');
  }
  return n;
}

/* Reads digits; -1 when there are none or too many. */
static int
number (const char **p)
{
  int n = 0, digits = 0;

  for (; isdigit ((unsigned char) **p); (*p)++, digits++)
    if (digits < 7)
      n = n * 10 + (**p - '0');
  return digits >= 1 && digits <= 6 ? n : -1;
}

int
kube_version_parse (const char *text, struct kube_version *v)
{
  int *const part[] = { &v->major, &v->minor, &v->patch };
  const char *p = text;

  if (!p || *p++ != 'v')
    return -1;
  for (int i = 0; i < 3; i++) {
    if (i > 0 && *p++ != '.')
      return -1;
    *part[i] = number (&p);
    if (*part[i] < 0)
      return -1;
  }
  v->k0s = -1;
  if (!*p)
    return 0;
  if (*p != '+' && *p != '-')
    return -1;
  p++;
  if (strncmp (p, "k0s.", 4) == 0) {
    p += 4;
    v->k0s = number (&p);
  }
  return 0; /* other suffixes (-eks-…, -rc.1, +k3s1) say nothing that skew depends on */
}

int
kube_version_cmp (const struct kube_version *a, const struct kube_version *b)
{
  if (a->major != b->major)
    return a->major - b->major;
  if (a->minor != b->minor)
    return a->minor - b->minor;
  if (a->patch != b->patch)
    return a->patch - b->patch;
  return (a->k0s > 0 ? a->k0s : 0) - (b->k0s > 0 ? b->k0s : 0);
}

const char *
kube_version_skew (const struct kube_version *worker, const struct kube_version *plane)
{
  if (worker->major != plane->major || worker->minor > plane->minor ||
      (worker->minor == plane->minor && worker->patch > plane->patch))
    return "a worker may not be newer than its control plane";
  if (worker->minor + 3 < plane->minor)
    return "a worker may be at most three minor versions older than its control plane";
  return NULL;
}

static bool
ipv4_is_private (uint32_t a)
{
  static const struct {
    uint32_t net;
    int bits;
  } nets[] = {
    { 0x00000000, 8 },  { 0x0a000000, 8 },  { 0x64400000, 10 }, { 0x7f000000, 8 },
    { 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0a80000, 16 }, { 0xe0000000, 3 },
  };

  for (size_t i = 0; i < N_ELEMENTS (nets); i++)
    if ((a ^ nets[i].net) >> (32 - nets[i].bits) == 0)
      return true;
  return false;
}

static bool
ipv6_is_private (const unsigned char *a)
{
  static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff }, zero[15];

  if (memcmp (a, mapped, sizeof mapped) == 0)
    return ipv4_is_private ((uint32_t) a[12] << 24 | a[13] << 16 | a[14] << 8 | a[15]);
  if (memcmp (a, zero, sizeof zero) == 0)
    return true; /* :: and ::1 */
  return (a[0] & 0xfe) == 0xfc || a[0] == 0xff || (a[0] == 0xfe && (a[1] & 0x80));
}

static bool
ends_with (const char *s, const char *end)
{
  size_t n = strlen (s), m = strlen (end);

  return n >= m && strcasecmp (s + n - m, end) == 0;
}

bool
host_is_private (const char *host)
{
  static const char *const inside[] = { ".local", ".svc", ".localhost", ".internal",
                                        ".localdomain" };
  struct in6_addr six;
  struct in_addr four;

  if (inet_pton (AF_INET, host, &four) == 1)
    return ipv4_is_private (ntohl (four.s_addr));
  if (inet_pton (AF_INET6, host, &six) == 1)
    return ipv6_is_private (six.s6_addr);
  if (!strchr (host, '.'))
    return true;
  for (size_t i = 0; i < N_ELEMENTS (inside); i++)
    if (ends_with (host, inside[i]))
      return true;
  return false;
}

int
https_split (const char *url, char *host, int *port)
{
  const char *p = url, *end;
  size_t n;

  if (!p || strncmp (p, "https://", 8) != 0)
    return -1;
  p += 8;
  if (*p == '[') {
    end = strchr (++p, ']');
    if (!end)
      return -1;
  } else {
    end = p + strcspn (p, ":/?#");
  }
  n = (size_t) (end - p);
  if (n == 0 || n > 255 || memchr (p, '@', n))
    return -1;
  memcpy (host, p, n);
  host[n] = '\0';
  end += *end == ']';
  *port = 443;
  if (*end == ':') {
    end++;
    *port = number (&end);
    if (*port < 1 || *port > 65535)
      return -1;
  }
  return *end == '\0' || *end == '/' ? 0 : -1;
}

char *
base64_encode (const void *bytes, size_t len)
{
  char *out = malloc (4 * (len / 3 + 1) + 1);

  if (!out)
    abort ();
  EVP_EncodeBlock ((unsigned char *) out, bytes, (int) len);
  return out;
}
