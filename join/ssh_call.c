/* ssh_call.c - one CALL of the daemon: a probe, or a run that is started or attached to and
 * followed */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "join/ssh_args.h"
#include "join/ssh_call.h"
#include "join/ssh_output.h"
#include "join/ssh_session.h"

enum {
  FOLLOW_S = 15,   /* a session is held no longer than this for one round of following */
  PAUSE_MS = 1000, /* between two rounds */
  ROUND_MS = FOLLOW_S * 1000 + 30000,
  PROBE_MS = 60000,
  DEADLINE_MS = 60000, /* of a call that names none */
  LOG_MAX = 96 * 1024, /* escaped it still fits into a frame */
};

static const char *const secret_names[] = { "ca", "cert", "key" }; /* of a kubeconfig */
enum { SECRET_MAX = 16 * 1024 };

struct secret {
  char *at;
  size_t n;
};

struct call {
  uint32_t id;
  struct ssh_args args;
  size_t user;   /* which of args.users is tried */
  char *hostkey; /* pinned, or shown first */
  char *key;     /* of its own, or NULL */
  size_t key_len;
  bool cancelled;
  int64_t began, deadline, due;

  /* of the current round */
  struct session *session;
  char nonce[SCRIPT_NONCE + 1];
  char *command, *input;
  struct output output;
  bool greeted, finished, lost;
  int64_t more; /* -1: the node did not say that there is more */

  /* of all rounds */
  bool launched;
  int64_t offset;
  json_t *facts, *log, *end;
  struct secret secrets[N_ELEMENTS (secret_names)];
  size_t log_bytes;
  unsigned progress;
  const struct call_world *world; /* while call_step runs */
};

struct call *
call_new (uint32_t id, const json_t *body, const struct call_secrets *s, struct err *e)
{
  struct call *c = calloc (1, sizeof *c);

  if (!c)
    abort ();
  c->id = id;
  c->facts = facts_new ();
  c->log = json_array ();
  c->began = c->due = clock_boot_ms ();
  c->deadline = c->began + json_i64 (body, "deadline_ms", DEADLINE_MS);
  if (s->key) {
    c->key = strndup (s->key, s->key_len);
    c->key_len = strlen (c->key);
  }
  if (ssh_args_read (&c->args, body, s->token, s->token_len, e) < 0) {
    call_free (c);
    return NULL;
  }
  c->hostkey = c->args.hostkey ? strdup (c->args.hostkey) : NULL;
  return c;
}

static void
secret_free (struct secret *s)
{
  if (s->at)
    explicit_bzero (s->at, s->n);
  free (s->at);
}

static void
end_round (struct call *c)
{
  session_free (c->session);
  c->session = NULL;
  free (c->command);
  if (c->input)
    explicit_bzero (c->input, strlen (c->input)); /* it may hold a token */
  free (c->input);
  c->command = c->input = NULL;
}

void
call_free (struct call *c)
{
  if (!c)
    return;
  end_round (c);
  ssh_args_done (&c->args);
  free (c->hostkey);
  for (size_t i = 0; i < N_ELEMENTS (c->secrets); i++)
    secret_free (&c->secrets[i]);
  explicit_bzero (c->output.line, sizeof c->output.line);
  if (c->key)
    explicit_bzero (c->key, c->key_len);
  free (c->key);
  json_decref (c->facts);
  json_decref (c->log);
  json_decref (c->end);
  free (c);
}

uint32_t
call_id (const struct call *c)
{
  return c->id;
}

int64_t
call_due (const struct call *c)
{
  int64_t due = c->session ? session_deadline (c->session) : c->due;

  return c->cancelled ? 0 : due < c->deadline ? due : c->deadline;
}

bool
call_has_session (const struct call *c)
{
  return c->session != NULL;
}

bool
call_wants (const struct call *c, struct curl_waitfd *w)
{
  return c->session && session_wants (c->session, w);
}

void
call_cancel (struct call *c)
{
  c->cancelled = true;
}

/* ------------------------------------------------------------------------------- what the node
 * prints */

/* The first n words of a value; the last one is the rest of the line. */
static size_t
words (char *value, char *word[], size_t n)
{
  size_t i = 0;

  while (i < n && *value) {
    word[i++] = value;
    if (i == n)
      break;
    value += strcspn (value, " ");
    if (*value)
      *value++ = '\0';
  }
  for (size_t k = i; k < n; k++)
    word[k] = value + strlen (value);
  return i;
}

/* progress=STEP STATE MS TEXT */
static void
on_progress (struct call *c, char *value)
{
  AUTO_JSON json_t *item = NULL;
  char *w[4];

  if (words (value, w, 4) < 3 || c->progress++ >= OUTPUT_PROGRESS_MAX)
    return;
  redact (w[3]);
  item = json_pack ("{s:{s:s, s:s, s:s, s:I}}", "progress", "step", w[0], "state", w[1], "text",
                    w[3], "ms", (json_int_t) strtoll (w[2], NULL, 10));
  if (item)
    wire_put_json (c->world->out, WIRE_ITEM, c->id, 0, item, NULL);
}

/* end=CODE STEP RETRYABLE TEXT */
static void
on_end (struct call *c, char *value)
{
  char *w[4];

  if (c->end || words (value, w, 4) < 3)
    return;
  redact (w[3]);
  c->end = json_pack ("{s:s, s:s, s:b, s:s}", "code", w[0], "step", w[1], "retryable",
                      strcmp (w[2], "0") != 0, "text", w[3]);
}

static void
on_log (struct call *c, char *value)
{
  c->log_bytes += strlen (value);
  if (json_array_size (c->log) >= OUTPUT_LOG_LINES || c->log_bytes > LOG_MAX)
    return;
  redact (value);
  json_array_append_new (c->log, json_string (value));
}

/* secret_NAME=a piece of it; only for a call that asked for some. */
static void
on_secret (struct call *c, const char *name, const char *piece)
{
  size_t n = strlen (piece);

  for (size_t i = 0; i < N_ELEMENTS (secret_names); i++) {
    struct secret *s = &c->secrets[i];
    char *at;

    if (c->args.kind != SSH_KUBECONFIG || strcmp (name, secret_names[i]) != 0 ||
        s->n + n > SECRET_MAX)
      continue;
    at = malloc (s->n + n + 1);
    if (!at)
      abort ();
    memcpy (at, s->at ? s->at : "", s->n);
    memcpy (at + s->n, piece, n + 1);
    secret_free (s);
    *s = (struct secret){ at, strlen (at) };
  }
}

static void
send_secrets (struct call *c)
{
  for (size_t i = 0; i < N_ELEMENTS (secret_names); i++)
    if (c->secrets[i].n)
      wire_put_secret (c->world->out, c->id, secret_names[i], c->secrets[i].at, c->secrets[i].n,
                       NULL);
}

static void
on_line (void *arg, const char *key, char *value)
{
  struct call *c = arg;

  if (strcmp (key, "hello") == 0)
    c->greeted |= strcmp (value, c->nonce) == 0;
  else if (!c->greeted)
    return; /* a banner, or somebody else's shell start-up */
  else if (strcmp (key, "progress") == 0)
    on_progress (c, value);
  else if (strcmp (key, "end") == 0)
    on_end (c, value);
  else if (strcmp (key, "log") == 0)
    on_log (c, value);
  else if (strcmp (key, "more") == 0)
    c->more = strtoll (value, NULL, 10);
  else if (strcmp (key, "lost") == 0)
    c->lost = true;
  else if (strcmp (key, "done") == 0)
    c->finished = true;
  else if (strncmp (key, "secret_", 7) == 0)
    on_secret (c, key + 7, value);
  else
    facts_add (c->facts, key, value);
}

static void
on_output (void *arg, const char *bytes, size_t n)
{
  struct call *c = arg;

  output_feed (&c->output, bytes, n);
}

/* ----------------------------------------------------------------------------------------------
 * rounds */

static char *
next_input (struct call *c)
{
  switch (c->args.kind) {
  case SSH_PROBE:
    return script_probe ();
  case SSH_LOG:
    return script_log ();
  case SSH_KUBECONFIG:
    return script_kubeconfig ();
  case SSH_RUN:
    break;
  }
  return c->launched ? script_follow (&c->args.run, c->offset, FOLLOW_S)
                     : script_launch (&c->args.run, c->nonce, FOLLOW_S);
}

static int
begin_round (struct call *c, struct err *e)
{
  struct session_spec spec;

  script_nonce (c->nonce);
  c->command = script_command (c->nonce);
  c->input = next_input (c);
  c->output = (struct output){ .on = on_line, .arg = c };
  c->greeted = c->finished = c->lost = false;
  c->more = -1;
  spec = (struct session_spec){
    .host = c->args.host,
    .user = c->args.users[c->user],
    .command = c->command,
    .port = c->args.port,
    .hostkey = c->hostkey,
    .key = c->key ? c->key : c->world->key,
    .key_len = c->key ? c->key_len : c->world->key_len,
    .input = c->input,
    .input_len = strlen (c->input),
    .command_ms = c->args.kind == SSH_RUN ? ROUND_MS : PROBE_MS,
    .output = on_output,
    .arg = c,
  };
  c->session = session_new (c->world->multi, &spec, e);
  return c->session ? 0 : -1;
}

static void
put_result (struct call *c, const struct err *e, json_t *value)
{
  AUTO_JSON json_t *body = json_pack ("{s:s}", "kind", err_kind_name (e->kind));

  if (e->kind != ERR_NONE) {
    char text[sizeof e->text];

    snprintf (text, sizeof text, "%s", e->text);
    clean_text (text); /* libssh2 quotes what the node sent */
    redact (text);
    json_put_str (body, "text", text);
    if (*e->code)
      json_put_str (body, "code", e->code);
  }
  if (value)
    json_object_set_new (body, "value", value);
  wire_put_json (c->world->out, WIRE_RESULT, c->id, 0, body, NULL);
}

static bool
fail (struct call *c, const struct err *e)
{
  put_result (c, e, NULL);
  return true;
}

static bool
succeed (struct call *c)
{
  static const struct err none = ERR_INIT;
  json_t *value =
      json_pack ("{s:s, s:s, s:O, s:I}", "hostkey", c->hostkey, "user", c->args.users[c->user],
                 "facts", c->facts, "ms", (json_int_t) (clock_boot_ms () - c->began));

  if (c->args.kind == SSH_LOG)
    json_object_set (value, "log", c->log);
  send_secrets (c);
  if (c->args.kind == SSH_RUN) {
    json_object_update (value, c->end);
    json_object_set (value, "log_tail", c->log);
    json_object_set_new (value, "hash", json_string (c->args.run.hash));
  }
  put_result (c, &none, value);
  return true;
}

/* The next user name needs a new connection: sshd refuses another name on the same one. */
static bool
next_user (struct call *c, const struct err *e)
{
  end_round (c);
  if (c->launched || ++c->user >= c->args.nusers)
    return fail (c, e);
  c->due = clock_boot_ms ();
  return false;
}

static bool
round_done (struct call *c)
{
  struct err e;

  end_round (c);
  if (!c->greeted) {
    err_code (&e, ERR_UNAVAILABLE, "ssh-auth", "user '%.40s' may log in but gets no shell",
              c->args.users[c->user]);
    return next_user (c, &e);
  }
  if (c->args.kind == SSH_RUN ? c->end != NULL : c->finished)
    return succeed (c);
  if (c->args.kind == SSH_RUN && c->lost) {
    c->end = json_pack ("{s:s, s:s, s:b, s:s}", "code", "interrupted", "step", "", "retryable", 1,
                        "text", "the run ended without a word: killed, or the machine restarted");
    return succeed (c);
  }
  if (c->args.kind == SSH_RUN && c->more >= c->offset) {
    c->launched = true;
    c->offset = c->more;
    c->due = clock_boot_ms () + PAUSE_MS;
    return false;
  }
  err_code (&e, ERR_UNAVAILABLE, "ssh-closed", "the node's answer ended early");
  return fail (c, &e);
}

/* Whatever happens later in this call, it talks to the machine that answered first. */
static void
pin (struct call *c)
{
  const char *shown = session_hostkey (c->session);

  if (!c->hostkey && shown)
    c->hostkey = strdup (shown);
}

static bool
advance (struct call *c)
{
  struct err e = ERR_INIT;
  enum session_end end = session_step (c->session, &e);

  pin (c);
  if (end == SESSION_RUNS)
    return false;
  if (end == SESSION_DONE)
    return round_done (c);
  return strcmp (e.code, "ssh-auth") == 0 ? next_user (c, &e) : fail (c, &e);
}

bool
call_step (struct call *c, const struct call_world *w)
{
  int64_t now = clock_boot_ms ();
  struct err e = ERR_INIT;

  c->world = w;
  if (c->cancelled) {
    err_set (&e, ERR_CANCELLED, "cancelled");
    return fail (c, &e);
  }
  if (now >= c->deadline) {
    err_code (&e, ERR_UNAVAILABLE, "ssh-timeout", "no result within the call's deadline; %s",
              c->launched ? "the run goes on" : "nothing more is known");
    return fail (c, &e);
  }
  if (c->session)
    return advance (c);
  if (now < c->due || !w->may_connect)
    return false;
  return begin_round (c, &e) < 0 ? fail (c, &e) : false;
}
