/* services.c - the host's table as plugins see it: log, time, cancellation, secrets, state */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "sdk/host/host.h"

void
error_fill (struct gpub_error *err, const char *fmt, ...)
{
  va_list ap;

  if (!err || err->size < offsetof (struct gpub_error, text) + sizeof err->text)
    return;
  va_start (ap, fmt);
  vsnprintf (err->text, sizeof err->text, fmt, ap);
  va_end (ap);
}

static void
host_log (struct gpub_call *c, int32_t level, const char *event, const char *text)
{
  static const int priority[] = { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR };

  if (level < GPUB_LOG_DEBUG || level > GPUB_LOG_ERROR)
    level = GPUB_LOG_ERROR;
  out_log (&c->host->out, priority[level], event ? event : "plugin", c->id, "%s", text ? text : "");
}

static int32_t
host_cancelled (struct gpub_call *c)
{
  return call_stopped (c);
}

static uint32_t
host_ms_left (struct gpub_call *c)
{
  return (uint32_t) call_left_ms (c);
}

static int32_t
host_sleep (struct gpub_call *c, uint32_t ms)
{
  call_wait (c, ms, 0);
  return call_stopped (c) ? GPUB_E_CANCELLED : GPUB_OK;
}

static int64_t
host_now_ms (struct gpub_call *c)
{
  (void) c;
  return clock_wall_ms ();
}

/* A copy: the daemon may send a newer value while this call runs. */
static int32_t
host_secret (struct gpub_call *c, const char *option, const void **bytes, uint64_t *len)
{
  struct host *h = c->host;
  int32_t rc = GPUB_E_NOT_FOUND;

  *bytes = NULL;
  *len = 0;
  pthread_mutex_lock (&h->secrets_lock);
  for (size_t i = 0; i < h->secrets.n && rc != GPUB_OK; i++) {
    const struct secret *s = &h->secrets.at[i];

    if (strcmp (s->name, option) != 0)
      continue;
    *bytes = memcpy (call_alloc (c, s->len + 1), s->bytes, s->len);
    *len = s->len;
    rc = GPUB_OK;
  }
  pthread_mutex_unlock (&h->secrets_lock);
  return rc;
}

static int32_t
state_failed (struct gpub_call *c, const struct err *e)
{
  if (e->kind != ERR_NOT_FOUND)
    out_log (&c->host->out, LOG_ERR, "state.failed", c->id, "%s", e->text);
  return (int32_t) e->kind;
}

static int32_t
host_state_get (struct gpub_call *c, const char *key, const void **bytes, uint64_t *len)
{
  struct err e = ERR_INIT;
  char *got;
  size_t n;

  *bytes = NULL;
  *len = 0;
  if (state_read (c->host, key, &got, &n, &e) < 0)
    return state_failed (c, &e);
  call_keep (c, got, n);
  *bytes = got;
  *len = n;
  return GPUB_OK;
}

static int32_t
host_state_put (struct gpub_call *c, const char *key, const void *bytes, uint64_t len)
{
  struct err e = ERR_INIT;

  return state_write (c->host, key, bytes, len, &e) < 0 ? state_failed (c, &e) : GPUB_OK;
}

void
services_fill (struct gpub_host *t)
{
  *t = (struct gpub_host){
    .size = sizeof *t,
    .abi = GPUB_ABI,
    .log = host_log,
    .cancelled = host_cancelled,
    .ms_left = host_ms_left,
    .sleep = host_sleep,
    .now_ms = host_now_ms,
    .emit_offer = emit_offer,
    .emit_machine = emit_machine,
    .emit_resource = emit_resource,
    .scope_done = emit_scope,
    .http = http_request,
    .secret = host_secret,
    .state_get = host_state_get,
    .state_put = host_state_put,
  };
}
