/* grpc.c - unary gRPC as bytes: frames, trailers, status */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "plugins/nebius/grpc.h"
#include "plugins/util.h"

enum { PREFIX = 5, UNPACKED_MAX = 64 << 20, DETAILS_MAX = 16 << 10 };

/* ---- Frames ---- */

uint8_t *
grpc_frame (const ProtobufCMessage *m, size_t *len)
{
  size_t n = protobuf_c_message_get_packed_size (m);
  uint8_t *out = malloc (PREFIX + n);

  if (!out)
    abort ();
  out[0] = 0; /* not compressed */
  for (int i = 0; i < 4; i++)
    out[1 + i] = (uint8_t) (n >> (24 - 8 * i));
  protobuf_c_message_pack (m, out + PREFIX);
  *len = PREFIX + n;
  return out;
}

const uint8_t *
grpc_message (const void *body, size_t len, size_t *message_len, const char **why)
{
  const uint8_t *p = body;
  uint32_t n;

  *why = len == 0 ? "no message" : "a broken frame";
  if (len < PREFIX)
    return NULL;
  if (p[0] != 0) {
    *why = "a compressed message, which was not asked for";
    return NULL;
  }
  n = (uint32_t) p[1] << 24 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 8 | p[4];
  if (n != len - PREFIX)
    return NULL;
  *message_len = n;
  return p + PREFIX;
}

static void *
bounded_alloc (void *left, size_t size)
{
  size_t *room = left;

  if (size > *room)
    return NULL;
  *room -= size;
  return malloc (size);
}

static void
plain_free (void *left, void *p)
{
  (void) left;
  free (p);
}

ProtobufCMessage *
grpc_unpack (const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len)
{
  size_t room = UNPACKED_MAX;
  ProtobufCAllocator allocator = { bounded_alloc, plain_free, &room };

  return protobuf_c_message_unpack (type, &allocator, len, bytes);
}

/* ---- Text in headers ---- */

static int
digit_of (char c)
{
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

uint8_t *
base64_decode (const char *text, size_t *len)
{
  size_t n = strlen (text), used = 0;
  AUTO_FREE uint8_t *out = malloc (n / 4 * 3 + 3);
  uint32_t bits = 0;
  int have = 0;

  if (!out)
    abort ();
  for (int pad = 0; pad < 2 && n && text[n - 1] == '='; pad++)
    n--;
  if (n % 4 == 1)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    int d = digit_of (text[i]);

    if (d < 0)
      return NULL;
    bits = bits << 6 | (uint32_t) d;
    if ((have += 6) >= 8)
      out[used++] = (uint8_t) (bits >> (have -= 8));
  }
  *len = used;
  return STEAL (out);
}

char *
base64url_encode (const void *bytes, size_t len)
{
  char *text = base64_encode (bytes, len);

  for (char *p = text; *p; p++)
    *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
  text[strcspn (text, "=")] = '\0';
  return text;
}

static int
hex_of (char c)
{
  if (isdigit ((unsigned char) c))
    return c - '0';
  c = (char) tolower ((unsigned char) c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no escape stays as it is; a zero byte would hide the rest. */
void
percent_decode (char *text)
{
  char *out = text;

  for (const char *p = text; *p; p++) {
    int high = *p == '%' ? hex_of (p[1]) : -1, low = high >= 0 ? hex_of (p[2]) : -1;

    if (low >= 0 && (high || low)) {
      *out++ = (char) (high << 4 | low);
      p += 2;
    } else
      *out++ = *p;
  }
  *out = '\0';
}

/* ---- The end of a call ---- */

static const char *
header (const struct gpub_http_response *r, const char *name)
{
  for (uint64_t i = 0; i < r->ntrailers; i++)
    if (strcmp (r->trailers[i].key, name) == 0)
      return r->trailers[i].value;
  for (uint64_t i = 0; i < r->nheaders; i++)
    if (strcmp (r->headers[i].key, name) == 0)
      return r->headers[i].value;
  return NULL;
}

static int
code_of (const char *text)
{
  size_t n = text ? strspn (text, "0123456789") : 0;

  return n > 0 && n < 4 && text[n] == '\0' ? atoi (text) : -1;
}

static uint32_t
pushback_ms (const char *text)
{
  size_t n = text ? strspn (text, "0123456789") : 0;

  return n > 0 && n < 9 && text[n] == '\0' ? (uint32_t) atol (text) : 0;
}

void
grpc_end_read (struct grpc_end *end, const struct gpub_http_response *r)
{
  const char *message = header (r, "grpc-message"),
             *details = header (r, "grpc-status-details-bin");

  *end = (struct grpc_end){ .code = code_of (header (r, "grpc-status")),
                            .retry_after_ms = r->retry_after_ms };
  snprintf (end->message, sizeof end->message, "%s", message ? message : "");
  percent_decode (end->message);
  if (details && strlen (details) <= DETAILS_MAX)
    end->details = base64_decode (details, &end->details_len);
  if (end->retry_after_ms == 0)
    end->retry_after_ms = pushback_ms (header (r, "grpc-retry-pushback-ms"));
}

void
grpc_end_done (struct grpc_end *end)
{
  free (end->details);
  end->details = NULL;
}
