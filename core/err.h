/* err.h - the one error type: the kind decides, the text is for people
 *
 * Kinds have the numbers of GPUB_E_* in gpubroker/provider.h, so that they cross process lines as they are.
 * A struct err is caller's memory, always the last parameter, and may be NULL.  Text has no newline and no
 * full stop.  Functions that take one return -1 (or NULL) after filling it.
 */
#ifndef GPUB_ERR_H
#define GPUB_ERR_H

#include <stdint.h>

#include "core/cleanup.h"

enum err_kind {
  ERR_NONE,
  ERR_INVALID,
  ERR_AUTH,
  ERR_NOT_FOUND,
  ERR_CONFLICT,
  ERR_QUOTA,
  ERR_CAPACITY,
  ERR_RATE,
  ERR_UNAVAILABLE,
  ERR_UNKNOWN,
  ERR_CANCELLED,
  ERR_UNSUPPORTED,
  ERR_INTERNAL,
};

struct err {
  enum err_kind kind;
  int sys; /* errno, 0 for none */
  uint32_t retry_after_ms;
  char code[64]; /* a stable code of our own or the cloud's: "gpu-absent", "OUT_OF_STOCK"; "" for none */
  char text[256];
};

#define ERR_INIT { .kind = ERR_NONE }

/* Both always return -1. */
int err_set (struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF (3, 4);
int err_code (struct err *e, enum err_kind kind, const char *code, const char *fmt, ...) PRINTF (4, 5);
/* Puts "context: " in front of the text; returns -1. */
int err_add (struct err *e, const char *fmt, ...) PRINTF (2, 3);

const char *err_kind_name (enum err_kind kind); /* "unavailable"; never NULL */
enum err_kind err_kind_parse (const char *name); /* ERR_INTERNAL for a name it does not know */

#endif
