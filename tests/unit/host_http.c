/* host_http.c - limiter, Retry-After, what may be asked, and what a plugin's return is believed to
 * mean */
#include "config.h"

#include "sdk/host/http.h"
#include "tests/unit/tap.h"

static void
test_limiter (void)
{
  struct limiter l;

  limiter_init (&l, 10, 2, 1000);
  is_num (limiter_take (&l, 1000, 5000), 0, "the first of a burst");
  is_num (limiter_take (&l, 1000, 5000), 0, "the second");
  is_num (limiter_take (&l, 1000, 5000), 101, "the third waits for its token");
  is_num (limiter_take (&l, 1000, 5000), 201, "the fourth waits behind it");
  is_num (limiter_take (&l, 1000, 100), 301, "one without patience is told the wait");
  is_num (limiter_take (&l, 1000, 5000), 301, "and took nothing");
  is_num (limiter_take (&l, 60000, 5000), 0, "after a rest there is a burst again");
  is_num (limiter_take (&l, 60000, 5000), 0, "of two");
  is_num (limiter_take (&l, 60000, 5000), 101, "not more");
  limiter_pause (&l, 70000);
  is_num (limiter_take (&l, 61000, 60000), 9000, "the cloud's pause holds for all");
  limiter_init (&l, 0, 0, 1000);
  is_num (limiter_take (&l, 1000, 0), 0, "rate 0 is no limit");
}

static void
test_retry_after (void)
{
  int64_t now = 784111777000; /* Sun, 06 Nov 1994 08:49:37 GMT */

  is_num (retry_after_ms ("120", now), 120000, "seconds");
  is_num (retry_after_ms ("Sun, 06 Nov 1994 08:50:37 GMT", now), 60000, "a date");
  is_num (retry_after_ms ("Sun, 06 Nov 1994 08:48:37 GMT", now), 0, "a date in the past");
  is_num (retry_after_ms (NULL, now), 0, "absent");
  is_num (retry_after_ms ("", now), 0, "empty");
  is_num (retry_after_ms ("soon", now), 0, "broken");
  is_num (retry_after_ms ("5x", now), 0, "trailing garbage");
  is_num (retry_after_ms ("99999999999999999999", now), INT32_MAX, "absurd");
  is_num (retry_after_ms ("-5", now), 0, "negative");
}

static int
asks (const struct host *h, const char *url, uint32_t flags)
{
  struct gpub_http_request rq = {
    .size = sizeof rq, .method = "GET", .url = url, .flags = flags | GPUB_HTTP_SAFE
  };

  return http_check (h, &rq, NULL) == 0;
}

static void
test_urls (void)
{
  static char base[] = "http://10.0.0.1:80/v1";
  static struct host h;

  *vec_push (&h.options.plain) = base;
  ok (asks (&h, "https://api.test/x?y=1", 0), "https");
  ok (!asks (&h, "http://api.test/x", 0), "no http");
  ok (asks (&h, "http://10.0.0.1:80/v1/machines?a", 0), "http below a configured address");
  ok (asks (&h, "http://10.0.0.1:80/v1", 0), "and it itself");
  ok (!asks (&h, "http://10.0.0.1:80/v10", 0), "not beside it");
  ok (!asks (&h, "http://169.254.169.254/latest", 0), "link-local needs its flag");
  ok (asks (&h, "http://169.254.169.254/latest", GPUB_HTTP_PLAIN_LINK_LOCAL), "and has it");
  ok (asks (&h, "http://[fd00:ec2::254]/latest", GPUB_HTTP_PLAIN_LINK_LOCAL), "IPv6 too");
  ok (!asks (&h, "http://169.254.169.254.evil.test/", GPUB_HTTP_PLAIN_LINK_LOCAL), "a look-alike");
  ok (!asks (&h, "http://10.0.0.9/", GPUB_HTTP_PLAIN_LINK_LOCAL), "the flag opens nothing else");
  ok (!asks (&h, "https://user:pw@api.test/", 0), "no credentials in a url");
  ok (!asks (&h, "file:///etc/passwd", 0), "no other scheme");
  ok (!asks (&h, "https://api.test/", GPUB_HTTP_MUTATES), "SAFE and MUTATES exclude each other");
  vec_free (&h.options.plain);
}

static void
test_request (void)
{
  static struct host h;
  struct gpub_kv header = { "X-A", "1" };
  struct gpub_http_request rq = { .size = sizeof rq,
                                  .method = "GET",
                                  .url = "https://a.test/",
                                  .headers = &header,
                                  .nheaders = 1,
                                  .flags = GPUB_HTTP_SAFE };

  ok (http_check (&h, &rq, NULL) == 0, "a good request");
  header.value = "1\r\nHost: evil";
  ok (http_check (&h, &rq, NULL) < 0, "a line break in a header");
  header = (struct gpub_kv){ "X: A", "1" };
  ok (http_check (&h, &rq, NULL) < 0, "a colon in a name");
  header = (struct gpub_kv){ "X", "1" };
  rq.method = "GET /other";
  ok (http_check (&h, &rq, NULL) < 0, "a space in a method");
  rq.method = "POST";
  rq.body_len = 5;
  ok (http_check (&h, &rq, NULL) < 0, "a body at NULL");
}

static void
lines (struct exchange *x, const char *const *all)
{
  for (; *all; all++)
    answer_line (x, *all, strlen (*all));
}

static void
test_answer (void)
{
  static const char *const head[] = { "HTTP/1.1 100 Continue",
                                      "X-Old: 1",
                                      "",
                                      "HTTP/2 200",
                                      "Content-Type:\t text/plain  ",
                                      "Broken",
                                      "RETRY-AFTER: 3",
                                      "",
                                      NULL };
  static const char *const tail[] = { "Grpc-Status: 0", NULL };
  struct gpub_call c;
  struct exchange x = { .call = &c };

  call_init (&c, NULL, 1);
  lines (&x, head);
  answer_body (&x, "abc", 3);
  lines (&x, tail);
  ok (x.status == 200 && x.version == 20, "the final block's status");
  is_num ((int64_t) x.headers.n, 2, "its headers only");
  is_str (answer_header (&x, "content-type"), "text/plain", "lower case, trimmed");
  is_str (answer_header (&x, "retry-after"), "3", "by name");
  ok (x.trailers.n == 1 && strcmp (x.trailers.at[0].key, "grpc-status") == 0, "trailers apart");
  is_str (x.body, "abc", "the body is NUL-ended");
  answer_reset (&x);
  x.rq.max_body = 4;
  ok (answer_body (&x, "abcd", 4) && !answer_body (&x, "e", 1) && x.too_long, "the cap");
  answer_reset (&x);
  call_done (&c);
}

static int32_t
verdict (const char *call, int32_t rc, bool maybe, bool effect, int machines, int32_t failed)
{
  struct gpub_call c = { .type = run_type (call),
                         .maybe = maybe,
                         .effect = effect,
                         .machines = (uint64_t) machines,
                         .failed = failed };
  const char *why = NULL;

  return run_verdict (&c, rc, &why);
}

static void
test_verdict (void)
{
  static const int32_t doubtful[] = { GPUB_E_UNAVAILABLE, GPUB_E_CANCELLED, GPUB_E_INTERNAL };

  for (size_t i = 0; i < N_ELEMENTS (doubtful); i++) {
    is_num (verdict ("create", doubtful[i], true, false, 0, 0), GPUB_E_UNKNOWN, "sent, no answer");
    is_num (verdict ("create", doubtful[i], false, false, 0, 0), doubtful[i], "nothing sent");
    is_num (verdict ("create", doubtful[i], false, true, 0, 0), GPUB_E_UNKNOWN,
            "accepted, and no machine told");
    is_num (verdict ("create", doubtful[i], false, true, 1, 0), doubtful[i],
            "accepted, and the machine told");
  }
  is_num (verdict ("create", GPUB_E_CAPACITY, true, false, 0, 0), GPUB_E_CAPACITY,
          "what the plugin knows stands");
  is_num (verdict ("create", 99, true, false, 0, 0), GPUB_E_UNKNOWN,
          "no kind, after a sent request");
  is_num (verdict ("probe", 99, false, false, 0, 0), GPUB_E_INTERNAL, "no kind");
  is_num (verdict ("probe", -1, false, false, 0, 0), GPUB_E_INTERNAL, "negative");
  is_num (verdict ("get", GPUB_OK, false, false, 0, 0), GPUB_E_INTERNAL, "get without a machine");
  is_num (verdict ("get", GPUB_OK, false, false, 1, 0), GPUB_OK, "get with one");
  is_num (verdict ("list", GPUB_OK, false, false, 0, GPUB_E_CANCELLED), GPUB_E_CANCELLED,
          "ok after an emit that was refused");
  is_num (verdict ("list", GPUB_E_AUTH, false, false, 0, GPUB_E_CANCELLED), GPUB_E_AUTH,
          "the plugin's own failure stands");
}

int
main (void)
{
  test_limiter ();
  test_retry_after ();
  test_urls ();
  test_request ();
  test_answer ();
  test_verdict ();
  return done ();
}
