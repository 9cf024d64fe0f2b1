/* secrets.c - the bytes of SECRET frames, and keeping them out of everything that is written */
#include "config.h"

#include <string.h>

#include "core/log.h"
#include "sdk/host/host.h"

void
secret_put (struct host *h, const char *name, const void *bytes, size_t len)
{
  struct secret *s = NULL;

  pthread_mutex_lock (&h->secrets_lock);
  for (size_t i = 0; i < h->secrets.n; i++)
    if (strcmp (h->secrets.at[i].name, name) == 0)
      s = &h->secrets.at[i];
  if (!s) {
    s = vec_push (&h->secrets);
    s->name = strdup (name);
  }
  if (s->bytes)
    explicit_bzero (s->bytes, s->len);
  free (s->bytes);
  s->bytes = malloc (len + 1);
  if (!s->name || !s->bytes)
    abort ();
  memcpy (s->bytes, bytes, len);
  s->bytes[len] = '\0';
  s->len = len;
  redact_register (bytes, len);
  pthread_mutex_unlock (&h->secrets_lock);
}

bool
secret_has (const void *host, const char *name)
{
  const struct host *h = host;

  for (size_t i = 0; i < h->secrets.n; i++)
    if (strcmp (h->secrets.at[i].name, name) == 0)
      return true;
  return false;
}

void
secrets_redact (struct host *h, char *text)
{
  pthread_mutex_lock (&h->secrets_lock);
  redact (text);
  pthread_mutex_unlock (&h->secrets_lock);
}

void
secrets_mask (struct host *h, char *bytes, size_t len)
{
  pthread_mutex_lock (&h->secrets_lock);
  for (size_t i = 0; i < h->secrets.n; i++) {
    const struct secret *s = &h->secrets.at[i];
    char *p = bytes;

    while (s->len > 0 && (p = memmem (p, len - (size_t) (p - bytes), s->bytes, s->len)))
      memset (p, '*', s->len);
  }
  pthread_mutex_unlock (&h->secrets_lock);
}
