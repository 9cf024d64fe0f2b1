/* kube_plane.c - from a kubeconfig to the control plane that machines join
 *
 * The admin kubeconfig that the operator writes may name a server that only pods can reach; what
 * machines will use is externalAddress or the Service's address, so that is what is used here too.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/json.h"
#include "join/kube_plane.h"
#include "join/kube_text.h"

enum { MAX_LABEL = 63, KEPT = 57 };

int
plane_open (struct plane *p, struct kube_call *c, struct err *e)
{
  struct kubeconfig k;
  int rc;

  memset (p, 0, sizeof *p);
  p->call = c;
  p->k0smotron = strcmp (json_str (c->cluster, "type", "k0smotron"), "k0smotron") == 0;
  p->ns = json_str (c->cluster, "namespace", "default");
  p->name = json_str (c->cluster, "control_plane", json_str (c->cluster, "name", ""));
  if (!name_ok ("namespace", p->ns, e) || !name_ok ("control_plane", p->name, e))
    return -1;
  rc = kubeconfig_parse (c->kubeconfig, c->kubeconfig_len, KUBECONFIG_OURS, &k, e);
  if (rc == 0) {
    p->home = kube_api_new (c, &k, json_str (c->cluster, "name", "cluster"), e);
    rc = p->home ? 0 : -1;
  } else {
    err_add (e, "cluster %s", json_str (c->cluster, "name", "?"));
  }
  if (rc == 0 && !p->k0smotron) {
    p->hosted = p->home;
    https_split (k.server, p->host, &p->port);
  }
  kubeconfig_done (&k);
  return rc;
}

void
plane_done (struct plane *p)
{
  if (p->hosted != p->home)
    kube_api_free (p->hosted);
  kube_api_free (p->home);
  json_decref (p->object);
}

/* The newest of the versions that we speak and the server serves. */
static int
discover (struct plane *p, struct err *e)
{
  static const char *const spoken[] = { "v1beta2", "v1beta1" };
  bool found;
  AUTO_JSON json_t *group = kube_find (p->home, &found, e, "/apis/k0smotron.io");
  json_t *v;
  size_t k;

  if (!group && e->kind != ERR_NONE)
    return -1;
  for (size_t i = 0; i < N_ELEMENTS (spoken); i++)
    json_array_foreach (json_object_get (group, "versions"), k, v)
      if (strcmp (json_str (v, "version", ""), spoken[i]) == 0) {
        snprintf (p->api_version, sizeof p->api_version, "%s", spoken[i]);
        return 0;
      }
  return err_code (
      e, ERR_NOT_FOUND, "k0smotron-absent",
      "%s serves neither v1beta2 nor v1beta1 of k0smotron.io: is k0smotron installed there?",
      kube_api_server (p->home));
}

/* As the operator shortens: 57 characters, a dash, the first five digits of the MD5 of the whole.
 */
static void
object_name (const struct plane *p, const char *end, char out[MAX_LABEL + 1])
{
  unsigned char sum[EVP_MAX_MD_SIZE];
  char full[400];

  snprintf (full, sizeof full, "kmc-%.250s%s", p->name, end);
  if (strlen (full) <= MAX_LABEL) {
    memcpy (out, full, strlen (full) + 1);
    return;
  }
  EVP_Digest (full, strlen (full), sum, NULL, EVP_md5 (), NULL);
  snprintf (out, MAX_LABEL + 1, "%.57s-%02x%02x%x", full, sum[0], sum[1], sum[2] >> 4);
}

const char *
plane_service_type (const struct plane *p)
{
  if (!json_object_get (p->object, "spec"))
    return "NodePort";
  return json_str_at (p->object, "spec.service.type", "ClusterIP");
}

static void
load_balancer_address (struct plane *p)
{
  char service[MAX_LABEL + 1];
  struct err why = ERR_INIT;
  bool found;
  const json_t *first;

  object_name (p, "-lb", service);
  AUTO_JSON json_t *s =
      kube_find (p->home, &found, &why, "/api/v1/namespaces/%s/services/%s", p->ns, service);
  first = json_array_get (json_at (s, "status.loadBalancer.ingress"), 0);
  snprintf (p->host, sizeof p->host, "%s",
            json_str (first, "ip", json_str (first, "hostname", "")));
}

/* Where machines will find the two ports. */
static void
find_addresses (struct plane *p)
{
  const json_t *spec = json_object_get (p->object, "spec"),
               *ingress = json_object_get (spec, "ingress");

  if (json_is_object (ingress)) {
    snprintf (p->host, sizeof p->host, "%s", json_str (ingress, "apiHost", ""));
    snprintf (p->konnectivity_host, sizeof p->konnectivity_host, "%s",
              json_str (ingress, "konnectivityHost", ""));
    p->port = p->konnectivity_port = (int) json_i64 (ingress, "port", 443);
    return;
  }
  p->port = (int) json_integer_value (json_at (spec, "service.apiPort"));
  p->konnectivity_port = (int) json_integer_value (json_at (spec, "service.konnectivityPort"));
  if (!p->port)
    p->port = 30443;
  if (!p->konnectivity_port)
    p->konnectivity_port = 30132;
  snprintf (p->host, sizeof p->host, "%s", json_str (spec, "externalAddress", ""));
  if (!p->host[0] && strcmp (plane_service_type (p), "LoadBalancer") == 0)
    load_balancer_address (p);
  memcpy (p->konnectivity_host, p->host, sizeof p->host);
}

int
plane_read (struct plane *p, struct err *e)
{
  bool found;

  if (!p->k0smotron)
    return 0;
  if (discover (p, e) < 0)
    return -1;
  p->object = kube_find (p->home, &found, e, "/apis/k0smotron.io/%s/namespaces/%s/clusters/%s",
                         p->api_version, p->ns, p->name);
  if (!found)
    return e->kind != ERR_NONE
               ? -1
               : err_code (e, ERR_NOT_FOUND, "cluster-absent",
                           "there is no k0smotron Cluster %s/%s: check namespace and control_plane",
                           p->ns, p->name);
  find_addresses (p);
  return 0;
}

bool
plane_ready (const struct plane *p)
{
  if (!p->k0smotron)
    return true;
  if (strcmp (p->api_version, "v1beta1") == 0)
    return json_is_true (json_at (p->object, "status.ready"));
  return condition_true (p->object, "Available");
}

bool
plane_allow_private (const struct plane *p)
{
  return json_bool (p->call->cluster, "allow_private", false);
}

/* The kubeconfig's own server stays when nothing better is known. */
static void
set_server (struct plane *p, struct kubeconfig *k)
{
  char url[300];

  if (!p->host[0]) {
    https_split (k->server, p->host, &p->port);
    memcpy (p->konnectivity_host, p->host, sizeof p->host);
    return;
  }
  snprintf (url, sizeof url, strchr (p->host, ':') ? "https://[%.255s]:%d" : "https://%.255s:%d",
            p->host, p->port);
  free (k->server);
  k->server = strdup (url);
}

int
plane_open_hosted (struct plane *p, struct err *e)
{
  AUTO_JSON json_t *secret = NULL;
  struct kubeconfig k;
  char *text, what[160];
  size_t len = 0;
  bool found;
  int rc;

  if (p->hosted)
    return 0;
  secret =
      kube_find (p->home, &found, e, "/api/v1/namespaces/%s/secrets/%s-kubeconfig", p->ns, p->name);
  if (!found && e->kind != ERR_NONE)
    return -1;
  text = secret_bytes (secret, "value", &len);
  if (!text)
    return err_code (
        e, ERR_NOT_FOUND, "kubeconfig-absent",
        "Secret %s/%s-kubeconfig has no kubeconfig under \"value\": is the control plane up?",
        p->ns, p->name);
  rc = kubeconfig_parse (text, len, KUBECONFIG_FOREIGN, &k, e);
  explicit_bzero (text, len);
  free (text);
  if (rc == 0) {
    set_server (p, &k);
    snprintf (what, sizeof what, "%.70s", p->name);
    p->hosted = kube_api_new (p->call, &k, what, e);
  } else {
    err_add (e, "Secret %s/%s-kubeconfig", p->ns, p->name);
  }
  kubeconfig_done (&k);
  return p->hosted ? 0 : -1;
}

int
plane_all (struct plane *p, struct kube_call *c, struct err *e)
{
  return plane_open (p, c, e) < 0 || plane_read (p, e) < 0 || plane_open_hosted (p, e) < 0 ? -1 : 0;
}

char *
plane_ca (struct plane *p, struct err *e)
{
  bool found;
  size_t len;
  AUTO_JSON json_t *secret =
      kube_find (p->home, &found, e, "/api/v1/namespaces/%s/secrets/%s-ca", p->ns, p->name);

  return secret_bytes (secret, "tls.crt", &len);
}
