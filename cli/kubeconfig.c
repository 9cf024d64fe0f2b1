/* kubeconfig.c - the credentials of a standalone cluster become a file of one's own
 *
 * One file a machine, 0600 from its first byte, in a folder of 0700.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

enum { PATH_ROOM = 512, CONNECT_MS = 5000 };

static int
write_all (int fd, const char *text)
{
  size_t n = strlen (text);

  while (n > 0) {
    ssize_t done = write (fd, text, n);

    if (done < 0)
      return -1;
    text += done;
    n -= (size_t) done;
  }
  return fsync (fd);
}

/* In one step, and never readable by others: what is there is replaced or stays. */
static int
write_file (const char *path, const char *text, struct err *e)
{
  char tmp[PATH_ROOM + 16];
  int fd;

  snprintf (tmp, sizeof tmp, "%.*s.XXXXXX", PATH_ROOM, path);
  fd = mkostemp (tmp, O_CLOEXEC); /* 0600 */
  if (fd < 0)
    return err_set (e, ERR_INVALID, "%.200s: %s", tmp, strerror (errno));
  if (write_all (fd, text) < 0 || close (fd) < 0 || rename (tmp, path) < 0) {
    err_set (e, ERR_INVALID, "%.200s: %s", path, strerror (errno));
    unlink (tmp);
    return -1;
  }
  return 0;
}

static int
own_path (const char *name, char path[PATH_ROOM], struct err *e)
{
  const char *home = getenv ("HOME");

  if (!home || !*home)
    return err_set (e, ERR_INVALID, "HOME is not set: name a file with -o");
  snprintf (path, PATH_ROOM, "%.200s/.kube", home);
  mkdir (path, 0700);
  snprintf (path, PATH_ROOM, "%.200s/.kube/gpubroker", home);
  if (mkdir (path, 0700) < 0 && errno != EEXIST)
    return err_set (e, ERR_INVALID, "%.200s: %s", path, strerror (errno));
  snprintf (path, PATH_ROOM, "%.200s/.kube/gpubroker/%.128s.yaml", home, name);
  return 0;
}

/* kubectl knows best how two files become one; ours has names of its own, so that nothing of
 * theirs is lost. */
static int
merge (const char *path, struct err *e)
{
  const char *home = getenv ("HOME");
  char config[PATH_ROOM], both[2 * PATH_ROOM + 8], buffer[4096];
  AUTO_FREE char *all = NULL;
  size_t len = 0, n;
  FILE *out, *in;

  if (!home || !*home)
    return err_set (e, ERR_INVALID, "HOME is not set");
  snprintf (config, sizeof config, "%.200s/.kube/config", home);
  snprintf (both, sizeof both, "%s:%s", path, config);
  setenv ("KUBECONFIG", both, 1);
  in = popen ("kubectl config view --flatten", "re");
  out = open_memstream (&all, &len);
  if (!in || !out)
    return err_set (e, ERR_INTERNAL, "kubectl: %s", strerror (errno));
  while ((n = fread (buffer, 1, sizeof buffer, in)) > 0)
    fwrite (buffer, 1, n, out);
  fclose (out);
  if (pclose (in) != 0 || len == 0)
    return err_set (e, ERR_INVALID, "kubectl config view --flatten failed: is kubectl there?");
  return write_file (config, all, e);
}

/* Does it answer from here?  What the machine and the broker see says nothing about that. */
static bool
reaches (const char *server)
{
  const char *host = strstr (server, "://");
  char name[256], *port;
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
  struct pollfd p = { -1, POLLOUT, 0 };
  int error = 1;
  socklen_t size = sizeof error;

  snprintf (name, sizeof name, "%.250s", host ? host + 3 + (host[3] == '[') : server);
  port = strrchr (name, ':');
  if (!port)
    return false;
  *port++ = '\0';
  if (*name && name[strlen (name) - 1] == ']')
    name[strlen (name) - 1] = '\0';
  if (getaddrinfo (name, port, &hints, &found) != 0)
    return false;
  p.fd = socket (found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  connect (p.fd, found->ai_addr, found->ai_addrlen);
  if (poll (&p, 1, CONNECT_MS) == 1)
    getsockopt (p.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  close (p.fd);
  freeaddrinfo (found);
  return error == 0;
}

static int
tell (struct cli *c, const json_t *reply, const char *path)
{
  const char *server = json_str (reply, "server", "");

  printf ("export KUBECONFIG=%s\n", path);
  if (strcmp (json_str (reply, "mode", ""), "direct") != 0) {
    fprintf (stderr,
             "its API is not open to the outside; in another terminal: gpubroker-cli tunnel %s\n",
             cli_operand (c, 0));
    return EXIT_DONE;
  }
  fprintf (stderr, "%s, for whoever you opened that port to\n", server);
  if (reaches (server))
    return EXIT_DONE;
  return out_fail (
      c, "firewall-blocked",
      "a security group or firewall between you and the machine: --open when renting, or "
      "gpubroker-cli tunnel",
      "%s does not answer from here", server);
}

int
run_kubeconfig (struct cli *c)
{
  const char *file = json_str (c->args.to[TO_CLI], "output", NULL), *text;
  int64_t port = json_i64 (c->args.to[TO_CLI], "port", 0);
  AUTO_JSON json_t *reply = NULL;
  struct err e = ERR_INIT;
  char path[PATH_ROOM];
  int rc;

  json_put_str (cli_body (c), "lease", cli_operand (c, 0));
  if (port)
    json_put_i64 (cli_body (c), "port", port);
  c->lines = true;
  rc = ask_shown (c, "kubeconfig", &reply);
  if (rc || c->mode != OUT_TEXT)
    return rc;
  text = json_str (reply, "kubeconfig", "");
  if (file && strcmp (file, "-") == 0) {
    fputs (text, stdout);
    return EXIT_DONE;
  }
  if (file)
    snprintf (path, sizeof path, "%s", file);
  if ((!file && own_path (json_str (reply, "name", "cluster"), path, &e) < 0) ||
      write_file (path, text, &e) < 0 ||
      (json_bool (c->args.to[TO_CLI], "merge", false) && merge (path, &e) < 0))
    return out_fail (c, "failed", NULL, "%s", e.text);
  return tell (c, reply, path);
}
