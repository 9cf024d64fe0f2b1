/* ssh_session.h - one SSH connection that runs one command, feeds its stdin and hands on its stdout
 *
 * Never blocks, trusts nothing the other side sends, and bounds it: a deadline for every stage, a
 * cap on all bytes received, a budget of bytes for each turn of the loop, so that a flood costs
 * only its own call.
 */
#ifndef GPUB_SSH_SESSION_H
#define GPUB_SSH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "core/err.h"

enum { SESSION_OUTPUT_MAX = 1024 * 1024 };

/* Everything is borrowed for as long as the session lives. */
struct session_spec {
  const char *host, *user, *command;
  int port;
  const char *hostkey; /* "type base64", NULL: any */
  const char *key;     /* private key, OpenSSH format */
  size_t key_len;
  const char *input;
  size_t input_len;
  int64_t command_ms; /* how long the command may take, from its start */
  void (*output) (void *arg, const char *bytes, size_t n);
  void *arg;
};

enum session_end { SESSION_RUNS, SESSION_DONE, SESSION_FAILED };

struct session;

struct session *session_new (CURLM *multi, const struct session_spec *spec, struct err *e);
void session_free (struct session *s);
/* Goes as far as it can without waiting. */
enum session_end session_step (struct session *s, struct err *e);
/* What to wait for; false while libcurl still connects. */
bool session_wants (const struct session *s, struct curl_waitfd *w);
int64_t session_deadline (const struct session *s); /* on clock_boot_ms */
/* "type base64" once the key exchange is over, else NULL. */
const char *session_hostkey (const struct session *s);

#endif
