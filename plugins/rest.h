/* rest.h - JSON over HTTP, one key in a header: how most clouds are spoken to
 *
 * The plugin says what an answer means (judge) and has the words of its own API; sending, the key,
 * and what is left of a change without an answer are the same everywhere.  Not for clouds that sign
 * their requests or speak gRPC: those use plug_kind_of_status and the rest of util.h.
 */
#ifndef GPUB_PLUGINS_REST_H
#define GPUB_PLUGINS_REST_H

#include "plugins/util.h"

/* One call of the host at one API; nothing is owned. */
struct rest {
  const struct gpub_host *host;
  struct gpub_call *call;
  struct gpub_error *err;
  const char *endpoint;   /* without a trailing slash */
  const char *key_header; /* carries the option api_key */
  /* GPUB_OK with a reference in *out (unless out is NULL), else the kind with err filled; whatever
   * the HTTP status was.  The key is masked in err afterwards. */
  int32_t (*judge) (const struct rest *, const char *what, bool change,
                    const struct gpub_http_response *, json_t **out);
};

/* what is the thing that was wanted ("list instances"), for errors.  out may be NULL when the
 * answer has no use. */
int32_t rest_get (const struct rest *, const char *what, const char *path, json_t **out);
int32_t rest_change (const struct rest *, const char *what, const char *method, const char *path,
                     const json_t *body, json_t **out);
/* A read whose member (NULL: whose body) must be a list; *body is the whole answer. */
int32_t rest_list (const struct rest *, const char *what, const char *path, const char *member,
                   json_t **body);
/* For paths that every account has: 404 says that this is no such API, not that something is gone.
 * Other kinds pass. */
int32_t rest_expect (const struct rest *, const char *what, int32_t rc);

/* For judge: an answer that is no JSON of the sort that was expected ("JSON object").  After a
 * change it proves nothing. */
int32_t rest_garbled (const struct rest *, const char *what, bool change,
                      const struct gpub_http_response *, const char *expected);
/* Fills what every refusal carries besides its text. */
void rest_refused (const struct rest *, const struct gpub_http_response *, const char *code);

#endif
