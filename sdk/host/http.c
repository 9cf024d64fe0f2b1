/* http.c - the http service: whether a request may go, go again, and what its end means
 *
 * A SAFE request is retried inside its deadline; one that MUTATES is sent at most once, and when
 * its answer is lost the call remembers it (run.c turns that into UNKNOWN).
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "sdk/host/http.h"

enum { TRIES = 4, BACKOFF_MS = 250, PAUSE_MOST_MS = 60000 };

static char *
dup_member (const json_t *conf, const char *name)
{
  const char *s = json_str (conf, name, NULL);

  return s ? strdup (s) : NULL;
}

static const struct json_member members[] = {
  { "ca_file", JSON_STRING, false },
  { "client_cert_file", JSON_STRING, false },
  { "client_key_file", JSON_STRING, false },
  { "proxy", JSON_STRING, false },
  { "rate", JSON_REAL, false },
  { "burst", JSON_INTEGER, false },
  { "record", JSON_STRING, false },
  { "replay", JSON_STRING, false },
};

int
http_configure (struct host *h, const json_t *conf, struct err *e)
{
  struct http_conf *c = &h->http;
  const json_t *rate = json_object_get (conf, "rate"), *burst = json_object_get (conf, "burst");

  if (json_check (conf, members, N_ELEMENTS (members), e) < 0)
    return err_add (e, "http");
  c->ca_file = dup_member (conf, "ca_file");
  c->client_cert_file = dup_member (conf, "client_cert_file");
  c->client_key_file = dup_member (conf, "client_key_file");
  c->proxy = dup_member (conf, "proxy");
  c->record = dup_member (conf, "record");
  c->replay = dup_member (conf, "replay");
  limiter_init (&h->limiter, json_number_value (rate), json_number_value (burst), clock_boot_ms ());
  if (c->record && mkdir (c->record, 0700) < 0 && errno != EEXIST)
    return err_set (e, ERR_INVALID, "http: record %s: %s", c->record, strerror (errno));
  return c->replay ? replay_open (h, c->replay, e) : 0;
}

/* ---- before ---- */

static bool
copy_request (struct gpub_http_request *to, const struct gpub_http_request *from)
{
  uint64_t least = offsetof (struct gpub_http_request, timeout_ms);

  memset (to, 0, sizeof *to);
  if (from->size < least || from->size > 64 * 1024)
    return false;
  memcpy (to, from, from->size < sizeof *to ? (size_t) from->size : sizeof *to);
  return true;
}

static int
prepare (struct exchange *x, struct gpub_call *c, const struct gpub_http_request *rq, struct err *e)
{
  int64_t left = call_left_ms (c);

  memset (x, 0, sizeof *x);
  x->call = c;
  if (!copy_request (&x->rq, rq))
    return err_set (e, ERR_INTERNAL, "a request of %llu bytes", (unsigned long long) rq->size);
  if (!c->worker)
    return err_set (e, ERR_INTERNAL, "open must make no traffic");
  if (http_check (c->host, &x->rq, e) < 0)
    return -1;
  if (x->rq.timeout_ms && x->rq.timeout_ms < left)
    left = x->rq.timeout_ms;
  x->until_ms = clock_boot_ms () + left;
  x->mutates = x->rq.flags & GPUB_HTTP_MUTATES;
  return 0;
}

/* One token of the provider's bucket; the wait is bounded by the request's own time. */
static int
wait_turn (struct exchange *x, struct err *e)
{
  struct host *h = x->call->host;
  int64_t now = clock_boot_ms (), wait;

  pthread_mutex_lock (&h->limiter_lock);
  wait = limiter_take (&h->limiter, now, x->until_ms - now);
  pthread_mutex_unlock (&h->limiter_lock);
  if (wait > x->until_ms - now) {
    err_set (e, ERR_RATE, "the rate limit allows the next request in %lld ms, which is too late",
             (long long) wait);
    e->retry_after_ms = (uint32_t) (wait < INT32_MAX ? wait : INT32_MAX);
    return -1;
  }
  if (wait > 0)
    call_wait (x->call, wait, 0);
  return 0;
}

/* ---- after ---- */

/* Bounded, so that a cloud's absurd delay cannot hold up a remove for days. */
static void
heed_throttle (struct exchange *x)
{
  struct host *h = x->call->host;
  uint32_t ms = retry_after_ms (answer_header (x, "retry-after"), clock_wall_ms ());

  if (x->status != 429 || ms == 0)
    return;
  pthread_mutex_lock (&h->limiter_lock);
  limiter_pause (&h->limiter, clock_boot_ms () + (ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS));
  pthread_mutex_unlock (&h->limiter_lock);
}

/* A gateway's 5xx does not tell whether the cloud behind it acted. */
static void
note_effect (struct exchange *x, enum http_end end)
{
  if (!x->mutates || !x->sent)
    return;
  if (end != HTTP_ANSWERED || x->status >= 500 || x->status == 408)
    x->call->maybe = true;
  else if (x->status < 300)
    x->call->effect = true;
}

static int64_t
backoff_ms (const struct exchange *x, int try)
{
  uint32_t asked = retry_after_ms (answer_header (x, "retry-after"), clock_wall_ms ()), noise = 0;
  int64_t ms = (int64_t) BACKOFF_MS << try;

  if (getrandom (&noise, sizeof noise, GRND_NONBLOCK) < 0)
    noise = 0;
  ms = ms / 2 + noise % (uint32_t) (ms / 2 + 1);
  return asked > ms ? asked : ms;
}

static bool
may_retry (const struct exchange *x, enum http_end end, int try)
{
  if (x->mutates || try + 1 == TRIES || x->streamed)
    return false;
  return end == HTTP_BROKEN || (end == HTTP_ANSWERED && http_is_transient (x->status));
}

/* False when the request's time does not reach to another try. */
static bool
wait_retry (struct exchange *x, enum http_end end, int try)
{
  int64_t ms = backoff_ms (x, try);

  if (clock_boot_ms () + ms >= x->until_ms)
    return false;
  out_log (&x->call->host->out, LOG_INFO, "http.retry", x->call->id,
           "method=%s try=%d wait_ms=%lld status=%d error=%s", x->rq.method, try + 1,
           (long long) ms, x->status, end == HTTP_BROKEN ? x->text : "");
  call_wait (x->call, ms, 0);
  return !call_stopped (x->call);
}

static enum http_end
tries (struct exchange *x, struct err *e)
{
  enum http_end end = HTTP_STOPPED;

  for (int try = 0; try < TRIES; try++) {
    answer_reset (x);
    x->retry_left = !x->mutates && try + 1 < TRIES;
    if (wait_turn (x, e) < 0)
      return HTTP_REFUSED;
    if (call_stopped (x->call))
      return HTTP_STOPPED;
    end = x->call->host->replay ? replay_send (x) : http_send (x);
    heed_throttle (x);
    if (!may_retry (x, end, try) || !wait_retry (x, end, try))
      break;
  }
  return end;
}

static int
describe (struct exchange *x, enum http_end end, struct err *e)
{
  static const enum err_kind kinds[] = {
    [HTTP_STOPPED] = ERR_CANCELLED,    [HTTP_TIMEOUT] = ERR_UNAVAILABLE,
    [HTTP_TOO_LONG] = ERR_UNAVAILABLE, [HTTP_BROKEN] = ERR_UNAVAILABLE,
    [HTTP_REFUSED] = ERR_UNAVAILABLE,
  };
  enum err_kind kind = x->mutates && x->sent ? ERR_UNKNOWN : kinds[end];

  if (e->kind != ERR_NONE) /* said already */
    return -1;
  if (end == HTTP_STOPPED)
    return err_set (e, kind, "%s %s", x->rq.method,
                    call_left_ms (x->call) ? "was cancelled" : "passed the deadline");
  if (end == HTTP_TIMEOUT)
    return err_set (e, kind, "%s: no answer in time", x->rq.method);
  if (end == HTTP_TOO_LONG)
    return err_set (e, kind, "%s: the answer is longer than the cap", x->rq.method);
  return err_set (e, kind, "%s: %s", x->rq.method, x->text);
}

static int
judge (struct exchange *x, enum http_end end, struct err *e)
{
  if (end != HTTP_ANSWERED)
    return describe (x, end, e);
  if ((x->rq.flags & GPUB_HTTP_HTTP2_REQUIRED) && x->version < 20)
    return err_set (e, x->mutates ? ERR_UNKNOWN : ERR_UNAVAILABLE,
                    "%s: the server speaks no HTTP/2", x->rq.method);
  return 0;
}

/* Half an answer is none: its headers and body are not shown. */
static void
give (struct exchange *x, enum http_end end, struct gpub_http_response *to)
{
  struct gpub_http_response r = { .size = to->size,
                                  .sent = x->sent ? GPUB_SENT_MAYBE : GPUB_SENT_NO,
                                  .body = "" };

  if (end == HTTP_ANSWERED) {
    r.status = x->status;
    r.http_version = (uint32_t) x->version;
    r.sent = GPUB_SENT_ANSWERED;
    r.retry_after_ms = retry_after_ms (answer_header (x, "retry-after"), clock_wall_ms ());
    r.headers = x->headers.at;
    r.nheaders = x->headers.n;
    r.trailers = x->trailers.at;
    r.ntrailers = x->trailers.n;
    r.body_len = x->rq.on_body ? 0 : x->len;
    r.body = x->rq.on_body ? NULL : x->body ? x->body : "";
  }
  if (x->headers.at)
    call_keep (x->call, x->headers.at, x->headers.n * sizeof *x->headers.at);
  if (x->trailers.at)
    call_keep (x->call, x->trailers.at, x->trailers.n * sizeof *x->trailers.at);
  if (x->body)
    call_keep (x->call, x->body, x->len);
  memcpy (to, &r, to->size < sizeof r ? (size_t) to->size : sizeof r);
}

static int32_t
report (const struct exchange *x, const struct err *e, struct gpub_error *err)
{
  struct gpub_error out = { .size = sizeof out,
                            .http_status = x->status,
                            .retry_after_ms = e->retry_after_ms };

  snprintf (out.text, sizeof out.text, "%s", e->text);
  if (err && err->size >= offsetof (struct gpub_error, text)) {
    out.size = err->size;
    memcpy (err, &out, out.size < sizeof out ? (size_t) out.size : sizeof out);
  }
  return (int32_t) e->kind;
}

int32_t
http_request (struct gpub_call *c, const struct gpub_http_request *rq,
              struct gpub_http_response *response, struct gpub_error *err)
{
  struct exchange x;
  struct err e = ERR_INIT;
  int64_t began = clock_boot_ms ();
  enum http_end end;
  int rc;

  if (response->size < offsetof (struct gpub_http_response, headers) ||
      response->size > 64 * 1024) {
    error_fill (err, "response.size is %llu: set it to sizeof",
                (unsigned long long) response->size);
    return GPUB_E_INTERNAL;
  }
  if (prepare (&x, c, rq, &e) < 0) {
    give (&x, HTTP_REFUSED, response);
    return report (&x, &e, err);
  }
  end = tries (&x, &e);
  note_effect (&x, end);
  if (end != HTTP_ANSWERED)
    x.status = 0;
  rc = judge (&x, end, &e);
  out_log (&c->host->out, LOG_DEBUG, "http", c->id, "method=%s status=%d bytes=%zu ms=%lld%s%s",
           x.rq.method, x.status, x.len, (long long) (clock_boot_ms () - began),
           rc < 0 ? " error=" : "", rc < 0 ? e.text : "");
  if (rc == 0 && c->host->http.record)
    record_exchange (&x);
  give (&x, end, response);
  return rc < 0 ? report (&x, &e, err) : GPUB_OK;
}
