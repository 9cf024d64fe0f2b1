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

void
kubeconfig_done (struct kubeconfig *k)
{
  char **const all[] = { &k->server, &k->tls_name, &k->proxy, &k->ca,       &k->cert,
                         &k->key,    &k->token,    &k->user,  &k->password, &k->user_entry };

  for (size_t i = 0; i < N_ELEMENTS (all); i++)
    wipe (all[i]);
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
read_user (const json_t *user, struct kubeconfig *k, struct err *e)
{
  const char *file = json_str (user, "tokenFile", NULL);

  if (json_object_get (user, "exec") || json_object_get (user, "auth-provider"))
    return err_code (
        e, ERR_UNSUPPORTED, "kubeconfig-exec",
        "kubeconfig: user \"%.60s\" gets its credentials from a program; give one with a client "
        "certificate or a token",
        k->user_entry);
  k->token = copy (user, "token");
  if (!k->token && file && *file) {
    k->token = read_file (file, e);
    if (!k->token)
      return -1;
    k->token[strcspn (k->token, "\r\n")] = '\0';
  }
  if (k->token && strpbrk (k->token, "\r\n"))
    return err_set (e, ERR_INVALID, "kubeconfig: the token has a line break");
  k->user = copy (user, "username");
  k->password = copy (user, "password");
  if (data_or_file (user, "client-certificate", &k->cert, e) < 0 ||
      data_or_file (user, "client-key", &k->key, e) < 0)
    return -1;
  if (!k->cert != !k->key)
    return err_set (e, ERR_INVALID,
                    "kubeconfig: a client certificate needs its key, and the other way round");
  return 0;
}

int
kubeconfig_parse (const char *text, size_t len, struct kubeconfig *k, struct err *e)
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
  return read_cluster (cluster, k, e) < 0 ? -1 : read_user (user, k, e);
}
