/* kube_pods_hear.c - what the pods of the network matrix say, row by row */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "join/kube_pods_int.h"

static const struct row {
  int number;
  const char *good, *bad;
} rows[PODS_ROWS] = {
  { 7, "gpu-pod", "gpu-pod-failed" },          { 8, "pod-to-pod", "pod-network-blocked" },
  { 9, "host-to-pod", "host-to-pod-blocked" }, { 10, "dns-each", "dns-half" },
  { 11, "service", "service-loss" },           { 13, "egress", "egress-blocked" },
  { 14, "storage", "storage-failed" },
};

static struct pods_row *
row_of (struct run *r, int number)
{
  for (size_t i = 0; i < PODS_ROWS; i++)
    if (r->want->rows[i].number == number)
      return &r->want->rows[i];
  return NULL;
}

static void
untested (struct run *r, int number, const char *why)
{
  struct pods_row *row = row_of (r, number);

  if (row && row->verdict == PODS_UNTESTED)
    snprintf (row->text, sizeof row->text, "%s", why);
}

void
pods_say (struct run *r, int number, enum pods_verdict verdict, const char *code, const char *text)
{
  static const char *const words[] = { "wait", "ok", "fail" };
  struct pods_row *row = row_of (r, number);

  if (!row || row->verdict != PODS_UNTESTED)
    return;
  row->verdict = verdict;
  for (size_t i = 0; !code && i < PODS_ROWS; i++)
    if (rows[i].number == number)
      code = verdict == PODS_FAIL ? rows[i].bad : rows[i].good;
  row->code = code;
  snprintf (row->text, sizeof row->text, "%s", text);
  if (verdict != PODS_UNTESTED)
    call_progress (r->want->plane->call, code, words[verdict], row->text);
}

void
pods_give_up (struct run *r, enum pod_id id, const char *text)
{
  r->pods[id].over = true;
  snprintf (r->pods[id].problem, sizeof r->pods[id].problem, "%s", text);
}

/* ---- what they say ---- */

/* "gpu NAME, MIB, DRIVER" */
static void
learn_gpu (struct run *r, char *line)
{
  char *mib = strstr (line, ", "), *driver = mib ? strstr (mib + 2, ", ") : NULL;

  if (!driver)
    return;
  *mib = *driver = '\0';
  json_array_append_new (json_object_get (r->want->gpu, "gpus"),
                         json_pack ("{s:s, s:I}", "name", line, "memory_mib",
                                    (json_int_t) strtoll (mib + 2, NULL, 10)));
  json_put_str (r->want->gpu, "driver", driver + 2);
}

static void
hear_gpus (struct run *r)
{
  const json_t *gpus = json_object_get (r->want->gpu, "gpus"), *first = json_array_get (gpus, 0);
  size_t n = json_array_size (gpus);
  char text[200];

  snprintf (text, sizeof text, "%zux %.60s, %lld MiB, driver %.30s, CUDA %.20s", n,
            json_str (first, "name", "nothing"), (long long) json_i64 (first, "memory_mib", 0),
            json_str (r->want->gpu, "driver", "?"), json_str (r->want->gpu, "cuda", "?"));
  if ((int64_t) n == r->want->gpus)
    pods_say (r, 7, PODS_PASS, NULL, text);
  else
    pods_say (r, 7, PODS_FAIL, NULL, text);
}

static void
hear_line (struct run *r, const struct kind *k, char *line)
{
  char *end;
  long number = strtol (line, &end, 10);
  bool pass = strncmp (end, " pass ", 6) == 0, fail = strncmp (end, " fail ", 6) == 0;

  if (strncmp (line, "gpu ", 4) == 0 && k->rows[0] == 7)
    learn_gpu (r, line + 4);
  else if (strncmp (line, "cuda ", 5) == 0 && k->rows[0] == 7)
    json_put_str (r->want->gpu, "cuda", line + 5);
  for (size_t i = 0; k->rows[i]; i++)
    if (k->rows[i] == number && (pass || fail))
      pods_say (r, k->rows[i], pass ? PODS_PASS : PODS_FAIL, NULL, end + 6);
    else if (k->rows[i] == number && strncmp (end, " skip ", 6) == 0)
      untested (r, k->rows[i], end + 6);
}

int
pods_hear (struct run *r, enum pod_id id)
{
  AUTO_JSON json_t *log = kube_get (
      r->api, r->e, "/api/v1/namespaces/%s/pods/%s/log?limitBytes=16384", r->ns, kinds[id].name);
  AUTO_FREE char *text = log && json_is_string (log) ? strdup (json_string_value (log)) : NULL;
  char *save = NULL;

  if (!log) {
    pods_give_up (r, id, "its log cannot be read through the API server");
    *r->e = (struct err) ERR_INIT;
    return call_check (r->want->plane->call, r->e);
  }
  for (char *line = text ? strtok_r (text, "\n", &save) : NULL; line;
       line = strtok_r (NULL, "\n", &save))
    hear_line (r, &kinds[id], line);
  if (id == GPU)
    hear_gpus (r);
  return 0;
}

/* What a pod could not say for itself. */
void
pods_conclude (struct run *r, enum pod_id id)
{
  const struct pod *p = &r->pods[id];
  bool pull = strncmp (p->problem, "test-image-pull", 15) == 0,
       busy = strstr (p->problem, "OutOf") || strstr (p->problem, "UnexpectedAdmission");

  for (size_t i = 0; kinds[id].rows[i] && p->problem[0]; i++)
    if (id == GPU && busy)
      untested (r, 7, "other pods use its GPUs");
    else
      pods_say (r, kinds[id].rows[i], PODS_FAIL, pull ? "test-image-pull" : NULL, p->problem);
}

void
pods_init_rows (struct run *r)
{
  for (size_t i = 0; i < PODS_ROWS; i++)
    r->want->rows[i] = (struct pods_row){ rows[i].number, PODS_UNTESTED, rows[i].good, "" };
  untested (r, 7, "no GPU was asked for");
  untested (r, 14, "no storage_class is configured");
}
