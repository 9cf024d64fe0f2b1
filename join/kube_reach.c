/* kube_reach.c - does the API of a standalone cluster answer from here, with the certificate it
 * should have?
 *
 * Nobody's credentials are needed: any HTTP answer over a chain that its CA signed proves address,
 * firewall and name.
 */
#include "config.h"

#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_api.h"
#include "join/kube_text.h"

enum { ROUND_MS = 1000, SLACK_MS = 2000 };

static const char *
code_of (const struct err *e)
{
  if (strcmp (e->code, "kube-tls") == 0)
    return "cert-san";
  return strcmp (e->code, "kube-connect") == 0 || strcmp (e->code, "kube-link") == 0
             ? "firewall-blocked"
             : NULL;
}

/* 1: it answered. */
static int
knock (struct kube_call *c, const struct kubeconfig *k, struct err *e)
{
  struct kube_api *api = kube_api_new (c, k, "the cluster", e);
  AUTO_JSON json_t *answer = api ? kube_get (api, e, "/version") : NULL;
  int rc = answer || (api && e->kind == ERR_AUTH) ? 1 : api ? 0 : -1;

  kube_api_free (api);
  return rc;
}

json_t *
kube_reach (struct kube_call *c, struct err *e)
{
  const char *url = json_str (c->args, "url", ""), *ca = json_str (c->args, "ca", "");
  int64_t wanted = json_i64 (c->args, "timeout_ms", 60000), own = call_ms_left (c) - SLACK_MS,
          until = clock_boot_ms () + (wanted < own ? wanted : own);
  struct kubeconfig k = { .server = (char *) (uintptr_t) url };
  size_t n = 0;
  int rc;

  k.ca = base64_decode (ca, strlen (ca), &n);
  if (!k.ca || n == 0) {
    free (k.ca);
    err_code (e, ERR_INVALID, "ca-invalid", "the cluster at %.100s shows no CA", url);
    return NULL;
  }
  while ((rc = knock (c, &k, e)) == 0 && clock_boot_ms () < until)
    if (call_sleep (c, ROUND_MS, e) < 0)
      break;
  free (k.ca);
  if (rc > 0) {
    *e = (struct err) ERR_INIT;
    return json_object ();
  }
  if (code_of (e))
    snprintf (e->code, sizeof e->code, "%s", code_of (e));
  return NULL;
}
