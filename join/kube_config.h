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
  char *user_entry;   /* the name under users: */
  char *token_file;   /* where token came from: what is in it may change */
  json_t *exec;       /* users[].user.exec, when that is where the credentials come from */
  json_t *extensions; /* of the cluster's entry, for that program */
};

/* Whose words it is.  Only our own configuration's may name files to be read and programs to be run
 * here: what came from a cluster could have us send any file of this machine to any server. */
enum kubeconfig_from { KUBECONFIG_OURS, KUBECONFIG_FOREIGN };

/* The current context of a kubeconfig.  Fields that are not there are NULL.  Call kubeconfig_done
 * either way. */
int kubeconfig_parse (const char *text, size_t len, enum kubeconfig_from from, struct kubeconfig *k,
                      struct err *e);
/* Takes the three, which become NULL. */
void kubeconfig_credential (struct kubeconfig *k, char **token, char **cert, char **key);
void kubeconfig_copy (struct kubeconfig *to, const struct kubeconfig *from);
/* Reads the token file again. */
int kubeconfig_token (struct kubeconfig *k, struct err *e);
void kubeconfig_done (struct kubeconfig *k); /* zeroes the secrets */

#endif
