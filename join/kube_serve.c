/* kube_serve.c - frames on fd 3 to calls on threads, and back
 *
 * A thread per call, because a call is a short story told in order (read, decide, write, wait) and
 * an API server that hangs must hold up nobody else.  Above MAX_RUNNING they queue.  The main
 * thread alone touches the socket.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "core/child.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/vec.h"
#include "join/kube.h"

enum { MAX_RUNNING = 64, STACK = 512 * 1024, DEFAULT_DEADLINE_MS = 60000, LINGER_MS = 35000 };

struct secret {
  uint32_t call;
  char *bytes;
  size_t len;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t cond; /* a call was cancelled */
  struct wire_buf out;
  int wake;
  unsigned running;
  VEC (struct kube_call *) calls; /* running and queued, oldest first */
  size_t queued;                  /* the last this many of calls wait for a thread */
  VEC (struct secret) secrets;
} srv = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
wake (void)
{
  uint64_t one = 1;

  (void) !write (srv.wake, &one, sizeof one);
}

static void
send_json (enum wire_kind kind, uint32_t call, const json_t *body)
{
  struct err e = ERR_INIT;

  pthread_mutex_lock (&srv.lock);
  if (wire_put_json (&srv.out, kind, call, 0, body, &e) < 0 && kind == WIRE_RESULT) {
    AUTO_JSON json_t *sorry = json_pack ("{s:s, s:s}", "kind", "internal", "text", e.text);
    wire_put_json (&srv.out, kind, call, 0, sorry, NULL);
  }
  pthread_mutex_unlock (&srv.lock);
  wake ();
}

int64_t
call_ms_left (const struct kube_call *c)
{
  int64_t left = c->deadline_ms - clock_boot_ms ();

  return left > 0 ? left : 0;
}

int
call_check (const struct kube_call *c, struct err *e)
{
  if (atomic_load (&c->cancelled))
    return err_set (e, ERR_CANCELLED, "%s was cancelled", c->name);
  if (call_ms_left (c) == 0)
    return err_code (e, ERR_UNAVAILABLE, "deadline", "%s: its time is up", c->name);
  return 0;
}

int
call_sleep (const struct kube_call *c, int64_t ms, struct err *e)
{
  struct timespec until;

  if (ms > call_ms_left (c))
    ms = call_ms_left (c);
  clock_gettime (CLOCK_MONOTONIC, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += ms % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_mutex_lock (&srv.lock);
  while (!atomic_load (&c->cancelled) && pthread_cond_timedwait (&srv.cond, &srv.lock, &until) == 0)
    ;
  pthread_mutex_unlock (&srv.lock);
  return call_check (c, e);
}

void
call_progress (const struct kube_call *c, const char *step, const char *state, const char *text)
{
  AUTO_JSON json_t *item =
      json_pack ("{s:{s:s, s:s, s:s*}}", "progress", "step", step, "state", state, "text", text);

  send_json (WIRE_ITEM, c->id, item);
}

void
call_secret (const struct kube_call *c, const char *name, const void *bytes, size_t len)
{
  pthread_mutex_lock (&srv.lock);
  wire_put_secret (&srv.out, c->id, name, bytes, len, NULL);
  pthread_mutex_unlock (&srv.lock);
  wake ();
}

static json_t *
result_body (json_t *value, struct err *e)
{
  json_t *body;

  if (value)
    return json_pack ("{s:s, s:o}", "kind", "ok", "value", value);
  redact (e->text);
  body = json_pack ("{s:s, s:s}", "kind", err_kind_name (e->kind), "text", e->text);
  if (e->code[0])
    json_put_str (body, "code", e->code);
  if (e->retry_after_ms)
    json_put_i64 (body, "retry_after_ms", e->retry_after_ms);
  return body;
}

static void
call_free (struct kube_call *c)
{
  json_decref (c->args);
  json_decref (c->cluster);
  if (c->kubeconfig)
    explicit_bzero (c->kubeconfig, c->kubeconfig_len);
  free (c->kubeconfig);
  free (c);
}

static void
call_forget (struct kube_call *c)
{
  pthread_mutex_lock (&srv.lock);
  srv.running--;
  for (size_t i = 0; i < srv.calls.n; i++)
    if (srv.calls.at[i] == c) {
      memmove (&srv.calls.at[i], &srv.calls.at[i + 1],
               (--srv.calls.n - i) * sizeof srv.calls.at[0]);
      break;
    }
  pthread_mutex_unlock (&srv.lock);
  call_free (c);
  wake ();
}

static void *
call_thread (void *arg)
{
  struct kube_call *c = arg;
  struct err e = ERR_INIT;
  bool offline = false;
  kube_call_fn *fn = kube_call_find (c->name, &offline);
  json_t *value = NULL;

  if (!fn)
    err_set (&e, ERR_UNSUPPORTED, "\"%s\" is no call of the kube runner", c->name);
  else if (!c->cluster)
    err_set (&e, ERR_INVALID, "%s: args.cluster is missing", c->name);
  else if (!c->kubeconfig && !offline)
    err_set (&e, ERR_INVALID, "%s: no kubeconfig was given for cluster %s", c->name,
             json_str (c->cluster, "name", "?"));
  else if (call_check (c, &e) == 0)
    value = fn (c, &e);
  if (!value && e.kind == ERR_NONE)
    err_set (&e, ERR_INTERNAL, "%s ended without a reason", c->name);
  AUTO_JSON json_t *body = result_body (value, &e);
  send_json (WIRE_RESULT, c->id, body);
  call_forget (c);
  return NULL;
}

/* Called with the lock held. */
static void
start_queued (void)
{
  pthread_attr_t attr;
  pthread_t thread;

  pthread_attr_init (&attr);
  pthread_attr_setstacksize (&attr, STACK);
  pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
  while (srv.queued > 0 && srv.running < MAX_RUNNING) {
    if (pthread_create (&thread, &attr, call_thread, srv.calls.at[srv.calls.n - srv.queued]) != 0)
      break; /* the end of a running call tries again */
    srv.queued--;
    srv.running++;
  }
  pthread_attr_destroy (&attr);
}

static void
secret_free (struct secret *s)
{
  explicit_bzero (s->bytes, s->len);
  free (s->bytes);
}

static int
on_secret (const struct wire_frame *f, struct err *e)
{
  const char *name, *bytes;
  struct secret *s;
  size_t len;

  if (wire_secret (f, &name, &bytes, &len) < 0)
    return err_set (e, ERR_INVALID, "a SECRET without a name");
  if (strcmp (name, "kubeconfig") != 0)
    return 0;
  s = vec_push (&srv.secrets);
  s->call = f->call;
  s->len = len;
  s->bytes = malloc (len + 1);
  if (!s->bytes)
    abort ();
  memcpy (s->bytes, bytes, len);
  s->bytes[len] = '\0';
  return 0;
}

static void
take_secret (struct kube_call *c)
{
  for (size_t i = 0; i < srv.secrets.n; i++) {
    struct secret *s = &srv.secrets.at[i];

    if (s->call != c->id)
      continue;
    if (c->kubeconfig) {
      secret_free (s);
    } else {
      c->kubeconfig = s->bytes;
      c->kubeconfig_len = s->len;
    }
    vec_drop (&srv.secrets, i);
    i--;
  }
}

static int
on_call (const struct wire_frame *f, struct err *e)
{
  json_t *body = json_parse (f->body, f->len, e);
  struct kube_call *c;

  if (!body)
    return err_add (e, "CALL");
  c = calloc (1, sizeof *c);
  if (!c)
    abort ();
  c->id = f->call;
  snprintf (c->name, sizeof c->name, "%s", json_str (body, "call", ""));
  c->deadline_ms = clock_boot_ms () + json_i64 (body, "deadline_ms", DEFAULT_DEADLINE_MS);
  c->args = json_incref (json_object_get (body, "args"));
  c->cluster = json_incref (json_object_get (c->args, "cluster"));
  if (!c->cluster)
    c->cluster = json_incref (json_object_get (body, "cluster"));
  json_decref (body);
  take_secret (c);
  pthread_mutex_lock (&srv.lock);
  *vec_push (&srv.calls) = c;
  srv.queued++;
  start_queued ();
  pthread_mutex_unlock (&srv.lock);
  return 0;
}

/* call 0: all of them. */
static void
cancel (uint32_t call)
{
  pthread_mutex_lock (&srv.lock);
  for (size_t i = 0; i < srv.calls.n; i++)
    if (call == 0 || srv.calls.at[i]->id == call)
      atomic_store (&srv.calls.at[i]->cancelled, true);
  pthread_cond_broadcast (&srv.cond);
  pthread_mutex_unlock (&srv.lock);
}

static int
on_frame (const struct wire_frame *f, struct err *e)
{
  switch (f->kind) {
  case WIRE_SECRET:
    return on_secret (f, e);
  case WIRE_CALL:
    return on_call (f, e);
  case WIRE_CANCEL:
    if (f->call != 0)
      cancel (f->call);
    return 0;
  case WIRE_CONFIG: {
    AUTO_JSON json_t *ready = json_pack ("{s:s}", "kind", "ok");
    send_json (WIRE_READY, 0, ready);
    return 0;
  }
  case WIRE_PING: {
    AUTO_JSON json_t *body = json_object ();
    send_json (WIRE_PING, 0, body);
    return 0;
  }
  case WIRE_ACK:
    return 0;
  default:
    return err_set (e, ERR_INVALID, "frame kind %d is not for a runner", f->kind);
  }
}

/* What a library printed becomes a log line. */
static void
relay_stdio (int fd)
{
  char text[512];
  ssize_t n = read (fd, text, sizeof text - 1);

  if (n <= 0)
    return;
  while (n > 0 && text[n - 1] == '\n')
    n--;
  text[n] = '\0';
  redact (text);
  AUTO_JSON json_t *line = json_pack ("{s:i, s:s, s:s%}", "level", LOG_WARNING, "event",
                                      "child.stdio", "text", text, (size_t) n);
  if (line)
    send_json (WIRE_LOG, 0, line);
}

static void
drain_wake (void)
{
  uint64_t n;

  (void) !read (srv.wake, &n, sizeof n);
}

/* One turn; 1 to go on, 0 when the daemon has closed its end, -1 when it broke the protocol. */
static int
turn (int stdio_fd, struct wire_buf *in, struct err *e)
{
  struct pollfd fds[] = {
    { WIRE_FD, POLLIN, 0 },
    { srv.wake, POLLIN, 0 },
    { stdio_fd, POLLIN, 0 },
  };
  struct wire_frame f;
  int rc;

  pthread_mutex_lock (&srv.lock);
  start_queued ();
  if (srv.out.end > srv.out.start)
    fds[0].events |= POLLOUT;
  pthread_mutex_unlock (&srv.lock);
  if (poll (fds, N_ELEMENTS (fds), -1) < 0)
    return errno == EINTR ? 1 : err_set (e, ERR_INTERNAL, "poll: %s", strerror (errno));
  if (fds[1].revents)
    drain_wake ();
  if (fds[2].revents)
    relay_stdio (stdio_fd);
  pthread_mutex_lock (&srv.lock);
  rc = wire_write (WIRE_FD, &srv.out, NULL);
  pthread_mutex_unlock (&srv.lock);
  if (rc < 0 || wire_read (WIRE_FD, in, NULL) < 0)
    return 0;
  while ((rc = wire_next (in, &f, e)) > 0)
    if (on_frame (&f, e) < 0)
      return -1;
  return rc < 0 ? -1 : 1;
}

/* The daemon is gone: waits stop, requests that are on their way end by themselves. */
static void
linger (void)
{
  int64_t until = clock_boot_ms () + LINGER_MS;
  struct pollfd wait = { srv.wake, POLLIN, 0 };

  cancel (0);
  for (;;) {
    unsigned running;

    pthread_mutex_lock (&srv.lock);
    running = srv.running;
    pthread_mutex_unlock (&srv.lock);
    if (running == 0 || clock_boot_ms () >= until)
      return;
    poll (&wait, 1, 250);
    drain_wake ();
  }
}

int
kube_serve (int stdio_fd, struct err *e)
{
  struct wire_buf in = { 0 };
  pthread_condattr_t attr;
  int rc;

  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&srv.cond, &attr);
  srv.wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (srv.wake < 0)
    return err_set (e, ERR_INTERNAL, "eventfd: %s", strerror (errno));
  AUTO_JSON json_t *hello = child_hello ("kube");
  send_json (WIRE_HELLO, 0, hello);
  while ((rc = turn (stdio_fd, &in, e)) > 0)
    ;
  linger ();
  _exit (rc < 0); /* threads may still hold what an orderly exit would free */
}
