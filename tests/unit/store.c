/* store.c - what is put is what is read, by this process and by the next */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/json.h"
#include "core/store.h"
#include "tests/unit/tap.h"

static char folder[] = "/tmp/gpubroker-store-XXXXXX";

static struct lease *seen;
static int nseen;

static void
take (void *ctx, struct lease *l)
{
  (void) ctx;
  lease_free (seen);
  seen = l;
  nseen++;
}

static void
put_lease (struct store *s)
{
  struct lease *l = lease_new (7);
  struct attempt *a = attempt_new (l);

  set_str (&l->name, "train");
  set_str (&l->owner, "uid:1000");
  l->state = LEASE_BOOTING;
  l->expires_ms = 123;
  a->state = ATTEMPT_CREATED;
  a->wanted = a->billed = true;
  set_str (&a->provider, "shadeform");
  set_str (&a->token, "t0k");
  set_str (&a->machine.id, "m-1");
  a->price_udollar = 2500000;
  a->created_ms = 1000;
  store_put_lease (s, l);
  store_put_attempt (s, l, a);
  lease_free (l);
}

static void
test_turns (struct store *s)
{
  AUTO_JSON json_t *body = json_object ();
  struct err e = ERR_INIT;

  ok (!store_dirty (s), "nothing to commit at first");
  put_lease (s);
  is_num (store_put_event (s, 1, 7, "lease.l7.booting", body), 1, "the first event has number 1");
  is_num (store_put_event (s, 2, 7, "lease.l7.ready", body), 2, "the second 2");
  ok (store_dirty (s), "a put opens the turn");
  ok (store_commit (s, &e) == 0, "and commit closes it");
  ok (!store_dirty (s), "nothing is left over");
}

static void
test_reading (struct store *s)
{
  struct err e = ERR_INIT;
  struct attempt *a;

  store_each_live (s, take, NULL, &e);
  is_num (nseen, 1, "one live lease");
  is_str (seen->name, "train", "its name");
  is_num (seen->expires_ms, 123, "its expiry");
  ok (seen->state == LEASE_BOOTING, "its state");
  a = lease_attempt (seen);
  ok (a && a->state == ATTEMPT_CREATED && a->wanted, "its attempt");
  is_str (a->machine.id, "m-1", "the machine");
  is_num (attempt_spent (a, 1000 + 3600000), 2500000, "an hour costs the hourly price");
  is_num (lease_rate (seen), 2500000, "and that is its rate");
}

static void
test_ends (struct store *s)
{
  struct err e = ERR_INIT;
  struct attempt *a = lease_attempt (seen);

  seen->state = LEASE_RELEASED;
  seen->ended_ms = 50;
  store_put_lease (s, seen);
  nseen = 0;
  store_each_live (s, take, NULL, &e);
  is_num (nseen, 1, "an ended lease whose machine is not proven gone stays live");
  a = seen->attempts[0];
  a->state = ATTEMPT_GONE;
  a->ended_ms = 1000 + 1800000;
  store_put_attempt (s, seen, a);
  store_put_lease (s, seen);
  store_commit (s, &e);
  nseen = 0;
  store_each_live (s, take, NULL, &e);
  is_num (nseen, 0, "once it is, it is over");
  store_each_ended (s, 0, 10, take, NULL, &e);
  is_num (nseen, 1, "and among the ended");
  is_num (lease_spent (seen, 9999999999), 1250000, "what it cost stays on the books");
  store_prune (s, 100);
  store_commit (s, &e);
  ok (store_lease (s, 7) != NULL, "the highest number is never forgotten");
}

static void
test_keys (struct store *s)
{
  struct err e = ERR_INIT;
  struct op *o = op_new (3), *back;

  set_str (&o->verb, "rent");
  set_str (&o->owner, "uid:1000");
  set_str (&o->key, "k1");
  set_str (&o->body_hash, "abc");
  store_put_op (s, o);
  back = store_op_by_key (s, "uid:1000", "k1");
  ok (back && back->number == 3, "an operation is found by its key within the turn");
  op_free (back);
  ok (store_op_by_key (s, "uid:1001", "k1") == NULL, "keys are per principal");
  o->state = OP_DONE;
  set_str (&o->key, NULL);
  store_put_op (s, o);
  ok (store_op_by_key (s, "uid:1000", "k1") == NULL, "a key can be given back");
  store_commit (s, &e);
  op_free (o);
}

static void
test_lock (void)
{
  struct err e = ERR_INIT;

  ok (store_open (folder, &e) == NULL && e.kind == ERR_CONFLICT,
      "a second daemon on one store is refused");
  printf ("# %s\n", e.text);
}

int
main (void)
{
  struct err e = ERR_INIT;
  struct store *s;

  if (!mkdtemp (folder) || !(s = store_open (folder, &e))) {
    printf ("Bail out! %s\n", e.text);
    return 1;
  }
  test_turns (s);
  test_lock ();
  store_close (s);
  s = store_open (folder, &e);
  ok (s != NULL, "the store opens again");
  test_reading (s);
  test_ends (s);
  test_keys (s);
  is_num (store_last_event (s), 2, "event numbers go on");
  is_num (store_max_lease (s), 7, "lease numbers too");
  store_close (s);
  lease_free (seen);
  return done ();
}
