/* strike.c - one call under one fault */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "sdk/conform/strike.h"

enum { REQUESTS_MOST = 12 };

json_t *
strike_args (const struct strike *x)
{
  if (strcmp (x->call, "list_offers") == 0)
    return json_pack ("{s:n}", "offer_ref");
  if (strcmp (x->call, "find") == 0)
    return find_args (x->m->token);
  return x->m && strcmp (x->call, "list") != 0 ? ref_args (x->m) : NULL;
}

int
strike_requests (struct test *t, const struct strike *x, json_t *args)
{
  long before, n;

  if (!again (t)) {
    json_decref (args);
    return 0;
  }
  before = requests (t);
  ask (t, x->call, args);
  n = requests (t) - before;
  return n < 1 ? 1 : n > REQUESTS_MOST ? REQUESTS_MOST : (int) n;
}

struct answer *
strike (struct test *t, const struct strike *x, int at, json_t *args)
{
  struct answer *a;

  if (!again (t) || !fault (t, x->fault, 1, at, NULL)) {
    json_decref (args);
    return NULL;
  }
  a = ask_within (t, FAULT_DEADLINE_MS, x->call, args);
  calm (t);
  return a;
}
