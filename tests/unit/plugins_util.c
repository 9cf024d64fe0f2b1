/* plugins_util.c - money, time, keys and escapes of the plugins */
#include "config.h"

#include "plugins/tags.h"
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

static void
test_refusals (void)
{
  static const struct {
    int status;
    bool change;
    const char *code, *text;
    int32_t want;
  } cases[] = {
    { 400, true, "", "Insufficient balance to create the resource", GPUB_E_QUOTA },
    { 400, true, "", "Insufficient capacity", GPUB_E_CAPACITY },
    { 400, true, "", "name is too long", GPUB_E_INVALID },
    { 400, false, "", "Insufficient capacity", GPUB_E_INVALID },
    { 402, true, "", "", GPUB_E_QUOTA },
    { 403, true, "OUT_OF_STOCK", "no money either", GPUB_E_CAPACITY },
    { 404, true, "", "not available", GPUB_E_NOT_FOUND },
    { 408, true, "", "quota", GPUB_E_UNKNOWN },
    { 408, false, "", "", GPUB_E_UNAVAILABLE },
    { 409, true, "", "Flavor is out of stock", GPUB_E_CAPACITY },
    { 409, true, "", "", GPUB_E_CONFLICT },
    { 429, true, "", "quota", GPUB_E_RATE_LIMITED },
    { 302, true, "", "", GPUB_E_UNAVAILABLE },
    { 503, true, "", "capacity", GPUB_E_UNKNOWN },
    { 503, false, "", "", GPUB_E_UNAVAILABLE },
    { 700, true, "", "", GPUB_E_UNKNOWN },
  };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    int32_t got =
        plug_kind_of_refusal (cases[i].status, cases[i].change, cases[i].code, cases[i].text);

    ok (got == cases[i].want, "HTTP %d to a %s, '%s' '%s': %d", cases[i].status,
        cases[i].change ? "change" : "read", cases[i].code, cases[i].text, got);
  }
}

static void
test_words (void)
{
  static const struct plug_word table[] = { { "up", 1 }, { "down", 2 } };

  is_num (plug_word (table, 2, "down", 9), 2, "a word has its value");
  is_num (plug_word (table, 2, "Down", 9), 9, "what is no word of the table has none");
}

static void
test_tags (void)
{
  json_auto_t *list =
      json_loads ("[null, \"mine\", \"=x\", \"gpubroker-token=a=b\", \"k=\"]", 0, NULL);
  json_auto_t *bare = json_loads ("[\"gpubroker-tokens=a\", \"a=gpubroker-owner=b\"]", 0, NULL);
  json_auto_t *text = json_array (), *made = NULL;
  struct gpub_find by_token = { .token = "a=b", .name = "n" },
                   by_name = { .token = "", .name = "n" };
  struct gpub_kv tags[TAGS_MAX];
  struct gpub_create create = { .tags = tags };

  is_str (tags_get (list, GPUB_TAG_TOKEN), "a=b", "a tag is split once");
  ok (!tags_get (list, "mine") && !tags_get (NULL, "k"), "what has no value is no tag");
  ok (tags_ours (list) && !tags_ours (bare) && !tags_ours (NULL), "a mark is a key of ours");
  is_num ((int64_t) tags_split (list, text, tags), 2, "others' entries are left out");
  ok (strcmp (tags[1].key, "k") == 0 && *tags[1].value == '\0', "a value may be empty");
  create.ntags = 2;
  made = tags_list (&create);
  is_str (json_string_value (json_array_get (made, 0)), "gpubroker-token=a=b", "and back");
  ok (find_wants (&by_token, "a=b", "x"), "the token decides");
  ok (!find_wants (&by_token, "a", "n") && !find_wants (&by_token, NULL, "n"),
      "also when the name fits");
  ok (find_wants (&by_name, "a", "n"), "without one the name does");
  ok (!find_wants (&by_name, NULL, NULL) && !find_wants (&(struct gpub_find){ 0 }, "a", "n"),
      "nothing finds nothing");
}

static void
test_endpoint (void)
{
  static const char *const cases[][2] = {
    { "https://a.example/v1", "https://a.example/v1" },
    { "http://127.0.0.1:80//", "http://127.0.0.1:80" },
    { "ftp://a.example", NULL },
    { "a.example", NULL },
  };
  struct gpub_error err = { .size = sizeof err };

  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    struct gpub_kv value = { "endpoint", cases[i][0] };
    struct gpub_config config = { .values = &value, .count = 1 };
    AUTO_FREE char *got = NULL;
    int32_t rc = plug_endpoint (&config, &got, &err);

    ok (cases[i][1] ? rc == GPUB_OK && strcmp (got, cases[i][1]) == 0 : rc == GPUB_E_INVALID,
        "endpoint %s", cases[i][0]);
  }
}

static void
test_checks (void)
{
  struct gpub_error err = { .size = sizeof err };
  struct gpub_create a = { .user_data_len = 100 };

  is_num (plug_check_price ("A100 in X", 2000000, 2000000, &err), GPUB_OK, "the cap may be paid");
  is_num (plug_check_price ("A100 in X", 2000001, 2000000, &err), GPUB_E_CAPACITY,
          "not a micro-dollar more");
  is_str (err.text, "A100 in X now costs 2.000001 $/h, above the cap of 2.000000", "both are said");
  is_num (plug_check_user_data (&a, 100, &err), GPUB_OK, "user data that fits");
  is_num (plug_check_user_data (&a, 99, &err), GPUB_E_INVALID, "that does not");
}

int
main (void)
{
  test_money ();
  test_time ();
  test_keys ();
  test_text ();
  test_object ();
  test_refusals ();
  test_words ();
  test_tags ();
  test_endpoint ();
  test_checks ();
  return done ();
}
