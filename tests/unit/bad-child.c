/* bad-child.c - a child of the supervisor that does what its calls tell it, mostly wrong
 *
 * CONFIG {"start":…, "parallel":N}; a call's name is what to do.  It takes its calls one after the
 * other but answers out of order, as a child with threads would.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/child.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/vec.h"

struct later {
  uint32_t id;
  int64_t at; /* 0: when released */
};

static struct wire_buf in, out;
static VEC (struct later) waiting;
static char secret[64];
static uint32_t acked;

static void
flush (void)
{
  struct err e;
  int rc;

  while (out.start != out.end && (rc = wire_write (WIRE_FD, &out, &e)) >= 0)
    if (rc == 0)
      poll (&(struct pollfd){ WIRE_FD, POLLOUT, 0 }, 1, 1000);
}

static void
say (enum wire_kind kind, uint32_t id, uint16_t flags, const char *body)
{
  wire_put (&out, kind, id, flags, body, strlen (body), NULL);
  flush ();
}

static void
result (uint32_t id)
{
  char body[200];

  snprintf (body, sizeof body, "{\"kind\":\"ok\",\"value\":{\"pid\":%d,\"secret\":\"%s\"}}",
            (int) getpid (), secret);
  say (WIRE_RESULT, id, 0, body);
}

static void
later (uint32_t id, int64_t at)
{
  *vec_push (&waiting) = (struct later){ id, at };
}

static void
do_crash (uint32_t id, const json_t *args)
{
  (void) id, (void) args;
  signal (SIGSEGV, SIG_DFL); /* a sanitizer would make an exit of it */
  kill (getpid (), SIGSEGV);
  pause ();
}

static void
do_hold (uint32_t id, const json_t *args)
{
  (void) args;
  later (id, 0);
}

static void
do_later (uint32_t id, const json_t *args)
{
  later (id, clock_boot_ms () + json_i64 (args, "ms", 50));
}

static void
do_release (uint32_t id, const json_t *args)
{
  (void) args;
  for (size_t i = waiting.n; i-- > 0;)
    if (waiting.at[i].at == 0) {
      result (waiting.at[i].id);
      vec_drop (&waiting, i);
    }
  result (id);
}

static void
do_echo (uint32_t id, const json_t *args)
{
  (void) args;
  result (id);
}

static void
do_garbage (uint32_t id, const json_t *args)
{
  (void) id, (void) args;
  wire_feed (&out, "\xff\xff\xff\xff garbage that is no frame", 30);
  flush ();
  pause ();
}

static void
do_stranger (uint32_t id, const json_t *args)
{
  (void) args;
  result (id + 100);
  pause ();
}

static void
do_deep (uint32_t id, const json_t *args)
{
  (void) args;
  say (WIRE_RESULT, id, 0, "{\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}");
  pause ();
}

static void
do_again (uint32_t id, const json_t *args)
{
  (void) args;
  say (WIRE_ITEM, id, WIRE_WANT_ACK, "{\"machines\":[]}");
  say (WIRE_ITEM, id, WIRE_WANT_ACK, "{\"machines\":[]}");
  pause ();
}

/* One byte of its answer at a time. */
static void
do_partial (uint32_t id, const json_t *args)
{
  const char *body =
      "{\"kind\":\"capacity\",\"text\":\"none\\nleft\",\"code\":\"OUT\",\"http_status\":409,"
      "\"retry_after_ms\":1500,\"request_id\":\"r-1\"}";
  struct wire_buf whole = { 0 }, copy = { 0 };

  (void) args;
  wire_put (&whole, WIRE_RESULT, id, 0, body, strlen (body), NULL);
  for (size_t i = whole.start; i < whole.end; i++) {
    wire_feed (&out, whole.at + i, 1);
    flush ();
  }
  wire_buf_free (&whole);
  wire_buf_free (&copy);
}

/* Sixty-four offers with forty members each: over 10,000 tokens. */
static void
do_batch (uint32_t id, const json_t *args)
{
  AUTO_JSON json_t *offers = json_array ();
  AUTO_JSON json_t *item = json_pack ("{s:O}", "offers", offers);

  (void) args;
  for (int i = 0; i < 64; i++) {
    json_t *offer = json_object ();
    char name[16];

    for (int m = 0; m < 40; m++) {
      snprintf (name, sizeof name, "member%d", m);
      json_object_set_new (offer, name, json_string ("some value"));
    }
    json_array_append_new (offers, offer);
  }
  wire_put_json (&out, WIRE_ITEM, id, 0, item, NULL);
  flush ();
  result (id);
}

static void
do_book (uint32_t id, const json_t *args)
{
  (void) args;
  say (WIRE_ITEM, id, WIRE_WANT_ACK, "{\"machines\":[{\"id\":\"m-1\"}]}");
  acked = id;
}

static void
do_token (uint32_t id, const json_t *args)
{
  (void) args;
  wire_put_secret (&out, id, "token", "raw\0bytes", 9, NULL);
  result (id);
}

static void
do_flood (uint32_t id, const json_t *args)
{
  (void) args;
  for (int i = 0; i < 3000; i++)
    say (WIRE_LOG, 0, 0, "{\"level\":4,\"event\":\"FLOOD x=1\",\"text\":\"line\\nline\"}");
  result (id);
}

static void
do_stall (uint32_t id, const json_t *args)
{
  (void) id, (void) args;
  pause ();
}

static void
do_sick (uint32_t id, const json_t *args)
{
  (void) args;
  say (WIRE_RESULT, id, 0, "{\"kind\":\"internal\",\"text\":\"oops\"}");
}

static const struct {
  const char *name;
  void (*fn) (uint32_t id, const json_t *args);
} acts[] = {
  { "crash", do_crash },       { "hold", do_hold },   { "later", do_later },
  { "release", do_release },   { "echo", do_echo },   { "garbage", do_garbage },
  { "stranger", do_stranger }, { "deep", do_deep },   { "again", do_again },
  { "partial", do_partial },   { "batch", do_batch }, { "book", do_book },
  { "token", do_token },       { "flood", do_flood }, { "stall", do_stall },
  { "sick", do_sick },
};

static void
configure (const json_t *config)
{
  const char *start = json_str (config, "start", "");
  char body[64];

  if (strcmp (start, "crash") == 0)
    _exit (3);
  if (strcmp (start, "mute") == 0)
    pause ();
  if (strcmp (start, "invalid") == 0) {
    say (WIRE_READY, 0, 0, "{\"kind\":\"invalid\",\"text\":\"no key\",\"code\":\"key\"}");
    _exit (1);
  }
  snprintf (body, sizeof body, "{\"kind\":\"ok\",\"max_parallel\":%d}",
            (int) json_i64 (config, "parallel", 8));
  say (WIRE_READY, 0, 0, body);
}

static void
cancel (uint32_t id)
{
  for (size_t i = waiting.n; i-- > 0;)
    if (waiting.at[i].id == id) {
      say (WIRE_RESULT, id, 0, "{\"kind\":\"cancelled\",\"text\":\"as asked\"}");
      vec_drop (&waiting, i);
    }
}

static void
take (const struct wire_frame *f)
{
  AUTO_JSON json_t *body = f->kind == WIRE_SECRET ? NULL : json_parse (f->body, f->len, NULL);
  const char *name = json_str (body, "call", ""), *bytes;
  size_t len;

  if (f->kind == WIRE_SECRET && wire_secret (f, &name, &bytes, &len) == 0)
    snprintf (secret, sizeof secret, "%s=%.*s", name, (int) len, bytes);
  else if (f->kind == WIRE_CONFIG)
    configure (body);
  else if (f->kind == WIRE_PING)
    say (WIRE_PING, 0, 0, "{}");
  else if (f->kind == WIRE_CANCEL)
    cancel (f->call);
  else if (f->kind == WIRE_ACK && f->call == acked)
    result (f->call);
  else if (f->kind == WIRE_CALL)
    for (size_t i = 0; i < N_ELEMENTS (acts); i++)
      if (strcmp (acts[i].name, name) == 0)
        acts[i].fn (f->call, json_object_get (body, "args"));
}

static void
answer_due (void)
{
  for (size_t i = waiting.n; i-- > 0;)
    if (waiting.at[i].at && waiting.at[i].at <= clock_boot_ms ()) {
      result (waiting.at[i].id);
      vec_drop (&waiting, i);
    }
}

int
main (int argc, char **argv)
{
  AUTO_JSON json_t *hello = child_hello (argc > 1 ? argv[1] : "test");
  struct wire_frame f;
  struct err e = ERR_INIT;

  if (child_confine (&e) < 0) {
    fprintf (stderr, "%s\n", e.text);
    return 2;
  }
  wire_put_json (&out, WIRE_HELLO, 0, 0, hello, NULL);
  flush ();
  for (;;) {
    poll (&(struct pollfd){ WIRE_FD, POLLIN, 0 }, 1, waiting.n ? 5 : -1);
    answer_due ();
    if (wire_read (WIRE_FD, &in, &e) < 0)
      break;
    while (wire_next (&in, &f, &e) == 1)
      take (&f);
  }
  /* What was sent is finished before the end. */
  for (size_t i = 0; i < waiting.n; i++)
    if (waiting.at[i].at)
      result (waiting.at[i].id);
  _exit (0);
}
