/* cases_read.c - credentials, offers, and questions about machines that are not there */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

enum { OFFER_REF_MAX = 512 };

CASE (probe)
{
  expect_kind (t, ask (t, "probe", NULL), ERR_NONE, "probe");
}

/* ---- wrong credentials ---- */

static bool
all_refuse (struct test *t, const char *name)
{
  struct answer *a = ask (t, "probe", NULL);

  expect (t, a->kind == ERR_AUTH, a, "probe with a wrong '%s': auth", name);
  a = ask (t, "list", NULL);
  expect (t, a->kind != ERR_NONE || !scope_complete (a, NULL), a,
          "list with a wrong '%s': an error, or a scope that is not complete", name);
  a = ask (t, "list_offers", json_pack ("{s:n}", "offer_ref"));
  return expect (t, a->kind != ERR_NONE || json_array_size (a->offers) || !scope_complete (a, NULL),
                 a, "list_offers with a wrong '%s': an error, or a scope that is not complete",
                 name);
}

CASE (wrong_key)
{
  for (size_t i = 0; i < t->kit->secrets.n; i++) {
    const char *name = t->kit->secrets.at[i].name;

    if (!again_with (t, &(struct session_how){ .wrong_secret = name }))
      return;
    if (is_refused (t)) { /* it saw by itself that this is no key: just as good */
      expect_text (t, strstr (json_str (t->s->ready, "text", ""), name),
                   json_str (t->s->ready, "text", ""), "the text names '%s'", name);
      continue;
    }
    if (!all_refuse (t, name))
      return;
  }
}

/* ---- offers ---- */

static bool
is_printable (const char *s)
{
  for (; *s; s++)
    if (!isprint ((unsigned char) *s))
      return false;
  return true;
}

static bool
check_offer (struct test *t, const struct answer *a, const json_t *o)
{
  const char *ref = json_str (o, "offer_ref", ""), *scope = json_str (o, "scope", NULL);
  const json_t *gpus = json_object_get (o, "gpu_count");
  bool named = false;
  const json_t *s;
  size_t i;

  json_array_foreach (a->scopes, i, s) {
    named |= scope && strcmp (json_str (s, "scope", ""), scope) == 0;
  }
  return expect_text (t, *ref && strlen (ref) <= OFFER_REF_MAX && is_printable (ref), ref,
                      "an offer_ref is printable, of 1 to %d bytes", OFFER_REF_MAX) &&
         expect_text (t, named, scope ? scope : "no scope",
                      "offer %s is of a scope that scope_done named", ref) &&
         expect_text (t,
                      !json_is_integer (gpus) || json_integer_value (gpus) == 0 ||
                          json_str (o, "gpu_name", NULL),
                      "no gpu_name", "offer %s has GPUs and says which", ref) &&
         expect_text (t, *json_str (o, "gpu_name", "?"), "an empty text",
                      "the gpu_name of offer %s, where it has one", ref) &&
         expect_text (t, json_str (o, "arch", NULL), "no arch", "offer %s says its arch", ref);
}

CASE (offers)
{
  struct answer *a = ask (t, "list_offers", json_pack ("{s:n}", "offer_ref"));
  json_t *seen = keep (t, json_object ()), *o;
  size_t i;

  if (!expect_kind (t, a, ERR_NONE, "list_offers") ||
      !expect (t, scope_complete (a, NULL), a, "scope_done (COMPLETE) for every scope, and one") ||
      !expect (t, json_array_size (a->offers) > 0, a, "at least one offer"))
    return;
  json_array_foreach (a->offers, i, o) {
    const char *ref = json_str (o, "offer_ref", "");

    if (!check_offer (t, a, o) ||
        !expect_text (t, !json_object_get (seen, ref), ref, "each offer_ref stands for one offer"))
      return;
    json_object_set_new (seen, ref, json_true ());
  }
}

CASE (requote)
{
  uint64_t price;
  const char *offer = cheapest (t, &price);
  struct answer *a;
  const json_t *o;

  if (!offer || !again (t)) /* in another process: an offer_ref outlives this one */
    return;
  a = ask (t, "list_offers", json_pack ("{s:s}", "offer_ref", offer));
  o = json_array_get (a->offers, 0);
  if (!expect (t,
               a->kind == ERR_NONE && json_array_size (a->offers) == 1 &&
                   strcmp (json_str (o, "offer_ref", ""), offer) == 0,
               a, "list_offers of offer_ref %s: this one offer", offer))
    return;
  expect (t, all_in (o) == price, a,
          "the same price as in the whole list: %llu micro-dollars, all in",
          (unsigned long long) price);
  a = ask (t, "list_offers", json_pack ("{s:s}", "offer_ref", "conform|no|such|offer"));
  expect (t, json_array_size (a->offers) == 0 && a->kind != ERR_INTERNAL && a->kind != ERR_AUTH, a,
          "list_offers of an unknown offer_ref: no offer");
}

/* ---- machines that are not there ---- */

/* An id of the same form that no machine has: digits and letters of a real one, moved on. */
static void
unknown_id (char *id)
{
  for (char *p = id; *p; p++)
    if (*p >= '0' && *p <= '8')
      ++*p;
    else if (*p >= 'a' && *p <= 'e')
      ++*p;
}

static json_t *
unknown_ref (struct test *t, struct made **m)
{
  json_t *ref;
  char id[520];

  *m = make (t);
  if (!*m)
    return NULL;
  snprintf (id, sizeof id, "%s", (*m)->id);
  unknown_id (id);
  ref = json_deep_copy ((*m)->ref);
  json_object_del (ref, "resources");
  json_object_del (ref, "plugin_data");
  make_old (ref);
  json_put_str (ref, "id", id);
  json_put_str (ref, "token", new_token (t));
  json_put_str (ref, "name", "conform-none");
  return json_pack ("{s:o}", "ref", ref);
}

CASE (get_unknown)
{
  struct made *m;
  json_t *ref = unknown_ref (t, &m);

  if (ref)
    expect_kind (t, ask (t, "get", ref), ERR_NOT_FOUND, "get of an id that no machine has");
}

CASE (remove_unknown)
{
  struct made *m;
  json_t *ref = unknown_ref (t, &m);
  struct answer *a;

  if (!ref ||
      !expect_kind (t, ask (t, "remove", ref), ERR_NONE, "remove of an id that no machine has"))
    return;
  a = ask (t, "get", ref_args (m));
  expect (t,
          a->kind == ERR_NONE &&
              strcmp (json_str (json_array_get (a->machines, 0), "state", ""), "deleting") != 0,
          a, "the machine beside it is still there");
}

CASE (find_nothing)
{
  struct answer *a = ask (t, "find", find_args (new_token (t)));

  expect (t, a->kind == ERR_NONE && json_array_size (a->machines) == 0 && scope_complete (a, NULL),
          a, "find of a token that no machine has: ok, no machine, every scope complete");
}
