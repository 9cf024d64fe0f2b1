/* plugins_util.c - money, time, keys and escapes of the plugins */
#include "config.h"

#include "plugins/util.h"
#include "tests/unit/tap.h"

static void
test_money (void)
{
  static const struct {
    const char *text;
    int64_t want; /* -1: refused */
  } cases[] = {
    { "2", 2000000 },
    { "0.985", 985000 },
    { "1.50", 1500000 },
    { "0", 0 },
    { "23.20", 23200000 },
    { "0.0000001", 1 },
    { "1.0000000", 1000000 },
    { "999999.999999", 999999999999 },
    { "", -1 },
    { "-1", -1 },
    { "+1", -1 },
    { "1e3", -1 },
    { ".5", -1 },
    { "1.", -1 },
    { "1.5 ", -1 },
    { "$1.5", -1 },
    { "1,5", -1 },
    { "nan", -1 },
    { "1000001", -1 },
    { "99999999999999999999", -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    uint64_t got = 0;
    bool good = udollar_parse (cases[i].text, &got);

    ok (cases[i].want < 0 ? !good : good && got == (uint64_t) cases[i].want, "money '%s'",
        cases[i].text);
  }
}

static void
test_time (void)
{
  static const struct {
    const char *text;
    int64_t want;
  } cases[] = {
    { "1970-01-01T00:00:01Z", 1000 },
    { "2026-01-28T20:53:39.459529Z", 1769633619459 },
    { "2026-01-28T20:53:39.4Z", 1769633619400 },
    { "2026-01-28T21:53:39+01:00", 1769633619000 },
    { "2026-01-28T13:53:39-07:00", 1769633619000 },
    { "2026-01-28", -1 },
    { "2026-01-28T20:53:39", -1 },
    { "2026-01-28T20:53:39Zx", -1 },
    { "2026-01-28T20:53:39+1", -1 },
    { "soon", -1 },
  };
  char text[RFC3339_SIZE];

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    int64_t got = 0;
    bool good = rfc3339_parse (cases[i].text, &got);

    ok (cases[i].want < 0 ? !good : good && got == cases[i].want, "time '%s'", cases[i].text);
  }
  rfc3339_print (1769633619001, text);
  is_str (text, "2026-01-28T20:53:40Z", "a kill switch is rounded up, never down");
}

static void
test_keys (void)
{
  size_t n = 0;

  ok (ssh_key_same ("ssh-ed25519 AAAA me@here", "ssh-ed25519 AAAA"),
      "the comment is no part of a key");
  ok (ssh_key_same ("ssh-ed25519 AAAA\n", " ssh-ed25519 AAAA other one"),
      "nor is white space around it");
  ok (!ssh_key_same ("ssh-ed25519 AAAA", "ssh-ed25519 AAAB"), "another blob is another key");
  ok (!ssh_key_same ("ssh-rsa AAAA", "ssh-ed25519 AAAA"), "another type is another key");
  ok (!ssh_key_same ("ssh-ed25519", "ssh-ed25519"), "a type alone is no key");
  ok (!ssh_key_same ("", ""), "nothing is no key");
  ok (!ssh_key_identity ("ssh-ed25519 ", &n), "a blob must follow");
}

static void
test_text (void)
{
  static const char *const base64[][2] = {
    { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "\xff\xfe#!", "//4jIQ==" }
  };
  char url[16] = "?a=", masked[] = "key sk-1 and sk-1";
  struct gpub_error err = { .size = sizeof err };

  for (size_t i = 0; i < N_ELEMENTS (base64); i++) {
    AUTO_FREE char *got = base64_encode (base64[i][0], strlen (base64[i][0]));

    is_str (got, base64[i][1], "base64");
  }
  ok (url_append (url, sizeof url, "a b/&"), "escapes fit");
  is_str (url, "?a=a%20b%2F%26", "everything unusual is escaped");
  ok (!url_append (url, sizeof url, "xyz"), "what does not fit is refused");
  plug_mask (masked, "sk-1", 4);
  is_str (masked, "key **** and ****", "a secret is masked wherever it stands");
  is_num (plug_error (&err, GPUB_E_QUOTA, "a\nb\x01%s", "c. "), GPUB_E_QUOTA,
          "an error is its kind");
  is_str (err.text, "a b c", "its text is one line without a stop");
}

static void
test_object (void)
{
  struct gpub_http_response r = { .size = sizeof r };
  json_auto_t *j = NULL;

  ok (!plug_object (&r), "no body is no object");
  r.body = "[1]", r.body_len = 3;
  ok (!plug_object (&r), "a list is no object");
  r.body = "{\"a\":1", r.body_len = 6;
  ok (!plug_object (&r), "a cut object is none");
  r.body = "{\"a\":1}", r.body_len = 7;
  j = plug_object (&r);
  ok (j != NULL, "an object is one");
}

int
main (void)
{
  test_money ();
  test_time ();
  test_keys ();
  test_text ();
  test_object ();
  return done ();
}
