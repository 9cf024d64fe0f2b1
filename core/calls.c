/* calls.c - asking a child about a lease or an attempt
 *
 * A result finds its lease and attempt again by number, and counts only while they still wait for
 * that very call: what was given up is dropped, except that an attempt never gives up a mutation.
 */
#include "config.h"

#include "core/broker.h"

struct asked {
  struct broker *broker;
  int64_t lease, attempt; /* attempt 0: the lease's own call */
  struct child *child;
  call_item *item;
  call_done *done;
};

static bool
find (const struct asked *q, uint32_t id, struct lease **l, struct attempt **a)
{
  *a = NULL;
  *l = engine_lease (q->broker, q->lease);
  if (!*l)
    return false;
  if (q->attempt == 0)
    return (*l)->call == id && (*l)->call_child == q->child; /* each child counts for itself */
  for (size_t i = 0; i < (*l)->nattempts; i++)
    if ((*l)->attempts[i]->number == q->attempt)
      *a = (*l)->attempts[i];
  return *a && (*a)->call == id;
}

static void
on_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  struct asked *q = ctx;
  struct lease *l;
  struct attempt *a;

  if (q->item && find (q, id, &l, &a))
    q->item (l, a, item);
  if (want_ack)
    child_ack (q->child, id);
}

static void
on_result (void *ctx, uint32_t id, const struct call_result *r)
{
  struct asked *q = ctx;
  struct lease *l;
  struct attempt *a;

  if (find (q, id, &l, &a)) {
    if (a)
      a->call = 0;
    else
      l->call = 0;
    q->done (l, a, r);
    /* Its timer may have rung meanwhile, and found the call in its way. */
    if (a && !a->call && !a->timer)
      attempt_later (a, 0);
  }
  free (q);
}

static uint32_t
ask (struct lease *l, const struct attempt *a, struct child *c, const struct call *call)
{
  struct asked *q = calloc (1, sizeof *q);
  char key[48];

  if (!q)
    abort ();
  *q = (struct asked){ l->broker, l->number, a ? a->number : 0, c, call->item, call->done };
  snprintf (key, sizeof key, "%s-%lld", l->id, (long long) (a ? a->number : 0));
  return child_call (c, &(struct child_call){ .call = call->call,
                                              .key = key,
                                              .args = call->args,
                                              .deadline_ms = call->deadline_ms,
                                              .mutates = call->mutates,
                                              .secrets = call->secrets,
                                              .nsecrets = call->nsecrets,
                                              .on_item = on_item,
                                              .on_result = on_result,
                                              .ctx = q });
}

void
call_lease (struct lease *l, struct child *c, const struct call *call)
{
  call_give_up (l);
  l->call_child = c;
  l->call = ask (l, NULL, c, call);
}

void
call_attempt (struct attempt *a, struct child *c, const struct call *call)
{
  a->call = ask (a->lease, a, c, call);
}

void
call_give_up (struct lease *l)
{
  if (l->call)
    child_cancel (l->call_child, l->call);
  l->call = 0;
}
