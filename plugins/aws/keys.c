/* keys.c - who we are: the first source that has keys, and renewal before they end
 *
 * The order: options of the provider, the shared files' profile (its keys, else its
 * credential_process), a container's endpoint, the metadata service of an EC2 machine.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/aws/aws.h"

enum { FILE_MAX = 256 * 1024, RENEW_MS = 5 * 60 * 1000 };

int64_t
keys_clock (const struct ctx *c)
{
  return c->s->host->now_ms (c->call);
}

/* ---- Options ---- */

static bool
secret (const struct ctx *c, const char *option, char *out, size_t size)
{
  const void *bytes;
  uint64_t n;

  if (c->s->host->secret (c->call, option, &bytes, &n) != GPUB_OK || n == 0)
    return false;
  while (n && strchr (" \t\r\n", ((const char *) bytes)[n - 1]))
    n--;
  snprintf (out, size, "%.*s", (int) (n < size ? n : size - 1), (const char *) bytes);
  return n > 0;
}

static int32_t
from_options (const struct ctx *c, struct keys *k)
{
  bool id = secret (c, "access_key_id", k->id, sizeof k->id),
       key = secret (c, "secret_access_key", k->secret, sizeof k->secret);

  if (!id && !key)
    return GPUB_E_NOT_FOUND;
  if (!id || !key)
    return plug_error (c->err, GPUB_E_AUTH, "%s is given, but %s is not",
                       id ? "access_key_id" : "secret_access_key",
                       id ? "secret_access_key" : "access_key_id");
  secret (c, "session_token", k->token, sizeof k->token);
  return GPUB_OK;
}

/* ---- The shared files ---- */

/* "" for a file that is not there: other sources may have keys. */
static int32_t
slurp (const struct ctx *c, const char *path, char **text)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  size_t n = 0;
  ssize_t got;

  *text = calloc (1, FILE_MAX + 1);
  if (!*text)
    abort ();
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR
               ? GPUB_OK
               : plug_error (c->err, GPUB_E_AUTH, "%.150s: %s", path, strerror (errno));
  while (n < FILE_MAX && (got = read (fd, *text + n, FILE_MAX - n)) != 0) {
    if (got < 0)
      return plug_error (c->err, GPUB_E_AUTH, "%.150s: %s", path, strerror (errno));
    n += (size_t) got;
  }
  return GPUB_OK;
}

struct files {
  char *shared, *config; /* their texts */
  char section[FIELD_MAX + 16];
};

static bool
setting (const struct files *f, const char *profile, const char *key, char *out, size_t size)
{
  return ini_get (f->shared, profile, key, out, size) ||
         ini_get (f->config, f->section, key, out, size);
}

static int32_t
from_profile (const struct ctx *c, const struct files *f, const char *profile, struct keys *k)
{
  char command[1024];

  if (setting (f, profile, "aws_access_key_id", k->id, sizeof k->id) &&
      setting (f, profile, "aws_secret_access_key", k->secret, sizeof k->secret)) {
    setting (f, profile, "aws_session_token", k->token, sizeof k->token);
    return GPUB_OK;
  }
  if (setting (f, profile, "credential_process", command, sizeof command))
    return keys_from_process (c, command, k);
  if (setting (f, profile, "role_arn", command, sizeof command) ||
      setting (f, profile, "sso_session", command, sizeof command) ||
      setting (f, profile, "sso_start_url", command, sizeof command))
    return plug_error (c->err, GPUB_E_AUTH,
                       "profile '%.60s' assumes a role or signs in: let a credential_process do "
                       "that",
                       profile);
  if (c->s->profile)
    return plug_error (c->err, GPUB_E_AUTH, "profile '%.60s' has no keys in %.80s nor in %.80s",
                       profile, c->s->shared_file, c->s->config_file);
  return GPUB_E_NOT_FOUND;
}

static int32_t
from_files (const struct ctx *c, struct keys *k)
{
  const char *profile = c->s->profile ? c->s->profile : "default";
  struct files f = { .shared = NULL };
  int32_t rc = slurp (c, c->s->shared_file, &f.shared);

  snprintf (f.section, sizeof f.section, "%s%.64s",
            strcmp (profile, "default") == 0 ? "" : "profile ", profile);
  if (rc == GPUB_OK)
    rc = slurp (c, c->s->config_file, &f.config);
  if (rc == GPUB_OK)
    rc = from_profile (c, &f, profile, k);
  if (f.shared)
    explicit_bzero (f.shared, FILE_MAX);
  if (f.config)
    explicit_bzero (f.config, FILE_MAX);
  free (f.shared);
  free (f.config);
  return rc;
}

/* ---- Documents ---- */

bool
keys_of_json (const json_t *doc, struct keys *k)
{
  const char *id = json_str (doc, "AccessKeyId", ""), *key = json_str (doc, "SecretAccessKey", ""),
             *token = json_str (doc, "Token", json_str (doc, "SessionToken", "")),
             *until = json_str (doc, "Expiration", "");

  memset (k, 0, sizeof *k);
  if (!*id || !*key || strlen (id) >= sizeof k->id || strlen (key) >= sizeof k->secret ||
      strlen (token) >= sizeof k->token || (*until && !rfc3339_parse (until, &k->expires_ms)))
    return false;
  strcpy (k->id, id);
  strcpy (k->secret, key);
  strcpy (k->token, token);
  return true;
}

/* ---- The chain ---- */

static int32_t
from_imds (const struct ctx *c, struct keys *k)
{
  return c->s->imds ? keys_from_imds (c, k) : GPUB_E_NOT_FOUND;
}

static int32_t
from_container (const struct ctx *c, struct keys *k)
{
  return c->s->credentials_url ? keys_from_url (c, k) : GPUB_E_NOT_FOUND;
}

static const struct {
  const char *name;
  int32_t (*get) (const struct ctx *, struct keys *);
} sources[] = {
  { "files", from_files },
  { "container", from_container },
  { "imds", from_imds },
};

static bool
plain (const char *text, size_t max)
{
  size_t n = strlen (text);

  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return false;
  return n < max;
}

static int32_t
fetch (const struct ctx *c, struct keys *k, const char **source)
{
  for (size_t i = 0; i < N_ELEMENTS (sources); i++) {
    int32_t rc;

    memset (k, 0, sizeof *k);
    rc = sources[i].get (c, k);
    if (rc == GPUB_E_NOT_FOUND)
      continue;
    *source = sources[i].name;
    if (rc == GPUB_OK && k->expires_ms && k->expires_ms <= keys_clock (c))
      return plug_error (c->err, GPUB_E_AUTH,
                         "the credentials (%s) have expired already: are they renewed, is the "
                         "clock right",
                         *source);
    return rc;
  }
  return plug_error (c->err, GPUB_E_AUTH,
                     "no credentials: give access_key_id and secret_access_key, a profile, "
                     "credentials_url, or run on EC2 with a role");
}

static bool
cached (const struct ctx *c, struct keys *k)
{
  struct aws *s = c->s;
  bool good;

  pthread_mutex_lock (&s->lock);
  good = s->source && (!s->keys.expires_ms || s->keys.expires_ms > keys_clock (c) + RENEW_MS);
  if (good)
    *k = s->keys;
  pthread_mutex_unlock (&s->lock);
  return good;
}

static void
keep (const struct ctx *c, const struct keys *k, const char *source)
{
  char text[64];

  pthread_mutex_lock (&c->s->lock);
  c->s->keys = *k;
  c->s->source = source;
  pthread_mutex_unlock (&c->s->lock);
  snprintf (text, sizeof text, "source=%s expires=%d", source, k->expires_ms != 0);
  c->s->host->log (c->call, GPUB_LOG_INFO, "aws.credentials", text);
}

/* A renewal that fails leaves what is still good to be used. */
static int32_t
renew (const struct ctx *c, struct keys *k)
{
  const char *source = NULL;
  struct keys old;
  int32_t rc = fetch (c, k, &source);

  if (rc == GPUB_OK) {
    keep (c, k, source);
    return GPUB_OK;
  }
  pthread_mutex_lock (&c->s->lock);
  old = c->s->keys;
  if (!c->s->source)
    old.expires_ms = 0;
  pthread_mutex_unlock (&c->s->lock);
  if (old.expires_ms > keys_clock (c)) {
    c->s->host->log (c->call, GPUB_LOG_WARNING, "aws.credentials.stale", c->err->text);
    *k = old;
    rc = GPUB_OK;
  }
  explicit_bzero (&old, sizeof old);
  return rc;
}

int32_t
keys_get (const struct ctx *c, struct keys *k)
{
  int32_t rc;

  memset (k, 0, sizeof *k);
  rc = from_options (c, k);
  if (rc == GPUB_E_NOT_FOUND) {
    rc = GPUB_OK;
    if (!cached (c, k)) {
      pthread_mutex_lock (&c->s->renewal);
      if (!cached (c, k))
        rc = renew (c, k);
      pthread_mutex_unlock (&c->s->renewal);
    }
  }
  if (rc == GPUB_OK && (!plain (k->id, KEY_ID_MAX) || !plain (k->secret, KEY_SECRET_MAX) ||
                        !plain (k->token, KEY_TOKEN_MAX)))
    rc = plug_error (c->err, GPUB_E_AUTH, "the credentials have a character that no key has");
  return rc;
}

void
keys_refused (const struct ctx *c, const struct keys *k)
{
  pthread_mutex_lock (&c->s->lock);
  if (c->s->source && strcmp (c->s->keys.id, k->id) == 0) {
    c->s->keys = (struct keys){ .id = "" };
    c->s->source = NULL;
  }
  pthread_mutex_unlock (&c->s->lock);
}
