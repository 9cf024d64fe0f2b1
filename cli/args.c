/* args.c - the one parser of words: a command, its options in any order, its operands
 *
 * Nothing is abbreviated and nothing is given twice unless the table says so: a script that works
 * today must not change its meaning when an option is added.
 */
#include "config.h"

#include <string.h>

#include "cli/args.h"
#include "core/json.h"

enum { NAMES_MAX = 64 };

bool
option_applies (const struct option *o, enum command_id id)
{
  return o->in >> id & 1;
}

static bool
word_is (const char *word, size_t len, const char *name)
{
  return strncmp (word, name, len) == 0 && !name[len];
}

static const struct command *
find_command (const char *word, struct err *e)
{
  const char *names[COMMANDS], *near;

  for (size_t i = 0; i < COMMANDS; i++) {
    names[i] = commands[i].name;
    if (strcmp (word, names[i]) == 0)
      return &commands[i];
  }
  near = nearest (word, names, COMMANDS);
  err_set (e, ERR_INVALID, "unknown command '%.40s'%s%s%s", word, near ? ", did you mean '" : "",
           near ? near : "", near ? "'?" : "");
  return NULL;
}

static enum command_id
id_of (const struct command *c)
{
  return (enum command_id) (c - commands);
}

/* Says which option was meant, or which commands take it. */
static int
unknown_option (const struct args *a, const char *word, size_t len, struct err *e)
{
  const char *names[NAMES_MAX], *near;
  AUTO_FREE char *bare = strndup (word, len);
  size_t n = 0;

  for (size_t i = 0; i < noptions && n < NAMES_MAX; i++) {
    if (word_is (word, len, options[i].name))
      return err_set (e, ERR_INVALID, "%s does not take %s", a->command->name, options[i].name);
    if (option_applies (&options[i], id_of (a->command)))
      names[n++] = options[i].name;
  }
  near = bare ? nearest (bare, names, n) : NULL;
  return err_set (e, ERR_INVALID, "unknown option '%.40s'%s%s%s", bare ? bare : word,
                  near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static const struct option *
find_option (const struct args *a, const char *word, size_t len, struct err *e)
{
  for (size_t i = 0; i < noptions; i++)
    if (word_is (word, len, options[i].name) && option_applies (&options[i], id_of (a->command)))
      return &options[i];
  unknown_option (a, word, len, e);
  return NULL;
}

/* Two options with one member exclude each other: --k8s and --no-k8s. */
static int
refuse_twice (const struct option *o, const bool *seen, struct err *e)
{
  for (size_t i = 0; i < noptions; i++) {
    if (!seen[i] || options[i].dest != o->dest || strcmp (options[i].member, o->member) != 0)
      continue;
    if (&options[i] != o)
      return err_set (e, ERR_INVALID, "%s and %s exclude each other", options[i].name, o->name);
    if (!o->many)
      return err_set (e, ERR_INVALID, "%s is given twice", o->name);
  }
  return 0;
}

/* One option at argv[*i]; moves *i onto its value when that is a word of its own. */
static int
take_option (struct args *a, int argc, char **argv, int *i, bool *seen, struct err *e)
{
  const char *word = argv[*i], *equals = strchr (word, '=');
  size_t len = equals ? (size_t) (equals - word) : strlen (word);
  const struct option *o = find_option (a, word, len, e);
  const char *value = equals ? equals + 1 : NULL;

  if (!o || refuse_twice (o, seen, e) < 0)
    return -1;
  if (!o->value && value)
    return err_set (e, ERR_INVALID, "%s takes no value", o->name);
  if (o->value && !value) {
    if (*i + 1 >= argc)
      return err_set (e, ERR_INVALID, "%s needs a value: %s", o->name, o->value);
    value = argv[++*i];
  }
  seen[o - options] = true;
  if (o->set (o, value, a->to[o->dest], e) < 0)
    return err_add (e, "%s", o->name);
  return 0;
}

static int
check_operands (const struct args *a, struct err *e)
{
  const struct command *c = a->command;

  if (a->noperands < c->min)
    return err_set (e, ERR_INVALID, "%s needs %s", c->name, c->operands);
  if (a->noperands > c->max)
    return err_set (e, ERR_INVALID, "%s does not know what to do with '%.60s'", c->name,
                    a->operands[c->max]);
  return 0;
}

/* The command is the first word that is no option; options in front of it must be global ones,
 * which every command takes. */
static int
take_command (struct args *a, int argc, char **argv, int *at, struct err *e)
{
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    size_t len = strcspn (word, "=");

    if (word[0] != '-') {
      a->command = find_command (word, e);
      *at = i;
      return a->command ? 0 : -1;
    }
    for (size_t k = 0; k < noptions; k++)
      if (word_is (word, len, options[k].name) && options[k].value && !word[len])
        i++;
  }
  a->command = &commands[CMD_HELP];
  *at = -1;
  return 0;
}

/* Behind -- everything is an operand, or the command line that ssh hands on. */
static void
take_rest (struct args *a, int argc, char **argv)
{
  if (id_of (a->command) == CMD_SSH) {
    a->rest = argv;
    return;
  }
  for (int i = 0; i < argc; i++)
    a->operands[a->noperands++] = argv[i];
}

static int
take_words (struct args *a, int argc, char **argv, bool *seen, struct err *e)
{
  int at;

  if (take_command (a, argc, argv, &at, e) < 0)
    return -1;
  for (int i = 0; i < argc; i++) {
    if (i == at)
      continue;
    if (strcmp (argv[i], "--") == 0) {
      take_rest (a, argc - i - 1, argv + i + 1);
      return 0;
    }
    if (argv[i][0] != '-' || !argv[i][1])
      a->operands[a->noperands++] = argv[i];
    else if (take_option (a, argc, argv, &i, seen, e) < 0)
      return -1;
  }
  return 0;
}

int
args_parse (struct args *a, int argc, char **argv, struct err *e)
{
  AUTO_FREE bool *seen = calloc (noptions, sizeof *seen);

  *a = (struct args){ 0 };
  a->operands = calloc ((size_t) argc + 1, sizeof *a->operands);
  if (!seen || !a->operands)
    abort ();
  for (size_t i = 0; i < DESTS; i++)
    a->to[i] = json_object ();
  if (take_words (a, argc, argv, seen, e) < 0)
    return -1;
  if (json_object_get (a->to[TO_CLI], "help"))
    return 0;
  return check_operands (a, e);
}

void
args_done (struct args *a)
{
  for (size_t i = 0; i < DESTS; i++)
    json_decref (a->to[i]);
  free (a->operands);
}

bool
args_has (int argc, char **argv, const char *flag)
{
  for (int i = 0; i < argc && strcmp (argv[i], "--") != 0; i++)
    if (strcmp (argv[i], flag) == 0)
      return true;
  return false;
}
