/* start_conf.c - what of the configuration becomes something else, at start and at a reload */
#include "config.h"

#include <string.h>

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

/* Who may ask, limits, defaults, clusters and localities change at once; providers with the next
 * start. */
int
start_reload (struct broker *b, struct err *e)
{
  struct conf fresh;

  if (conf_load (b->conf.path, &fresh, e) < 0)
    return -1;
  if (start_check_leases (b, &fresh, e) < 0) {
    conf_free (&fresh);
    return -1;
  }
  for (size_t i = 0; i < b->providers.n; i++)
    if (!conf_provider (&fresh, b->providers.at[i]->name)) {
      err_set (e, ERR_UNSUPPORTED, "provider %s was removed: that needs a restart",
               b->providers.at[i]->name);
      conf_free (&fresh);
      return -1;
    }
  for (size_t i = 0; i < b->providers.n; i++)
    b->providers.at[i]->conf = NULL;
  conf_free (&b->conf);
  b->conf = fresh;
  for (size_t i = 0; i < b->providers.n; i++)
    b->providers.at[i]->conf = conf_provider (&b->conf, b->providers.at[i]->name);
  start_localities (b);
  start_uids (b);
  for (size_t i = 0; i < b->providers.n; i++)
    if (provider_configure (b->providers.at[i], e) < 0)
      feed_provider (b, b->providers.at[i]->name, "not-reloaded", e->text);
  feed_broker (b, "reloaded", b->conf.path);
  return 0;
}
