/* cache.c - what AWS says seldom changes, remembered for a while, by region */
#include "config.h"

#include <stdio.h>

#include "plugins/aws/aws.h"

static void
key_of (const struct ctx *c, const char *what, char out[static 128])
{
  snprintf (out, 128, "%s/%s", c->region ? c->region : "", what);
}

json_t *
cache_get (const struct ctx *c, const char *what, int64_t max_age_ms)
{
  int64_t now = c->s->host->now_ms (c->call), at;
  json_t *entry, *value = NULL;
  char key[128];

  key_of (c, what, key);
  pthread_mutex_lock (&c->s->lock);
  entry = json_object_get (c->s->cache, key);
  at = json_i64 (entry, "at", 0);
  if (entry && at <= now && now - at < max_age_ms)
    value = json_incref (json_object_get (entry, "value"));
  pthread_mutex_unlock (&c->s->lock);
  return value;
}

void
cache_put (const struct ctx *c, const char *what, json_t *value)
{
  json_t *entry =
      json_pack ("{s:I, s:O}", "at", (json_int_t) c->s->host->now_ms (c->call), "value", value);
  char key[128];

  key_of (c, what, key);
  pthread_mutex_lock (&c->s->lock);
  json_object_set_new (c->s->cache, key, entry);
  pthread_mutex_unlock (&c->s->lock);
}

void
cache_drop (const struct ctx *c, const char *what)
{
  char key[128];

  key_of (c, what, key);
  pthread_mutex_lock (&c->s->lock);
  json_object_del (c->s->cache, key);
  pthread_mutex_unlock (&c->s->lock);
}
