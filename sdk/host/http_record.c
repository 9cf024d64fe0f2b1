/* http_record.c - exchanges as numbered files, and back
 *
 * Masked are the provider's secrets and the headers that carry credentials; a credential that a
 * cloud hands out in a body is not known here, so record with test accounts.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include "core/json.h"
#include "core/log.h"
#include "sdk/host/http.h"

static const char *const credentials[] = {
  "authorization", "proxy-authorization",  "api_key", "api-key",   "x-api-key",
  "x-auth-token",  "x-amz-security-token", "cookie",  "set-cookie"
};

/* ---- both ways ---- */

static void
hash (const void *bytes, size_t len, char out[65])
{
  unsigned char md[32];

  EVP_Digest (bytes, len, md, NULL, EVP_sha256 (), NULL);
  for (size_t i = 0; i < sizeof md; i++)
    snprintf (out + 2 * i, 3, "%02x", md[i]);
}

/* Path and query, which is all that a recording on another address can match by. */
static const char *
target (const char *url)
{
  const char *host = strstr (url, "://");
  const char *path = host ? strpbrk (host + 3, "/?") : NULL;

  return path ? path : "/";
}

/* ---- record ---- */

static json_t *
headers_json (struct host *h, const struct gpub_kv *kv, uint64_t n)
{
  json_t *list = json_array ();

  for (uint64_t i = 0; i < n; i++) {
    AUTO_FREE char *value = strdup (kv[i].value);

    for (size_t k = 0; k < N_ELEMENTS (credentials); k++)
      if (strcasecmp (kv[i].key, credentials[k]) == 0)
        memset (value, '*', strlen (value));
    secrets_mask (h, value, strlen (value));
    json_array_append_new (list, json_pack ("[s,o]", kv[i].key, text_json (value, 8192)));
  }
  return list;
}

static void
put_body (struct host *h, json_t *j, const void *bytes, size_t len)
{
  AUTO_FREE char *copy = malloc (len + 1), *text = NULL;

  if (!copy)
    abort ();
  if (len > 0)
    memcpy (copy, bytes, len);
  copy[len] = '\0';
  secrets_mask (h, copy, len);
  if (text_is_utf8 (copy, len)) {
    json_object_set_new (j, "body", json_stringn (copy, len));
    return;
  }
  text = base64_encode (copy, len);
  json_put_str (j, "body_base64", text);
}

static json_t *
exchange_json (const struct exchange *x)
{
  struct host *h = x->call->host;
  json_t *request = json_object (), *response = json_object ();
  AUTO_FREE char *path = strdup (target (x->rq.url));
  char sum[65];

  secrets_mask (h, path, strlen (path));
  json_put_str (request, "method", x->rq.method);
  json_put_str (request, "target", path);
  json_object_set_new (request, "headers", headers_json (h, x->rq.headers, x->rq.nheaders));
  if (x->rq.body_len) {
    hash (x->rq.body, x->rq.body_len, sum);
    put_body (h, request, x->rq.body, x->rq.body_len);
    json_put_str (request, "body_sha256", sum);
  }
  json_put_i64 (response, "status", x->status);
  json_put_i64 (response, "http_version", x->version);
  json_object_set_new (response, "headers", headers_json (h, x->headers.at, x->headers.n));
  if (x->trailers.n)
    json_object_set_new (response, "trailers", headers_json (h, x->trailers.at, x->trailers.n));
  put_body (h, response, x->body, x->len);
  return json_pack ("{s:o, s:o}", "request", request, "response", response);
}

static void
file_name (const struct exchange *x, unsigned number, char *out, size_t size)
{
  int n = snprintf (out, size, "%s/%04u-%s-", x->call->host->http.record, number, x->rq.method);

  for (const char *p = target (x->rq.url) + 1; *p && *p != '?' && n + 6 < (int) size && n < 200;
       p++)
    out[n++] = isalnum ((unsigned char) *p) ? *p : '-';
  snprintf (out + n, size - (size_t) n, ".json");
}

void
record_exchange (const struct exchange *x)
{
  static _Atomic unsigned number;
  AUTO_JSON json_t *j = exchange_json (x);
  char path[4096];

  file_name (x, atomic_fetch_add (&number, 1) + 1, path, sizeof path);
  if (json_dump_file (j, path, JSON_INDENT (2)) < 0)
    out_log (&x->call->host->out, LOG_ERR, "http.record", x->call->id, "cannot write %s: %s", path,
             strerror (errno));
}

/* ---- replay ---- */

struct replay {
  pthread_mutex_t lock;
  VEC (json_t *) exchanges; /* in the order of their names; NULL once used */
};

static int
is_recording (const struct dirent *d)
{
  const char *dot = strrchr (d->d_name, '.');

  return d->d_name[0] != '.' && dot && strcmp (dot, ".json") == 0;
}

static int
load (struct replay *r, const char *dir, const char *name, struct err *e)
{
  AUTO_JSON json_t *j = NULL;
  json_error_t why;
  char path[4096];
  json_t **slot;

  snprintf (path, sizeof path, "%s/%s", dir, name);
  j = json_load_file (path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
  if (!j)
    return err_set (e, ERR_INVALID, "replay: %s:%d: %s", path, why.line, why.text);
  if (!json_is_object (json_object_get (j, "request")) ||
      !json_is_object (json_object_get (j, "response")))
    return err_set (e, ERR_INVALID, "replay: %s lacks 'request' or 'response'", path);
  slot = vec_push (&r->exchanges);
  *slot = STEAL (j);
  return 0;
}

int
replay_open (struct host *h, const char *dir, struct err *e)
{
  struct dirent **names = NULL;
  int n = scandir (dir, &names, is_recording, alphasort), rc = 0;

  if (n < 0)
    return err_set (e, ERR_INVALID, "replay: %s: %s", dir, strerror (errno));
  h->replay = calloc (1, sizeof *h->replay);
  if (!h->replay)
    abort ();
  pthread_mutex_init (&h->replay->lock, NULL);
  for (int i = 0; i < n; i++) {
    if (rc == 0)
      rc = load (h->replay, dir, names[i]->d_name, e);
    free (names[i]);
  }
  free (names);
  return rc;
}

static bool
matches (const json_t *j, const struct exchange *x, const char *sum)
{
  const json_t *request = json_object_get (j, "request");
  const char *want = json_str (request, "body_sha256", NULL);

  return j && strcmp (json_str (request, "method", ""), x->rq.method) == 0 &&
         strcmp (json_str (request, "target", ""), target (x->rq.url)) == 0 &&
         (!want || strcmp (want, sum) == 0);
}

static json_t *
take (struct replay *r, const struct exchange *x)
{
  json_t *found = NULL;
  char sum[65];

  hash (x->rq.body ? x->rq.body : "", x->rq.body_len, sum);
  pthread_mutex_lock (&r->lock);
  for (size_t i = 0; i < r->exchanges.n && !found; i++)
    if (matches (r->exchanges.at[i], x, sum))
      found = STEAL (r->exchanges.at[i]);
  pthread_mutex_unlock (&r->lock);
  return found;
}

static void
play_lines (struct exchange *x, const json_t *list)
{
  json_t *pair;
  size_t i;

  json_array_foreach (list, i, pair) {
    const char *key = json_string_value (json_array_get (pair, 0)),
               *value = json_string_value (json_array_get (pair, 1));
    AUTO_FREE char *line = NULL;

    if (key && value && asprintf (&line, "%s: %s", key, value) >= 0)
      answer_line (x, line, strlen (line));
  }
}

static bool
play_body (struct exchange *x, const json_t *response)
{
  const json_t *text = json_object_get (response, "body");
  const char *base64 = json_str (response, "body_base64", NULL);
  AUTO_FREE void *bytes = NULL;
  size_t len = 0;

  if (base64) {
    bytes = base64_decode (base64, &len, NULL);
    return !bytes || answer_body (x, bytes, len);
  }
  return !json_is_string (text) ||
         answer_body (x, json_string_value (text), json_string_length (text));
}

enum http_end
replay_send (struct exchange *x)
{
  AUTO_JSON json_t *j = take (x->call->host->replay, x);
  const json_t *response = json_object_get (j, "response");
  char line[64];
  int version;

  if (!j) {
    snprintf (x->text, sizeof x->text, "replay: no recording is left for %.180s",
              target (x->rq.url));
    return HTTP_REFUSED;
  }
  x->sent = true;
  version = (int) json_i64 (response, "http_version", 11);
  snprintf (line, sizeof line, "HTTP/%d.%d %d", version / 10, version % 10,
            (int) json_i64 (response, "status", 200));
  answer_line (x, line, strlen (line));
  play_lines (x, json_object_get (response, "headers"));
  answer_line (x, "", 0);
  if (!play_body (x, response))
    return x->halted ? HTTP_ANSWERED : HTTP_TOO_LONG;
  play_lines (x, json_object_get (response, "trailers"));
  return HTTP_ANSWERED;
}
