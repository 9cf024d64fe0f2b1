/* pipeline_judge.c - what the answers of the runners mean: a failure, or NULL and what is kept of
 * them
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/pipeline_args.h"
#include "core/pipeline_int.h"
#include "core/truth.h"

json_t *
pipeline_failure (const char *step, const char *code, const char *text, bool retryable)
{
  return json_pack ("{s:s, s:s, s:s, s:b}", "step", step, "code", code, "message", text,
                    "retryable", retryable);
}

static void
keep_facts (struct lease *l, const struct call_result *r)
{
  json_t *facts = json_object_get (r->value, "facts");

  if (!facts)
    return;
  json_decref (l->facts);
  l->facts = json_incref (facts);
}

/* Two names for one address: what runs there may be another lease's. */
static json_t *
in_use (const struct lease *l, const struct attempt *a)
{
  const char *node = json_str (l->facts, "installed_as", json_str (l->facts, "node_name", NULL));
  const struct attempt *other = node ? args_attempt_named (l->broker, node) : NULL;
  char text[160];

  if (!other || other == a)
    return NULL;
  snprintf (text, sizeof text, "this machine is the node %s, of lease %s", node, other->lease->id);
  return pipeline_failure ("probe", "host-in-use", text, false);
}

json_t *
judge_probe (struct lease *l, struct attempt *a, const struct call_result *r)
{
  json_t *f;

  keep_facts (l, r);
  f = in_use (l, a);
  if (!f && lease_lent_key (l)) {
    a->authorised = true;
    attempt_save (a);
  }
  return f ? f : truth_check (a->offer, l->facts);
}

/* A script ran to its end; NULL: and that was good. */
json_t *
judge_ran (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const char *code = json_str (r->value, "code", "script-silent");
  const json_t *tail = json_object_get (r->value, "log_tail");
  json_t *f;

  (void) a;
  keep_facts (l, r);
  if (strcmp (code, "ok") == 0)
    return NULL;
  f = pipeline_failure (json_str (r->value, "step", "script"), code,
                        json_str (r->value, "text", code), json_bool (r->value, "retryable", true));
  if (tail)
    json_object_set (f, "log_tail", (json_t *) tail);
  return f;
}

json_t *
judge_script (struct lease *l, struct attempt *a, const struct call_result *r)
{
  json_t *f = judge_ran (l, a, r);

  return f ? f : truth_check (a->offer, l->facts);
}

/* From here on the broker's own key opens it. */
json_t *
judge_authorised (struct lease *l, struct attempt *a, const struct call_result *r)
{
  json_t *f = judge_ran (l, a, r);

  if (!f)
    identity_drop (l);
  return f;
}

json_t *
judge_left (struct lease *l, struct attempt *a, const struct call_result *r)
{
  json_t *f = judge_ran (l, a, r);

  if (!f) {
    a->cleaned = true;
    attempt_save (a);
  }
  return f;
}

static void
keep_minted (struct lease *l, json_t *value)
{
  json_decref (l->minted);
  l->minted = value;
}

json_t *
judge_render (struct lease *l, struct attempt *a, const struct call_result *r)
{
  (void) a;
  keep_minted (l, json_incref ((json_t *) r->value));
  return NULL;
}

/* That there are credentials, and the CA, which is none. */
json_t *
judge_kubeconfig (struct lease *l, struct attempt *a, const struct call_result *r)
{
  (void) a;
  if (r->nsecrets < 3)
    return pipeline_failure ("kubeconfig", "kubeconfig-absent",
                             "k0s shows no credentials of its administrator", true);
  for (size_t i = 0; i < r->nsecrets; i++)
    if (strcmp (r->secrets[i].name, "ca") == 0)
      keep_minted (l, json_pack ("{s:s%}", "ca", r->secrets[i].bytes, r->secrets[i].len));
  return NULL;
}

json_t *
judge_mint (struct lease *l, struct attempt *a, const struct call_result *r)
{
  for (size_t i = 0; i < r->nsecrets; i++)
    if (strcmp (r->secrets[i].name, "token") == 0) {
      lease_forget_token (l);
      l->join_token = strndup (r->secrets[i].bytes, r->secrets[i].len);
    }
  if (!l->join_token)
    return pipeline_failure ("mint", "token-missing", "the cluster minted no token", true);
  keep_minted (l, json_deep_copy (r->value));
  a->cleaned = false;
  a->joined = true; /* from here on there may be credentials on the machine and a Node */
  attempt_save (a);
  return NULL;
}

/* What a pod saw of the GPUs, as the node would have said it. */
json_t *
judge_gpu_pod (const struct attempt *a, const struct call_result *r)
{
  json_t *pod = json_object_get (json_object_get (r->value, "node"), "gpu_pod");
  AUTO_JSON json_t *facts = pod ? json_copy (pod) : NULL;

  if (!pod)
    return NULL;
  json_object_set_new (facts, "gpu_smi",
                       json_sprintf ("%zu", json_array_size (json_object_get (pod, "gpus"))));
  return truth_check (a->offer, facts);
}

json_t *
judge_verify (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const char *code = json_str (r->value, "code", "verify-silent"), *text = code;
  const json_t *row;
  size_t i;

  json_decref (l->rows);
  l->rows = json_incref (json_object_get (r->value, "rows"));
  if (strcmp (code, "ok") == 0)
    return judge_gpu_pod (a, r);
  json_array_foreach (json_object_get (r->value, "rows"), i, row) {
    if (strcmp (json_str (row, "code", ""), code) == 0)
      text = json_str (row, "text", code);
  }
  return pipeline_failure ("verify", code, text, true);
}
