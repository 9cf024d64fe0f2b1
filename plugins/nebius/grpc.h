/* grpc.h - unary gRPC as bytes: frames, trailers, status; no traffic */
#ifndef GPUB_NEBIUS_GRPC_H
#define GPUB_NEBIUS_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gpubroker/provider.h>
#include <protobuf-c/protobuf-c.h>

enum grpc_code {
  GRPC_OK,
  GRPC_CANCELLED,
  GRPC_UNKNOWN,
  GRPC_INVALID_ARGUMENT,
  GRPC_DEADLINE_EXCEEDED,
  GRPC_NOT_FOUND,
  GRPC_ALREADY_EXISTS,
  GRPC_PERMISSION_DENIED,
  GRPC_RESOURCE_EXHAUSTED,
  GRPC_FAILED_PRECONDITION,
  GRPC_ABORTED,
  GRPC_OUT_OF_RANGE,
  GRPC_UNIMPLEMENTED,
  GRPC_INTERNAL,
  GRPC_UNAVAILABLE,
  GRPC_DATA_LOSS,
  GRPC_UNAUTHENTICATED,
  GRPC_CODES
};

/* A message with its prefix; the caller frees. */
uint8_t *grpc_frame (const ProtobufCMessage *m, size_t *len);
/* The one message in a body; NULL with *why when it is not just one, whole and plain. */
const uint8_t *grpc_message (const void *body, size_t len, size_t *message_len, const char **why);
/* Unpacks with a bound on memory: an answer of a few MiB may else become hundreds. */
ProtobufCMessage *grpc_unpack (const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                               size_t len);

/* Bytes that are free()d; both alphabets, padded or not; NULL for anything else. */
uint8_t *base64_decode (const char *text, size_t *len);
char *base64url_encode (const void *bytes, size_t len);
void percent_decode (char *text);

/* How an answer ended: from its trailers, or its only header block.  code is -1 when nothing says.
 */
struct grpc_end {
  int code;
  char message[256];
  uint8_t *details; /* google.rpc.Status, packed */
  size_t details_len;
  uint32_t retry_after_ms;
};
void grpc_end_read (struct grpc_end *end, const struct gpub_http_response *r);
void grpc_end_done (struct grpc_end *end);

#endif
