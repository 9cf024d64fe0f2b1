/* kube_bootstrap.c - join tokens of a k0s cluster that no operator hosts
 *
 * What `k0s token create` does on a controller can be done through the API: a bootstrap token is a
 * Secret in kube-system, and a k0s join token is a kubeconfig that holds it.  The Secret's name
 * must be the token's id, so ours are found by their labels.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <zlib.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_bootstrap.h"
#include "join/kube_text.h"
#include "join/kube_token.h"

enum { ID = 6, SECRET = 16, MIN_LEFT_MS = 60000, MIN_EXPIRY_S = 120, DEFAULT_EXPIRY_S = 900 };

#define PATH    "/api/v1/namespaces/kube-system/secrets"
#define TYPE    "bootstrap.kubernetes.io/token"
#define OWNER   "gpubroker"
#define MACHINE "gpubroker.io/machine"

struct boot {
  struct plane plane;
  const char *machine;
  char id[ID + 1], secret[SECRET + 1]; /* "": none yet */
  int64_t ends_ms;
  bool keep; /* a token that is still good */
  struct err *e;
};

static int
boot_open (struct boot *b, struct kube_call *c, struct err *e)
{
  memset (b, 0, sizeof *b);
  b->e = e;
  b->machine = json_str (c->args, "machine", "");
  return name_ok ("machine", b->machine, e) ? plane_open (&b->plane, c, e) : -1;
}

static void
boot_done (struct boot *b)
{
  explicit_bzero (b->secret, sizeof b->secret);
  plane_done (&b->plane);
}

/* ---- what is there ---- */

static void
take_text (const json_t *secret, const char *key, char *out, size_t size)
{
  size_t len;
  char *text = secret_bytes (secret, key, &len);

  snprintf (out, size, "%s", text ? text : "");
  if (text)
    explicit_bzero (text, len);
  free (text);
}

/* One that is good for a while yet is used again; everything else of that machine's goes. */
static int
look (json_t *secret, void *arg)
{
  struct boot *b = arg;
  char ends[40];

  take_text (secret, "expiration", ends, sizeof ends);
  b->ends_ms = rfc3339_ms (ends);
  if (b->keep && !b->id[0] && b->ends_ms > clock_wall_ms () + MIN_LEFT_MS) {
    take_text (secret, "token-id", b->id, sizeof b->id);
    take_text (secret, "token-secret", b->secret, sizeof b->secret);
    if (strlen (b->id) == ID && strlen (b->secret) == SECRET)
      return 0;
    b->id[0] = '\0';
  }
  return kube_delete (b->plane.home, b->e, PATH "/%s", json_str_at (secret, "metadata.name", ""));
}

static int
look_at_all (struct boot *b)
{
  char path[400];

  snprintf (path, sizeof path,
            PATH "?labelSelector=app.kubernetes.io%%2Fmanaged-by%%3D" OWNER
                 ",gpubroker.io%%2Fmachine%%3D%.253s",
            b->machine);
  return kube_each (b->plane.home, path, look, b, b->e);
}

/* ---- a new one ---- */

/* Letters and digits, each as likely as the other. */
static void
random_text (char *out, size_t n)
{
  static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char byte;

  while (n > 0) {
    if (getrandom (&byte, 1, 0) != 1)
      abort ();
    if (byte >= 252) /* 7 times 36 */
      continue;
    *out++ = alphabet[byte % 36];
    n--;
  }
  *out = '\0';
}

static json_t *
secret_body (const struct boot *b, const struct kube_call *c)
{
  json_t *labels = json_deep_copy (json_object_get (c->args, "labels")), *body;
  char name[40], ends[32];
  time_t seconds = (time_t) (b->ends_ms / 1000);
  struct tm tm;

  if (!labels)
    labels = json_object ();
  json_put_str (labels, "app.kubernetes.io/managed-by", OWNER);
  json_put_str (labels, MACHINE, b->machine);
  snprintf (name, sizeof name, "bootstrap-token-%s", b->id);
  gmtime_r (&seconds, &tm);
  strftime (ends, sizeof ends, "%Y-%m-%dT%H:%M:%SZ", &tm);
  body =
      json_pack ("{s:s, s:s, s:s, s:{s:s, s:s, s:o}}", "apiVersion", "v1", "kind", "Secret", "type",
                 TYPE, "metadata", "name", name, "namespace", "kube-system", "labels", labels);
  json_object_set_new (body, "stringData",
                       json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "token-id", b->id,
                                  "token-secret", b->secret, "expiration", ends, "description",
                                  "worker token of gpubroker", "usage-bootstrap-authentication",
                                  "true", "usage-bootstrap-api-auth", "true",
                                  "usage-bootstrap-api-worker-calls", "true"));
  return body;
}

static int
create (struct boot *b, const struct kube_call *c)
{
  int64_t life = json_i64 (c->args, "expiry_s", DEFAULT_EXPIRY_S);
  AUTO_JSON json_t *body = NULL;

  random_text (b->id, ID);
  random_text (b->secret, SECRET);
  b->ends_ms =
      (clock_wall_ms () / 1000 + (life > MIN_EXPIRY_S ? life : MIN_EXPIRY_S)) * INT64_C (1000);
  body = secret_body (b, c);
  return kube_api_send (b->plane.home, "POST", PATH "?fieldValidation=Strict", NULL, body, NULL,
                        b->e);
}

/* ---- the join token: base64 of gzip of a kubeconfig ---- */

static char *
gzip (const char *text, size_t len, size_t *out_len)
{
  z_stream z = { .next_in = (Bytef *) (uintptr_t) text, .avail_in = (uInt) len };
  size_t cap;
  char *out;

  if (deflateInit2 (&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    abort ();
  cap = deflateBound (&z, (uLong) len);
  out = malloc (cap);
  if (!out)
    abort ();
  z.next_out = (Bytef *) out;
  z.avail_out = (uInt) cap;
  if (deflate (&z, Z_FINISH) != Z_STREAM_END)
    abort ();
  *out_len = z.total_out;
  deflateEnd (&z);
  return out;
}

char *
join_token_encode (const char *server, const char *ca, const char *token)
{
  AUTO_FREE char *ca_data = base64_encode (ca, strlen (ca)), *zipped = NULL;
  char *yaml, *text;
  size_t n;
  int len = asprintf (&yaml,
                      "apiVersion: v1\nkind: Config\ncurrent-context: k0s\n"
                      "clusters:\n- name: k0s\n  cluster:\n    server: %s\n"
                      "    certificate-authority-data: %s\n"
                      "contexts:\n- name: k0s\n  context:\n    cluster: k0s\n"
                      "    user: kubelet-bootstrap\n"
                      "users:\n- name: kubelet-bootstrap\n  user:\n    token: %s\n",
                      server, ca_data, token);

  if (len < 0)
    abort ();
  zipped = gzip (yaml, (size_t) len, &n);
  explicit_bzero (yaml, (size_t) len);
  free (yaml);
  text = base64_encode (zipped, n);
  explicit_bzero (zipped, n);
  return text;
}

/* The same checks as for a token that somebody else made: it goes to a machine that is paid for. */
static int
check (const struct boot *b, const char *text)
{
  struct token_want want = { .ca = kube_api_ca (b->plane.home),
                             .port = b->plane.port,
                             .allow_private = plane_allow_private (&b->plane),
                             .now_ms = clock_wall_ms () };
  struct kubeconfig k;
  int rc = join_token_decode (text, strlen (text), &k, b->e);

  if (rc == 0)
    rc = join_token_check (&k, &want, b->e);
  kubeconfig_done (&k);
  return rc;
}

/* What is wrong with the address or the CA is wrong with every token: none is made then. */
static int
try_one (const struct boot *b)
{
  AUTO_FREE char *text = join_token_encode (kube_api_server (b->plane.home),
                                            kube_api_ca (b->plane.home), "000000.0000000000000000");

  return check (b, text);
}

static json_t *
deliver (struct boot *b)
{
  const char *ca = kube_api_ca (b->plane.home), *server = kube_api_server (b->plane.home);
  char token[ID + SECRET + 2], *text;
  json_t *value = NULL;

  snprintf (token, sizeof token, "%s.%s", b->id, b->secret);
  text = join_token_encode (server, ca, token);
  if (check (b, text) == 0) {
    call_secret (b->plane.call, "token", text, strlen (text));
    value = json_pack ("{s:s, s:s, s:s, s:I}", "token_id", b->id, "server", server, "ca_pem", ca,
                       "expires_ms", (json_int_t) b->ends_ms);
  }
  explicit_bzero (text, strlen (text));
  explicit_bzero (token, sizeof token);
  free (text);
  return value;
}

json_t *
bootstrap_mint (struct kube_call *c, struct err *e)
{
  json_t *value = NULL;
  struct boot b;

  if (boot_open (&b, c, e) == 0 && !kube_api_ca (b.plane.home)) {
    err_code (e, ERR_INVALID, "token-ca",
              "cluster %s: its kubeconfig has no certificate-authority-data, which machines need",
              json_str (c->cluster, "name", "?"));
  } else if (b.plane.home && try_one (&b) == 0) {
    b.keep = true;
    if (look_at_all (&b) == 0 && (b.id[0] || create (&b, c) == 0))
      value = deliver (&b);
  }
  boot_done (&b);
  return value;
}

json_t *
bootstrap_invalidate (struct kube_call *c, struct err *e)
{
  struct boot b;
  int rc = boot_open (&b, c, e) == 0 ? look_at_all (&b) : -1;

  boot_done (&b);
  return rc == 0 ? json_object () : NULL;
}
