/* err.c - the one error type */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/json.h"

static const char *const names[] = {
  "ok",           "invalid",     "auth",    "not-found", "conflict",    "quota",    "capacity",
  "rate-limited", "unavailable", "unknown", "cancelled", "unsupported", "internal",
};

static int
set (struct err *e, enum err_kind kind, const char *code, const char *fmt, va_list ap)
{
  int sys = errno;

  if (!e)
    return -1;
  memset (e, 0, sizeof *e);
  e->kind = kind;
  e->sys = sys;
  snprintf (e->code, sizeof e->code, "%s", code);
  vsnprintf (e->text, sizeof e->text, fmt, ap);
  json_clean (e->text);
  return -1;
}

int
err_set (struct err *e, enum err_kind kind, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  set (e, kind, "", fmt, ap);
  va_end (ap);
  return -1;
}

int
err_code (struct err *e, enum err_kind kind, const char *code, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  set (e, kind, code, fmt, ap);
  va_end (ap);
  return -1;
}

int
err_add (struct err *e, const char *fmt, ...)
{
  char rest[sizeof e->text];
  va_list ap;
  size_t n;

  if (!e)
    return -1;
  memcpy (rest, e->text, sizeof rest);
  va_start (ap, fmt);
  vsnprintf (e->text, sizeof e->text, fmt, ap);
  va_end (ap);
  n = strlen (e->text);
  snprintf (e->text + n, sizeof e->text - n, ": %s", rest);
  json_clean (e->text);
  return -1;
}

const char *
err_kind_name (enum err_kind kind)
{
  return (size_t) kind < N_ELEMENTS (names) ? names[kind] : "internal";
}

enum err_kind
err_kind_parse (const char *name)
{
  for (size_t i = 0; name && i < N_ELEMENTS (names); i++)
    if (strcmp (names[i], name) == 0)
      return (enum err_kind) i;
  return ERR_INTERNAL;
}
