/* clusters.c - how the configured clusters are: linted now and then, so that a rent is no surprise
 *
 * A look only.  What decides is the lint that each rent makes before any money is spent.
 */
#include "config.h"

#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/pipeline_args.h"

enum { LOOK_EVERY_MS = 10 * 60000 };

static const char *
worst (const json_t *findings)
{
  const char *state = "ok";
  const json_t *f;
  size_t i;

  json_array_foreach (findings, i, f) {
    if (strcmp (json_str (f, "severity", ""), "error") == 0)
      return "errors";
    state = "warnings";
  }
  return state;
}

static void
looked (void *ctx, uint32_t id, const struct call_result *r)
{
  static const char *const shown[] = { "findings", "server", "nodes", "gpu_nodes" };
  struct cluster *c = ctx;
  json_t *seen = json_object ();

  (void) id;
  json_put_i64 (seen, "checked_ms", now_ms ());
  if (r->err.kind != ERR_NONE) {
    json_put_str (seen, "state", "unreachable");
    json_put_str (seen, "error", r->err.text);
  } else {
    json_put_str (seen, "state", worst (json_object_get (r->value, "findings")));
    for (size_t i = 0; i < N_ELEMENTS (shown); i++)
      if (json_object_get (r->value, shown[i]))
        json_object_set (seen, shown[i], json_object_get (r->value, shown[i]));
  }
  json_decref (c->seen);
  c->seen = seen;
}

static void
look (struct cluster *c)
{
  const struct conf_cluster *k = conf_cluster (&c->broker->conf, c->name);
  struct child_secret config = { "kubeconfig", NULL, 0 };
  struct err e = ERR_INIT;
  char *bytes = NULL;

  if (!k || conf_read_secret (&k->kubeconfig, &bytes, &config.len, &e) < 0) {
    json_decref (c->seen);
    c->seen = json_pack ("{s:s, s:s}", "state", "unreachable", "error", e.text);
    return;
  }
  config.bytes = bytes;
  child_call (c->broker->kube, &(struct child_call){ .call = "lint",
                                                     .key = c->name,
                                                     .args = args_of_cluster (k),
                                                     .deadline_ms = c->broker->times.call,
                                                     .secrets = &config,
                                                     .nsecrets = 1,
                                                     .on_result = looked,
                                                     .ctx = c });
  explicit_bzero (bytes, config.len);
  free (bytes);
}

static void
look_at_all (void *ctx)
{
  struct broker *b = ctx;

  for (size_t i = 0; i < b->clusters.n && !b->stopping; i++)
    look (b->clusters.at[i]);
  loop_after (b->loop, LOOK_EVERY_MS, look_at_all, b);
}

/* Clusters that a reload brought are known from the next start on; their rents are linted all the
 * same. */
void
clusters_start (struct broker *b)
{
  for (size_t i = 0; i < b->conf.nclusters; i++) {
    struct cluster *c;

    if (conf_is_standalone (&b->conf.clusters[i]))
      continue;
    c = calloc (1, sizeof *c);

    if (!c)
      abort ();
    c->broker = b;
    set_str (&c->name, b->conf.clusters[i].name);
    *vec_push (&b->clusters) = c;
  }
  loop_after (b->loop, 0, look_at_all, b);
}

static int
leases_on (const struct broker *b, const char *cluster)
{
  int n = 0;

  for (size_t i = 0; i < b->leases.n; i++)
    n += b->leases.at[i]->cluster && strcmp (b->leases.at[i]->cluster, cluster) == 0;
  return n;
}

json_t *
cluster_json (const struct broker *b, const struct conf_cluster *k)
{
  json_t *j = json_pack ("{s:s, s:s, s:i, s:s}", "name", k->name, "type", k->type, "leases",
                         leases_on (b, k->name), "state", "unchecked");

  json_put_str (j, "namespace", k->namespace_);
  json_put_str (j, "control_plane", k->control_plane);
  json_put_str (j, "k0s_version", k->k0s_version);
  json_put_str (j, "cni", k->cni);
  json_put_str (j, "cross_node", k->cross_node ? "required" : "no");
  json_put_str (j, "locality", k->locality);
  json_put_str (j, "gpu_stack", k->gpu_stack);
  for (size_t i = 0; i < b->clusters.n; i++)
    if (strcmp (b->clusters.at[i]->name, k->name) == 0 && b->clusters.at[i]->seen)
      json_object_update (j, b->clusters.at[i]->seen);
  return j;
}

/* ---- texts for a cluster ---- */

struct render {
  struct broker *broker;
  struct bus_ticket ticket;
};

static void
rendered (void *ctx, uint32_t id, const struct call_result *r)
{
  struct render *x = ctx;

  (void) id;
  if (r->err.kind == ERR_NONE)
    turn_reply (x->broker, &x->ticket, BUS_FINAL, json_incref ((json_t *) r->value));
  else
    turn_error (x->broker, &x->ticket, r->err.kind == ERR_INVALID ? "bad-request" : "internal",
                NULL, NULL, "%s", r->err.text);
  free (x);
}

/* "https://host:port" as the last look found it, without the scheme. */
static const char *
server_of (const struct broker *b, const char *name)
{
  for (size_t i = 0; i < b->clusters.n; i++) {
    const char *url = json_str (b->clusters.at[i]->seen, "server", NULL);

    if (url && strcmp (b->clusters.at[i]->name, name) == 0)
      return strncmp (url, "https://", 8) == 0 ? url + 8 : url;
  }
  return NULL;
}

void
clusters_render (struct broker *b, const struct conf_cluster *k, const json_t *wishes,
                 const struct bus_ticket *ticket)
{
  struct render *x = calloc (1, sizeof *x);
  json_t *args = args_of_cluster (k), *params = json_deep_copy (wishes);

  if (!x || !params)
    abort ();
  *x = (struct render){ b, *ticket };
  json_put_str (params, "server", server_of (b, k->name));
  json_put_str (args, "part", json_str (wishes, "part", "cluster"));
  json_object_set_new (args, "params", params);
  child_call (b->kube, &(struct child_call){ .call = "render",
                                             .args = args,
                                             .deadline_ms = b->times.call,
                                             .on_result = rendered,
                                             .ctx = x });
}
