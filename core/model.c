/* model.c - leases, attempts and operations, to JSON and back
 *
 * One row per member in the tables below; a member that is not in a table is not remembered.
 */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/model.h"
#include "core/vec.h"

enum type { STR, I64, BOOL, JSON };

struct field {
  const char *name;
  enum type type;
  size_t at;
};

#define F(s, t, m)                                                                                 \
 {                                                                                                 \
#  m, t, offsetof(struct s, m)                                                                     \
 }

static const struct field lease_fields[] = {
  F (lease, I64, number),          F (lease, STR, name),
  F (lease, STR, owner),           F (lease, STR, cluster),
  F (lease, JSON, request),        F (lease, I64, created_ms),
  F (lease, I64, ready_ms),        F (lease, I64, ended_ms),
  F (lease, I64, state_ms),        F (lease, I64, expires_ms),
  F (lease, I64, deadline_ms),     F (lease, I64, keep_until_ms),
  F (lease, I64, reserve_udollar), F (lease, BOOL, keep_on_failure),
  F (lease, I64, keep_ms),         F (lease, BOOL, failed),
  F (lease, STR, cause_code),      F (lease, STR, cause_text),
  F (lease, JSON, failure),        F (lease, BOOL, no_drain),
  F (lease, BOOL, evict_force),    F (lease, I64, drain_timeout_ms),
  F (lease, JSON, tried),          F (lease, BOOL, adopted),
};

static const struct field attempt_fields[] = {
  F (attempt, I64, number),        F (attempt, BOOL, wanted),
  F (attempt, BOOL, billed),       F (attempt, STR, provider),
  F (attempt, STR, token),         F (attempt, STR, name),
  F (attempt, JSON, offer),        F (attempt, JSON, create),
  F (attempt, I64, price_udollar), F (attempt, I64, max_price_udollar),
  F (attempt, I64, started_ms),    F (attempt, I64, created_ms),
  F (attempt, I64, ended_ms),      F (attempt, I64, sent_wall_ms),
  F (attempt, STR, reason_kind),   F (attempt, STR, reason_code),
  F (attempt, STR, reason_text),
  F (attempt, JSON, resources),    F (attempt, I64, gone_seen),
  F (attempt, I64, gone_ms),       F (attempt, I64, remove_tries),
  F (attempt, BOOL, joined),       F (attempt, BOOL, cleaned),
  F (attempt, BOOL, authorised),   F (attempt, BOOL, node_left),
};

static const struct field machine_fields[] = {
  F (machine, STR, id),
  F (machine, STR, scope),
  F (machine, STR, plugin_data),
  F (machine, STR, address),
  F (machine, STR, ssh_user),
  F (machine, STR, hostkey),
  F (machine, I64, ssh_port),
  F (machine, I64, created_ms),
  F (machine, STR, state),
  F (machine, STR, raw_state),
  F (machine, STR, cloud),
  F (machine, STR, region),
  F (machine, STR, instance_type),
};

static const struct field op_fields[] = {
  F (op, I64, number),    F (op, STR, verb),      F (op, STR, owner),      F (op, STR, key),
  F (op, STR, body_hash), F (op, I64, lease),     F (op, I64, started_ms), F (op, I64, ended_ms),
  F (op, JSON, error),    F (op, JSON, accepted),
};

static const char *const op_states[] = { "running", "done", "failed", "cancelled" };

/* ---- tables to JSON and back ---- */

static void
pack (json_t *out, const struct field *f, size_t n, const void *from)
{
  for (size_t i = 0; i < n; i++) {
    const char *at = (const char *) from + f[i].at;

    switch (f[i].type) {
    case STR:
      json_put_str (out, f[i].name, *(char *const *) (const void *) at);
      break;
    case I64:
      if (*(const int64_t *) (const void *) at)
        json_put_i64 (out, f[i].name, *(const int64_t *) (const void *) at);
      break;
    case BOOL:
      if (*(const bool *) (const void *) at)
        json_object_set_new (out, f[i].name, json_true ());
      break;
    case JSON:
      if (*(json_t *const *) (const void *) at)
        json_object_set (out, f[i].name, *(json_t *const *) (const void *) at);
      break;
    }
  }
}

static void
unpack (const json_t *from, const struct field *f, size_t n, void *into)
{
  for (size_t i = 0; i < n; i++) {
    char *at = (char *) into + f[i].at;

    switch (f[i].type) {
    case STR:
      set_str ((char **) (void *) at, json_str (from, f[i].name, NULL));
      break;
    case I64:
      *(int64_t *) (void *) at = json_i64 (from, f[i].name, 0);
      break;
    case BOOL:
      *(bool *) (void *) at = json_bool (from, f[i].name, false);
      break;
    case JSON:
      *(json_t **) (void *) at = json_incref (json_object_get (from, f[i].name));
      break;
    }
  }
}

static void
release (const struct field *f, size_t n, void *from)
{
  for (size_t i = 0; i < n; i++) {
    char *at = (char *) from + f[i].at;

    if (f[i].type == STR)
      free (*(char **) (void *) at);
    else if (f[i].type == JSON)
      json_decref (*(json_t **) (void *) at);
  }
}

/* Both are of one type; a row's bytes change places. */
static void
swap (const struct field *f, size_t n, void *x, void *y)
{
  static const size_t sizes[] = { [STR] = sizeof (char *),
                                  [I64] = sizeof (int64_t),
                                  [BOOL] = sizeof (bool),
                                  [JSON] = sizeof (json_t *) };

  for (size_t i = 0; i < n; i++) {
    char *a = (char *) x + f[i].at, *b = (char *) y + f[i].at, t[sizeof (int64_t)];
    size_t size = sizes[f[i].type];

    memcpy (t, a, size);
    memcpy (a, b, size);
    memcpy (b, t, size);
  }
}

#define SWAP(table, x, y)         swap (table, N_ELEMENTS (table), x, y)
#define PACK(out, table, from)    pack (out, table, N_ELEMENTS (table), from)
#define UNPACK(from, table, into) unpack (from, table, N_ELEMENTS (table), into)
#define RELEASE(table, from)      release (table, N_ELEMENTS (table), from)

static void *
xcalloc (size_t size)
{
  void *p = calloc (1, size);

  if (!p)
    abort ();
  return p;
}

void
set_str (char **at, const char *value)
{
  char *copy = value ? strdup (value) : NULL;

  free (*at);
  *at = copy;
}

/* ---- lives ---- */

struct lease *
lease_new (int64_t number)
{
  struct lease *l = xcalloc (sizeof *l);

  l->number = number;
  snprintf (l->id, sizeof l->id, "l%lld", (long long) number);
  return l;
}

static void
attempt_free (struct attempt *a)
{
  RELEASE (machine_fields, &a->machine);
  RELEASE (attempt_fields, a);
  free (a);
}

void
lease_forget_token (struct lease *l)
{
  if (l->join_token)
    explicit_bzero (l->join_token, strlen (l->join_token));
  free (l->join_token);
  l->join_token = NULL;
}

void
lease_free (struct lease *l)
{
  if (!l)
    return;
  for (size_t i = 0; i < l->nattempts; i++)
    attempt_free (l->attempts[i]);
  free (l->attempts);
  lease_forget_token (l);
  free (l->step_name);
  free (l->step_text);
  json_decref (l->minted);
  json_decref (l->quoted);
  json_decref (l->facts);
  json_decref (l->rows);
  RELEASE (lease_fields, l);
  free (l);
}

struct attempt *
attempt_new (struct lease *l)
{
  struct attempt *a = xcalloc (sizeof *a);

  l->attempts = realloc (l->attempts, (l->nattempts + 1) * sizeof *l->attempts);
  if (!l->attempts)
    abort ();
  a->lease = l;
  a->number = l->nattempts ? l->attempts[l->nattempts - 1]->number + 1 : 1;
  l->attempts[l->nattempts++] = a;
  return a;
}

struct attempt *
lease_attempt (const struct lease *l)
{
  for (size_t i = l->nattempts; i-- > 0;)
    if (l->attempts[i]->wanted && !attempt_ended (l->attempts[i]->state))
      return l->attempts[i];
  return NULL;
}

struct op *
op_new (int64_t number)
{
  struct op *o = xcalloc (sizeof *o);

  o->number = number;
  snprintf (o->id, sizeof o->id, "op%lld", (long long) number);
  return o;
}

void
op_free (struct op *o)
{
  if (!o)
    return;
  RELEASE (op_fields, o);
  free (o);
}

/* ---- the store's form ---- */

json_t *
lease_pack (const struct lease *l)
{
  json_t *j = json_object ();

  PACK (j, lease_fields, l);
  json_put_str (j, "state", lease_state_name (l->state));
  return j;
}

struct lease *
lease_unpack (const json_t *j)
{
  int state = lease_state_parse (json_str (j, "state", NULL));
  struct lease *l;

  if (state < 0)
    return NULL;
  l = lease_new (json_i64 (j, "number", 0));
  UNPACK (j, lease_fields, l);
  l->state = (enum lease_state) state;
  return l;
}

json_t *
attempt_pack (const struct attempt *a)
{
  json_t *j = json_object (), *m = json_object ();

  PACK (j, attempt_fields, a);
  PACK (m, machine_fields, &a->machine);
  json_object_set_new (j, "machine", m);
  json_put_str (j, "state", attempt_state_name (a->state));
  return j;
}

struct attempt *
attempt_unpack (struct lease *l, const json_t *j)
{
  int state = attempt_state_parse (json_str (j, "state", NULL));
  struct attempt *a;

  if (state < 0)
    return NULL;
  a = attempt_new (l);
  UNPACK (j, attempt_fields, a);
  UNPACK (json_object_get (j, "machine"), machine_fields, &a->machine);
  a->state = (enum attempt_state) state;
  return a;
}

static void
attempt_swap (struct attempt *x, struct attempt *y)
{
  enum attempt_state state = x->state;

  x->state = y->state;
  y->state = state;
  SWAP (attempt_fields, x, y);
  SWAP (machine_fields, &x->machine, &y->machine);
}

void
lease_swap (struct lease *x, struct lease *y)
{
  enum lease_state state = x->state;

  x->state = y->state;
  y->state = state;
  SWAP (lease_fields, x, y);
  for (size_t i = 0; i < x->nattempts && i < y->nattempts; i++)
    attempt_swap (x->attempts[i], y->attempts[i]);
}

const char *
op_state_name (enum op_state s)
{
  return op_states[s];
}

json_t *
op_pack (const struct op *o)
{
  json_t *j = json_object ();

  PACK (j, op_fields, o);
  json_put_str (j, "state", op_states[o->state]);
  return j;
}

struct op *
op_unpack (const json_t *j)
{
  const char *state = json_str (j, "state", "");
  struct op *o;

  if (!json_str (j, "verb", NULL) || !json_str (j, "owner", NULL))
    return NULL;
  o = op_new (json_i64 (j, "number", 0));
  UNPACK (j, op_fields, o);
  for (size_t i = 0; i < N_ELEMENTS (op_states); i++)
    if (strcmp (op_states[i], state) == 0)
      o->state = (enum op_state) i;
  return o;
}

bool
lease_over (const struct lease *l)
{
  for (size_t i = 0; i < l->nattempts; i++)
    if (!attempt_ended (l->attempts[i]->state) || l->attempts[i]->node_left)
      return false;
  return lease_ended (l->state);
}

/* ---- money ---- */

int64_t
attempt_price (const struct attempt *a, int64_t ms)
{
  return (int64_t) ((__int128) a->price_udollar * ms / 3600000);
}

int64_t
attempt_spent (const struct attempt *a, int64_t now_ms)
{
  int64_t end = a->ended_ms ? a->ended_ms : now_ms;

  return a->billed && end > a->created_ms ? attempt_price (a, end - a->created_ms) : 0;
}

int64_t
lease_spent (const struct lease *l, int64_t now_ms)
{
  int64_t sum = 0;

  for (size_t i = 0; i < l->nattempts; i++)
    sum += attempt_spent (l->attempts[i], now_ms);
  return sum;
}

int64_t
lease_rate (const struct lease *l)
{
  int64_t sum = 0;

  for (size_t i = 0; i < l->nattempts; i++)
    if (!attempt_ended (l->attempts[i]->state))
      sum += l->attempts[i]->price_udollar;
  if (!lease_attempt (l) && l->state == LEASE_PENDING)
    sum += l->reserve_udollar;
  return sum;
}
