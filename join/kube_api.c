/* kube_api.c - HTTPS to an API server
 *
 * HTTP/1.1 only: a request that hangs then holds up one connection, not a multiplexed one.  The
 * environment's proxy variables do not count; a kubeconfig's proxy-url does.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/wire.h"
#include "join/kube_api.h"
#include "join/kube_exec.h"
#include "join/kube_text.h"

enum {
  MAX_BODY = 8 * 1024 * 1024,
  MAX_DEPTH = 64,
  MAX_TOKENS = 1000000,
  TEXT_MAX = 16384,
  CONNECT_MS = 10000,
  REQUEST_MS = 30000,
  READ_TRIES = 3,
  RETRY_AFTER_MAX_MS = 3000,
  PAGE = 200,
  TOKEN_FILE_MS = 60000, /* how long what a token file said is believed */
};

struct kube_api {
  struct kube_call *call;
  struct kubeconfig conf;
  unsigned generation; /* of the credential from a program; 0: none yet */
  int64_t renew_ms;    /* when credentials that change are asked for again, on the wall clock */
  CURL *curl;
  char what[80];
  char base[300]; /* the server's URL without a slash at its end */
  struct curl_slist *connect_to;
  char why[CURL_ERROR_SIZE];
};

struct transfer {
  struct kube_api *api;
  struct wire_buf body;
  bool write, too_long;
};

static size_t
on_body (char *bytes, size_t size, size_t n, void *arg)
{
  struct transfer *t = arg;

  if (t->body.end - t->body.start + size * n > MAX_BODY) {
    t->too_long = true;
    return 0;
  }
  wire_feed (&t->body, bytes, size * n);
  return size * n;
}

/* A write that is on its way is not cut off by a CANCEL: its outcome would be unknown for nothing.
 */
static int
on_progress (void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
  struct transfer *t = arg;

  (void) a, (void) b, (void) c, (void) d;
  return !t->write && atomic_load (&t->api->call->cancelled);
}

static void
set_blob (CURL *curl, CURLoption option, const char *text)
{
  struct curl_blob blob = { (void *) (uintptr_t) text, strlen (text), CURL_BLOB_COPY };

  curl_easy_setopt (curl, option, &blob);
}

/* tls-server-name: that name goes into the URL, the real address behind it. */
static void
set_address (struct kube_api *a)
{
  const char *server = a->conf.server;
  size_t n = strlen (server);
  char host[256], to[600];
  int port;

  while (n > 0 && server[n - 1] == '/')
    n--;
  snprintf (a->base, sizeof a->base, "%.*s", (int) n, server);
  if (!a->conf.tls_name || https_split (server, host, &port) < 0)
    return;
  snprintf (a->base, sizeof a->base, "https://%.250s:%d", a->conf.tls_name, port);
  snprintf (to, sizeof to, strchr (host, ':') ? "%s:%d:[%s]:%d" : "%s:%d:%s:%d", a->conf.tls_name,
            port, host, port);
  a->connect_to = curl_slist_append (NULL, to);
}

static void
set_user (struct kube_api *a)
{
  curl_easy_setopt (a->curl, CURLOPT_XOAUTH2_BEARER, NULL);
  if (a->conf.cert) {
    curl_easy_setopt (a->curl, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt (a->curl, CURLOPT_SSLKEYTYPE, "PEM");
    set_blob (a->curl, CURLOPT_SSLCERT_BLOB, a->conf.cert);
    set_blob (a->curl, CURLOPT_SSLKEY_BLOB, a->conf.key);
  }
  if (a->conf.token) {
    curl_easy_setopt (a->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt (a->curl, CURLOPT_XOAUTH2_BEARER, a->conf.token);
  } else if (a->conf.user && a->conf.password) {
    curl_easy_setopt (a->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt (a->curl, CURLOPT_USERNAME, a->conf.user);
    curl_easy_setopt (a->curl, CURLOPT_PASSWORD, a->conf.password);
  }
}

/* What a program or a file says is asked for again when it is over, and when the server refuses it.
 */
static int
renew (struct kube_api *a, bool refused, struct err *e)
{
  struct credential got;

  if ((!a->conf.exec && !a->conf.token_file) || (!refused && clock_wall_ms () < a->renew_ms))
    return 0;
  if (!a->conf.exec) {
    a->renew_ms = clock_wall_ms () + TOKEN_FILE_MS;
    if (kubeconfig_token (&a->conf, e) < 0)
      return -1;
  } else {
    if (exec_credential (a->call, &a->conf, refused ? a->generation : 0, &got, e) < 0)
      return -1;
    a->renew_ms = got.expires_ms;
    a->generation = got.generation;
    kubeconfig_credential (&a->conf, &got.token, &got.cert, &got.key);
    credential_done (&got);
  }
  set_user (a);
  return 0;
}

struct kube_api *
kube_api_new (struct kube_call *c, const struct kubeconfig *k, const char *what, struct err *e)
{
  struct kube_api *a = calloc (1, sizeof *a);

  if (!a)
    abort ();
  a->call = c;
  snprintf (a->what, sizeof a->what, "%s", what);
  kubeconfig_copy (&a->conf, k);
  if (a->conf.token_file) /* read just now */
    a->renew_ms = clock_wall_ms () + TOKEN_FILE_MS;
  a->curl = curl_easy_init ();
  if (!a->curl) {
    err_set (e, ERR_INTERNAL, "libcurl does not start");
    kube_api_free (a);
    return NULL;
  }
  set_address (a);
  if (a->conf.ca)
    set_blob (a->curl, CURLOPT_CAINFO_BLOB, a->conf.ca);
  set_user (a);
  curl_easy_setopt (a->curl, CURLOPT_CONNECT_TO, a->connect_to);
  curl_easy_setopt (a->curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt (a->curl, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
  curl_easy_setopt (a->curl, CURLOPT_PROXY, a->conf.proxy ? a->conf.proxy : "");
  curl_easy_setopt (a->curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (a->curl, CURLOPT_ERRORBUFFER, a->why);
  curl_easy_setopt (a->curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt (a->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt (a->curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt (a->curl, CURLOPT_USERAGENT, "gpubroker/" PACKAGE_VERSION);
  return a;
}

void
kube_api_free (struct kube_api *a)
{
  if (!a)
    return;
  curl_easy_cleanup (a->curl);
  curl_slist_free_all (a->connect_to);
  kubeconfig_done (&a->conf);
  free (a);
}

const char *
kube_api_server (const struct kube_api *a)
{
  return a->conf.server;
}

const char *
kube_api_ca (const struct kube_api *a)
{
  return a->conf.ca;
}

static int
link_failed (struct transfer *t, CURLcode rc, const char *method, const char *path, struct err *e)
{
  struct kube_api *a = t->api;
  long connected = 0;
  const char *code = "kube-link";
  enum err_kind kind = t->write ? ERR_UNKNOWN : ERR_UNAVAILABLE;

  curl_easy_getinfo (a->curl, CURLINFO_REQUEST_SIZE, &connected);
  if (rc == CURLE_ABORTED_BY_CALLBACK)
    return call_check (a->call, e);
  if (t->too_long)
    return err_set (e, ERR_INVALID, "%s: %s %s answered more than %d bytes", a->what, method, path,
                    MAX_BODY);
  if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CONNECT_ERROR ||
      rc == CURLE_SSL_CACERT_BADFILE || rc == CURLE_SSL_CERTPROBLEM)
    code = "kube-tls";
  else if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST)
    code = "kube-connect";
  if (connected == 0)
    kind = ERR_UNAVAILABLE;
  return err_code (e, kind, code, "%s: %s %.120s: %.100s", a->what, method, a->conf.server,
                   a->why[0] ? a->why : curl_easy_strerror (rc));
}

static int
refused (struct kube_api *a, long status, const json_t *body, const char *method, const char *path,
         struct err *e)
{
  static const struct {
    long status;
    enum err_kind kind;
  } kinds[] = {
    { 401, ERR_AUTH },     { 403, ERR_AUTH }, { 404, ERR_NOT_FOUND },
    { 409, ERR_CONFLICT }, { 429, ERR_RATE }, { 410, ERR_CONFLICT },
  };
  enum err_kind kind = status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
  curl_off_t after = 0;
  char code[24];

  for (size_t i = 0; i < N_ELEMENTS (kinds); i++)
    if (kinds[i].status == status)
      kind = kinds[i].kind;
  snprintf (code, sizeof code, "kube-%ld", status);
  err_code (e, kind, code, "%s: %s %.90s: %ld %.110s", a->what, method, path, status,
            json_is_string (body) ? json_string_value (body) : json_str (body, "message", ""));
  curl_easy_getinfo (a->curl, CURLINFO_RETRY_AFTER, &after);
  if (e && after > 0 && after < 3600)
    e->retry_after_ms = (uint32_t) after * 1000;
  return -1;
}

/* The end of a log, a page of a proxy: bytes that are no UTF-8 become '?'. */
static json_t *
plain_text (const char *text, size_t len)
{
  AUTO_FREE char *copy = strndup (text, len < TEXT_MAX ? len : TEXT_MAX);

  if (!copy)
    abort ();
  json_clean (copy);
  return json_string (copy);
}

static json_t *
body_json (const struct wire_buf *b)
{
  const char *text = b->at ? b->at + b->start : "";
  size_t len = b->end - b->start;
  json_t *j = NULL;

  if (json_scan (text, len, MAX_DEPTH, MAX_TOKENS, NULL) == 0)
    j = json_loadb (text, len, 0, NULL);
  return j ? j : plain_text (text, len);
}

static int
send_once (struct kube_api *a, const char *method, const char *path, const char *type,
           const char *text, json_t **out, struct err *e)
{
  struct transfer t = { .api = a, .write = strcmp (method, "GET") != 0 };
  struct curl_slist *headers = curl_slist_append (NULL, "Accept: application/json");
  int64_t ms = call_ms_left (a->call);
  char url[1400], line[80];
  AUTO_JSON json_t *body = NULL;
  long status = 0;
  CURLcode rc;

  snprintf (url, sizeof url, "%s%s", a->base, path);
  snprintf (line, sizeof line, "Content-Type: %s", type ? type : API_JSON);
  headers = curl_slist_append (curl_slist_append (headers, line), "Expect:");
  curl_easy_setopt (a->curl, CURLOPT_URL, url);
  curl_easy_setopt (a->curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt (a->curl, CURLOPT_HTTPGET, 1L);
  if (text) {
    curl_easy_setopt (a->curl, CURLOPT_POSTFIELDSIZE, (long) strlen (text));
    curl_easy_setopt (a->curl, CURLOPT_POSTFIELDS, text);
  }
  curl_easy_setopt (a->curl, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt (a->curl, CURLOPT_WRITEDATA, &t);
  curl_easy_setopt (a->curl, CURLOPT_XFERINFODATA, &t);
  curl_easy_setopt (a->curl, CURLOPT_CONNECTTIMEOUT_MS, (long) (ms < CONNECT_MS ? ms : CONNECT_MS));
  curl_easy_setopt (a->curl, CURLOPT_TIMEOUT_MS, (long) (ms < REQUEST_MS ? ms : REQUEST_MS));
  /* libcurl repeats a request on a kept connection that turns out dead: not what writes */
  curl_easy_setopt (a->curl, CURLOPT_FRESH_CONNECT, (long) t.write);
  a->why[0] = '\0';
  rc = curl_easy_perform (a->curl);
  curl_slist_free_all (headers);
  curl_easy_getinfo (a->curl, CURLINFO_RESPONSE_CODE, &status);
  if (rc == CURLE_OK)
    body = body_json (&t.body);
  wire_buf_free (&t.body);
  if (rc != CURLE_OK)
    return link_failed (&t, rc, method, path, e);
  if (status / 100 != 2)
    return refused (a, status, body, method, path, e);
  if (out)
    *out = STEAL (body);
  return 0;
}

static bool
worth_repeating (const struct err *e)
{
  return (e->kind == ERR_UNAVAILABLE && strcmp (e->code, "kube-tls") != 0 &&
          strcmp (e->code, "deadline") != 0) ||
         e->kind == ERR_RATE;
}

int
kube_api_send (struct kube_api *a, const char *method, const char *path, const char *type,
               const json_t *body, json_t **out, struct err *e)
{
  int tries = strcmp (method, "GET") == 0 ? READ_TRIES : 1, wait_ms = 200;
  bool refused = false;
  AUTO_FREE char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;
  struct err why;

  for (;;) {
    why = (struct err) ERR_INIT;
    if (call_check (a->call, e) < 0 || renew (a, refused, e) < 0)
      return -1;
    if (send_once (a, method, path, type, text, out, &why) == 0)
      return 0;
    /* A 401 has done nothing: with other credentials even a write may be sent again, once. */
    if (strcmp (why.code, "kube-401") == 0 && !refused && (a->conf.exec || a->conf.token_file)) {
      refused = true;
      continue;
    }
    if (--tries == 0 || !worth_repeating (&why))
      break;
    if (why.retry_after_ms > 0 && why.retry_after_ms < RETRY_AFTER_MAX_MS)
      wait_ms = (int) why.retry_after_ms;
    if (call_sleep (a->call, wait_ms, e) < 0)
      break;
    wait_ms *= 3;
  }
  if (e)
    *e = why;
  return -1;
}

json_t *
kube_get (struct kube_api *a, struct err *e, const char *fmt, ...)
{
  char path[1000];
  json_t *out = NULL;
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (path, sizeof path, fmt, ap);
  va_end (ap);
  return kube_api_send (a, "GET", path, NULL, NULL, &out, e) < 0 ? NULL : out;
}

json_t *
kube_find (struct kube_api *a, bool *found, struct err *e, const char *fmt, ...)
{
  struct err why = ERR_INIT;
  char path[1000];
  json_t *out = NULL;
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (path, sizeof path, fmt, ap);
  va_end (ap);
  *found = kube_api_send (a, "GET", path, NULL, NULL, &out, &why) == 0;
  if (!*found && why.kind != ERR_NOT_FOUND && e)
    *e = why;
  return out;
}

int
kube_delete (struct kube_api *a, struct err *e, const char *fmt, ...)
{
  struct err why = ERR_INIT;
  char path[1000];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (path, sizeof path, fmt, ap);
  va_end (ap);
  if (kube_api_send (a, "DELETE", path, NULL, NULL, NULL, &why) == 0 || why.kind == ERR_NOT_FOUND)
    return 0;
  if (e)
    *e = why;
  return -1;
}

int
kube_each (struct kube_api *a, const char *path, int (*fn) (json_t *item, void *arg), void *arg,
           struct err *e)
{
  AUTO_FREE char *mark = NULL;

  do {
    AUTO_JSON json_t *page = NULL;
    json_t *item;
    size_t i;
    int rc;

    page = kube_get (a, e, "%s%climit=%d%s%s", path, strchr (path, '?') ? '&' : '?', PAGE,
                     mark ? "&continue=" : "", mark ? mark : "");
    if (!page)
      return -1;
    json_array_foreach (json_object_get (page, "items"), i, item) {
      rc = fn (item, arg);
      if (rc)
        return rc;
    }
    free (mark);
    mark = NULL;
    if (*json_str_at (page, "metadata.continue", ""))
      mark = curl_easy_escape (a->curl, json_str_at (page, "metadata.continue", ""), 0);
  } while (mark);
  return 0;
}

bool
tcp_answers (struct kube_call *c, const char *host, int port)
{
  CURL *curl = curl_easy_init ();
  char url[300];
  int64_t ms = call_ms_left (c);
  CURLcode rc;

  if (!curl)
    return false;
  snprintf (url, sizeof url, strchr (host, ':') ? "http://[%s]:%d" : "http://%s:%d", host, port);
  curl_easy_setopt (curl, CURLOPT_URL, url);
  curl_easy_setopt (curl, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt (curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (curl, CURLOPT_PROXY, "");
  curl_easy_setopt (curl, CURLOPT_TIMEOUT_MS, (long) (ms < 5000 ? ms : 5000));
  rc = curl_easy_perform (curl);
  curl_easy_cleanup (curl);
  return rc == CURLE_OK;
}
