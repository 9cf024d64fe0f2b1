/* mark.c - whose is it?  What the tags of a machine say, and what may follow from that */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/orphans.h"

/* Digits alone: what "+7", "7x" or "" mean is nobody's number. */
static int64_t
number (const char *text)
{
  size_t n = strspn (text, "0123456789");

  return n > 0 && !text[n] ? strtoll (text, NULL, 10) : 0;
}

struct mark
mark_of (const json_t *tags, const char *instance)
{
  struct mark m = { MARK_NONE, json_str (tags, "gpubroker-owner", ""),
                    json_str (tags, "gpubroker-token", ""),
                    number (json_str (tags, "gpubroker-lease", "")) };

  if (m.owner[0])
    m.whose = instance[0] && strcmp (m.owner, instance) == 0 ? MARK_OURS : MARK_OTHER;
  return m;
}

bool
mark_whole (const struct mark *m)
{
  return m->whose == MARK_OURS && m->lease > 0 && m->token[0];
}

const char *
mark_name (enum mark_whose whose)
{
  static const char *const names[] = { "none", "other-broker", "ours" };

  return names[whose];
}

bool
orphan_due (const struct orphan_case *c)
{
  return c->grace_ms > 0 && mark_whole (&c->mark) && !c->ignored && c->complete && !c->frozen &&
         c->mark.lease > c->floor && c->mark.lease < c->next && c->first_seen_ms > 0 &&
         c->now_ms - c->first_seen_ms >= c->grace_ms;
}
