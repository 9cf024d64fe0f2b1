/* kube_text.h - small readers of what Kubernetes writes: base64, RFC 3339, versions, addresses,
 * certificates */
#ifndef GPUB_KUBE_TEXT_H
#define GPUB_KUBE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* Whether name may be an object's name, and so stand in a URL: DNS-1123, with dots, at most 253
 * characters.  what says whose name it is in e. */
bool name_ok (const char *what, const char *name, struct err *e);

/* Strict standard base64; \r and \n inside are passed over, as Go's decoder does.  A NUL follows
 * the bytes. NULL when it is none.  Caller frees. */
char *base64_decode (const char *text, size_t len, size_t *out_len);

/* One line of it.  Caller frees. */
char *base64_encode (const void *bytes, size_t len);

/* "2026-03-01T10:00:00.123456Z" or with an offset: ms since 1970, or -1. */
int64_t rfc3339_ms (const char *text);
/* Decimal Kubernetes quantity without unit; -1 for anything else. */
int64_t quantity_int (const char *text);

/* k0s and Kubernetes versions: v1.34.10+k0s.0, v1.34.10-k0s.0, v1.34.10+k0s, v1.34.10 */
struct kube_version {
  int major, minor, patch, k0s; /* k0s: -1 when there is none */
};
int kube_version_parse (const char *text, struct kube_version *v);
/* <0, 0, >0; a missing k0s suffix is that of .0 */
int kube_version_cmp (const struct kube_version *a, const struct kube_version *b);
/* NULL when a worker of that version may join; else the reason. */
const char *kube_version_skew (const struct kube_version *worker, const struct kube_version *plane);

/* Whether a host cannot be meant for a machine elsewhere: loopback, private and link-local ranges,
 * single-label and cluster-internal names. */
bool host_is_private (const char *host);
/* Splits https://host[:port][/…]; host needs 256 bytes.  -1 when it is no such URL. */
int https_split (const char *url, char *host, int *port);

/* Every certificate parses and none is over at now_ms.  Codes ca-invalid, ca-expired. */
int pem_check (const char *pem, int64_t now_ms, struct err *e);
/* Whether two bundles have a certificate in common. */
bool pem_shares (const char *a, const char *b);

#endif
