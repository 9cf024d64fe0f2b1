/* tags.h - the broker's marks in lists of "key=value" text, which stand for tags in many clouds
 *
 * Entries of another form belong to people and are passed over.  Clouds with real tags need only
 * find_wants.
 */
#ifndef GPUB_PLUGINS_TAGS_H
#define GPUB_PLUGINS_TAGS_H

#include "plugins/util.h"

enum { TAGS_MAX = 64 };

json_t *tags_list (const struct gpub_create *a);            /* what a create has to put on */
const char *tags_get (const json_t *list, const char *key); /* the value, or NULL */
bool tags_ours (const json_t *list);                        /* has any mark of a broker's */
/* Fills tags, which point into list and text, an array of the caller's; how many. */
uint64_t tags_split (const json_t *list, json_t *text, struct gpub_kv tags[static TAGS_MAX]);

/* Is this the machine to find: by token where one is asked for, else by name?  token and name may
 * be NULL. */
bool find_wants (const struct gpub_find *f, const char *token, const char *name);

#endif
