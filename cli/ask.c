/* ask.c - the connection to the broker, and everything that only reads */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "cli/cli.h"

/* A broker answers from memory; one that says nothing for so long is not there. */
enum { ANSWER_MS = 10000 };

static struct gpubc *signalled; /* for the handler alone */
static volatile sig_atomic_t interrupted;

static void
on_interrupt (int sig)
{
  (void) sig;
  interrupted = 1;
  if (signalled)
    gpubc_interrupt (signalled);
}

bool
cli_interrupted (void)
{
  return interrupted;
}

int
cli_connect (struct cli *c)
{
  struct sigaction sa = { .sa_handler = on_interrupt };

  if (c->client)
    return 0;
  c->client = gpubc_new (json_str (c->args.to[TO_CLI], "endpoint", NULL));
  if (!c->client)
    return -1;
  signalled = c->client;
  sigemptyset (&sa.sa_mask);
  sigaction (SIGINT, &sa, NULL);
  return 0;
}

void
cli_disconnect (struct cli *c)
{
  signalled = NULL;
  gpubc_free (c->client);
  c->client = NULL;
}

int64_t
cli_timeout (const struct cli *c, int64_t otherwise)
{
  return json_i64 (c->args.to[TO_CLI], "timeout_ms", otherwise);
}

json_t *
cli_body (const struct cli *c)
{
  return c->args.to[TO_BODY];
}

const char *
cli_operand (const struct cli *c, size_t i)
{
  return i < c->args.noperands ? c->args.operands[i] : NULL;
}

/* Control characters of ASCII, and of Latin-1 as UTF-8 has them: C2 80 to C2 9F. */
static void
tame (char *s, bool lines)
{
  for (unsigned char *p = (unsigned char *) s; *p; p++) {
    if ((*p < 0x20 && *p != '\t' && !(lines && *p == '\n')) || *p == 0x7f)
      *p = '?';
    else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
      p[0] = p[1] = '?';
  }
}

static bool
is_tame (const char *s)
{
  AUTO_FREE char *copy = strdup (s);

  if (!copy)
    abort ();
  tame (copy, false);
  return strcmp (copy, s) == 0;
}

static json_t *
tamed (const json_t *j, bool lines)
{
  AUTO_FREE char *s = strdup (json_string_value (j));

  if (!s)
    abort ();
  tame (s, lines);
  return json_string (s);
}

/* Names, logs and error texts come from clouds and rented machines; a member whose very name is not
 * fit to be shown is not. */
static void
tame_all (json_t *j, bool lines)
{
  const char *key;
  json_t *v;
  void *next;
  size_t i;

  json_object_foreach_safe (j, next, key, v)
  {
    if (!is_tame (key))
      json_object_del (j, key);
    else if (json_is_string (v))
      json_object_set_new (j, key, tamed (v, lines));
    else
      tame_all (v, lines);
  }
  json_array_foreach (j, i, v) {
    if (json_is_string (v))
      json_array_set_new (j, i, tamed (v, lines));
    else
      tame_all (v, lines);
  }
}

json_t *
reply_json (const struct cli *c, const struct gpubc_reply *r)
{
  json_t *j = json_loadb (r->json, r->len, 0, NULL);

  if (j && !json_is_object (j)) {
    json_decref (j);
    return NULL;
  }
  if (j && c->mode == OUT_TEXT)
    tame_all (j, c->lines);
  return j;
}

json_t *
error_unreachable (const struct cli *c)
{
  return error_new ("unreachable", gpubc_why (c->client),
                    "is gpubrokerd running, and are you in its group? --endpoint and "
                    "$GPUBROKER_ENDPOINT name another");
}

static json_t *
no_answer (const struct cli *c, int outcome)
{
  switch (outcome) {
  case GPUBC_TIMEOUT:
    return error_new ("unreachable", "no answer from the broker in time",
                      "gpubroker-cli ping tells whether it is there");
  case GPUBC_INTERRUPTED:
    return error_new ("timeout", "interrupted", NULL);
  case GPUBC_UNREACHABLE:
    return error_unreachable (c);
  default:
    return error_new ("internal", gpubc_why (c->client), NULL);
  }
}

json_t *
ask_try (struct cli *c, const char *verb, const json_t *body, json_t **error)
{
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);
  struct gpubc_reply r = { .size = sizeof r };
  AUTO_JSON json_t *j = NULL;
  int rc;

  *error = NULL;
  if (cli_connect (c) < 0) {
    *error = error_new ("internal", "out of memory", NULL);
    return NULL;
  }
  rc = gpubc_call (c->client, verb, text, cli_timeout (c, ANSWER_MS), NULL, NULL, &r);
  if (rc != GPUBC_FINAL && rc != GPUBC_ERROR) {
    *error = no_answer (c, rc);
    return NULL;
  }
  j = reply_json (c, &r);
  if (j && rc == GPUBC_FINAL)
    return STEAL (j);
  *error = j ? STEAL (j) : error_new ("internal", "the broker's answer is no JSON object", NULL);
  return NULL;
}

int
ask (struct cli *c, const char *verb, const json_t *body, json_t **reply)
{
  AUTO_JSON json_t *error = NULL;

  *reply = ask_try (c, verb, body, &error);
  return *reply ? EXIT_DONE : out_error (c, error, NULL);
}

int
ask_shown (struct cli *c, const char *verb, json_t **reply)
{
  int rc = ask (c, verb, cli_body (c), reply);

  if (rc == EXIT_DONE && c->mode != OUT_TEXT)
    out_doc (c, *reply);
  return rc;
}

/* Moves on to the next page; false when there is none or enough is there. */
static bool
next_page (json_t *body, const json_t *page, size_t have, int64_t limit)
{
  const char *cursor = json_str (page, "cursor", NULL);

  if (!cursor || !*cursor || (limit > 0 && have >= (size_t) limit))
    return false;
  json_put_str (body, "cursor", cursor);
  if (limit > 0)
    json_put_i64 (body, "limit", limit - (int64_t) have);
  return true;
}

int
ask_all (struct cli *c, const char *verb, json_t *body, const char *member, int64_t limit,
         json_t **reply)
{
  json_t *page = NULL, *list;
  int rc;

  if (limit > 0)
    json_put_i64 (body, "limit", limit);
  rc = ask (c, verb, body, reply);
  if (rc)
    return rc;
  list = json_object_get (*reply, member);
  for (page = json_incref (*reply); next_page (body, page, json_array_size (list), limit);) {
    json_decref (page);
    rc = ask (c, verb, body, &page); /* a page may be empty and have a next one */
    if (rc)
      break;
    json_array_extend (list, json_object_get (page, member));
  }
  json_decref (page);
  for (size_t n = json_array_size (list); limit > 0 && n > (size_t) limit; n--)
    json_array_remove (list, n - 1);
  json_object_del (*reply, "cursor");
  if (rc) {
    json_decref (*reply);
    *reply = NULL;
  }
  return rc;
}
