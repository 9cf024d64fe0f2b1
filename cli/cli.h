/* cli.h - one run of gpubroker-cli: what was asked for, where answers go, the connection
 *
 * Standard output carries results only, standard error progress and failures.
 */
#ifndef GPUB_CLI_H
#define GPUB_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "gpubroker/client.h"

#include "cli/args.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "core/json.h"

/* Exit codes; part of the contract. */
enum {
  EXIT_DONE,
  EXIT_FAILED,
  EXIT_USAGE,
  EXIT_NO_OFFER,
  EXIT_EXHAUSTED,
  EXIT_DENIED,
  EXIT_UNREACHABLE,
  EXIT_TIMEOUT,
  EXIT_CONFLICT,
  EXIT_BUDGET,
  EXIT_NOT_FOUND,
};

enum out_mode { OUT_TEXT, OUT_JSON, OUT_JSONL };

struct cli {
  struct args args;
  enum out_mode mode;
  bool quiet;
  bool lines;  /* texts in replies may have several */
  bool tty;    /* standard error is a terminal: progress may rewrite its line */
  bool colour; /* standard output is one, and NO_COLOR is not set */
  struct gpubc *client;
};

/* ask.c: the connection, and reads */
int cli_connect (
    struct cli *c); /* -1: out of memory.  Whether a broker is there, the first request tells */
void cli_disconnect (struct cli *c);
/* The final object, or NULL and an ERROR object; nothing is printed. */
json_t *ask_try (struct cli *c, const char *verb, const json_t *body, json_t **error);
/* These report what goes wrong and return the exit code. */
int ask (struct cli *c, const char *verb, const json_t *body, json_t **reply);
/* The body of the command line; the reply is printed already unless people are reading. */
int ask_shown (struct cli *c, const char *verb, json_t **reply);
/* Follows the cursor until limit elements (0: all) of member are there. */
int ask_all (struct cli *c, const char *verb, json_t *body, const char *member, int64_t limit,
             json_t **reply);
json_t *error_unreachable (const struct cli *c); /* an ERROR for GPUBC_UNREACHABLE; owned */
/* What the user lets us wait, or otherwise. */
int64_t cli_timeout (const struct cli *c, int64_t otherwise);
bool cli_interrupted (void);
json_t *cli_body (const struct cli *c);                  /* borrowed */
const char *cli_operand (const struct cli *c, size_t i); /* NULL when absent */
/* Parses a reply; in text mode bytes that could drive a terminal are replaced. */
json_t *reply_json (const struct cli *c, const struct gpubc_reply *r);

/* output.c */
void out_doc (const struct cli *c, const json_t *doc);
/* Prints an ERROR object for people or as {"error":…} with extra's members; returns the exit code.
 */
int out_error (const struct cli *c, const json_t *error, const json_t *extra);
int out_fail (const struct cli *c, const char *code, const char *hint, const char *fmt, ...)
    PRINTF (4, 5);
json_t *error_new (const char *code, const char *message, const char *hint);
int exit_of (const char *code);

/* report.c: longer pieces for people, on f */
void report_error (FILE *f, const json_t *error);
void report_failure (FILE *f, const json_t *failure);
void report_attempts (FILE *f, const json_t *attempts);
/* Of a list's REJECTIONs the first `most`; those for another model are only counted. */
void report_rejections (FILE *f, const json_t *list, size_t most);

#endif
