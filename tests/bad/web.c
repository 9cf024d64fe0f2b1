/* web.c - every call is one http request, so that tests can look at the host's http service
 *
 * probe: GET /probe.  list_offers: GET offer_ref, streamed when it starts with /stream.  create:
 * POST offer_ref and, when that starts with /twice, a second one.  get, find, list, remove: GET
 * /get ..., DELETE /remove. The answer's status decides the kind; what http gave is told in the
 * call's text and log.  A path with "h2" in it needs HTTP/2, one with "big" posts four megabytes.
 */
#define GPUB_NAME "web"
#include "tests/bad/bad.h"

enum { BIG = 4 << 20 };
static char endpoint[256], big[BIG];

static int32_t
web_open (const struct gpub_host *h, struct gpub_call *call, const struct gpub_config *conf,
          void **self, struct gpub_error *err UNUSED)
{
  (void) call;
  host = h;
  *self = NULL;
  for (uint64_t i = 0; i < conf->count; i++)
    if (strcmp (conf->values[i].key, "endpoint") == 0)
      snprintf (endpoint, sizeof endpoint, "%s", conf->values[i].value);
  return GPUB_OK;
}

static int
count (void *ctx, const void *bytes UNUSED, uint64_t len)
{
  *(uint64_t *) ctx += len;
  return 0;
}

static void
tell (struct gpub_call *call, const struct gpub_http_response *r, uint64_t streamed)
{
  char text[512];
  int n = snprintf (text, sizeof text,
                    "status=%d version=%u sent=%u retry_after_ms=%u body_len=%llu streamed=%llu",
                    r->status, r->http_version, r->sent, r->retry_after_ms,
                    (unsigned long long) r->body_len, (unsigned long long) streamed);

  for (uint64_t i = 0; i < r->nheaders && n < (int) sizeof text; i++)
    if (strncmp (r->headers[i].key, "x-", 2) == 0 || strncmp (r->headers[i].key, "grpc-", 5) == 0)
      n += snprintf (text + n, sizeof text - (size_t) n, " %s=%s", r->headers[i].key,
                     r->headers[i].value);
  for (uint64_t i = 0; i < r->ntrailers && n < (int) sizeof text; i++)
    n += snprintf (text + n, sizeof text - (size_t) n, " trailer:%s=%s", r->trailers[i].key,
                   r->trailers[i].value);
  host->log (call, GPUB_LOG_INFO, "web.answer", text);
}

static int32_t
ask (struct gpub_call *call, const char *method, const char *path, uint32_t flags,
     struct gpub_error *err)
{
  char url[1024], auth[256] = "Bearer ";
  struct gpub_kv headers[] = { { "Authorization", auth }, { "X-Empty", "" } };
  struct gpub_http_response r = { .size = sizeof r };
  struct gpub_http_request rq = { .size = sizeof rq,
                                  .method = method,
                                  .url = url,
                                  .headers = headers,
                                  .nheaders = 2,
                                  .flags = flags };
  uint64_t streamed = 0, len;
  const void *key = "";
  int32_t rc;

  if (host->secret (call, "api_key", &key, &len) == GPUB_OK)
    snprintf (auth, sizeof auth, "Bearer %.*s", (int) len, (const char *) key);
  snprintf (url, sizeof url, "%s%s", strstr (path, "://") ? "" : endpoint, path);
  if (strncmp (path, "/stream", 7) == 0) {
    rq.on_body = count;
    rq.on_body_ctx = &streamed;
  }
  if (strncmp (path, "/small", 6) == 0)
    rq.max_body = 1000;
  if (strncmp (path, "/short", 6) == 0)
    rq.timeout_ms = 300;
  if (flags & GPUB_HTTP_MUTATES) {
    rq.body = strstr (path, "big") ? big : "{\"a\":1}";
    rq.body_len = strstr (path, "big") ? BIG : 7;
  }
  if (strstr (path, "h2"))
    rq.flags |= GPUB_HTTP_HTTP2_REQUIRED;
  rc = host->http (call, &rq, &r, err);
  tell (call, &r, streamed);
  if (rc != GPUB_OK)
    return rc;
  err->http_status = r.status;
  err->retry_after_ms = r.retry_after_ms;
  snprintf (err->text, sizeof err->text, "answer %d", r.status);
  return r.status < 300    ? GPUB_OK
         : r.status == 404 ? GPUB_E_NOT_FOUND
         : r.status == 429 ? GPUB_E_RATE_LIMITED
         : r.status < 500  ? GPUB_E_INVALID
                           : GPUB_E_UNAVAILABLE;
}

static int32_t
web_probe (void *self UNUSED, struct gpub_call *call, struct gpub_identity *id UNUSED,
           struct gpub_error *err)
{
  return ask (call, "GET", "/probe", GPUB_HTTP_SAFE, err);
}

static int32_t
web_list_offers (void *self UNUSED, struct gpub_call *call, const struct gpub_offer_query *q,
                 struct gpub_error *err)
{
  return ask (call, "GET", q->offer_ref ? q->offer_ref : "/offers", GPUB_HTTP_SAFE, err);
}

static int32_t
web_create (void *self UNUSED, struct gpub_call *call, const struct gpub_create *args,
            struct gpub_error *err)
{
  struct gpub_machine m = { .size = sizeof m, .id = "web-1", .state = GPUB_STATE_CREATING };
  int32_t rc = ask (call, "POST", args->offer_ref, GPUB_HTTP_MUTATES, err);

  if (strncmp (args->offer_ref, "/twice", 6) == 0)
    rc = ask (call, "POST", args->offer_ref, GPUB_HTTP_MUTATES, err);
  if (strncmp (args->offer_ref, "/garbled", 8) == 0)
    return GPUB_E_INTERNAL;
  return rc == GPUB_OK ? host->emit_machine (call, &m) : rc;
}

static int32_t
web_remove (void *self UNUSED, struct gpub_call *call, const struct gpub_ref *ref UNUSED,
            struct gpub_error *err)
{
  return ask (call, "DELETE", "/remove", GPUB_HTTP_MUTATES, err);
}

static const struct gpub_option options[] = {
  { sizeof options[0], "endpoint", GPUB_OPT_STRING, 0, "https://api.invalid",
    "where the cloud is" },
  { sizeof options[0], "api_key", GPUB_OPT_STRING, GPUB_OPT_SECRET, NULL, "the account's key" },
};

BAD_ENTRY (.open = web_open, .probe = web_probe, .list_offers = web_list_offers,
           .create = web_create, .remove = web_remove, .options = options, .noptions = 2,
           .options_stride = sizeof options[0])
