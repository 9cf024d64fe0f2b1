/* rent.c - rent, and what it would do */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/keys.h"
#include "cli/offers.h"
#include "cli/story.h"

static json_t *
rent_body (struct cli *c)
{
  json_t *body = json_incref (cli_body (c)), *keys;

  json_object_set (body, "filter", c->args.to[TO_FILTER]);
  if (json_object_get (body, "ssh_keys"))
    return body;
  keys = json_array ();
  keys_add_own (keys);
  if (json_array_size (keys))
    json_object_set (body, "ssh_keys", keys);
  json_decref (keys);
  return body;
}

static int
dry_run (struct cli *c, const json_t *body)
{
  AUTO_JSON json_t *reply = NULL;
  int rc = ask (c, "rent", body, &reply);

  if (rc)
    return rc;
  if (c->mode != OUT_TEXT) {
    out_doc (c, reply);
    return EXIT_DONE;
  }
  printf ("would be tried in this order:\n");
  offers_table (stdout, json_object_get (reply, "order"), c->colour);
  if (json_array_size (json_object_get (reply, "rejected"))) {
    printf ("\nnot taken:\n");
    report_rejections (stdout, json_object_get (reply, "rejected"), SIZE_MAX);
  }
  return EXIT_DONE;
}

/* The id comes first, alone on its line, whatever happens later: what was begun can always be
 * found. */
static void
announce (struct cli *c, const struct job *j)
{
  fprintf (c->mode == OUT_TEXT ? stdout : stderr, "%s\n", j->lease);
  fflush (stdout);
}

static void
how_to_use (const json_t *lease)
{
  const char *id = json_str (lease, "id", "?"), *node = json_str (lease, "node", NULL);
  const char *cluster = json_str (lease, "cluster", "none");

  printf ("\n  log in     gpubroker-cli ssh %s\n", id);
  if (node && strcmp (cluster, "none") != 0)
    printf ("  use it     kubectl get node %s\n", node);
  printf ("  release    gpubroker-cli release %s\n", id);
}

static void
tell (struct cli *c, const struct job *j)
{
  const json_t *lease = json_object_get (j->doc, "lease");

  if (j->failed) {
    story_failed (c, j);
  } else if (json_is_object (lease)) {
    story_lease (stdout, lease);
    how_to_use (lease);
  } else if (!c->quiet) {
    fprintf (stderr, "it goes on: gpubroker-cli watch %s\n", j->lease);
  }
}

int
run_rent (struct cli *c)
{
  AUTO_JSON json_t *body = rent_body (c);
  struct job job;

  if (json_object_size (c->args.to[TO_FILTER]) == 0)
    return out_fail (c, "bad-request",
                     "gpubroker-cli rent --gpu H100; --gpu none for a machine without",
                     "rent needs to know what you want");
  if (json_bool (body, "dry_run", false))
    return dry_run (c, body);
  if (cli_connect (c) < 0)
    return out_fail (c, "internal", NULL, "out of memory");
  job_init (&job, "rent", json_incref (body));
  jobs_run (c, &job, 1, announce);
  return jobs_report (c, &job, 1, tell);
}
