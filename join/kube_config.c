/* kube_config.c - a kubeconfig's current context
 *
 * A file named in it is read by the runner, so it must be absolute: a relative one would be
 * relative to a file whose place only the daemon knows.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "join/kube_config.h"
#include "join/kube_exec.h"
#include "join/kube_text.h"

enum { MAX_FILE = 256 * 1024 };

static void
wipe (char **s)
{
  if (*s)
    explicit_bzero (*s, strlen (*s));
  free (*s);
  *s = NULL;
}

#define STRINGS(k)                                                                                 \
 {                                                                                                 \
  &(k)->server, &(k)->tls_name, &(k)->proxy, &(k)->ca, &(k)->cert, &(k)->key, &(k)->token,         \
      &(k)->user, &(k)->password, &(k)->user_entry, &(k)->token_file                               \
 }

void
kubeconfig_done (struct kubeconfig *k)
{
  char **const all[] = STRINGS (k);

  for (size_t i = 0; i < N_ELEMENTS (all); i++)
    wipe (all[i]);
  json_decref (k->exec);
  json_decref (k->extensions);
  k->exec = k->extensions = NULL;
}

void
kubeconfig_copy (struct kubeconfig *to, const struct kubeconfig *from)
{
  struct kubeconfig shallow = *from;
  char **const in[] = STRINGS (&shallow), **const out[] = STRINGS (to);

  for (size_t i = 0; i < N_ELEMENTS (in); i++)
    *out[i] = *in[i] ? strdup (*in[i]) : NULL;
  to->exec = json_deep_copy (from->exec); /* each thread counts its own references */
  to->extensions = json_deep_copy (from->extensions);
}

void
kubeconfig_credential (struct kubeconfig *k, char **token, char **cert, char **key)
{
  char **const in[] = { token, cert, key }, **const at[] = { &k->token, &k->cert, &k->key };

  for (size_t i = 0; i < N_ELEMENTS (in); i++) {
    wipe (at[i]);
    *at[i] = *in[i];
    *in[i] = NULL;
  }
}

static char *
copy (const json_t *obj, const char *name)
{
  const char *s = json_str (obj, name, NULL);

  return s && *s ? strdup (s) : NULL;
}

/* The member of a {name, ...} list with that name. */
static const json_t *
named (const json_t *conf, const char *list, const char *name, const char *member, struct err *e)
{
  size_t i;
  json_t *entry;

  json_array_foreach (json_object_get (conf, list), i, entry) {
    if (strcmp (json_str (entry, "name", ""), name) != 0)
      continue;
    if (json_is_object (json_object_get (entry, member)))
      return json_object_get (entry, member);
  }
  err_set (e, ERR_INVALID, "kubeconfig: %s has no entry named \"%.60s\"", list, name);
  return NULL;
}

static char *
read_file (const char *path, struct err *e)
{
  AUTO_CLOSE int fd = -1;
  AUTO_FREE char *text = NULL;
  struct stat st;
  ssize_t n;

  if (*path != '/') {
    err_set (e, ERR_INVALID, "kubeconfig: %.100s must be an absolute path", path);
    return NULL;
  }
  fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat (fd, &st) < 0) {
    err_set (e, ERR_INVALID, "kubeconfig: %.100s: %s", path, strerror (errno));
    return NULL;
  }
  if (!S_ISREG (st.st_mode) || st.st_size > MAX_FILE) {
    err_set (e, ERR_INVALID, "kubeconfig: %.100s is no file of at most %d bytes", path, MAX_FILE);
    return NULL;
  }
  text = calloc (1, MAX_FILE + 1);
  if (!text)
    abort ();
  n = read (fd, text, MAX_FILE);
  if (n < 0) {
    err_set (e, ERR_INVALID, "kubeconfig: %.100s: %s", path, strerror (errno));
    return NULL;
  }
  return STEAL (text);
}

/* NAME-data as base64, else the file NAME; *out stays NULL when neither is there. */
static int
data_or_file (const json_t *obj, const char *name, char **out, struct err *e)
{
  char member[64];
  const char *text;
  size_t len;

  snprintf (member, sizeof member, "%s-data", name);
  text = json_str (obj, member, NULL);
  if (text && *text) {
    *out = base64_decode (text, strlen (text), &len);
    if (!*out || strlen (*out) != len)
      return err_set (e, ERR_INVALID, "kubeconfig: %s is no base64 of PEM text", member);
    return 0;
  }
  text = json_str (obj, name, NULL);
  if (text && *text && !(*out = read_file (text, e)))
    return -1;
  return 0;
}

static int
read_cluster (const json_t *cluster, struct kubeconfig *k, struct err *e)
{
  char host[256];
  int port;

  if (strcmp (json_str (cluster, "insecure-skip-tls-verify", ""), "true") == 0)
    return err_set (
        e, ERR_UNSUPPORTED,
        "kubeconfig: insecure-skip-tls-verify is not accepted; give certificate-authority-data");
  k->server = copy (cluster, "server");
  if (https_split (k->server, host, &port) < 0)
    return err_set (e, ERR_INVALID, "kubeconfig: server \"%.100s\" is no https URL",
                    k->server ? k->server : "");
  k->tls_name = copy (cluster, "tls-server-name");
  k->proxy = copy (cluster, "proxy-url");
  return data_or_file (cluster, "certificate-authority", &k->ca, e);
}

static int
check_token (const char *token, struct err *e)
{
  return token && strpbrk (token, "\r\n")
             ? err_set (e, ERR_INVALID, "kubeconfig: the token has a line break")
             : 0;
}

int
kubeconfig_token (struct kubeconfig *k, struct err *e)
{
  char *token = read_file (k->token_file, e);

  if (!token)
    return -1;
  token[strcspn (token, "\r\n")] = '\0';
  wipe (&k->token);
  k->token = token;
  return 0;
}

/* A token in a file is the newer one.  A program is asked only when nothing else is there. */
static int
read_bearer (const json_t *user, struct kubeconfig *k, struct err *e)
{
  struct err why = ERR_INIT;

  k->token = copy (user, "token");
  k->token_file = copy (user, "tokenFile");
  if (k->token_file && kubeconfig_token (k, &why) < 0) {
    if (!k->token) {
      if (e)
        *e = why;
      return -1;
    }
    wipe (&k->token_file);
  }
  return check_token (k->token, e);
}

static int
read_exec (const json_t *user, struct kubeconfig *k, struct err *e)
{
  json_t *exec = json_object_get (user, "exec");

  if (json_object_get (user, "auth-provider"))
    return err_code (e, ERR_UNSUPPORTED, "kubeconfig-exec",
                     "kubeconfig: user \"%.60s\" has an auth-provider, which Kubernetes has given "
                     "up: use exec, a token or a certificate",
                     k->user_entry);
  if (!exec || k->token || k->cert || k->user)
    return 0;
  k->exec = json_incref (exec);
  return exec_check (exec, e);
}

static int
read_user (const json_t *user, struct kubeconfig *k, struct err *e)
{
  k->user = copy (user, "username");
  k->password = copy (user, "password");
  if (read_bearer (user, k, e) < 0 || data_or_file (user, "client-certificate", &k->cert, e) < 0 ||
      data_or_file (user, "client-key", &k->key, e) < 0)
    return -1;
  if (!k->cert != !k->key)
    return err_set (e, ERR_INVALID,
                    "kubeconfig: a client certificate needs its key, and the other way round");
  return read_exec (user, k, e);
}

/* What would make us read a file, or run a program. */
static int
refuse_foreign (const json_t *cluster, const json_t *user, struct err *e)
{
  static const char *const of_user[] = { "exec", "auth-provider", "tokenFile", "client-certificate",
                                         "client-key" };
  const char *found =
      json_object_get (cluster, "certificate-authority") ? "certificate-authority" : NULL;

  for (size_t i = 0; i < N_ELEMENTS (of_user) && !found; i++)
    found = json_object_get (user, of_user[i]) ? of_user[i] : NULL;
  if (!found)
    return 0;
  return err_code (e, ERR_INVALID, "kubeconfig-foreign",
                   "kubeconfig: it came from a cluster and names %s, a file or a program of this "
                   "machine",
                   found);
}

/* With its numbers and booleans, as a program wants them. */
static json_t *
extensions (const char *text, size_t len, const char *cluster)
{
  AUTO_JSON json_t *typed = yaml_parse (text, len, true, NULL);
  const json_t *entry = typed ? named (typed, "clusters", cluster, "cluster", NULL) : NULL;

  return json_incref (json_object_get (entry, "extensions"));
}

int
kubeconfig_parse (const char *text, size_t len, enum kubeconfig_from from, struct kubeconfig *k,
                  struct err *e)
{
  AUTO_JSON json_t *conf = yaml_parse (text, len, false, e);
  const json_t *context, *cluster, *user;
  const char *current;

  memset (k, 0, sizeof *k);
  if (!conf)
    return err_add (e, "kubeconfig");
  current = json_str (conf, "current-context", "");
  if (!*current)
    return err_set (e, ERR_INVALID, "kubeconfig: current-context is not set");
  context = named (conf, "contexts", current, "context", e);
  if (!context)
    return -1;
  cluster = named (conf, "clusters", json_str (context, "cluster", ""), "cluster", e);
  if (!cluster)
    return -1;
  user = named (conf, "users", json_str (context, "user", ""), "user", e);
  if (!user)
    return -1;
  k->user_entry = copy (context, "user");
  if (from == KUBECONFIG_FOREIGN && refuse_foreign (cluster, user, e) < 0)
    return -1;
  if (read_cluster (cluster, k, e) < 0 || read_user (user, k, e) < 0)
    return -1;
  if (k->exec)
    k->extensions = extensions (text, len, json_str (context, "cluster", ""));
  return 0;
}
