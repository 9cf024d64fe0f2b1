/* broker.h - the daemon's own map: one struct, and who may call whom
 *
 * One turn of the loop: inputs arrive (requests, results of calls, timers), decisions change
 * structs and put rows, then turn.c commits and only after that lets replies, events and frames
 * out.  So everything below may be called at any time within a turn, and nothing it says to the
 * outside is heard before it is durable.
 */
#ifndef GPUB_BROKER_H
#define GPUB_BROKER_H

#include "bus/bus.h"
#include "core/ballast.h"
#include "core/conf.h"
#include "core/freeze.h"
#include "core/loop.h"
#include "core/match.h"
#include "core/memory.h"
#include "core/metrics.h"
#include "core/model.h"
#include "core/offers.h"
#include "core/sshkey.h"
#include "core/store.h"
#include "core/supervise.h"
#include "core/vec.h"

/* How long things may take.  GPUB_TEST_TIMES="poll=50,gone=100" overrides single ones. */
struct times {
  int64_t poll; /* between two looks at a machine that boots or goes */
  int64_t gone; /* between the two proofs that a machine is gone */
  int64_t retry_min, retry_max;
  int64_t ssh_retry; /* between two knocks at a booting machine */
  int64_t boot;      /* from create to SSH */
  int64_t knock;     /* at a machine of somebody's own, which is to be up already */
  int64_t create;    /* deadline of a create call */
  int64_t call;      /* of any other provider call */
  int64_t listing;
  int64_t probe; /* between two looks at an account */
  int64_t join;  /* of the node script */
  int64_t verify;
  int64_t stable;   /* between the two reads of allocatable GPUs */
  int64_t warn;     /* before expiry */
  int64_t comeback; /* how long a dead provider is waited for before its offers count as none */
  int64_t restart;  /* the first delay before a dead child is started again */
  int64_t lag;      /* the most that a provider's visibility lag may be */
  int64_t grace;    /* how far past its deadline a child may return from a call */
  int64_t ping;     /* between two questions whether a child is there */
};

struct provider {
  const struct conf_provider *conf;
  struct broker *broker;
  struct child *child;
  char *name;
  bool up, paused, listing, reconciling;
  bool rebuilt;    /* its machines were listed whole */
  bool looked;     /* it has shown its machines, or those of one scope, since the start */
  bool some_scope; /* the list that is arriving was complete in one */
  int64_t down_ms; /* since when it is not up */
  json_t *caps, *identity;
  struct err problem; /* of the last probe or listing */
  uint64_t refresh_timer, reconcile_timer, probe_timer;
  int64_t visibility_lag_ms, idempotency_ms;
  bool idempotent;
  bool frozen;              /* too many machines were missing from the last list */
  unsigned char digest[32]; /* of the configuration and secrets that its process has */
  uint64_t calls, errors;
  json_t *orphans;       /* array, from the last lists (orphans.h) */
  json_t *orphan_notes;  /* what the store remembers of them */
  json_t *seen, *scopes; /* the list that is arriving, and {scope: whole} */
};

struct cluster { /* of the configuration, as the last look found it */
  struct broker *broker;
  char *name;
  json_t *seen; /* members of docs/schema/cluster.json; NULL before the first look */
};

struct waiter {
  struct bus_ticket ticket;
  int64_t op;       /* 0: any operation of the lease */
  int64_t lease;    /* for progress */
  int64_t until_ms; /* 0: no end */
};

struct follower { /* of the events feed */
  struct bus_ticket ticket;
  int64_t lease;        /* 0: all */
  int64_t behind, page; /* behind: the last seq it has, while the past is not all sent; else 0 */
};

struct out { /* what leaves after COMMIT */
  struct bus_ticket ticket;
  enum bus_reply what;
  char *text;
  char *topic; /* an event instead of a reply */
  uint64_t seq;
};

struct broker {
  struct conf conf;
  struct times times;
  struct loop *loop;
  struct store *store;
  struct supervisor *supervisor;
  struct bus *bus;
  struct offers *offers;
  struct memory *memory;
  struct sshkey key;
  struct child *ssh, *kube;
  char instance[40]; /* installation uuid: the mark on what is ours */
  int64_t epoch;     /* of this run; events and clients tell restarts by it */
  int64_t seq;       /* of the last event */
  int64_t next_lease, next_op;
  bool rebuild; /* this process makes books again, and does nothing else (rebuild.c) */
  int64_t started_boot_ms;
  bool stopping;
  int exit_code;
  struct freeze freeze;
  struct ballast ballast;
  struct metrics metrics;
  int64_t spent_udollar; /* on attempts that have ended (spent.c) */

  struct match_locality *localities; /* of the configuration, as the matcher wants them */

  VEC (struct provider *) providers;
  VEC (struct cluster *) clusters;
  VEC (struct lease *) leases; /* all that are not over, and what this turn ended; by number */
  VEC (struct op *) ops;       /* running, and what this turn ended */
  bool some_over;              /* this turn ended some of either */
  VEC (struct waiter) waiters;
  VEC (struct follower) followers;
  VEC (struct out) outbox;
  VEC (int64_t) touched; /* numbers of the leases that were saved since undo_mark */
};

/* main.c */
int64_t now_ms (void);

/* turn.c - commit, then let out */
void turn_reply (struct broker *b, const struct bus_ticket *t, enum bus_reply what,
                 json_t *body); /* takes body */
void turn_text (struct broker *b, const struct bus_ticket *t, enum bus_reply what,
                char *text); /* takes text */
void turn_error (struct broker *b, const struct bus_ticket *t, const char *code, const char *hint,
                 json_t *details, const char *fmt, ...) PRINTF (6, 7); /* takes details */
void turn_disk (struct broker *b); /* is there room for what is committed next? */
int turn_end (void *broker);       /* a loop_each hook */
void turn_unsay (struct broker *b,
                 size_t from); /* drops what was queued since the outbox had that many */
void turn_let_go (struct broker *b, struct lease *l); /* with its calls and timers; takes l */

/* undo.c - a request that failed in the store has not happened */
struct undo {
  size_t outbox, ops, followers, nwaiters;
  struct waiter *waiters;
  int64_t next_lease, next_op, seq;
};
void undo_mark (struct broker *b, struct undo *u, bool changes); /* changes: it is no mere read */
void undo_touch (struct lease *l);
bool undo_if_failed (struct broker *b, struct undo *u, struct err *why); /* true: it was undone */

/* feed.c - events, log lines, progress */
void feed_lease (struct broker *b, const struct lease *l, const char *what, const char *text);
void feed_provider (struct broker *b, const char *provider, const char *what, const char *text);
void feed_broker (struct broker *b, const char *what, const char *text);
void feed_step (struct lease *l, const char *step, const char *text); /* progress within a state */
/* Events behind `since`, of one lease or (0) all: {"epoch","events","seq"}. */
json_t *feed_page (struct broker *b, int64_t since, int64_t lease, int64_t limit);
/* The same, then what happens from now on. */
void feed_follow (struct broker *b, const struct bus_ticket *t, int64_t since, int64_t lease,
                  int64_t limit);
bool feed_catch_up (struct broker *b); /* once a turn; true when there is more */
void feed_tick (void);                 /* collects the operator's programs that have ended */
void feed_alarm (struct broker *b, const char *what, const char *text); /* and notify_command */

/* ops.c - operations and who waits for them */
struct op *ops_start (struct broker *b, const char *verb, const char *owner, const char *key,
                      const char *hash, const struct lease *l);
void ops_finish (struct broker *b, struct op *o, json_t *error); /* takes error; NULL: done */
/* Finishes every running operation on the lease with that verb (NULL: any). */
void ops_settle (struct broker *b, const struct lease *l, const char *verb, bool failed);
void ops_wait (struct broker *b, const struct bus_ticket *t, const struct op *o, int64_t until_ms);
void ops_progress (struct broker *b, const struct lease *l);
void ops_tick (struct broker *b);          /* waits that timed out */
json_t *ops_cause (const struct lease *l); /* ERROR for a failed lease */
/* The running operation of that number, or one read from the store into *from_store (caller frees
 * that). */
struct op *ops_find (struct broker *b, int64_t number, struct op **from_store);
json_t *ops_outcome (struct broker *b, const struct op *o);

/* calls.c - asking a child about a lease or an attempt */
typedef void call_done (struct lease *l, struct attempt *a, const struct call_result *r);
typedef void call_item (struct lease *l, struct attempt *a, const json_t *item);
struct call {
  const char *call;
  json_t *args; /* taken */
  int64_t deadline_ms;
  bool mutates;
  const struct child_secret *secrets;
  size_t nsecrets;
  call_item *item; /* NULL: items are dropped */
  call_done *done;
};
/* One call at a time for a lease (a NULL) and for an attempt; results of calls that were given up
 * are dropped. */
void call_lease (struct lease *l, struct child *c, const struct call *call);
void call_attempt (struct attempt *a, struct child *c, const struct call *call);
void call_give_up (struct lease *l); /* cancels what the lease itself has in flight */

/* engine.c - leases */
bool engine_event (struct lease *l, enum lease_event ev);
void engine_fail (struct lease *l, json_t *failure,
                  bool next_offer); /* takes failure (docs/schema) */
void engine_work (struct lease *l); /* start what this state needs, unless it runs already */
void engine_later (struct lease *l, int64_t ms); /* engine_work then */
void engine_save (struct lease *l);
void engine_cause (struct lease *l, const char *code, const char *fmt, ...) PRINTF (3, 4);
void engine_tick (struct broker *b); /* each second: TTL, deadlines, keeping */
struct lease *engine_lease (struct broker *b, int64_t number); /* live, or NULL */
void engine_take (struct broker *b, struct lease *l);          /* among the live ones; takes l */
/* Is it of books that may be older than the machines?  Then nothing of it ends or begins by itself.
 */
bool engine_unsure (const struct lease *l);
int64_t backoff (const struct times *t, int tries);

/* attempts.c - what is known of a machine; attempt_work.c - create, find, remove */
void attempt_item (struct lease *l, struct attempt *a, const json_t *item);
void attempt_happens (struct attempt *a, enum attempt_event ev);
void attempt_reason (struct attempt *a, const char *code, const char *text);
void attempt_work (struct attempt *a);
void attempt_save (struct attempt *a);
void attempt_later (struct attempt *a, int64_t ms);
void attempt_learn (struct attempt *a, const json_t *machine); /* what the cloud says of it */
void attempt_see (struct attempt *a,
                  const json_t *machine); /* the same; another id makes it a duplicate to remove */
void attempt_learn_resource (struct attempt *a, const json_t *resource);
bool attempt_holds (const struct attempt *a, const json_t *thing); /* a machine or a resource */
void attempt_proven_gone (struct attempt *a);               /* a get said so; it counts twice */
void attempt_check (struct attempt *a, struct provider *p); /* attempt_check.c */
json_t *attempt_ref (const struct attempt *a);              /* args of get and remove */
void attempt_name (const struct attempt *a, char name[51]); /* of the machine and of the Node */
int64_t attempt_not_after (int64_t expires_ms); /* when the cloud itself ends it; 0: never */
/* Does the answer to a get of it, already learnt, say that it is gone? */
bool attempt_answer_gone (const struct attempt *a, const struct call_result *r);
bool attempt_visible (struct attempt *a);
/* Remembers the failure of what the cloud had accepted at first. */
void attempt_remember (struct attempt *a, const struct err *why);

/* rent.c - from a wish to a machine that answers SSH */
void rent_pending (struct lease *l);
void rent_quote (struct lease *l, struct provider *p,
                 const struct match_pick *pick); /* rent_quote.c */
void rent_ordering (struct lease *l);
void rent_booting (struct lease *l);
void rent_match_context (struct broker *b, const char *cluster, int64_t ttl_ms,
                         struct match_context *c);
json_t *rent_target (const struct attempt *a);
/* The key that came with a machine of somebody's own, while it is needed; NULL: the broker's own
 * opens it.  *s borrows it until rent_forget_key. */
char *rent_lent_key (const struct lease *l, struct child_secret *s);
void rent_forget_key (char *key, const struct child_secret *s);
/* Calls the ssh runner, with the key that opens the machine now; at most one secret beside it. */
void rent_ssh (struct lease *l, const struct call *call);

/* own.c - machines that somebody owns (`join` with a host) */
#define OWN_PROVIDER "own"
bool lease_own (const struct lease *l);
bool lease_lent_key (const struct lease *l); /* with a key of its owner's, for the first contact */
void own_commit (struct lease *l);
void own_expect (struct attempt *a, const json_t *facts); /* the first probe says what it is */
/* Which live lease has the machine at that address; NULL: none. */
struct lease *own_lease_at (struct broker *b, const char *address, int64_t port);

/* pipeline.c - from there to a proven node, and back */
void pipeline_work (struct lease *l);
void pipeline_lint (struct lease *l, call_done *done); /* before any money is spent */
void pipeline_health (struct lease *l, struct attempt *a, call_done *done);
/* The machine has gone without leaving its cluster: its Node and token are deleted, however long
 * the cluster cannot be asked. */
void pipeline_forget (struct attempt *a);

/* watch.c - machines that nobody ended, and yet the cloud shows no more */
void watch_begin (struct provider *p); /* a list begins */
void watch_end (struct provider *p);   /* it was complete */
void watch_attempt (struct attempt *a);
void watch_interrupted (struct lease *l);

/* providers.c */
int providers_start (struct broker *b, struct err *e);
int provider_start (struct broker *b, const struct conf_provider *c, struct err *e);
/* Reads its secrets; starts its process, or gives it what has changed. */
int provider_configure (struct provider *p, struct err *e);
struct provider *provider_find (struct broker *b, const char *name);
/* Is there a provider that may soon have offers: one that has not listed yet, or is being started
 * again? */
bool providers_starting (const struct broker *b);
int64_t provider_jitter (int64_t ms);
void provider_ask (struct provider *p, const char *call, json_t *args, int64_t deadline_ms,
                   void (*on_item) (void *, uint32_t, const json_t *, bool),
                   void (*on_result) (void *, uint32_t, const struct call_result *));
bool provider_can (const struct provider *p,
                   const char *what); /* has that capability, by its name in READY */
void provider_refresh (struct provider *p);
void provider_reconcile (struct provider *p);               /* recon.c */
bool recon_known (struct provider *p, const json_t *thing); /* is it in a live lease? */
json_t *provider_json (const struct provider *p);
/* Under which name the store holds whether it was paused ("1") or resumed by hand. */
void provider_pause_key (const char *name, char *out, size_t size);

/* clusters.c */
void clusters_start (struct broker *b);
json_t *cluster_json (const struct broker *b, const struct conf_cluster *k);
/* Answers the ticket with {"part","text"}: what an operator applies, or gives to Helm, Prometheus,
 * Grafana.  wishes: the members of the verb clusters.render. */
void clusters_render (struct broker *b, const struct conf_cluster *k, const json_t *wishes,
                      const struct bus_ticket *ticket);

/* rebuild.c - lost books, made again from the marks in the clouds */
void rebuild_begin (struct broker *b);
void rebuild_listed (struct provider *p); /* its list was answered */

/* balance.c - accounts that run dry */
void balance_look (struct provider *p); /* after a probe */

/* budget.c - pure sums over the books */
int64_t budget_rate (const struct broker *b, const char *owner); /* NULL: everybody */
int64_t budget_rate_at (const struct broker *b, const char *provider);
uint32_t budget_leases (const struct broker *b, const char *owner);
/* Is the balance less than that, or not enough to go on for so long at that rate? */
bool budget_low (int64_t balance, int64_t rate, uint64_t least, int64_t last_ms);
/* May this owner spend that much more per hour?  The text says which limit refuses it. */
int budget_admit (const struct broker *b, const char *owner, int64_t more_udollar,
                  const struct lease *except, struct err *e);

/* spent.c - what was spent in all */
void spent_start (struct broker *b);
void spent_ended (const struct attempt *a, int sign); /* 1: it ended; -1: it is there again */
int64_t spent_total (const struct broker *b, int64_t now);

/* api.c - requests */
void api_request (void *broker, const struct bus_request *r);
/* Extensions that were accepted, and not heard of again before the last end. */
void api_extend_again (struct broker *b);
const char *
hint_for (const char *code); /* hints.c: what to do about a failure code; NULL: nothing known */

#endif
