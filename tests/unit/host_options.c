/* host_options.c - options of a plugin against what a person configured */
#include "config.h"

#include "sdk/host/host.h"
#include "tests/unit/tap.h"

static const struct gpub_option declared[] = {
  { sizeof declared[0], "region", GPUB_OPT_STRING, GPUB_OPT_REQUIRED, NULL, "" },
  { sizeof declared[0], "api_key", GPUB_OPT_STRING, GPUB_OPT_REQUIRED | GPUB_OPT_SECRET, NULL, "" },
  { sizeof declared[0], "count", GPUB_OPT_INT, 0, "3", "" },
  { sizeof declared[0], "fast", GPUB_OPT_BOOL, 0, "false", "" },
  { sizeof declared[0], "wait", GPUB_OPT_DURATION, 0, "5m", "" },
  { sizeof declared[0], "most", GPUB_OPT_MONEY, 0, "2.50", "" },
  { sizeof declared[0], "regions", GPUB_OPT_LIST, 0, "[]", "" },
  { sizeof declared[0], "hosts", GPUB_OPT_JSON, 0, NULL, "" },
};

static const struct gpub_provider plugin = {
  .size = sizeof plugin,
  .options = declared,
  .noptions = N_ELEMENTS (declared),
  .options_stride = sizeof declared[0],
};

static bool has_key;

static bool
has_secret (const void *ctx, const char *name)
{
  (void) ctx;
  return has_key && strcmp (name, "api_key") == 0;
}

static const char *
value (const struct options *o, const char *name)
{
  for (size_t i = 0; i < o->values.n; i++)
    if (strcmp (o->values.at[i].key, name) == 0)
      return o->values.at[i].value;
  return NULL;
}

static void
refused (const char *json, const char *text)
{
  AUTO_JSON json_t *given = json_loads (json, 0, NULL);
  struct options o = { 0 };
  struct err e = ERR_INIT;

  if (options_check (&o, &plugin, given, has_secret, NULL, &e) == 0)
    snprintf (e.text, sizeof e.text, "(accepted)");
  is_str (e.text, text, json);
  options_free (&o);
}

static void
test_accepted (void)
{
  AUTO_JSON json_t *given =
      json_loads ("{\"region\":\"eu\",\"count\":7,\"fast\":true,\"wait\":\"90s\",\"most\":3,"
                  "\"regions\":[\"a\",\"b\"],\"hosts\":[{\"url\":\"http://10.0.0.1:80/x\"}]}",
                  0, NULL);
  AUTO_JSON json_t *least = json_loads ("{\"region\":\"eu\"}", 0, NULL);
  struct options o = { 0 }, d = { 0 };
  struct err e = ERR_INIT;

  ok (options_check (&o, &plugin, given, has_secret, NULL, &e) == 0, "all options: %s", e.text);
  is_str (value (&o, "count"), "7", "int");
  is_str (value (&o, "fast"), "true", "bool");
  is_str (value (&o, "wait"), "90000", "a duration arrives in milliseconds");
  is_str (value (&o, "most"), "3000000", "money arrives in micro-dollars, an integer is accepted");
  is_str (value (&o, "regions"), "[\"a\",\"b\"]", "list");
  is_str (value (&o, "hosts"), "[{\"url\":\"http://10.0.0.1:80/x\"}]", "json");
  ok (!value (&o, "api_key"), "secrets are not among them");
  ok (o.plain.n == 1 && strcmp (o.plain.at[0], "http://10.0.0.1:80/x") == 0,
      "a configured http:// address is found inside a list");
  ok (options_check (&d, &plugin, least, has_secret, NULL, &e) == 0, "the required ones only");
  is_str (value (&d, "wait"), "300000", "default duration");
  is_str (value (&d, "most"), "2500000", "default money");
  ok (!value (&d, "hosts"), "no default, no value");
  options_free (&o);
  options_free (&d);
}

static void
test_refused (void)
{
  refused ("{\"region\":\"x\",\"regoin\":\"y\"}",
           "unknown option 'regoin', did you mean 'region'?");
  refused ("{\"region\":\"x\",\"zzzzzz\":1}", "unknown option 'zzzzzz'");
  refused ("{}", "'region' is missing");
  refused ("{\"region\":1}", "'region' must be text in quotes");
  refused ("{\"region\":\"x\",\"count\":1.5}", "'count' must be an integer");
  refused ("{\"region\":\"x\",\"fast\":\"yes\"}", "'fast' must be true or false");
  refused ("{\"region\":\"x\",\"most\":-1}", "'most' must be dollars, such as 2.50");
  refused ("{\"region\":\"x\",\"regions\":[1]}",
           "'regions' must be a list of texts, [ \"a\", \"b\" ]");
  refused ("{\"region\":\"x\",\"api_key\":\"k\"}",
           "'api_key' is a secret: give it as api_key_file, api_key_env or api_key_credential");
  has_key = false;
  refused ("{\"region\":\"x\"}",
           "'api_key' is missing: set api_key_file, api_key_env or api_key_credential");
}

static void
test_units (void)
{
  static const char *const bad[] = { "", "5", "s", "-5s", "5 s", "5x", "99999999999999999d" };
  int64_t n = 0;

  ok (option_duration_ms ("1500ms", &n) == 0 && n == 1500, "ms");
  ok (option_duration_ms ("2h", &n) == 0 && n == 7200000, "h");
  ok (option_duration_ms ("1d", &n) == 0 && n == 86400000, "d");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    ok (option_duration_ms (bad[i], &n) < 0, "'%s' is no duration", bad[i]);
  ok (option_money_udollar ("0.1", &n) == 0 && n == 100000, "a tenth is exact");
  ok (option_money_udollar ("nan", &n) < 0 && option_money_udollar ("1e30", &n) < 0 &&
          option_money_udollar ("1 $", &n) < 0,
      "no money");
}

int
main (void)
{
  has_key = true;
  test_accepted ();
  test_refused ();
  test_units ();
  return done ();
}
