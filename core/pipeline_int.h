/* pipeline_int.h - shared by the pipeline_*.c files alone */
#ifndef GPUB_PIPELINE_INT_H
#define GPUB_PIPELINE_INT_H

#include "core/broker.h"

bool pipeline_has_cluster (const struct lease *l);
void pipeline_item (struct lease *l, struct attempt *a, const json_t *i); /* progress */
json_t *pipeline_failure (const char *step, const char *code, const char *text, bool retryable);

/* pipeline_kube.c; takes args */
void pipeline_kube (struct lease *l, const char *call, json_t *args, int64_t ms, call_done *then);

/* pipeline_judge.c */
typedef json_t *pipeline_judge (struct lease *l, struct attempt *a, const struct call_result *r);
pipeline_judge judge_probe, judge_authorised, judge_ran, judge_script, judge_left, judge_render,
    judge_kubeconfig, judge_mint, judge_verify;

#endif
