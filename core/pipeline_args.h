/* pipeline_args.h - the arguments of the pipeline's calls, from a lease and its attempt
 * (docs/children.md) */
#ifndef GPUB_PIPELINE_ARGS_H
#define GPUB_PIPELINE_ARGS_H

#include "core/broker.h"

json_t *args_probe (struct lease *l, struct attempt *a);
/* The machine that some live lease wants, by its Node's name; NULL: none. */
const struct attempt *args_attempt_named (const struct broker *b, const char *node);
json_t *args_authorise (struct lease *l, struct attempt *a);
json_t *args_forget (struct lease *l, struct attempt *a);
json_t *args_check (struct lease *l, struct attempt *a);
json_t *args_worker (struct lease *l, struct attempt *a);
bool args_reused (const struct attempt *a); /* its machine outlives the lease */
json_t *args_leave (struct lease *l, struct attempt *a);
json_t *args_of_cluster (const struct conf_cluster *k);
json_t *args_cluster (struct lease *l, struct attempt *a); /* a may be NULL */
json_t *args_mint (struct lease *l, struct attempt *a);
json_t *args_machine (struct lease *l, struct attempt *a);
json_t *args_node (struct lease *l, struct attempt *a);
json_t *args_drain (struct lease *l, struct attempt *a);
json_t *args_render (struct lease *l, struct attempt *a);
json_t *args_standalone (struct lease *l, struct attempt *a);
json_t *args_reach (struct lease *l, struct attempt *a);
bool args_opened (const struct lease *l); /* is the API's port of a standalone cluster open? */
enum { STANDALONE_PORT = 6443 };
json_t *args_verify (struct lease *l, struct attempt *a);

void pipeline_remember_mismatch (struct attempt *a, const char *text);

#endif
