/* receive.c - replies in: to the one who waits, or kept for who will */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "bus/client.h"

enum { WAITING_MAX = 256 };

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
