/* rent_boot.c - from a committed attempt to a machine that answers SSH */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/identity.h"
#include "core/json.h"

enum { KNOCKS = 3 };

/* ---- ordering ---- */

void
rent_ordering (struct lease *l)
{
  struct attempt *a = lease_attempt (l);

  if (!a) {
    engine_event (l, LEV_NEXT);
    return;
  }
  if (a->state == ATTEMPT_CREATED) {
    engine_event (l, LEV_CREATED);
    return;
  }
  feed_step (l, a->state == ATTEMPT_UNKNOWN ? "find" : "create", a->provider);
  attempt_work (a);
}

/* ---- booting ---- */

json_t *
rent_target (const struct attempt *a)
{
  static const char *const usual[] = { "ubuntu", "root", "debian" };
  const struct machine *m = &a->machine;
  json_t *users = json_array (), *t;

  if (m->ssh_user)
    json_array_append_new (users, json_string (m->ssh_user));
  for (size_t i = 0; i < N_ELEMENTS (usual) && !m->hostkey && !lease_own (a->lease); i++)
    if (!m->ssh_user || strcmp (m->ssh_user, usual[i]) != 0)
      json_array_append_new (users, json_string (usual[i]));
  t = json_pack ("{s:s, s:I, s:o}", "host", m->address, "port",
                 (json_int_t) (m->ssh_port ? m->ssh_port : 22), "users", users);
  json_put_str (t, "hostkey", m->hostkey);
  return t;
}

char *
rent_lent_key (const struct lease *l, struct child_secret *s)
{
  char *key = lease_lent_key (l) ? identity_get (l, &s->len) : NULL;

  s->name = "ssh_key";
  s->bytes = key;
  return key;
}

void
rent_forget_key (char *key, const struct child_secret *s)
{
  if (key)
    explicit_bzero (key, s->len);
  free (key);
}

void
rent_ssh (struct lease *l, const struct call *call)
{
  struct child_secret all[2] = { { NULL, NULL, 0 } };
  struct call with = *call;
  char *key;

  if (call->nsecrets)
    all[0] = call->secrets[0];
  key = rent_lent_key (l, &all[call->nsecrets]);
  with.secrets = all;
  with.nsecrets += key ? 1 : 0;
  call_lease (l, l->broker->ssh, &with);
  rent_forget_key (key, &all[call->nsecrets]);
}

/* The first time another offer may do better; a machine that somebody kept or used stays the one.
 */
static void
failed_boot (struct lease *l, const char *code, const char *text, enum lease_event ev)
{
  struct attempt *a = lease_attempt (l);

  if (l->ready_ms || l->failed || l->adopted || lease_own (l)) {
    if (a && !a->machine.hostkey && !l->ready_ms)
      l->keep_on_failure = false; /* it was never reached: there is nothing to keep */
    engine_fail (l,
                 json_pack ("{s:s, s:s, s:s, s:b}", "step", "boot", "code", code, "message", text,
                            "retryable", 1),
                 false);
    return;
  }
  if (a)
    attempt_reason (a, code, text);
  feed_step (l, "boot", text);
  engine_event (l, ev);
}

/* One's own machine runs already: a wrong key or address does not get better by waiting. */
static bool
own_too_late (struct lease *l, const struct err *why)
{
  bool never = strcmp (why->code, "ssh-auth") == 0 || strcmp (why->code, "ssh-dns") == 0;

  if (++l->tries < KNOCKS && never)
    return false;
  if (!never && now_ms () < l->state_ms + l->broker->times.knock)
    return false;
  failed_boot (l, why->code[0] ? why->code : "ssh", why->text, LEV_NEXT);
  return true;
}

static bool
too_late (struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  struct memory_what what;

  if (freeze_holds (l->broker) || now_ms () < l->state_ms + l->broker->times.boot)
    return false;
  what = offers_what (l->broker->offers, a->provider, a->offer);
  memory_fail (l->broker->memory, &what, MEMORY_LATE_BOOT, "it did not answer SSH in time",
               now_ms ());
  failed_boot (l, "late-boot", l->step_text ? l->step_text : "it did not answer SSH in time",
               LEV_NEXT);
  return true;
}

static void
answers (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = lease_attempt (l);

  (void) none;
  if (r->err.kind == ERR_NONE) {
    set_str (&a->machine.hostkey, json_str (r->value, "hostkey", a->machine.hostkey));
    set_str (&a->machine.ssh_user, json_str (r->value, "user", a->machine.ssh_user));
    attempt_save (a);
    json_decref (l->facts);
    l->facts = json_incref (json_object_get (r->value, "facts"));
    if (lease_own (l))
      own_expect (a, l->facts);
    engine_event (l, LEV_REACHED);
    return;
  }
  if (r->err.kind == ERR_CONFLICT) {
    engine_fail (l,
                 json_pack ("{s:s, s:s, s:s, s:b}", "step", "ssh", "code", r->err.code, "message",
                            r->err.text, "retryable", 0),
                 false);
    return;
  }
  feed_step (l, "ssh", r->err.text);
  if (lease_own (l) ? !own_too_late (l, &r->err) : !too_late (l)) {
    l->stage = 0; /* the address may have changed */
    engine_later (l, l->broker->times.ssh_retry);
  }
}

static void
boot_item (struct lease *l, struct attempt *none, const json_t *item)
{
  struct attempt *a = lease_attempt (l);
  const json_t *machine;
  size_t i;

  (void) none;
  json_array_foreach (json_object_get (item, "machines"), i, machine) {
    json_object_set (l->quoted, "machine", (json_t *) machine);
    attempt_learn (a, machine);
  }
}

static void
judge (struct lease *l, const json_t *machine)
{
  struct attempt *a = lease_attempt (l);
  const char *state = json_str (machine, "state", "unknown"),
             *raw = json_str (machine, "raw_state", state);

  if (strcmp (state, "error") == 0) {
    struct err why = { .kind = err_kind_parse (json_str (machine, "fail_kind", "capacity")) };

    snprintf (why.text, sizeof why.text, "%s",
              json_str (machine, "fail_text", "the provider says error"));
    attempt_remember (a, &why);
    failed_boot (l, "machine-error", why.text, LEV_NEXT);
  } else if (strcmp (state, "stopped") == 0 || strcmp (state, "deleting") == 0 ||
             strcmp (state, "stopping") == 0) {
    failed_boot (l, "machine-stopped", raw, LEV_STOPPED);
  } else if (strcmp (state, "running") == 0 && a->machine.address) {
    l->stage = 1;
    engine_work (l);
  } else {
    feed_step (l, "boot", raw);
    if (!too_late (l))
      engine_later (l, l->broker->times.poll);
  }
}

static void
booted (struct lease *l, struct attempt *none, const struct call_result *r)
{
  struct attempt *a = lease_attempt (l);
  const json_t *machine = json_object_get (l->quoted, "machine");
  bool gone = attempt_answer_gone (a, r);

  (void) none;
  if (r->err.kind == ERR_NONE && machine && !gone) {
    a->absent = 0;
    judge (l, machine);
    return;
  }
  /* Not found soon after a create is the cloud's lag; later, and again, it is the truth. */
  if (gone && attempt_visible (a) && ++a->absent >= 3) {
    failed_boot (l, "machine-vanished", "the provider says that it is gone", LEV_GONE);
    return;
  }
  feed_step (l, "boot", gone ? "the provider does not show it" : r->err.text);
  if (!too_late (l))
    engine_later (l, backoff (&l->broker->times, ++l->tries));
}

void
rent_booting (struct lease *l)
{
  struct attempt *a = lease_attempt (l);
  struct provider *p = a ? provider_find (l->broker, a->provider) : NULL;

  if (!a) {
    engine_event (l, LEV_GONE);
    return;
  }
  if (l->stage == 1 || lease_own (l)) {
    rent_ssh (l, &(struct call){ "probe", json_pack ("{s:o}", "target", rent_target (a)),
                                 l->broker->times.call / 2, false, NULL, 0, NULL, answers });
    return;
  }
  if (!p) {
    engine_later (l, l->broker->times.retry_max);
    return;
  }
  json_decref (l->quoted);
  l->quoted = json_object ();
  call_lease (l, p->child,
              &(struct call){ "get", attempt_ref (a), l->broker->times.call, false, NULL, 0,
                              boot_item, booted });
}
