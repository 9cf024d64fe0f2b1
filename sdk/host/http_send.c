/* http_send.c - one exchange over libcurl, in the worker's own multi handle
 *
 * libcurl silently repeats a request that met a stale reused connection, and one whose stream an
 * HTTP/2 server calls refused, whatever the method; so whatever MUTATES gets a connection of its
 * own, which nobody uses again, and is stopped before it is sent a second time.
 */
#include "config.h"

#include <string.h>

#include "core/clock.h"
#include "sdk/host/http.h"

enum { CONNECT_MS = 15000, TICK_MS = 1000 };

static size_t
on_header (char *line, size_t one, size_t n, void *ctx)
{
  size_t len = n;

  while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == '\n'))
    len--;
  answer_line (ctx, line, len);
  return one * n;
}

static size_t
on_body (char *bytes, size_t one, size_t n, void *ctx)
{
  return answer_body (ctx, bytes, one * n) ? one * n : 0;
}

/* "ALPN: server accepted http/1.1", "ALPN: server did not agree on a protocol".  Where another
 * libcurl words it otherwise, the answer's own version tells, later. */
static bool
says_old (const char *text, size_t size)
{
  return memmem (text, size, "ALPN", 4) &&
         (memmem (text, size, "did not agree", 13) ||
          (memmem (text, size, "accepted", 8) && memmem (text, size, "http/1.", 7)));
}

/* libcurl tells here what it has written to the connection.  A CONNECT goes to the proxy, not to
 * the cloud. */
static int
on_debug (CURL *easy, curl_infotype type, char *data, size_t size, void *ctx)
{
  struct exchange *x = ctx;

  (void) easy;
  if (type == CURLINFO_TEXT && says_old (data, size))
    x->old = true;
  if (size == 0 || (type != CURLINFO_HEADER_OUT && type != CURLINFO_DATA_OUT))
    return 0;
  if (type == CURLINFO_HEADER_OUT && size >= 8 && memcmp (data, "CONNECT ", 8) == 0)
    return 0;
  x->sent = true;
  if (x->mutates)
    atomic_store (&x->call->in_flight, true);
  return 0;
}

/* The connection stands; nothing of the request has left. */
static int
on_connected (void *ctx, char *ip, char *local_ip, int port, int local_port)
{
  struct exchange *x = ctx;

  (void) ip, (void) local_ip, (void) port, (void) local_port;
  x->again = x->mutates && x->begun;
  x->begun = true;
  x->unfit = x->old && (x->rq.flags & GPUB_HTTP_HTTP2_REQUIRED);
  return x->again || x->unfit ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static struct curl_slist *
add_header (struct curl_slist *list, struct gpub_call *c, const char *name, const char *value)
{
  size_t size = strlen (name) + strlen (value) + 3;
  char *line = call_alloc (c, size);
  struct curl_slist *longer;

  snprintf (line, size, *value ? "%s: %s" : "%s;%s", name,
            value); /* "name;" is how libcurl sends it empty */
  longer = curl_slist_append (list, line);
  if (!longer)
    abort ();
  return longer;
}

static struct curl_slist *
headers (const struct exchange *x)
{
  struct curl_slist *list = curl_slist_append (NULL, "Expect:");
  bool typed = false;

  for (uint64_t i = 0; i < x->rq.nheaders; i++) {
    const struct gpub_kv *kv = &x->rq.headers[i];

    typed |= strcasecmp (kv->key, "content-type") == 0;
    list = add_header (list, x->call, kv->key, kv->value);
  }
  return typed ? list : curl_slist_append (list, "Content-Type:"); /* not libcurl's form default */
}

static void
set_method (CURL *easy, const struct gpub_http_request *rq)
{
  if (strcmp (rq->method, "HEAD") == 0) {
    curl_easy_setopt (easy, CURLOPT_NOBODY, 1L);
    return;
  }
  if (rq->body_len || strcmp (rq->method, "POST") == 0 || strcmp (rq->method, "PUT") == 0 ||
      strcmp (rq->method, "PATCH") == 0) {
    curl_easy_setopt (easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) rq->body_len);
    curl_easy_setopt (easy, CURLOPT_POSTFIELDS, rq->body_len ? rq->body : "");
  }
  curl_easy_setopt (easy, CURLOPT_CUSTOMREQUEST, rq->method);
}

static void
set_link (CURL *easy, const struct http_conf *conf, const struct gpub_http_request *rq)
{
  bool local = rq->flags & GPUB_HTTP_PLAIN_LINK_LOCAL;

#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt (easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt (easy, CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt (easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt (easy, CURLOPT_PROXY,
                    conf->proxy && !local ? conf->proxy : ""); /* "": nor the environment's */
  if (conf->ca_file)
    curl_easy_setopt (easy, CURLOPT_CAINFO, conf->ca_file);
  if (conf->client_cert_file)
    curl_easy_setopt (easy, CURLOPT_SSLCERT, conf->client_cert_file);
  if (conf->client_key_file)
    curl_easy_setopt (easy, CURLOPT_SSLKEY, conf->client_key_file);
  if (rq->flags & GPUB_HTTP_HTTP2_REQUIRED)
    curl_easy_setopt (easy, CURLOPT_HTTP_VERSION,
                      (long) (strncmp (rq->url, "http:", 5) == 0
                                  ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                  : CURL_HTTP_VERSION_2TLS));
}

static void
set_all (CURL *easy, struct exchange *x, struct curl_slist *list)
{
  curl_easy_setopt (easy, CURLOPT_URL, x->rq.url);
  curl_easy_setopt (easy, CURLOPT_HTTPHEADER, list);
  curl_easy_setopt (easy, CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
  curl_easy_setopt (easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (easy, CURLOPT_SUPPRESS_CONNECT_HEADERS,
                    1L); /* a proxy's answer is not the cloud's */
  curl_easy_setopt (easy, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_MS);
  curl_easy_setopt (easy, CURLOPT_ERRORBUFFER, x->text);
  curl_easy_setopt (easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt (easy, CURLOPT_HEADERDATA, x);
  curl_easy_setopt (easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt (easy, CURLOPT_WRITEDATA, x);
  curl_easy_setopt (easy, CURLOPT_VERBOSE, 1L);
  curl_easy_setopt (easy, CURLOPT_DEBUGFUNCTION, on_debug);
  curl_easy_setopt (easy, CURLOPT_DEBUGDATA, x);
  curl_easy_setopt (easy, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt (easy, CURLOPT_PREREQDATA, x);
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt (easy, CURLOPT_QUICK_EXIT, 1L); /* a cancelled look-up is not waited for */
#endif
  if (x->mutates) {
    curl_easy_setopt (easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt (easy, CURLOPT_FORBID_REUSE, 1L);
  }
  set_method (easy, &x->rq);
  set_link (easy, &x->call->host->http, &x->rq);
}

static bool
is_done (CURLM *multi, CURLcode *rc)
{
  CURLMsg *m;
  int left;

  while ((m = curl_multi_info_read (multi, &left)))
    if (m->msg == CURLMSG_DONE) {
      *rc = m->data.result;
      return true;
    }
  return false;
}

/* CURLE_OK and friends; CURLE_ABORTED_BY_CALLBACK for a stopped call, CURLE_OPERATION_TIMEDOUT past
 * until. */
static CURLcode
transfer (CURLM *multi, struct exchange *x)
{
  CURLcode rc = CURLE_OK;
  int running;

  for (;;) {
    int64_t left = x->until_ms - clock_boot_ms ();

    if (call_stopped (x->call))
      return CURLE_ABORTED_BY_CALLBACK;
    if (left <= 0)
      return CURLE_OPERATION_TIMEDOUT;
    if (curl_multi_perform (multi, &running) != CURLM_OK)
      return CURLE_OUT_OF_MEMORY;
    if (is_done (multi, &rc))
      return rc;
    curl_multi_poll (multi, NULL, 0, (int) (left < TICK_MS ? left : TICK_MS), NULL);
  }
}

static enum http_end
meaning (const struct exchange *x, CURLcode rc)
{
  switch (rc) {
  case CURLE_OK:
    return HTTP_ANSWERED;
  case CURLE_ABORTED_BY_CALLBACK:
    return x->again ? HTTP_BROKEN : x->unfit ? HTTP_REFUSED : HTTP_STOPPED;
  case CURLE_OPERATION_TIMEDOUT:
    return x->until_ms > clock_boot_ms () ? HTTP_BROKEN
                                          : HTTP_TIMEOUT; /* the former: it did not connect */
  case CURLE_WRITE_ERROR:
    return x->halted ? HTTP_ANSWERED : x->too_long ? HTTP_TOO_LONG : HTTP_BROKEN;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_URL_MALFORMAT:
    return HTTP_REFUSED;
  default:
    return HTTP_BROKEN;
  }
}

enum http_end
http_send (struct exchange *x)
{
  CURLM *multi = x->call->worker->multi;
  CURL *easy = curl_easy_init ();
  struct curl_slist *list = headers (x);
  CURLcode rc;

  if (!easy)
    abort ();
  x->old = x->begun = x->again = x->unfit = false;
  set_all (easy, x, list);
  curl_multi_add_handle (multi, easy);
  rc = transfer (multi, x);
  curl_multi_remove_handle (multi, easy);
  if (x->again || x->unfit)
    snprintf (x->text, sizeof x->text, "%s",
              x->again ? "the server refused the stream" : "the server speaks no HTTP/2");
  else if (rc != CURLE_OK && !x->text[0])
    snprintf (x->text, sizeof x->text, "%s", curl_easy_strerror (rc));
  curl_easy_cleanup (easy);
  curl_slist_free_all (list);
  atomic_store (&x->call->in_flight, false);
  return meaning (x, rc);
}
