/* cases_load.c - what can be judged without a cloud: the table, the options, the file */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

/* ---- the table ---- */

static bool
is_name (const char *s)
{
  return *s && s[strspn (s, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static bool
check_option (struct test *t, const json_t *o)
{
  static const char *const reserved[] = {
    "ca_file", "client_cert_file", "client_key_file", "proxy", "rate", "burst", "record", "replay",
    "name",    "plugin",           "paused"
  };
  const char *name = json_str (o, "name", ""), *help = json_str (o, "help", "");
  bool taken = false;

  for (size_t i = 0; i < N_ELEMENTS (reserved); i++)
    taken |= strcmp (reserved[i], name) == 0;
  return expect_text (t, is_name (name), name, "an option's name is [a-z0-9_]+") &&
         expect_text (t, !taken, name, "no option has a name that belongs to the host") &&
         expect_text (t, strcmp (json_str (o, "type", ""), "unknown") != 0, "an unknown type",
                      "option '%s' has one of the types GPUB_OPT_*", name) &&
         expect_text (t, *help && !strchr (help, '\n'), *help ? help : "none",
                      "option '%s' has a help of one line", name) &&
         expect_text (t, !(option_is (o, "secret") && json_str (o, "default", NULL)), "a default",
                      "secret '%s' has none", name);
}

/* A capability without the call or the number that it stands for, or the other way round. */
static bool
check_caps (struct test *t)
{
  const struct kit *k = t->kit;
  bool data = kit_has_cap (k, "user-data") || kit_has_cap (k, "startup-script");
  bool window = kit_number (k, "idempotency_window_s") > 0;

  return expect_text (t, data == (kit_number (k, "user_data_max") > 0),
                      data ? "user_data_max is 0" : "user_data_max alone",
                      "USER_DATA or STARTUP_SCRIPT, and user_data_max, go together") &&
         expect_text (t,
                      kit_has_cap (k, "reused") || kit_has_cap (k, "idempotent-create") == window,
                      window ? "idempotency_window_s alone" : "idempotency_window_s is 0",
                      "IDEMPOTENT_CREATE and idempotency_window_s go together") &&
         expect_text (t,
                      kit_has_cap (k, "console") ==
                          json_is_true (json_object_get (k->describe, "console_log")),
                      "one of them", "CONSOLE and console_log go together");
}

CASE (table)
{
  const json_t *d = t->kit->describe, *o;
  size_t i;

  expect_text (t, *json_str (d, "name", ""), "no name", "the plugin has a name");
  expect_text (t, *json_str (d, "version", ""), "no version", "the plugin has a version");
  expect_text (t, *json_str (d, "description", ""), "no description",
               "the plugin has a description of one line");
  json_array_foreach (json_object_get (d, "options"), i, o) {
    check_option (t, o);
  }
  check_caps (t);
}

CASE (exports)
{
  char first[128], got[200];
  bool has_entry;
  int others = proc_exports (t->kit->plugin, first, &has_entry);

  snprintf (got, sizeof got, "%d others, as '%s'", others, first);
  expect_text (t, others == 0 && has_entry, others < 0 ? "no 64-bit shared object" : got,
               "gpub_provider_entry is the only symbol it exports");
}

/* ---- options ---- */

/* Opens with `options`; the plugin must refuse, and its text must have the name. */
static bool
refuses (struct test *t, const struct session_how *how, const char *name, const char *what)
{
  const json_t *r;
  char got[400];

  if (!again_with (t, how))
    return false;
  r = t->s->ready;
  snprintf (got, sizeof got, "%s \"%s\"", json_str (r, "kind", ""), json_str (r, "text", ""));
  return expect_text (t,
                      strcmp (json_str (r, "kind", ""), "invalid") == 0 &&
                          strstr (json_str (r, "text", ""), name) != NULL,
                      got, "%s: invalid, with '%s' in the text", what, name);
}

CASE (options_missing)
{
  const json_t *o;
  size_t i, tried = 0;

  json_array_foreach (json_object_get (t->kit->describe, "options"), i, o) {
    const char *name = json_str (o, "name", "");
    json_t *options;

    if (!option_is (o, "required") || option_is (o, "secret"))
      continue;
    options = keep (t, json_deep_copy (t->kit->options));
    json_object_del (options, name);
    tried++;
    if (!refuses (t, &(struct session_how){ .options = options }, name, "without it"))
      return;
  }
  if (tried == 0)
    skip (t, "the plugin has no required option but secrets");
}

static json_t *
wrong_type (const char *type)
{
  if (strcmp (type, "json") == 0)
    return NULL; /* anything is JSON */
  return strcmp (type, "list") == 0 ? json_integer (5) : json_pack ("{s:i}", "wrong", 1);
}

CASE (options_type)
{
  const json_t *o;
  size_t i, tried = 0;

  json_array_foreach (json_object_get (t->kit->describe, "options"), i, o) {
    const char *name = json_str (o, "name", "");
    json_t *value = wrong_type (json_str (o, "type", "")), *options;

    if (option_is (o, "secret") || !value) {
      json_decref (value);
      continue;
    }
    options = keep (t, json_deep_copy (t->kit->options));
    json_object_set_new (options, name, value);
    tried++;
    if (!refuses (t, &(struct session_how){ .options = options }, name, "of the wrong type"))
      return;
  }
  if (tried == 0)
    skip (t, "the plugin has no option with a type that can be wrong");
}

static json_t *
odd_value (const char *type, int which)
{
  static const char *const texts[] = { "", "conform: no such value", "%s%n%n\x01\xc3\xa9" };

  if (strcmp (type, "string") == 0)
    return json_string (texts[which]);
  if (strcmp (type, "int") == 0)
    return json_integer (which == 0 ? -1 : which == 1 ? INT64_MAX : INT64_MIN);
  if (strcmp (type, "list") == 0)
    return which == 0 ? json_array () : json_pack ("[s, s]", texts[which], "");
  if (strcmp (type, "json") == 0)
    return which == 0   ? json_integer (0)
           : which == 1 ? json_pack ("[{s:n}, n, s]", "x", "")
                        : json_pack ("{s:[]}", "");
  return NULL;
}

/* A value of the right type that makes little sense may be taken; what is refused is named. */
static bool
take_or_name (struct test *t, const char *name, json_t *value)
{
  json_t *options = keep (t, json_deep_copy (t->kit->options));

  json_object_set_new (options, name, value);
  if (!again_with (t, &(struct session_how){ .options = options }))
    return false;
  return !is_refused (t) ||
         refuses (t, &(struct session_how){ .options = options }, name, "a value that it refuses");
}

CASE (options_odd)
{
  const json_t *o;
  size_t i;

  json_array_foreach (json_object_get (t->kit->describe, "options"), i, o) {
    for (int which = 0; which < 3; which++) {
      json_t *value = odd_value (json_str (o, "type", ""), which);

      if (option_is (o, "secret"))
        json_decref (value);
      else if (value && !take_or_name (t, json_str (o, "name", ""), value))
        return;
    }
  }
}

CASE (secret_missing)
{
  bool tried = false;

  for (size_t i = 0; i < t->kit->secrets.n; i++) {
    const char *name = t->kit->secrets.at[i].name;
    const json_t *o = kit_option (t->kit, name);

    if (!o || !option_is (o, "required"))
      continue;
    tried = true;
    if (!refuses (t, &(struct session_how){ .without_secret = name }, name, "without it"))
      return;
  }
  if (!tried)
    skip (t, "no secret of the plugin is required");
}
