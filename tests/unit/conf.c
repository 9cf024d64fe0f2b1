/* conf.c - the configuration: what loads, what the defaults are, and what every mistake is told */
#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conf.h"
#include "tests/unit/tap.h"

static void
refused (const char *text, const char *want)
{
  struct err e = ERR_INIT;
  struct conf c;

  if (ok (conf_parse (text, "g.conf", &c, &e) < 0, "refused: %s", want))
    is_str (e.text, want, "... with its reason");
  else
    conf_free (&c);
}

static void
mistakes (void)
{
  static const char *const rows[][2] = {
    { "defaults: {\n max_prize = 4;\n};",
      "g.conf:2: unknown setting 'max_prize' in defaults, did you mean 'max_price'?" },
    { "brocker: { };",
      "g.conf:1: unknown setting 'brocker' in the configuration, did you mean 'broker'?" },
    { "broker: { zzzzzzzzzzzz = 1; };", "g.conf:1: unknown setting 'zzzzzzzzzzzz' in broker" },
    { "broker: { name = 3; };", "g.conf:1: 'name' in broker must be a string in quotes" },
    { "broker: { name = \"a b\"; };",
      "g.conf:1: 'name' in broker must be 1 to 32 letters, digits, '-' or '_'" },
    { "broker: { state_dir = \"var\"; };",
      "g.conf:1: 'state_dir' in broker must be an absolute path" },
    { "broker: { log_level = \"loud\"; };",
      "g.conf:1: 'log_level' in broker must be one of \"emerg\", \"alert\", \"crit\", \"error\", "
      "\"warning\", "
      "\"notice\", \"info\", \"debug\"" },
    { "broker = 3;", "g.conf:1: broker must be a group: { name = value; ... }" },
    { "defaults: { ttl = 12; };", "g.conf:1: 'ttl' in defaults must be a duration such as \"90s\", "
                                  "\"5m\", \"2h\" or \"7d\", or \"none\"" },
    { "defaults: { deadline = \"none\"; };", "g.conf:1: 'deadline' in defaults must be a duration "
                                             "such as \"90s\", \"5m\", \"2h\" or \"7d\"" },
    { "defaults: { max_price = \"4\"; };",
      "g.conf:1: 'max_price' in defaults must be dollars, such as 2.50" },
    { "defaults: { max_price = -1; };",
      "g.conf:1: 'max_price' in defaults must be dollars, such as 2.50" },
    { "defaults: { disk_gib = 1.5; };",
      "g.conf:1: 'disk_gib' in defaults must be a whole number, 0 or more" },
    { "defaults: { kubernetes = 1; };",
      "g.conf:1: 'kubernetes' in defaults must be true or false" },
    { "defaults: { on_failure = \"burn\"; };",
      "g.conf:1: 'on_failure' in defaults must be \"release\", \"keep\" or \"keep:1h\"" },
    { "defaults: { market = \"Spot\"; };",
      "g.conf:1: 'market' in defaults must be one of \"on-demand\", \"spot\", \"any\"" },
    { "defaults: { offers_expire_after = \"1m\"; };",
      "g.conf:1: 'offers_expire_after' in defaults must not be less than 'offers_stale_after'" },
    { "clusters: ( { name = \"spoke-a\"; kubeconfig_file = \"/k\"; } );\ndefaults: { cluster = "
      "\"spoke-b\"; };",
      "g.conf:2: 'cluster' in defaults names 'spoke-b', which is not configured, did you mean "
      "'spoke-a'?" },
    { "limits: { joins = 0; };", "g.conf:1: 'joins' in limits must be at least 1" },
    { "limits: { per_owner = { lease = 1; }; };",
      "g.conf:1: unknown setting 'lease' in limits.per_owner, did you mean 'leases'?" },
    { "bus: { uids = ( { rights = \"rent\"; } ); };",
      "g.conf:1: an entry of bus.uids needs either 'uid' or 'user'" },
    { "bus: { uids = ( { uid = 1; rights = \"root\"; } ); };",
      "g.conf:1: 'rights' in bus must be one of \"read\", \"rent\", \"admin\"" },
    { "bus: { uids = ( { user = \"no-such-user\"; } ); };",
      "g.conf:1: 'user' in bus.uids: there is no user 'no-such-user' here" },
    { "bus: { uids = (\n { uid = 7; },\n { uid = 7; } ); };",
      "g.conf:3: 'uid:7' is authorised twice" },
    { "bus: { requests = [ \"tcp://*:4000\" ]; };",
      "g.conf:1: endpoint 'tcp://*:4000' in bus needs 'curve_secret_key_file' and "
      "'authorized_clients'" },
    { "bus: { requests = [ \"inproc://x\" ]; };",
      "g.conf:1: endpoint 'inproc://x' in bus must begin with ipc:/// or tcp://" },
    { "bus: { requests = [ 1, 2 ]; };",
      "g.conf:1: 'requests' in bus must be a list of strings: [ \"a\", \"b\" ]" },
    { "bus: { authorized_clients = ( { key = \"short\"; principal = \"x\"; } ); };",
      "g.conf:1: 'key' in bus.authorized_clients must be a public key of 40 characters (Z85)" },
    { "providers: {};", "g.conf:1: providers must be a list: ( { name = ...; }, ... )" },
    { "providers: (\n { plugin = \"aws\"; } );", "g.conf:2: a provider needs a 'name'" },
    { "providers: (\n { name = \"a\"; },\n { name = \"a\"; } );",
      "g.conf:3: provider 'a' is already on line 2: give it another name" },
    { "providers: ( { name = \"own\"; } );",
      "g.conf:1: a provider cannot be called 'own': so are machines of `join --host`" },
    { "providers: ( { name = \"a\"; offers_every = \"0s\"; } );",
      "g.conf:1: 'offers_every' and 'reconcile_every' in provider 'a' must be at least \"1s\"" },
    { "providers: ( { name = \"a\"; balance_alarm = \"50\"; } );",
      "g.conf:1: 'balance_alarm' in a provider must be dollars, such as 50.0, or the time that the "
      "balance must last, such as \"24h\"" },
    { "providers: ( { name = \"a\"; api_key_file = \"key\"; } );",
      "g.conf:1: 'api_key_file' in provider 'a' must be an absolute path" },
    { "providers: ( {\n name = \"a\";\n api_key_file = \"/k\";\n api_key_env = \"K\"; } );",
      "g.conf:4: 'api_key' in provider 'a' is already given on line 3" },
    { "providers: ( { name = \"a\"; rate = \"fast\"; } );",
      "g.conf:1: 'rate' in provider 'a' must be a number of requests a second" },
    { "clusters: ( { name = \"none\"; kubeconfig_file = \"/k\"; } );",
      "g.conf:1: a cluster of type 'k0smotron' cannot be named 'none': that word has a meaning of "
      "its own" },
    { "clusters: ( { name = \"standalone\"; type = \"k0smotron\"; kubeconfig_file = \"/k\"; } );",
      "g.conf:1: a cluster of type 'k0smotron' cannot be named 'standalone': that word has a "
      "meaning of its own" },
    { "clusters: ( { name = \"mine\"; type = \"standalone\"; } );",
      "g.conf:1: a cluster of type 'standalone' cannot be named 'mine': that word has a meaning "
      "of its own" },
    { "clusters: ( { name = \"a\"; } );", "g.conf:1: cluster 'a' needs 'kubeconfig_file'" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; k0s_version = \"1.34\"; } );",
      "g.conf:1: 'k0s_version' in a cluster must look like \"v1.34.10+k0s.0\"" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; k0s_sha256 = { amd64 = \"12\"; }; } "
      ");",
      "g.conf:1: 'amd64' in k0s_sha256 must be 64 hexadecimal digits" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; cni_ = \"x\"; } );",
      "g.conf:1: unknown setting 'cni_' in cluster 'a', did you mean 'cni'?" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; taints = [ \"x\" ]; } );",
      "g.conf:1: taint 'x' of cluster 'a' must look like \"key=value:NoSchedule\"" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; node_labels = [ \"x\" ]; } );",
      "g.conf:1: 'node_labels' in a cluster must be strings like \"team=ml\"" },
    { "clusters: ( { name = \"a\"; kubeconfig_file = \"/k\"; locality = \"moon\"; } );",
      "g.conf:1: cluster 'a' names locality 'moon', which is not in localities" },
    { "clusters: (\n { name = \"a\"; kubeconfig_file = \"/k\"; },\n { name = \"a\"; "
      "kubeconfig_file = \"/k\"; } );",
      "g.conf:3: cluster 'a' is already on line 2: give it another name" },
    { "localities: { eu = [ \"norway\" ]; };",
      "g.conf:1: 'norway' in locality 'eu' must be \"PROVIDER:REGION\" or "
      "\"PROVIDER/SUBCLOUD:REGION\"" },
    { "localities: { eu = [ \"shade:oslo\" ]; };",
      "g.conf:1: locality 'eu' names provider 'shade', which is not configured" },
    { "broker: { name = \"x\" state_dir",
      "g.conf:1: syntax error (a missing ';', quote or bracket, here or just before?)" },
    { "broker: { run_dir = "
      "\"/0123456789012345678901234567890123456789012345678901234567890123456789012345678901\"; };",
      "g.conf: 'run_dir' in broker is too long for a socket's path" },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++)
    refused (rows[i][0], rows[i][1]);
}

static void
defaults (void)
{
  struct err e = ERR_INIT;
  struct conf c;

  if (!ok (conf_parse ("", "g.conf", &c, &e) == 0, "an empty file loads: %s", e.text))
    return;
  is_str (c.broker.state_dir, "/var/lib/gpubroker", "state_dir");
  is_str (c.broker.run_dir, "/run/gpubroker", "run_dir");
  is_num (c.broker.log_level, 6, "log_level");
  is_str (c.bus.requests.at[0], "ipc:///run/gpubroker/bus", "bus.requests");
  is_str (c.bus.events.at[0], "ipc:///run/gpubroker/events", "bus.events");
  ok (c.bus.nuids >= 1 && c.bus.uids[0].uid == 0 && c.bus.uids[0].rights == CONF_ADMIN,
      "root is admin");
  is_num (c.defaults.ttl_ms, 12 * 3600000, "defaults.ttl");
  ok (c.defaults.max_price_udollar == UINT64_MAX, "no price cap");
  is_str (c.defaults.cluster, "standalone", "defaults.cluster");
  ok (c.defaults.on_failure_keep && c.defaults.keep_ms == 3600000, "on_failure keep:1h");
  ok (c.limits.all.leases == UINT32_MAX && c.limits.all.udollar_per_hour == UINT64_MAX,
      "no limits");
  is_num (c.limits.joins, 32, "limits.joins");
  is_num (c.limits.removals_per_round, 5, "limits.removals_per_round");
  conf_free (&c);
}

static void
values (void)
{
  static const char text[] =
      "broker: { run_dir = \"/tmp/x\"; log_level = \"debug\"; };\n"
      "bus: { requests = [ \"tcp://*:4000\" ]; curve_secret_key_file = \"/c\";\n"
      "  authorized_clients = ( { key = \"0123456789012345678901234567890123456789\"; principal = "
      "\"svc\";\n"
      "    rights = \"admin\"; leases = 3; dollars_per_hour = 7; } ); };\n"
      "defaults: { ttl = \"none\"; max_price = 3; on_failure = \"release\"; market = \"any\"; };\n"
      "limits: { dollars_per_hour = 0.5; per_owner = { leases = 2; }; };\n"
      "providers: ( { name = \"aws-us\"; plugin = \"aws\"; regions = [ \"us-east-1\" ]; profile = "
      "\"gpu\";\n"
      "    api_key_env = \"K\"; key_file = \"/k\"; rate = 8; burst = 16; proxy = \"http://p\"; "
      "deep = { a = ( 1, 2.5, true ); };\n"
      "    offers_every = \"90s\"; paused = true; balance_alarm = \"24h\"; "
      "big = 5000000000L; }, { name = \"sf\"; balance_alarm = 50; } );\n"
      "clusters: ( { name = \"c\"; kubeconfig_credential = \"kc\"; k0s_version = "
      "\"1.34.10-k0s.0\";\n"
      "    cross_node = \"required\"; node_labels = [ \"a.b/c=d\" ]; taints = [ \"x=y:NoExecute\" "
      "]; locality = \"eu\";\n"
      "    allow_private = true; gpu_stack = \"none\"; } );\n"
      "localities: { eu = [ \"aws-us:eu-north-1\", \"aws-us/sub:x\" ]; };\n";
  const char *names[] = { "key_file" };
  struct err e = ERR_INIT;
  struct conf_provider *p;
  struct conf_cluster *k;
  struct conf c;

  if (!ok (conf_parse (text, "g.conf", &c, &e) == 0, "values load: %s", e.text))
    return;
  is_str (c.bus.events.at[0], "ipc:///tmp/x/events", "endpoints follow run_dir");
  is_num (c.broker.log_level, 7, "log levels are syslog's");
  ok (c.bus.nclients == 1 && c.bus.clients[0].rights == CONF_ADMIN &&
          c.bus.clients[0].limits.leases == 3 &&
          c.bus.clients[0].limits.udollar_per_hour == 7000000,
      "a CURVE client with limits");
  ok (c.bus.nuids == 0, "with CURVE clients alone no uid is let in");
  is_num (c.defaults.ttl_ms, 0, "ttl none");
  is_num ((int64_t) c.defaults.max_price_udollar, 3000000, "an integer where a float is meant");
  ok (!c.defaults.on_failure_keep && c.defaults.market == MARKET_ANY, "release, any market");
  is_num ((int64_t) c.limits.all.udollar_per_hour, 500000, "half a dollar");
  is_num (c.limits.per_owner.leases, 2, "per owner");
  p = &c.providers[0];
  is_str (p->plugin, "aws", "plugin");
  ok (p->paused && p->offers_every_ms == 90000 && p->reconcile_every_ms == 60000, "own settings");
  ok (p->balance_ms == 86400000 && p->balance_udollar == 0 && p[1].balance_ms == 0 &&
          p[1].balance_udollar == 50000000,
      "a balance is dollars or a time");
  ok (p->nsecrets == 2 && p->secrets[0].source == CONF_ENV &&
          strcmp (p->secrets[0].option, "api_key") == 0 && strcmp (p->secrets[0].where, "K") == 0,
      "secrets are places");
  conf_provider_declared (p, names, 1);
  is_num ((int64_t) p->nsecrets, 1, "what the plugin declares under its full name is no secret");
  {
    AUTO_FREE char *options = json_dumps (p->options, JSON_COMPACT | JSON_SORT_KEYS);
    AUTO_FREE char *http = json_dumps (p->http, JSON_COMPACT | JSON_SORT_KEYS);

    is_str (
        options,
        "{\"big\":5000000000,\"deep\":{\"a\":[1,2.5,true]},\"key_file\":\"/k\",\"profile\":\"gpu\","
        "\"regions\":[\"us-east-1\"]}",
        "options as JSON");
    is_str (http,
            "{\"burst\":16,\"proxy\":\"http://"
            "p\",\"rate\":8.0}",
            "the host's options apart");
  }
  k = &c.clusters[0];
  is_str (k->k0s_version, "v1.34.10+k0s.0", "both spellings of a version");
  ok (k->cross_node && k->allow_private && k->kubeconfig.source == CONF_CREDENTIAL,
      "cluster members");
  is_str (k->type, "k0smotron", "type");
  is_str (k->control_plane, "c", "the control plane is named like the cluster");
  is_str (json_string_value (json_object_get (k->node_labels, "a.b/c")), "d", "labels");
  ok (c.localities[0].members.n == 2 && conf_cluster (&c, "c") == k && !conf_provider (&c, "nope"),
      "lookups");
  conf_free (&c);
}

static void
durations (void)
{
  is_num (duration_parse ("90s"), 90000, "90s");
  is_num (duration_parse ("5m"), 300000, "5m");
  is_num (duration_parse ("2h"), 7200000, "2h");
  is_num (duration_parse ("7d"), 604800000, "7d");
  is_num (duration_parse ("250ms"), 250, "250ms");
  is_num (duration_parse ("5"), -1, "no unit");
  is_num (duration_parse ("m"), -1, "no number");
  is_num (duration_parse ("-5m"), -1, "negative");
  is_num (duration_parse ("99999999999999999999d"), -1, "absurd");
}

static void
write_file (const char *path, const char *text, mode_t mode)
{
  FILE *f = fopen (path, "w");

  if (!f)
    abort ();
  fputs (text, f);
  fclose (f);
  chmod (path, mode);
}

static void
secrets (const char *dir)
{
  AUTO_FREE char *path = NULL;
  struct conf_secret s = { (char *) "api_key", CONF_FILE, NULL, 1 };
  struct err e = ERR_INIT;
  char *bytes;
  size_t len;

  if (asprintf (&path, "%s/key", dir) < 0)
    abort ();
  s.where = path;
  write_file (path, "s3cret\n \n", 0600);
  ok (conf_read_secret (&s, &bytes, &len, &e) == 0 && len == 6 && strcmp (bytes, "s3cret") == 0,
      "a secret without the newline behind it");
  free (bytes);
  chmod (path, 0640);
  ok (conf_read_secret (&s, &bytes, &len, &e) < 0 && !bytes && strstr (e.text, "chmod 600") &&
          !strstr (e.text, "s3cret"),
      "a file that others can read is refused: %s", e.text);
  write_file (path, "\n", 0600);
  ok (conf_read_secret (&s, &bytes, &len, &e) < 0 && strstr (e.text, "is empty"),
      "an empty one too: %s", e.text);
  unlink (path);
  ok (conf_read_secret (&s, &bytes, &len, &e) < 0 && strstr (e.text, "No such file"),
      "and none: %s", e.text);
  s.source = CONF_ENV;
  s.where = (char *) "GPUB_TEST_SECRET";
  ok (conf_read_secret (&s, &bytes, &len, &e) < 0, "an unset variable: %s", e.text);
  setenv ("GPUB_TEST_SECRET", "abc", 1);
  ok (conf_read_secret (&s, &bytes, &len, &e) == 0 && strcmp (bytes, "abc") == 0, "a variable");
  free (bytes);
  s.source = CONF_CREDENTIAL;
  s.where = (char *) "key";
  unsetenv ("CREDENTIALS_DIRECTORY");
  ok (conf_read_secret (&s, &bytes, &len, &e) < 0, "no systemd: %s", e.text);
  setenv ("CREDENTIALS_DIRECTORY", dir, 1);
  write_file (path, "cred", 0644);
  ok (conf_read_secret (&s, &bytes, &len, &e) == 0 && strcmp (bytes, "cred") == 0,
      "a systemd credential");
  free (bytes);
  unlink (path);
}

static char *
slurp (const char *path)
{
  char *text = calloc (1, 65536);
  FILE *f = fopen (path, "r");

  if (!text || !f || !fread (text, 1, 65535, f))
    abort ();
  fclose (f);
  return text;
}

static void
files (const char *dir)
{
  AUTO_FREE char *text = NULL;
  AUTO_FREE char *path = NULL, *example = NULL, *part = NULL;
  struct err e = ERR_INIT;
  struct conf c;

  if (asprintf (&path, "%s/g.conf", dir) < 0 || asprintf (&part, "%s/part.conf", dir) < 0 ||
      asprintf (&example, "%s/docs/examples/gpubroker.conf",
                getenv ("GPUB_SRCDIR") ? getenv ("GPUB_SRCDIR") : ".") < 0)
    abort ();
  ok (conf_load (path, &c, &e) < 0 && strstr (e.text, "No such file") &&
          strstr (e.text, "--config"),
      "a missing file: %s", e.text);
  write_file (path, "", 0666);
  ok (conf_load (path, &c, &e) < 0 && strstr (e.text, "chmod o-w"), "a file that all can write: %s",
      e.text);
  write_file (path, "@include \"part.conf\"\n", 0644);
  write_file (part, "broker: {\n nam = \"x\"; };", 0644);
  ok (conf_load (path, &c, &e) < 0 && strstr (e.text, "part.conf:2: unknown setting 'nam'"),
      "an error in an included file names that file: %s", e.text);
  unlink (path);
  unlink (part);
  e = (struct err) ERR_INIT;
  text = slurp (example);
  write_file (path, text, 0644); /* the tree may be somebody else's */
  if (ok (conf_load (path, &c, &e) == 0, "docs/examples/gpubroker.conf loads %s", e.text)) {
    ok (c.nproviders == 3 && c.nclusters == 2 && c.nlocalities == 1 && c.bus.nuids == 2,
        "with all its parts");
    conf_free (&c);
  }
  unlink (path);
}

int
main (void)
{
  char dir[] = "/tmp/gpub-conf-XXXXXX";

  if (!mkdtemp (dir))
    abort ();
  mistakes ();
  defaults ();
  values ();
  durations ();
  secrets (dir);
  files (dir);
  rmdir (dir);
  return done ();
}
