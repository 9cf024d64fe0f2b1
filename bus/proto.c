/* proto.c - the four text frames of GPUB/1, without any socket
 *
 * Everything here takes hostile bytes with their length; nothing is assumed to end in NUL.
 */
#include "config.h"

#include <string.h>

#include "bus/proto.h"
#include "core/json.h"

static const char *const replies[] = {
  [BUS_ACCEPTED] = "accepted",
  [BUS_PROGRESS] = "progress",
  [BUS_FINAL] = "final",
  [BUS_ERROR] = "error",
};

const char *
proto_reply_name (enum bus_reply what)
{
  return replies[what];
}

static int
equals (struct bytes b, const char *text)
{
  return b.len == strlen (text) && memcmp (b.at, text, b.len) == 0;
}

int
proto_reply_parse (struct bytes name)
{
  for (size_t i = 0; i < N_ELEMENTS (replies); i++)
    if (equals (name, replies[i]))
      return (int) i;
  return -1;
}

static int
all_between (struct bytes b, char low, char high)
{
  for (size_t i = 0; i < b.len; i++)
    if (b.at[i] < low || b.at[i] > high)
      return 0;
  return 1;
}

int
proto_id_ok (struct bytes id)
{
  return id.len >= 1 && id.len <= PROTO_ID_MAX && all_between (id, ' ', '~');
}

static int
verb_ok (struct bytes verb)
{
  return verb.len >= 1 && verb.len <= PROTO_VERB_MAX && all_between (verb, '!', '~');
}

static int
bad (struct err *e, const char *why)
{
  return err_code (e, ERR_INVALID, "bad-frame", "%s", why);
}

static int
check_body (struct bytes b, struct err *e)
{
  size_t blank = 0;

  if (b.len > PROTO_BODY_MAX)
    return bad (e, "the body is longer than 65536 bytes");
  while (blank < b.len && strchr (" \t\r\n", b.at[blank]) && b.at[blank])
    blank++;
  if (blank == b.len || b.at[blank] != '{' || memchr (b.at, 0, b.len))
    return bad (e, "the body is not a JSON object");
  if (json_scan (b.at, b.len, JSON_MAX_DEPTH, JSON_MAX_TOKENS, e) < 0) {
    strcpy (e->code, "bad-frame");
    return -1;
  }
  return 0;
}

/* Parsing costs more than everything else here, so it is done only where the word occurs at all. */
static int
says_single (struct bytes b)
{
  AUTO_JSON json_t *j = NULL;

  if (!memmem (b.at, b.len, "\"single\"", strlen ("\"single\"")))
    return 0;
  j = json_parse (b.at, b.len, NULL);
  return json_bool (j, "single", false);
}

int
proto_decode (const struct bytes *at, size_t n, size_t total, struct proto_request *r,
              struct err *e)
{
  memset (r, 0, sizeof *r);
  if (n > 0 && at[0].len == 0) {
    r->delimiter = 1;
    at++, n--, total--;
  }
  if (n >= 3 && proto_id_ok (at[2]))
    memcpy (r->id, at[2].at, at[2].len);
  if (total != 4 || n != 4)
    return bad (e, "a request has four frames: GPUB/1, verb, id, JSON");
  if (!equals (at[0], PROTO_MAGIC)) {
    if (at[0].len >= 5 && memcmp (at[0].at, PROTO_MAGIC, 5) == 0)
      return err_code (e, ERR_UNSUPPORTED, "version", "this broker speaks GPUB/1");
    return bad (e, "the first frame is not GPUB/1");
  }
  if (!verb_ok (at[1]))
    return bad (e, "a verb is 1 to 32 printable characters");
  memcpy (r->verb, at[1].at, at[1].len);
  if (!*r->id)
    return bad (e, "a request id is 1 to 64 printable bytes");
  r->body = at[3];
  if (check_body (r->body, e) < 0)
    return -1;
  r->single = r->delimiter || says_single (r->body);
  return 0;
}

static int
is_passing (const char *code)
{
  static const char *const passing[] = { "busy", "draining", "provider-down", "timeout" };

  for (size_t i = 0; i < N_ELEMENTS (passing); i++)
    if (strcmp (code, passing[i]) == 0)
      return 1;
  return 0;
}

char *
proto_error (const char *code, const char *message, const char *hint, uint32_t retry_after_ms)
{
  AUTO_JSON json_t *j = json_object ();

  json_put_str (j, "code", code);
  json_put_str (j, "message", message);
  json_put_str (j, "hint", hint);
  json_object_set_new (j, "retryable", json_boolean (retry_after_ms || is_passing (code)));
  json_put_i64 (j, "retry_after_ms", retry_after_ms);
  return json_dumps (j, JSON_COMPACT);
}
