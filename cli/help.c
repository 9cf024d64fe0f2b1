/* help.c - help and shell completion, both made from the tables */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

static void
overview (FILE *f)
{
  fprintf (f, "usage: gpubroker-cli COMMAND [OPTIONS]\n\n");
  for (size_t i = 0; i < COMMANDS; i++)
    fprintf (f, "  %-11s %-33s %s\n", commands[i].name, commands[i].operands, commands[i].summary);
  fprintf (f, "\ngpubroker-cli help COMMAND lists its options; gpubroker-cli(1) says it all.\n");
}

static void
option_line (FILE *f, const struct option *o)
{
  char left[80];

  snprintf (left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
  if (strlen (left) > 30)
    fprintf (f, "  %s\n  %30s  %s\n", left, "", o->help);
  else
    fprintf (f, "  %-30s  %s\n", left, o->help);
}

static void
details (FILE *f, const struct command *c)
{
  enum command_id id = (enum command_id) (c - commands);

  fprintf (f, "usage: gpubroker-cli %s %s%s[OPTIONS]\n\n%s\n\n", c->name, c->operands,
           *c->operands ? " " : "", c->summary);
  for (size_t i = 0; i < noptions; i++)
    if (option_applies (&options[i], id))
      option_line (f, &options[i]);
}

static const struct command *
command_named (const char *name)
{
  for (size_t i = 0; i < COMMANDS; i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

static int
help_json (const struct cli *c)
{
  AUTO_JSON json_t *list = json_array (), *doc = json_pack ("{s:O}", "commands", list);

  for (size_t i = 0; i < COMMANDS; i++) {
    json_t *names = json_array ();

    for (size_t k = 0; k < noptions; k++)
      if (option_applies (&options[k], (enum command_id) i))
        json_array_append_new (names, json_string (options[k].name));
    json_array_append_new (list, json_pack ("{s:s, s:s, s:s, s:b, s:o}", "name", commands[i].name,
                                            "operands", commands[i].operands, "summary",
                                            commands[i].summary, "available",
                                            commands[i].run != NULL, "options", names));
  }
  out_doc (c, doc);
  return EXIT_DONE;
}

int
help_command (const struct cli *c, const struct command *about)
{
  if (c->mode != OUT_TEXT)
    return help_json (c);
  if (about && about != &commands[CMD_HELP])
    details (stdout, about);
  else
    overview (stdout);
  return EXIT_DONE;
}

int
run_help (struct cli *c)
{
  const char *name = cli_operand (c, 0);
  const struct command *about = name ? command_named (name) : NULL;

  if (name && !about)
    return out_fail (c, "bad-request", "gpubroker-cli help lists them", "unknown command '%s'",
                     name);
  return help_command (c, about);
}
