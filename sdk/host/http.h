/* http.h - one exchange, shared by the parts of the http service
 *
 * http.c decides (may it go, again, what does the end mean), http_check.c refuses, http_send.c is
 * libcurl, http_answer.c collects, http_record.c writes exchanges down and plays them back.
 */
#ifndef GPUB_HTTP_H
#define GPUB_HTTP_H

#include "sdk/host/host.h"

enum http_end {
  HTTP_ANSWERED, /* the whole answer, or as much of it as on_body wanted */
  HTTP_STOPPED,  /* the call was cancelled or its deadline passed */
  HTTP_TIMEOUT,  /* the request's own */
  HTTP_TOO_LONG,
  HTTP_BROKEN,  /* transport: worth another try of a SAFE one */
  HTTP_REFUSED, /* transport, local or TLS trust: not worth one */
};

typedef VEC (struct gpub_kv) kv_list;

struct exchange {
  struct gpub_call *call;
  struct gpub_http_request rq; /* a copy, cut to what the plugin wrote */
  bool mutates, retry_left;
  int64_t until_ms;
  bool old;          /* the server agreed to HTTP/1 alone */
  bool begun, again; /* it was let go; libcurl wanted to send it once more */
  bool unfit;        /* not sent: old, and HTTP/2 is needed */
  /* the answer */
  int status, version;
  bool head_done, sent, streamed, halted, too_long;
  kv_list headers, trailers; /* strings are the call's memory */
  char *body;
  size_t len, cap;
  char text[CURL_ERROR_SIZE];
};

int http_check (const struct host *h, const struct gpub_http_request *rq, struct err *e);

enum http_end http_send (struct exchange *x);

void answer_reset (struct exchange *x);
/* One header line, status line or blank line, without its end. */
void answer_line (struct exchange *x, const char *line, size_t len);
/* False: stop the transfer. */
bool answer_body (struct exchange *x, const void *bytes, size_t len);
const char *answer_header (const struct exchange *x, const char *name);
bool http_is_transient (int status);

/* Milliseconds from now; 0 for a header that is absent, past or broken. */
uint32_t retry_after_ms (const char *value, int64_t now_ms);

void record_exchange (const struct exchange *x);
int replay_open (struct host *h, const char *dir, struct err *e);
enum http_end replay_send (struct exchange *x);

#endif
