/* rebuild.c - lost books, made again from the marks in the clouds
 *
 * gpubrokerd --rebuild serves nobody and ends nothing: every cloud is listed until it was listed
 * whole or patience is over, what carries our whole mark becomes a lease, and the process ends.
 * Running it again adds what is missing.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/orphans.h"

enum { AGAIN_MS = 1000 };

static void
tell (const struct provider *p, const json_t *o, const char *what)
{
  char text[300];

  orphan_text (p, o, text, sizeof text);
  printf ("%-8s %s\n", what, text);
}

static void
take (struct provider *p)
{
  for (size_t i = json_array_size (p->orphans); i-- > 0;) {
    AUTO_JSON json_t *o = json_incref (json_array_get (p->orphans, i));
    struct mark m = mark_of (json_object_get (o, "tags"), p->broker->instance);

    if (mark_whole (&m))
      tell (p, o, orphan_rebuild (p, o)->id);
    else if (p->rebuilt)
      tell (p, o, mark_name (m.whose));
  }
}

static void
stop (void *ctx)
{
  loop_stop (((struct broker *) ctx)->loop);
}

/* One turn later, so that what was taken last is in the books. */
static void
end (struct broker *b, int code)
{
  printf ("%zu leases in the books, $%.2f/h%s\n", b->leases.n, (double) budget_rate (b, NULL) / 1e6,
          code ? "; run it again for the rest" : "");
  fflush (stdout);
  b->exit_code = code;
  loop_after (b->loop, 1, stop, b);
}

static void
again (void *ctx)
{
  provider_reconcile (ctx);
}

void
rebuild_listed (struct provider *p)
{
  struct broker *b = p->broker;

  p->rebuilt = orphans_complete (p);
  take (p);
  if (!p->rebuilt)
    loop_after (b->loop, AGAIN_MS, again, p);
  for (size_t i = 0; i < b->providers.n; i++)
    if (!b->providers.at[i]->rebuilt)
      return;
  end (b, 0);
}

static void
late (void *ctx)
{
  struct broker *b = ctx;

  for (size_t i = 0; i < b->providers.n; i++) {
    const struct provider *p = b->providers.at[i];

    if (!p->rebuilt)
      printf ("%s was not listed whole: %s\n", p->name,
              p->problem.text[0] ? p->problem.text : "see the log");
  }
  end (b, 1);
}

void
rebuild_begin (struct broker *b)
{
  loop_after (b->loop, 2 * b->times.listing, late, b);
  if (b->providers.n == 0)
    late (b);
}
