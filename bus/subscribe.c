/* subscribe.c - events for a C client: hints, of which some may be lost; the caller watches epoch
 * and seq */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <zmq.h>

#include "bus/client.h"
#include "bus/sock.h"
#include "core/json.h"

int
gpubc_subscribe (struct gpubc *c, const char *endpoint, const char *topic)
{
  if (strlen (topic) > PROTO_TOPIC_MAX)
    return client_fail (c, GPUBC_INVALID, "a topic has at most %d bytes", PROTO_TOPIC_MAX);
  if (!c->sub)
    c->sub = sock_new (c->link.ctx, ZMQ_SUB, NULL, 0, NULL, NULL);
  if (!c->sub || zmq_setsockopt (c->sub, ZMQ_SUBSCRIBE, topic, strlen (topic)) < 0 ||
      (endpoint && zmq_connect (c->sub, endpoint) < 0))
    return client_fail (c, GPUBC_INVALID, "%s: %s", endpoint ? endpoint : topic,
                        zmq_strerror (errno));
  return GPUBC_ACCEPTED;
}

static int
decode (struct gpubc *c, const struct frames *f, uint64_t *epoch, uint64_t *seq,
        struct client_reply *to)
{
  AUTO_JSON json_t *head = NULL;

  if (f->total != 3 || f->at[0].len > PROTO_TOPIC_MAX)
    return -1;
  head = json_parse (f->at[1].at, f->at[1].len, NULL);
  if (!head)
    return -1;
  *epoch = (uint64_t) json_i64 (head, "epoch", 0);
  *seq = (uint64_t) json_i64 (head, "seq", 0);
  memcpy (c->topic, f->at[0].at, f->at[0].len);
  c->topic[f->at[0].len] = 0;
  to->kind = GPUBC_PROGRESS;
  to->len = f->at[2].len;
  to->json = strndup (f->at[2].at, f->at[2].len);
  return to->json ? 0 : -1;
}

int
gpubc_event (struct gpubc *c, int64_t timeout_ms, const char **topic, uint64_t *epoch,
             uint64_t *seq, struct gpubc_reply *r)
{
  int64_t end = client_end (timeout_ms);
  struct client_reply got = { 0 };
  struct frames f;

  if (!c->sub)
    return client_fail (c, GPUBC_INVALID, "nothing is subscribed to");
  while (frames_recv (c->sub, &f) < 0) {
    if (link_wait (&c->link, c->sub, client_left (end)) == LINK_INTERRUPTED)
      return client_fail (c, GPUBC_INTERRUPTED, "interrupted");
    if (client_left (end) == 0)
      return client_fail (c, GPUBC_TIMEOUT, "no event in %" PRId64 " ms", timeout_ms);
  }
  if (decode (c, &f, epoch, seq, &got) < 0) {
    frames_done (&f);
    return client_fail (c, GPUBC_INVALID, "an event breaks the protocol");
  }
  frames_done (&f);
  *topic = c->topic;
  return client_keep (c, &got, r);
}
