/* lease.c - the life of a lease and of its attempts, as two tables */
#include "config.h"

#include <string.h>

#include "core/cleanup.h"
#include "core/lease.h"

struct edge {
  enum lease_state in;
  enum lease_event event;
  enum lease_state out;
  unsigned actions;
};

/* clang-format off */
static const struct edge edges[] = {
  /* in                event              out                 do */
  { LEASE_PENDING,     LEV_COMMITTED,     LEASE_ORDERING,     0 },
  { LEASE_PENDING,     LEV_EXHAUSTED,     LEASE_RELEASING,    LACT_RENT_FAILED },
  { LEASE_PENDING,     LEV_RELEASE,       LEASE_RELEASING,    LACT_RENT_FAILED },

  { LEASE_ORDERING,    LEV_CREATED,       LEASE_BOOTING,      0 },
  { LEASE_ORDERING,    LEV_NEXT,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_ORDERING,    LEV_FAILED_DROP,   LEASE_RELEASING,    LACT_DROP_ATTEMPT | LACT_RENT_FAILED },
  { LEASE_ORDERING,    LEV_RELEASE,       LEASE_RELEASING,    LACT_DROP_ATTEMPT | LACT_RENT_FAILED },

  { LEASE_BOOTING,     LEV_REACHED,       LEASE_REACHABLE,    0 },
  { LEASE_BOOTING,     LEV_NEXT,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_BOOTING,     LEV_STOPPED,       LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_BOOTING,     LEV_GONE,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_BOOTING,     LEV_SICK,          LEASE_DEGRADED,     LACT_RENT_FAILED },
  { LEASE_BOOTING,     LEV_FAILED_KEEP,   LEASE_FAILED_KEPT,  LACT_KEEP | LACT_RENT_FAILED },
  { LEASE_BOOTING,     LEV_FAILED_DROP,   LEASE_RELEASING,    LACT_DROP_ATTEMPT | LACT_RENT_FAILED },
  { LEASE_BOOTING,     LEV_RELEASE,       LEASE_RELEASING,    LACT_DROP_ATTEMPT | LACT_RENT_FAILED },

  { LEASE_REACHABLE,   LEV_CHECKED,       LEASE_JOINING,      0 },
  { LEASE_REACHABLE,   LEV_CHECKED_ALONE, LEASE_READY,        LACT_RENT_DONE },
  { LEASE_REACHABLE,   LEV_NEXT,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_REACHABLE,   LEV_STOPPED,       LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_REACHABLE,   LEV_GONE,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_REACHABLE,   LEV_SICK,          LEASE_DEGRADED,     LACT_RENT_FAILED },
  { LEASE_REACHABLE,   LEV_FAILED_KEEP,   LEASE_FAILED_KEPT,  LACT_KEEP | LACT_RENT_FAILED },
  { LEASE_REACHABLE,   LEV_FAILED_DROP,   LEASE_RELEASING,    LACT_DROP_ATTEMPT | LACT_RENT_FAILED },
  { LEASE_REACHABLE,   LEV_RELEASE,       LEASE_DRAINING,     LACT_RENT_FAILED },

  { LEASE_JOINING,     LEV_JOINED,        LEASE_VERIFYING,    0 },
  { LEASE_JOINING,     LEV_NEXT,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_JOINING,     LEV_STOPPED,       LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_JOINING,     LEV_GONE,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_JOINING,     LEV_SICK,          LEASE_DEGRADED,     LACT_RENT_FAILED },
  { LEASE_JOINING,     LEV_FAILED_KEEP,   LEASE_FAILED_KEPT,  LACT_KEEP | LACT_RENT_FAILED },
  { LEASE_JOINING,     LEV_FAILED_DROP,   LEASE_DRAINING,     LACT_RENT_FAILED },
  { LEASE_JOINING,     LEV_RELEASE,       LEASE_DRAINING,     LACT_RENT_FAILED },

  { LEASE_VERIFYING,   LEV_VERIFIED,      LEASE_READY,        LACT_RENT_DONE },
  { LEASE_VERIFYING,   LEV_NEXT,          LEASE_PENDING,      LACT_DROP_ATTEMPT },
  { LEASE_VERIFYING,   LEV_STOPPED,       LEASE_INTERRUPTED,  LACT_RENT_FAILED | LACT_ALARM },
  { LEASE_VERIFYING,   LEV_GONE,          LEASE_LOST,         LACT_DROP_ATTEMPT | LACT_RENT_FAILED | LACT_ALARM | LACT_ENDED },
  { LEASE_VERIFYING,   LEV_SICK,          LEASE_DEGRADED,     LACT_RENT_FAILED },
  { LEASE_VERIFYING,   LEV_FAILED_KEEP,   LEASE_FAILED_KEPT,  LACT_KEEP | LACT_RENT_FAILED },
  { LEASE_VERIFYING,   LEV_FAILED_DROP,   LEASE_DRAINING,     LACT_RENT_FAILED },
  { LEASE_VERIFYING,   LEV_RELEASE,       LEASE_DRAINING,     LACT_RENT_FAILED },

  { LEASE_READY,       LEV_SICK,          LEASE_DEGRADED,     0 },
  { LEASE_READY,       LEV_STOPPED,       LEASE_INTERRUPTED,  LACT_ALARM },
  { LEASE_READY,       LEV_GONE,          LEASE_LOST,         LACT_DROP_ATTEMPT | LACT_ALARM | LACT_ENDED },
  { LEASE_READY,       LEV_JOIN,          LEASE_REACHABLE,    0 },
  { LEASE_READY,       LEV_VERIFY,        LEASE_VERIFYING,    0 },
  { LEASE_READY,       LEV_RELEASE,       LEASE_DRAINING,     0 },

  { LEASE_DEGRADED,    LEV_HEALTHY,       LEASE_READY,        0 },
  { LEASE_DEGRADED,    LEV_RETRY,         LEASE_BOOTING,      0 },
  { LEASE_DEGRADED,    LEV_STOPPED,       LEASE_INTERRUPTED,  LACT_ALARM },
  { LEASE_DEGRADED,    LEV_GONE,          LEASE_LOST,         LACT_DROP_ATTEMPT | LACT_ALARM | LACT_ENDED },
  { LEASE_DEGRADED,    LEV_RELEASE,       LEASE_DRAINING,     0 },

  { LEASE_INTERRUPTED, LEV_HEALTHY,       LEASE_READY,        0 },
  { LEASE_INTERRUPTED, LEV_GONE,          LEASE_LOST,         LACT_DROP_ATTEMPT | LACT_ENDED },
  { LEASE_INTERRUPTED, LEV_RELEASE,       LEASE_DRAINING,     0 },

  { LEASE_FAILED_KEPT, LEV_RETRY,         LEASE_BOOTING,      0 },
  { LEASE_FAILED_KEPT, LEV_STOPPED,       LEASE_INTERRUPTED,  LACT_ALARM },
  { LEASE_FAILED_KEPT, LEV_GONE,          LEASE_LOST,         LACT_DROP_ATTEMPT | LACT_ENDED },
  { LEASE_FAILED_KEPT, LEV_RELEASE,       LEASE_DRAINING,     0 },

  { LEASE_DRAINING,    LEV_DRAINED,       LEASE_RELEASING,    LACT_DROP_ATTEMPT },
  { LEASE_DRAINING,    LEV_GONE,          LEASE_RELEASING,    LACT_DROP_ATTEMPT },

  { LEASE_RELEASING,   LEV_ALL_GONE,      LEASE_RELEASED,     LACT_RELEASE_DONE | LACT_ENDED },
  { LEASE_RELEASING,   LEV_RELEASE_EMPTY, LEASE_FAILED_EMPTY, LACT_RELEASE_DONE | LACT_ENDED },
  { LEASE_RELEASING,   LEV_STUCK,         LEASE_LEAKED,       LACT_ALARM },

  { LEASE_LEAKED,      LEV_ALL_GONE,      LEASE_RELEASED,     LACT_RELEASE_DONE | LACT_ENDED },
  { LEASE_LEAKED,      LEV_RELEASE_EMPTY, LEASE_FAILED_EMPTY, LACT_RELEASE_DONE | LACT_ENDED },
};

static const struct {
  enum attempt_state in;
  int wanted; /* 1 wanted, 0 not, -1 either */
  enum attempt_event event;
  enum attempt_state out;
} attempt_edges[] = {
  { ATTEMPT_SENT,     1,  AEV_MACHINE,  ATTEMPT_CREATED },
  { ATTEMPT_SENT,     0,  AEV_MACHINE,  ATTEMPT_REMOVING },
  { ATTEMPT_SENT,     -1, AEV_REFUSED,  ATTEMPT_REFUSED },
  { ATTEMPT_SENT,     -1, AEV_UNKNOWN,  ATTEMPT_UNKNOWN },
  { ATTEMPT_SENT,     -1, AEV_UNWANTED, ATTEMPT_SENT },
  { ATTEMPT_UNKNOWN,  1,  AEV_MACHINE,  ATTEMPT_CREATED },
  { ATTEMPT_UNKNOWN,  0,  AEV_MACHINE,  ATTEMPT_REMOVING },
  { ATTEMPT_UNKNOWN,  -1, AEV_REFUSED,  ATTEMPT_REFUSED },
  { ATTEMPT_UNKNOWN,  -1, AEV_UNKNOWN,  ATTEMPT_UNKNOWN },
  { ATTEMPT_UNKNOWN,  -1, AEV_ABSENT,   ATTEMPT_GONE },
  { ATTEMPT_UNKNOWN,  -1, AEV_UNWANTED, ATTEMPT_UNKNOWN },
  { ATTEMPT_CREATED,  -1, AEV_MACHINE,  ATTEMPT_CREATED },
  { ATTEMPT_CREATED,  -1, AEV_REFUSED,  ATTEMPT_REMOVING }, /* exists and failed */
  { ATTEMPT_CREATED,  -1, AEV_UNWANTED, ATTEMPT_REMOVING },
  { ATTEMPT_CREATED,  -1, AEV_GONE,     ATTEMPT_GONE },
  { ATTEMPT_REMOVING, -1, AEV_MACHINE,  ATTEMPT_REMOVING },
  { ATTEMPT_REMOVING, -1, AEV_UNWANTED, ATTEMPT_REMOVING },
  { ATTEMPT_REMOVING, -1, AEV_GONE,     ATTEMPT_GONE },
  { ATTEMPT_REMOVING, -1, AEV_STUCK,    ATTEMPT_LEAKED },
  { ATTEMPT_LEAKED,   -1, AEV_MACHINE,  ATTEMPT_LEAKED },
  { ATTEMPT_LEAKED,   -1, AEV_GONE,     ATTEMPT_GONE },
  /* The cloud shows late what it had refused or hidden: it is ours, and it is to go. */
  { ATTEMPT_REFUSED,  -1, AEV_MACHINE,  ATTEMPT_REMOVING },
  { ATTEMPT_GONE,     -1, AEV_MACHINE,  ATTEMPT_REMOVING },
};
/* clang-format on */

static const char *const state_names[LEASE_STATES] = {
  [LEASE_PENDING] = "pending",         [LEASE_ORDERING] = "ordering",
  [LEASE_BOOTING] = "booting",         [LEASE_REACHABLE] = "reachable",
  [LEASE_JOINING] = "joining",         [LEASE_VERIFYING] = "verifying",
  [LEASE_READY] = "ready",             [LEASE_DEGRADED] = "degraded",
  [LEASE_INTERRUPTED] = "interrupted", [LEASE_DRAINING] = "draining",
  [LEASE_RELEASING] = "releasing",     [LEASE_FAILED_KEPT] = "failed-kept",
  [LEASE_LEAKED] = "leaked",           [LEASE_RELEASED] = "released",
  [LEASE_FAILED_EMPTY] = "failed-empty", [LEASE_LOST] = "lost",
};

static const char *const event_names[LEASE_EVENTS] = {
  [LEV_COMMITTED] = "committed",
  [LEV_EXHAUSTED] = "exhausted",
  [LEV_CREATED] = "created",
  [LEV_NEXT] = "next",
  [LEV_REACHED] = "reached",
  [LEV_CHECKED] = "checked",
  [LEV_CHECKED_ALONE] = "checked-alone",
  [LEV_JOINED] = "joined",
  [LEV_VERIFIED] = "verified",
  [LEV_FAILED_KEEP] = "failed-keep",
  [LEV_FAILED_DROP] = "failed-drop",
  [LEV_RELEASE] = "release",
  [LEV_RELEASE_EMPTY] = "release-empty",
  [LEV_DRAINED] = "drained",
  [LEV_ALL_GONE] = "all-gone",
  [LEV_STUCK] = "stuck",
  [LEV_RETRY] = "retry",
  [LEV_JOIN] = "join",
  [LEV_VERIFY] = "verify",
  [LEV_SICK] = "sick",
  [LEV_HEALTHY] = "healthy",
  [LEV_STOPPED] = "stopped",
  [LEV_GONE] = "gone",
};

static const char *const attempt_names[ATTEMPT_STATES] = {
  [ATTEMPT_SENT] = "sent",         [ATTEMPT_UNKNOWN] = "unknown", [ATTEMPT_CREATED] = "created",
  [ATTEMPT_REMOVING] = "removing", [ATTEMPT_LEAKED] = "leaked",   [ATTEMPT_REFUSED] = "refused",
  [ATTEMPT_GONE] = "gone",
};

bool
lease_next (enum lease_state in, enum lease_event event, struct lease_next *out)
{
  for (size_t i = 0; i < N_ELEMENTS (edges); i++)
    if (edges[i].in == in && edges[i].event == event) {
      out->state = edges[i].out;
      out->actions = edges[i].actions;
      return true;
    }
  return false;
}

bool
attempt_next (enum attempt_state in, bool wanted, enum attempt_event event, enum attempt_state *out)
{
  for (size_t i = 0; i < N_ELEMENTS (attempt_edges); i++)
    if (attempt_edges[i].in == in && attempt_edges[i].event == event
        && (attempt_edges[i].wanted < 0 || attempt_edges[i].wanted == wanted)) {
      *out = attempt_edges[i].out;
      return true;
    }
  return false;
}

static int
parse (const char *const *names, int n, const char *name)
{
  for (int i = 0; name && i < n; i++)
    if (strcmp (names[i], name) == 0)
      return i;
  return -1;
}

const char *
lease_state_name (enum lease_state s)
{
  return state_names[s];
}

int
lease_state_parse (const char *name)
{
  return parse (state_names, LEASE_STATES, name);
}

const char *
lease_event_name (enum lease_event e)
{
  return event_names[e];
}

bool
lease_ended (enum lease_state s)
{
  return s >= LEASE_RELEASED;
}

bool
lease_settled (enum lease_state s)
{
  return lease_ended (s) || s == LEASE_READY || s == LEASE_DEGRADED || s == LEASE_INTERRUPTED
         || s == LEASE_FAILED_KEPT || s == LEASE_LEAKED;
}

const char *
attempt_state_name (enum attempt_state s)
{
  return attempt_names[s];
}

int
attempt_state_parse (const char *name)
{
  return parse (attempt_names, ATTEMPT_STATES, name);
}

bool
attempt_ended (enum attempt_state s)
{
  return s == ATTEMPT_REFUSED || s == ATTEMPT_GONE;
}
