/* kube_token.c - what can be wrong with a join token, found before a machine is paid for */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include <zlib.h>

#include "join/kube_text.h"
#include "join/kube_token.h"

enum { MAX_INFLATED = 256 * 1024 };

/* The whole of one gzip member, or NULL when it is none, is cut short or is larger than any token.
 */
static char *
gunzip (const char *bytes, size_t len, size_t *out_len)
{
  AUTO_FREE char *out = malloc (MAX_INFLATED + 1);
  z_stream z = { .next_in = (Bytef *) (uintptr_t) bytes, .avail_in = (uInt) len };
  int rc;

  if (!out)
    abort ();
  if (len > MAX_INFLATED || inflateInit2 (&z, 15 + 16) != Z_OK)
    return NULL;
  z.next_out = (Bytef *) out;
  z.avail_out = MAX_INFLATED;
  rc = inflate (&z, Z_FINISH);
  *out_len = z.total_out;
  inflateEnd (&z);
  if (rc != Z_STREAM_END || z.avail_in != 0)
    return NULL;
  out[*out_len] = '\0';
  return STEAL (out);
}

int
join_token_decode (const char *text, size_t len, struct kubeconfig *k, struct err *e)
{
  AUTO_FREE char *zipped = NULL, *yaml = NULL;
  size_t n, m;
  int rc;

  memset (k, 0, sizeof *k);
  while (len > 0 && isspace ((unsigned char) text[len - 1]))
    len--;
  while (len > 0 && isspace ((unsigned char) *text))
    text++, len--;
  zipped = len > 0 && len <= MAX_INFLATED ? base64_decode (text, len, &n) : NULL;
  if (!zipped)
    return err_code (e, ERR_INVALID, "token-base64",
                     "the join token is no base64 of at most %d bytes", MAX_INFLATED);
  yaml = gunzip (zipped, n, &m);
  explicit_bzero (zipped, n);
  if (!yaml)
    return err_code (e, ERR_INVALID, "token-gzip", "the join token is no gzip of at most %d bytes",
                     MAX_INFLATED);
  rc = kubeconfig_parse (yaml, m, KUBECONFIG_FOREIGN, k, e);
  explicit_bzero (yaml, m);
  if (rc < 0) {
    err_add (e, "the join token");
    if (e)
      snprintf (e->code, sizeof e->code, "token-yaml");
  }
  return rc;
}

/* <6 of a-z0-9>.<16 of a-z0-9> */
static bool
is_bootstrap_token (const char *t)
{
  if (!t || strlen (t) != 23 || t[6] != '.')
    return false;
  for (int i = 0; i < 23; i++)
    if (i != 6 && !(t[i] >= 'a' && t[i] <= 'z') && !(t[i] >= '0' && t[i] <= '9'))
      return false;
  return true;
}

int
join_token_check (const struct kubeconfig *k, const struct token_want *want, struct err *e)
{
  char host[256];
  int port;

  if (strcmp (k->user_entry ? k->user_entry : "", "kubelet-bootstrap") != 0)
    return err_code (e, ERR_INVALID, "token-role",
                     "the join token is for \"%.40s\", not for a worker",
                     k->user_entry ? k->user_entry : "");
  if (!is_bootstrap_token (k->token))
    return err_code (e, ERR_INVALID, "token-format", "the join token holds no bootstrap token");
  if (https_split (k->server, host, &port) < 0)
    return err_code (e, ERR_INVALID, "token-server", "the join token's server is no https URL");
  if (!want->allow_private && host_is_private (host))
    return err_code (e, ERR_INVALID, "address-private",
                     "the join token sends machines to %.100s, which they cannot reach; set "
                     "spec.externalAddress of "
                     "the control plane",
                     host);
  if (!k->ca)
    return err_code (e, ERR_INVALID, "token-ca", "the join token has no CA");
  if (pem_check (k->ca, want->now_ms, e) < 0)
    return err_add (e, "the join token");
  if (want->ca && !pem_shares (k->ca, want->ca))
    return err_code (e, ERR_INVALID, "token-ca-stale",
                     "the join token's CA is not that of the control plane");
  if (want->port && port != want->port)
    return err_code (e, ERR_INVALID, "token-port",
                     "the join token's port is %d, the control plane's %d", port, want->port);
  return 0;
}
