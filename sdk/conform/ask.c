/* ask.c - calls to the test's session
 *
 * A call that has no answer, because the process died or hangs, fails the test there and then and
 * ends as internal, so that a case need not ask.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

enum { GRACE_MS = 5000 };

static struct answer *
new_answer (const char *call, int64_t deadline_ms)
{
  struct answer *a = calloc (1, sizeof *a);

  if (!a)
    abort ();
  snprintf (a->call, sizeof a->call, "%s", call);
  a->deadline_ms = deadline_ms;
  a->started_ms = clock_boot_ms ();
  a->kind = ERR_INTERNAL;
  snprintf (a->text, sizeof a->text, "no answer");
  a->machines = json_array ();
  a->offers = json_array ();
  a->resources = json_array ();
  a->scopes = json_array ();
  return a;
}

void
answer_free (struct answer *a)
{
  json_decref (a->machines);
  json_decref (a->offers);
  json_decref (a->resources);
  json_decref (a->scopes);
  json_decref (a->value);
  free (a);
}

struct answer *
ask_begin (struct test *t, int64_t deadline_ms, const char *call, json_t *args)
{
  AUTO_JSON json_t *body = json_pack ("{s:s, s:I, s:o}", "call", call, "deadline_ms",
                                      (json_int_t) kit_patience (t->kit, deadline_ms), "args",
                                      args ? args : json_object ());
  struct answer *a = new_answer (call, deadline_ms);

  if (t->s ? is_refused (t) : !again (t)) {
    a->done = true;
    *vec_push (&t->old) = a;
    return a;
  }
  a->id = ++t->s->last_id;
  *vec_push (&t->s->answers) = a;
  wire_put_json (&t->s->out, WIRE_CALL, a->id, 0, body, NULL);
  session_move (t->s, 0);
  return a;
}

static bool
is_done (const void *answer)
{
  return ((const struct answer *) answer)->done;
}

struct answer *
ask_end (struct test *t, struct answer *a)
{
  if (a->done || session_wait (t->s, is_done, a, a->deadline_ms + GRACE_MS))
    return a;
  a->done = true;
  session_lost (t->s, a->call);
  return a;
}

void
ask_cancel (struct test *t, const struct answer *a)
{
  if (a->done)
    return;
  wire_put (&t->s->out, WIRE_CANCEL, a->id, 0, "{}", 2, NULL);
  session_move (t->s, 0);
}

struct answer *
ask_within (struct test *t, int64_t deadline_ms, const char *call, json_t *args)
{
  return ask_end (t, ask_begin (t, deadline_ms, call, args));
}

struct answer *
ask (struct test *t, const char *call, json_t *args)
{
  return ask_within (t, DEADLINE_MS, call, args);
}
