/* client.c - libgpubroker: send, receive, and what a call is made of
 *
 * A broker may restart under a call.  Reads are simply asked again; a mutation with a key may be
 * too, since the broker does it once and answers with the same operation.  docs/protocol.md says
 * why.
 */
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
#include "core/json.h"

#define DEFAULT_ENDPOINT "ipc:///run/gpubroker/bus"

enum { CONNECT_MS = 6000, WAITING_MAX = 256 };

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

static int
decode (const struct frames *f, struct client_reply *r)
{
  int what = f->total == 4 ? proto_reply_parse (f->at[1]) : -1;

  if (what < 0 || !proto_id_ok (f->at[2]))
    return -1;
  r->kind = what + GPUBC_ACCEPTED;
  snprintf (r->id, sizeof r->id, "%.*s", (int) f->at[2].len, f->at[2].at);
  r->len = f->at[3].len;
  r->json = malloc (r->len + 1);
  if (!r->json)
    return -1;
  memcpy (r->json, f->at[3].at, r->len);
  r->json[r->len] = 0;
  return 0;
}

int
client_lend (struct gpubc *c, int outcome, struct gpubc_reply *r)
{
  if (outcome == c->last.kind)
    *r = (struct gpubc_reply){ sizeof *r, c->last.json, c->last.len, c->last.id };
  else
    *r = (struct gpubc_reply){ sizeof *r, "{}", 2, "" };
  return outcome;
}

int
client_keep (struct gpubc *c, const struct client_reply *from, struct gpubc_reply *r)
{
  free (c->last.json);
  c->last = *from;
  return client_lend (c, c->last.kind, r);
}

static int
wanted (const struct client_reply *r, const char *id)
{
  return !id || strcmp (r->id, id) == 0;
}

static int
take_waiting (struct gpubc *c, const char *id, struct gpubc_reply *r)
{
  for (size_t i = 0; i < c->waiting.n; i++)
    if (wanted (&c->waiting.at[i], id)) {
      struct client_reply found = c->waiting.at[i];

      memmove (&c->waiting.at[i], &c->waiting.at[i + 1],
               (--c->waiting.n - i) * sizeof c->waiting.at[0]);
      return client_keep (c, &found, r);
    }
  return 0;
}

/* For somebody else; the oldest goes when nobody ever asks. */
static void
keep_waiting (struct gpubc *c, const struct client_reply *r)
{
  if (c->waiting.n == WAITING_MAX) {
    free (c->waiting.at[0].json);
    memmove (c->waiting.at, c->waiting.at + 1, --c->waiting.n * sizeof *r);
  }
  *vec_push (&c->waiting) = *r;
}

/* 0: nothing for us yet. */
static int
read_one (struct gpubc *c, const char *id, struct gpubc_reply *r)
{
  struct client_reply got = { 0 };
  struct frames f;
  int bad;

  if (frames_recv (c->link.sock, &f) < 0)
    return 0;
  bad = decode (&f, &got);
  frames_done (&f);
  if (bad)
    return client_fail (c, GPUBC_INVALID, "%s: a reply breaks the protocol", c->endpoint);
  if (wanted (&got, id))
    return client_keep (c, &got, r);
  keep_waiting (c, &got);
  return 0;
}

int
gpubc_recv (struct gpubc *c, const char *id, int64_t timeout_ms, struct gpubc_reply *r)
{
  int64_t end = client_end (timeout_ms);
  int rc = take_waiting (c, id, r);

  while (!rc) {
    if (c->link.state != LINK_UP)
      return client_fail (c, GPUBC_UNREACHABLE, "the broker at %s went away", c->endpoint);
    switch (link_wait (&c->link, NULL, client_left (end))) {
    case LINK_INPUT:
      rc = read_one (c, id, r);
      break;
    case LINK_INTERRUPTED:
      return client_fail (c, GPUBC_INTERRUPTED, "interrupted");
    case LINK_BROKEN:
      return client_fail (c, GPUBC_UNREACHABLE, "%s: %s", c->endpoint, zmq_strerror (errno));
    default:
      if (client_left (end) == 0)
        return client_fail (c, GPUBC_TIMEOUT, "no reply in %" PRId64 " ms", timeout_ms);
    }
  }
  return rc;
}
