/* api_words.c - what a rent says: is it said rightly?
 *
 * Nothing is looked up here but names of the configuration.  What a provider would refuse only when
 * asked to create a machine is refused before one is chosen.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "core/api.h"

enum { NAME_MAX_LEN = 40, PORTS_MAX = 32 };

/* Beyond it sums of times would overflow long before anybody wanted them. */
static const int64_t span_max = 10ll * 366 * 86400 * 1000;

bool
api_span (struct ask *q, const json_t *in, const char *member, int64_t least)
{
  int64_t ms = json_i64 (in, member, least);

  if (ms >= least && ms <= span_max)
    return true;
  api_refuse (q, "bad-request", NULL, "%s is %lld: milliseconds from now, %lld to %lld (ten years)",
              member, (long long) ms, (long long) least, (long long) span_max);
  return false;
}

static bool
name_ok (const char *name)
{
  size_t n = strlen (name);

  if (n == 0 || n > NAME_MAX_LEN || !isalnum ((unsigned char) name[0]))
    return false;
  for (size_t i = 0; i < n; i++)
    if (!(islower ((unsigned char) name[i]) || isdigit ((unsigned char) name[i]) || name[i] == '-'))
      return false;
  return name[n - 1] != '-';
}

const char *
api_cluster (const struct ask *q)
{
  const char *c = json_str (q->body, "cluster", q->b->conf.defaults.cluster);

  return c && c[0] ? c : "none";
}

static int
cluster_ok (struct ask *q, const char *cluster)
{
  const char *names[64], *near;
  size_t n = 0;

  if (strcmp (cluster, "none") == 0 || conf_cluster (&q->b->conf, cluster))
    return 0;
  for (; n < q->b->conf.nclusters && n < N_ELEMENTS (names); n++)
    names[n] = q->b->conf.clusters[n].name;
  near = nearest (cluster, names, n);
  api_refuse (q, "not-found", "see: gpubroker-cli clusters", "no cluster '%.60s'%s%s%s", cluster,
              near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  return -1;
}

static int
strings_ok (struct ask *q, const char *member, size_t most, const char *prefix)
{
  const json_t *all = json_object_get (q->body, member), *s;
  size_t i;

  if (json_array_size (all) > most) {
    api_refuse (q, "bad-request", NULL, "'%s' has more than %zu elements", member, most);
    return -1;
  }
  json_array_foreach (all, i, s) {
    const char *text = json_string_value (s);

    if (!text || strlen (text) > 1024 || strchr (text, '\n') ||
        (prefix && strncmp (text, prefix, strlen (prefix)) != 0)) {
      api_refuse (q, "bad-request", NULL,
                  "'%s': element %zu is no public key in OpenSSH's one-line form", member, i);
      return -1;
    }
  }
  return 0;
}

static int
on_failure_ok (struct ask *q)
{
  static const struct json_member members[] = { { "action", JSON_STRING, true },
                                                { "keep_ms", JSON_INTEGER, false } };
  const json_t *on_failure = json_object_get (q->body, "on_failure");
  const char *action = json_str (on_failure, "action", "keep");
  struct err e = ERR_INIT;

  if (on_failure && json_check (on_failure, members, N_ELEMENTS (members), &e) < 0) {
    api_refuse (q, "bad-request", NULL, "on_failure: %s", e.text);
    return -1;
  }
  if (strcmp (action, "keep") != 0 && strcmp (action, "release") != 0) {
    api_refuse (q, "bad-request", NULL, "on_failure: action '%.40s' is neither keep nor release",
                action);
    return -1;
  }
  return api_span (q, on_failure, "keep_ms", 0) ? 0 : -1;
}

static int
ports_ok (struct ask *q)
{
  static const struct json_member members[] = { { "proto", JSON_STRING, true },
                                                { "from", JSON_INTEGER, true },
                                                { "to", JSON_INTEGER, true },
                                                { "cidr", JSON_STRING, true } };
  const json_t *all = json_object_get (q->body, "open"), *port;
  size_t i;

  if (json_array_size (all) > PORTS_MAX) {
    api_refuse (q, "bad-request", NULL, "'open' has more than %d elements", PORTS_MAX);
    return -1;
  }
  json_array_foreach (all, i, port) {
    const char *proto = json_str (port, "proto", "");
    int64_t from = json_i64 (port, "from", 0), to = json_i64 (port, "to", 0);
    struct err e = ERR_INIT;

    if (!json_is_object (port))
      err_set (&e, ERR_INVALID, "it must be an object");
    else if (json_check (port, members, N_ELEMENTS (members), &e) == 0 &&
             ((strcmp (proto, "tcp") != 0 && strcmp (proto, "udp") != 0) || from < 1 || to < from ||
              to > 65535))
      err_set (&e, ERR_INVALID, "%.20s %lld-%lld: tcp or udp, ports from 1 to 65535", proto,
               (long long) from, (long long) to);
    if (e.kind != ERR_NONE) {
      api_refuse (q, "bad-request", NULL, "'open': element %zu: %s", i, e.text);
      return -1;
    }
  }
  return 0;
}

int
api_words (struct ask *q)
{
  const char *name = json_str (q->body, "name", NULL);
  const json_t *labels = json_object_get (q->body, "labels");
  json_t *value;
  const char *key;

  if (name && !name_ok (name)) {
    api_refuse (q, "bad-request", NULL,
                "name '%.60s': lower-case letters, digits and '-', at most %d, starting and ending "
                "with one of the first two",
                name, NAME_MAX_LEN);
    return -1;
  }
  json_object_foreach ((json_t *) labels, key, value) {
    if (!json_is_string (value) || strlen (key) > 200) {
      api_refuse (q, "bad-request", NULL, "label '%.60s' must be a string", key);
      return -1;
    }
  }
  if (!api_span (q, q->body, "ttl_ms", 0) || !api_span (q, q->body, "deadline_ms", 1) ||
      on_failure_ok (q) < 0 || ports_ok (q) < 0)
    return -1;
  return strings_ok (q, "ssh_keys", 16, NULL) < 0 || cluster_ok (q, api_cluster (q)) < 0 ? -1 : 0;
}
