/* store.c - what is put is what is read, by this process and by the next */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
  struct lease *last;

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
  last = store_lease (s, 7);
  ok (last && last->nattempts == 1, "the highest number is never forgotten, nor its attempts");
  lease_free (last);
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
put_key (struct store *s, int64_t number, const char *key)
{
  struct op *o = op_new (number);

  set_str (&o->verb, "rent");
  set_str (&o->owner, "uid:1000");
  set_str (&o->key, key);
  store_put_op (s, o);
  op_free (o);
}

static bool
has_op (struct store *s, int64_t number)
{
  struct op *o = store_op (s, number);
  bool has = o != NULL;

  op_free (o);
  return has;
}

/* Two operations cannot have one key: SQLite refuses the second row. */
static void
test_undo (struct store *s)
{
  struct err e = ERR_INIT;

  put_key (s, 10, "k10");
  store_mark (s);
  put_key (s, 11, "k11");
  put_key (s, 12, "k10");
  ok (store_failed (s), "a put that SQLite refuses is seen");
  put_key (s, 13, "k13");
  ok (store_undo (s, &e) == 0 && !store_failed (s), "what came since the mark is taken back");
  ok (strstr (e.text, "operation: UNIQUE") != NULL, "and it is told why: %s", e.text);
  store_mark (s);
  put_key (s, 14, "k14");
  store_keep (s);
  ok (store_commit (s, &e) == 0, "the rest of the turn is committed");
  ok (has_op (s, 10) && has_op (s, 14), "what came before and after is there");
  ok (!has_op (s, 11) && !has_op (s, 12) && !has_op (s, 13), "what was taken back is not");
  ok (!store_dirty (s), "a mark without a put begins nothing");
}

static void
test_backup (struct store *s)
{
  struct err e = ERR_INIT;
  char to[64], part[64];
  struct stat st;

  snprintf (to, sizeof to, "%s/copy", folder);
  snprintf (part, sizeof part, "%s/copy.part", folder);
  put_key (s, 20, "k20");
  ok (store_copy (folder, to, &e) == 0, "another process copies the books in the middle of a turn");
  store_commit (s, &e);
  ok (stat (to, &st) == 0 && (st.st_mode & 0777) == 0600, "for their owner alone");
  ok (access (part, F_OK) < 0, "nothing half is left");
  ok (store_backup (s, to, &e) == 0, "a copy replaces an older one");
  ok (store_backup (s, "/nowhere/copy", &e) < 0 && strstr (e.text, "/nowhere/copy"),
      "a place that is not there is named");
}

/* A turn that is broken outside of a request stays broken: the daemon exits. */
static void
test_broken (struct store *s)
{
  struct err e = ERR_INIT;

  put_key (s, 30, "k30");
  put_key (s, 31, "k30");
  store_mark (s);
  ok (store_undo (s, &e) < 0, "no request can mend a turn that was broken before it");
  ok (store_commit (s, &e) < 0, "and its commit fails");
  ok (!has_op (s, 30), "with nothing of it in the books");
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
  test_undo (s);
  test_backup (s);
  is_num (store_last_event (s), 2, "event numbers go on");
  is_num (store_max_lease (s), 7, "lease numbers too");
  test_broken (s);
  store_close (s);
  lease_free (seen);
  return done ();
}
