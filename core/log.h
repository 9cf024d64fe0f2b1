/* log.h - `event key=value` lines on stderr; journald priorities when stderr is the journal
 *
 * Only main-side code logs; libraries return errors.  The event is a dotted name that tests and
 * operators match: log_at (LOG_NOTICE, "lease.ready", "lease=%s provider=%s", id, name). Every line
 * passes through redact(): join tokens, long base64 runs, PEM keys and registered secrets go.
 */
#ifndef GPUB_LOG_H
#define GPUB_LOG_H

#include <stddef.h>
#include <syslog.h>

#include "core/cleanup.h"

void log_at (int priority, const char *event, const char *fmt, ...) PRINTF (3, 4);
void
log_level (int priority); /* the least urgent priority that is still printed; LOG_INFO at first */

/* Masks in place everything that looks like a secret (facts: k0s join tokens, gzip+base64, key
 * data). */
void redact (char *text);
/* From now on these bytes are masked wherever they appear in a log line or in redact(); <= 64
 * secrets. */
void redact_register (const void *bytes, size_t len);

#endif
