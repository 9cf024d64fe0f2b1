/* api_boot.c - `logs` of the boot: what the node wrote itself, or the cloud's console
 *
 * The node's own log says more, so it is asked first once it has answered SSH; before that, and
 * when it does not answer, there is only the console, where the cloud has one.  Nothing of it is
 * kept.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api.h"
#include "core/log.h"

enum { LINES = 200, LINE_MAX_BYTES = 400 };

struct boot_log {
  struct broker *broker;
  struct bus_ticket ticket;
  int64_t lease;
};

static bool
has_console (const struct provider *p)
{
  const json_t *ready = p ? json_object_get (child_ready (p->child), "provider") : NULL;

  return p && p->up && json_bool (ready, "console_log", false);
}

/* Ends it; takes lines. */
static void
answer (struct boot_log *q, const char *source, json_t *lines)
{
  struct lease *l = engine_lease (q->broker, q->lease);

  if (l)
    l->reading_boot = false;
  if (json_array_size (lines)) {
    turn_reply (q->broker, &q->ticket, BUS_FINAL,
                json_pack ("{s:s, s:O}", "source", source, "lines", lines));
  } else {
    turn_error (q->broker, &q->ticket, "not-found", NULL, NULL, "l%lld: the %s has no boot log",
                (long long) q->lease, source);
  }
  json_decref (lines);
  free (q);
}

static void
give_up (struct boot_log *q, const struct err *why)
{
  struct lease *l = engine_lease (q->broker, q->lease);

  if (l)
    l->reading_boot = false;
  turn_error (q->broker, &q->ticket, "failed", hint_for (why->code), NULL,
              "l%lld: its boot log cannot be read: %s", (long long) q->lease, why->text);
  free (q);
}

static void
add_line (json_t *lines, const char *step, const char *text, size_t n)
{
  char line[LINE_MAX_BYTES];

  snprintf (line, sizeof line, "%.*s", (int) (n < sizeof line ? n : sizeof line - 1), text);
  for (char *p = line; *p; p++)
    if ((unsigned char) *p < ' ')
      *p = ' ';
  redact (line);
  json_clean (line);
  json_array_append_new (lines, json_pack ("{s:s, s:s}", "step", step, "text", line));
}

/* ---- the console ---- */

static void
console (void *ctx, uint32_t id, const struct call_result *r)
{
  struct boot_log *q = ctx;
  const char *text = json_str (r->value, "text", ""), *from = text + strlen (text);
  json_t *lines;
  int n = 0;

  (void) id;
  if (r->err.kind != ERR_NONE) {
    give_up (q, &r->err);
    return;
  }
  while (from > text && n <= LINES)
    n += *--from == '\n';
  lines = json_array ();
  for (from += *from == '\n'; *from; from += strcspn (from, "\n"), from += *from == '\n')
    add_line (lines, "console", from, strcspn (from, "\n"));
  answer (q, "console", lines);
}

static void
ask_console (struct boot_log *q, struct provider *p, const struct attempt *a)
{
  child_call (p->child, &(struct child_call){ .call = "console_log",
                                              .key = a->name,
                                              .args = attempt_ref (a),
                                              .deadline_ms = q->broker->times.call,
                                              .on_result = console,
                                              .ctx = q });
}

/* ---- the node ---- */

static void
node (void *ctx, uint32_t id, const struct call_result *r)
{
  struct boot_log *q = ctx;
  struct lease *l = engine_lease (q->broker, q->lease);
  const struct attempt *a = l ? lease_attempt (l) : NULL;
  struct provider *p = a ? provider_find (q->broker, a->provider) : NULL;
  json_t *lines, *line;
  size_t i;

  (void) id;
  if (r->err.kind != ERR_NONE && has_console (p)) {
    ask_console (q, p, a);
    return;
  }
  if (r->err.kind != ERR_NONE) {
    give_up (q, &r->err);
    return;
  }
  lines = json_array ();
  json_array_foreach (json_object_get (r->value, "log"), i, line) {
    const char *text = json_is_string (line) ? json_string_value (line) : "";
    size_t n = strcspn (text, " ");
    char step[32];

    snprintf (step, sizeof step, "%.*s", (int) (n < 31 ? n : 31), text);
    add_line (lines, step, text + n + (text[n] == ' '), strlen (text + n));
  }
  answer (q, "machine", lines);
}

static void
ask_node (struct boot_log *q, const struct lease *l, const struct attempt *a)
{
  struct child_secret key = { "ssh_key", NULL, 0 };
  char *bytes = rent_lent_key (l, &key);

  child_call (q->broker->ssh,
              &(struct child_call){ .call = "log",
                                    .key = a->name,
                                    .args = json_pack ("{s:o}", "target", rent_target (a)),
                                    .deadline_ms = q->broker->times.call,
                                    .secrets = &key,
                                    .nsecrets = bytes ? 1 : 0,
                                    .on_result = node,
                                    .ctx = q });
  rent_forget_key (bytes, &key);
}

void
api_boot_log (struct ask *q, struct lease *l)
{
  const struct attempt *a = lease_attempt (l);
  struct provider *p = a ? provider_find (q->b, a->provider) : NULL;
  struct boot_log *log;

  if (!a) {
    api_refuse (q, "conflict", NULL, "%s is %s: it has no machine that could be asked", l->id,
                lease_state_name (l->state));
  } else if (l->reading_boot) {
    turn_error (q->b, &q->ticket, "busy", NULL, NULL, "the boot log of %s is being read", l->id);
  } else if (!a->machine.hostkey && !has_console (p)) {
    api_refuse (q, "conflict", "ask again when it is reachable",
                "%s has not answered SSH yet, and %s shows no console", l->id, a->provider);
  } else {
    log = calloc (1, sizeof *log);
    if (!log)
      abort ();
    *log = (struct boot_log){ q->b, q->ticket, l->number };
    l->reading_boot = true;
    if (a->machine.hostkey)
      ask_node (log, l, a);
    else
      ask_console (log, p, a);
  }
}
