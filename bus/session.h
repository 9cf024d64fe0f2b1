/* session.h - who waits for which replies
 *
 * A session is a connection with requests under way; it ends with the last of them, so idle clients
 * cost nothing.  The routing id is an address, never an identity, and the number says which life of
 * a slot is meant, so that a late reply cannot reach somebody else.
 */
#ifndef GPUB_SESSION_H
#define GPUB_SESSION_H

#include "bus/principal.h"
#include "bus/proto.h"
#include "core/vec.h"

enum { ROUTING_ID_MAX = 255, SESSION_HEADS = 1024 };

struct pending { /* a request without its last reply */
  char id[PROTO_ID_MAX + 1];
  int delimiter, single;
};

struct queued { /* a reply that the client had no room for */
  struct queued *next;
  struct pending to;
  enum bus_reply what;
  size_t len;
  char json[];
};

struct session {
  uint32_t slot, life, next;
  int fd; /* of the connection, -1 unknown; only to notice its end */
  struct principal *who;
  struct bytes address;
  char routing_id[ROUTING_ID_MAX];
  VEC (struct pending) requests;
  struct queued *first, **last;
  size_t nqueued, queued_bytes;
};

struct sessions {
  struct session **at; /* a slot for each, reused */
  size_t n, cap;
  VEC (uint32_t) unused;
  uint32_t heads[SESSION_HEADS]; /* slot + 1 */
  uint32_t inflight;
  size_t with_queue;
};

void sessions_done (struct sessions *all);

struct session *session_of (const struct sessions *all, struct bytes routing_id);
struct session *session_open (struct sessions *all, struct bytes routing_id, struct principal *who,
                              int fd);
uint64_t session_number (const struct session *s);
struct session *session_by_number (const struct sessions *all, uint64_t number);

struct pending *session_find (const struct session *s, const char *id);
void session_add (struct sessions *all, struct session *s, const struct proto_request *r);
/* Takes a request off; the session ends when nothing is left of it. */
void session_finish (struct sessions *all, struct session *s, struct pending *p);
void session_close (struct sessions *all, struct session *s);
void session_close_idle (struct sessions *all, struct session *s); /* when nothing is left of it */

/* -1 when the session is beyond its bound. */
int session_queue (struct sessions *all, struct session *s, const struct pending *to,
                   enum bus_reply what, struct bytes json);
void session_unqueue (struct sessions *all, struct session *s);

#endif
