/* ssh.c - log in to a rented machine with its pinned host key
 *
 * The address and the user come from a cloud: neither may be able to become an option of ssh.  The
 * key with which one logs in is the caller's own; the broker's never leaves it.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "core/vec.h"

enum { PATH_ROOM = 256 };

struct login {
  const char *host, *user, *hostkey;
  int64_t port;
};

static bool
made_of (const char *s, const char *more)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t n = 0;

  if (!s || !*s || *s == '-')
    return false;
  for (; s[n]; n++)
    if (!strchr (plain, s[n]) && !strchr (more, s[n]))
      return false;
  return n < 256;
}

static int
read_login (struct cli *c, const json_t *info, struct login *l)
{
  *l = (struct login){
    .host = json_str (info, "host", NULL),
    .user = json_str (info, "user", NULL),
    .hostkey = json_str (info, "hostkey", NULL),
    .port = json_i64 (info, "port", 22),
  };
  if (!made_of (l->host, ":") || !made_of (l->user, "") || l->port < 1 || l->port > 65535)
    return out_fail (c, "failed", NULL, "the broker names no usable address or user for %s",
                     cli_operand (c, 0));
  if (!l->hostkey || !made_of (l->hostkey, " +/=@"))
    return out_fail (c, "failed", "the first contact pins it: gpubroker-cli watch",
                     "no host key is pinned for %s yet", cli_operand (c, 0));
  if (!made_of (cli_operand (c, 0), ""))
    return out_fail (c, "bad-request", NULL, "'%s' is no name of a lease", cli_operand (c, 0));
  return EXIT_DONE;
}

/* $XDG_RUNTIME_DIR/gpubroker, which lasts as long as the session, else a new folder; 0700 and ours.
 */
static int
own_folder (char path[PATH_ROOM], struct err *e)
{
  const char *run = getenv ("XDG_RUNTIME_DIR"), *tmp = getenv ("TMPDIR");
  struct stat st;

  if (run && *run && snprintf (path, PATH_ROOM, "%s/gpubroker", run) < PATH_ROOM) {
    if (mkdir (path, 0700) == 0 || errno == EEXIST)
      if (lstat (path, &st) == 0 && S_ISDIR (st.st_mode) && st.st_uid == getuid () &&
          !(st.st_mode & 077))
        return 0;
  }
  if (snprintf (path, PATH_ROOM, "%s/gpubroker-XXXXXX", tmp && *tmp ? tmp : "/tmp") >= PATH_ROOM ||
      !mkdtemp (path))
    return err_set (e, ERR_INTERNAL, "%.120s: %s", path, strerror (errno));
  return 0;
}

/* One machine a file, so that an address used again by another machine never meets an old key. */
static int
write_known_hosts (const struct login *l, const char *lease, char path[PATH_ROOM], struct err *e)
{
  char folder[PATH_ROOM], tmp[PATH_ROOM + 16];
  FILE *f;
  int fd;

  if (own_folder (folder, e) < 0)
    return -1;
  snprintf (path, PATH_ROOM, "%.150s/%.80s.known_hosts", folder, lease);
  snprintf (tmp, sizeof tmp, "%s.XXXXXX", path);
  fd = mkstemp (tmp); /* 0600 */
  f = fd < 0 ? NULL : fdopen (fd, "w");
  if (!f)
    return err_set (e, ERR_INTERNAL, "%.120s: %s", tmp, strerror (errno));
  fprintf (f, "gpubroker-%s %s\n", lease,
           l->hostkey); /* by alias, whatever address and port it has */
  if (fclose (f) != 0 || rename (tmp, path) < 0) {
    err_set (e, ERR_INTERNAL, "%.120s: %s", path, strerror (errno));
    unlink (tmp);
    return -1;
  }
  return 0;
}

struct client { /* a command line of ssh; the strings it borrows */
  VEC (const char *) argv;
  char hosts[PATH_ROOM + 32], alias[128], port[16];
};

/* A shared connection of another machine that had this address must not be taken for this one's. */
static void
client_init (struct client *x, const struct login *l, const char *lease, const char *known_hosts,
             const char *identity)
{
  const char *settings[] = { x->hosts,
                             x->alias,
                             "GlobalKnownHostsFile=/dev/null",
                             "StrictHostKeyChecking=yes",
                             "CheckHostIP=no",
                             "UpdateHostKeys=no",
                             "ForwardAgent=no",
                             "ControlPath=none" };
  const char *own[] = { "-o", "IdentitiesOnly=yes", "-i", identity };

  memset (&x->argv, 0, sizeof x->argv);
  snprintf (x->hosts, sizeof x->hosts, "UserKnownHostsFile=\"%s\"", known_hosts);
  snprintf (x->alias, sizeof x->alias, "HostKeyAlias=gpubroker-%s", lease);
  snprintf (x->port, sizeof x->port, "%lld", (long long) l->port);
  *vec_push (&x->argv) = "ssh";
  for (size_t i = 0; i < N_ELEMENTS (settings); i++) {
    *vec_push (&x->argv) = "-o";
    *vec_push (&x->argv) = settings[i];
  }
  for (size_t i = 0; identity && i < N_ELEMENTS (own); i++)
    *vec_push (&x->argv) = own[i];
}

static void
client_where (struct client *x, const struct login *l)
{
  const char *where[] = { "-p", x->port, "-l", l->user, "--", l->host };

  for (size_t i = 0; i < N_ELEMENTS (where); i++)
    *vec_push (&x->argv) = where[i];
}

static void
run_client (const struct login *l, const char *lease, const char *known_hosts, const char *identity,
            char **command)
{
  struct client x;

  client_init (&x, l, lease, known_hosts, identity);
  client_where (&x, l);
  for (; command && *command; command++)
    *vec_push (&x.argv) = *command;
  *vec_push (&x.argv) = NULL;
  execvp ("ssh", (char **) x.argv.at);
  vec_free (&x.argv);
}

/* What is asked of the broker first: where the machine is, and what its host key is.  EXIT_DONE
 * with *known_hosts written, or the exit code of what was said. */
static int
prepare (struct cli *c, json_t **info, struct login *l, char known_hosts[PATH_ROOM])
{
  AUTO_JSON json_t *body = json_pack ("{s:s}", "lease", cli_operand (c, 0));
  struct err e = ERR_INIT;
  int rc = ask (c, "ssh-info", body, info);

  if (rc == EXIT_DONE && c->mode == OUT_TEXT)
    rc = read_login (c, *info, l);
  if (rc == EXIT_DONE && c->mode == OUT_TEXT &&
      write_known_hosts (l, cli_operand (c, 0), known_hosts, &e) < 0)
    rc = out_fail (c, "failed", NULL, "%s", e.text);
  return rc;
}

int
run_ssh (struct cli *c)
{
  AUTO_JSON json_t *info = NULL;
  char known_hosts[PATH_ROOM];
  struct login l;
  int rc = prepare (c, &info, &l, known_hosts);

  if (rc)
    return rc;
  if (c->mode != OUT_TEXT) {
    out_doc (c, info);
    return EXIT_DONE;
  }
  cli_disconnect (c);
  run_client (&l, cli_operand (c, 0), known_hosts, json_str (c->args.to[TO_CLI], "identity", NULL),
              c->args.rest);
  return out_fail (c, "failed", "install the OpenSSH client", "ssh: %s", strerror (errno));
}

/* ---- tunnel ---- */

enum { TUNNEL_PORT = 16443, QUICK_S = 5, QUICK_MOST = 3 };

static bool
port_is_free (int64_t port)
{
  struct sockaddr_in at = { .sin_family = AF_INET,
                            .sin_port = htons ((uint16_t) port),
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  bool is_free;

  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  is_free = bind (fd, (struct sockaddr *) &at, sizeof at) == 0;
  close (fd);
  return is_free;
}

/* How ssh ended, as waitpid says; -1 with errno when there is none. */
static int
run_once (char **argv)
{
  extern char **environ;
  int status = 0;
  pid_t pid;

  errno = posix_spawnp (&pid, argv[0], NULL, NULL, argv, environ);
  if (errno)
    return -1;
  while (waitpid (pid, &status, 0) < 0)
    if (cli_interrupted ())
      kill (pid, SIGTERM);
  return status;
}

/* A link that breaks is made again for as long as it held a while; one that never holds is a
 * fault. */
static int
keep_up (struct cli *c, char **argv, int64_t port)
{
  int quick = 0;

  while (!cli_interrupted ()) {
    time_t began = time (NULL);

    if (run_once (argv) < 0)
      return out_fail (c, "failed", "install the OpenSSH client", "ssh: %s", strerror (errno));
    if (cli_interrupted ())
      break;
    quick = time (NULL) - began < QUICK_S ? quick + 1 : 0;
    if (quick >= QUICK_MOST)
      return out_fail (c, "failed", "gpubroker-cli ssh", "the tunnel to %s ends at once",
                       cli_operand (c, 0));
    fprintf (stderr, "the tunnel on port %lld broke; connecting again\n", (long long) port);
    sleep (1);
  }
  return EXIT_DONE;
}

int
run_tunnel (struct cli *c)
{
  int64_t port = json_i64 (c->args.to[TO_CLI], "port", TUNNEL_PORT);
  const char *lease = cli_operand (c, 0);
  AUTO_JSON json_t *info = NULL;
  char known_hosts[PATH_ROOM], forward[64];
  const char *more[] = { "-N",
                         "-L",
                         forward,
                         "-o",
                         "ExitOnForwardFailure=yes",
                         "-o",
                         "BatchMode=yes",
                         "-o",
                         "ServerAliveInterval=15" };
  struct client x;
  struct login l;
  int rc;

  if (port < 1 || port > 65535)
    return out_fail (c, "bad-request", NULL, "--port: 1 to 65535");
  if (!port_is_free (port))
    return out_fail (c, "conflict", "another one: --port, here and for kubeconfig",
                     "port %lld of this machine is taken", (long long) port);
  rc = prepare (c, &info, &l, known_hosts);
  if (rc)
    return rc;
  if (c->mode != OUT_TEXT) {
    out_doc (c, info);
    return EXIT_DONE;
  }
  cli_disconnect (c);
  snprintf (forward, sizeof forward, "127.0.0.1:%lld:127.0.0.1:6443", (long long) port);
  client_init (&x, &l, lease, known_hosts, json_str (c->args.to[TO_CLI], "identity", NULL));
  for (size_t i = 0; i < N_ELEMENTS (more); i++)
    *vec_push (&x.argv) = more[i];
  client_where (&x, &l);
  *vec_push (&x.argv) = NULL;
  fprintf (stderr, "%s at https://127.0.0.1:%lld until you press Ctrl-C\n", lease,
           (long long) port);
  rc = keep_up (c, (char **) x.argv.at, port);
  vec_free (&x.argv);
  return rc;
}
