/* lease.c - every pair of (state, event), of leases and of attempts */
#include "config.h"

#include <stdlib.h>

#include "core/lease.h"
#include "tests/unit/tap.h"

/* Written down a second time on purpose: a line is `state event -> state actions`; what is not here
 * is refused. */
static const char *const wanted[] = {
  "pending committed -> ordering 0",
  "pending exhausted -> releasing 4",
  "pending release -> releasing 4",
  "ordering created -> booting 0",
  "ordering next -> pending 1",
  "ordering failed-drop -> releasing 5",
  "ordering release -> releasing 5",
  "booting next -> pending 1",
  "booting reached -> reachable 0",
  "booting sick -> degraded 4",
  "reachable sick -> degraded 4",
  "joining sick -> degraded 4",
  "verifying sick -> degraded 4",
  "degraded retry -> booting 0",
  "booting failed-keep -> failed-kept 20",
  "booting failed-drop -> releasing 5",
  "booting release -> releasing 5",
  "booting stopped -> pending 1",
  "booting gone -> pending 1",
  "reachable next -> pending 1",
  "reachable checked -> joining 0",
  "reachable checked-alone -> ready 2",
  "reachable failed-keep -> failed-kept 20",
  "reachable failed-drop -> releasing 5",
  "reachable release -> draining 4",
  "reachable stopped -> pending 1",
  "reachable gone -> pending 1",
  "joining next -> pending 1",
  "joining joined -> verifying 0",
  "joining failed-keep -> failed-kept 20",
  "joining failed-drop -> draining 4",
  "joining release -> draining 4",
  "joining stopped -> pending 1",
  "joining gone -> pending 1",
  "verifying next -> pending 1",
  "verifying verified -> ready 2",
  "verifying failed-keep -> failed-kept 20",
  "verifying failed-drop -> draining 4",
  "verifying release -> draining 4",
  "verifying stopped -> interrupted 36",
  "verifying gone -> lost 101",
  "ready release -> draining 0",
  "ready join -> reachable 0",
  "ready verify -> verifying 0",
  "ready sick -> degraded 0",
  "ready stopped -> interrupted 32",
  "ready gone -> lost 97",
  "degraded release -> draining 0",
  "degraded healthy -> ready 0",
  "degraded stopped -> interrupted 32",
  "degraded gone -> lost 97",
  "interrupted release -> draining 0",
  "interrupted healthy -> ready 0",
  "interrupted gone -> lost 65",
  "draining drained -> releasing 1",
  "draining gone -> releasing 1",
  "releasing release-empty -> failed-empty 72",
  "releasing all-gone -> released 72",
  "releasing stuck -> leaked 32",
  "failed-kept release -> draining 0",
  "failed-kept retry -> booting 0",
  "failed-kept stopped -> interrupted 32",
  "failed-kept gone -> lost 65",
  "leaked all-gone -> released 72",
  "leaked release-empty -> failed-empty 72",
};

static int
is_wanted (const char *line)
{
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if (strcmp (wanted[i], line) == 0)
      return 1;
  return 0;
}

static void
test_every_pair (void)
{
  size_t found = 0;
  int bad = 0;

  for (int s = 0; s < LEASE_STATES; s++)
    for (int e = 0; e < LEASE_EVENTS; e++) {
      struct lease_next n;
      char line[128];

      if (!lease_next ((enum lease_state) s, (enum lease_event) e, &n))
        continue;
      found++;
      snprintf (line, sizeof line, "%s %s -> %s %u", lease_state_name ((enum lease_state) s),
                lease_event_name ((enum lease_event) e), lease_state_name (n.state), n.actions);
      if (!is_wanted (line)) {
        printf ("# not wanted: %s\n", line);
        bad++;
      }
    }
  ok (bad == 0, "every edge of the table is one that was meant");
  is_num ((int64_t) found, sizeof wanted / sizeof wanted[0],
          "and every one that was meant is there");
}

static void
test_promises (void)
{
  struct lease_next n;

  for (int s = 0; s < LEASE_STATES; s++) {
    enum lease_state in = (enum lease_state) s;
    int leaving =
        lease_ended (in) || in == LEASE_DRAINING || in == LEASE_RELEASING || in == LEASE_LEAKED;

    ok (lease_next (in, LEV_RELEASE, &n) == !leaving, "%s %s be released", lease_state_name (in),
        leaving ? "need not" : "can");
    ok (lease_state_parse (lease_state_name (in)) == s, "%s survives its name",
        lease_state_name (in));
  }
  for (int e = 0; e < LEASE_EVENTS; e++)
    if (lease_next (LEASE_RELEASED, (enum lease_event) e, &n) ||
        lease_next (LEASE_LOST, (enum lease_event) e, &n) ||
        lease_next (LEASE_FAILED_EMPTY, (enum lease_event) e, &n))
      ok (0, "an end has no way out, but %s is one", lease_event_name ((enum lease_event) e));
  ok (!lease_settled (LEASE_RELEASING) && lease_settled (LEASE_FAILED_KEPT),
      "kept is settled, releasing is not");
}

static void
test_attempts (void)
{
  enum attempt_state out;

  ok (attempt_next (ATTEMPT_SENT, true, AEV_MACHINE, &out) && out == ATTEMPT_CREATED,
      "a wanted machine is taken");
  ok (attempt_next (ATTEMPT_UNKNOWN, false, AEV_MACHINE, &out) && out == ATTEMPT_REMOVING,
      "one that nobody wants any more goes");
  ok (attempt_next (ATTEMPT_SENT, true, AEV_UNKNOWN, &out) && out == ATTEMPT_UNKNOWN,
      "a lost reply is no refusal");
  ok (!attempt_next (ATTEMPT_SENT, true, AEV_ABSENT, &out),
      "what was never searched for is not absent");
  ok (!attempt_next (ATTEMPT_SENT, true, AEV_GONE, &out), "nor gone");
  ok (!attempt_next (ATTEMPT_CREATED, true, AEV_ABSENT, &out),
      "a listing without it does not end a machine");
  ok (attempt_next (ATTEMPT_CREATED, true, AEV_REFUSED, &out) && out == ATTEMPT_REMOVING,
      "exists and failed: remove");
  ok (attempt_next (ATTEMPT_REFUSED, false, AEV_MACHINE, &out) && out == ATTEMPT_REMOVING,
      "a late one is removed");
  ok (attempt_next (ATTEMPT_GONE, false, AEV_MACHINE, &out) && out == ATTEMPT_REMOVING,
      "a risen one too");
  ok (attempt_next (ATTEMPT_LEAKED, false, AEV_GONE, &out) && out == ATTEMPT_GONE,
      "a leaked one can still end");
  for (int s = 0; s < ATTEMPT_STATES; s++)
    ok (attempt_state_parse (attempt_state_name ((enum attempt_state) s)) == s,
        "%s survives its name", attempt_state_name ((enum attempt_state) s));
}

int
main (void)
{
  test_every_pair ();
  test_promises ();
  test_attempts ();
  return done ();
}
