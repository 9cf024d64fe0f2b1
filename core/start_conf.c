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

static bool
in_use (const struct broker *b, const char *provider)
{
  for (size_t i = 0; i < b->leases.n; i++)
    for (size_t k = 0; k < b->leases.at[i]->nattempts; k++) {
      const struct attempt *a = b->leases.at[i]->attempts[k];

      if (!attempt_ended (a->state) && strcmp (a->provider, provider) == 0)
        return true;
    }
  return false;
}

/* Who may ask, limits, defaults, clusters and localities change at once; providers with the next
 * start. */
int
start_reload (struct broker *b, struct err *e)
{
  struct conf fresh;

  if (conf_load (b->conf.path, &fresh, e) < 0)
    return -1;
  for (size_t i = 0; i < b->providers.n; i++)
    if (!conf_provider (&fresh, b->providers.at[i]->name) && in_use (b, b->providers.at[i]->name)) {
      err_set (e, ERR_CONFLICT, "provider %s has leases and cannot be removed from %s",
               b->providers.at[i]->name, fresh.path);
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
  feed_broker (b, "reloaded", b->conf.path);
  return 0;
}
