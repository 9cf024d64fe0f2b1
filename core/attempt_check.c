/* attempt_check.c - does what was taken over from a mark still carry it?
 *
 * Between a list and a removal tags may change and ids may be given to others.  So before each
 * removal of an adopted thing it is searched for by its token.  There, with our mark: it may go.
 * Not there in two complete searches, and yet not gone: it is not ours, and nothing is removed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"
#include "core/orphans.h"

enum { ABSENT_TIMES = 2 };

static bool
marked (const struct attempt *a, const json_t *thing)
{
  struct mark m = mark_of (json_object_get (thing, "tags"), a->lease->broker->instance);

  return mark_whole (&m) && strcmp (m.token, a->token) == 0;
}

static void
item (struct lease *l, struct attempt *a, const json_t *i)
{
  const json_t *machine, *scope = json_object_get (i, "scope"),
                         *resource = json_object_get (i, "resource");
  size_t k;

  (void) l;
  json_array_foreach (json_object_get (i, "machines"), k, machine) {
    if (attempt_holds (a, machine))
      a->marked |= marked (a, machine);
  }
  if (resource && !a->machine.id && attempt_holds (a, resource))
    a->marked |= marked (a, resource);
  if (scope && strcmp (json_str (scope, "how", ""), "complete") == 0)
    a->scopes_done = true;
  else if (scope)
    a->scopes_bad = true;
}

/* It is another's: the books let go of it, and say so. */
static void
disown (struct lease *l, struct attempt *a)
{
  char text[300];

  snprintf (text, sizeof text, "%.64s/%.100s no longer carries our mark: it was not removed",
            a->provider, a->machine.id ? a->machine.id : a->name);
  feed_alarm (l->broker, "not-ours", text);
  engine_cause (l, "not-ours", "%s", text);
  l->failed = true;
  engine_save (l);
  ops_settle (l->broker, l, "release", true);
  attempt_reason (a, "not-ours", text);
  attempt_happens (a, AEV_GONE);
}

/* Whosever it is: only its state is taken from it. */
static void
state_of (struct lease *l, struct attempt *a, const json_t *i)
{
  const json_t *machine = json_array_get (json_object_get (i, "machines"), 0);

  (void) l;
  if (machine)
    set_str (&a->machine.state, json_str (machine, "state", NULL));
}

static void
exists (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (attempt_answer_gone (a, r))
    attempt_proven_gone (a);
  else if (r->err.kind != ERR_NONE)
    attempt_later (a, backoff (&l->broker->times, ++a->tries));
  else
    disown (l, a);
}

static void
searched (struct lease *l, struct attempt *a, const struct call_result *r)
{
  const struct provider *p = provider_find (l->broker, a->provider);
  bool whole = r->err.kind == ERR_NONE && a->scopes_done && !a->scopes_bad;

  if (a->marked || !whole) {
    a->absent = 0;
    a->tries = a->marked ? 0 : a->tries + 1;
    attempt_later (a, a->marked ? 0 : backoff (&l->broker->times, a->tries));
  } else if (++a->absent < ABSENT_TIMES || !p) {
    attempt_later (a, l->broker->times.poll);
  } else {
    call_attempt (a, p->child,
                  &(struct call){ "get", attempt_ref (a), l->broker->times.call, false, NULL, 0,
                                  state_of, exists });
  }
}

void
attempt_check (struct attempt *a, struct provider *p)
{
  a->scopes_bad = a->scopes_done = false;
  call_attempt (a, p->child,
                &(struct call){ "find",
                                json_pack ("{s:s, s:s}", "token", a->token, "name", a->name),
                                a->lease->broker->times.listing, false, NULL, 0, item, searched });
}
