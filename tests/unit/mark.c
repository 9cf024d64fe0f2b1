/* mark.c - whose a machine is, and when the rule for orphans may end one */
#include "config.h"

#include <jansson.h>

#include "core/orphans.h"
#include "tests/unit/tap.h"

#define US "5f0c2a4e-6d0f-4a53-9a3f-0b6f3c1f7c11"

static void
marks (void)
{
  static const struct {
    const char *owner, *lease, *token;
    enum mark_whose whose;
    int64_t number;
    bool whole;
  } all[] = {
    { US, "17", "feed", MARK_OURS, 17, true },
    { US, "17", NULL, MARK_OURS, 17, false },
    { US, NULL, "feed", MARK_OURS, 0, false },
    { US, "0", "feed", MARK_OURS, 0, false },
    { US, "-3", "feed", MARK_OURS, 0, false },
    { US, "17x", "feed", MARK_OURS, 0, false },
    { US, " 17", "feed", MARK_OURS, 0, false },
    { US, "99999999999999999999", "feed", MARK_OURS, INT64_MAX, true },
    { US "x", "17", "feed", MARK_OTHER, 17, false },
    { "5f0c2a4e", "17", "feed", MARK_OTHER, 17, false },
    { "5F0C2A4E-6D0F-4A53-9A3F-0B6F3C1F7C11", "17", "feed", MARK_OTHER, 17, false },
    { "", "17", "feed", MARK_NONE, 17, false },
    { NULL, "17", "feed", MARK_NONE, 17, false },
    { NULL, NULL, NULL, MARK_NONE, 0, false },
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    json_t *tags = json_object ();
    struct mark m;

    if (all[i].owner)
      json_object_set_new (tags, "gpubroker-owner", json_string (all[i].owner));
    if (all[i].lease)
      json_object_set_new (tags, "gpubroker-lease", json_string (all[i].lease));
    if (all[i].token)
      json_object_set_new (tags, "gpubroker-token", json_string (all[i].token));
    m = mark_of (tags, US);
    ok (m.whose == all[i].whose && m.lease == all[i].number && mark_whole (&m) == all[i].whole,
        "owner %s, lease %s, token %s: %s", all[i].owner ? all[i].owner : "-",
        all[i].lease ? all[i].lease : "-", all[i].token ? all[i].token : "-", mark_name (m.whose));
    json_decref (tags);
  }
  ok (mark_of (NULL, US).whose == MARK_NONE, "no tags at all are nobody's");
  ok (mark_of (NULL, "").whose == MARK_NONE, "not even when we have no name yet");
}

/* Everything that has to hold, one by one not. */
static void
rule (void)
{
  const struct orphan_case good = { .mark = { MARK_OURS, US, "feed", 7 },
                                    .complete = true,
                                    .floor = 6,
                                    .next = 8,
                                    .first_seen_ms = 1000,
                                    .now_ms = 61000,
                                    .grace_ms = 60000 };
  struct orphan_case c = good;

  ok (orphan_due (&c), "ours, seen for the whole grace, in a scope listed whole");
#define NOT(change, why)                                                                           \
 c = good;                                                                                         \
 change;                                                                                           \
 ok (!orphan_due (&c), "not %s", why)
  NOT (c.grace_ms = 0, "while the rule is off");
  NOT (c.now_ms--, "a millisecond before the grace is over");
  NOT (c.now_ms = 0, "by a clock that went back");
  NOT (c.first_seen_ms = 0, "when it is not known since when it was seen");
  NOT (c.complete = false, "in a scope that was not listed whole");
  NOT (c.frozen = true, "while something is frozen");
  NOT (c.ignored = true, "when a person said to ignore it");
  NOT (c.floor = 7, "with a number that other books gave out");
  NOT (c.next = 7, "with a number that was never given out");
  NOT (c.mark.whose = MARK_OTHER, "with another's mark");
  NOT (c.mark.whose = MARK_NONE, "with nobody's mark");
  NOT (c.mark.token = "", "without token");
  NOT (c.mark.lease = 0, "without number");
#undef NOT
}

int
main (void)
{
  marks ();
  rule ();
  return done ();
}
