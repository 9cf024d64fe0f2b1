/* undo.c - a request whose rows could not be written or read has not happened
 *
 * The store takes its rows back; here memory follows: leases and operations that the request
 * changed are read again, what it began is dropped, what it wanted to say is not said.  A lease
 * that was put back does its work afresh, as after a restart.
 */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/log.h"

void
undo_mark (struct broker *b, struct undo *u, bool changes)
{
  size_t size = changes ? b->waiters.n * sizeof *u->waiters : 0;

  *u = (struct undo){ .outbox = b->outbox.n,
                      .ops = b->ops.n,
                      .followers = b->followers.n,
                      .nwaiters = b->waiters.n,
                      .next_lease = b->next_lease,
                      .next_op = b->next_op,
                      .seq = b->seq };
  if (size && !(u->waiters = malloc (size)))
    abort ();
  if (size)
    memcpy (u->waiters, b->waiters.at, size);
  b->touched.n = 0;
  store_mark (b->store);
}

void
undo_touch (struct lease *l)
{
  *vec_push (&l->broker->touched) = l->number;
}

static void
drop_lease (struct broker *b, struct lease *l)
{
  size_t i = 0;

  while (b->leases.at[i] != l)
    i++;
  turn_let_go (b, l);
  memmove (&b->leases.at[i], &b->leases.at[i + 1], (--b->leases.n - i) * sizeof b->leases.at[0]);
}

/* Requests make no attempts, so those that are there are those of the books. */
static void
put_back (struct broker *b, int64_t number)
{
  struct lease *l = engine_lease (b, number), *was = l ? store_lease (b->store, number) : NULL;

  if (!l || store_failed (b->store))
    return;
  call_give_up (l);
  if (was) {
    lease_swap (l, was);
    lease_free (was);
    engine_later (l, 0);
  } else {
    drop_lease (b, l);
  }
}

static void
put_ops_back (struct broker *b, const struct undo *u)
{
  while (b->ops.n > u->ops)
    op_free (b->ops.at[--b->ops.n]);
  for (size_t i = 0; i < b->ops.n; i++)
    if (b->ops.at[i]->state != OP_RUNNING) { /* ended by this request, or before it in this turn */
      struct op *was = store_op (b->store, b->ops.at[i]->number);

      if (was) {
        op_free (b->ops.at[i]);
        b->ops.at[i] = was;
      }
    }
}

static void
put_talk_back (struct broker *b, struct undo *u)
{
  turn_unsay (b, u->outbox);
  b->followers.n = u->followers;
  b->waiters.n = u->nwaiters; /* its room never shrinks */
  if (u->waiters)
    memcpy (b->waiters.at, u->waiters, u->nwaiters * sizeof *u->waiters);
}

bool
undo_if_failed (struct broker *b, struct undo *u, struct err *why)
{
  bool failed = store_failed (b->store), undone = failed && store_undo (b->store, why) == 0;

  if (!failed)
    store_keep (b->store);
  if (undone) {
    put_talk_back (b, u);
    for (size_t i = 0; i < b->touched.n; i++)
      put_back (b, b->touched.at[i]);
    put_ops_back (b, u);
    b->next_lease = u->next_lease;
    b->next_op = u->next_op;
    b->seq = u->seq;
    log_at (LOG_ALERT, "request.undone", "error=\"%s\"", why->text);
  }
  free (u->waiters);
  return undone;
}
