/* bus_access.c - who gets in, who owns the socket, and peers that do not speak the protocol at all
 */
#include "tests/unit/bus_fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

static uint64_t
refused (const struct fixture *x)
{
  struct bus_counters c;

  bus_counters (x->bus, &c);
  return c.refused;
}

static void
test_unknown_uid (void)
{
  struct fixture x;
  void *s;

  fixture_init (&x);
  x.uid.uid = getuid () + 1;
  fixture_up (&x);
  is_num (refused (&x), 0, "the self-test is not counted");
  s = client (&x, ZMQ_DEALER, x.requests);
  put (s, "GPUB/1", "echo", "1", "{}", NULL);
  UNTIL (&x, refused (&x) > 0);
  is_num (refused (&x), 1, "a uid that is not listed is refused");
  is_num (x.handled, 0, "its request is never seen");
  zmq_close (s);
  s = client (&x, ZMQ_SUB, x.events);
  UNTIL (&x, refused (&x) > 1);
  is_num (refused (&x), 2, "by the events socket too");
  zmq_close (s);
  fixture_done (&x);
}

static void
test_revoked (void)
{
  struct fixture x;
  struct bus_uid named;
  void *s;

  fixture_init (&x);
  fixture_up (&x);
  s = client (&x, ZMQ_DEALER, x.requests);
  named = x.uid;
  named.rights = BUS_ADMIN;
  strcpy (named.principal, "ops");
  bus_reload_uids (x.bus, &named, 1);
  ok (is_quiet (&x, s), "after a reload a listed uid is served on");
  is_str (x.last_principal, "ops", "under its new name");
  is_num (x.last.rights, BUS_ADMIN, "with its new rights");
  put (s, "GPUB/1", "hold", "1", "{}", NULL);
  UNTIL (&x, x.held.n == 1);
  bus_reload_uids (x.bus, NULL, 0);
  is_num (bus_send (x.bus, &x.held.at[0], BUS_PROGRESS, "{}", 2), -1,
          "a revoked uid's requests are dropped");
  put (s, "GPUB/1", "echo", "2", "{}", NULL);
  ok (strstr (get (&x, s), "error 2 {\"code\":\"denied\"") != NULL,
      "and the next is denied on the open connection");
  bus_reload_uids (x.bus, &x.uid, 1);
  ok (is_quiet (&x, s), "until it is listed again");
  zmq_close (s);
  fixture_done (&x);
}

static void
refuse (const char *endpoint, const char *want)
{
  struct fixture x;
  struct err e = ERR_INIT;

  fixture_init (&x);
  x.request_list[0] = endpoint;
  ok (fixture_start (&x, &e) < 0 && strstr (e.text, want), "%s: %s", endpoint, e.text);
  fixture_done (&x);
}

static void
test_endpoints (void)
{
  char path[160] = "ipc:///tmp/";

  refuse ("tcp://127.0.0.1:5555", "only ipc");
  refuse ("ipc://@gpubroker", "absolute path");
  refuse ("ipc://*", "absolute path");
  refuse ("ipc:///nonexistent/bus", "No such file");
  memset (path + strlen (path), 'x', 120);
  refuse (path, "at most 107 bytes");
}

/* A lock belongs to an open file, so this process can stand for a second daemon. */
static void
test_ownership (void)
{
  struct fixture x;
  struct bus *second;
  struct stat st;
  struct err e = ERR_INIT;
  const char *path;
  void *s;
  int fd;

  fixture_init (&x);
  path = x.requests + strlen ("ipc://");
  fd = open (path, O_CREAT | O_WRONLY, 0600);
  close (fd);
  ok (fixture_start (&x, &e) < 0 && strstr (e.text, "is not a socket"),
      "a file in the way is kept: %s", e.text);
  ok (stat (path, &st) == 0 && S_ISREG (st.st_mode), "it is still there");
  unlink (path);

  fixture_up (&x);
  second = bus_new (&x.config, fixture_handle, &x, &e);
  ok (!second && e.kind == ERR_CONFLICT, "a second daemon is refused: %s", e.text);
  s = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, s), "the first is served on");
  is_num (stat (path, &st) == 0 ? st.st_mode & 0777 : 0, 0660,
          "the socket is for its owner and group");
  zmq_close (s);
  bus_free (x.bus);
  x.bus = NULL;
  ok (stat (path, &st) < 0, "an orderly stop leaves no socket");
  fixture_done (&x);
}

static int
raw_socket (const char *endpoint)
{
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);

  strcpy (to.sun_path, endpoint + strlen ("ipc://"));
  return connect (fd, (struct sockaddr *) &to, sizeof to) < 0 ? -1 : fd;
}

static void
test_stale (void)
{
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  struct fixture x;
  void *s;
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);

  fixture_init (&x);
  strcpy (at.sun_path, x.requests + strlen ("ipc://"));
  ok (bind (fd, (struct sockaddr *) &at, sizeof at) == 0,
      "a socket is left by a daemon that was killed");
  close (fd);
  fixture_up (&x);
  s = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, s), "the next daemon takes the path over");
  zmq_close (s);
  fixture_done (&x);
}

static size_t
drain (int fd)
{
  char bytes[256];
  ssize_t n = recv (fd, bytes, sizeof bytes, MSG_DONTWAIT);

  return n > 0 ? (size_t) n : 0;
}

static int
send_raw (int fd, const char *bytes, size_t n)
{
  return send (fd, bytes, n, MSG_NOSIGNAL) == (ssize_t) n;
}

static void
test_raw_peers (void)
{
  /* ZMTP 3.0 greeting, READY as a DEALER, then the first two of four frames */
  static const char greeting[64] = "\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL";
  static const char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                              "DEALER";
  static const char half[] = "\x01\x06GPUB/1\x01\x04"
                             "echo";
  static const char rest[] = "\x01\x01"
                             "7\x00\x02{}";
  struct fixture x;
  int noise, partial;
  size_t got = 0;
  void *s;

  fixture_init (&x);
  fixture_up (&x);
  noise = raw_socket (x.requests);
  partial = raw_socket (x.requests);
  ok (noise >= 0 && partial >= 0, "two peers without a library connect");
  while (send_raw (noise, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27))
    fixture_turn (&x, 0);
  ok (1, "one sends noise until it is cut off");
  ok (send_raw (partial, greeting, sizeof greeting) && send_raw (partial, ready, sizeof ready - 1),
      "the other shakes hands");
  UNTIL (&x, (got += drain (partial)) >= sizeof greeting + 43); /* and the broker's READY */
  ok (send_raw (partial, half, sizeof half - 1), "and sends half a request");
  s = client (&x, ZMQ_DEALER, x.requests);
  ok (is_quiet (&x, s), "others are served");
  is_num (x.handled, 1, "half a request is none");
  ok (send_raw (partial, rest, sizeof rest - 1), "the other half comes");
  UNTIL (&x, x.handled == 2);
  is_num (x.handled, 2, "and makes it one");
  close (noise);
  close (partial);
  ok (is_quiet (&x, s), "their end disturbs nobody");
  zmq_close (s);
  fixture_done (&x);
}

static uint64_t
connections (const struct fixture *x)
{
  struct bus_counters c;

  bus_counters (x->bus, &c);
  return c.connections;
}

static void
test_connections (void)
{
  struct fixture x;
  void *s[3];
  int fd;

  fixture_init (&x);
  x.config.connections = 2;
  fixture_up (&x);
  UNTIL (&x, connections (&x) == 0);
  is_num (connections (&x), 0, "the self-test leaves no connection");
  for (int i = 0; i < 2; i++) {
    s[i] = client (&x, ZMQ_DEALER, x.requests);
    ok (is_quiet (&x, s[i]), "connection %d of 2 is served", i + 1);
  }
  s[2] = client (&x, ZMQ_DEALER, x.requests);
  put (s[2], "GPUB/1", "echo", "3", "{}", NULL);
  UNTIL (&x, connections (&x) == 3);
  UNTIL (&x, connections (&x) == 2);
  is_num (x.handled, 2, "the third is put off");
  zmq_close (s[0]);
  is_str (get (&x, s[2]), "GPUB/1 final 3 {}", "and served once another has ended");
  zmq_close (s[1]);
  zmq_close (s[2]);
  fd = raw_socket (x.requests);
  UNTIL (&x, connections (&x) == 1);
  close (fd);
  UNTIL (&x, connections (&x) == 0);
  is_num (connections (&x), 0, "every end is counted");
  fixture_done (&x);
}

int
main (void)
{
  test_unknown_uid ();
  test_revoked ();
  test_endpoints ();
  test_ownership ();
  test_stale ();
  test_raw_peers ();
  test_connections ();
  return done ();
}
