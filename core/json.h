/* json.h - what stands between hostile bytes and Jansson, and short ways to read an object */
#ifndef GPUB_JSON_H
#define GPUB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

enum { JSON_MAX_DEPTH = 16, JSON_MAX_TOKENS = 4096 };

/* Allocation-free pre-scan: brackets balanced, depth <= max_depth, at most max_tokens values,
 * separators and brackets.  Not a validator: Jansson is. */
int json_scan (const char *text, size_t len, int max_depth, size_t max_tokens, struct err *e);
/* Scan with the limits above, then parse: an object, duplicate keys refused.  NULL on failure. */
json_t *json_parse (const char *text, size_t len, struct err *e);
/* The same for a frame that holds a whole batch. */
json_t *json_parse_max (const char *text, size_t len, size_t max_tokens, struct err *e);
/* Sorted and compact: what idempotency hashes.  Caller frees. */
char *json_canonical (const json_t *j);

/* Reads of a member that tolerate its absence, a null and a wrong type alike. */
const char *json_str (const json_t *obj, const char *key, const char *otherwise);
int64_t json_i64 (const json_t *obj, const char *key, int64_t otherwise);
bool json_bool (const json_t *obj, const char *key, bool otherwise);

/* Sets a member unless the value is NULL / absent; keeps objects free of nulls. */
void json_put_str (json_t *obj, const char *key, const char *value);
void json_put_i64 (json_t *obj, const char *key, int64_t value);

/* A strict description of an object, for everything that mutates: unknown members are refused by
 * name with the nearest right one, types are checked.  type is a jansson type, JSON_TRUE for a
 * boolean. */
struct json_member {
  const char *name;
  json_type type;
  bool required;
};
int json_check (const json_t *obj, const struct json_member *members, size_t n, struct err *e);

/* Bytes that are no UTF-8 become '?': Jansson refuses a whole string for a letter that "%.60s" cut.
 */
void json_clean (char *text);

/* The candidate with the smallest edit distance to word, if it is near enough to suggest; else
 * NULL. */
const char *nearest (const char *word, const char *const *candidates, size_t n);

#endif
