/* output.c - results and failures, for people or as exactly one JSON document */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
  const char *code;
  int exit;
} exits[] = {
  { "bad-frame", EXIT_USAGE },     { "bad-request", EXIT_USAGE },
  { "unknown-verb", EXIT_USAGE },  { "version", EXIT_USAGE },
  { "no-offer", EXIT_NO_OFFER },   { "offers-exhausted", EXIT_EXHAUSTED },
  { "denied", EXIT_DENIED },       { "unreachable", EXIT_UNREACHABLE },
  { "busy", EXIT_UNREACHABLE },    { "draining", EXIT_UNREACHABLE },
  { "timeout", EXIT_TIMEOUT },     { "conflict", EXIT_CONFLICT },
  { "over-budget", EXIT_BUDGET },  { "limit", EXIT_BUDGET },
  { "not-found", EXIT_NOT_FOUND },
};

int
exit_of (const char *code)
{
  for (size_t i = 0; i < N_ELEMENTS (exits); i++)
    if (strcmp (code, exits[i].code) == 0)
      return exits[i].exit;
  return EXIT_FAILED;
}

void
out_doc (const struct cli *c, const json_t *doc)
{
  size_t flags = c->mode == OUT_JSONL ? JSON_COMPACT : JSON_INDENT (2);

  json_dumpf (doc, stdout, flags | JSON_ENSURE_ASCII);
  putchar ('\n');
  fflush (stdout);
}

json_t *
error_new (const char *code, const char *message, const char *hint)
{
  json_t *e = json_pack ("{s:s, s:s, s:b}", "code", code, "message", message, "retryable",
                         exit_of (code) == EXIT_UNREACHABLE);

  json_put_str (e, "hint", hint);
  return e;
}

int
out_error (const struct cli *c, const json_t *error, const json_t *extra)
{
  const char *code = json_str (error, "code", "internal");

  if (c->mode == OUT_TEXT) {
    fflush (stdout);
    report_error (stderr, error);
  } else {
    AUTO_JSON json_t *doc = extra ? json_copy ((json_t *) extra) : json_object ();

    json_object_set (doc, "error", (json_t *) error);
    out_doc (c, doc);
  }
  return exit_of (code);
}

int
out_fail (const struct cli *c, const char *code, const char *hint, const char *fmt, ...)
{
  AUTO_JSON json_t *error = NULL;
  char message[512];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (message, sizeof message, fmt, ap);
  va_end (ap);
  error = error_new (code, message, hint);
  if (!error)
    error = error_new (code, "the message is not UTF-8", hint);
  return out_error (c, error, NULL);
}
