/* clusters.c - where machines can be joined, and texts for those places */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/format.h"

static void
print_cluster (const json_t *k)
{
  char nodes[FMT], gpus[FMT];
  size_t i;
  json_t *f;

  printf ("%s  %s %s  %s\n", json_str (k, "name", "?"), json_str (k, "type", "?"),
          json_str (k, "k0s_version", ""), json_str (k, "state", ""));
  if (*fmt_int_of (nodes, k, "nodes"))
    printf ("  %s nodes, %s with GPU\n", nodes, fmt_int_of (gpus, k, "gpu_nodes"));
  if (json_str (k, "error", NULL))
    printf ("  %s\n", json_str (k, "error", ""));
  json_array_foreach (json_object_get (k, "findings"), i, f)
    printf ("  %s: %s (%s)\n", json_str (f, "severity", "?"), json_str (f, "text", ""),
            json_str (f, "code", "?"));
}

static int
render (struct cli *c)
{
  static const char *const words[] = { "render" };
  const char *word = cli_operand (c, 0), *name = cli_operand (c, 1);
  AUTO_JSON json_t *reply = NULL;
  int rc;

  if (strcmp (word, "render") != 0)
    return out_fail (c, "bad-request", NULL, "clusters does not know '%s'%s", word,
                     nearest (word, words, 1) ? ", did you mean 'render'?" : "");
  if (!name)
    return out_fail (c, "bad-request", NULL, "clusters render needs a cluster's name");
  json_put_str (cli_body (c), "cluster", name);
  c->lines = true;
  rc = ask_shown (c, "clusters.render", &reply);
  if (rc == EXIT_DONE && c->mode == OUT_TEXT)
    fputs (json_str (reply, "text", ""), stdout);
  return rc;
}

int
run_clusters (struct cli *c)
{
  AUTO_JSON json_t *reply = NULL;
  size_t i;
  json_t *k;
  int rc;

  if (cli_operand (c, 0))
    return render (c);
  rc = ask_shown (c, "clusters", &reply);
  if (rc == EXIT_DONE && !json_array_size (json_object_get (reply, "clusters")))
    fprintf (stderr, "no clusters are configured\n");
  if (rc == EXIT_DONE && c->mode == OUT_TEXT)
    json_array_foreach (json_object_get (reply, "clusters"), i, k)
      print_cluster (k);
  return rc;
}
