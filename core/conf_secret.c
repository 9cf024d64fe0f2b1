/* conf_secret.c - where secrets are, and reading them */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/conf_read.h"

enum { SECRET_MAX = 64 * 1024 };

static const struct {
  const char *suffix;
  enum conf_source source;
} sources[] = {
  { "_file", CONF_FILE },
  { "_env", CONF_ENV },
  { "_credential", CONF_CREDENTIAL },
};

void
conf_secret_free (struct conf_secret *x)
{
  free (x->option);
  free (x->where);
  memset (x, 0, sizeof *x);
}

static int
split_suffix (const char *name, size_t *stem, enum conf_source *source)
{
  size_t len = strlen (name);

  for (size_t i = 0; i < N_ELEMENTS (sources); i++) {
    size_t n = strlen (sources[i].suffix);

    if (len <= n || strcmp (name + len - n, sources[i].suffix) != 0)
      continue;
    *stem = len - n;
    *source = sources[i].source;
    return 1;
  }
  return 0;
}

int
conf_secret_setting (const config_setting_t *s, const char *path, const char *where,
                     struct conf_secret *x, struct err *e)
{
  const char *name = config_setting_name (s), *value = config_setting_get_string (s);
  enum conf_source source;
  size_t stem;

  if (!split_suffix (name, &stem, &source))
    return 0;
  if (!value || !*value)
    return conf_error (s, path, e, "'%.60s' in %s must be a string in quotes", name, where);
  if (source == CONF_FILE && *value != '/')
    return conf_error (s, path, e, "'%.60s' in %s must be an absolute path", name, where);
  if (source == CONF_CREDENTIAL && strchr (value, '/'))
    return conf_error (s, path, e, "'%.60s' in %s must be the name of a systemd credential", name,
                       where);
  if (x->option)
    return conf_error (s, path, e, "'%.60s' in %s: '%s' is already given on line %u", name, where,
                       x->option, x->line);
  x->option = strndup (name, stem);
  x->where = strdup (value);
  x->source = source;
  x->line = config_setting_source_line (s);
  return 1;
}

/* Whitespace at its end is what editors and echo leave there. */
static void
trim (char *bytes, size_t *len)
{
  while (*len && isspace ((unsigned char) bytes[*len - 1]))
    --*len;
  bytes[*len] = '\0';
}

static int
read_all (int fd, const char *path, char *bytes, size_t *len, struct err *e)
{
  ssize_t n;

  *len = 0;
  while ((n = read (fd, bytes + *len, SECRET_MAX + 1 - *len)) > 0)
    *len += (size_t) n;
  if (n < 0)
    return err_set (e, ERR_INVALID, "cannot read %.120s: %s", path, strerror (errno));
  if (*len > SECRET_MAX)
    return err_set (e, ERR_INVALID, "%.120s is longer than 64 KiB: no secret is", path);
  return 0;
}

static int
check_mode (int fd, const char *path, bool credential, struct err *e)
{
  struct stat st;

  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
    return err_set (e, ERR_INVALID, "%.120s is no regular file", path);
  /* systemd guards its credentials by the folder they are in. */
  if (!credential && (st.st_mode & 077))
    return err_set (e, ERR_AUTH,
                    "%.120s can be used by others than its owner (mode %04o): chmod 600 it", path,
                    (unsigned) st.st_mode & 07777);
  return 0;
}

static int
read_file (const char *path, bool credential, char *bytes, size_t *len, struct err *e)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

  if (fd < 0)
    return err_set (e, ERR_INVALID, "cannot open %.120s: %s", path, strerror (errno));
  if (check_mode (fd, path, credential, e) < 0)
    return -1;
  return read_all (fd, path, bytes, len, e);
}

static int
read_credential (const char *name, char *bytes, size_t *len, struct err *e)
{
  const char *dir = getenv ("CREDENTIALS_DIRECTORY");
  char path[512];

  if (!dir)
    return err_set (
        e, ERR_INVALID,
        "credential '%.60s': no $CREDENTIALS_DIRECTORY; run under systemd with LoadCredential=",
        name);
  snprintf (path, sizeof path, "%s/%s", dir, name);
  return read_file (path, true, bytes, len, e);
}

static int
read_env (const char *name, char *bytes, size_t *len, struct err *e)
{
  const char *value = getenv (name);

  if (!value)
    return err_set (e, ERR_INVALID, "$%.60s is not set", name);
  *len = strlen (value);
  if (*len > SECRET_MAX)
    return err_set (e, ERR_INVALID, "$%.60s is longer than 64 KiB: no secret is", name);
  memcpy (bytes, value, *len);
  return 0;
}

static int
read_source (const struct conf_secret *s, char *bytes, size_t *len, struct err *e)
{
  switch (s->source) {
  case CONF_FILE:
    return read_file (s->where, false, bytes, len, e);
  case CONF_ENV:
    return read_env (s->where, bytes, len, e);
  case CONF_CREDENTIAL:
    return read_credential (s->where, bytes, len, e);
  }
  return err_set (e, ERR_INTERNAL, "unknown source of a secret");
}

int
conf_read_secret (const struct conf_secret *s, char **bytes, size_t *len, struct err *e)
{
  char *buf = calloc (1, SECRET_MAX + 2);
  int rc;

  if (!buf)
    abort ();
  *len = 0;
  rc = read_source (s, buf, len, e);
  if (rc == 0)
    trim (buf, len);
  if (rc == 0 && *len == 0)
    rc = err_set (e, ERR_INVALID, "%.120s is empty", s->where);
  if (rc < 0) {
    explicit_bzero (buf, SECRET_MAX + 2);
    free (buf);
    *bytes = NULL;
    *len = 0;
    return err_add (e, "secret '%.60s'", s->option);
  }
  *bytes = buf;
  return 0;
}
