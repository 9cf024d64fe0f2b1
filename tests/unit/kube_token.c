/* kube_token.c - kubeconfigs and join tokens as nobody should write them */
#include "config.h"

#include <zlib.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "join/kube_text.h"
#include "join/kube_token.h"
#include "tests/unit/tap.h"

static const int64_t now_ms = 1800000000000;

/* A self-signed certificate from a day before now_ms for `days`. */
static char *
certificate (int days)
{
  EVP_PKEY *key = EVP_EC_gen ("P-256");
  X509 *x = X509_new ();
  BIO *bio = BIO_new (BIO_s_mem ());
  char *pem, *out;
  long n;

  ASN1_INTEGER_set (X509_get_serialNumber (x), 1);
  ASN1_TIME_set (X509_getm_notBefore (x), now_ms / 1000 - 86400);
  ASN1_TIME_set (X509_getm_notAfter (x), now_ms / 1000 - 86400 + 86400L * days);
  X509_set_pubkey (x, key);
  X509_sign (x, key, EVP_sha256 ());
  PEM_write_bio_X509 (bio, x);
  n = BIO_get_mem_data (bio, &pem);
  out = strndup (pem, (size_t) n);
  BIO_free (bio);
  X509_free (x);
  EVP_PKEY_free (key);
  return out;
}

static char *
encode (const void *bytes, size_t n)
{
  char *out = malloc (n * 4 / 3 + 8);

  EVP_EncodeBlock ((unsigned char *) out, bytes, (int) n);
  return out;
}

static char *
zip (const char *text, size_t len)
{
  size_t cap = len + 1024;
  AUTO_FREE char *out = malloc (cap);
  z_stream z = { .next_in = (Bytef *) (uintptr_t) text, .avail_in = (uInt) len };

  deflateInit2 (&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  z.next_out = (Bytef *) out;
  z.avail_out = (uInt) cap;
  deflate (&z, Z_FINISH);
  deflateEnd (&z);
  return encode (out, z.total_out);
}

static const char *
conf_text (const char *user, const char *token, const char *server, const char *ca_pem)
{
  static char text[8192];
  AUTO_FREE char *ca = encode (ca_pem, strlen (ca_pem));

  snprintf (
      text, sizeof text,
      "apiVersion: v1\nkind: Config\ncurrent-context: k0s\n"
      "clusters:\n- name: k0s\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n"
      "contexts:\n- name: k0s\n  context: {cluster: k0s, user: %s}\n"
      "users:\n- name: %s\n  user: {token: %s}\n",
      server, ca, user, user, token);
  return text;
}

#define GOOD_TOKEN  "abc123.0123456789abcdef"
#define GOOD_SERVER "https://cp.example.net:6443"

static const char *
verdict (const char *text, const char *ca, bool allow_private)
{
  static struct err e;
  struct token_want want = {
    .ca = ca, .port = 6443, .allow_private = allow_private, .now_ms = now_ms
  };
  struct kubeconfig k;
  int rc;

  e = (struct err) ERR_INIT;
  rc = join_token_decode (text, strlen (text), &k, &e);
  if (rc == 0)
    rc = join_token_check (&k, &want, &e);
  kubeconfig_done (&k);
  return rc == 0 ? "ok" : e.code;
}

static void
tokens (void)
{
  AUTO_FREE char *ca = certificate (365), *other = certificate (365), *old = certificate (0);
  AUTO_FREE char *two = malloc (strlen (ca) + strlen (other) + 1);
  const struct {
    const char *user, *token, *server, *ca, *want, *name;
  } t[] = {
    { "kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, ca, "ok", "a good token" },
    { "kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, two, "ok", "a bundle that holds the CA" },
    { "controller-bootstrap", GOOD_TOKEN, GOOD_SERVER, ca, "token-role", "a controller's token" },
    { "kubelet-bootstrap", "ABC123.0123456789abcdef", GOOD_SERVER, ca, "token-format", "capitals" },
    { "kubelet-bootstrap", "abc123.0123456789abcde", GOOD_SERVER, ca, "token-format", "too short" },
    { "kubelet-bootstrap", GOOD_TOKEN, "http://cp.example.net:6443", ca, "token-yaml",
      "plain http" },
    { "kubelet-bootstrap", GOOD_TOKEN, "https://10.0.0.5:6443", ca, "address-private",
      "a pod's address" },
    { "kubelet-bootstrap", GOOD_TOKEN, "https://localhost:6443", ca, "address-private",
      "localhost" },
    { "kubelet-bootstrap", GOOD_TOKEN, "https://cp.example.net:30443", ca, "token-port",
      "another port" },
    { "kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, other, "token-ca-stale", "another CA" },
    { "kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, old, "ca-expired", "a CA that is over" },
    { "kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, "no PEM", "ca-invalid", "a CA that is none" },
  };

  sprintf (two, "%s%s", other, ca);
  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    const char *text = conf_text (t[i].user, t[i].token, t[i].server, t[i].ca);
    AUTO_FREE char *token = zip (text, strlen (text));

    is_str (verdict (token, ca, false), t[i].want, t[i].name);
  }
  const char *lab = conf_text ("kubelet-bootstrap", GOOD_TOKEN, "https://10.0.0.5:6443", ca);
  AUTO_FREE char *token = zip (lab, strlen (lab));
  is_str (verdict (token, ca, true), "ok", "a private address where it is allowed");
  is_str (verdict (token, NULL, true), "ok", "a CA that cannot be compared");
}

static void
hostile (void)
{
  AUTO_FREE char *ca = certificate (365), *bomb = calloc (1, 16 << 20),
                 *zipped = zip (bomb, 16 << 20);
  const char *text = conf_text ("kubelet-bootstrap", GOOD_TOKEN, GOOD_SERVER, ca);
  AUTO_FREE char *good = zip (text, strlen (text)), *padded = NULL, *cut = strdup (good),
                 *plain = encode (text, 40);
  AUTO_FREE char *nothing = zip ("", 0), *list = zip ("- 1\n- 2\n", 8);

  is_str (verdict (zipped, NULL, true), "token-gzip", "a gzip bomb is refused");
  is_str (verdict ("", NULL, true), "token-base64", "nothing");
  is_str (verdict (" \n ", NULL, true), "token-base64", "only spaces");
  is_str (verdict ("!!!!", NULL, true), "token-base64", "no base64");
  is_str (verdict (plain, NULL, true), "token-gzip", "base64 of something that is no gzip");
  cut[strlen (cut) / 2 / 4 * 4] = '\0';
  is_str (verdict (cut, NULL, true), "token-gzip", "half a token");
  is_str (verdict (nothing, NULL, true), "token-yaml", "gzip of nothing");
  is_str (verdict (list, NULL, true), "token-yaml", "gzip of a list");
  ok (asprintf (&padded, "\n  %s \r\n", good) > 0, "spaces around");
  is_str (verdict (padded, ca, false), "ok", "spaces around a token do not matter");
}

/* Laughs: ten levels of ten aliases. */
static char *
laughs (void)
{
  static char text[2048];
  char *p = text;

  p += sprintf (p, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
  for (int i = 1; i < 10; i++) {
    p += sprintf (p, "a%d: &a%d [", i, i);
    for (int k = 0; k < 10; k++)
      p += sprintf (p, "%s*a%d", k ? "," : "", i - 1);
    p += sprintf (p, "]\n");
  }
  return text;
}

static void
kubeconfigs (void)
{
#define HEAD  "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
#define PLANE "clusters: [{name: k, cluster: {server: 'https://a.b'}}]\n"
  static const struct {
    const char *text, *want;
  } t[] = {
    { "", "nothing in it" },
    { "{", "YAML" },
    { "just words", "current-context" },
    { "current-context: 5\n", "contexts has no entry named \"5\"" },
    { HEAD, "clusters has no entry named \"k\"" },
    { HEAD PLANE, "users has no entry named \"u\"" },
#define EXEC(more)                                                                                 \
 HEAD PLANE "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, " more   \
            "}}}]\n"
    { HEAD PLANE "users: [{name: u, user: {exec: {command: aws}}}]\n", "neither v1 nor v1beta1" },
    { EXEC ("interactiveMode: Never"), "a name or an absolute path" },
    { EXEC ("interactiveMode: Never, command: ./aws"), "a name or an absolute path" },
    { EXEC ("command: aws"), "needs an interactiveMode" },
    { EXEC ("command: aws, interactiveMode: Always"), "ask a person" },
    { HEAD PLANE "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n", "auth-provider" },
    { HEAD PLANE "users: [{name: u, user: {client-certificate-data: Zg==}}]\n", "needs its key" },
    { HEAD PLANE "users: [{name: u, user: {client-certificate-data: '%%'}}]\n", "no base64" },
    { HEAD PLANE "users: [{name: u, user: {client-key: relative.key}}]\n", "absolute" },
    { HEAD PLANE "users: [{name: u, user: {client-key: /nonexistent/key}}]\n", "No such file" },
    { HEAD PLANE "users: [{name: u, user: {client-key: /dev/zero}}]\n", "no file of at most" },
    { HEAD PLANE "users: [{name: u, user: {token: \"a\\nb\"}}]\n", "line break" },
    { HEAD PLANE "users: [{name: u, user: {token: a, token: b}}]\n", "twice" },
    { HEAD
      "clusters: [{name: k, cluster: {server: 'https://a.b', insecure-skip-tls-verify: true}}]\n"
      "users: [{name: u, user: {}}]\n",
      "insecure-skip-tls-verify" },
    { HEAD "clusters: [{name: k, cluster: {server: 'http://a.b'}}]\nusers: [{name: u, user: {}}]\n",
      "no https URL" },
    { HEAD "clusters: nothing\n", "no entry" },
  };
  struct kubeconfig k;

  for (size_t i = 0; i < N_ELEMENTS (t); i++) {
    struct err e = ERR_INIT;
    int rc = kubeconfig_parse (t[i].text, strlen (t[i].text), KUBECONFIG_OURS, &k, &e);

    ok (rc < 0 && strstr (e.text, t[i].want), "kubeconfig %zu is refused: %s", i, e.text);
    kubeconfig_done (&k);
  }
  static const char *const foreign[] = {
    EXEC ("command: aws, interactiveMode: Never"),
    HEAD PLANE "users: [{name: u, user: {tokenFile: /etc/hostname}}]\n",
    HEAD PLANE "users: [{name: u, user: {client-key: /etc/hostname}}]\n",
    HEAD PLANE "users: [{name: u, user: {token: t, client-certificate: /etc/hostname}}]\n",
    HEAD "clusters: [{name: k, cluster: {server: 'https://a.b', certificate-authority: "
         "/etc/hostname}}]\n"
         "users: [{name: u, user: {}}]\n",
  };

  for (size_t i = 0; i < N_ELEMENTS (foreign); i++) {
    struct err e = ERR_INIT;
    int rc = kubeconfig_parse (foreign[i], strlen (foreign[i]), KUBECONFIG_FOREIGN, &k, &e);

    ok (rc < 0 && strcmp (e.code, "kubeconfig-foreign") == 0,
        "a kubeconfig from a cluster may name no file and no program: %s", e.text);
    kubeconfig_done (&k);
  }
  struct err e = ERR_INIT;
  char *text = EXEC ("command: aws, interactiveMode: Never");
  is_num (kubeconfig_parse (text, strlen (text), KUBECONFIG_OURS, &k, &e), 0, "ours may");
  is_str (json_string_value (json_object_get (k.exec, "command")), "aws", "name a program");
  kubeconfig_done (&k);
  text = laughs ();
  ok (kubeconfig_parse (text, strlen (text), KUBECONFIG_OURS, &k, &e) < 0 &&
          strstr (e.text, "nodes"),
      "aliases of aliases: %s", e.text);
  kubeconfig_done (&k);
  text = HEAD PLANE "users: [{name: u, user: {token: 12345}}]\n";
  is_num (kubeconfig_parse (text, strlen (text), KUBECONFIG_OURS, &k, &e), 0, "a token of digits");
  is_str (k.token, "12345", "stays a string");
  is_str (k.server, "https://a.b", "with its server");
  kubeconfig_done (&k);
}

static void
typed (void)
{
  const char *text = "a: true\nb: 'true'\nc: 0700x\nd: 12\ne: \"12\"\nf: ~\ng: {h: [1, two]}\n";
  struct err e = ERR_INIT;
  AUTO_JSON json_t *j = yaml_parse (text, strlen (text), true, &e);
  AUTO_FREE char *out = json_dumps (j, JSON_COMPACT | JSON_SORT_KEYS);

  is_str (out,
          "{\"a\":true,\"b\":\"true\",\"c\":\"0700x\",\"d\":12,\"e\":\"12\",\"f\":null,\"g\":{"
          "\"h\":[1,\"two\"]}}",
          "plain scalars have types, quoted ones do not");
}

int
main (void)
{
  tokens ();
  hostile ();
  kubeconfigs ();
  typed ();
  return done ();
}
