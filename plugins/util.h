/* util.h - what the plugins of this tree share: options, money, time, keys, bodies, refusals
 *
 * Nothing here talks to a cloud or keeps state; the host table does the first, the plugin's own
 * struct the second.
 */
#ifndef GPUB_PLUGINS_UTIL_H
#define GPUB_PLUGINS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gpubroker/provider.h>
#include <jansson.h>

#include "core/cleanup.h"

/* Fills err (text: printable, one line, no full stop) and returns kind. */
int32_t plug_error (struct gpub_error *err, int32_t kind, const char *fmt, ...) PRINTF (3, 4);
/* Replaces what must not be shown: every occurrence of the secret. */
void plug_mask (char *text, const char *secret, size_t len);

/* The value of a declared option, NULL when it has none. */
const char *plug_option (const struct gpub_config *config, const char *name);
json_t *plug_option_list (const struct gpub_config *config, const char *name); /* [] without one */
/* The option endpoint, without a trailing slash; caller frees. */
int32_t plug_endpoint (const struct gpub_config *config, char **endpoint, struct gpub_error *err);
#define PLUG_OPTION(name_, type_, flags_, default_, help_)                                         \
 {                                                                                                 \
  .size = sizeof (struct gpub_option), .name = name_, .type = type_, .flags = flags_,              \
  .default_value = default_, .help = help_                                                         \
 }

/* "2", "2.5", "0.985": exact, never through floating point; beyond micro-dollars it rounds up.
 * False for anything else, signs and exponents included. */
bool udollar_parse (const char *decimal, uint64_t *udollar);

enum { RFC3339_SIZE = 32 };
/* "2026-01-28T20:53:39.459529Z" or with an offset.  False for what is no time. */
bool rfc3339_parse (const char *text, int64_t *ms);
/* In UTC, rounded up to a whole second. */
void rfc3339_print (int64_t ms, char out[RFC3339_SIZE]);

/* The part of a public key line that identifies it, "type blob", without the comment; NULL when
 * there is none. */
const char *ssh_key_identity (const char *line, size_t *len);
bool ssh_key_same (const char *a, const char *b);

char *base64_encode (const void *bytes, size_t len); /* caller frees */
/* Appends text to out with everything but RFC 3986's unreserved characters escaped; false when it
 * does not fit. */
bool url_append (char *out, size_t size, const char *text);

/* JSON from an answer's body, guarded against depth and floods; NULL otherwise. */
json_t *plug_json (const struct gpub_http_response *response);
json_t *plug_object (const struct gpub_http_response *response); /* NULL for any other type, too */

/* A word of a cloud's and what it means here. */
struct plug_word {
  const char *word;
  uint32_t value;
};
uint32_t plug_word (const struct plug_word *table, size_t n, const char *word, uint32_t otherwise);

/* check.c: what is refused before the cloud is asked.  what names the offer. */
int32_t plug_check_price (const char *what, uint64_t udollar, uint64_t cap, struct gpub_error *err);
int32_t plug_check_user_data (const struct gpub_create *a, uint64_t max, struct gpub_error *err);

/* refusal.c: what an HTTP status means to a read and to a change. */
int32_t plug_kind_of_status (int status, bool change);
/* The same, with the words of the answer (either may be ""), which decide between stock, money and
 * a fault where the status is about the wish. */
int32_t plug_kind_of_refusal (int status, bool change, const char *code, const char *text);
/* What a delete came to: what is not there is removed, and what is refused now (it is being built,
 * another action runs) is not refused for ever. */
int32_t plug_kind_of_removal (int32_t rc);
/* GPUB_E_CAPACITY or GPUB_E_QUOTA by the words of a cloud, GPUB_OK when they say
 * neither. */
int32_t plug_kind_of_text (const char *text);
/* A secret as it goes into a header: without the newline that a file ends with.  The caller zeroes
 * it. */
enum { PLUG_KEY_MAX = 512 };
int32_t plug_key (const struct gpub_host *host, struct gpub_call *call, const char *option,
                  char key[static PLUG_KEY_MAX], size_t *len, struct gpub_error *err);

#endif
