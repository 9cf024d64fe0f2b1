/* ipc.c - who owns a socket path
 *
 * libzmq unlinks whatever is at the path before it binds: a second daemon would steal the first
 * one's socket, and a wrong path in the configuration would cost a file.  So: a lock file, taken
 * first and never removed.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <zmq.h>

#include "bus/ipc.h"

#define IPC         "ipc://"
#define BUS_GROUP   "gpubroker"
#define SOCKET_MASK 0117 /* leaves 0660 */

const char *
ipc_path (const char *endpoint, struct err *e)
{
  const char *path = endpoint + strlen (IPC);

  if (strncmp (endpoint, IPC, strlen (IPC)) != 0) {
    err_set (e, ERR_UNSUPPORTED, "endpoint '%s': only ipc:///path is supported", endpoint);
    return NULL;
  }
  if (*path !=
      '/') { /* abstract and wildcard names have no permissions, relative ones no fixed place */
    err_set (e, ERR_INVALID, "endpoint '%s': ipc:// needs an absolute path", endpoint);
    return NULL;
  }
  if (strlen (path) > IPC_PATH_MAX) {
    err_set (e, ERR_INVALID, "endpoint '%s': a socket path has at most %d bytes", endpoint,
             IPC_PATH_MAX);
    return NULL;
  }
  return path;
}

static int
keep_open (int *fd)
{
  int kept = *fd;

  *fd = -1;
  return kept;
}

static int
take_lock (const char *path, struct err *e)
{
  char name[IPC_PATH_MAX + sizeof ".lock"];
  AUTO_CLOSE int fd = -1;

  snprintf (name, sizeof name, "%s.lock", path);
  fd = open (name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return err_set (e, ERR_INVALID, "lock file %s: %s", name, strerror (errno));
  if (flock (fd, LOCK_EX | LOCK_NB) < 0)
    return err_set (e, ERR_CONFLICT, "%s belongs to another gpubrokerd that is running", path);
  return keep_open (&fd);
}

static int
remove_stale (const char *path, struct err *e)
{
  struct stat st;

  if (lstat (path, &st) < 0)
    return errno == ENOENT ? 0 : err_set (e, ERR_INVALID, "%s: %s", path, strerror (errno));
  if (!S_ISSOCK (st.st_mode))
    return err_set (e, ERR_INVALID, "%s exists and is not a socket; move it away", path);
  return unlink (path) < 0 ? err_set (e, ERR_INVALID, "%s: %s", path, strerror (errno)) : 0;
}

/* Not being allowed to is no fault: the daemon's own group keeps it then. */
static void
give_to_group (const char *path)
{
  const struct group *g = getgrnam (BUS_GROUP);

  if (g && lchown (path, (uid_t) -1, g->gr_gid) < 0)
    errno = 0;
}

int
ipc_bind (void *sock, const char *endpoint, struct ipc_place *place, struct err *e)
{
  const char *path = ipc_path (endpoint, e);
  AUTO_CLOSE int fd = -1;
  mode_t before;
  int rc;

  if (!path || (fd = take_lock (path, e)) < 0 || remove_stale (path, e) < 0)
    return -1;
  before = umask (SOCKET_MASK);
  rc = zmq_bind (sock, endpoint);
  umask (before);
  if (rc < 0)
    return err_set (e, ERR_INVALID, "bind %s: %s", endpoint, zmq_strerror (errno));
  give_to_group (path);
  strcpy (place->path, path);
  place->lock = keep_open (&fd);
  return 0;
}

/* The lock file stays: who removes a lock file lets two owners in. */
void
ipc_release (struct ipc_place *place)
{
  unlink (place->path);
  close (place->lock);
}
