/* model.h - what the broker knows: leases, attempts, operations
 *
 * The structs are what decisions read; `fields` tables turn them into JSON and back, once for the
 * store (all members) and once for the outside (docs/schema), so that neither can forget a member.
 */
#ifndef GPUB_MODEL_H
#define GPUB_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "core/lease.h"

struct broker;
struct child;

/* A machine as the cloud last told it. */
struct machine {
  char *id, *scope, *plugin_data;
  char *address, *ssh_user, *hostkey;
  int64_t ssh_port, created_ms;
  char *state, *raw_state, *cloud, *region, *instance_type;
};

struct attempt {
  int64_t number;
  enum attempt_state state;
  bool wanted;
  bool billed;                   /* a machine was seen at least once */
  char *provider, *token, *name; /* name: of the machine and of the Node */
  json_t *offer;                 /* snapshot, as docs/schema/offer.json */
  json_t *create; /* the exact arguments of the create call; dropped once the fate is known */
  int64_t price_udollar; /* per hour, all in */
  int64_t max_price_udollar;
  int64_t started_ms, created_ms, ended_ms;
  int64_t sent_wall_ms;
  char *reason_kind; /* of a refusal by the cloud: capacity, quota, ...; its code is the cloud's own */
  char *reason_code, *reason_text;
  struct machine machine;
  json_t *resources;          /* array */
  int64_t gone_seen, gone_ms; /* how often a get proved it gone, and when last */
  int64_t remove_tries;
  bool joined;     /* it may hold cluster credentials and have a Node */
  bool authorised; /* our key may be on it, beside its owner's */
  bool node_left;  /* its Node, and perhaps a token, could not be deleted yet */
  bool cleaned;    /* it left: nothing of this tenant is on it any more */

  /* Not stored. */
  struct lease *lease;
  bool fresh; /* committed in this process's life; its create was not yet answered */
  int64_t
      sent_until_ms; /* until then its create may have been on its way to the cloud; 0 unknown */
  uint32_t call;     /* in flight, 0 none */
  uint64_t timer;    /* next look, 0 none */
  int tries;         /* of what it is doing, for the back-off */
  int absent;        /* complete searches in a row that found nothing */
  bool scopes_done;  /* during a find: at least one scope completed */
  bool scopes_bad;   /* during a find: a scope did not complete */
  bool seen;         /* during a find or get: the machine came */
  bool asked;        /* remove was accepted in this process's life */
  bool marked;       /* of an adopted lease: it carried our mark when last asked for */
  bool shown;        /* since the list began: seen, and not stopped */
};

struct lease {
  int64_t number;
  char id[24];
  char *name, *owner, *cluster;
  enum lease_state state;
  json_t *request; /* the rent's body without key: filter, labels, keys, ... */
  int64_t created_ms, ready_ms, ended_ms, state_ms;
  int64_t expires_ms;  /* TTL; 0 none */
  int64_t deadline_ms; /* the rent must be ready by then */
  int64_t keep_until_ms;
  int64_t reserve_udollar; /* per hour, while no attempt says better */
  bool keep_on_failure;
  int64_t keep_ms;
  bool adopted; /* made from a mark in a cloud: nothing is known of its rent */
  bool failed;  /* the rent failed; the cause says how */
  char *cause_code, *cause_text;
  json_t *failure; /* docs/schema/failure.json of the last failed step */
  bool no_drain, evict_force;
  int64_t drain_timeout_ms;

  struct attempt **attempts;
  size_t nattempts;

  json_t *tried; /* {offer id: times}: what this lease has used up */

  /* Not stored. */
  struct broker *broker;
  int stage;        /* which step of this state's list runs */
  int tries;        /* of that step */
  int64_t stage_ms; /* when it began */
  uint32_t call;    /* in flight, 0 none */
  struct child *call_child;
  uint64_t timer;
  char *step_name, *step_text;
  json_t *quoted;    /* what the call in flight is about: the offer, the machine */
  json_t *rows;      /* of the last verification */
  json_t *facts;     /* what the node said of itself in the last probe or script */
  char *join_token;  /* between mint and bootstrap; zeroed after */
  json_t *minted;    /* the rest of mint's answer */
  bool warned;       /* expiry */
  bool admitted;     /* in this process's life: it is in no older copy of the books */
  bool reading_boot; /* somebody waits for its boot log */
};

enum op_state { OP_RUNNING, OP_DONE, OP_FAILED, OP_CANCELLED };

struct op {
  int64_t number;
  char id[24];
  char *verb, *owner, *key, *body_hash;
  int64_t lease; /* number, 0 none */
  enum op_state state;
  int64_t started_ms, ended_ms;
  json_t *error;    /* docs/schema/error.json */
  json_t *accepted; /* what `accepted` said, repeated for a repeated key */
};

struct lease *lease_new (int64_t number);
void lease_free (struct lease *l);
struct attempt *attempt_new (struct lease *l); /* appended, numbered; belongs to l */
struct attempt *
lease_attempt (const struct lease *l); /* the current one: the last wanted; NULL for none */
struct op *op_new (int64_t number);
void op_free (struct op *o);
const char *op_state_name (enum op_state s);

/* For the store: everything.  From JSON fills a new struct; NULL when it is not one of ours. */
json_t *lease_pack (const struct lease *l);
struct lease *lease_unpack (const json_t *j);
json_t *attempt_pack (const struct attempt *a);
struct attempt *attempt_unpack (struct lease *l, const json_t *j);
json_t *op_pack (const struct op *o);
struct op *op_unpack (const json_t *j);

/* For the outside, as docs/schema has them. */
json_t *lease_json (const struct lease *l, int64_t now_ms, bool whole);
json_t *attempt_json (const struct attempt *a, int64_t now_ms);
json_t *op_json (const struct op *o);

int64_t attempt_price (const struct attempt *a, int64_t ms); /* micro-dollars for so long */
/* Micro-dollars spent on an attempt or a lease until now. */
int64_t attempt_spent (const struct attempt *a, int64_t now_ms);
int64_t lease_spent (const struct lease *l, int64_t now_ms);
/* What it costs per hour now: every attempt that is not proven gone, or the reserve. */
int64_t lease_rate (const struct lease *l);

/* Nothing of it can cost money any more: it has ended and so has every attempt. */
bool lease_over (const struct lease *l);

/* Exchanges what is stored of them; what is in flight stays where it is. */
void lease_swap (struct lease *x, struct lease *y);

void lease_forget_token (struct lease *l); /* zeroes it */

/* Replaces an owned string. */
void set_str (char **at, const char *value);

#endif
