/* api_admin.c - verbs for operators */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/api.h"

static struct provider *
named (struct ask *q)
{
  const char *name = json_str (q->body, "provider", "");
  struct provider *p = provider_find (q->b, name);

  if (!p)
    api_refuse (q, "not-found", "see: gpubroker-cli providers", "no provider '%.60s'", name);
  return p;
}

static void
set_paused (struct ask *q, bool paused)
{
  struct provider *p = named (q);
  char key[128];

  if (!p)
    return;
  provider_pause_key (p->name, key, sizeof key);
  store_put_meta (q->b->store, key, paused ? "1" : "0");
  if (store_failed (q->b->store))
    return;
  p->paused = paused;
  feed_provider (q->b, p->name, paused ? "paused" : "resumed", q->r->principal);
  offers_state (q->b->offers, p->name,
                paused  ? OFFERS_PAUSED
                : p->up ? OFFERS_UP
                        : OFFERS_DOWN,
                "paused by hand");
  api_final (q, json_pack ("{s:o}", "provider", provider_json (p)));
}

void
api_pause (struct ask *q)
{
  set_paused (q, true);
}

/* The name "broker" is taken: no provider has it (conf_provider.c). */
void
api_resume (struct ask *q)
{
  if (strcmp (json_str (q->body, "provider", ""), "broker") != 0) {
    set_paused (q, false);
    return;
  }
  freeze_thaw (q->b, q->r->principal);
  api_final (q, json_pack ("{s:{s:s, s:s}}", "provider", "name", "broker", "state", "up"));
}

void
api_check (struct ask *q)
{
  struct provider *p = named (q);

  if (!p)
    return;
  memory_forgive (q->b->memory, p->name); /* who asks has mended something */
  provider_refresh (p);
  provider_reconcile (p);
  api_final (q, json_pack ("{s:o}", "provider", provider_json (p)));
}

void
api_render (struct ask *q)
{
  const char *name = json_str (q->body, "cluster", "");
  const struct conf_cluster *k = conf_cluster (&q->b->conf, name);

  if (k)
    clusters_render (q->b, k, q->body, &q->ticket);
  else
    api_refuse (q, "not-found", "see: gpubroker-cli clusters", "no cluster '%.60s'", name);
}
