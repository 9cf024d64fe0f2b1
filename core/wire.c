/* wire.c - frames between gpubrokerd and its children */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/json.h"
#include "core/wire.h"

enum { READ_CHUNK = 64 * 1024 };

static void
put32 (unsigned char *p, uint32_t v)
{
  for (int i = 0; i < 4; i++)
    p[i] = (unsigned char) (v >> (8 * i));
}

static uint32_t
get32 (const unsigned char *p)
{
  return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

/* A body may be a secret: memory that is given back is zeroed first. */
static void
reserve (struct wire_buf *b, size_t more)
{
  size_t held = b->end - b->start;
  char *at;

  if (b->start == b->end)
    b->start = b->end = 0;
  if (b->end + more + 1 <= b->cap)
    return;
  b->cap = (held + more + 1) * 2;
  at = malloc (b->cap);
  if (!at)
    abort ();
  if (held)
    memcpy (at, b->at + b->start, held);
  if (b->at)
    explicit_bzero (b->at, b->end);
  free (b->at);
  b->at = at;
  b->start = 0;
  b->end = held;
}

void
wire_buf_free (struct wire_buf *b)
{
  if (b->at)
    explicit_bzero (b->at, b->cap);
  free (b->at);
  memset (b, 0, sizeof *b);
}

void
wire_feed (struct wire_buf *b, const void *bytes, size_t len)
{
  if (len == 0)
    return;
  reserve (b, len);
  memcpy (b->at + b->end, bytes, len);
  b->end += len;
}

int
wire_put (struct wire_buf *out, enum wire_kind kind, uint32_t call, uint16_t flags, const void *body,
          size_t len, struct err *e)
{
  unsigned char h[WIRE_HEADER];

  if (len > WIRE_MAX_BODY)
    return err_set (e, ERR_INVALID, "a frame of %zu bytes is longer than %d", len, WIRE_MAX_BODY);
  put32 (h, (uint32_t) len);
  put32 (h + 4, call);
  put32 (h + 8, (uint32_t) kind | (uint32_t) flags << 16);
  wire_feed (out, h, sizeof h);
  wire_feed (out, body, len);
  return 0;
}

int
wire_put_json (struct wire_buf *out, enum wire_kind kind, uint32_t call, uint16_t flags,
               const json_t *body, struct err *e)
{
  AUTO_FREE char *text = json_dumps (body, JSON_COMPACT);

  if (!text)
    return err_set (e, ERR_INTERNAL, "a frame's body is no JSON (is a string not UTF-8?)");
  return wire_put (out, kind, call, flags, text, strlen (text), e);
}

int
wire_put_secret (struct wire_buf *out, uint32_t call, const char *name, const void *bytes, size_t len,
                 struct err *e)
{
  size_t n = strlen (name) + 1;
  AUTO_FREE char *body = malloc (n + len);
  int rc;

  if (!body)
    abort ();
  memcpy (body, name, n);
  memcpy (body + n, bytes, len);
  rc = wire_put (out, WIRE_SECRET, call, 0, body, n + len, e);
  explicit_bzero (body, n + len);
  return rc;
}

int
wire_next (struct wire_buf *in, struct wire_frame *f, struct err *e)
{
  const unsigned char *h = (const unsigned char *) in->at + in->start;
  size_t held = in->end - in->start;
  uint32_t len, kinds;

  if (held < WIRE_HEADER)
    return 0;
  len = get32 (h);
  kinds = get32 (h + 8);
  f->call = get32 (h + 4);
  f->kind = (uint16_t) kinds;
  f->flags = (uint16_t) (kinds >> 16);
  if (len > WIRE_MAX_BODY)
    return err_set (e, ERR_INVALID, "frame of %u bytes is longer than %d", len, WIRE_MAX_BODY);
  if (f->kind == 0 || f->kind >= WIRE_KIND_END)
    return err_set (e, ERR_INVALID, "frame kind %u is not known", f->kind);
  if (held < WIRE_HEADER + (size_t) len)
    return 0;
  /* The body is lent NUL-ended, so the next frame's first byte moves aside: shift the whole frame down. */
  memmove (in->at + in->start, in->at + in->start + WIRE_HEADER, len);
  f->body = in->at + in->start;
  f->len = len;
  in->at[in->start + len] = '\0';
  in->start += WIRE_HEADER + len;
  return 1;
}

int
wire_read (int fd, struct wire_buf *in, struct err *e)
{
  ssize_t n;

  reserve (in, READ_CHUNK);
  n = recv (fd, in->at + in->end, READ_CHUNK, MSG_DONTWAIT);
  if (n > 0) {
    in->end += (size_t) n;
    return 1;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 0;
  return err_set (e, ERR_UNAVAILABLE, n == 0 ? "the other side closed" : "read: %s", strerror (errno));
}

int
wire_write (int fd, struct wire_buf *out, struct err *e)
{
  ssize_t n;

  if (out->start == out->end)
    return 0;
  n = send (fd, out->at + out->start, out->end - out->start, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) {
    explicit_bzero (out->at + out->start, (size_t) n);
    out->start += (size_t) n;
    return 1;
  }
  if (errno == EAGAIN || errno == EINTR)
    return 0;
  return err_set (e, ERR_UNAVAILABLE, "write: %s", strerror (errno));
}

int
wire_secret (const struct wire_frame *f, const char **name, const char **bytes, size_t *len)
{
  const char *nul = memchr (f->body, '\0', f->len);

  if (!nul)
    return -1;
  *name = f->body;
  *bytes = nul + 1;
  *len = f->len - (size_t) (nul + 1 - f->body);
  return 0;
}
