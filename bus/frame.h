/* frame.h - one multipart message in, one out
 *
 * A message is always read to its end, or the next one would be misread; what exceeds FRAMES_MAX
 * frames is thrown away as it comes.
 */
#ifndef GPUB_FRAME_H
#define GPUB_FRAME_H

#include <stddef.h>

#include <zmq.h>

enum { FRAMES_MAX = 6 }; /* routing id, delimiter, and the four of GPUB/1 */

struct bytes {
  const char *at;
  size_t len;
};

struct frames {
  zmq_msg_t msg[FRAMES_MAX];
  struct bytes at[FRAMES_MAX];
  size_t n;     /* kept */
  size_t total; /* received */
};

/* Never waits: 0, or -1 with errno EAGAIN when there is none.  frames_done after every 0. */
int frames_recv (void *sock, struct frames *f);
void frames_done (struct frames *f);

/* Never waits.  -1 with the errno of the first frame; when that went, the others go with it. */
int frames_send (void *sock, const struct bytes *at, size_t n);

#endif
