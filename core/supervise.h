/* supervise.h - children that act for the daemon: started, asked, watched, replaced
 *
 * A struct child is a role ("provider shadeform", "ssh", "kube"); the process behind it comes and
 * goes. Nothing is written to any child except inside supervisor_flush(): call it once a turn,
 * after COMMIT, so that no effect leaves before it is in the books.  No callback ever runs inside
 * child_call, child_cancel, child_ack or supervisor_flush.  Each call ends in exactly one
 * on_result, whatever happens to the process.
 */
#ifndef GPUB_SUPERVISE_H
#define GPUB_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"
#include "core/loop.h"

struct supervisor;
struct child;

struct supervise_times {              /* milliseconds */
  int64_t hello, ready;               /* from spawn to HELLO, from there to READY */
  int64_t ping;                       /* between two; a child that misses three hangs */
  int64_t grace;                      /* how far past its deadline a call may return */
  int64_t delay_min, delay_max;       /* restart; doubles in between */
  int64_t steady;                     /* up for so long: the next death starts again at delay_min */
  int64_t stop;                       /* orderly stop, then SIGKILL */
  int64_t quarantine, quarantine_max; /* how long a call that kills is refused; doubles */
};
extern const struct supervise_times supervise_times_default;

/* Takes SIGCHLD of the loop, reaps only its own pids.  times NULL: the defaults. */
struct supervisor *supervisor_new (struct loop *loop, const struct supervise_times *times,
                                   struct err *e);
void
supervisor_free (struct supervisor *s); /* kills what is left; its children must be freed before */
/* Writes what was queued, as far as the sockets take it. */
void supervisor_flush (struct supervisor *s);
/* Refuses new calls, lets children finish what was sent, kills the rest after times.stop; then
 * done(ctx). */
void supervisor_stop (struct supervisor *s, loop_fn *done, void *ctx);

struct child_secret {
  const char *name;
  const void *bytes;
  size_t len;
};

enum {
  /* Calls may be repeated: when the process dies, what was in flight is replayed in two halves,
   * each in a process of its own, until the one call that kills is alone; it ends UNAVAILABLE, code
   * "runner-crash". */
  CHILD_REPLAY = 1,
};

struct child_spec {        /* all copied */
  const char *name;        /* for people and logs: "shadeform", "ssh", "kube" */
  const char *role;        /* what HELLO must say: "provider", "ssh", "kube" */
  const char *const *argv; /* NULL-ended; argv[0] without a slash is looked up in $GPUB_LIBEXECDIR
                              or pkglibexecdir */
  const json_t *config;
  const struct child_secret *secrets;
  size_t nsecrets;
  unsigned flags; /* CHILD_* */
};

enum child_state {
  CHILD_STARTING,
  CHILD_UP,
  CHILD_DOWN,        /* died or refused its configuration; a restart is due */
  CHILD_QUARANTINED, /* keeps dying: restarts at the longest delay only */
  CHILD_STOPPING,
  CHILD_STOPPED,
};

/* on_state is called from the loop after each change; it may call child_stop but not child_free. */
typedef void child_state_fn (void *ctx, struct child *c, enum child_state state);

/* Starts it in the next turn. */
struct child *child_new (struct supervisor *s, const struct child_spec *spec,
                         child_state_fn *on_state, void *ctx);
/* Ends at once: SIGKILL, no callbacks any more, not even on_result. */
void child_free (struct child *c);
/* Orderly: CHILD_STOPPED follows. */
void child_stop (struct child *c);
/* A new configuration: a new process starts beside the old one, which takes no more work and ends
 * when it has finished what it had. */
void child_reconfigure (struct child *c, const json_t *config, const struct child_secret *secrets,
                        size_t nsecrets);

struct call_result {
  struct err err;                     /* kind ERR_NONE: done */
  const json_t *value;                /* an object, never NULL; borrowed */
  const struct child_secret *secrets; /* that came before the RESULT; zeroed after on_result */
  size_t nsecrets;
  int http_status;        /* 0: none */
  const char *request_id; /* the cloud's; "" for none */
  bool sent;              /* the child was given the call */
};

struct child_call {
  const char *call;
  const char *key;     /* what it is about ("lease-7", an offer); with `call` it names a call that
                          kills.  NULL: "" */
  json_t *args;        /* taken, also on failure; NULL: {} */
  int64_t deadline_ms; /* from now */
  bool mutates;        /* lost after it was sent: UNKNOWN; else UNAVAILABLE */
  const struct child_secret *secrets; /* copied, zeroed at the end */
  size_t nsecrets;
  /* item is borrowed.  want_ack: the child waits until child_ack (c, id), which may be called from
   * here: the ACK leaves with the next flush, after COMMIT.  After a replay items may come twice.
   */
  void (*on_item) (void *ctx, uint32_t id, const json_t *item, bool want_ack);
  void (*on_result) (void *ctx, uint32_t id, const struct call_result *r);
  void *ctx;
};

/* Never fails: what cannot be done ends in on_result in a later turn.  Codes of our own in
 * err.code: "child-down" "child-died" "overdue" "quarantined" "queue-full" "stopping"
 * "runner-crash". */
uint32_t child_call (struct child *c, const struct child_call *call);
void child_ack (struct child *c, uint32_t id);
void child_cancel (struct child *c,
                   uint32_t id); /* its result still comes; queued calls end CANCELLED */

enum child_state child_state (const struct child *c);
const char *child_state_name (enum child_state state);
const char *child_name (const struct child *c);
/* The last READY of this role ({} before the first): "provider" describes the plugin.  Borrowed. */
const json_t *child_ready (const struct child *c);
size_t child_in_flight (const struct child *c); /* sent and queued */
/* {"state","pid","restarts","in_flight","queued","calls","errors","since_ms","last_error","last_error_ms",
 *  "restart_in_ms","quarantined":[{"call","key","for_ms"}]}; caller owns it. */
json_t *child_describe (const struct child *c);

#endif
