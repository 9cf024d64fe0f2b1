/* sshkey.c - the installation's own ed25519 key
 *
 * OpenSSL writes ed25519 only as PKCS#8, which libssh2 1.10 does not read: the openssh-key-v1
 * container (PROTOCOL.key of OpenSSH) is written here.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "core/sshkey.h"

enum { KEY = 32, BLOB_MAX = 320, LINE = 70, BLOCK = 8 };

#define MAGIC "openssh-key-v1" /* its NUL is part of it */
#define TYPE  "ssh-ed25519"
#define HEAD  "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define TAIL  "-----END OPENSSH PRIVATE KEY-----\n"

struct blob {
  unsigned char at[BLOB_MAX];
  size_t n;   /* written, or read */
  size_t len; /* when read */
};

static void
put (struct blob *b, const void *bytes, size_t n)
{
  if (b->n + n > sizeof b->at)
    abort (); /* sizes are bounded by sshkey_make */
  memcpy (b->at + b->n, bytes, n);
  b->n += n;
}

static void
put32 (struct blob *b, uint32_t v)
{
  unsigned char be[4] = { (unsigned char) (v >> 24), (unsigned char) (v >> 16),
                          (unsigned char) (v >> 8), (unsigned char) v };

  put (b, be, sizeof be);
}

static void
put_string (struct blob *b, const void *bytes, size_t n)
{
  put32 (b, (uint32_t) n);
  put (b, bytes, n);
}

static void
put_public (struct blob *b, const unsigned char public[KEY])
{
  put_string (b, TYPE, strlen (TYPE));
  put_string (b, public, KEY);
}

/* The check number twice, the key, padding 1 2 3...: what would be encrypted under a passphrase. */
static void
put_private (struct blob *b, const unsigned char seed[KEY], const unsigned char public[KEY],
             const char *comment)
{
  unsigned char both[2 * KEY];
  uint32_t check = 0;

  RAND_bytes ((unsigned char *) &check, sizeof check);
  put32 (b, check);
  put32 (b, check);
  put_public (b, public);
  memcpy (both, seed, KEY);
  memcpy (both + KEY, public, KEY);
  put_string (b, both, sizeof both);
  explicit_bzero (both, sizeof both);
  put_string (b, comment, strlen (comment));
  for (unsigned char pad = 1; b->n % BLOCK; pad++)
    put (b, &pad, 1);
}

static void
armour (struct sshkey *k, const struct blob *b)
{
  unsigned char text[BLOB_MAX * 4 / 3 + 8];
  size_t n = (size_t) EVP_EncodeBlock (text, b->at, (int) b->n), out;

  out = (size_t) snprintf (k->secret, sizeof k->secret, HEAD);
  for (size_t i = 0; i < n; i += LINE)
    out += (size_t) snprintf (k->secret + out, sizeof k->secret - out, "%.*s\n", LINE,
                              (const char *) text + i);
  out += (size_t) snprintf (k->secret + out, sizeof k->secret - out, TAIL);
  k->secret_len = out;
  explicit_bzero (text, sizeof text);
}

static void
public_line (struct sshkey *k, const unsigned char public[KEY], const char *comment)
{
  struct blob b = { .n = 0 };
  unsigned char text[128];

  put_public (&b, public);
  EVP_EncodeBlock (text, b.at, (int) b.n);
  snprintf (k->line, sizeof k->line, TYPE " %s %s", (const char *) text, comment);
}

static int
is_comment (const char *s)
{
  if (strlen (s) > 64)
    return 0;
  for (; *s; s++)
    if (*s <= ' ' || *s > '~')
      return 0;
  return 1;
}

static int
generate (unsigned char seed[KEY], unsigned char public[KEY])
{
  EVP_PKEY *pkey = EVP_PKEY_Q_keygen (NULL, NULL, "ED25519");
  size_t a = KEY, b = KEY;
  int good = pkey && EVP_PKEY_get_raw_private_key (pkey, seed, &a) == 1 &&
             EVP_PKEY_get_raw_public_key (pkey, public, &b) == 1;

  EVP_PKEY_free (pkey);
  return good ? 0 : -1;
}

int
sshkey_make (struct sshkey *k, const char *comment, struct err *e)
{
  unsigned char seed[KEY], public[KEY];
  struct blob whole = { .n = 0 }, part = { .n = 0 };

  memset (k, 0, sizeof *k);
  if (!is_comment (comment))
    return err_set (e, ERR_INVALID,
                    "an SSH key's comment must be one printable word of at most 64 bytes");
  if (generate (seed, public) < 0)
    return err_set (e, ERR_INTERNAL, "OpenSSL made no ed25519 key");
  put (&whole, MAGIC, sizeof MAGIC);
  put_string (&whole, "none", 4);
  put_string (&whole, "none", 4);
  put_string (&whole, "", 0);
  put32 (&whole, 1);
  put_public (&part, public);
  put_string (&whole, part.at, part.n);
  part.n = 0;
  put_private (&part, seed, public, comment);
  put_string (&whole, part.at, part.n);
  armour (k, &whole);
  public_line (k, public, comment);
  explicit_bzero (seed, sizeof seed);
  explicit_bzero (&whole, sizeof whole);
  explicit_bzero (&part, sizeof part);
  return 0;
}

static int
take (struct blob *b, void *out, size_t n)
{
  if (b->len - b->n < n)
    return -1;
  if (out)
    memcpy (out, b->at + b->n, n);
  b->n += n;
  return 0;
}

static int
take32 (struct blob *b, uint32_t *v)
{
  unsigned char be[4];

  if (take (b, be, sizeof be) < 0)
    return -1;
  *v = (uint32_t) be[0] << 24 | (uint32_t) be[1] << 16 | (uint32_t) be[2] << 8 | be[3];
  return 0;
}

/* The next string must be this one. */
static int
expect (struct blob *b, const char *text)
{
  size_t n = strlen (text);
  uint32_t len;

  if (take32 (b, &len) < 0 || len != n || b->len - b->n < n || memcmp (b->at + b->n, text, n) != 0)
    return -1;
  b->n += n;
  return 0;
}

static int
decode (const struct sshkey *k, struct blob *b)
{
  EVP_ENCODE_CTX *ctx;
  int n = 0, rest = 0, rc;

  memset (b, 0, sizeof *b);
  if (strncmp (k->secret, HEAD, strlen (HEAD)) != 0 || !strstr (k->secret, TAIL) ||
      k->secret_len > 3 * BLOB_MAX / 2)
    return -1;
  ctx = EVP_ENCODE_CTX_new ();
  if (!ctx)
    abort ();
  EVP_DecodeInit (ctx);
  rc = EVP_DecodeUpdate (ctx, b->at, &n, (const unsigned char *) k->secret + strlen (HEAD),
                         (int) (strstr (k->secret, TAIL) - k->secret) - (int) strlen (HEAD));
  if (rc >= 0)
    rc = EVP_DecodeFinal (ctx, b->at + n, &rest);
  EVP_ENCODE_CTX_free (ctx);
  b->len = (size_t) (n + rest);
  return rc < 0 ? -1 : 0;
}

/* From the private text to the public line. */
static int
parse (struct sshkey *k)
{
  unsigned char public[KEY];
  char magic[sizeof MAGIC], comment[65] = "";
  uint32_t n, checks[2];
  struct blob b;
  int rc = -1;

  if (decode (k, &b) == 0 && take (&b, magic, sizeof magic) == 0 &&
      memcmp (magic, MAGIC, sizeof magic) == 0 && expect (&b, "none") == 0 &&
      expect (&b, "none") == 0 && expect (&b, "") == 0 && take32 (&b, &n) == 0 && n == 1 &&
      take32 (&b, &n) == 0 && expect (&b, TYPE) == 0 && take32 (&b, &n) == 0 && n == KEY &&
      take (&b, public, KEY) == 0 && take32 (&b, &n) == 0 && take32 (&b, &checks[0]) == 0 &&
      take32 (&b, &checks[1]) == 0 && checks[0] == checks[1] && expect (&b, TYPE) == 0 &&
      take32 (&b, &n) == 0 && take (&b, NULL, KEY) == 0 && take32 (&b, &n) == 0 && n == 2 * KEY &&
      take (&b, NULL, n) == 0 && take32 (&b, &n) == 0 && n < sizeof comment &&
      take (&b, comment, n) == 0 && is_comment (comment)) {
    public_line (k, public, comment);
    rc = 0;
  }
  explicit_bzero (&b, sizeof b);
  return rc;
}

static int
write_whole (int fd, const char *text, size_t n)
{
  for (ssize_t w; n > 0; text += w, n -= (size_t) w) {
    w = write (fd, text, n);
    if (w < 0)
      return -1;
  }
  return fsync (fd);
}

/* Either the whole file is there after a crash, or none. */
static int
save (int dir, const char *name, const char *text, size_t n, mode_t mode, struct err *e)
{
  char fresh[256];
  int fd, rc;

  snprintf (fresh, sizeof fresh, "%s.new", name);
  unlinkat (dir, fresh, 0);
  fd = openat (dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0)
    return err_set (e, ERR_UNAVAILABLE, "create %s: %s", fresh, strerror (errno));
  rc = write_whole (fd, text, n);
  if (close (fd) < 0 || rc < 0 || renameat (dir, fresh, dir, name) < 0 || fsync (dir) < 0)
    return err_set (e, ERR_UNAVAILABLE, "write %s: %s", name, strerror (errno));
  return 0;
}

static int
save_public (const struct sshkey *k, int dir, const char *name, struct err *e)
{
  char file[256], line[sizeof k->line + 1];

  snprintf (file, sizeof file, "%s.pub", name);
  if (faccessat (dir, file, F_OK, 0) == 0)
    return 0;
  return save (dir, file, line, (size_t) snprintf (line, sizeof line, "%s\n", k->line), 0644, e);
}

static int
load (struct sshkey *k, int fd, const char *name, struct err *e)
{
  struct stat st;
  ssize_t n;

  memset (k, 0, sizeof *k);
  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
    return err_set (e, ERR_INVALID, "%s is no regular file", name);
  if (st.st_mode & 077 || (st.st_uid != geteuid () && st.st_uid != 0))
    return err_set (e, ERR_INVALID, "others may read %s: chown it to this user and chmod 600",
                    name);
  n = read (fd, k->secret, sizeof k->secret - 1);
  k->secret_len = n > 0 ? (size_t) n : 0;
  if (n <= 0 || parse (k) < 0) {
    sshkey_done (k);
    return err_set (e, ERR_INVALID, "%s is no unencrypted ed25519 key in OpenSSH's format", name);
  }
  return 0;
}

int
sshkey_load_or_make (struct sshkey *k, const char *dir, const char *name, const char *comment,
                     struct err *e)
{
  AUTO_CLOSE int folder = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  AUTO_CLOSE int fd = -1;

  if (folder < 0)
    return err_set (e, ERR_UNAVAILABLE, "%s: %s", dir, strerror (errno));
  fd = openat (folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno != ENOENT)
    return err_set (e, ERR_INVALID, "%s/%s: %s", dir, name, strerror (errno));
  if (fd >= 0 ? load (k, fd, name, e) < 0
              : sshkey_make (k, comment, e) < 0 ||
                    save (folder, name, k->secret, k->secret_len, 0600, e) < 0)
    return err_add (e, "%s", dir);
  return save_public (k, folder, name, e);
}

void
sshkey_done (struct sshkey *k)
{
  explicit_bzero (k, sizeof *k);
}
