/* api_kubeconfig.c - the credentials of a standalone cluster, from its machine to its owner
 *
 * They are read over SSH each time and kept nowhere.  Three fields are taken of what the machine
 * says, and only as base64: the document around them is ours.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api.h"
#include "core/pipeline_args.h"

enum { TUNNEL_PORT = 16443, FIELD_MAX = 16384 };

struct kubeconfig_ask {
  struct broker *broker;
  struct bus_ticket ticket;
  char name[128], server[300], mode[8];
};

static const char *
field (const struct call_result *r, const char *name)
{
  static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

  for (size_t i = 0; i < r->nsecrets; i++) {
    const char *text = r->secrets[i].bytes;
    size_t n = r->secrets[i].len;

    if (strcmp (r->secrets[i].name, name) == 0)
      return n > 0 && n <= FIELD_MAX && strlen (text) == n && strspn (text, base64) == n ? text
                                                                                         : NULL;
  }
  return NULL;
}

static char *
document (const struct kubeconfig_ask *q, const char *ca, const char *cert, const char *key)
{
  char *text = NULL;

  if (asprintf (&text,
                "apiVersion: v1\nkind: Config\nclusters:\n- name: %s\n  cluster:\n"
                "    server: %s\n    certificate-authority-data: %s\n"
                "contexts:\n- name: %s\n  context:\n    cluster: %s\n    user: %s\n"
                "current-context: %s\nusers:\n- name: %s\n  user:\n"
                "    client-certificate-data: %s\n    client-key-data: %s\n",
                q->name, q->server, ca, q->name, q->name, q->name, q->name, q->name, cert, key) < 0)
    abort ();
  return text;
}

static void
read_it (void *ctx, uint32_t id, const struct call_result *r)
{
  struct kubeconfig_ask *q = ctx;
  const char *ca = field (r, "ca"), *cert = field (r, "cert"), *key = field (r, "key");

  (void) id;
  if (r->err.kind != ERR_NONE) {
    turn_error (q->broker, &q->ticket, "failed", hint_for (r->err.code), NULL,
                "the credentials of %s cannot be read: %s", q->name, r->err.text);
  } else if (!ca || !cert || !key) {
    turn_error (q->broker, &q->ticket, "failed", NULL, NULL,
                "%s: its k0s shows no credentials of an administrator", q->name);
  } else {
    char *text = document (q, ca, cert, key);

    turn_reply (q->broker, &q->ticket, BUS_FINAL,
                json_pack ("{s:s, s:s, s:s, s:s}", "name", q->name, "server", q->server, "mode",
                           q->mode, "kubeconfig", text));
    explicit_bzero (text, strlen (text));
    free (text);
  }
  free (q);
}

/* Where its owner reaches the API: the machine itself when that port was opened, else the end of a
 * tunnel. */
static void
place (struct kubeconfig_ask *q, const struct lease *l, const struct attempt *a, int64_t port)
{
  const char *host = a->machine.address ? a->machine.address : "";
  bool direct = args_opened (l) && *host && !port;

  snprintf (q->name, sizeof q->name, "gpubroker-%.100s", l->name ? l->name : l->id);
  snprintf (q->mode, sizeof q->mode, "%s", direct ? "direct" : "tunnel");
  if (direct)
    snprintf (q->server, sizeof q->server, strchr (host, ':') ? "https://[%s]:%d" : "https://%s:%d",
              host, STANDALONE_PORT);
  else
    snprintf (q->server, sizeof q->server, "https://127.0.0.1:%d", port ? (int) port : TUNNEL_PORT);
}

static void
ask_machine (struct ask *q, const struct lease *l, const struct attempt *a, int64_t port)
{
  struct kubeconfig_ask *x = calloc (1, sizeof *x);
  struct child_secret key = { "ssh_key", NULL, 0 };
  char *bytes = rent_lent_key (l, &key);

  if (!x)
    abort ();
  x->broker = q->b;
  x->ticket = q->ticket;
  place (x, l, a, port);
  child_call (q->b->ssh,
              &(struct child_call){ .call = "kubeconfig",
                                    .key = a->name,
                                    .args = json_pack ("{s:o}", "target", rent_target (a)),
                                    .deadline_ms = q->b->times.call,
                                    .secrets = &key,
                                    .nsecrets = bytes ? 1 : 0,
                                    .on_result = read_it,
                                    .ctx = x });
  rent_forget_key (bytes, &key);
}

void
api_kubeconfig (struct ask *q)
{
  struct lease *old, *l = api_find (q, json_str (q->body, "lease", NULL), true, &old);
  const struct attempt *a = l && !old ? lease_attempt (l) : NULL;
  const struct conf_cluster *k = l && l->cluster ? conf_cluster (&q->b->conf, l->cluster) : NULL;
  int64_t port = json_i64 (q->body, "port", 0);

  if (!l)
    return;
  if (port < 0 || port > 65535)
    api_refuse (q, "bad-request", NULL, "port %lld: 1 to 65535", (long long) port);
  else if (!k || !conf_is_standalone (k))
    api_refuse (q, "conflict", "its kubeconfig is whoever's who owns the cluster",
                "%s is no cluster of its own%s%s", l->id, k ? ", but a node of " : "",
                k ? k->name : "");
  else if (!a || (l->state != LEASE_READY && l->state != LEASE_DEGRADED))
    api_refuse (q, "conflict", "ask again when it is ready", "%s is %s", l->id,
                lease_state_name (l->state));
  else
    ask_machine (q, l, a, port);
  lease_free (old);
}
