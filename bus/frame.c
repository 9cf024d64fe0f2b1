/* frame.c - one multipart message in, one out */
#include "config.h"

#include <errno.h>

#include "bus/frame.h"

static int
recv_one (void *sock, zmq_msg_t *m)
{
  int rc;

  zmq_msg_init (m);
  while ((rc = zmq_msg_recv (m, sock, ZMQ_DONTWAIT)) < 0 && errno == EINTR)
    ;
  if (rc < 0)
    zmq_msg_close (m);
  return rc;
}

static void
keep (struct frames *f, zmq_msg_t *m)
{
  zmq_msg_t *to = &f->msg[f->n];

  zmq_msg_init (to);
  zmq_msg_move (to, m);
  f->at[f->n++] = (struct bytes){ zmq_msg_data (to), zmq_msg_size (to) };
}

int
frames_recv (void *sock, struct frames *f)
{
  zmq_msg_t m;
  int more = 1;

  f->n = f->total = 0;
  while (more) {
    if (recv_one (sock, &m) < 0)
      return f->total ? 0 : -1; /* libzmq hands out whole messages: never in the middle */
    more = zmq_msg_more (&m);
    if (f->total++ < FRAMES_MAX)
      keep (f, &m);
    zmq_msg_close (&m);
  }
  return 0;
}

void
frames_done (struct frames *f)
{
  for (size_t i = 0; i < f->n; i++)
    zmq_msg_close (&f->msg[i]);
  f->n = 0;
}

static int
send_one (void *sock, const struct bytes *b, int more)
{
  int rc;

  while ((rc = zmq_send (sock, b->at, b->len, ZMQ_DONTWAIT | more)) < 0 && errno == EINTR)
    ;
  return rc;
}

int
frames_send (void *sock, const struct bytes *at, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (send_one (sock, &at[i], i + 1 < n ? ZMQ_SNDMORE : 0) < 0)
      return -1;
  return 0;
}
