/* kube_render.h - texts with values in them: what is printed for people and what is applied */
#ifndef GPUB_KUBE_RENDER_H
#define GPUB_KUBE_RENDER_H

#include "join/kube.h"

/* What templates may ask for, of a cluster of the configuration and a request's own wishes. */
json_t *kube_values (const json_t *cluster, const json_t *params);
/* The template with its values; caller frees. */
char *kube_fill (const char *text, const json_t *values);

#endif
