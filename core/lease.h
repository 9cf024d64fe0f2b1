/* lease.h - the life of a lease and of its attempts, as two tables
 *
 * Pure: no I/O, no clock.  The engine feeds events in and carries the actions out; what a lease
 * does while it sits in a state (its work) follows from the state alone, so a restart only has to
 * look at the state.
 */
#ifndef GPUB_LEASE_H
#define GPUB_LEASE_H

#include <stdbool.h>

enum lease_state {
  LEASE_PENDING,   /* looking for an offer */
  LEASE_ORDERING,  /* an attempt is committed: perhaps sent, perhaps there */
  LEASE_BOOTING,   /* the machine exists; no SSH yet */
  LEASE_REACHABLE, /* SSH answers; what was delivered is being checked */
  LEASE_JOINING,   /* token minted, the node script runs */
  LEASE_VERIFYING, /* the cluster is asked */
  LEASE_READY,
  LEASE_DEGRADED,    /* was ready; something is wrong; never ended by itself */
  LEASE_INTERRUPTED, /* the provider stopped or reclaims it */
  LEASE_DRAINING,    /* the node leaves its cluster */
  LEASE_RELEASING,   /* machines are being removed until each is proven gone */
  LEASE_FAILED_KEPT, /* failed, machine kept and billed */
  LEASE_LEAKED,      /* cannot be ended yet; retried for ever, price still running */
  LEASE_RELEASED,    /* the ends */
  LEASE_FAILED_EMPTY,
  LEASE_LOST,
  LEASE_STATES
};

enum lease_event {
  LEV_COMMITTED,     /* an attempt is in the books */
  LEV_EXHAUSTED,     /* no offer is left */
  LEV_CREATED,       /* the machine is known to exist */
  LEV_NEXT,          /* this attempt failed and is not wanted any more: try the next offer */
  LEV_REACHED,       /* SSH answers */
  LEV_CHECKED,       /* the machine is what was bought; it is to join a cluster */
  LEV_CHECKED_ALONE, /* the same, for a lease without a cluster */
  LEV_JOINED,
  LEV_VERIFIED,
  LEV_FAILED_KEEP,   /* a step failed for good and the policy keeps the machine */
  LEV_FAILED_DROP,   /* the same, and the policy releases it */
  LEV_RELEASE,       /* by the user, the TTL, the end of the keeping or an interruption */
  LEV_RELEASE_EMPTY, /* the same, when no machine exists or may exist */
  LEV_DRAINED,
  LEV_ALL_GONE, /* every attempt's machine is proven gone */
  LEV_STUCK,    /* a removal was refused too often */
  LEV_RETRY,    /* run the pipeline again on the kept machine */
  LEV_JOIN,     /* a ready machine is to join a cluster now */
  LEV_VERIFY,   /* ask the cluster again about a ready node */
  LEV_SICK,
  LEV_HEALTHY,
  LEV_STOPPED, /* the provider stopped it or announced that it will */
  LEV_GONE,    /* proven gone though nobody released it */
  LEASE_EVENTS
};

/* Bits: what the engine must do besides saving the new state. */
enum lease_action {
  LACT_DROP_ATTEMPT = 1, /* the current attempt's machine is not wanted any more */
  LACT_RENT_DONE = 2,    /* the operation that waits for ready succeeded */
  LACT_RENT_FAILED = 4,  /* ... failed, with the lease's cause */
  LACT_RELEASE_DONE = 8, /* the operation that waits for the end succeeded */
  LACT_KEEP = 16,        /* arm keep_until */
  LACT_ALARM = 32,       /* tell the operator */
  LACT_ENDED = 64,       /* set ended_ms */
};

struct lease_next {
  enum lease_state state;
  unsigned actions;
};

/* false: this event has no place in this state, and nothing changes. */
bool lease_next (enum lease_state in, enum lease_event event, struct lease_next *out);

const char *lease_state_name (enum lease_state s);
/* -1 for a name it does not know. */
int lease_state_parse (const char *name);
const char *lease_event_name (enum lease_event e);
bool lease_ended (enum lease_state s); /* released, failed-empty, lost */
bool
lease_settled (enum lease_state s); /* nothing moves without a new request: ready, kept, an end */

/* One try of a lease on one offer.  `wanted` is kept beside the state: an attempt whose fate is not
 * known must be found before it can be removed. */
enum attempt_state {
  ATTEMPT_SENT,     /* committed; the create is perhaps sent */
  ATTEMPT_UNKNOWN,  /* sent, outcome not learnt: find */
  ATTEMPT_CREATED,  /* the machine exists */
  ATTEMPT_REMOVING, /* it is to go; not yet proven gone */
  ATTEMPT_LEAKED,   /* as removing, refused too often */
  ATTEMPT_REFUSED,  /* the cloud refused: nothing exists */
  ATTEMPT_GONE,     /* proven gone, or proven never to have been */
  ATTEMPT_STATES
};

enum attempt_event {
  AEV_MACHINE,  /* a machine with this token was seen */
  AEV_REFUSED,  /* a definitive refusal */
  AEV_UNKNOWN,  /* the answer was lost */
  AEV_ABSENT,   /* a complete search after the visibility lag found nothing */
  AEV_UNWANTED, /* the lease gave it up */
  AEV_GONE,     /* proven gone, as often as it takes */
  AEV_STUCK,    /* the removal was refused too often */
  ATTEMPT_EVENTS
};

/* wanted: whether the lease still wants it (before the event). */
bool attempt_next (enum attempt_state in, bool wanted, enum attempt_event event,
                   enum attempt_state *out);
const char *attempt_state_name (enum attempt_state s);
int attempt_state_parse (const char *name);
bool attempt_ended (enum attempt_state s); /* refused, gone: costs nothing any more */

#endif
