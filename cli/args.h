/* args.h - commands and options as tables, and the one parser that reads them
 *
 * An option says where its value goes: into the request's body, into the filter, or to the CLI
 * itself.  So a command rarely looks at options at all.  Help, completion and the man page's test
 * read the same tables.
 */
#ifndef GPUB_ARGS_H
#define GPUB_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

struct cli;
struct option;

enum dest { TO_CLI, TO_BODY, TO_FILTER, DESTS };

/* Which commands take an option. */
enum command_id {
  CMD_OFFERS,
  CMD_RENT,
  CMD_JOIN,
  CMD_RELEASE,
  CMD_EXTEND,
  CMD_RETRY,
  CMD_LEASES,
  CMD_SHOW,
  CMD_EXPLAIN,
  CMD_WATCH,
  CMD_LOGS,
  CMD_SSH,
  CMD_VERIFY,
  CMD_PROVIDERS,
  CMD_CLUSTERS,
  CMD_COST,
  CMD_PING,
  CMD_VERSION,
  CMD_COMPLETION,
  CMD_HELP,
  CMD_KUBECONFIG,
  CMD_TUNNEL,
  CMD_ORPHANS,
  COMMANDS
};

struct command {
  const char *name;
  int (*run) (struct cli *c);
  size_t min, max;            /* operands */
  const char *operands;       /* for people: "LEASE..." */
  const char *summary;
};

struct option {
  const char *name;  /* with its dashes */
  const char *value; /* for people, or the choices "a|b|c"; NULL: a flag */
  /* Puts the value into an object under o->member. */
  int (*set) (const struct option *o, const char *value, json_t *into, struct err *e);
  enum dest dest;
  bool many; /* may be repeated */
  const char *member;
  uint32_t in; /* bits of enum command_id */
  const char *help;
};

extern const struct command commands[COMMANDS];
extern const struct option options[];
extern const size_t noptions;

bool option_applies (const struct option *o, enum command_id id);
/* Whether the value is one of the words in o->value. */
bool option_is_choice (const struct option *o);

struct args {
  const struct command *command; /* NULL after a failed parse */
  json_t *to[DESTS];
  const char **operands;
  size_t noperands;
  char **rest; /* what follows --, NULL-ended; NULL without -- */
};

/* The words behind the program's name.  On failure e has one sentence for people. */
int args_parse (struct args *a, int argc, char **argv, struct err *e);
void args_done (struct args *a);

/* Does --json or the like stand before any --?  For errors of the parse itself. */
bool args_has (int argc, char **argv, const char *flag);

#endif
