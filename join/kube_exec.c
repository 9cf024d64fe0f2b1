/* kube_exec.c - credentials from a program that a kubeconfig names, after client-go's rules
 *
 * What the program prints is a secret, on stderr perhaps too: neither is ever logged or quoted.  No
 * shell takes part.  It gets the runner's short environment, what the kubeconfig adds, and
 * KUBERNETES_EXEC_INFO.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/vec.h"
#include "join/kube_exec.h"
#include "join/kube_run.h"
#include "join/kube_text.h"

enum { RUN_MS = 30000, WAIT_MS = 50, SLACK_MS = 10000, WORDS_MAX = 64 };

#define GROUP "client.authentication.k8s.io/"

struct kept {
  unsigned char id[32]; /* of the program, its arguments and the cluster */
  bool running;
  struct credential got; /* generation 0: nothing yet */
};

static struct {
  pthread_mutex_t lock;
  unsigned generation;
  VEC (struct kept *) all;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
wipe (char **s)
{
  if (*s)
    explicit_bzero (*s, strlen (*s));
  free (*s);
  *s = NULL;
}

void
credential_done (struct credential *c)
{
  wipe (&c->token);
  wipe (&c->cert);
  wipe (&c->key);
}

static char *
copy (const char *s)
{
  return s && *s ? strdup (s) : NULL;
}

static int
fault (const json_t *exec, enum err_kind kind, struct err *e, const char *text)
{
  return err_code (e, kind, "kubeconfig-exec", "kubeconfig: the program %.80s %s",
                   json_str (exec, "command", "?"), text);
}

/* ---- what is to be run ---- */

int
exec_check (const json_t *exec, struct err *e)
{
  const char *version = json_str (exec, "apiVersion", ""),
             *command = json_str (exec, "command", ""),
             *mode = json_str (exec, "interactiveMode", "");
  bool v1 = strcmp (version, GROUP "v1") == 0;

  if (!*command || (strchr (command, '/') && *command != '/'))
    return fault (exec, ERR_INVALID, e, "must be a name or an absolute path");
  if (!v1 && strcmp (version, GROUP "v1beta1") != 0)
    return fault (exec, ERR_INVALID, e,
                  "has an apiVersion that is neither v1 nor v1beta1 of "
                  "client.authentication.k8s.io");
  if (strcmp (mode, "Always") == 0)
    return fault (exec, ERR_INVALID, e, "wants to ask a person (interactiveMode Always)");
  if ((v1 || *mode) && strcmp (mode, "Never") != 0 && strcmp (mode, "IfAvailable") != 0)
    return fault (exec, ERR_INVALID, e, "needs an interactiveMode: Never or IfAvailable");
  if (json_array_size (json_object_get (exec, "args")) > WORDS_MAX ||
      json_array_size (json_object_get (exec, "env")) > WORDS_MAX)
    return fault (exec, ERR_INVALID, e, "has too many arguments or variables");
  return 0;
}

static json_t *
cluster_info (const struct kubeconfig *k)
{
  json_t *info = json_object (), *x;
  AUTO_FREE char *ca = k->ca ? base64_encode (k->ca, strlen (k->ca)) : NULL;
  size_t i;

  json_put_str (info, "server", k->server);
  json_put_str (info, "tls-server-name", k->tls_name);
  json_put_str (info, "proxy-url", k->proxy);
  json_put_str (info, "certificate-authority-data", ca);
  json_array_foreach (k->extensions, i, x)
    if (strcmp (json_str (x, "name", ""), GROUP "exec") == 0)
      json_object_set (info, "config", json_object_get (x, "extension"));
  return info;
}

static char *
exec_info (const struct kubeconfig *k)
{
  json_t *spec = json_pack ("{s:b}", "interactive", 0);
  AUTO_JSON json_t *info =
      json_pack ("{s:s, s:s, s:o}", "apiVersion", json_str (k->exec, "apiVersion", ""), "kind",
                 "ExecCredential", "spec", spec);

  if (strcmp (json_str (k->exec, "provideClusterInfo", ""), "true") == 0)
    json_object_set_new (spec, "cluster", cluster_info (k));
  return json_dumps (info, JSON_COMPACT);
}

static int
run (struct kube_call *c, const struct kubeconfig *k, struct run_output *out, struct err *e)
{
  AUTO_FREE char *info = exec_info (k);
  struct run_command r = { .what = json_str (k->exec, "command", ""), .ms = RUN_MS };
  json_t *word;
  size_t i;

  run_word (&r, r.what);
  json_array_foreach (json_object_get (k->exec, "args"), i, word)
    run_word (&r, json_is_string (word) ? json_string_value (word) : "");
  json_array_foreach (json_object_get (k->exec, "env"), i, word)
    run_variable (&r, json_str (word, "name", ""), json_str (word, "value", ""));
  run_variable (&r, "KUBERNETES_EXEC_INFO", info);
  i = (size_t) run_program (c, &r, out, e);
  run_done (&r);
  return (int) i;
}

/* ---- what it said ---- */

static int
read_answer (const json_t *exec, const json_t *answer, struct credential *out, struct err *e)
{
  const json_t *status = json_object_get (answer, "status");
  const char *ends = json_str (status, "expirationTimestamp", NULL);

  if (strcmp (json_str (answer, "kind", ""), "ExecCredential") != 0 ||
      strcmp (json_str (answer, "apiVersion", ""), json_str (exec, "apiVersion", "")) != 0)
    return fault (exec, ERR_INVALID, e,
                  "printed no ExecCredential of the apiVersion it is named with");
  out->token = copy (json_str (status, "token", NULL));
  out->cert = copy (json_str (status, "clientCertificateData", NULL));
  out->key = copy (json_str (status, "clientKeyData", NULL));
  out->expires_ms = ends ? rfc3339_ms (ends) : INT64_MAX;
  if (!out->cert != !out->key)
    return fault (exec, ERR_INVALID, e, "gave a certificate without its key, or a key alone");
  if (!out->token && !out->cert)
    return fault (exec, ERR_INVALID, e, "gave neither a token nor a certificate");
  if (out->token && strpbrk (out->token, "\r\n"))
    return fault (exec, ERR_INVALID, e, "gave a token with a line break");
  if (out->expires_ms < 0)
    return fault (exec, ERR_INVALID, e, "gave an expirationTimestamp that is no time");
  return 0;
}

static int
ask (struct kube_call *c, const struct kubeconfig *k, struct credential *out, struct err *e)
{
  struct run_output text = { 0 };
  AUTO_JSON json_t *answer = NULL;
  int rc;

  memset (out, 0, sizeof *out);
  if (run (c, k, &text, e) < 0)
    return -1;
  answer = json_parse (text.bytes, text.len, NULL);
  explicit_bzero (text.bytes, sizeof text.bytes);
  rc = read_answer (k->exec, answer, out, e);
  if (rc < 0)
    credential_done (out);
  return rc;
}

/* ---- once for all ---- */

static void
identify (const struct kubeconfig *k, unsigned char id[32])
{
  AUTO_JSON json_t *what = json_pack ("[O, s]", k->exec, k->server);
  AUTO_FREE char *text = json_canonical (what);

  EVP_Digest (text, strlen (text), id, NULL, EVP_sha256 (), NULL);
  explicit_bzero (text, strlen (text)); /* env may hold a key */
}

/* With the lock held. */
static struct kept *
keep (const unsigned char id[32])
{
  struct kept *x;

  for (size_t i = 0; i < cache.all.n; i++)
    if (memcmp (cache.all.at[i]->id, id, 32) == 0)
      return cache.all.at[i];
  x = calloc (1, sizeof *x);
  if (!x)
    abort ();
  memcpy (x->id, id, 32);
  *vec_push (&cache.all) = x;
  return x;
}

static bool
good (const struct credential *got, unsigned refused)
{
  return got->generation && got->generation != refused &&
         (got->expires_ms == INT64_MAX || clock_wall_ms () < got->expires_ms - SLACK_MS);
}

/* 1: *out is it.  0: somebody else is asking.  -1: it is this call's to ask. */
static int
look (struct kept *x, unsigned refused, struct credential *out)
{
  if (good (&x->got, refused)) {
    *out = (struct credential){ copy (x->got.token), copy (x->got.cert), copy (x->got.key),
                                x->got.expires_ms, x->got.generation };
    return 1;
  }
  if (x->running)
    return 0;
  x->running = true;
  return -1;
}

int
exec_credential (struct kube_call *c, const struct kubeconfig *k, unsigned refused,
                 struct credential *out, struct err *e)
{
  struct credential fresh;
  unsigned char id[32];
  struct kept *x;
  int rc;

  identify (k, id);
  do {
    pthread_mutex_lock (&cache.lock);
    x = keep (id);
    rc = look (x, refused, out);
    pthread_mutex_unlock (&cache.lock);
    if (rc > 0)
      return 0;
  } while (rc == 0 && call_sleep (c, WAIT_MS, e) == 0);
  if (rc == 0)
    return -1;
  rc = ask (c, k, &fresh, e);
  pthread_mutex_lock (&cache.lock);
  x->running = false;
  if (rc == 0) {
    credential_done (&x->got);
    x->got = fresh;
    x->got.generation = ++cache.generation;
    *out = (struct credential){ copy (fresh.token), copy (fresh.cert), copy (fresh.key),
                                fresh.expires_ms, x->got.generation };
  }
  pthread_mutex_unlock (&cache.lock);
  return rc;
}
