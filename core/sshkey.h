/* sshkey.h - the installation's own ed25519 key, in the formats that ssh(1) and libssh2 read
 *
 * Made once; its public half goes on every machine that is rented.
 */
#ifndef GPUB_SSHKEY_H
#define GPUB_SSHKEY_H

#include <stddef.h>

#include "core/err.h"

struct sshkey {
  char secret[512]; /* "-----BEGIN OPENSSH PRIVATE KEY-----...", NUL-ended */
  size_t secret_len;
  char line[256]; /* "ssh-ed25519 AAAA... comment", no newline */
};

/* comment: a printable word such as "gpubroker@prod-eu". */
int sshkey_make (struct sshkey *k, const char *comment, struct err *e);
/* Reads dir/NAME; makes it (0600, atomic, NAME.pub beside it) when there is none.  Refuses a file
 * that others may read, and one that is not an unencrypted ed25519 key. */
int sshkey_load_or_make (struct sshkey *k, const char *dir, const char *name, const char *comment,
                         struct err *e);
void sshkey_done (struct sshkey *k); /* zeroes it */

#endif
