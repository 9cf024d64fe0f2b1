/* events.c - the PUB side: a hint that something happened; the store has the truth */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bus/internal.h"

/* Topics near 256 bytes are mis-encoded by libzmq 4.3.4; ours are far below, a longer one is cut.
 */
void
bus_publish (struct bus *b, const char *topic, uint64_t epoch, uint64_t seq, const char *json,
             size_t len)
{
  char head[80];
  int n = snprintf (head, sizeof head, "{\"epoch\":%" PRIu64 ",\"seq\":%" PRIu64 "}", epoch, seq);
  struct bytes at[] = {
    { topic, strnlen (topic, PROTO_TOPIC_MAX) },
    { head, (size_t) n },
    { json, len },
  };

  frames_send (b->sock[BUS_EVENTS], at, N_ELEMENTS (at));
}

void
bus_beat (struct bus *b, uint64_t epoch, uint64_t seq)
{
  bus_publish (b, "beat", epoch, seq, "{}", 2);
  reply_flush (b);
}
