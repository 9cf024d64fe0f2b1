/* base.c - errors, JSON guards, frames, redaction */
#include "config.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/log.h"
#include "core/wire.h"
#include "tests/unit/tap.h"

static void
test_scan (void)
{
  struct err e = ERR_INIT;
  char flood[4096 * 3 + 1];

  ok (json_scan ("{\"a\":[1,2]}", 11, 16, 100, &e) == 0, "a small object passes");
  ok (json_scan ("[[[[", 4, 3, 100, &e) < 0, "depth is bounded");
  ok (json_scan ("{}}", 3, 16, 100, &e) < 0, "a stray bracket is refused");
  ok (json_scan ("{\"a", 3, 16, 100, &e) < 0, "an open string is refused");
  for (size_t i = 0; i < sizeof flood - 1; i += 3)
    memcpy (flood + i, "{},", 3);
  ok (json_scan (flood, sizeof flood - 1, 16, JSON_MAX_TOKENS, &e) < 0, "a flood of {}, is refused");
  ok (json_parse ("{\"a\":1,\"a\":2}", 13, &e) == NULL, "duplicate keys are refused");
  ok (json_parse ("[1]", 3, &e) == NULL, "only objects");
}

static void
test_clean (void)
{
  static const char *const texts[][2] = {
    { "plain", "plain" },
    { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
    { "cut \xc3", "cut ?" },
    { "cut \xf0\x9f' on", "cut ?" "?' on" },
    { "long \xc0\xaf", "long ??" },
    { "half \xed\xa0\x80", "half ?" "??" },
    { "\xff", "?" },
  };

  for (size_t i = 0; i < N_ELEMENTS (texts); i++) {
    char text[32];
    AUTO_JSON json_t *j = NULL;

    strcpy (text, texts[i][0]);
    json_clean (text);
    is_str (text, texts[i][1], "no letter is lost, no byte but a bad one");
    j = json_string (text);
    ok (j != NULL, "and Jansson takes it");
  }
}

static void
test_check (void)
{
  static const struct json_member members[] = { { "cluster", JSON_STRING, true }, { "n", JSON_INTEGER, false } };
  struct err e = ERR_INIT;
  AUTO_JSON json_t *bad = json_pack ("{s:s}", "clutser", "x"), *none = json_object ();
  AUTO_JSON json_t *type = json_pack ("{s:i}", "cluster", 1), *good = json_pack ("{s:s}", "cluster", "x");

  json_check (bad, members, 2, &e);
  is_str (e.text, "unknown member 'clutser', did you mean 'cluster'?", "the nearest name is told");
  json_check (none, members, 2, &e);
  is_str (e.text, "'cluster' is missing", "a missing member is named");
  json_check (type, members, 2, &e);
  is_str (e.text, "'cluster' must be a string", "a wrong type is named");
  ok (json_check (good, members, 2, &e) == 0, "a good object passes");
}

static void
test_wire (void)
{
  struct wire_buf b = { 0 };
  struct wire_frame f;
  struct err e = ERR_INIT;
  const char *name, *bytes;
  size_t len;
  char *big = calloc (1, WIRE_MAX_BODY + 1);

  wire_put (&b, WIRE_CALL, 7, 0, "{}", 2, &e);
  wire_put (&b, WIRE_ITEM, 8, WIRE_WANT_ACK, "{\"x\":1}", 7, &e);
  wire_put_secret (&b, 9, "token", "s3c\0ret", 7, &e);
  ok (wire_next (&b, &f, &e) == 1 && f.call == 7 && f.kind == WIRE_CALL, "first frame");
  is_str (f.body, "{}", "its body is NUL-ended although another frame follows");
  ok (wire_next (&b, &f, &e) == 1 && f.flags == WIRE_WANT_ACK, "second frame");
  is_str (f.body, "{\"x\":1}", "second body");
  ok (wire_next (&b, &f, &e) == 1 && wire_secret (&f, &name, &bytes, &len) == 0, "secret frame");
  ok (len == 7 && memcmp (bytes, "s3c\0ret", 7) == 0, "raw bytes pass");
  is_str (name, "token", "with their name");
  ok (wire_next (&b, &f, &e) == 0, "then nothing");
  ok (wire_put (&b, WIRE_CALL, 1, 0, big, WIRE_MAX_BODY + 1, &e) < 0, "a longer body is refused");
  wire_feed (&b, "\xff\xff\xff\xff\0\0\0\0\1\0\0\0", WIRE_HEADER);
  ok (wire_next (&b, &f, &e) < 0, "a length over the cap breaks the connection before it is allocated");
  wire_buf_free (&b);
  free (big);
}

static void
test_redact (void)
{
  char token[] = "token=abc123.0123456789abcdef done";
  char gz[] = "t=H4sIAAAAAAAAA0123456789 done";
  char own[] = "key sk-live-12345 done";

  redact (token);
  is_str (token, "token=abc123.**************** done", "bootstrap tokens");
  redact (gz);
  is_str (gz, "t=*********************** done", "gzip in base64");
  redact_register ("sk-live-12345", 13);
  redact (own);
  is_str (own, "key ************* done", "registered secrets");
}

static void
test_err (void)
{
  struct err e = ERR_INIT;

  ok (err_set (&e, ERR_AUTH, "key %d", 3) == -1, "err_set returns -1");
  err_add (&e, "provider %s", "x");
  is_str (e.text, "provider x: key 3", "context goes in front");
  ok (err_kind_parse (err_kind_name (ERR_UNKNOWN)) == ERR_UNKNOWN, "kinds survive their names");
  ok (err_kind_parse ("nonsense") == ERR_INTERNAL, "an unknown kind is a fault");
}

int
main (void)
{
  test_err ();
  test_scan ();
  test_check ();
  test_clean ();
  test_wire ();
  test_redact ();
  return done ();
}
