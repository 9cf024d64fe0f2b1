/* start_conf.c - what of the configuration becomes something else, at start and at a reload */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/start.h"

void
start_localities (struct broker *b)
{
  free (b->localities);
  b->localities = calloc (b->conf.nlocalities + 1, sizeof *b->localities);
  for (size_t i = 0; i < b->conf.nlocalities; i++) {
    b->localities[i].name = b->conf.localities[i].name;
    b->localities[i].members = (const char *const *) b->conf.localities[i].members.at;
    b->localities[i].nmembers = b->conf.localities[i].members.n;
  }
}

/* The name of a provider or cluster that a lease still needs and that this configuration lacks;
 * NULL: none. */
static const char *
lacking (const struct broker *b, const struct conf *c, const char **what)
{
  for (size_t i = 0; i < b->leases.n; i++) {
    const struct lease *l = b->leases.at[i];

    *what = "cluster";
    if (!lease_ended (l->state) && l->cluster && strcmp (l->cluster, "none") != 0 &&
        !conf_cluster (c, l->cluster))
      return l->cluster;
    *what = "provider";
    for (size_t k = 0; k < l->nattempts; k++)
      if (!lease_own (l) && !attempt_ended (l->attempts[k]->state) &&
          !conf_provider (c, l->attempts[k]->provider))
        return l->attempts[k]->provider;
  }
  return NULL;
}

int
start_check_leases (const struct broker *b, const struct conf *c, struct err *e)
{
  const char *what, *name = lacking (b, c, &what);

  if (!name)
    return 0;
  return err_set (e, ERR_CONFLICT,
                  "%s: %s %s has leases: put it back, release them, then remove it", c->path, what,
                  name);
}

/* The provider that runs and that this configuration lacks; NULL: none. */
static const char *
removed (const struct broker *b, const struct conf *fresh)
{
  for (size_t i = 0; i < b->providers.n; i++)
    if (!conf_provider (fresh, b->providers.at[i]->name))
      return b->providers.at[i]->name;
  return NULL;
}

static void
take_conf (struct broker *b, const struct conf *fresh)
{
  conf_free (&b->conf);
  b->conf = *fresh;
  for (size_t i = 0; i < b->providers.n; i++)
    b->providers.at[i]->conf = conf_provider (&b->conf, b->providers.at[i]->name);
  start_localities (b);
  start_uids (b);
}

static void
failed (struct broker *b, json_t *told, const char *provider, const char *why)
{
  feed_provider (b, provider, "not-reloaded", why);
  json_array_append_new (json_object_get (told, "failed"),
                         json_pack ("{s:s, s:s}", "provider", provider, "message", why));
}

/* Those that run get what has changed; those that are new are started. */
static void
reload_providers (struct broker *b, json_t *told)
{
  for (size_t i = 0; i < b->conf.nproviders; i++) {
    const char *name = b->conf.providers[i].name;
    struct provider *p = provider_find (b, name);
    struct err e = ERR_INIT;

    if (p ? provider_configure (p, &e) < 0 : provider_start (b, &b->conf.providers[i], &e) < 0)
      failed (b, told, name, e.text);
    else if (!p)
      json_array_append_new (json_object_get (told, "started"), json_string (name));
  }
}

json_t *
start_reload (struct broker *b, struct err *e)
{
  struct conf fresh;
  json_t *told;

  if (conf_load (b->conf.path, &fresh, e) < 0)
    return NULL;
  if (start_check_leases (b, &fresh, e) < 0) {
    conf_free (&fresh);
    return NULL;
  }
  if (removed (b, &fresh)) {
    err_set (e, ERR_UNSUPPORTED, "provider %s was removed: that needs a restart",
             removed (b, &fresh));
    conf_free (&fresh);
    return NULL;
  }
  start_declare (&fresh);
  take_conf (b, &fresh);
  told = json_pack ("{s:[], s:[]}", "started", "failed");
  reload_providers (b, told);
  feed_broker (b, "reloaded", b->conf.path);
  return told;
}
