/* ssh.c - log in to a rented machine with its pinned host key
 *
 * The address and the user come from a cloud: neither may be able to become an option of ssh.  The
 * key with which one logs in is the caller's own; the broker's never leaves it.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* A shared connection of another machine that had this address must not be taken for this one's. */
static void
run_client (const struct login *l, const char *lease, const char *known_hosts, const char *identity,
            char **command)
{
  char hosts[PATH_ROOM + 32], alias[128], port[16];
  const char *settings[] = { hosts,
                             alias,
                             "GlobalKnownHostsFile=/dev/null",
                             "StrictHostKeyChecking=yes",
                             "CheckHostIP=no",
                             "UpdateHostKeys=no",
                             "ForwardAgent=no",
                             "ControlPath=none" };
  const char *own[] = { "-o", "IdentitiesOnly=yes", "-i", identity };
  const char *where[] = { "-p", port, "-l", l->user, "--", l->host };
  VEC (const char *) argv = VEC_EMPTY;

  snprintf (hosts, sizeof hosts, "UserKnownHostsFile=\"%s\"", known_hosts);
  snprintf (alias, sizeof alias, "HostKeyAlias=gpubroker-%s", lease);
  snprintf (port, sizeof port, "%lld", (long long) l->port);
  *vec_push (&argv) = "ssh";
  for (size_t i = 0; i < N_ELEMENTS (settings); i++) {
    *vec_push (&argv) = "-o";
    *vec_push (&argv) = settings[i];
  }
  for (size_t i = 0; identity && i < N_ELEMENTS (own); i++)
    *vec_push (&argv) = own[i];
  for (size_t i = 0; i < N_ELEMENTS (where); i++)
    *vec_push (&argv) = where[i];
  for (; command && *command; command++)
    *vec_push (&argv) = *command;
  *vec_push (&argv) = NULL;
  execvp ("ssh", (char **) argv.at);
  vec_free (&argv);
}

int
run_ssh (struct cli *c)
{
  const char *lease = cli_operand (c, 0);
  AUTO_JSON json_t *body = json_pack ("{s:s}", "lease", lease), *info = NULL;
  char known_hosts[PATH_ROOM];
  struct err e = ERR_INIT;
  struct login l;
  int rc = ask (c, "ssh-info", body, &info);

  if (rc)
    return rc;
  if (c->mode != OUT_TEXT) {
    out_doc (c, info);
    return EXIT_DONE;
  }
  rc = read_login (c, info, &l);
  if (rc)
    return rc;
  if (write_known_hosts (&l, lease, known_hosts, &e) < 0)
    return out_fail (c, "failed", NULL, "%s", e.text);
  cli_disconnect (c);
  run_client (&l, lease, known_hosts, json_str (c->args.to[TO_CLI], "identity", NULL),
              c->args.rest);
  return out_fail (c, "failed", "install the OpenSSH client", "ssh: %s", strerror (errno));
}
