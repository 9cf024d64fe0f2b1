/* ssh_text.c - what is sent to a node is quoted, what it prints is cleaned */
#include "config.h"

#include <stdlib.h>

#include "join/ssh_output.h"
#include "join/ssh_script.h"
#include "tests/unit/tap.h"

static char seen[4096];

static void
note (void *arg, const char *key, char *value)
{
  size_t n = strlen (seen);

  (void) arg;
  snprintf (seen + n, sizeof seen - n, "[%s|%.40s]", key, value);
}

static void
test_clean (void)
{
  static const struct {
    const char *in, *out;
  } rows[] = {
    { "plain", "plain" },
    { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f" },
    { "\x1b[31m\x07\x7f", "?[31m??" },
    { "\xff\xfe", "??" },
    { "\xc0\xaf", "??" },           /* overlong */
    { "\xe0\x80\xaf", "???" },      /* overlong */
    { "\xed\xa0\x80", "???" },      /* surrogate */
    { "\xf4\x90\x80\x80", "????" }, /* past U+10FFFF */
    { "cut \xe2\x82", "cut ??" },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    char text[64];

    snprintf (text, sizeof text, "%s", rows[i].in);
    clean_text (text);
    is_str (text, rows[i].out, "clean text");
  }
}

static void
test_lines (void)
{
  struct output o = { .on = note };
  static const char text[] = "a=1\r\nb=x=y\n\nBad=2\nno equals\n=3\nc\0d=4\ntail=";

  for (size_t i = 0; i + 1 < sizeof text; i++)
    output_feed (&o, text + i, 1);
  is_str (seen, "[a|1][b|x=y]", "lines byte by byte: only key=value, only whole ones");
  is_num (o.odd, 4, "odd lines are counted");
  seen[0] = '\0';
  for (int i = 0; i < 5000; i++)
    output_feed (&o, "x", 1);
  output_feed (&o, "\nz=1\n", 5);
  ok (strlen (seen) > 10 && strstr (seen, "[z|1]"),
      "a long line loses its rest, the next one is read");
}

static void
test_facts (void)
{
  AUTO_JSON json_t *facts = facts_new ();
  const json_t *gpu;

  ok (facts_add (facts, "os", "debian"), "a known key");
  ok (!facts_add (facts, "os", "other"), "only once");
  ok (!facts_add (facts, "shoe_size", "44"), "no unknown key");
  ok (facts_add (facts, "gpu", "1, GPU-x, NVIDIA H100 80GB HBM3, 81559, 570.1"), "a GPU");
  gpu = json_array_get (json_object_get (facts, "gpus"), 0);
  is_str (json_string_value (json_object_get (gpu, "name")), "NVIDIA H100 80GB HBM3", "its name");
  is_num (json_integer_value (json_object_get (gpu, "memory_mib")), 81559, "its memory");
}

/* A shell must read back exactly what was put in. */
static void
test_quoting (void)
{
  static const char evil[] = "it's $(touch /nowhere) `x` \"y\" \\ \n!*";
  AUTO_JSON json_t *params = json_pack ("{s:s}", "EVIL", evil);
  struct script_run r = { .script = "check", .params = params, .hash = "h", .token = "to'ken" };
  AUTO_FREE char *text = script_launch (&r, "0123", 1);

  ok (strstr (text, "EVIL='it'\\''s $(touch /nowhere) `x` \"y\" \\ \n!*'\n") != NULL,
      "parameters are quoted");
  ok (strstr (text, "printf '%s\\n' 'to'\\''ken'\n") != NULL, "the token is quoted");
  ok (strncmp (text + strlen (text) - 23, "gpub_launch </dev/null\n", 23) == 0,
      "the last line calls");
}

static void
test_hash (void)
{
  AUTO_JSON json_t *a = json_pack ("{s:s, s:s}", "A", "1", "B", "2");
  AUTO_JSON json_t *b = json_pack ("{s:s, s:s}", "B", "2", "A", "1");
  char x[65], y[65];

  script_hash ("check", a, x);
  script_hash ("check", b, y);
  is_str (x, y, "the order of parameters does not matter");
  script_hash ("leave", b, y);
  ok (strcmp (x, y) != 0, "the script does");
}

int
main (void)
{
  test_clean ();
  test_lines ();
  test_facts ();
  test_quoting ();
  test_hash ();
  return done ();
}
