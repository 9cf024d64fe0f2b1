/* acme.h - a provider for Acme Cloud, a cloud that does not exist
 *
 * Copy this folder, rename, and change it file by file: api.c first.  gpubroker's
 * writing-a-provider.md goes through it in this order.
 */
#ifndef ACME_H
#define ACME_H

#include <gpubroker/provider.h>
#include <jansson.h>

/* Acme has one list of servers for the whole account: one scope.  A cloud with projects or with
 * regions that are asked one by one has several, and each is completed by itself. */
#define SCOPE "account"

struct acme {
  const struct gpub_host *host;
  char *endpoint; /* without a slash at its end */
};

/* What every function here needs to say or ask anything. */
struct ctx {
  const struct acme *acme;
  struct gpub_call *call;
  struct gpub_error *err;
};

/* ---- api.c: one request and its answer ---- */

/* Fills the error's text and returns kind. */
int32_t acme_error (struct gpub_error *err, int32_t kind, const char *fmt, ...)
    __attribute__ ((__format__ (__printf__, 3, 4)));
/* A GPUB_E_* unless the answer is 2xx with a JSON object, which the caller owns.  body may be
 * NULL; out too, for an answer without a body. */
int32_t api_read (const struct ctx *c, const char *path, json_t **out);
int32_t api_change (const struct ctx *c, const char *method, const char *path, const json_t *body,
                    json_t **out);
/* Every page of a list: calls row() for each element, until it returns something else than
 * GPUB_OK. */
int32_t api_pages (const struct ctx *c, const char *path, const char *list,
                   int32_t (*row) (const struct ctx *, const json_t *, void *), void *arg);
const char *str (const json_t *object, const char *key); /* "" when it is missing or no text */
int64_t num (const json_t *object, const char *key);

/* ---- offers.c and servers.c: the calls of the table in acme.c ---- */

int32_t acme_list_offers (void *, struct gpub_call *, const struct gpub_offer_query *,
                          struct gpub_error *);
int32_t acme_create (void *, struct gpub_call *, const struct gpub_create *, struct gpub_error *);
int32_t acme_get (void *, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
int32_t acme_find (void *, struct gpub_call *, const struct gpub_find *, struct gpub_error *);
int32_t acme_list (void *, struct gpub_call *, struct gpub_error *);
int32_t acme_remove (void *, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
int32_t acme_set_not_after (void *, struct gpub_call *, const struct gpub_ref *, int64_t ms,
                            struct gpub_error *);
/* The price of REGION/TYPE now, all in; GPUB_E_CAPACITY when it is not for rent. */
int32_t offer_price (const struct ctx *c, const char *offer_ref, uint64_t *udollar);

#endif
