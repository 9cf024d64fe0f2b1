/* job-report.c - how mutations ended: for people one by one, for programs as one document */
#include "config.h"

#include <stdio.h>

#include "cli/job.h"

/* {"error":…} with the ids that are known, or what the broker sent. */
static json_t *
document (const struct job *j)
{
  json_t *doc;

  if (!j->failed)
    return json_incref (j->doc);
  doc = json_pack ("{s:O}", "error", j->doc);
  json_put_str (doc, "lease", j->lease[0] ? j->lease : NULL);
  json_put_str (doc, "operation", j->operation[0] ? j->operation : NULL);
  return doc;
}

static void
report_json (const struct cli *c, const struct job *jobs, size_t n)
{
  AUTO_JSON json_t *list = json_array (), *all = NULL;

  for (size_t i = 0; i < n; i++)
    json_array_append_new (list, document (&jobs[i]));
  all = n == 1 ? json_incref (json_array_get (list, 0)) : json_pack ("{s:O}", "results", list);
  out_doc (c, all);
}

static void
report_line (const struct cli *c, const struct job *j)
{
  AUTO_JSON json_t *doc = document (j),
                   *line = j->failed ? json_incref (doc) : json_pack ("{s:O}", "final", doc);

  out_doc (c, line);
}

int
jobs_report (struct cli *c, struct job *jobs, size_t n,
             void (*tell) (struct cli *c, const struct job *j))
{
  int rc = EXIT_DONE;

  if (c->mode == OUT_JSON)
    report_json (c, jobs, n);
  for (size_t i = 0; i < n; i++) {
    int code = jobs[i].failed ? exit_of (json_str (jobs[i].doc, "code", "internal")) : EXIT_DONE;

    if (c->mode == OUT_JSONL)
      report_line (c, &jobs[i]);
    else if (c->mode == OUT_TEXT)
      tell (c, &jobs[i]);
    if (rc == EXIT_DONE)
      rc = code;
    job_done (&jobs[i]);
  }
  return rc;
}
