/* identity.c - the private key that came with a machine of somebody's own, until it is not needed
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/evp.h>

#include "core/identity.h"
#include "core/log.h"

enum { KEY_MAX = 8 * 1024 };

#define HEAD "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define TAIL "-----END OPENSSH PRIVATE KEY-----"

/* What is between the lines, or -1. */
static int
unarmour (const char *text, unsigned char *out)
{
  const char *end = strstr (text, TAIL);
  EVP_ENCODE_CTX *ctx;
  int n = 0, rest = 0, rc;

  if (strncmp (text, HEAD, strlen (HEAD)) != 0 || !end)
    return -1;
  text += strlen (HEAD);
  ctx = EVP_ENCODE_CTX_new ();
  if (!ctx)
    abort ();
  EVP_DecodeInit (ctx);
  rc = EVP_DecodeUpdate (ctx, out, &n, (const unsigned char *) text, (int) (end - text));
  if (rc >= 0)
    rc = EVP_DecodeFinal (ctx, out + n, &rest);
  EVP_ENCODE_CTX_free (ctx);
  return rc < 0 ? -1 : n + rest;
}

/* PROTOCOL.key of OpenSSH: without a passphrase everything in front of the type has fixed bytes,
 * but the length of the public key. */
static const char *
type_of (const unsigned char *blob, size_t n, size_t *len)
{
  static const char plain[] = "openssh-key-v1\0\0\0\0\4none\0\0\0\4none\0\0\0\0\0\0\0\1";
  size_t at = sizeof plain - 1 + 4;

  if (n < at + 4 || memcmp (blob, plain, sizeof plain - 1) != 0)
    return NULL;
  *len = (size_t) blob[at] << 24 | (size_t) blob[at + 1] << 16 | (size_t) blob[at + 2] << 8 |
         blob[at + 3];
  return n - at - 4 < *len ? NULL : (const char *) blob + at + 4;
}

static bool
usable (const char *type, size_t len)
{
  return (len == 11 && memcmp (type, "ssh-ed25519", len) == 0) ||
         (len > 11 && memcmp (type, "ecdsa-sha2-", 11) == 0);
}

int
identity_check (const char *text, struct err *e)
{
  unsigned char blob[KEY_MAX];
  size_t len = 0;
  int n, rc = 0;
  const char *type;

  if (strlen (text) > KEY_MAX)
    return err_set (e, ERR_INVALID, "the identity has more than %d bytes", KEY_MAX);
  n = unarmour (text, blob);
  type = n > 0 ? type_of (blob, (size_t) n, &len) : NULL;
  if (!type)
    rc = err_set (e, ERR_INVALID,
                  "the identity is no private key in OpenSSH's format without a passphrase: make "
                  "one with ssh-keygen -t ed25519");
  else if (!usable (type, len))
    rc = err_set (e, ERR_INVALID,
                  "the identity is of type %.*s: only ed25519 and ECDSA keys can be used, make one "
                  "with ssh-keygen -t ed25519",
                  (int) (len < 20 ? len : 20), type);
  explicit_bzero (blob, sizeof blob);
  return rc;
}

/* ---- the files ---- */

static int
folder (const struct broker *b, bool make)
{
  char path[4200];

  snprintf (path, sizeof path, "%s/identity", b->conf.broker.state_dir);
  if (make)
    mkdir (path, 0700);
  return open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
write_all (int fd, const char *text, size_t n)
{
  while (n > 0) {
    ssize_t w = write (fd, text, n);

    if (w < 0)
      return -1;
    text += w;
    n -= (size_t) w;
  }
  return fsync (fd);
}

int
identity_put (const struct lease *l, const char *text, struct err *e)
{
  AUTO_CLOSE int dir = folder (l->broker, true);
  AUTO_CLOSE int fd = -1;

  if (dir >= 0) {
    unlinkat (dir, l->id, 0);
    fd = openat (dir, l->id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  if (fd < 0 || write_all (fd, text, strlen (text)) < 0 || fsync (dir) < 0)
    return err_set (e, ERR_UNAVAILABLE, "%s/identity/%s: %s", l->broker->conf.broker.state_dir,
                    l->id, strerror (errno));
  return 0;
}

char *
identity_get (const struct lease *l, size_t *len)
{
  AUTO_CLOSE int dir = folder (l->broker, false);
  AUTO_CLOSE int fd = dir >= 0 ? openat (dir, l->id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  char *text = fd >= 0 ? calloc (1, KEY_MAX + 1) : NULL;
  ssize_t n = text ? read (fd, text, KEY_MAX) : -1;

  if (n > 0) {
    *len = (size_t) n;
    return text;
  }
  free (text);
  return NULL;
}

void
identity_drop (const struct lease *l)
{
  AUTO_CLOSE int dir = folder (l->broker, false);

  if (dir >= 0 && unlinkat (dir, l->id, 0) == 0)
    log_at (LOG_INFO, "identity.dropped", "lease=%s", l->id);
}

void
identity_sweep (struct broker *b)
{
  int fd = folder (b, false);
  DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
  struct dirent *d;

  while (dir && (d = readdir (dir))) {
    const struct lease *l =
        d->d_name[0] == 'l' ? engine_lease (b, strtoll (d->d_name + 1, NULL, 10)) : NULL;

    if (d->d_name[0] != '.' && (!l || lease_ended (l->state) || strcmp (l->id, d->d_name) != 0))
      unlinkat (fd, d->d_name, 0);
  }
  if (dir)
    closedir (dir);
  else if (fd >= 0)
    close (fd);
}
