/* supervise_io.c - bytes from and to one process, within bounds */
#include "config.h"

#include <signal.h>
#include <sys/socket.h>

#include "core/fault.h"
#include "core/supervise_int.h"

static void
take_frames (struct proc *p)
{
  struct err e = ERR_INIT;
  struct wire_frame f;
  int rc = 0;

  while (p->stage != PROC_LOST && !p->child->freed && (rc = wire_next (&p->in, &f, &e)) == 1) {
    p->unanswered = 0;
    if (frame_take (p, &f, &e) < 0) {
      rc = -1;
      break;
    }
  }
  if (rc < 0)
    proc_break (p, &e);
  if (p->in.start == p->in.end && p->in.cap > 2 * WIRE_MAX_BODY)
    wire_buf_free (&p->in);
}

/* False when the connection has ended. */
bool
proc_read (struct proc *p, int reads)
{
  struct err e = ERR_INIT;
  int rc = 1;

  for (int i = 0; i < reads && rc == 1 && p->stage != PROC_LOST; i++) {
    rc = wire_read (p->fd, &p->in, &e);
    if (rc == 1)
      take_frames (p);
  }
  return rc >= 0;
}

void
proc_event (void *ctx, uint32_t events)
{
  struct proc *p = ctx;

  /* EPOLLOUT only ends the wait: writing is for supervisor_flush alone. */
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !proc_read (p, READS_PER_EVENT) &&
      p->stage != PROC_LOST)
    proc_hung_up (p);
  supervise_deliver (p->child->sup);
}

/* While faults are counted each frame is a write of its own. */
static int
write_frame (struct proc *p, struct err *e)
{
  const unsigned char *h = (const unsigned char *) p->out.at + p->out.start;
  size_t end = p->out.end, held = end - p->out.start;
  int rc;

  if (held == 0)
    return 0;
  if (p->frame_left == 0) {
    p->frame_left = WIRE_HEADER + ((size_t) h[0] | (size_t) h[1] << 8 | (size_t) h[2] << 16);
    fault_die ("frame", false);
    if (fault_hit ("child-frame", false))
      kill (p->pid, SIGKILL);
  }
  p->out.end = p->out.start + p->frame_left;
  rc = wire_write (p->fd, &p->out, e);
  p->frame_left = p->out.end - p->out.start;
  p->out.end = end;
  if (p->frame_left == 0) {
    fault_die ("frame", true);
    if (fault_hit ("child-frame", true))
      kill (p->pid, SIGKILL);
  }
  return rc;
}

void
proc_flush (struct proc *p)
{
  bool counted = fault_active ("frame") || fault_active ("child-frame");
  struct loop *loop = p->child->sup->loop;
  struct err e = ERR_INIT;
  uint32_t want;
  int rc = 1;

  if (p->stage == PROC_LOST || p->shut)
    return;
  while (rc == 1 && p->out.start != p->out.end)
    rc = counted ? write_frame (p, &e) : wire_write (p->fd, &p->out, &e);
  if (rc < 0)
    wire_buf_free (&p->out); /* the reading side learns why, in a turn of its own */
  want = p->out.start == p->out.end ? EPOLLIN : EPOLLIN | EPOLLOUT;
  if (want != p->events)
    loop_change (loop, p->fd, p->events = want);
  if (p->closing && want == EPOLLIN) {
    shutdown (p->fd, SHUT_WR);
    p->shut = true;
  }
}
