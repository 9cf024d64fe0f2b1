/* kube_text.c - versions, addresses, times and base64, by table */
#include "config.h"

#include "join/kube_text.h"
#include "tests/unit/tap.h"

static void
versions (void)
{
  static const struct {
    const char *text;
    int ok, major, minor, patch, k0s;
  } t[] = {
    { "v1.34.10+k0s.0", 1, 1, 34, 10, 0 },
    { "v1.34.10-k0s.2", 1, 1, 34, 10, 2 },
    { "v1.34.10+k0s", 1, 1, 34, 10, -1 },
    { "v1.31.4-eks-2d5f260", 1, 1, 31, 4, -1 },
    { "v1.34.10", 1, 1, 34, 10, -1 },
    { "1.34.10", 0, 0, 0, 0, 0 },
    { "v1.34", 0, 0, 0, 0, 0 },
    { "v1.34.", 0, 0, 0, 0, 0 },
    { "v1..3", 0, 0, 0, 0, 0 },
    { "v1.34.99999999999", 0, 0, 0, 0, 0 },
    { "v-1.34.1", 0, 0, 0, 0, 0 },
    { "", 0, 0, 0, 0, 0 },
  };
  struct kube_version v;

  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    int good = kube_version_parse (t[i].text, &v) == 0;

    if (good && t[i].ok)
      good = v.major == t[i].major && v.minor == t[i].minor && v.patch == t[i].patch &&
             v.k0s == t[i].k0s;
    ok (good == t[i].ok, "version \"%s\" is %s", t[i].text, t[i].ok ? "read" : "refused");
  }
  ok (kube_version_parse (NULL, &v) < 0, "no version is refused");
}

static void
skew (void)
{
  static const struct {
    const char *worker, *plane;
    int ok;
  } t[] = {
    { "v1.34.4+k0s.0", "v1.34.4-k0s.0", 1 },  { "v1.34.3+k0s.0", "v1.34.4-k0s.0", 1 },
    { "v1.34.5+k0s.0", "v1.34.4-k0s.0", 0 },  { "v1.35.0+k0s.0", "v1.34.9-k0s.0", 0 },
    { "v1.31.14+k0s.0", "v1.34.4-k0s.0", 1 }, { "v1.30.14+k0s.0", "v1.34.4-k0s.0", 0 },
    { "v2.0.0+k0s.0", "v1.34.4-k0s.0", 0 },   { "v1.34.4+k0s.1", "v1.34.4-k0s.0", 1 },
  };
  struct kube_version w, p;

  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    kube_version_parse (t[i].worker, &w);
    kube_version_parse (t[i].plane, &p);
    ok ((kube_version_skew (&w, &p) == NULL) == t[i].ok, "worker %s below %s is %s", t[i].worker,
        t[i].plane, t[i].ok ? "allowed" : "refused");
  }
  kube_version_parse ("v1.34.4+k0s.0", &w);
  kube_version_parse ("v1.34.4", &p);
  is_num (kube_version_cmp (&w, &p), 0, "no suffix is the same as k0s.0");
}

static void
hosts (void)
{
  static const struct {
    const char *host;
    int hidden;
  } t[] = {
    { "10.1.2.3", 1 },
    { "172.31.255.255", 1 },
    { "172.32.0.1", 0 },
    { "192.168.0.1", 1 },
    { "100.64.0.1", 1 },
    { "100.128.0.1", 0 },
    { "127.0.0.1", 1 },
    { "169.254.169.254", 1 },
    { "0.0.0.0", 1 },
    { "224.0.0.1", 1 },
    { "203.0.113.7", 0 },
    { "::1", 1 },
    { "::", 1 },
    { "fd00::1", 1 },
    { "fe80::1", 1 },
    { "::ffff:10.0.0.1", 1 },
    { "::ffff:8.8.8.8", 0 },
    { "2a01:4f8::1", 0 },
    { "localhost", 1 },
    { "kmc-a.spokes.svc", 1 },
    { "kmc-a.spokes.svc.cluster.local", 1 },
    { "cp.example.net", 0 },
    { "cp.LOCAL", 1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (t); i++)
    ok (host_is_private (t[i].host) == t[i].hidden, "%s is %s", t[i].host,
        t[i].hidden ? "private" : "public");
}

static void
urls (void)
{
  static const struct {
    const char *url, *host;
    int port;
  } t[] = {
    { "https://cp.example.net:6443", "cp.example.net", 6443 },
    { "https://cp.example.net", "cp.example.net", 443 },
    { "https://cp.example.net:6443/k8s/clusters/c-1", "cp.example.net", 6443 },
    { "https://[2a01::1]:6443", "2a01::1", 6443 },
    { "https://[2a01::1]", "2a01::1", 443 },
    { "http://cp.example.net", NULL, 0 },
    { "https://", NULL, 0 },
    { "https://:6443", NULL, 0 },
    { "https://a:0", NULL, 0 },
    { "https://a:65536", NULL, 0 },
    { "https://a:64x", NULL, 0 },
    { "https://u:p@a", NULL, 0 },
    { "https://u@a", NULL, 0 },
    { "https://[2a01::1", NULL, 0 },
    { "file:///etc/passwd", NULL, 0 },
  };
  char host[256];
  int port;

  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    int rc = https_split (t[i].url, host, &port);

    ok (t[i].host ? rc == 0 && strcmp (host, t[i].host) == 0 && port == t[i].port : rc < 0,
        "%s is %s", t[i].url, t[i].host ? "split" : "refused");
  }
  ok (https_split (NULL, host, &port) < 0, "no URL is refused");
}

static void
base64 (void)
{
  static const struct {
    const char *text, *bytes;
  } t[] = {
    { "", "" },          { "Zg==", "f" },          { "Zm8=", "fo" },     { "Zm9v", "foo" },
    { "Zm\n9v", "foo" }, { "Zm9vYg==\n", "foob" }, { "Zg=", NULL },      { "Zg", NULL },
    { "Z", NULL },       { "Zm 9v", NULL },        { "Zg==Zg==", NULL }, { "Zm9v=", NULL },
    { "Zm9-", NULL },    { "====", NULL },
  };

  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    size_t n = 99;
    AUTO_FREE char *got = base64_decode (t[i].text, strlen (t[i].text), &n);

    ok (t[i].bytes ? got && n == strlen (t[i].bytes) && strcmp (got, t[i].bytes) == 0 : !got,
        "base64 %zu is %s", i, t[i].bytes ? "decoded" : "refused");
  }
}

static void
times (void)
{
  is_num (rfc3339_ms ("1970-01-01T00:00:01Z"), 1000, "a second");
  is_num (rfc3339_ms ("1970-01-01T00:00:01.250000Z"), 1250, "with microseconds");
  is_num (rfc3339_ms ("1970-01-01T02:00:00+02:00"), 0, "an offset to the east");
  is_num (rfc3339_ms ("1969-12-31T23:30:00-00:30"), 0, "an offset to the west");
  is_num (rfc3339_ms ("2026-11-30T12:00:00Z"), 1796040000000, "a day of today");
  is_num (rfc3339_ms ("yesterday"), -1, "no time");
  is_num (rfc3339_ms ("2026-11-30T12:00:00"), -1, "a time without a zone");
  is_num (rfc3339_ms (NULL), -1, "nothing");
  is_num (quantity_int ("8"), 8, "a quantity");
  is_num (quantity_int ("8Gi"), -1, "a quantity with a unit");
  is_num (quantity_int ("-1"), -1, "a negative quantity");
  is_num (quantity_int (NULL), -1, "no quantity");
}

int
main (void)
{
  versions ();
  skew ();
  hosts ();
  urls ();
  base64 ();
  times ();
  return done ();
}
