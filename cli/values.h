/* values.h - what people type, read strictly: all of the text or nothing
 *
 * Every parser returns -1 (or NULL) and says in e what was expected; none guesses a unit.
 */
#ifndef GPUB_VALUES_H
#define GPUB_VALUES_H

#include <stdint.h>

#include <jansson.h>

#include "core/err.h"

int parse_count (const char *s, int64_t min, int64_t max, int64_t *out, struct err *e);
/* Dollars, "2.50" or "$2.50", at most six decimals. */
int parse_money (const char *s, int64_t *udollar, struct err *e);
/* Money with "/gpu" or "/machine" behind it; *per is NULL when neither is there. */
int parse_price (const char *s, int64_t *udollar, const char **per, struct err *e);
/* "90s" "45m" "4h" "2d" "1h30m" "500ms"; larger units first. */
int parse_duration (const char *s, int64_t *ms, struct err *e);
/* "80" "80G" "2T"; GB and GiB are taken for the same. */
int parse_gib (const char *s, int64_t *gib, struct err *e);
/* MODEL[:N|:MIN+|:MIN-MAX] as a member of FILTER.gpu; one GPU unless it says more. */
json_t *parse_gpu (const char *s, struct err *e);
/* keep[:DURATION]|release */
json_t *parse_on_failure (const char *s, struct err *e);
/* [udp:]FROM[-TO][/CIDR] */
json_t *parse_port (const char *s, struct err *e);
/* USER@ADDRESS[:PORT]; an IPv6 address that has a port stands in brackets. */
json_t *parse_host (const char *s, struct err *e);
/* A span before now_ms, or YYYY-MM-DD in UTC. */
int parse_since (const char *s, int64_t now_ms, int64_t *ms, struct err *e);

#endif
