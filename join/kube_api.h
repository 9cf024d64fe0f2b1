/* kube_api.h - one user of one API server, for one call
 *
 * One connection, requests in a row, bounded bodies.  Reads are repeated a little when the link
 * fails; what writes is sent once, and is written so that the whole call can be repeated.
 */
#ifndef GPUB_KUBE_API_H
#define GPUB_KUBE_API_H

#include <jansson.h>

#include "join/kube.h"
#include "join/kube_config.h"

struct kube_api;

/* Keeps its own copy of k.  what names the cluster in errors. */
struct kube_api *kube_api_new (struct kube_call *c, const struct kubeconfig *k, const char *what,
                               struct err *e);
void kube_api_free (struct kube_api *a);
const char *kube_api_server (const struct kube_api *a);
const char *kube_api_ca (const struct kube_api *a); /* PEM; NULL: the system's */

#define API_JSON  "application/json"
#define API_MERGE "application/merge-patch+json"
#define API_APPLY "application/apply-patch+yaml"

/* 0 for a 2xx.  Else -1 with the kind after the status (401, 403 auth; 404 not-found; 409 conflict;
 * 429 rate; 4xx invalid; 5xx unavailable; no answer unavailable or, after a write was sent,
 * unknown) and code kube-STATUS, kube-tls, kube-connect or kube-link.  *out may be NULL; text that
 * is no JSON comes as a JSON string. */
int kube_api_send (struct kube_api *a, const char *method, const char *path, const char *type,
                   const json_t *body, json_t **out, struct err *e);
json_t *kube_get (struct kube_api *a, struct err *e, const char *fmt, ...) PRINTF (3, 4);
/* As kube_get; what is not there is NULL with e untouched and *found false. */
json_t *kube_find (struct kube_api *a, bool *found, struct err *e, const char *fmt, ...)
    PRINTF (4, 5);
/* What is not there is deleted. */
int kube_delete (struct kube_api *a, struct err *e, const char *fmt, ...) PRINTF (3, 4);
/* Every item of a list, page by page: fn returns other than 0 to stop, and that is returned. */
int kube_each (struct kube_api *a, const char *path, int (*fn) (json_t *item, void *arg), void *arg,
               struct err *e);
/* Whether something accepts TCP there, within a few seconds. */
bool tcp_answers (struct kube_call *c, const char *host, int port);

/* obj.a.b.c for "a.b.c"; NULL when a step is missing. */
json_t *json_at (const json_t *obj, const char *path);
const char *json_str_at (const json_t *obj, const char *path, const char *otherwise);
/* The {type: T, ...} member of a conditions list, or NULL. */
json_t *condition (const json_t *obj, const char *type);
bool condition_true (const json_t *obj, const char *type);
/* The bytes of member key of a Secret, NUL-ended, or NULL.  Caller zeroes and frees. */
char *secret_bytes (const json_t *secret, const char *key, size_t *len);

#endif
