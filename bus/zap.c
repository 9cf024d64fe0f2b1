/* zap.c - decides which connections come to be (ZeroMQ RFC 27)
 *
 * For ipc with the NULL mechanism libzmq gives the kernel's word on the peer as
 * "localhost:uid:gid:pid".
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "bus/frame.h"
#include "bus/sock.h"
#include "bus/zap.h"

#define ENDPOINT "inproc://zeromq.zap.01"

enum {
  RFC_VERSION,
  REQUEST,
  DOMAIN,
  ADDRESS,
  IDENTITY,
  MECHANISM,
  NFIELDS
}; /* then the credentials */

/* Each mechanism turns what libzmq knows of a peer into a User-Id; NULL refuses. */
struct mechanism {
  const char *name;
  const struct principal *(*identify) (const struct zap *z, const struct frames *f);
};

static const struct principal *
identify_local (const struct zap *z, const struct frames *f)
{
  char address[80], user_id[32];
  unsigned uid, gid;
  int pid, end = 0;

  snprintf (address, sizeof address, "%.*s", (int) f->at[ADDRESS].len, f->at[ADDRESS].at);
  if (sscanf (address, "localhost:%u:%u:%d%n", &uid, &gid, &pid, &end) != 3 || address[end])
    return NULL;
  if (z->refuse_pid && pid == z->refuse_pid)
    return NULL;
  snprintf (user_id, sizeof user_id, "uid:%u", uid);
  return principals_find (z->who, user_id);
}

static const struct mechanism mechanisms[] = {
  { "NULL", identify_local },
};

static int
is (struct bytes b, const char *text)
{
  return b.len == strlen (text) && memcmp (b.at, text, b.len) == 0;
}

static const struct principal *
judge (const struct zap *z, const struct frames *f)
{
  if (f->n < NFIELDS || !is (f->at[RFC_VERSION], "1.0") || !is (f->at[DOMAIN], ZAP_DOMAIN))
    return NULL;
  for (size_t i = 0; i < N_ELEMENTS (mechanisms); i++)
    if (is (f->at[MECHANISM], mechanisms[i].name))
      return mechanisms[i].identify (z, f);
  return NULL;
}

/* 300 makes the peer come back later, 400 makes it give up. */
static const char *
status (const struct zap *z, const struct principal *who)
{
  return !who ? "400" : z->full ? "300" : "200";
}

static void
answer (struct zap *z, const struct frames *f)
{
  const struct principal *who = judge (z, f);
  const char *id = who ? who->user_id : "";
  struct bytes request = f->n > REQUEST ? f->at[REQUEST] : (struct bytes){ "", 0 };
  struct bytes reply[] = {
    { "1.0", 3 }, request, { status (z, who), 3 }, { "", 0 }, { id, strlen (id) }, { "", 0 },
  };

  z->refused += !who;
  frames_send (z->sock, reply, N_ELEMENTS (reply));
}

void
zap_pump (struct zap *z, void (*look) (void *ctx), void *ctx)
{
  struct frames f;

  while (frames_recv (z->sock, &f) == 0) {
    if (look)
      look (ctx);
    answer (z, &f);
    frames_done (&f);
  }
}

int
zap_init (struct zap *z, void *ctx, const struct principals *who, struct err *e)
{
  z->who = who;
  z->sock = sock_new (ctx, ZMQ_REP, NULL, 0, NULL, e);
  if (z->sock && zmq_bind (z->sock, ENDPOINT) < 0)
    return err_set (e, ERR_INTERNAL, "bind %s: %s", ENDPOINT, zmq_strerror (errno));
  return z->sock ? 0 : -1;
}

void
zap_done (struct zap *z)
{
  sock_close (z->sock, 0);
  z->sock = NULL;
}
