/* client.c - libgpubroker: a connection, and requests out */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <zmq.h>

#include "bus/client.h"
#include "bus/sock.h"
#include "core/clock.h"

#define DEFAULT_ENDPOINT "ipc:///run/gpubroker/bus"

enum { CONNECT_MS = 6000 };

struct gpubc *
gpubc_new (const char *endpoint)
{
  struct gpubc *c = calloc (1, sizeof *c);
  const char *from_env = getenv ("GPUBROKER_ENDPOINT");

  if (!endpoint)
    endpoint = from_env && *from_env ? from_env : DEFAULT_ENDPOINT;
  if (!c || link_init (&c->link) < 0) {
    free (c);
    return NULL;
  }
  c->endpoint = strdup (endpoint);
  gpubc_key (c->prefix);
  if (c->endpoint)
    return c;
  gpubc_free (c);
  return NULL;
}

void
gpubc_free (struct gpubc *c)
{
  if (!c)
    return;
  for (size_t i = 0; i < c->waiting.n; i++)
    free (c->waiting.at[i].json);
  vec_free (&c->waiting);
  free (c->last.json);
  sock_close (c->sub, 0);
  link_done (&c->link);
  free (c->endpoint);
  free (c);
}

const char *
gpubc_why (const struct gpubc *c)
{
  return c->why;
}

int
client_fail (struct gpubc *c, int outcome, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (c->why, sizeof c->why, fmt, ap);
  va_end (ap);
  return outcome;
}

void
gpubc_interrupt (struct gpubc *c)
{
  link_interrupt (&c->link);
}

void
gpubc_key (char key[37])
{
  unsigned char r[16];
  char *to = key;

  if (getentropy (r, sizeof r) < 0)
    abort ();
  r[6] = (unsigned char) (0x40 | (r[6] & 0x0f)); /* version 4 */
  r[8] = (unsigned char) (0x80 | (r[8] & 0x3f));
  for (int i = 0; i < 16; i++)
    to += sprintf (to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", r[i]);
}

int64_t
client_left (int64_t end)
{
  int64_t ms = end - clock_boot_ms ();

  return end < 0 ? -1 : ms > 0 ? ms : 0;
}

int64_t
client_end (int64_t timeout_ms)
{
  return timeout_ms < 0 ? -1 : clock_boot_ms () + timeout_ms;
}

/* What the broker would have said, had it let us in. */
static void
say_denied (struct gpubc *c)
{
  snprintf (c->why, sizeof c->why, "user %u may not use the broker at %s", (unsigned) geteuid (),
            c->endpoint);
  free (c->last.json);
  c->last.json = proto_error ("denied", c->why, "list the uid under bus.uids in gpubroker.conf", 0);
  c->last.len = strlen (c->last.json);
  c->last.kind = GPUBC_ERROR;
  *c->last.id = 0;
}

static int
not_up (struct gpubc *c)
{
  int why;

  if (c->link.state == LINK_REFUSED) {
    say_denied (c);
    return GPUBC_ERROR;
  }
  why = link_diagnose (c->endpoint, c->why, sizeof c->why);
  if (why == EACCES) {
    say_denied (c);
    return GPUBC_ERROR;
  }
  return GPUBC_UNREACHABLE;
}

/* GPUBC_ACCEPTED when the link is up. */
int
client_connect (struct gpubc *c, int64_t patience_ms)
{
  int64_t end = client_end (patience_ms);

  link_catch_up (&c->link);
  if (c->link.state == LINK_UP)
    return GPUBC_ACCEPTED;
  if (link_open (&c->link, c->endpoint) < 0)
    return client_fail (c, GPUBC_INVALID, "%s: %s", c->endpoint, zmq_strerror (errno));
  while (c->link.state == LINK_CONNECTING && client_left (end))
    if (link_wait (&c->link, NULL, client_left (end)) == LINK_INTERRUPTED)
      return client_fail (c, GPUBC_INTERRUPTED, "interrupted");
  return c->link.state == LINK_UP ? GPUBC_ACCEPTED : not_up (c);
}

int
client_put (struct gpubc *c, const char *verb, const char *json, const char *id)
{
  const struct bytes at[] = {
    { PROTO_MAGIC, strlen (PROTO_MAGIC) },
    { verb, strlen (verb) },
    { id, strlen (id) },
    { json, strlen (json) },
  };

  if (frames_send (c->link.sock, at, N_ELEMENTS (at)) == 0)
    return GPUBC_ACCEPTED;
  return client_fail (c, GPUBC_UNREACHABLE, "%s: %s", c->endpoint,
                      errno == EAGAIN ? "the broker takes no more requests" : zmq_strerror (errno));
}

int
gpubc_send (struct gpubc *c, const char *verb, const char *json, char id[65])
{
  int rc;

  if (!*verb || strlen (verb) > PROTO_VERB_MAX || strlen (json) > PROTO_BODY_MAX)
    return client_fail (c, GPUBC_INVALID, "a verb has 1 to %d bytes, a body at most %d",
                        PROTO_VERB_MAX, PROTO_BODY_MAX);
  rc = client_connect (c, CONNECT_MS);
  if (rc != GPUBC_ACCEPTED)
    return rc;
  snprintf (id, 65, "%.8s-%" PRIu64, c->prefix, ++c->sent);
  return client_put (c, verb, json, id);
}
