/* kube_mint.c - one join token per machine, and its end
 *
 * A JoinTokenRequest is never refreshed once status.tokenID is set, so an old one makes room for a
 * new one.  The operator sets tokenID last: before that its Secret is not read.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_bootstrap.h"
#include "join/kube_plane.h"
#include "join/kube_text.h"
#include "join/kube_token.h"

/* A token that ends within MIN_LEFT_MS is replaced, so a new one lives longer than that whatever
 * was asked for. */
enum {
  POLL_MS = 250,
  POLL_MAX_MS = 2000,
  MIN_LEFT_MS = 60000,
  MIN_EXPIRY_S = 120,
  DEFAULT_EXPIRY_S = 900
};

#define OWNER "gpubroker"

struct mint {
  struct plane plane;
  const char *machine;
  char path[400]; /* of the JoinTokenRequest */
};

static int
mint_open (struct mint *m, struct kube_call *c, struct err *e)
{
  memset (m, 0, sizeof *m);
  m->machine = json_str (c->args, "machine", "");
  if (!name_ok ("machine", m->machine, e) || plane_open (&m->plane, c, e) < 0)
    return -1;
  if (plane_read (&m->plane, e) < 0)
    return -1;
  snprintf (m->path, sizeof m->path, "/apis/k0smotron.io/%s/namespaces/%.128s/jointokenrequests",
            m->plane.api_version, m->plane.ns);
  return 0;
}

static bool
is_ours (const json_t *jtr)
{
  return strcmp (json_str (json_at (jtr, "metadata.labels"), "app.kubernetes.io/managed-by", ""),
                 OWNER) == 0;
}

static json_t *
request_body (const struct mint *m, const struct kube_call *c)
{
  AUTO_JSON json_t *labels = json_deep_copy (json_object_get (c->args, "labels"));
  int64_t expiry = json_i64 (c->args, "expiry_s", DEFAULT_EXPIRY_S);
  char api[40], life[32];
  json_t *body;

  if (!labels)
    labels = json_object ();
  json_put_str (labels, "app.kubernetes.io/managed-by", OWNER);
  snprintf (api, sizeof api, "k0smotron.io/%s", m->plane.api_version);
  snprintf (life, sizeof life, "%llds",
            (long long) (expiry > MIN_EXPIRY_S ? expiry : MIN_EXPIRY_S));
  body = json_pack ("{s:s, s:s, s:{s:s, s:O}, s:{s:s, s:s}}", "apiVersion", api, "kind",
                    "JoinTokenRequest", "metadata", "name", m->machine, "labels", labels, "spec",
                    "expiry", life, "role", "worker");
  if (strcmp (m->plane.api_version, "v1beta1") == 0)
    json_object_set_new (json_object_get (body, "spec"), "clusterRef",
                         json_pack ("{s:s, s:s}", "name", m->plane.name, "namespace", m->plane.ns));
  else
    json_put_str (json_object_get (body, "spec"), "clusterName", m->plane.name);
  return body;
}

/* When the bootstrap token ends in the hosted cluster: 0 when it is not there, -1 after filling e.
 */
static int64_t
token_ends (struct mint *m, const char *id, struct err *e)
{
  bool found;
  size_t len;
  AUTO_JSON json_t *secret =
      kube_find (m->plane.hosted, &found, e,
                 "/api/v1/namespaces/kube-system/secrets/bootstrap-token-%.6s", id);
  AUTO_FREE char *ends = NULL;

  if (!found)
    return e->kind == ERR_NONE ? 0 : -1;
  ends = secret_bytes (secret, "expiration", &len);
  return ends ? rfc3339_ms (ends) : INT64_MAX;
}

/* Deletes the request and waits until the operator has invalidated its token. */
static int
remove_request (struct mint *m, struct err *e)
{
  for (int64_t pause = POLL_MS;; pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS) {
    bool found;
    json_t *jtr = kube_find (m->plane.home, &found, e, "%s/%s", m->path, m->machine);
    bool deleting = json_at (jtr, "metadata.deletionTimestamp") != NULL, ours = is_ours (jtr);

    json_decref (jtr);
    if (!found)
      return e->kind == ERR_NONE ? 0 : -1;
    if (!ours)
      return err_code (e, ERR_CONFLICT, "token-request-foreign",
                       "JoinTokenRequest %s/%s is not gpubroker's: it is left alone", m->plane.ns,
                       m->machine);
    if (!deleting && kube_delete (m->plane.home, e, "%s/%s", m->path, m->machine) < 0)
      return -1;
    if (call_sleep (m->plane.call, pause, e) < 0)
      return err_add (e, "JoinTokenRequest %s does not go away", m->machine);
  }
}

/* The request with its tokenID set; a new one when there is none, or none that still has some life.
 */
static json_t *
settled_request (struct mint *m, int64_t *ends_ms, struct err *e)
{
  struct kube_call *c = m->plane.call;
  char last[160] = "";

  for (int64_t pause = POLL_MS;; pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS) {
    bool found;
    AUTO_JSON json_t *jtr = kube_find (m->plane.home, &found, e, "%s/%s", m->path, m->machine),
                     *body = NULL;
    const char *id = json_str_at (jtr, "status.tokenID", NULL);
    const json_t *cond = condition (jtr, "JoinTokenSecretCreated");

    if (!found && e->kind != ERR_NONE)
      return NULL;
    if (found && (!is_ours (jtr) || json_at (jtr, "metadata.deletionTimestamp"))) {
      if (remove_request (m, e) < 0)
        return NULL;
      continue;
    }
    if (id) {
      *ends_ms = token_ends (m, id, e);
      if (*ends_ms < 0)
        return NULL;
      if (*ends_ms > clock_wall_ms () + MIN_LEFT_MS)
        return STEAL (jtr);
      if (remove_request (m, e) < 0)
        return NULL;
      continue;
    }
    if (!found) {
      body = request_body (m, c);
      char path[460];
      snprintf (path, sizeof path, "%s?fieldValidation=Strict", m->path);
      if (kube_api_send (m->plane.home, "POST", path, NULL, body, NULL, e) < 0 &&
          e->kind != ERR_CONFLICT)
        return NULL;
      *e = (struct err) ERR_INIT;
    }
    snprintf (
        last, sizeof last, "%.150s",
        json_str (cond, "message",
                  json_str_at (jtr, "status.reconciliationStatus", "no answer from k0smotron")));
    if (call_sleep (c, pause, e) < 0) {
      if (e->kind == ERR_UNAVAILABLE)
        err_code (e, ERR_UNAVAILABLE, "token-not-issued",
                  "JoinTokenRequest %s/%s got no token in time: %s", m->plane.ns, m->machine,
                  last[0] ? last : "no answer from k0smotron");
      return NULL;
    }
  }
}

static json_t *
deliver (struct mint *m, const json_t *jtr, int64_t ends_ms, struct err *e)
{
  struct token_want want = { .allow_private = plane_allow_private (&m->plane),
                             .now_ms = clock_wall_ms () };
  AUTO_FREE char *ca = plane_ca (&m->plane, e);
  AUTO_JSON json_t *secret = NULL;
  struct kubeconfig k = { 0 };
  json_t *value = NULL;
  size_t len = 0;
  char *text;

  if (!ca && e->kind != ERR_NONE)
    return NULL;
  secret = kube_get (m->plane.home, e, "/api/v1/namespaces/%s/secrets/%s", m->plane.ns, m->machine);
  if (!secret)
    return NULL;
  text = secret_bytes (secret, "token", &len);
  want.ca = ca;
  want.port = m->plane.port;
  if (!text) {
    err_code (e, ERR_INVALID, "token-base64", "Secret %s/%s has no member \"token\"", m->plane.ns,
              m->machine);
  } else if (join_token_decode (text, len, &k, e) == 0 && join_token_check (&k, &want, e) == 0) {
    call_secret (m->plane.call, "token", text, len);
    value =
        json_pack ("{s:s, s:s, s:s, s:s, s:i}", "token_id", json_str_at (jtr, "status.tokenID", ""),
                   "server", k.server, "ca_pem", k.ca, "konnectivity_host",
                   m->plane.konnectivity_host, "konnectivity_port", m->plane.konnectivity_port);
    json_put_str (value, "k0s_version", json_str_at (m->plane.object, "spec.version", NULL));
    if (ends_ms != INT64_MAX)
      json_put_i64 (value, "expires_ms", ends_ms);
  }
  kubeconfig_done (&k);
  if (text)
    explicit_bzero (text, len);
  free (text);
  return value;
}

static bool
has_operator (const struct kube_call *c)
{
  return strcmp (json_str (c->cluster, "type", "k0smotron"), "k0smotron") == 0;
}

json_t *
kube_mint (struct kube_call *c, struct err *e)
{
  AUTO_JSON json_t *jtr = NULL;
  json_t *value = NULL;
  int64_t ends_ms = 0;
  struct mint m;

  if (!has_operator (c))
    return bootstrap_mint (c, e);
  if (mint_open (&m, c, e) == 0 && plane_open_hosted (&m.plane, e) == 0)
    jtr = settled_request (&m, &ends_ms, e);
  if (jtr)
    value = deliver (&m, jtr, ends_ms, e);
  if (jtr && !value &&
      e->kind == ERR_INVALID) /* a token that no machine can use must not live on */
    kube_delete (m.plane.home, NULL, "%s/%s", m.path, m.machine);
  plane_done (&m.plane);
  return value;
}

json_t *
kube_invalidate (struct kube_call *c, struct err *e)
{
  struct mint m;
  int rc;

  if (!has_operator (c))
    return bootstrap_invalidate (c, e);
  rc = mint_open (&m, c, e);
  if (rc == 0)
    rc = remove_request (&m, e);
  else if (strcmp (e->code, "cluster-absent") == 0 || strcmp (e->code, "k0smotron-absent") == 0)
    rc = 0; /* the tokens went with the control plane */
  plane_done (&m.plane);
  return rc == 0 ? json_object () : NULL;
}
