/* http_answer.c - collects an answer; libcurl and recordings feed it alike
 *
 * Interim blocks (100, a proxy's 200) come first and are thrown away; what follows the final
 * block's blank line are trailers.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sdk/host/http.h"

enum { HEADERS_MAX = 256 };

static const uint64_t body_default = 16 * 1024 * 1024;

void
answer_reset (struct exchange *x)
{
  vec_free (&x->headers);
  vec_free (&x->trailers);
  free (x->body);
  x->body = NULL;
  x->len = x->cap = 0;
  x->status = x->version = 0;
  x->head_done = x->streamed = x->halted = x->too_long = false;
  x->text[0] = '\0';
}

static void
status_line (struct exchange *x, const char *line)
{
  int major = 0, minor = 0, status = 0;

  if (sscanf (line, "HTTP/%d.%d %d", &major, &minor, &status) != 3) {
    minor = 0;
    sscanf (line, "HTTP/%d %d", &major, &status);
  }
  vec_free (&x->headers);
  x->status = status;
  x->version = major * 10 + minor;
  x->head_done = false;
}

static char *
copy (struct gpub_call *c, const char *s, size_t len)
{
  char *out = call_alloc (c, len + 1);

  memcpy (out, s, len);
  return out;
}

static void
add (struct exchange *x, kv_list *list, const char *line, size_t len)
{
  const char *colon = memchr (line, ':', len), *value, *end = line + len;
  struct gpub_kv *kv;
  char *name;

  if (!colon || list->n == HEADERS_MAX)
    return;
  name = copy (x->call, line, (size_t) (colon - line));
  for (char *p = name; *p; p++)
    *p = (char) tolower ((unsigned char) *p);
  for (value = colon + 1; value < end && (*value == ' ' || *value == '\t');)
    value++;
  while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  kv = vec_push (list);
  *kv = (struct gpub_kv){ name, copy (x->call, value, (size_t) (end - value)) };
}

void
answer_line (struct exchange *x, const char *line, size_t len)
{
  char first[32];

  if (len > 5 && memcmp (line, "HTTP/", 5) == 0 &&
      (!x->head_done || x->status < 200 || x->len == 0)) {
    snprintf (first, sizeof first, "%.*s", (int) len, line);
    status_line (x, first);
  } else if (len == 0) {
    x->head_done = true;
  } else {
    add (x, x->head_done ? &x->trailers : &x->headers, line, len);
  }
}

bool
http_is_transient (int status)
{
  return status == 502 || status == 503 || status == 504;
}

static bool
stream (struct exchange *x, const void *bytes, size_t len)
{
  x->len += len;
  if (x->retry_left && http_is_transient (x->status))
    return true; /* not the answer that the plugin waits for */
  x->streamed = true;
  x->halted = x->rq.on_body (x->rq.on_body_ctx, bytes, len) != 0;
  return !x->halted;
}

bool
answer_body (struct exchange *x, const void *bytes, size_t len)
{
  uint64_t max = x->rq.max_body ? x->rq.max_body : body_default;

  if (x->len + len > max) {
    x->too_long = true;
    return false;
  }
  if (x->rq.on_body)
    return stream (x, bytes, len);
  if (x->len + len + 1 > x->cap) {
    x->cap = (x->len + len + 1) * 2;
    x->body = realloc (x->body, x->cap);
    if (!x->body)
      abort ();
  }
  memcpy (x->body + x->len, bytes, len);
  x->len += len;
  x->body[x->len] = '\0';
  return true;
}

const char *
answer_header (const struct exchange *x, const char *name)
{
  for (size_t i = 0; i < x->headers.n; i++)
    if (strcmp (x->headers.at[i].key, name) == 0)
      return x->headers.at[i].value;
  return NULL;
}

uint32_t
retry_after_ms (const char *value, int64_t now_ms)
{
  int64_t ms;
  time_t at;
  char *end;

  if (!value || !*value)
    return 0;
  if (isdigit ((unsigned char) *value)) {
    ms = strlen (value) > 9 ? INT64_MAX / 1000 : strtoll (value, &end, 10);
    if (strlen (value) <= 9 && *end)
      return 0;
    ms = ms > INT32_MAX / 1000 ? INT32_MAX : ms * 1000;
  } else {
    at = curl_getdate (value, NULL);
    ms = at < 0 ? 0 : (int64_t) at * 1000 - now_ms;
  }
  return ms <= 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (uint32_t) ms;
}
