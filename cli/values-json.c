/* values-json.c - what people type that becomes a JSON object: GPUs, ports, hosts, what to do on
 * failure */
#include "config.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#include "cli/values.h"

enum { GPU_MAX = 1024, PORT_MAX = 65535, MODEL_MAX = 64 };

/* N, MIN+ or MIN-MAX; max 0 means no upper bound. */
static int
gpu_count (const char *s, int64_t *min, int64_t *max)
{
  char low[8];
  size_t n = strspn (s, "0123456789");

  if (n == 0 || n >= sizeof low)
    return -1;
  memcpy (low, s, n);
  low[n] = '\0';
  if (parse_count (low, 1, GPU_MAX, min, NULL) < 0)
    return -1;
  *max = *min;
  if (!s[n])
    return 0;
  if (strcmp (s + n, "+") == 0) {
    *max = 0;
    return 0;
  }
  if (s[n] != '-' || parse_count (s + n + 1, 1, GPU_MAX, max, NULL) < 0)
    return -1;
  return *min <= *max ? 0 : -1;
}

json_t *
parse_gpu (const char *s, struct err *e)
{
  const char *colon = strrchr (s, ':');
  size_t len = colon ? (size_t) (colon - s) : strlen (s);
  int64_t min = 1, max = 1;

  if (len == 0 || len > MODEL_MAX || memchr (s, ':', len) || strspn (s, " ") >= len) {
    err_set (e, ERR_INVALID, "'%.60s' is not a GPU such as H100, H100:2, H100:2+ or H100:2-4", s);
    return NULL;
  }
  if (colon && gpu_count (colon + 1, &min, &max) < 0) {
    err_set (e, ERR_INVALID, "'%.20s' in '%.60s' is not a count such as 2, 2+ or 2-4", colon + 1,
             s);
    return NULL;
  }
  return json_pack ("{s:s%, s:I, s:I}", "model", s, len, "min", (json_int_t) min, "max",
                    (json_int_t) max);
}

json_t *
parse_on_failure (const char *s, struct err *e)
{
  int64_t ms;

  if (strcmp (s, "release") == 0 || strcmp (s, "keep") == 0)
    return json_pack ("{s:s}", "action", s);
  if (strncmp (s, "keep:", 5) == 0 && parse_duration (s + 5, &ms, NULL) == 0)
    return json_pack ("{s:s, s:I}", "action", "keep", "keep_ms", (json_int_t) ms);
  err_set (e, ERR_INVALID, "'%.60s' is neither keep, keep:1h nor release", s);
  return NULL;
}

static int
check_cidr (const char *s)
{
  const char *slash = strchr (s, '/');
  char address[INET6_ADDRSTRLEN];
  unsigned char bits[16];
  int64_t prefix;
  int family = strchr (s, ':') ? AF_INET6 : AF_INET;

  if (!slash || (size_t) (slash - s) >= sizeof address)
    return -1;
  memcpy (address, s, (size_t) (slash - s));
  address[slash - s] = '\0';
  if (inet_pton (family, address, bits) != 1)
    return -1;
  return parse_count (slash + 1, 0, family == AF_INET6 ? 128 : 32, &prefix, NULL);
}

/* FROM[-TO], len bytes of it */
static int
port_range (const char *s, size_t len, int64_t *from, int64_t *to)
{
  char text[16], *dash;

  if (len >= sizeof text)
    return -1;
  memcpy (text, s, len);
  text[len] = '\0';
  dash = strchr (text, '-');
  if (dash)
    *dash++ = '\0';
  if (parse_count (text, 1, PORT_MAX, from, NULL) < 0)
    return -1;
  *to = *from;
  if (dash && parse_count (dash, 1, PORT_MAX, to, NULL) < 0)
    return -1;
  return *from <= *to ? 0 : -1;
}

json_t *
parse_port (const char *s, struct err *e)
{
  bool udp = strncmp (s, "udp:", 4) == 0;
  const char *p = udp ? s + 4 : s, *slash = strchr (p, '/');
  const char *cidr = slash ? slash + 1 : "0.0.0.0/0";
  int64_t from, to;

  if (port_range (p, strcspn (p, "/"), &from, &to) < 0 || check_cidr (cidr) < 0) {
    err_set (e, ERR_INVALID,
             "'%.60s' is not a port such as 8080, 8000-8010, 443/10.0.0.0/8 or udp:51820", s);
    return NULL;
  }
  return json_pack ("{s:s, s:I, s:I, s:s}", "proto", udp ? "udp" : "tcp", "from", (json_int_t) from,
                    "to", (json_int_t) to, "cidr", cidr);
}

json_t *
parse_host (const char *s, struct err *e)
{
  const char *at = strchr (s, '@'), *host = at ? at + 1 : "", *colon;
  size_t len = strlen (host);
  int64_t port = 22;
  int bad = !at || at == s;

  if (*host == '[') {
    len = strcspn (++host, "]");
    colon = host[len] ? host + len + 1 : NULL;
    bad |= !colon || (*colon && *colon != ':');
  } else {
    colon = strchr (host, ':') == strrchr (host, ':') ? strchr (host, ':') : NULL;
    len = colon ? (size_t) (colon - host) : len;
  }
  if (colon && *colon)
    bad |= parse_count (colon + 1, 1, PORT_MAX, &port, NULL) < 0;
  if (bad || len == 0 || len > 253) {
    err_set (e, ERR_INVALID,
             "'%.60s' is not a host such as root@10.0.0.5, ubuntu@gpu.example.net:2222 or "
             "root@[2001:db8::5]:22",
             s);
    return NULL;
  }
  return json_pack ("{s:s%, s:s%, s:I}", "user", s, (size_t) (at - s), "address", host, len, "port",
                    (json_int_t) port);
}
