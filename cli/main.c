/* main.c - gpubroker-cli: gpubrokerd for people and scripts
 *
 * Everything goes through libgpubroker: what this program can do, any program can.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/help.h"

static void
set_up (struct cli *c, int argc, char **argv)
{
  const char *no_colour = getenv ("NO_COLOR");

  *c = (struct cli){ .tty = isatty (STDERR_FILENO) };
  c->colour = isatty (STDOUT_FILENO) && !(no_colour && *no_colour);
  c->quiet = args_has (argc, argv, "--quiet");
  if (args_has (argc, argv, "--jsonl"))
    c->mode = OUT_JSONL;
  else if (args_has (argc, argv, "--json"))
    c->mode = OUT_JSON;
}

static int
misuse (const struct cli *c, const struct err *e)
{
  char hint[96];

  snprintf (hint, sizeof hint, "gpubroker-cli help %s",
            c->args.command ? c->args.command->name : "");
  return out_fail (c, "bad-request", hint, "%s", e->text);
}

static int
run (struct cli *c, int argc, char **argv)
{
  struct err e = ERR_INIT;

  if (args_parse (&c->args, argc, argv, &e) < 0)
    return misuse (c, &e);
  if (argc == 0) {
    help_command (c, NULL);
    return EXIT_USAGE;
  }
  if (json_object_get (c->args.to[TO_CLI], "help"))
    return help_command (c, c->args.command);
  return c->args.command->run (c);
}

int
main (int argc, char **argv)
{
  struct cli c;
  int rc;

  set_up (&c, argc - 1, argv + 1);
  rc = run (&c, argc - 1, argv + 1);
  args_done (&c.args);
  cli_disconnect (&c);
  if (fflush (stdout) != 0 || ferror (stdout)) {
    perror ("gpubroker-cli: standard output");
    return rc ? rc : EXIT_FAILED;
  }
  return rc;
}
