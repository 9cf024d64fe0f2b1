/* ssh_script.c - what is sent to a node: the command that is run there and the shell text on its
 * stdin
 *
 * Everything of ours goes over stdin: argv and environment can be read by others on the node.  No
 * text from outside reaches the shell unquoted.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/evp.h>

#include "core/clock.h"
#include "join/ssh_script.h"

enum { VALUE_MAX = 16 * 1024 };

struct text {
  char *at;
  size_t n, cap;
};

static void
append (struct text *t, const char *bytes, size_t n)
{
  if (t->n + n + 1 > t->cap) {
    size_t cap = (t->n + n + 1) * 2;
    char *at = malloc (cap);

    if (!at)
      abort ();
    if (t->n)
      memcpy (at, t->at, t->n);
    if (t->at)
      explicit_bzero (t->at, t->n); /* it may hold a token */
    free (t->at);
    t->at = at;
    t->cap = cap;
  }
  memcpy (t->at + t->n, bytes, n);
  t->n += n;
  t->at[t->n] = '\0';
}

static void
add (struct text *t, const char *s)
{
  append (t, s, strlen (s));
}

static PRINTF (2, 3) void addf (struct text *t, const char *fmt, ...)
{
  char line[256];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (line, sizeof line, fmt, ap);
  va_end (ap);
  add (t, line);
}

/* 'it'\''s': inside single quotes a shell reads nothing but the end of them. */
static void
add_quoted (struct text *t, const char *s)
{
  add (t, "'");
  for (; *s; s++) {
    if (*s == '\'')
      add (t, "'\\''");
    else
      append (t, s, 1);
  }
  add (t, "'");
}

static void
add_assignment (struct text *t, const char *name, const char *value)
{
  add (t, name);
  add (t, "=");
  add_quoted (t, value);
  add (t, "\n");
}

static const char *
node_script (const char *name)
{
  for (const struct node_script *s = node_scripts; s->name; s++)
    if (strcmp (s->name, name) == 0)
      return s->text;
  return NULL;
}

void
script_nonce (char nonce[SCRIPT_NONCE + 1])
{
  unsigned char bytes[SCRIPT_NONCE / 2];

  if (getrandom (bytes, sizeof bytes, 0) != sizeof bytes)
    abort ();
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf (nonce + 2 * i, 3, "%02x", bytes[i]);
}

void
script_hash (const char *script, const json_t *params, char hash[65])
{
  AUTO_FREE char *canonical = json_dumps (params, JSON_SORT_KEYS | JSON_COMPACT);
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *c = EVP_MD_CTX_new ();

  EVP_DigestInit_ex (c, EVP_sha256 (), NULL);
  EVP_DigestUpdate (c, script, strlen (script) + 1);
  for (const struct node_script *s = node_scripts; s->name; s++)
    EVP_DigestUpdate (c, s->text, strlen (s->text) + 1);
  EVP_DigestUpdate (c, canonical, strlen (canonical));
  EVP_DigestFinal_ex (c, sum, &n);
  EVP_MD_CTX_free (c);
  for (unsigned i = 0; i < n; i++)
    snprintf (hash + 2 * (size_t) i, 3, "%02x", sum[i]);
}

static int
check_param (const char *name, const json_t *value, struct err *e)
{
  if (!*name || strlen (name) > 32 ||
      strspn (name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen (name) ||
      (*name >= '0' && *name <= '9'))
    return err_set (e, ERR_INVALID, "parameter name '%.40s' is not of the form NAME_1", name);
  if (!json_is_string (value) || json_string_length (value) > VALUE_MAX ||
      strlen (json_string_value (value)) != json_string_length (value))
    return err_set (e, ERR_INVALID, "parameter %s must be a string of at most %d bytes", name,
                    VALUE_MAX);
  return 0;
}

/* The files that make up each script, in order; the last line calls gpub_NAME. */
static const struct {
  const char *name, *parts[8];
} runnable[] = {
  { "check", { "common", "probe", "check", NULL } },
  { "authorise", { "common", "probe", "check", NULL } },
  { "worker", { "common", "probe", "check", "leave", "preflight", "runtime", "worker", NULL } },
  { "standalone",
    { "common", "probe", "check", "leave", "preflight", "runtime", "standalone", NULL } },
  { "leave", { "common", "probe", "leave", NULL } },
  { "forget", { "common", "probe", "leave", NULL } },
};

static const char *const *
parts_of (const char *script)
{
  for (size_t i = 0; i < N_ELEMENTS (runnable); i++)
    if (strcmp (runnable[i].name, script) == 0)
      return runnable[i].parts;
  return NULL;
}

int
script_check (const struct script_run *r, struct err *e)
{
  static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const char *name;
  json_t *value;

  if (!parts_of (r->script))
    return err_set (e, ERR_INVALID, "no node script is named '%.40s'", r->script);
  if (strlen (r->hash) > 64 || r->hash[strspn (r->hash, fine)])
    return err_set (e, ERR_INVALID,
                    "the hash of a run must be at most 64 letters, digits, '.', '_' and '-'");
  json_object_foreach ((json_t *) r->params, name, value)
    if (check_param (name, value, e) < 0)
      return -1;
  return 0;
}

/* Quoted for whatever shell the user has: no single quote inside, one line. */
char *
script_command (const char *nonce)
{
  struct text t = { 0 };

  addf (&t, "exec /bin/sh -c 'echo hello=%s; ", nonce);
  add (&t, "if [ \"$(id -u)\" != 0 ] && sudo -n true 2>/dev/null; then exec sudo -n /bin/sh; fi; "
           "exec /bin/sh'");
  return t.at;
}

char *
script_probe (void)
{
  struct text t = { 0 };

  add (&t, node_script ("probe"));
  add (&t, "gpub_probe </dev/null\n");
  return t.at;
}

char *
script_log (void)
{
  struct text t = { 0 };

  add (&t, node_script ("common"));
  add (&t, node_script ("log"));
  add (&t, "gpub_log </dev/null\n");
  return t.at;
}

char *
script_kubeconfig (void)
{
  struct text t = { 0 };

  add (&t, node_script ("kubeconfig"));
  add (&t, "gpub_kubeconfig </dev/null\n");
  return t.at;
}

static void
add_follow (struct text *t, const struct script_run *r, int64_t offset, int wait_s)
{
  add (t, node_script ("launch"));
  addf (t, "RUN='%s-%s'\nOFFSET=%lld\nWAIT=%d\n", r->script, r->hash, (long long) offset, wait_s);
}

char *
script_follow (const struct script_run *r, int64_t offset, int wait_s)
{
  struct text t = { 0 };

  add_follow (&t, r, offset, wait_s);
  add (&t, "gpub_follow </dev/null\n");
  return t.at;
}

/* The here-document's end carries the nonce, so that no script text can hold it. */
char *
script_launch (const struct script_run *r, const char *nonce, int wait_s)
{
  struct text t = { 0 };
  const char *name;
  json_t *value;

  add_follow (&t, r, 0, wait_s);
  addf (&t, "NOW_MS=%lld\ngpub_script() {\ncat <<'GPUB_%s'\n", (long long) clock_wall_ms (), nonce);
  json_object_foreach ((json_t *) r->params, name, value)
    add_assignment (&t, name, json_string_value (value));
  addf (&t, "SCRIPT='%s'\nHASH='%s'\n", r->script, r->hash);
  for (const char *const *part = parts_of (r->script); *part; part++)
    add (&t, node_script (*part));
  addf (&t, "gpub_%s </dev/null\nGPUB_%s\n}\n", r->script, nonce);
  add (&t, "gpub_token() {\n:\n");
  if (r->token) {
    add (&t, "printf '%s\\n' ");
    add_quoted (&t, r->token);
    add (&t, "\n");
  }
  add (&t, "}\ngpub_launch </dev/null\n");
  return t.at;
}
