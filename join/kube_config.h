/* kube_config.h - kubeconfig files, and YAML as the JSON it stands for */
#ifndef GPUB_KUBE_CONFIG_H
#define GPUB_KUBE_CONFIG_H

#include <stdbool.h>

#include <jansson.h>

#include "core/err.h"

/* The first document.  Bounded in depth and nodes (aliases count each time), duplicate keys
 * refused.  typed: plain scalars become booleans, integers and nulls; else every scalar is a
 * string. */
json_t *yaml_parse (const char *text, size_t len, bool typed, struct err *e);

struct kubeconfig {
  char *server, *tls_name, *proxy;
  char *ca, *cert, *key; /* PEM */
  char *token, *user, *password;
  char *user_entry; /* the name under users: */
};

/* The current context of a kubeconfig.  Fields that are not there are NULL.  Call kubeconfig_done
 * either way. */
int kubeconfig_parse (const char *text, size_t len, struct kubeconfig *k, struct err *e);
void kubeconfig_done (struct kubeconfig *k); /* zeroes the secrets */

#endif
