/* identity.h - the private key that came with a machine of somebody's own, until it is not needed
 *
 * It opens the machine once: the broker's own key is put there, and from then on that one is used.
 * Until then it has to outlive a restart: a file of its own, 0600 in a folder 0700, never in the
 * books, which are copied and kept.
 */
#ifndef GPUB_IDENTITY_H
#define GPUB_IDENTITY_H

#include <stdbool.h>

#include "core/broker.h"

/* Is it a private key that the ssh runner can use: OpenSSH's format, no passphrase, ed25519 or
 * ECDSA?  No error text has a byte of it. */
int identity_check (const char *text, struct err *e);
/* On disk, before the lease is committed. */
int identity_put (const struct lease *l, const char *text, struct err *e);
/* NULL: there is none (any more), and the broker's own key is to be used.  The caller
 * explicit_bzero()s and frees it. */
char *identity_get (const struct lease *l, size_t *len);
void identity_drop (const struct lease *l);
/* At start: those whose lease was never committed, or is over. */
void identity_sweep (struct broker *b);

#endif
