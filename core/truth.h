/* truth.h - is what was delivered what was bought?
 *
 * Pure: the offer and what the node said of itself in, a failure out.
 */
#ifndef GPUB_TRUTH_H
#define GPUB_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* NULL when it is, or when the node cannot say yet (a driver that is still loading); else
 * docs/schema/failure. */
json_t *truth_check (const json_t *offer, const json_t *facts);
/* Is this failure the delivery's, so that another offer may do better? */
bool truth_mismatch (const char *code);

/* What the node script is to check by itself. */
int64_t truth_gpus (const json_t *offer);    /* whole GPUs; 0: a CPU machine */
int64_t truth_mem_mib (const json_t *offer); /* least per GPU, with the tolerance; 0: any */
void truth_pattern (const json_t *offer, char *out, size_t size); /* an ERE on nvidia-smi's name */
/* nvidia.com/gpu.product, the same on every provider: "NVIDIA-H100-80GB". */
void truth_product (const json_t *offer, const json_t *facts, char *out,
                    size_t size); /* facts: NULL before a probe */

#endif
