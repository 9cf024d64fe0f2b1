/* kube_pem.c - what can be told of a CA bundle without a connection */
#include "config.h"

#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "join/kube_text.h"

enum { MAX_CERTS = 64 };

/* Calls fn for each certificate until it returns other than 0; -1 when something that is none
 * stands there. */
static int
each_cert (const char *pem, int (*fn) (X509 *, void *), void *arg, int *seen)
{
  BIO *bio = BIO_new_mem_buf (pem, -1);
  X509 *x;
  int rc = 0;

  *seen = 0;
  while (rc == 0 && *seen < MAX_CERTS && (x = PEM_read_bio_X509 (bio, NULL, NULL, NULL))) {
    ++*seen;
    rc = fn (x, arg);
    X509_free (x);
  }
  if (rc == 0 && ERR_GET_REASON (ERR_peek_last_error ()) != PEM_R_NO_START_LINE &&
      *seen < MAX_CERTS)
    rc = -1;
  ERR_clear_error ();
  BIO_free (bio);
  return rc;
}

static int
is_over (X509 *x, void *arg)
{
  time_t at = (time_t) (*(int64_t *) arg / 1000);

  return X509_cmp_time (X509_get0_notAfter (x), &at) < 0;
}

int
pem_check (const char *pem, int64_t now_ms, struct err *e)
{
  int seen, rc = each_cert (pem, is_over, &now_ms, &seen);

  if (rc < 0 || seen == 0)
    return err_code (e, ERR_INVALID, "ca-invalid", "the CA is no PEM certificate");
  if (rc > 0)
    return err_code (e, ERR_INVALID, "ca-expired", "the CA certificate has expired");
  return 0;
}

static int
is_same (X509 *x, void *arg)
{
  return X509_cmp (x, arg) == 0;
}

static int
is_in (X509 *x, void *arg)
{
  int seen;

  return each_cert (arg, is_same, x, &seen) > 0;
}

bool
pem_shares (const char *a, const char *b)
{
  int seen;

  return each_cert (a, is_in, (void *) b, &seen) > 0;
}
