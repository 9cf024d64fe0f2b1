/* completion.c - a completion script for bash, and for zsh through bashcompinit
 *
 * Words come from the tables at the time of printing; leases are asked for when Tab is pressed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* "a|b|c" with blanks between */
static void
choices (const char *value)
{
  for (; *value; value++)
    putchar (*value == '|' ? ' ' : *value);
}

static void
values (void)
{
  printf ("  case $prev in\n");
  for (size_t i = 0; i < noptions; i++) {
    const struct option *o = &options[i];

    if (!o->value)
      continue;
    printf ("    %s) ", o->name);
    if (option_is_choice (o)) {
      printf ("COMPREPLY=($(compgen -W '");
      choices (o->value);
      printf ("' -- \"$cur\"))");
    } else if (strcmp (o->value, "FILE") == 0) {
      printf ("COMPREPLY=($(compgen -f -- \"$cur\"))");
    } else {
      printf ("COMPREPLY=()");
    }
    printf ("; return ;;\n");
  }
  printf ("  esac\n");
}

static void
words_of (enum command_id id)
{
  printf ("    %s) words='", commands[id].name);
  for (size_t i = 0; i < noptions; i++)
    if (option_applies (&options[i], id))
      printf ("%s ", options[i].name);
  printf ("'");
  if (strstr (commands[id].operands, "LEASE"))
    printf (" leases=yes");
  if (id == CMD_COMPLETION)
    printf (" more='bash zsh'");
  if (id == CMD_PROVIDERS)
    printf (" more='check pause resume'");
  if (id == CMD_ORPHANS)
    printf (" more='adopt ignore unignore release'");
  printf (" ;;\n");
}

static void
script (void)
{
  printf ("_gpubroker_cli () {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words more "
          "leases command w\n"
          "  for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
          "    case $w in -*) ;; *) command=$w; break ;; esac\n"
          "  done\n");
  values ();
  printf ("  case $command in\n");
  for (size_t i = 0; i < COMMANDS; i++)
    words_of ((enum command_id) i);
  printf ("    *) more='");
  for (size_t i = 0; i < COMMANDS; i++)
    printf ("%s%s", i ? " " : "", commands[i].name);
  printf ("' words='--help' ;;\n"
          "  esac\n"
          "  case $cur in\n"
          "    -*) more= ;;\n"
          "    *) words=\n"
          "       [ -z \"$leases\" ] || more=$(gpubroker-cli leases --timeout 1s 2>/dev/null | awk "
          "'NR > 1 { print $1 }') ;;\n"
          "  esac\n"
          "  COMPREPLY=($(compgen -W \"$words $more\" -- \"$cur\"))\n"
          "}\n"
          "complete -F _gpubroker_cli gpubroker-cli\n");
}

int
run_completion (struct cli *c)
{
  const char *shell = cli_operand (c, 0);
  bool zsh = strcmp (shell, "zsh") == 0;

  if (!zsh && strcmp (shell, "bash") != 0)
    return out_fail (c, "bad-request", NULL, "completion knows bash and zsh, not '%s'", shell);
  if (zsh)
    printf ("autoload -U +X bashcompinit && bashcompinit\n");
  script ();
  return EXIT_DONE;
}
