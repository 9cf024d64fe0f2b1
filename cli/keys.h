/* keys.h - the caller's own keys */
#ifndef GPUB_KEYS_H
#define GPUB_KEYS_H

#include <stdbool.h>

#include <jansson.h>

#include "core/err.h"

/* Appends every key of an OpenSSH .pub or authorized_keys file to a list of strings. */
int keys_add_file (json_t *list, const char *path, struct err *e);
/* Those of ~/.ssh that exist; none is no error. */
void keys_add_own (json_t *list);
/* A private key becomes body.identity. */
int identity_read (json_t *body, const char *path, struct err *e);
bool key_is_public (const char *line);

#endif
