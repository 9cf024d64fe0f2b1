/* state.c - a plugin's small durable store: one file a key
 *
 * Put is tmp, fsync, rename, fsync of the folder: after a power cut a key holds its old or its new
 * bytes.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdk/host/host.h"

enum { KEY_MAX = 128, VALUE_MAX = 64 * 1024 };

#define TMP ".tmp" /* no key starts with a dot */

int
state_open (struct host *h, const char *dir, struct err *e)
{
  h->state_fd = -1;
  if (!dir)
    return 0;
  if (mkdir (dir, 0700) < 0 && errno != EEXIST)
    return err_set (e, ERR_INVALID, "state_dir %s: %s", dir, strerror (errno));
  h->state_fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return h->state_fd < 0 ? err_set (e, ERR_INVALID, "state_dir %s: %s", dir, strerror (errno)) : 0;
}

static int
check (const struct host *h, const char *key, struct err *e)
{
  size_t n = key ? strlen (key) : 0;

  if (n == 0 || n > KEY_MAX || *key == '.' ||
      strspn (key, "abcdefghijklmnopqrstuvwxyz0123456789._-") != n)
    return err_set (e, ERR_INVALID, "state key '%.40s' is not [a-z0-9_-][a-z0-9._-]*",
                    key ? key : "");
  if (h->state_fd < 0)
    return err_set (e, ERR_UNSUPPORTED, "this provider has no state_dir");
  return 0;
}

static ssize_t
read_all (int fd, char *at, size_t cap)
{
  size_t n = 0;

  while (n < cap) {
    ssize_t got = read (fd, at + n, cap - n);

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? -1 : (ssize_t) n;
    n += (size_t) got;
  }
  return (ssize_t) n;
}

static int
write_all (int fd, const char *at, size_t len)
{
  while (len > 0) {
    ssize_t put = write (fd, at, len);

    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return -1;
    at += put;
    len -= (size_t) put;
  }
  return 0;
}

int
state_read (struct host *h, const char *key, char **bytes, size_t *len, struct err *e)
{
  AUTO_FREE char *buf = malloc (VALUE_MAX + 1);
  AUTO_CLOSE int fd = -1;
  ssize_t n;

  if (!buf)
    abort ();
  if (check (h, key, e) < 0)
    return -1;
  fd = openat (h->state_fd, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return err_set (e, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, "state %s: %s", key,
                    strerror (errno));
  n = read_all (fd, buf, VALUE_MAX);
  if (n < 0)
    return err_set (e, ERR_INTERNAL, "state %s: %s", key, strerror (errno));
  buf[n] = '\0';
  *len = (size_t) n;
  *bytes = STEAL (buf);
  return 0;
}

static int
replace (int dir, const char *key, const void *bytes, size_t len)
{
  AUTO_CLOSE int fd =
      openat (dir, TMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

  if (fd < 0 || write_all (fd, bytes, len) < 0 || fsync (fd) < 0)
    return -1;
  return renameat (dir, TMP, dir, key) < 0 || fsync (dir) < 0 ? -1 : 0;
}

static int
drop (int dir, const char *key)
{
  if (unlinkat (dir, key, 0) < 0)
    return errno == ENOENT ? 0 : -1;
  return fsync (dir);
}

int
state_write (struct host *h, const char *key, const void *bytes, size_t len, struct err *e)
{
  int rc;

  if (check (h, key, e) < 0)
    return -1;
  if (len > VALUE_MAX)
    return err_set (e, ERR_INVALID, "state %s: %zu bytes are more than %d", key, len, VALUE_MAX);
  pthread_mutex_lock (&h->state_lock);
  rc = bytes ? replace (h->state_fd, key, bytes, len) : drop (h->state_fd, key);
  pthread_mutex_unlock (&h->state_lock);
  return rc < 0 ? err_set (e, ERR_INTERNAL, "state %s: %s", key, strerror (errno)) : 0;
}
