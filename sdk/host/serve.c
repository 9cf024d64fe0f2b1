/* serve.c - the main thread: frames in, leftovers out, prints of libraries into the log */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/child.h"
#include "core/json.h"
#include "core/log.h"
#include "sdk/host/host.h"

enum { EXIT_REFUSED = 1, EXIT_PROTOCOL = 2, LINE = 512, FLUSH_MS = 1000 };

static struct lines {
  char at[LINE];
  size_t n;
} lines;

static void
put_line (struct host *h, struct lines *l)
{
  char text[LINE * 3];

  if (l->n == 0)
    return;
  text_copy (text, sizeof text, l->at, l->n);
  out_log (&h->out, LOG_WARNING, "plugin.print", 0, "%s", text);
  l->n = 0;
}

/* Whoever prints in a plugin's process is heard, line by line, at the pace of the log. */
static ssize_t
read_stdio (struct host *h)
{
  char buf[4096];
  ssize_t n = read (h->stdio, buf, sizeof buf);

  for (ssize_t i = 0; i < n; i++) {
    if (buf[i] != '\n')
      lines.at[lines.n++] = buf[i] ? buf[i] : ' ';
    if (buf[i] == '\n' || lines.n == LINE)
      put_line (h, &lines);
  }
  return n;
}

static _Noreturn void
leave (struct host *h, int status)
{
  while (read_stdio (h) > 0)
    ;
  out_drain (&h->out, FLUSH_MS);
  _exit (status); /* no atexit of a plugin's library, ever */
}

static int
open_plugin (struct host *h, struct err *e)
{
  struct gpub_config conf = {
    .size = sizeof conf,
    .values = h->options.values.at,
    .count = h->options.values.n,
    .provider = h->name,
    .owner = h->owner,
  };
  struct gpub_error err = { .size = sizeof err };
  struct gpub_call call;
  char text[sizeof err.text];
  int32_t rc;

  call_init (&call, h, 0);
  rc = h->plugin.open (&h->table, &call, &conf, &h->self, &err);
  call_done (&call);
  if (rc == GPUB_OK)
    return 0;
  if (rc < 0 || rc > GPUB_E_INTERNAL)
    rc = GPUB_E_INTERNAL;
  text_copy (text, sizeof text, err.text, sizeof err.text - 1);
  secrets_redact (h, text);
  return err_set (e, (enum err_kind) rc, "%s", text);
}

static const struct json_member members[] = {
  { "name", JSON_STRING, true },     { "plugin", JSON_STRING, true },
  { "owner", JSON_STRING, true },    { "state_dir", JSON_STRING, false },
  { "options", JSON_OBJECT, false }, { "http", JSON_OBJECT, false },
};

static int
check_secrets (const struct host *h, struct err *e)
{
  for (size_t i = 0; i < h->secrets.n; i++) {
    const struct gpub_option *o = options_find (&h->plugin, h->secrets.at[i].name);

    if (!o || !(o->flags & GPUB_OPT_SECRET))
      return err_code (e, ERR_INVALID, "unknown-option", "the plugin has no secret '%.60s'",
                       h->secrets.at[i].name);
  }
  return 0;
}

static int
configure (struct host *h, const char *body, size_t len, struct err *e)
{
  AUTO_JSON json_t *conf =
      json_parse_max (body, len, WIRE_ANSWER_TOKENS, e); /* a list of hosts may be long */

  if (!conf || json_check (conf, members, N_ELEMENTS (members), e) < 0)
    return -1;
  h->name = strdup (json_str (conf, "name", ""));
  h->owner = strdup (json_str (conf, "owner", ""));
  if (state_open (h, json_str (conf, "state_dir", NULL), e) < 0 ||
      http_configure (h, json_object_get (conf, "http"), e) < 0)
    return -1;
  confine (h, json_str (conf, "state_dir", NULL));
  if (loader_open (json_str (conf, "plugin", ""), &h->plugin, e) < 0)
    return -1;
  if (options_check (&h->options, &h->plugin, json_object_get (conf, "options"), secret_has, h, e) <
          0 ||
      check_secrets (h, e) < 0)
    return -1;
  return open_plugin (h, e);
}

static void
on_config (struct host *h, const struct wire_frame *f)
{
  AUTO_JSON json_t *ready = NULL;
  struct err e = ERR_INIT;

  if (configure (h, f->body, f->len, &e) < 0) {
    secrets_redact (h, e.text);
    ready = json_pack ("{s:s, s:o, s:s}", "kind", err_kind_name (e.kind), "text",
                       text_json (e.text, sizeof e.text), "code", e.code);
    out_json (&h->out, WIRE_READY, 0, 0, ready);
    leave (h, EXIT_REFUSED);
  }
  pool_init (h);
  h->configured = true;
  ready = json_pack ("{s:s, s:o}", "kind", "ok", "provider", describe_provider (&h->plugin));
  out_json (&h->out, WIRE_READY, 0, 0, ready);
}

static int
on_secret (struct host *h, const struct wire_frame *f)
{
  const char *name, *bytes;
  size_t len;

  if (wire_secret (f, &name, &bytes, &len) < 0)
    return -1;
  secret_put (h, name, bytes, len);
  explicit_bzero ((char *) (uintptr_t) bytes, len);
  return 0;
}

static int
on_frame (struct host *h, const struct wire_frame *f)
{
  if (f->kind == WIRE_SECRET)
    return on_secret (h, f);
  if (!h->configured) {
    if (f->kind != WIRE_CONFIG)
      return -1;
    on_config (h, f);
    return 0;
  }
  switch (f->kind) {
  case WIRE_CALL:
    pool_call (h, f->call, f->body, f->len);
    return 0;
  case WIRE_CANCEL:
    pool_cancel (h, f->call);
    return 0;
  case WIRE_ACK:
    pool_ack (h, f->call);
    return 0;
  case WIRE_PING:
    out_text (&h->out, WIRE_PING, 0, 0, "{}", 2);
    return 0;
  default:
    return -1;
  }
}

/* No new work comes; what was sent to the cloud is brought to its end. */
static _Noreturn void
finish (struct host *h)
{
  if (h->configured) {
    if (pool_drain (h) < 0)
      leave (h, EXIT_REFUSED); /* a call that does not return: closing under it would crash it */
    h->plugin.close (h->self);
  }
  leave (h, 0);
}

static void
protocol_error (struct host *h, const char *text)
{
  out_log (&h->out, LOG_ERR, "wire.broken", 0, "%s", text);
  leave (h, EXIT_PROTOCOL);
}

static void
read_frames (struct host *h, struct wire_buf *in)
{
  struct err e = ERR_INIT;
  struct wire_frame f;
  int got = wire_read (h->out.fd, in, &e), rc;

  while ((rc = wire_next (in, &f, &e)) > 0)
    if (on_frame (h, &f) < 0)
      protocol_error (h, "a frame that does not belong here");
  if (rc < 0)
    protocol_error (h, e.text);
  if (got < 0)
    finish (h);
}

void
serve (struct host *h)
{
  json_t *hello = child_hello ("provider");
  struct wire_buf in = { 0 };

  out_json (&h->out, WIRE_HELLO, 0, 0, hello);
  json_decref (hello); /* nothing returns from here */
  for (;;) {
    struct pollfd p[] = {
      { .fd = h->out.fd, .events = POLLIN | (out_pending (&h->out) ? POLLOUT : 0) },
      { .fd = h->stdio, .events = POLLIN },
      { .fd = h->out.wake, .events = POLLIN },
    };
    eventfd_t pokes;

    if (poll (p, N_ELEMENTS (p), 1000) < 0 && errno != EINTR)
      protocol_error (h, strerror (errno));
    out_log_tick (&h->out);
    if (p[2].revents)
      eventfd_read (h->out.wake, &pokes);
    if (p[1].revents)
      read_stdio (h);
    if (p[0].revents & POLLOUT)
      out_flush (&h->out);
    if (p[0].revents & ~POLLOUT)
      read_frames (h, &in);
  }
}
