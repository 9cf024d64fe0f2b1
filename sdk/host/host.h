/* host.h - the map of gpubroker-provider
 *
 * The main thread owns fd 3 and the plugin's stdio; each call runs in one worker thread, which owns
 * the call's memory and its own libcurl multi handle.  A worker touches shared state only through
 * out, pool, limiter, secrets and state, each with its own lock; no two of those locks are ever
 * held together.
 */
#ifndef GPUB_HOST_H
#define GPUB_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <curl/curl.h>
#include <jansson.h>

#include <gpubroker/provider.h>

#include "core/err.h"
#include "core/vec.h"
#include "core/wire.h"

struct host;
struct gpub_call;

/* ---- text.c: bytes of a plugin or a cloud made fit for JSON and logs ---- */

/* A JSON string of at most max bytes of s; each byte that is no UTF-8 becomes U+FFFD. NULL for
 * NULL. */
json_t *text_json (const char *s, size_t max);
/* Copies at most size - 1 bytes, cleaned the same way, control characters as spaces. */
void text_copy (char *out, size_t size, const char *s, size_t max);
bool text_is_utf8 (const char *s, size_t len); /* and holds no NUL */
char *base64_encode (const void *bytes, size_t len);
void *base64_decode (const char *text, size_t *len, struct err *e); /* NUL-ended beyond len */

/* ---- loader.c ---- */

/* Finds, checks and loads; *p gets what of the plugin's table this host knows, the rest zero. */
int loader_open (const char *plugin, struct gpub_provider *p, struct err *e);

/* ---- describe.c ---- */

json_t *describe_caps (uint64_t caps);
json_t *describe_provider (const struct gpub_provider *p); /* READY's "provider" */
json_t *describe_plugin (const struct gpub_provider *p);   /* and its options: --describe */

/* ---- options.c ---- */

struct options {
  VEC (struct gpub_kv) values; /* what the plugin sees; owned */
  VEC (char *) plain;          /* configured http:// addresses: the only ones a plugin may use */
};
/* given: CONFIG.options; has_secret says whether a SECRET of that name came. */
int options_check (struct options *o, const struct gpub_provider *p, const json_t *given,
                   bool (*has_secret) (const void *, const char *), const void *ctx, struct err *e);
void options_free (struct options *o);
const struct gpub_option *options_find (const struct gpub_provider *p, const char *name);
int option_duration_ms (const char *text, int64_t *ms);
int option_money_udollar (const char *text, int64_t *udollar);

/* ---- limiter.c: a token bucket; pure but for its members ---- */

struct limiter {
  double rate, burst, tokens; /* rate 0: no limit */
  int64_t filled_ms, not_before_ms;
};
void limiter_init (struct limiter *l, double rate, double burst, int64_t now_ms);
/* Takes one token and returns how long to wait before using it; above most_ms it takes none. */
int64_t limiter_take (struct limiter *l, int64_t now_ms, int64_t most_ms);
void limiter_pause (struct limiter *l, int64_t until_ms); /* the cloud said: not before */

/* ---- state.c ---- */

int state_open (struct host *h, const char *dir, struct err *e);
int state_read (struct host *h, const char *key, char **bytes, size_t *len, struct err *e);
int state_write (struct host *h, const char *key, const void *bytes, size_t len, struct err *e);

/* ---- confine.c ---- */

/* Logs where the kernel cannot; the unit file's own confinement then stands alone. */
void confine (struct host *h, const char *state_dir);

/* ---- out.c: frames to the daemon ---- */

struct out {
  pthread_mutex_t lock;
  pthread_cond_t room;
  struct wire_buf buf;
  int fd, wake; /* wake: an eventfd that tells the main thread to write on */
  bool closed;
  int64_t log_second;
  unsigned logged, dropped;
};
void out_init (struct out *o, int fd);
void out_json (struct out *o, enum wire_kind kind, uint32_t call, uint16_t flags,
               const json_t *body);
void out_text (struct out *o, enum wire_kind kind, uint32_t call, uint16_t flags, const char *body,
               size_t len);
bool out_pending (struct out *o);
void out_flush (struct out *o);             /* non-blocking */
void out_drain (struct out *o, int64_t ms); /* waits for the peer to take it all */
/* False once the call is stopped while the daemon does not take more. */
bool out_wait_room (struct out *o, struct gpub_call *call);
void out_nudge (struct out *o); /* a waiter looks again */
void out_log (struct out *o, int level, const char *event, uint32_t call, const char *fmt, ...)
    PRINTF (5, 6);
void out_log_tick (struct out *o); /* tells how many lines were dropped, once a second has passed */

/* ---- secrets.c ---- */

void secret_put (struct host *h, const char *name, const void *bytes, size_t len);
bool secret_has (const void *host, const char *name);
void secrets_redact (struct host *h, char *text);            /* log text: patterns and secrets */
void secrets_mask (struct host *h, char *bytes, size_t len); /* recordings: secrets only */

/* ---- http*.c ---- */

struct http_conf {
  char *ca_file, *client_cert_file, *client_key_file, *proxy, *record, *replay;
  double rate, burst;
};
int http_configure (struct host *h, const json_t *conf, struct err *e);
int32_t http_request (struct gpub_call *, const struct gpub_http_request *,
                      struct gpub_http_response *, struct gpub_error *);

/* ---- call.c and pool.c ---- */

enum stop { STOP_NONE, STOP_DRAIN, STOP_NOW }; /* DRAIN: finish only what was sent */

struct batch { /* "{"offers":[" and so far */
  char *text;
  size_t len, cap, n, tokens;
};

struct worker {
  struct host *host;
  CURLM *multi;
};

struct call_type;

struct gpub_call {
  struct host *host;
  struct gpub_call *next;
  uint32_t id; /* 0 while the plugin opens */
  const struct call_type *type;
  json_t *args;
  int64_t deadline_ms; /* clock_boot_ms */
  _Atomic int stop;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  unsigned acks;         /* under lock */
  struct worker *worker; /* under lock; NULL while queued */
  struct keep *kept;
  struct batch batch;
  uint64_t offers, machines, resources;
  _Atomic bool in_flight; /* a MUTATES whose bytes left is being waited for */
  bool maybe;             /* a MUTATES ended without a definitive answer */
  bool effect;            /* a MUTATES was answered with success */
  int32_t failed;         /* what an emit returned: the call cannot end well */
  char failed_text[200];
};

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  struct gpub_call *queue, *running;
  unsigned queued, active, threads, waiting, max;
  bool draining;
};

void pool_init (struct host *h);
void pool_call (struct host *h, uint32_t id, const char *body, size_t len);
void pool_cancel (struct host *h, uint32_t id);
void pool_ack (struct host *h, uint32_t id);
int pool_drain (struct host *h); /* 0 when every call ended in its time */

void cond_init (pthread_cond_t *cond); /* on the monotonic clock */
struct timespec after_ms (int64_t ms);
void call_init (struct gpub_call *c, struct host *h, uint32_t id);
void call_done (struct gpub_call *c);
void *call_alloc (struct gpub_call *c, size_t size); /* zeroed; lives as long as the call */
void call_keep (struct gpub_call *c, void *bytes, size_t size); /* takes bytes */
char *call_strdup (struct gpub_call *c, const char *s);
void call_stop (struct gpub_call *c, int how);
int64_t call_left_ms (const struct gpub_call *c);
bool call_stopped (const struct gpub_call *c);
/* Waits at most ms, until the call is stopped or (want_acks) so many ACKs came. */
void call_wait (struct gpub_call *c, int64_t ms, unsigned want_acks);
int32_t call_fail (struct gpub_call *c, int32_t kind, const char *fmt, ...) PRINTF (3, 4);

/* ---- run.c: one call, from its JSON to its RESULT ---- */

enum {
  EMITS_OFFERS = 1,
  EMITS_MACHINES = 2,
  EMITS_RESOURCES = 4,
  EMITS_SCOPES = 8,
  MUST_EMIT_MACHINE = 16,
  MUST_EMIT_ONE = 64, /* a machine or a resource */
  ACK_MACHINES = 32
};
struct call_type {
  const char *name;
  unsigned emits;
  int32_t (*run) (struct gpub_call *, json_t *value, struct gpub_error *);
};
const struct call_type *run_type (const char *name);
void run_call (struct gpub_call *c);
void run_refuse (struct host *h, uint32_t id, enum err_kind kind, const char *text);
/* The kind that the daemon gets, out of what the plugin returned; *why is set when it differs. */
int32_t run_verdict (const struct gpub_call *c, int32_t rc, const char **why);

/* ---- decode.c: JSON arguments to structs; memory of the call ---- */

int decode_query (struct gpub_call *c, struct gpub_offer_query *q, struct err *e);
int decode_create (struct gpub_call *c, struct gpub_create *a, struct err *e);
int decode_ref (struct gpub_call *c, struct gpub_ref *r, struct err *e);
int decode_find (struct gpub_call *c, struct gpub_find *f, struct err *e);

/* ---- encode.c: a plugin's structs to JSON; NULL when they break the contract ---- */

json_t *encode_offer (const struct gpub_offer *o, struct err *e);
json_t *encode_machine (const struct gpub_machine *m, struct err *e);
json_t *encode_resource (const struct gpub_resource *r, struct err *e);
json_t *encode_stray (const struct gpub_resource *r, struct err *e); /* with its own tags */

/* ---- emit.c ---- */

int32_t emit_offer (struct gpub_call *, const struct gpub_offer *);
int32_t emit_machine (struct gpub_call *, const struct gpub_machine *);
int32_t emit_resource (struct gpub_call *, const struct gpub_resource *);
int32_t emit_scope (struct gpub_call *, const char *, uint32_t, int32_t, const struct gpub_error *);
void emit_flush (struct gpub_call *);

/* ---- services.c ---- */

void services_fill (struct gpub_host *t);
void error_fill (struct gpub_error *err, const char *fmt, ...) PRINTF (2, 3);

/* ---- serve.c ---- */

struct host {
  struct gpub_provider plugin; /* a copy, cut to what we know */
  struct gpub_host table;
  void *self;
  char *name, *owner;
  bool configured;
  struct options options;
  pthread_mutex_t secrets_lock;
  VEC (struct secret {
    char *name;
    char *bytes;
    size_t len;
  })
  secrets;
  struct http_conf http;
  pthread_mutex_t limiter_lock;
  struct limiter limiter;
  pthread_mutex_t state_lock;
  int state_fd, stdio; /* stdio: what libraries print comes out here */
  struct replay *replay;
  struct out out;
  struct pool pool;
};

static inline struct host *
host_of (struct out *o)
{
  return (struct host *) (void *) ((char *) o - offsetof (struct host, out));
}

_Noreturn void serve (struct host *h);

#endif
