/* supervise_frame.c - what a frame from a child does; a child is not trusted to be right */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/supervise_int.h"

static int
on_hello (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  struct child *c = p->child;
  const json_t *wire = json_object_get (body, "wire");
  int64_t low = json_integer_value (json_array_get (wire, 0)),
          high = json_integer_value (json_array_get (wire, 1));
  const char *role = json_str (body, "role", "");

  (void) f;
  if (strcmp (role, c->role) != 0)
    return err_set (e, ERR_INVALID, "HELLO says role '%.20s', not '%s'", role, c->role);
  if (low > WIRE_VERSION || high < WIRE_VERSION) {
    p->refused = true;
    return err_set (
        e, ERR_INVALID,
        "it speaks wire versions %lld to %lld, this gpubrokerd speaks %d: install one build",
        (long long) low, (long long) high, WIRE_VERSION);
  }
  for (size_t i = 0; i < c->secrets.list.n; i++) {
    const struct child_secret *s = &c->secrets.list.at[i];

    if (wire_put_secret (&p->out, 0, s->name, s->bytes, s->len, e) < 0)
      return -1;
  }
  if (wire_put_json (&p->out, WIRE_CONFIG, 0, 0, c->config, e) < 0)
    return -1;
  proc_configured (p);
  return 0;
}

static size_t
parallel (const json_t *ready)
{
  const json_t *provider = json_object_get (ready, "provider");
  int64_t n =
      json_i64 (provider ? provider : ready, "max_parallel", provider ? 1 : PARALLEL_DEFAULT);

  return n < 1 ? 1 : n > PARALLEL_MAX ? PARALLEL_MAX : (size_t) n;
}

static void
fill_err (struct err *e, enum err_kind kind, const json_t *body)
{
  int64_t retry = json_i64 (body, "retry_after_ms", 0);

  err_code (e, kind, json_str (body, "code", ""), "%s", json_str (body, "text", ""));
  e->sys = 0;
  e->retry_after_ms = retry > 0 && retry < UINT32_MAX ? (uint32_t) retry : 0;
  for (char *s = e->text; *s; s++)
    if ((unsigned char) *s < ' ' || *s == 0x7f)
      *s = ' ';
}

static int
on_ready (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  struct child *c = p->child;
  enum err_kind kind = err_kind_parse (json_str (body, "kind", ""));

  (void) f, (void) e;
  if (kind != ERR_NONE) {
    p->refused = true; /* it exits by itself; should it not, the timer of READY still runs */
    fill_err (&p->err, kind, body);
    log_at (LOG_ERR, "child.refused", "name=%s kind=%s error=\"%s\"", c->name, err_kind_name (kind),
            p->err.text);
    return 0;
  }
  proc_up (p, parallel (body));
  if (p != c->main)
    return 0;
  json_decref (c->ready);
  c->ready = json_incref ((json_t *) body);
  child_set_state (c, CHILD_UP);
  log_at (LOG_NOTICE, "child.up", "name=%s pid=%d parallel=%zu", c->name, (int) p->pid,
          p->parallel);
  return 0;
}

/* The call of a frame.  One that has ended here (overdue) may still be answered: that is no fault.
 */
static int
call_of (const struct proc *p, const struct wire_frame *f, struct call **k, struct err *e)
{
  *k = proc_call (p, f->call);
  if (!*k && (f->call == 0 || f->call > p->last_id))
    return err_set (e, ERR_INVALID, "a frame for call %u, which it was never given", f->call);
  return 0;
}

static int
on_item (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  struct call *k;

  if (call_of (p, f, &k, e) < 0)
    return -1;
  if (!k)
    return 0;
  if (k->want_ack)
    return err_set (e, ERR_INVALID, "an ITEM of call %u before the last one had its ACK", f->call);
  if (++k->items > ITEMS_MAX)
    return err_set (e, ERR_INVALID, "more than %d ITEMs in call %u", ITEMS_MAX, f->call);
  k->want_ack = f->flags & WIRE_WANT_ACK;
  if (k->on_item)
    k->on_item (k->ctx, k->id, body, k->want_ack);
  else if (k->want_ack)
    child_ack (k->child, k->id);
  return 0;
}

static int
on_secret (struct proc *p, const struct wire_frame *f, struct err *e)
{
  const char *name, *bytes;
  struct call *k;
  size_t len;

  if (call_of (p, f, &k, e) < 0)
    return -1;
  if (wire_secret (f, &name, &bytes, &len) < 0)
    return err_set (e, ERR_INVALID, "a SECRET without a name");
  if (!k)
    return 0;
  if (k->answer_secrets.list.n == SECRETS_MAX)
    return err_set (e, ERR_INVALID, "more than %d SECRETs in call %u", SECRETS_MAX, f->call);
  secrets_add (&k->answer_secrets, name, bytes, len);
  return 0;
}

static int
on_result (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  struct child *c = p->child;
  const struct supervise_times *t = &c->sup->times;
  struct err how = ERR_INIT;
  struct call *k;

  if (call_of (p, f, &k, e) < 0)
    return -1;
  if (!k)
    return 0;
  k->answer = json_incref ((json_t *) body);
  how.kind = err_kind_parse (json_str (body, "kind", ""));
  if (how.kind != ERR_NONE) {
    fill_err (&how, how.kind, body);
    child_note_error (c, &how);
  }
  if (how.kind == ERR_INTERNAL)
    strike_add (&c->strikes, k->name, k->key, clock_boot_ms (), t->quarantine, t->quarantine_max);
  else
    strike_clear (&c->strikes, k->name, k->key);
  call_end (k, &how);
  return 0;
}

/* Event names are ours to match, so a child cannot write anything else in their place. */
static void
clean_event (char *out, size_t size, const char *event)
{
  size_t n = 0;

  for (; *event && n + 1 < size; event++)
    if (islower ((unsigned char) *event) || isdigit ((unsigned char) *event) ||
        strchr (".-_", *event))
      out[n++] = *event;
  out[n] = '\0';
}

static bool
may_log (struct proc *p)
{
  int64_t second = clock_boot_ms () / 1000;

  if (second != p->log_second) {
    if (p->dropped)
      log_at (LOG_WARNING, "child.log-dropped", "name=%s lines=%u", p->child->name, p->dropped);
    p->log_second = second;
    p->logged = p->dropped = 0;
  }
  if (p->logged++ < LOG_PER_SECOND)
    return true;
  p->dropped++;
  return false;
}

static int
on_log (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  int64_t level = json_i64 (body, "level", LOG_INFO);
  const struct call *k = proc_call (p, (uint32_t) json_i64 (body, "call", 0));
  char event[64];

  (void) f, (void) e;
  if (!may_log (p))
    return 0;
  clean_event (event, sizeof event, json_str (body, "event", ""));
  log_at (level < LOG_ERR     ? LOG_ERR
          : level > LOG_DEBUG ? LOG_DEBUG
                              : (int) level,
          *event ? event : "child.log", "child=%s%s%s %s", p->child->name, k ? " call=" : "",
          k ? k->name : "", json_str (body, "text", ""));
  return 0;
}

/* That it came is all it says. */
static int
on_ping (struct proc *p, const struct wire_frame *f, const json_t *body, struct err *e)
{
  (void) p, (void) f, (void) body, (void) e;
  return 0;
}

typedef int frame_fn (struct proc *p, const struct wire_frame *f, const json_t *body,
                      struct err *e);

static const struct {
  const char *name;
  frame_fn *fn; /* NULL: not for a child to send */
  unsigned stages;
  size_t tokens;
} frames[WIRE_KIND_END] = {
  [WIRE_HELLO] = { "HELLO", on_hello, 1u << PROC_HELLO, JSON_MAX_TOKENS },
  [WIRE_CONFIG] = { .name = "CONFIG" },
  [WIRE_READY] = { "READY", on_ready, 1u << PROC_CONFIGURED, JSON_MAX_TOKENS },
  [WIRE_CALL] = { .name = "CALL" },
  [WIRE_SECRET] = { "SECRET", NULL, 1u << PROC_UP, 0 }, /* no JSON: on_secret */
  [WIRE_ITEM] = { "ITEM", on_item, 1u << PROC_UP, WIRE_ANSWER_TOKENS },
  [WIRE_ACK] = { .name = "ACK" },
  [WIRE_RESULT] = { "RESULT", on_result, 1u << PROC_UP, WIRE_ANSWER_TOKENS },
  [WIRE_CANCEL] = { .name = "CANCEL" },
  [WIRE_LOG] = { "LOG", on_log, 1u << PROC_HELLO | 1u << PROC_CONFIGURED | 1u << PROC_UP,
                 JSON_MAX_TOKENS },
  [WIRE_PING] = { "PING", on_ping, 1u << PROC_UP, JSON_MAX_TOKENS },
};

int
frame_take (struct proc *p, const struct wire_frame *f, struct err *e)
{
  AUTO_JSON json_t *body = NULL;

  if (!(frames[f->kind].stages & 1u << p->stage))
    return err_set (e, ERR_INVALID, "a %s frame is not allowed here", frames[f->kind].name);
  if (f->kind == WIRE_SECRET)
    return on_secret (p, f, e);
  body = json_parse_max (f->body, f->len, frames[f->kind].tokens, e);
  if (!body)
    return err_add (e, "%s frame", frames[f->kind].name);
  return frames[f->kind].fn (p, f, body, e);
}
