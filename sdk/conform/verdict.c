/* verdict.c - what a case expected, what came, and what of it must never be seen
 *
 * The first failed check of a case is the one that is told: what follows it is mostly its echo.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

enum { LOG_KEPT = 400, SHORT_SECRET = 4, SECRET_LINE = 24, STATE_FILE_MOST = 64 * 1024 };

/* ---- what came, in words ---- */

static void
say_machines (FILE *to, const json_t *machines)
{
  const json_t *m;
  size_t i;

  json_array_foreach (machines, i, m) {
    if (i == 5) {
      fprintf (to, ", ...");
      return;
    }
    fprintf (to, "%s%s (%s)", i ? ", " : ", machines ", json_str (m, "id", "?"),
             json_str (m, "state", "?"));
  }
}

static void
say_scopes (FILE *to, const json_t *scopes)
{
  const json_t *s;
  size_t i;

  json_array_foreach (scopes, i, s) {
    if (i < 8)
      fprintf (to, "%s%s=%s", i ? " " : ", scopes ", json_str (s, "scope", "?"),
               json_str (s, "how", "?"));
  }
}

static void
say_answer (char *out, size_t size, const struct answer *a)
{
  FILE *to = fmemopen (out, size, "w");

  if (!to)
    abort ();
  fprintf (to, "'%s' returned %s", a->call, a->kind == ERR_NONE ? "ok" : err_kind_name (a->kind));
  if (*a->text)
    fprintf (to, " \"%s\"", a->text);
  if (*a->code)
    fprintf (to, " (code %s)", a->code);
  if (a->retry_after_ms)
    fprintf (to, " (retry after %lld ms)", (long long) a->retry_after_ms);
  fprintf (to, " after %lld ms", (long long) a->took_ms);
  if (json_array_size (a->offers))
    fprintf (to, ", %zu offers", json_array_size (a->offers));
  say_machines (to, a->machines);
  say_scopes (to, a->scopes);
  fclose (to);
}

/* ---- checks ---- */

static void
fail (struct test *t, const char *expected, va_list ap)
{
  t->failed = true;
  vsnprintf (t->expected, sizeof t->expected, expected, ap);
}

bool
expect (struct test *t, bool pass, const struct answer *got, const char *expected, ...)
{
  va_list ap;

  if (t->failed || pass)
    return !t->failed;
  say_answer (t->got, sizeof t->got, got);
  va_start (ap, expected);
  fail (t, expected, ap);
  va_end (ap);
  return false;
}

bool
expect_text (struct test *t, bool pass, const char *got, const char *expected, ...)
{
  va_list ap;

  if (t->failed || pass)
    return !t->failed;
  snprintf (t->got, sizeof t->got, "%s", got);
  va_start (ap, expected);
  fail (t, expected, ap);
  va_end (ap);
  return false;
}

bool
expect_kind (struct test *t, const struct answer *a, enum err_kind kind, const char *what)
{
  return expect (t, a->kind == kind, a, "%s: %s", what,
                 kind == ERR_NONE ? "ok" : err_kind_name (kind));
}

bool
skip (struct test *t, const char *why, ...)
{
  va_list ap;

  va_start (ap, why);
  vsnprintf (t->why, sizeof t->why, why, ap);
  va_end (ap);
  t->skipped = true;
  return false;
}

json_t *
keep (struct test *t, json_t *j)
{
  *vec_push (&t->kept) = j;
  return j;
}

void
note_log (struct test *t, const char *line)
{
  if (t->kit->verbose)
    printf ("# log: %s\n", line);
  if (t->log.n < LOG_KEPT)
    *vec_push (&t->log) = strdup (line);
}

/* ---- secrets ---- */

/* A long line of it, for a key that JSON or a library would break at its newlines; else all of it.
 */
static bool
shows (const char *text, size_t len, const struct secret *s)
{
  const char *end = s->bytes + s->len;
  bool lines = memchr (s->bytes, '\n', s->len) != NULL;

  if (!lines)
    return s->len >= SHORT_SECRET && memmem (text, len, s->bytes, s->len) != NULL;
  for (const char *p = s->bytes; p < end;) {
    size_t n = strcspn (p, "\n\"\\ -");

    if (n >= SECRET_LINE && memmem (text, len, p, n))
      return true;
    p += n + 1;
  }
  return false;
}

void
look_for_secrets (struct test *t, const char *where, const char *text, size_t len)
{
  for (size_t i = 0; i < t->kit->secrets.n; i++) {
    const struct secret *s = &t->kit->secrets.at[i];
    char got[200];

    if (!shows (text, len, s))
      continue;
    snprintf (got, sizeof got, "%.60s shows '%.60s'", where, s->name);
    expect_text (t, false, got, "no secret in anything that leaves the process");
  }
}

void
look_for_secrets_in_state (struct test *t)
{
  DIR *d = opendir (t->state_dir);
  AUTO_FREE char *bytes = malloc (STATE_FILE_MOST);
  char where[300];

  for (const struct dirent *e; d && bytes && (e = readdir (d));) {
    AUTO_CLOSE int fd = openat (dirfd (d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read (fd, bytes, STATE_FILE_MOST);

    snprintf (where, sizeof where, "state '%s'", e->d_name);
    if (n > 0)
      look_for_secrets (t, where, bytes, (size_t) n);
  }
  if (d)
    closedir (d);
}
