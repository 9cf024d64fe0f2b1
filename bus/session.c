/* session.c - who waits for which replies */
#include "config.h"

#include <string.h>

#include "bus/session.h"

enum { QUEUE_MAX = 256, QUEUE_BYTES_MAX = 4 << 20 };

static uint32_t *
head_of (struct sessions *all, struct bytes id)
{
  uint32_t h = 2166136261u; /* FNV-1a */

  for (size_t i = 0; i < id.len; i++)
    h = (h ^ (unsigned char) id.at[i]) * 16777619u;
  return &all->heads[h % SESSION_HEADS];
}

struct session *
session_of (const struct sessions *all, struct bytes id)
{
  uint32_t i = *head_of ((struct sessions *) all, id);

  while (i) {
    struct session *s = all->at[i - 1];

    if (s->address.len == id.len && memcmp (s->routing_id, id.at, id.len) == 0)
      return s;
    i = s->next;
  }
  return NULL;
}

static struct session *
new_slot (struct sessions *all)
{
  struct session *s = calloc (1, sizeof *s);

  if (!s)
    abort ();
  s->slot = (uint32_t) all->n;
  *vec_push (all) = s;
  return s;
}

struct session *
session_open (struct sessions *all, struct bytes id, struct principal *who, int fd)
{
  uint32_t *head = head_of (all, id);
  struct session *s = all->unused.n ? all->at[all->unused.at[--all->unused.n]] : new_slot (all);

  memcpy (s->routing_id, id.at, id.len);
  s->address = (struct bytes){ s->routing_id, id.len };
  s->who = who;
  s->fd = fd;
  s->life++;
  s->last = &s->first;
  s->next = *head;
  *head = s->slot + 1;
  return s;
}

uint64_t
session_number (const struct session *s)
{
  return (uint64_t) s->life << 32 | s->slot;
}

struct session *
session_by_number (const struct sessions *all, uint64_t number)
{
  uint32_t slot = (uint32_t) number;
  struct session *s = slot < all->n ? all->at[slot] : NULL;

  return s && s->who && s->life == number >> 32 ? s : NULL;
}

struct pending *
session_find (const struct session *s, const char *id)
{
  for (size_t i = 0; i < s->requests.n; i++)
    if (strcmp (s->requests.at[i].id, id) == 0)
      return &s->requests.at[i];
  return NULL;
}

void
session_add (struct sessions *all, struct session *s, const struct proto_request *r)
{
  struct pending *p = vec_push (&s->requests);

  strcpy (p->id, r->id);
  p->delimiter = r->delimiter;
  p->single = r->single;
  s->who->inflight++;
  all->inflight++;
}

static void
unlink_from (uint32_t *link, struct sessions *all, const struct session *s)
{
  while (*link != s->slot + 1)
    link = &all->at[*link - 1]->next;
  *link = s->next;
}

void
session_close (struct sessions *all, struct session *s)
{
  while (s->first)
    session_unqueue (all, s);
  s->who->inflight -= (uint32_t) s->requests.n;
  all->inflight -= (uint32_t) s->requests.n;
  s->requests.n = 0;
  unlink_from (head_of (all, s->address), all, s);
  s->who = NULL;
  *vec_push (&all->unused) = s->slot;
}

void
session_close_idle (struct sessions *all, struct session *s)
{
  if (s->requests.n == 0 && !s->first)
    session_close (all, s);
}

void
session_finish (struct sessions *all, struct session *s, struct pending *p)
{
  vec_drop (&s->requests, p - s->requests.at);
  s->who->inflight--;
  all->inflight--;
  session_close_idle (all, s);
}

int
session_queue (struct sessions *all, struct session *s, const struct pending *to,
               enum bus_reply what, struct bytes json)
{
  struct queued *q;

  if (s->first && (s->nqueued >= QUEUE_MAX || s->queued_bytes + json.len > QUEUE_BYTES_MAX))
    return -1;
  q = malloc (sizeof *q + json.len);
  if (!q)
    abort ();
  *q = (struct queued){ .to = *to, .what = what, .len = json.len };
  memcpy (q->json, json.at, json.len);
  all->with_queue += !s->first;
  *s->last = q;
  s->last = &q->next;
  s->nqueued++;
  s->queued_bytes += json.len;
  return 0;
}

void
session_unqueue (struct sessions *all, struct session *s)
{
  struct queued *q = s->first;

  s->first = q->next;
  s->nqueued--;
  s->queued_bytes -= q->len;
  free (q);
  if (!s->first) {
    s->last = &s->first;
    all->with_queue--;
  }
}

void
sessions_done (struct sessions *all)
{
  for (size_t i = 0; i < all->n; i++) {
    if (all->at[i]->who)
      session_close (all, all->at[i]);
    vec_free (&all->at[i]->requests);
    free (all->at[i]);
  }
  vec_free (all);
  vec_free (&all->unused);
}
