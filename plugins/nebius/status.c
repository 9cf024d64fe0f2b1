/* status.c - what a refusal means
 *
 * The gRPC code says little: out of stock, out of quota and too fast are one code.  The cloud's own
 * ServiceError among the details decides, then words, then the code.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { RATE_PAUSE_MS = 10 * 1000, DETAILS = 16 };

/* What a code means to a read and to a change: one that failed inside may have been made. */
static const struct {
  const char *name;
  int32_t read, change;
} codes[GRPC_CODES] = {
  [GRPC_OK] = { "OK", GPUB_OK, GPUB_OK },
  [GRPC_CANCELLED] = { "CANCELLED", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_UNKNOWN] = { "UNKNOWN", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_INVALID_ARGUMENT] = { "INVALID_ARGUMENT", GPUB_E_INVALID, GPUB_E_INVALID },
  [GRPC_DEADLINE_EXCEEDED] = { "DEADLINE_EXCEEDED", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_NOT_FOUND] = { "NOT_FOUND", GPUB_E_NOT_FOUND, GPUB_E_NOT_FOUND },
  [GRPC_ALREADY_EXISTS] = { "ALREADY_EXISTS", GPUB_E_UNAVAILABLE, GPUB_E_CONFLICT },
  [GRPC_PERMISSION_DENIED] = { "PERMISSION_DENIED", GPUB_E_AUTH, GPUB_E_AUTH },
  [GRPC_RESOURCE_EXHAUSTED] = { "RESOURCE_EXHAUSTED", GPUB_E_RATE_LIMITED, GPUB_E_CAPACITY },
  [GRPC_FAILED_PRECONDITION] = { "FAILED_PRECONDITION", GPUB_E_UNAVAILABLE, GPUB_E_INVALID },
  [GRPC_ABORTED] = { "ABORTED", GPUB_E_UNAVAILABLE, GPUB_E_UNAVAILABLE },
  [GRPC_OUT_OF_RANGE] = { "OUT_OF_RANGE", GPUB_E_INVALID, GPUB_E_INVALID },
  [GRPC_UNIMPLEMENTED] = { "UNIMPLEMENTED", GPUB_E_UNSUPPORTED, GPUB_E_UNSUPPORTED },
  [GRPC_INTERNAL] = { "INTERNAL", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_UNAVAILABLE] = { "UNAVAILABLE", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_DATA_LOSS] = { "DATA_LOSS", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  [GRPC_UNAUTHENTICATED] = { "UNAUTHENTICATED", GPUB_E_AUTH, GPUB_E_AUTH },
};

/* The name of a type is what follows the last slash of its URL. */
static bool
is_type (const Nb__Any *any, const char *name)
{
  const char *slash = strrchr (any->type_url, '/');

  return strcmp (slash ? slash + 1 : any->type_url, name) == 0;
}

static void
set_text (struct refusal *r, const char *text)
{
  if (*text)
    snprintf (r->text, sizeof r->text, "%s", text);
}

static void
take_violation (struct refusal *r, const Nb__Violations *v)
{
  const char *what, *text;

  if (v->n_violations == 0)
    return;
  what = v->violations[0]->what;
  text = v->violations[0]->message;
  snprintf (r->text, sizeof r->text, "%.60s%s%.90s", what, *what && *text ? ": " : "", text);
}

static void
take_service_error (struct refusal *r, const Nb__ServiceError *e)
{
  const struct {
    const Nb__Violations *v;
    int32_t kind;
  } members[] = { { e->quota_failure, GPUB_E_QUOTA },
                  { e->not_enough_resources, GPUB_E_CAPACITY },
                  { e->bad_request, GPUB_E_INVALID } };

  if (*e->code)
    snprintf (r->code, sizeof r->code, "%s", e->code);
  if (e->too_many_requests)
    r->kind = GPUB_E_RATE_LIMITED;
  for (size_t i = 0; i < N_ELEMENTS (members); i++)
    if (members[i].v) {
      r->kind = members[i].kind;
      take_violation (r, members[i].v);
    }
}

static void
take_retry (struct refusal *r, const Nb__RetryInfo *info)
{
  int64_t s = info->retry_delay ? info->retry_delay->seconds : 0;
  int32_t ns = info->retry_delay ? info->retry_delay->nanos : 0;

  if (s < 0 || s > 86400 || ns < 0 || ns >= 1000 * 1000 * 1000)
    return;
  r->retry_after_ms = (uint32_t) (s * 1000 + (ns + 999999) / 1000000);
}

/* False for a detail that says nothing about the kind. */
static bool
take_detail (struct refusal *r, const Nb__Any *any)
{
  if (is_type (any, "nebius.common.v1.ServiceError") ||
      is_type (any, "nebius.common.error.v1alpha1.ServiceError")) {
    AUTO_MSG Nb__ServiceError *e = (Nb__ServiceError *) (void *) grpc_unpack (
        &nb__service_error__descriptor, any->value.data, any->value.len);
    int32_t before = r->kind;

    r->kind = GPUB_OK;
    if (e)
      take_service_error (r, e);
    if (r->kind != GPUB_OK)
      return true;
    r->kind = before;
  } else if (is_type (any, "google.rpc.RetryInfo")) {
    AUTO_MSG Nb__RetryInfo *info = (Nb__RetryInfo *) (void *) grpc_unpack (
        &nb__retry_info__descriptor, any->value.data, any->value.len);

    if (info)
      take_retry (r, info);
  }
  return false;
}

/* One code for three things: a delay that is named means "too fast", words tell the rest. */
static int32_t
kind_of_words (const struct refusal *r, int code, bool change)
{
  bool about_wish = change && (code == GRPC_RESOURCE_EXHAUSTED ||
                               code == GRPC_FAILED_PRECONDITION || code == GRPC_INVALID_ARGUMENT);

  if (code == GRPC_RESOURCE_EXHAUSTED && r->retry_after_ms)
    return GPUB_E_RATE_LIMITED;
  return about_wish ? plug_kind_of_text (r->text) : GPUB_OK;
}

void
refusal_read (struct refusal *r, int code, const char *message, const Nb__Status *details,
              bool change)
{
  bool known = code >= 0 && code < GRPC_CODES, decided = false;
  int32_t words;

  *r = (struct refusal){ .kind = change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE };
  if (known) {
    r->kind = change ? codes[code].change : codes[code].read;
    snprintf (r->code, sizeof r->code, "%s", codes[code].name);
  } else
    snprintf (r->code, sizeof r->code, "%d", code);
  set_text (r, message);
  for (size_t i = 0; details && i < details->n_details && i < DETAILS; i++)
    decided |= take_detail (r, details->details[i]);
  if (!decided && (words = kind_of_words (r, code, change)) != GPUB_OK)
    r->kind = words;
  if (r->kind == GPUB_E_RATE_LIMITED && r->retry_after_ms == 0)
    r->retry_after_ms = RATE_PAUSE_MS;
}

/* Its end is the presence of a status, whatever that says. */
bool
operation_over (const Nb__Operation *op, struct refusal *r)
{
  *r = (struct refusal){ .kind = GPUB_OK };
  if (!op->status)
    return false;
  if (op->status->code != GRPC_OK)
    refusal_read (r, op->status->code, op->status->message, op->status, true);
  return true;
}
