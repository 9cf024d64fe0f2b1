/* ssh_dial.c - names to connected sockets, through libcurl, so that nothing here blocks on DNS
 *
 * CONNECT_ONLY gives curl's resolver, address racing and time limits.  The socket is duplicated,
 * since curl closes its own with the handle.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "join/ssh_dial.h"

struct dial {
  CURLM *multi;
  CURL *easy;
  int timeout_ms;
  bool finished;
  CURLcode code;
};

/* A provider's API named this host: nothing but a name or an address may reach the URL. */
static int
make_url (char *url, size_t size, const char *host, int port, struct err *e)
{
  static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";

  if (!*host || strlen (host) > 253 || host[strspn (host, fine)] || port < 1 || port > 65535)
    return err_set (e, ERR_INVALID, "'%.100s' port %d is no address to connect to", host, port);
  if (strchr (host, ':'))
    snprintf (url, size, "http://[%s]:%d/", host, port);
  else
    snprintf (url, size, "http://%s:%d/", host, port);
  return 0;
}

struct dial *
dial_new (CURLM *multi, const char *host, int port, int timeout_ms, struct err *e)
{
  char url[300];
  struct dial *d;

  if (make_url (url, sizeof url, host, port, e) < 0)
    return NULL;
  d = calloc (1, sizeof *d);
  if (!d || !(d->easy = curl_easy_init ()))
    abort ();
  d->multi = multi;
  d->timeout_ms = timeout_ms;
  curl_easy_setopt (d->easy, CURLOPT_URL, url);
  curl_easy_setopt (d->easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt (d->easy, CURLOPT_PROXY, "");
  curl_easy_setopt (d->easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (d->easy, CURLOPT_CONNECTTIMEOUT_MS, (long) timeout_ms);
  curl_easy_setopt (d->easy, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt (d->easy, CURLOPT_PRIVATE, d);
  curl_multi_add_handle (multi, d->easy);
  return d;
}

void
dial_free (struct dial *d)
{
  if (!d)
    return;
  curl_multi_remove_handle (d->multi, d->easy);
  curl_easy_cleanup (d->easy);
  free (d);
}

void
dial_collect (CURLM *multi)
{
  CURLMsg *m;
  int left;

  while ((m = curl_multi_info_read (multi, &left))) {
    struct dial *d;

    if (m->msg != CURLMSG_DONE)
      continue;
    curl_easy_getinfo (m->easy_handle, CURLINFO_PRIVATE, (char **) &d);
    d->finished = true;
    d->code = m->data.result;
  }
}

bool
dial_finished (const struct dial *d)
{
  return d->finished;
}

static int
failed (struct dial *d, struct err *e)
{
  long sys = 0;

  curl_easy_getinfo (d->easy, CURLINFO_OS_ERRNO, &sys);
  if (d->code == CURLE_COULDNT_RESOLVE_HOST)
    return err_code (e, ERR_UNAVAILABLE, "ssh-dns", "the name does not resolve");
  if (d->code == CURLE_OPERATION_TIMEDOUT || sys == ETIMEDOUT)
    return err_code (e, ERR_UNAVAILABLE, "ssh-timeout", "no answer to a connection in %d ms",
                     d->timeout_ms);
  return err_code (e, ERR_UNAVAILABLE, "ssh-refused", "%s",
                   sys ? strerror ((int) sys) : curl_easy_strerror (d->code));
}

int
dial_take (struct dial *d, struct err *e)
{
  curl_socket_t s = CURL_SOCKET_BAD;
  int fd;

  if (d->code != CURLE_OK)
    return failed (d, e);
  if (curl_easy_getinfo (d->easy, CURLINFO_ACTIVESOCKET, &s) != CURLE_OK || s == CURL_SOCKET_BAD)
    return err_code (e, ERR_UNAVAILABLE, "ssh-closed", "the connection went away at once");
  fd = fcntl (s, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    return err_set (e, ERR_INTERNAL, "dup: %s", strerror (errno));
  return fd;
}
