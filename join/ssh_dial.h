/* ssh_dial.h - names to connected sockets, through libcurl, so that nothing here blocks on DNS */
#ifndef GPUB_SSH_DIAL_H
#define GPUB_SSH_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "core/err.h"

struct dial;

/* The multi handle is the loop's: its curl_multi_poll is what the runner waits in. */
struct dial *dial_new (CURLM *multi, const char *host, int port, int timeout_ms, struct err *e);
void dial_free (struct dial *d);
/* Hand every finished dial of the multi handle its outcome; call after curl_multi_perform. */
void dial_collect (CURLM *multi);
bool dial_finished (const struct dial *d);
/* The socket, the caller's from now on, or -1: e has ssh-dns, ssh-refused or ssh-timeout. */
int dial_take (struct dial *d, struct err *e);

#endif
