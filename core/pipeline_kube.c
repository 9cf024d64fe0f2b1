/* pipeline_kube.c - calls of the kube runner about a lease, each with its cluster's kubeconfig */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/json.h"
#include "core/log.h"
#include "core/pipeline_args.h"
#include "core/pipeline_int.h"

enum { ALARM_AFTER = 3 };

/* The kubeconfig as a secret of one call; NULL, and the code kubeconfig-unreadable, when it cannot
 * be read. */
static char *
kubeconfig (const struct lease *l, struct child_secret *s, struct err *e)
{
  const struct conf_cluster *k = conf_cluster (&l->broker->conf, l->cluster);
  char *bytes = NULL;

  if (conf_read_secret (&k->kubeconfig, &bytes, &s->len, e) < 0) {
    snprintf (e->code, sizeof e->code, "kubeconfig-unreadable");
    return NULL;
  }
  s->name = "kubeconfig";
  s->bytes = bytes;
  return bytes;
}

static void
forget_kubeconfig (char *bytes, const struct child_secret *s)
{
  explicit_bzero (bytes, s->len);
  free (bytes);
}

/* A kubeconfig that cannot be read is an answer like any other: what it means depends on who asked.
 */
void
pipeline_kube (struct lease *l, const char *call, json_t *args, int64_t ms, call_done *then)
{
  struct child_secret config;
  struct call_result none = { .err = ERR_INIT };
  char *bytes = kubeconfig (l, &config, &none.err);

  if (!bytes) {
    json_decref (args);
    then (l, NULL, &none);
    return;
  }
  call_lease (l, l->broker->kube,
              &(struct call){ call, args, ms, false, &config, 1, pipeline_item, then });
  forget_kubeconfig (bytes, &config);
}

void
pipeline_lint (struct lease *l, call_done *then)
{
  feed_step (l, "lint", l->cluster);
  pipeline_kube (l, "lint", args_cluster (l, NULL), l->broker->times.call, then);
}

void
pipeline_health (struct lease *l, struct attempt *a, call_done *then)
{
  json_t *args = args_cluster (l, NULL);

  json_object_set_new (args, "nodes", json_pack ("[s]", a->name));
  pipeline_kube (l, "health", args, l->broker->times.call, then);
}

/* ---- what a machine that has gone leaves behind ---- */

static void
forgot (struct attempt *a)
{
  log_at (LOG_INFO, "node.forgotten", "lease=%s node=%s", a->lease->id, a->name);
  a->node_left = false;
  a->tries = 0;
  attempt_save (a);
  engine_save (a->lease); /* its row says whether it is over */
  a->lease->broker->some_over = true;
}

static void
forgotten (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (r->err.kind == ERR_NONE) {
    forgot (a);
    return;
  }
  log_at (LOG_WARNING, "node.left", "lease=%s node=%s tries=%d error=\"%s\"", l->id, a->name,
          a->tries, r->err.text);
  if (a->tries++ == ALARM_AFTER)
    feed_alarm (l->broker, "node-left", a->name);
  attempt_later (a, backoff (&l->broker->times, a->tries));
}

static void
forget_call (struct attempt *a, const char *call, json_t *args, call_done *then)
{
  struct child_secret config;
  struct call_result none = { .err = ERR_INIT };
  char *bytes = kubeconfig (a->lease, &config, &none.err);

  if (!bytes) {
    json_decref (args);
    forgotten (a->lease, a, &none);
    return;
  }
  call_attempt (
      a, a->lease->broker->kube,
      &(struct call){ call, args, a->lease->broker->times.call, false, &config, 1, NULL, then });
  forget_kubeconfig (bytes, &config);
}

static void
node_gone (struct lease *l, struct attempt *a, const struct call_result *r)
{
  if (r->err.kind == ERR_NONE)
    forget_call (a, "invalidate", args_machine (l, a), forgotten);
  else
    forgotten (l, a, r);
}

void
pipeline_forget (struct attempt *a)
{
  if (pipeline_has_cluster (a->lease))
    forget_call (a, "delete_node", args_node (a->lease, a), node_gone);
  else
    forgot (a); /* the cluster left the configuration */
}
