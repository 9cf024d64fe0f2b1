/* supervise_int.h - what the files of the supervisor share
 *
 * supervise.c        the supervisor: flush, reaping, results that are due, stop
 * supervise_child.c  a role: restart, back-off, configuration
 * supervise_describe.c  the same for people
 * supervise_proc.c   a process: spawn and its end
 * supervise_io.c     bytes in and out
 * supervise_frame.c  what a frame from a process does
 * supervise_call.c   a call: queue, deadline, end
 * supervise_send.c   to which process it goes
 * supervise_blame.c  the calls of a dead process
 * supervise_pulse.c  is a process still there
 *
 * A process serves either its child's queue ("main"), or only the calls it was started for ("cell":
 * the suspects of a crash), or is retired: takes nothing new, and ends when nothing holds it.
 */
#ifndef GPUB_SUPERVISE_INT_H
#define GPUB_SUPERVISE_INT_H

#include <sys/queue.h>
#include <sys/types.h>

#include "core/strike.h"
#include "core/supervise.h"
#include "core/vec.h"
#include "core/wire.h"

enum {
  QUEUE_MAX = 4096, /* calls waiting in one child */
  BACKLOG_MAX =
      1024 * 1024,       /* bytes a process may leave unread before it is sent no further call */
  READS_PER_EVENT = 4,   /* of 64 KiB */
  PARALLEL_DEFAULT = 64, /* for a child whose READY names no max_parallel */
  PARALLEL_MAX = 256,
  CELLS_MAX = 16,    /* cells for calls that killed before */
  ITEMS_MAX = 65536, /* frames in one call */
  SECRETS_MAX = 8,   /* in one call */
  LOG_PER_SECOND = 100,
  EOF_GRACE_MS = 1000, /* from the end of the connection to the end of the process */
};

struct secrets {
  VEC (struct child_secret) list;
};

struct call {
  TAILQ_ENTRY (call) link;
  struct child *child;
  struct proc *proc; /* NULL while queued */
  uint32_t id;
  bool sent, mutates, cancelled, want_ack;
  char *name, *key;
  json_t *args;
  struct secrets secrets;
  int64_t deadline; /* boot clock */
  uint64_t timer;
  uint32_t items;
  void (*on_item) (void *ctx, uint32_t id, const json_t *item, bool want_ack);
  void (*on_result) (void *ctx, uint32_t id, const struct call_result *r);
  void *ctx;
  struct err err; /* how it ended */
  json_t *answer; /* the RESULT's body */
  struct secrets answer_secrets;
};
TAILQ_HEAD (call_list, call);

enum proc_stage { PROC_HELLO, PROC_CONFIGURED, PROC_UP, PROC_LOST };

struct proc {
  TAILQ_ENTRY (proc) link;
  struct child *child;
  pid_t pid;
  int fd;
  enum proc_stage stage;
  bool cell;
  bool retired; /* takes no more calls from anywhere */
  bool stuck;   /* a call or it did not return: killed as soon as no mutation holds it */
  bool refused; /* it did not like its configuration, or we not its version */
  bool closing; /* our sending end closes once out is empty */
  bool shut;    /* it is closed */
  bool doomed;  /* we killed it: nobody's fault */
  uint32_t events;
  struct wire_buf in, out;
  size_t frame_left; /* of the frame being written, while faults are counted */
  uint64_t timer;
  unsigned unanswered; /* PINGs since it was heard last */
  uint32_t last_id;    /* the highest call id it was given */
  struct call_list calls;
  size_t ncalls, parallel;
  int64_t up_at;
  int64_t log_second;
  unsigned logged, dropped;
  struct err err; /* why it is being ended */
};
TAILQ_HEAD (proc_list, proc);

struct child {
  TAILQ_ENTRY (child) link;
  struct supervisor *sup;
  char *name, *role, **argv;
  json_t *config, *ready;
  struct secrets secrets;
  unsigned flags;
  child_state_fn *on_state;
  void *ctx;
  enum child_state state, told;
  bool stopping, freed;
  struct proc_list procs;
  struct proc *main; /* NULL while there is none */
  struct call_list queue;
  size_t queued;
  uint32_t next_id;
  uint64_t restart_timer;
  int64_t restart_at;
  int64_t delay; /* of the next restart */
  struct strikes strikes;
  uint64_t restarts, calls, errors;
  int64_t since; /* wall clock, of state */
  struct err last;
  int64_t last_at;
};
TAILQ_HEAD (child_list, child);

struct supervisor {
  struct loop *loop;
  struct supervise_times times;
  struct child_list children;
  struct call_list ended; /* their results are due */
  uint64_t deliver_timer;
  VEC (pid_t) orphans; /* killed processes of children that are freed */
  bool stopping;
  loop_fn *stopped;
  void *stopped_ctx;
};

/* supervise.c */
char *supervise_copy (const char *text); /* never NULL */
void secrets_add (struct secrets *s, const char *name, const void *bytes, size_t len);
void secrets_done (struct secrets *s);         /* zeroes them */
void supervise_deliver (struct supervisor *s); /* call at the end of every callback of the loop */
void supervise_deliver_soon (struct supervisor *s);

/* supervise_child.c */
void child_set_state (struct child *c, enum child_state state);
void child_note_error (struct child *c, const struct err *e);
void child_start_now (struct child *c);
void child_lost_main (struct child *c, bool refused,
                      int64_t up_for); /* decides when the next one starts */
void child_check_stopped (struct child *c);
void child_release (struct child *c); /* memory */

/* supervise_proc.c */
struct proc *proc_start (struct child *c, bool cell, struct err *e);
void proc_configured (struct proc *p); /* CONFIG is queued; READY is awaited */
void proc_up (struct proc *p, size_t parallel);
void
proc_break (struct proc *p,
            const struct err *e); /* it broke the protocol or a bound: it dies, and its calls end */
void proc_kill (struct proc *p);  /* SIGKILL, nobody's fault; its calls end when it is reaped */
void proc_retire (struct proc *p);
void proc_close (struct proc *p);      /* orderly end */
void proc_check_idle (struct proc *p); /* after a call of it ended */
void proc_reaped (struct proc *p, int status);
void proc_free (struct proc *p);
struct call *proc_call (const struct proc *p, uint32_t id);

void proc_hung_up (struct proc *p); /* it closed its end */

/* supervise_io.c */
void proc_event (void *ctx, uint32_t events);
bool proc_read (struct proc *p, int reads); /* false when the connection has ended */
void proc_flush (struct proc *p);

/* supervise_frame.c: -1 with e: the frame broke the protocol */
int frame_take (struct proc *p, const struct wire_frame *f, struct err *e);

/* supervise_call.c */
void call_due (void *ctx); /* its timer: the deadline while queued, deadline + grace once sent */
void call_end (struct call *k, const struct err *e);
void call_free (struct call *k);
void call_give (struct call *k, struct proc *p); /* from the queue or another process's list */
void call_requeue (struct call *k);              /* to the head */
void calls_send (struct proc *p);                /* what it was given */
void calls_dispatch (struct child *c);
enum err_kind call_lost_kind (const struct call *k); /* what one that did not come back ends as */
void call_strike (const struct call *k);
void calls_refuse_late (struct child *c); /* queued ones that cannot make it before the restart */

/* supervise_send.c */
void calls_dispatch (struct child *c); /* from the queue to processes with room */
void calls_send (struct proc *p);      /* what it was given before it was up */

/* supervise_pulse.c */
void pulse_start (struct proc *p); /* it is up */

/* supervise_blame.c */
void calls_of_dead (struct proc *p, bool crashed);

#endif
