/* ssh.c - the ssh role: frames in, sessions out, one thread that waits in one place
 *
 * Runs go on without us on their machines, so the end of fd 3 is simply our end.
 */
#include "config.h"

#include <string.h>

#include <libssh2.h>

#include "core/child.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/vec.h"
#include "join/runner.h"
#include "join/ssh_call.h"
#include "join/ssh_dial.h"

enum { SESSIONS_MAX = 64, IDLE_MS = 3600000, SECRETS_MAX = 1024, LOGS_PER_S = 100 };

struct secret {
  uint32_t call;
  bool is_key; /* else the join token */
  char *bytes;
  size_t len;
};

static struct {
  struct wire_buf in, out;
  CURLM *multi;
  char *key;
  size_t key_len;
  bool configured, closing;
  int stdio;
  VEC (struct call *) calls;
  VEC (struct secret) secrets; /* that came before their CALL */
  int64_t log_second;
  unsigned logged;
} r;

static void
send_json (enum wire_kind kind, uint32_t call, json_t *body)
{
  wire_put_json (&r.out, kind, call, 0, body, NULL);
  json_decref (body);
}

static void
send_error (enum wire_kind kind, uint32_t call, const struct err *e)
{
  send_json (kind, call,
             json_pack ("{s:s, s:s}", "kind", err_kind_name (e->kind), "text", e->text));
}

static void
forget (struct secret *s)
{
  if (s->bytes)
    explicit_bzero (s->bytes, s->len);
  free (s->bytes);
  memset (s, 0, sizeof *s);
}

static void
on_secret (const struct wire_frame *f)
{
  const char *name, *bytes;
  struct secret s = { .call = f->call };
  size_t len;

  if (wire_secret (f, &name, &bytes, &len) < 0 || r.secrets.n >= SECRETS_MAX)
    return;
  s.is_key = strcmp (name, "ssh_key") == 0;
  s.bytes = malloc (len + 1);
  if (!s.bytes)
    abort ();
  memcpy (s.bytes, bytes, len);
  s.bytes[len] = '\0';
  s.len = len;
  if (f->call == 0 && s.is_key) {
    r.key = s.bytes;
    r.key_len = len;
  } else if (f->call != 0 && (s.is_key || strcmp (name, "token") == 0))
    *vec_push (&r.secrets) = s;
  else
    forget (&s);
}

static void
on_config (void)
{
  static const char begin[] = "-----BEGIN OPENSSH PRIVATE KEY-----";
  struct err e;

  if (r.key && strncmp (r.key, begin, strlen (begin)) == 0) {
    r.configured = true;
    send_json (WIRE_READY, 0, json_pack ("{s:s}", "kind", "ok"));
    return;
  }
  err_set (&e, ERR_INVALID,
           r.key ? "the secret ssh_key is no OpenSSH private key"
                 : "the secret ssh_key is missing");
  send_error (WIRE_READY, 0, &e);
  r.closing = true;
}

static struct secret
take_secret (uint32_t call, bool is_key)
{
  struct secret none = { 0 };

  for (size_t i = 0; i < r.secrets.n; i++)
    if (r.secrets.at[i].call == call && r.secrets.at[i].is_key == is_key) {
      struct secret s = r.secrets.at[i];

      vec_drop (&r.secrets, i);
      return s;
    }
  return none;
}

static void
on_call (const struct wire_frame *f)
{
  struct err e = ERR_INIT;
  AUTO_JSON json_t *body = json_parse (f->body, f->len, &e);
  struct secret token = take_secret (f->call, false), key = take_secret (f->call, true);
  struct call *c = NULL;

  if (body && !r.configured)
    err_set (&e, ERR_INVALID, "a CALL came before CONFIG");
  else if (body)
    c = call_new (f->call, body,
                  &(struct call_secrets){ token.bytes, token.len, key.bytes, key.len }, &e);
  if (c)
    *vec_push (&r.calls) = c;
  else
    send_error (WIRE_RESULT, f->call, &e);
  forget (&token);
  forget (&key);
}

static void
on_frame (const struct wire_frame *f)
{
  switch (f->kind) {
  case WIRE_SECRET:
    on_secret (f);
    break;
  case WIRE_CONFIG:
    on_config ();
    break;
  case WIRE_CALL:
    on_call (f);
    break;
  case WIRE_CANCEL:
    for (size_t i = 0; i < r.calls.n; i++)
      if (call_id (r.calls.at[i]) == f->call)
        call_cancel (r.calls.at[i]);
    break;
  case WIRE_PING:
    send_json (WIRE_PING, 0, json_object ());
    break;
  default:
    break;
  }
}

/* 0, or -1 when the daemon has gone or sends nonsense. */
static int
read_frames (void)
{
  struct wire_frame f;
  int rc, more = wire_read (WIRE_FD, &r.in, NULL);

  while ((rc = wire_next (&r.in, &f, NULL)) > 0)
    on_frame (&f);
  return more < 0 || rc < 0 ? -1 : 0;
}

/* What a library printed, as LOG frames; past the rate it is dropped. */
static void
forward_stdio (void)
{
  char text[1024];
  ssize_t n;

  while ((n = read (r.stdio, text, sizeof text - 1)) > 0) {
    int64_t second = clock_boot_ms () / 1000;

    r.logged = second == r.log_second ? r.logged + 1 : 0;
    r.log_second = second;
    if (r.logged >= LOGS_PER_S)
      continue;
    text[n] = '\0';
    for (char *p = text; *p; p++)
      if ((unsigned char) *p < ' ' || (unsigned char) *p > '~')
        *p = ' ';
    redact (text);
    send_json (
        WIRE_LOG, 0,
        json_pack ("{s:i, s:s, s:s}", "level", LOG_WARNING, "event", "ssh.stdio", "text", text));
  }
}

static unsigned
sessions (void)
{
  unsigned n = 0;

  for (size_t i = 0; i < r.calls.n; i++)
    n += call_has_session (r.calls.at[i]);
  return n;
}

/* In order of arrival, so that a full house serves the oldest first. */
static void
step_calls (void)
{
  struct call_world w = { .multi = r.multi, .key = r.key, .key_len = r.key_len, .out = &r.out };
  size_t i = 0;

  while (i < r.calls.n) {
    struct call *c = r.calls.at[i];

    w.may_connect = sessions () < SESSIONS_MAX;
    if (!call_step (c, &w)) {
      i++;
      continue;
    }
    call_free (c);
    r.calls.n--;
    memmove (&r.calls.at[i], &r.calls.at[i + 1], (r.calls.n - i) * sizeof c);
  }
}

static int
time_left (void)
{
  int64_t now = clock_boot_ms (), due = now + IDLE_MS;
  bool full = sessions () >= SESSIONS_MAX;

  for (size_t i = 0; i < r.calls.n; i++)
    if ((call_has_session (r.calls.at[i]) || !full) && call_due (r.calls.at[i]) < due)
      due = call_due (r.calls.at[i]);
  return due <= now ? 0 : (int) (due - now) + 1;
}

static void
wait_for_something (void)
{
  struct curl_waitfd fds[SESSIONS_MAX + 2] = { { .fd = WIRE_FD, .events = CURL_WAIT_POLLIN },
                                               { .fd = r.stdio, .events = CURL_WAIT_POLLIN } };
  unsigned n = 2;
  int running;

  if (r.out.start != r.out.end)
    fds[0].events |= CURL_WAIT_POLLOUT;
  for (size_t i = 0; i < r.calls.n && n < N_ELEMENTS (fds); i++)
    n += call_wants (r.calls.at[i], &fds[n]);
  curl_multi_poll (r.multi, fds, n, time_left (), NULL);
  curl_multi_perform (r.multi, &running);
}

static int
loop (void)
{
  for (;;) {
    step_calls ();
    while (r.out.start != r.out.end) {
      int rc = wire_write (WIRE_FD, &r.out, NULL);

      if (rc < 0)
        return 0;
      if (rc == 0)
        break;
    }
    if (r.closing && r.out.start == r.out.end)
      return 1;
    wait_for_something ();
    dial_collect (r.multi);
    forward_stdio ();
    if (read_frames () < 0)
      return 0;
  }
}

int
ssh_main (void)
{
  struct err e;

  if (child_confine (&e) < 0 || (r.stdio = child_capture_stdio (&e)) < 0) {
    log_at (LOG_ERR, "ssh.start", "%s", e.text);
    return 1;
  }
  curl_global_init (CURL_GLOBAL_DEFAULT);
  libssh2_init (0);
  r.multi = curl_multi_init ();
  if (!r.multi)
    abort ();
  send_json (WIRE_HELLO, 0, child_hello ("ssh"));
  _exit (loop ());
}
