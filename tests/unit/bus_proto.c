/* bus_proto.c - requests decoded from good and from hostile frames */
#include "config.h"

#include <stdlib.h>

#include "bus/proto.h"
#include "tests/unit/tap.h"

#define F(text)                                                                                    \
 {                                                                                                 \
  text, sizeof (text) - 1                                                                          \
 }

static const struct {
  const char *name;
  struct bytes at[6];
  size_t n, total;
  const char *code; /* "" good */
  const char *id;
  int delimiter, single;
} cases[] = {
  { "a DEALER's request", { F ("GPUB/1"), F ("ping"), F ("1"), F ("{}") }, 4, 4, "", "1", 0, 0 },
  { "a REQ's request",
    { F (""), F ("GPUB/1"), F ("ping"), F ("1"), F ("{}") },
    5,
    5,
    "",
    "1",
    1,
    1 },
  { "single", { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\"single\":true}") }, 4, 4, "", "1", 0, 1 },
  { "single false",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\"single\":false}") },
    4,
    4,
    "",
    "1",
    0,
    0 },
  { "single deeper down",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\"a\":{\"single\":true}}") },
    4,
    4,
    "",
    "1",
    0,
    0 },
  { "blanks before the object",
    { F ("GPUB/1"), F ("ping"), F ("1"), F (" \n\t{}") },
    4,
    4,
    "",
    "1",
    0,
    0 },
  { "no frame at all", { F ("") }, 0, 0, "bad-frame", "", 0, 0 },
  { "only a delimiter", { F ("") }, 1, 1, "bad-frame", "", 1, 0 },
  { "three frames", { F ("GPUB/1"), F ("ping"), F ("1") }, 3, 3, "bad-frame", "1", 0, 0 },
  { "five frames",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{}"), F ("") },
    5,
    5,
    "bad-frame",
    "1",
    0,
    0 },
  { "a thousand frames",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{}"), F ("x") },
    5,
    1000,
    "bad-frame",
    "1",
    0,
    0 },
  { "another version",
    { F ("GPUB/2"), F ("ping"), F ("1"), F ("{}") },
    4,
    4,
    "version",
    "1",
    0,
    0 },
  { "another protocol",
    { F ("MDP"), F ("ping"), F ("1"), F ("{}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
  { "an empty verb", { F ("GPUB/1"), F (""), F ("1"), F ("{}") }, 4, 4, "bad-frame", "1", 0, 0 },
  { "a verb of 33 bytes",
    { F ("GPUB/1"), F ("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"), F ("1"), F ("{}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
  { "a verb with a newline",
    { F ("GPUB/1"), F ("ping\n"), F ("1"), F ("{}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
  { "an empty id", { F ("GPUB/1"), F ("ping"), F (""), F ("{}") }, 4, 4, "bad-frame", "", 0, 0 },
  { "an id with a NUL",
    { F ("GPUB/1"), F ("ping"), F ("a\0b"), F ("{}") },
    4,
    4,
    "bad-frame",
    "",
    0,
    0 },
  { "an id with bit 8",
    { F ("GPUB/1"), F ("ping"), F ("\xff"), F ("{}") },
    4,
    4,
    "bad-frame",
    "",
    0,
    0 },
  { "an empty body", { F ("GPUB/1"), F ("ping"), F ("1"), F ("") }, 4, 4, "bad-frame", "1", 0, 0 },
  { "an array", { F ("GPUB/1"), F ("ping"), F ("1"), F ("[]") }, 4, 4, "bad-frame", "1", 0, 0 },
  { "a NUL in the body",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\0}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
  { "an open bracket",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\"a\":[}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
  { "nesting of 17",
    { F ("GPUB/1"), F ("ping"), F ("1"), F ("{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}") },
    4,
    4,
    "bad-frame",
    "1",
    0,
    0 },
};

static void
test_cases (void)
{
  for (size_t i = 0; i < N_ELEMENTS (cases); i++) {
    struct err e = ERR_INIT;
    struct proto_request r;
    int rc = proto_decode (cases[i].at, cases[i].n, cases[i].total, &r, &e);

    ok (rc == (*cases[i].code ? -1 : 0) && strcmp (e.code, cases[i].code) == 0 &&
            strcmp (r.id, cases[i].id) == 0 && r.delimiter == cases[i].delimiter &&
            r.single == cases[i].single,
        "%s: rc %d code '%s' id '%s'", cases[i].name, rc, e.code, r.id);
  }
}

static void
test_lengths (void)
{
  static char body[PROTO_BODY_MAX + 2], id[PROTO_ID_MAX + 2];
  struct bytes at[] = { F ("GPUB/1"), F ("ping"), { id, PROTO_ID_MAX }, { body, PROTO_BODY_MAX } };
  struct proto_request r;
  struct err e = ERR_INIT;

  memset (body, ' ', sizeof body);
  memset (id, 'i', sizeof id);
  body[0] = '{';
  body[PROTO_BODY_MAX - 1] = '}';
  is_num (proto_decode (at, 4, 4, &r, &e), 0, "an id of 64 and a body of 65536 bytes pass");
  at[2].len++;
  is_num (proto_decode (at, 4, 4, &r, &e), -1, "an id of 65 does not");
  at[2].len--, at[3].len++;
  is_num (proto_decode (at, 4, 4, &r, &e), -1, "a body of 65537 does not");
}

static unsigned
next_random (unsigned *state)
{
  return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

/* Whatever comes, what is handed on obeys the limits. */
static void
test_noise (void)
{
  static const char alphabet[] = "GPUB/1{}[]\",:\\ping\0\xff \n0";
  unsigned state = 1, broken = 0, accepted = 0;
  char text[6][24];
  struct bytes at[6];

  for (int round = 0; round < 50000; round++) {
    size_t n = next_random (&state) % 7;
    struct proto_request r;
    struct err e = ERR_INIT;

    for (size_t i = 0; i < n; i++) {
      at[i] = (struct bytes){ text[i], next_random (&state) % sizeof text[i] };
      for (size_t k = 0; k < at[i].len; k++)
        text[i][k] = alphabet[next_random (&state) % (sizeof alphabet - 1)];
    }
    if (n && next_random (&state) % 2) {
      memcpy (text[0], "GPUB/1", 6);
      at[0].len = 6;
    }
    if (proto_decode (at, n, n, &r, &e) == 0)
      accepted++, broken += !*r.id || !*r.verb || r.body.len < 2;
    else
      broken += !*e.code || !*e.text;
  }
  is_num (broken, 0, "50000 random messages are decoded or refused with a reason");
  ok (accepted > 0, "some of them were fine: %u", accepted);
}

int
main (void)
{
  AUTO_FREE char *json = proto_error ("busy", "too \"many\"", NULL, 7);

  test_cases ();
  test_lengths ();
  test_noise ();
  is_str (json,
          "{\"code\":\"busy\",\"message\":\"too "
          "\\\"many\\\"\",\"retryable\":true,\"retry_after_ms\":7}",
          "an error reply");
  return done ();
}
