/* ssh_session.c - one SSH connection that runs one command, feeds its stdin and hands on its stdout
 *
 * libssh2 loops inside its calls for as long as bytes arrive, so the receive callback is what keeps
 * a flooding node from owning the thread: past the turn's budget it says EAGAIN, past the total it
 * fails.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libssh2.h>
#include <openssl/evp.h>

#include "core/clock.h"
#include "join/ssh_dial.h"
#include "join/ssh_session.h"

enum {
  DIAL_MS = 10000,
  HANDSHAKE_MS = 15000,
  AUTH_MS = 15000,
  OPEN_MS = 10000,
  TURN_BYTES = 128 * 1024,
  READ_COST = 64, /* a read counts as this much at least: libssh2 reads banners byte by byte */
  EARLY_BYTES = 256 * 1024, /* before the command: banners, key exchange, authentication */
  WINDOW = 64 * 1024,
  PACKET = 32 * 1024,
};

enum stage { DIAL, HANDSHAKE, AUTH, OPEN, EXEC, TALK, OVER };

struct session {
  struct session_spec spec;
  enum stage stage;
  struct dial *dial;
  int fd;
  LIBSSH2_SESSION *ssh;
  LIBSSH2_CHANNEL *channel;
  int64_t deadline;
  size_t budget, total, fed, printed;
  bool flooded, dead, sent_eof;
  char *hostkey;
};

static const struct {
  const char *name;
  int ms;
} stages[] = {
  [DIAL] = { "connecting", DIAL_MS },         [HANDSHAKE] = { "the key exchange", HANDSHAKE_MS },
  [AUTH] = { "authentication", AUTH_MS },     [OPEN] = { "opening a channel", OPEN_MS },
  [EXEC] = { "starting a command", OPEN_MS }, [TALK] = { "the command", 0 },
};

static void
enter (struct session *s, enum stage stage)
{
  s->stage = stage;
  s->deadline = clock_boot_ms () + (stage == TALK ? s->spec.command_ms : stages[stage].ms);
}

struct session *
session_new (CURLM *multi, const struct session_spec *spec, struct err *e)
{
  struct session *s = calloc (1, sizeof *s);

  if (!s)
    abort ();
  s->spec = *spec;
  s->fd = -1;
  s->dial = dial_new (multi, spec->host, spec->port, DIAL_MS, e);
  if (!s->dial) {
    free (s);
    return NULL;
  }
  enter (s, DIAL);
  s->deadline += 1000; /* libcurl's own limit comes first: it knows more */
  return s;
}

/* Teardown must not wait for the node: the callbacks refuse once `dead` is set. */
void
session_free (struct session *s)
{
  if (!s)
    return;
  if (s->ssh && s->fd >= 0 && s->stage >= AUTH && !s->flooded)
    libssh2_session_disconnect (s->ssh, "done");
  s->dead = true;
  for (int i = 0; s->channel && i < 3 && libssh2_channel_free (s->channel) == LIBSSH2_ERROR_EAGAIN;
       i++)
    ;
  for (int i = 0; s->ssh && i < 3 && libssh2_session_free (s->ssh) == LIBSSH2_ERROR_EAGAIN; i++)
    ;
  if (s->fd >= 0)
    close (s->fd);
  dial_free (s->dial);
  free (s->hostkey);
  free (s);
}

static ssize_t
receive (libssh2_socket_t fd, void *buffer, size_t length, int flags, void **abstract)
{
  struct session *s = *abstract;
  size_t cost;
  ssize_t n;

  if (s->dead)
    return -ECONNRESET;
  if (s->total >= (s->stage < TALK ? EARLY_BYTES : EARLY_BYTES + 2 * SESSION_OUTPUT_MAX)) {
    s->flooded = true;
    return -ECONNRESET;
  }
  if (s->budget == 0)
    return -EAGAIN;
  n = recv (fd, buffer, length < s->budget ? length : s->budget, flags);
  if (n < 0)
    return -errno;
  cost = (size_t) n < READ_COST ? READ_COST : (size_t) n;
  s->budget -= cost < s->budget ? cost : s->budget;
  s->total += cost;
  return n;
}

static ssize_t
transmit (libssh2_socket_t fd, const void *buffer, size_t length, int flags, void **abstract)
{
  struct session *s = *abstract;
  ssize_t n;

  if (s->dead)
    return -ECONNRESET;
  n = send (fd, buffer, length, flags | MSG_NOSIGNAL);
  return n < 0 ? -errno : n;
}

/* libssh2 1.10 copies over itself when it meets a name it does not have: give it only names it has.
 */
static void
set_methods (LIBSSH2_SESSION *ssh, int what, const char *const *wanted)
{
  const char **have = NULL;
  int n = libssh2_session_supported_algs (ssh, what, &have);
  char list[512] = "";

  for (; *wanted; wanted++)
    for (int i = 0; i < n; i++)
      if (strcmp (*wanted, have[i]) == 0) {
        size_t at = strlen (list);

        snprintf (list + at, sizeof list - at, "%s%s", at ? "," : "", *wanted);
        break;
      }
  if (n > 0)
    libssh2_free (ssh, (void *) have);
  if (*list)
    libssh2_session_method_pref (ssh, what, list);
}

/* The pinned type comes first, else a server that has several keys may show another one.  No group
 * exchange: the server would choose how much this thread computes. */
static void
prefer (struct session *s)
{
  static const char *const kex[] = {
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group14-sha256",
    NULL,
  };
  static const char *const types[] = {
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
    "ssh-rsa",
  };
  const char *pin = s->spec.hostkey ? s->spec.hostkey : "";
  size_t pin_len = strcspn (pin, " "), n = 0;
  const char *order[N_ELEMENTS (types) + 1] = { NULL };

  for (int pinned = 1; pinned >= 0; pinned--)
    for (size_t i = 0; i < N_ELEMENTS (types); i++) {
      const char *family = strncmp (types[i], "rsa-", 4) == 0 ? "ssh-rsa" : types[i];
      bool is = strlen (family) == pin_len && strncmp (family, pin, pin_len) == 0;

      if (is == (bool) pinned)
        order[n++] = types[i];
    }
  set_methods (s->ssh, LIBSSH2_METHOD_KEX, kex);
  set_methods (s->ssh, LIBSSH2_METHOD_HOSTKEY, order);
}

static int
closed (struct session *s, struct err *e)
{
  char *why = NULL;

  if (s->flooded)
    return err_code (e, ERR_UNAVAILABLE, "ssh-output", "the node sent more than it may during %s",
                     stages[s->stage].name);
  libssh2_session_last_error (s->ssh, &why, NULL, 0);
  return err_code (e, ERR_UNAVAILABLE, "ssh-closed", "the connection ended during %s: %.120s",
                   stages[s->stage].name, why && *why ? why : "no reason given");
}

/* The first form is deprecated in 1.11.1, the second unknown before. */
static void
set_callbacks (LIBSSH2_SESSION *ssh)
{
#if LIBSSH2_VERSION_NUM >= 0x010b01
  libssh2_session_callback_set2 (ssh, LIBSSH2_CALLBACK_RECV, (libssh2_cb_generic *) receive);
  libssh2_session_callback_set2 (ssh, LIBSSH2_CALLBACK_SEND, (libssh2_cb_generic *) transmit);
#else
  libssh2_session_callback_set (ssh, LIBSSH2_CALLBACK_RECV, (void *) receive);
  libssh2_session_callback_set (ssh, LIBSSH2_CALLBACK_SEND, (void *) transmit);
#endif
}

/* 1: the stage is done; 0: wait; -1: failed. */
static int
do_dial (struct session *s, struct err *e)
{
  if (!dial_finished (s->dial))
    return 0;
  s->fd = dial_take (s->dial, e);
  dial_free (s->dial);
  s->dial = NULL;
  if (s->fd < 0)
    return -1;
  s->ssh = libssh2_session_init_ex (NULL, NULL, NULL, s);
  if (!s->ssh)
    abort ();
  set_callbacks (s->ssh);
  libssh2_session_set_blocking (s->ssh, 0);
  prefer (s);
  return 1;
}

/* The blob begins with its own type, length first. */
static char *
describe_key (const unsigned char *blob, size_t len)
{
  size_t type =
      len < 4 ? 0
              : (size_t) blob[0] << 24 | (size_t) blob[1] << 16 | (size_t) blob[2] << 8 | blob[3];
  char *text;

  if (type == 0 || type > 64 || type + 4 > len || len > 8192)
    return NULL;
  text = malloc (type + 2 + (len + 2) / 3 * 4 + 1);
  if (!text)
    abort ();
  memcpy (text, blob + 4, type);
  text[type] = ' ';
  EVP_EncodeBlock ((unsigned char *) text + type + 1, blob, (int) len);
  return text;
}

/* A comment after the key in the pin is not compared. */
static bool
matches (const char *pin, const char *key)
{
  size_t n = strlen (key);

  return strncmp (pin, key, n) == 0 && (pin[n] == '\0' || pin[n] == ' ');
}

static int
do_handshake (struct session *s, struct err *e)
{
  const char *blob;
  size_t len = 0;
  int type, rc = libssh2_session_handshake (s->ssh, s->fd);

  if (rc == LIBSSH2_ERROR_EAGAIN)
    return 0;
  if (rc != 0)
    return closed (s, e);
  blob = libssh2_session_hostkey (s->ssh, &len, &type);
  s->hostkey = blob ? describe_key ((const unsigned char *) blob, len) : NULL;
  if (!s->hostkey)
    return err_code (e, ERR_UNAVAILABLE, "ssh-closed",
                     "the node showed a host key that cannot be read");
  if (s->spec.hostkey && !matches (s->spec.hostkey, s->hostkey))
    return err_code (
        e, ERR_CONFLICT, "hostkey-mismatch",
        "the node at %.100s shows another host key than the one pinned: somebody answers in its "
        "place, or it was reinstalled",
        s->spec.host);
  return 1;
}

static int
do_auth (struct session *s, struct err *e)
{
  int rc = libssh2_userauth_publickey_frommemory (s->ssh, s->spec.user, strlen (s->spec.user), NULL,
                                                  0, s->spec.key, s->spec.key_len, NULL);

  switch (rc) {
  case 0:
    return 1;
  case LIBSSH2_ERROR_EAGAIN:
    return 0;
  case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
  case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
    return err_code (e, ERR_UNAVAILABLE, "ssh-auth", "user '%.40s' does not accept our key",
                     s->spec.user);
  case LIBSSH2_ERROR_FILE:
    return err_set (e, ERR_INVALID, "the SSH key is no OpenSSH ed25519 private key");
  default:
    return closed (s, e);
  }
}

static int
do_open (struct session *s, struct err *e)
{
  s->channel = libssh2_channel_open_ex (s->ssh, "session", 7, WINDOW, PACKET, NULL, 0);
  if (s->channel)
    return 1;
  return libssh2_session_last_errno (s->ssh) == LIBSSH2_ERROR_EAGAIN ? 0 : closed (s, e);
}

static int
do_exec (struct session *s, struct err *e)
{
  int rc = libssh2_channel_process_startup (s->channel, "exec", 4, s->spec.command,
                                            (unsigned) strlen (s->spec.command));

  if (rc == LIBSSH2_ERROR_EAGAIN)
    return 0;
  return rc == 0 ? 1 : closed (s, e);
}

static int
feed (struct session *s, struct err *e)
{
  while (s->fed < s->spec.input_len) {
    ssize_t n =
        libssh2_channel_write (s->channel, s->spec.input + s->fed, s->spec.input_len - s->fed);

    if (n == LIBSSH2_ERROR_EAGAIN || n == 0)
      return 0;
    if (n < 0) /* it may have ended early on purpose: what it printed tells */
      return libssh2_channel_eof (s->channel) ? 0 : closed (s, e);
    s->fed += (size_t) n;
  }
  if (!s->sent_eof && libssh2_channel_send_eof (s->channel) != LIBSSH2_ERROR_EAGAIN)
    s->sent_eof = true;
  return 0;
}

static int
drain (struct session *s, int stream, struct err *e)
{
  char bytes[16 * 1024];
  ssize_t n;

  while ((n = libssh2_channel_read_ex (s->channel, stream, bytes, sizeof bytes)) > 0) {
    s->printed += (size_t) n;
    if (s->printed > SESSION_OUTPUT_MAX)
      return err_code (e, ERR_UNAVAILABLE, "ssh-output", "the node printed more than %d bytes",
                       SESSION_OUTPUT_MAX);
    if (stream == 0)
      s->spec.output (s->spec.arg, bytes, (size_t) n);
  }
  return n < 0 && n != LIBSSH2_ERROR_EAGAIN ? closed (s, e) : 0;
}

/* Feeding and reading alternate, else both windows fill and both sides wait. */
static int
do_talk (struct session *s, struct err *e)
{
  if (feed (s, e) < 0 || drain (s, 0, e) < 0 || drain (s, SSH_EXTENDED_DATA_STDERR, e) < 0)
    return -1;
  return libssh2_channel_eof (s->channel) ? 1 : 0;
}

static int (*const steps[]) (struct session *, struct err *) = {
  [DIAL] = do_dial, [HANDSHAKE] = do_handshake, [AUTH] = do_auth,
  [OPEN] = do_open, [EXEC] = do_exec,           [TALK] = do_talk,
};

enum session_end
session_step (struct session *s, struct err *e)
{
  int rc;

  s->budget = TURN_BYTES;
  while ((rc = steps[s->stage](s, e)) > 0) {
    if (s->stage == TALK)
      return SESSION_DONE;
    enter (s, s->stage + 1);
  }
  if (rc < 0)
    return SESSION_FAILED;
  if (clock_boot_ms () < s->deadline)
    return SESSION_RUNS;
  err_code (e, ERR_UNAVAILABLE, "ssh-timeout", "the node did not finish %s in time",
            stages[s->stage].name);
  return SESSION_FAILED;
}

bool
session_wants (const struct session *s, struct curl_waitfd *w)
{
  int directions;

  if (!s->ssh)
    return false;
  directions = libssh2_session_block_directions (s->ssh);
  w->fd = s->fd;
  w->events = CURL_WAIT_POLLIN;
  if (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND)
    w->events |= CURL_WAIT_POLLOUT;
  w->revents = 0;
  return true;
}

int64_t
session_deadline (const struct session *s)
{
  return s->deadline;
}

const char *
session_hostkey (const struct session *s)
{
  return s->hostkey;
}
