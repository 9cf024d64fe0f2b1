/* log.c - log lines and what must never be in them */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

enum { MAX_SECRETS = 64, MIN_SECRET = 6, TOKEN_LEFT = 6, TOKEN_RIGHT = 16, BASE64_RUN = 80 };

static int threshold = LOG_INFO;
static struct {
  char *bytes;
  size_t len;
} secrets[MAX_SECRETS];
static size_t nsecrets;

void
redact_register (const void *bytes, size_t len)
{
  if (len < MIN_SECRET || nsecrets == MAX_SECRETS)
    return;
  for (size_t i = 0; i < nsecrets; i++)
    if (secrets[i].len == len && memcmp (secrets[i].bytes, bytes, len) == 0)
      return;
  secrets[nsecrets].bytes = malloc (len);
  if (!secrets[nsecrets].bytes)
    abort ();
  memcpy (secrets[nsecrets].bytes, bytes, len);
  secrets[nsecrets++].len = len;
}

static void
mask (char *p, size_t len)
{
  memset (p, '*', len);
}

static void
mask_registered (char *text, size_t n)
{
  for (size_t i = 0; i < nsecrets; i++)
    for (char *p = text; (p = memmem (p, n - (size_t) (p - text), secrets[i].bytes, secrets[i].len));)
      mask (p, secrets[i].len);
}

static size_t
run (const char *p, int (*in) (int))
{
  size_t n = 0;

  while (p[n] && in ((unsigned char) p[n]))
    n++;
  return n;
}

static int
is_token (int c)
{
  return islower (c) || isdigit (c);
}

static int
is_base64 (int c)
{
  return isalnum (c) || c == '+' || c == '/' || c == '_' || c == '-';
}

/* A bootstrap token is six characters, a dot, sixteen: mask the secret half. */
static void
mask_tokens (char *text)
{
  for (char *p = text; *p;) {
    size_t n = run (p, is_token);

    if (n == TOKEN_LEFT && p[n] == '.' && run (p + n + 1, is_token) == TOKEN_RIGHT)
      mask (p + n + 1, TOKEN_RIGHT);
    p += n ? n : 1;
  }
}

/* H4sI is gzip's magic in base64 (a join token); LS0t is "---", a PEM inside a kubeconfig. */
static void
mask_base64 (char *text)
{
  for (char *p = text; *p;) {
    size_t n = run (p, is_base64);

    if (n >= BASE64_RUN || (n > 16 && (!strncmp (p, "H4sI", 4) || !strncmp (p, "LS0t", 4))))
      mask (p, n);
    p += n ? n : 1;
  }
}

void
redact (char *text)
{
  mask_registered (text, strlen (text));
  mask_tokens (text);
  mask_base64 (text);
}

void
log_level (int priority)
{
  threshold = priority;
}

void
log_at (int priority, const char *event, const char *fmt, ...)
{
  static int journal = -1;
  char text[1024];
  va_list ap;

  if (priority > threshold)
    return;
  if (journal < 0)
    journal = getenv ("JOURNAL_STREAM") != NULL;
  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  for (char *p = text; *p; p++)
    if ((unsigned char) *p < ' ')
      *p = ' ';
  redact (text);
  if (journal)
    fprintf (stderr, "<%d>%s %s\n", priority, event, text);
  else
    fprintf (stderr, "%s %s\n", event, text);
}
