/* kube_lint.c - what is wrong with a cluster, before a machine for it is paid for
 *
 * A finding is an answer; only a management API that cannot be asked fails the call.  Codes are
 * stable: docs/cluster-codes.md lists them.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "join/kube_plane.h"
#include "join/kube_text.h"

enum severity { WARNING, ERROR };

struct lint {
  struct plane plane;
  json_t *findings;
  const char *cni; /* of the control plane's k0sConfig, or as configured */
  char seen_cni[40];
  int nodes, gpu_nodes;
};

static void PRINTF (4, 5)
    finding (struct lint *l, enum severity sev, const char *code, const char *fmt, ...)
{
  char text[300];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  json_array_append_new (l->findings, json_pack ("{s:s, s:s, s:s}", "code", code, "severity",
                                                 sev == ERROR ? "error" : "warning", "text", text));
}

static const char *
setting (const struct lint *l, const char *name)
{
  return json_str (l->plane.call->cluster, name, "");
}

static bool
cross_node (const struct lint *l)
{
  return strcmp (setting (l, "cross_node"), "required") == 0;
}

static void
check_version (struct lint *l, const char *plane, const char *where)
{
  const char *worker = setting (l, "k0s_version"), *skew;
  struct kube_version w, p;

  if (kube_version_parse (plane, &p) < 0) {
    finding (l, WARNING, "version-unknown", "%s: version \"%.40s\" is not understood", where,
             plane);
    return;
  }
  if (!*worker)
    return;
  if (kube_version_parse (worker, &w) < 0) {
    finding (l, ERROR, "version-unknown",
             "k0s_version \"%.40s\" is no version such as v1.34.10+k0s.0", worker);
    return;
  }
  skew = kube_version_skew (&w, &p);
  if (skew)
    finding (l, ERROR, "version-skew", "k0s_version %.40s, control plane %.40s: %s", worker, plane,
             skew);
  else if (kube_version_cmp (&w, &p) != 0)
    finding (l, WARNING, "version-differs",
             "k0s_version %.40s, control plane %.40s: k0smotron asks for the same", worker, plane);
}

static void
lint_version (struct lint *l)
{
  const char *version = json_str_at (l->plane.object, "spec.version", "");

  if (!*version)
    finding (
        l, ERROR, "version-unpinned",
        "spec.version of Cluster %s is empty, which means v1.27.9-k0s.0: set the version you want",
        l->plane.name);
  else
    check_version (l, version, "spec.version");
}

static void
lint_service (struct lint *l)
{
  const char *type = plane_service_type (&l->plane), *storage;

  if (strcmp (type, "ClusterIP") == 0 && !json_at (l->plane.object, "spec.ingress"))
    finding (l, ERROR, "service-cluster-ip",
             "the control plane's Service is ClusterIP, which no remote machine reaches: set "
             "spec.service.type");
  if (!l->plane.host[0] && strcmp (type, "LoadBalancer") == 0)
    finding (l, ERROR, "address-absent", "the control plane's load balancer has no address yet");
  else if (!l->plane.host[0] && strcmp (type, "NodePort") == 0)
    finding (l, WARNING, "address-absent",
             "spec.externalAddress is not set: tokens carry whatever address k0s finds, perhaps a "
             "private one");
  if (l->plane.port == l->plane.konnectivity_port && !json_at (l->plane.object, "spec.ingress"))
    finding (l, ERROR, "konnectivity-port", "apiPort and konnectivityPort are both %d",
             l->plane.port);
  storage = json_str_at (l->plane.object, "spec.persistence.type", "emptyDir");
  if (strcmp (storage, "emptyDir") == 0)
    finding (l, WARNING, "persistence-emptydir",
             "spec.persistence is emptyDir: the control plane's state is lost with its pod");
}

static void
lint_ready (struct lint *l)
{
  if (plane_ready (&l->plane))
    return;
  finding (
      l, ERROR, "cluster-not-ready", "Cluster %s is not ready: %.150s", l->plane.name,
      json_str (condition (l->plane.object, "Available"), "message",
                json_str_at (l->plane.object, "status.reconciliationStatus", "no status yet")));
}

static bool
is_kuberouter (const char *cni)
{
  return strncmp (cni, "kuberouter", 10) == 0 || strncmp (cni, "kube-router", 11) == 0;
}

/* What the control plane says wins over what the configuration believes. */
static void
find_cni (struct lint *l)
{
  const json_t *network = json_at (l->plane.object, "spec.k0sConfig.spec.network");
  const char *provider = json_str (network, "provider", "kuberouter");

  l->cni = setting (l, "cni");
  if (!l->plane.k0smotron || strcmp (provider, "custom") == 0)
    return;
  snprintf (l->seen_cni, sizeof l->seen_cni, "%.20s", provider);
  if (strcmp (provider, "calico") == 0)
    snprintf (l->seen_cni, sizeof l->seen_cni, "calico-%.20s",
              json_str_at (network, "calico.mode", "vxlan"));
  if (*l->cni && strcmp (l->cni, l->seen_cni) != 0)
    finding (l, ERROR, "cni-mismatch",
             "cni is \"%.40s\" in the configuration, but the control plane has %s", l->cni,
             l->seen_cni);
  l->cni = l->seen_cni;
}

static void
lint_cni (struct lint *l)
{
  const char *overlay =
      json_str_at (l->plane.object, "spec.k0sConfig.spec.network.calico.overlay", "Always");

  find_cni (l);
  if (is_kuberouter (l->cni) || strcmp (l->cni, "calico-ipip") == 0 ||
      strcmp (l->cni, "calico-bird") == 0)
    finding (l, cross_node (l) ? ERROR : WARNING, "cni-unsafe",
             "%s sends pod addresses or IPIP between machines, which the fabrics of rented ones "
             "often drop: unsafe as "
             "soon as there are two; Calico with VXLAN Always passes",
             l->cni);
  else if (strncmp (l->cni, "cilium", 6) == 0)
    finding (l, WARNING, "cni-cilium",
             "Cilium has lost host-to-pod traffic on kernel 6.8: unsafe until host-to-pod is "
             "tested on your image");
  else if (strcmp (l->cni, "calico-vxlan") == 0 && strcmp (overlay, "Always") != 0)
    finding (l, cross_node (l) ? ERROR : WARNING, "cni-overlay",
             "Calico's overlay is %.20s: machines of one subnet then send bare pod addresses; set "
             "it to Always",
             overlay);
}

static void
lint_address (struct lint *l)
{
  if (l->plane.host[0] && host_is_private (l->plane.host) && !plane_allow_private (&l->plane))
    finding (l, ERROR, "address-private",
             "machines are to reach the control plane at %.100s, which is private: set "
             "spec.externalAddress, or "
             "allow_private when they are on that network",
             l->plane.host);
}

static int
count_node (json_t *node, void *arg)
{
  struct lint *l = arg;

  l->nodes++;
  l->gpu_nodes +=
      json_object_get (json_at (node, "metadata.labels"), "nvidia.com/gpu.present") != NULL;
  return 0;
}

static int
look_at_class (json_t *class, void *arg)
{
  static const char *const foreign[] = { "ebs.csi.aws.com",        "kubernetes.io/aws-ebs",
                                         "efs.csi.aws.com",        "pd.csi.storage.gke.io",
                                         "kubernetes.io/gce-pd",   "disk.csi.azure.com",
                                         "file.csi.azure.com",     "dobs.csi.digitalocean.com",
                                         "csi.hetzner.cloud",      "cinder.csi.openstack.org",
                                         "linodebs.csi.linode.com" };
  const char *provisioner = json_str (class, "provisioner", "");

  for (size_t i = 0; i < N_ELEMENTS (foreign); i++)
    if (strcmp (provisioner, foreign[i]) == 0)
      finding (arg, WARNING, "csi-foreign",
               "StorageClass %.60s (%s) works only on machines of that cloud",
               json_str_at (class, "metadata.name", ""), provisioner);
  return 0;
}

static int
look_for_operator (json_t *ds, void *arg)
{
  if (strstr (json_str_at (ds, "metadata.name", ""), "nvidia-operator") ||
      json_object_get (json_at (ds, "metadata.labels"), "app.kubernetes.io/managed-by") == NULL)
    return 0;
  if (strcmp (json_str (json_at (ds, "metadata.labels"), "app.kubernetes.io/managed-by", ""),
              "gpu-operator") != 0)
    return 0;
  finding (arg, WARNING, "gpu-operator-present",
           "the GPU Operator is installed: set gpu_stack to gpu-operator, two owners of one "
           "runtime break it");
  return 1;
}

static void
check_own_version (struct lint *l, const char *version)
{
  check_version (l, version, "the API server");
  if (!strstr (version, "k0s"))
    finding (l, WARNING, "not-k0s",
             "the API server is %.40s, which does not look like k0s: machines join as k0s workers",
             version);
}

/* The hosted API itself: is it there, with the certificate its CA signed, and what is in it? */
static void
lint_hosted (struct lint *l)
{
  struct err why = ERR_INIT;
  json_t *version;

  if (plane_open_hosted (&l->plane, &why) < 0) {
    finding (l, ERROR, why.code[0] ? why.code : "kubeconfig-absent", "%s", why.text);
    return;
  }
  lint_address (l);
  version = kube_get (l->plane.hosted, &why, "/version");
  if (!version) {
    finding (l, ERROR, strcmp (why.code, "kube-tls") == 0 ? "tls-invalid" : "api-unreachable", "%s",
             why.text);
    return;
  }
  if (!l->plane.k0smotron)
    check_own_version (l, json_str (version, "gitVersion", ""));
  json_decref (version);
  if (kube_each (l->plane.hosted, "/api/v1/nodes", count_node, l, &why) < 0) {
    finding (l, ERROR, why.kind == ERR_AUTH ? "kubeconfig-refused" : "api-unreachable", "%s",
             why.text);
    return;
  }
  kube_each (l->plane.hosted, "/apis/storage.k8s.io/v1/storageclasses", look_at_class, l, NULL);
  if (strcmp (json_str (l->plane.call->cluster, "gpu_stack", "device-plugin"), "device-plugin") ==
      0)
    kube_each (l->plane.hosted, "/apis/apps/v1/daemonsets", look_for_operator, l, NULL);
}

static void
lint_ca (struct lint *l)
{
  struct err why = ERR_INIT;
  AUTO_FREE char *ca = plane_ca (&l->plane, &why);

  if (ca && pem_check (ca, clock_wall_ms (), &why) < 0)
    finding (l, ERROR, why.code, "Secret %s-ca: %s", l->plane.name, why.text);
}

/* May we do there what minting a token needs?  A server that does not say is not asked. */
static void
lint_rights (struct lint *l)
{
  static const char *const verbs[] = { "create", "list", "delete" };

  for (size_t i = 0; i < N_ELEMENTS (verbs); i++) {
    AUTO_JSON json_t *ask =
        json_pack ("{s:s, s:s, s:{s:{s:s, s:s, s:s}}}", "apiVersion", "authorization.k8s.io/v1",
                   "kind", "SelfSubjectAccessReview", "spec", "resourceAttributes", "namespace",
                   "kube-system", "verb", verbs[i], "resource", "secrets");
    AUTO_JSON json_t *said = NULL;

    if (kube_api_send (l->plane.home, "POST",
                       "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", NULL, ask, &said,
                       NULL) < 0)
      return;
    if (!json_is_true (json_at (said, "status.allowed"))) {
      finding (l, ERROR, "token-rights",
               "the kubeconfig's user may not %s Secrets in kube-system, which join tokens are",
               verbs[i]);
      return;
    }
  }
}

/* The cluster of the kubeconfig itself: its API server's name and CA go into the join token. */
static void
lint_own (struct lint *l)
{
  const char *ca = kube_api_ca (l->plane.home);
  struct err why = ERR_INIT;

  if (!*setting (l, "k0s_version"))
    finding (l, ERROR, "version-unpinned",
             "k0s_version is not set, and this cluster does not say which k0s it runs");
  if (!ca)
    finding (l, ERROR, "ca-absent",
             "the kubeconfig has no certificate-authority-data, which machines need to join");
  else if (pem_check (ca, clock_wall_ms (), &why) < 0)
    finding (l, ERROR, why.code, "the kubeconfig's CA: %s", why.text);
  lint_rights (l);
}

static void
lint_konnectivity (struct lint *l)
{
  const struct plane *p = &l->plane;

  if (p->konnectivity_host[0] && !tcp_answers (p->call, p->konnectivity_host, p->konnectivity_port))
    finding (l, WARNING, "konnectivity-unreachable",
             "nothing accepts on %.100s:%d from here: without it nodes become Ready, but logs, "
             "exec and webhooks fail",
             p->konnectivity_host, p->konnectivity_port);
}

static void
lint_k0smotron (struct lint *l)
{
  lint_ready (l);
  lint_version (l);
  lint_service (l);
  lint_ca (l);
}

static json_t *
lint_value (struct lint *l)
{
  const struct plane *p = &l->plane;
  json_t *v = json_pack ("{s:O, s:s, s:i, s:i}", "findings", l->findings, "server",
                         p->hosted ? kube_api_server (p->hosted) : "", "nodes", l->nodes,
                         "gpu_nodes", l->gpu_nodes);

  if (p->host[0]) {
    json_put_str (v, "api_host", p->host);
    json_put_i64 (v, "api_port", p->port);
  }
  if (p->konnectivity_host[0]) {
    json_put_str (v, "konnectivity_host", p->konnectivity_host);
    json_put_i64 (v, "konnectivity_port", p->konnectivity_port);
  }
  json_put_str (v, "k0s_version",
                json_str_at (p->object, "spec.version", setting (l, "k0s_version")));
  json_put_str (v, "cni", l->cni ? l->cni : setting (l, "cni"));
  json_put_str (v, "api_version", p->api_version[0] ? p->api_version : NULL);
  return v;
}

/* Absences that the operator's own API tells of are findings; the rest means that nothing could be
 * asked. */
static bool
is_finding (const struct err *e)
{
  return strcmp (e->code, "k0smotron-absent") == 0 || strcmp (e->code, "cluster-absent") == 0;
}

json_t *
kube_lint (struct kube_call *c, struct err *e)
{
  AUTO_JSON json_t *findings = json_array ();
  struct lint l = { .findings = findings };
  json_t *value = NULL;

  if (plane_open (&l.plane, c, e) == 0) {
    if (plane_read (&l.plane, e) == 0) {
      if (l.plane.k0smotron)
        lint_k0smotron (&l);
      else
        lint_own (&l);
      lint_cni (&l);
      lint_hosted (&l);
      lint_konnectivity (&l);
      value = call_check (c, e) == 0 ? lint_value (&l) : NULL;
    } else if (is_finding (e)) {
      finding (&l, ERROR, e->code, "%s", e->text);
      value = lint_value (&l);
    }
  }
  plane_done (&l.plane);
  return value;
}
