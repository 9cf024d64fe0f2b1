/* set-file.c - options that name a file: public keys and user-data
 *
 * A private key leaves this process only when it was given as one.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/keys.h"
#include "cli/set.h"

enum { KEY_FILE_MAX = 16 * 1024, USER_DATA_MAX = 48 * 1024 };

/* The whole file, NUL-ended; "-" is standard input.  Caller frees. */
static char *
slurp (const char *path, size_t max, struct err *e)
{
  bool in = strcmp (path, "-") == 0;
  FILE *f = in ? stdin : fopen (path, "re");
  AUTO_FREE char *bytes = malloc (max + 2);
  size_t n;

  if (!f || !bytes) {
    err_set (e, ERR_INVALID, "%.120s: %s", path, strerror (errno));
    return NULL;
  }
  n = fread (bytes, 1, max + 1, f);
  if (ferror (f))
    err_set (e, ERR_INVALID, "%.120s: %s", path, strerror (errno));
  else if (n > max)
    err_set (e, ERR_INVALID, "%.120s is longer than %zu bytes", path, max);
  else if (memchr (bytes, '\0', n))
    err_set (e, ERR_INVALID, "%.120s is not a text", path);
  bytes[n] = '\0';
  if (!in)
    fclose (f);
  return n > max || memchr (bytes, '\0', n) ? NULL : STEAL (bytes);
}

bool
key_is_public (const char *line)
{
  static const char *const types[] = { "ssh-ed25519 ", "ssh-rsa ", "ecdsa-sha2-", "sk-ssh-ed25519@",
                                       "sk-ecdsa-" };

  for (size_t i = 0; i < N_ELEMENTS (types); i++)
    if (strncmp (line, types[i], strlen (types[i])) == 0)
      return true;
  return false;
}

int
keys_add_file (json_t *list, const char *path, struct err *e)
{
  AUTO_FREE char *bytes = slurp (path, KEY_FILE_MAX, e);
  char *line, *rest;
  size_t before = json_array_size (list);

  if (!bytes)
    return -1;
  if (strstr (bytes, "PRIVATE KEY"))
    return err_set (e, ERR_INVALID, "%.120s is a private key: name the .pub file beside it", path);
  for (line = strtok_r (bytes, "\r\n", &rest); line; line = strtok_r (NULL, "\r\n", &rest)) {
    if (line[0] == '#')
      continue;
    if (!key_is_public (line) || json_array_append_new (list, json_string (line)) < 0)
      return err_set (e, ERR_INVALID, "%.120s is not an OpenSSH public key", path);
  }
  if (json_array_size (list) == before)
    return err_set (e, ERR_INVALID, "%.120s holds no key", path);
  return 0;
}

int
set_ssh_key (const struct option *o, const char *value, json_t *into, struct err *e)
{
  json_t *list = json_object_get (into, o->member);

  if (!list) {
    list = json_array ();
    json_object_set_new (into, o->member, list);
  }
  return keys_add_file (list, value, e);
}

int
identity_read (json_t *body, const char *path, struct err *e)
{
  AUTO_FREE char *bytes = slurp (path, KEY_FILE_MAX, e);
  json_t *j = bytes && strstr (bytes, "PRIVATE KEY") ? json_string (bytes) : NULL;

  if (bytes && !j)
    err_set (e, ERR_INVALID, "%.120s is no private key", path);
  if (bytes)
    explicit_bzero (bytes, strlen (bytes));
  return j ? json_object_set_new (body, "identity", j) : -1;
}

int
set_user_data (const struct option *o, const char *value, json_t *into, struct err *e)
{
  AUTO_FREE char *bytes = slurp (value, USER_DATA_MAX, e);
  json_t *j = bytes ? json_string (bytes) : NULL;

  if (bytes && !j)
    err_set (e, ERR_INVALID, "%.120s is not UTF-8", value);
  return j ? json_object_set_new (into, o->member, j) : -1;
}

/* The keys ssh itself would offer first; a machine that takes none of the caller's keys is of no
 * use to them. */
void
keys_add_own (json_t *list)
{
  static const char *const names[] = { "id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub" };
  const char *home = getenv ("HOME");
  char path[512];

  for (size_t i = 0; home && i < N_ELEMENTS (names); i++) {
    snprintf (path, sizeof path, "%s/.ssh/%s", home, names[i]);
    keys_add_file (list, path, NULL);
  }
}
