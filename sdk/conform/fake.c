/* fake.c - the cloud's double: a process that prints one line and then takes control calls
 *
 * What it must understand is in docs/writing-a-provider.md.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <curl/curl.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/conform/conform.h"

enum { LINE_MAX_ = 16 * 1024, START_MS = 30000, STOP_MS = 5000, CALL_S = 60 };

extern char **environ;

static int
spawn (struct fake *f, const char *command, int in, int out)
{
  char *argv[] = { (char *) "sh", (char *) "-c", (char *) (uintptr_t) command, NULL };
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  int rc;

  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, in, 0);
  posix_spawn_file_actions_adddup2 (&files, out, 1);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup (&attr, 0);
  rc = posix_spawn (&f->pid, "/bin/sh", &files, &attr, argv, environ);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&files);
  return rc;
}

static int
read_hello (struct fake *f, struct err *e)
{
  int64_t end = clock_boot_ms () + START_MS;
  char line[LINE_MAX_] = "";
  size_t n = 0;

  while (n < sizeof line - 1 && !memchr (line, '\n', n)) {
    struct pollfd p = { .fd = f->out, .events = POLLIN };
    int64_t left = end - clock_boot_ms ();
    ssize_t got;

    if (left <= 0 || poll (&p, 1, (int) left) <= 0)
      return err_set (e, ERR_UNAVAILABLE, "the fake printed no line within %d s", START_MS / 1000);
    got = read (f->out, line + n, sizeof line - 1 - n);
    if (got <= 0)
      return err_set (e, ERR_UNAVAILABLE, "the fake ended before it printed its line");
    n += (size_t) got;
  }
  f->hello = json_parse (line, n, e);
  if (!f->hello)
    return err_add (e, "the fake's first line");
  if (!json_str (f->hello, "control", NULL))
    return err_set (e, ERR_INVALID, "the fake's first line has no 'control'");
  return 0;
}

int
fake_start (struct fake *f, const char *command, struct err *e)
{
  int in[2], out[2], rc;

  if (pipe2 (in, O_CLOEXEC) < 0 || pipe2 (out, O_CLOEXEC) < 0)
    return err_set (e, ERR_INTERNAL, "pipe: %s", strerror (errno));
  rc = spawn (f, command, in[0], out[1]);
  close (in[0]);
  close (out[1]);
  f->in = in[1];
  f->out = out[0];
  if (rc != 0)
    return err_set (e, ERR_INTERNAL, "/bin/sh: %s", strerror (rc));
  return read_hello (f, e);
}

void
fake_stop (struct fake *f)
{
  int64_t end = clock_boot_ms () + STOP_MS;

  if (f->pid == 0)
    return;
  close (f->in);
  while (waitpid (f->pid, NULL, WNOHANG) == 0) {
    if (clock_boot_ms () > end)
      kill (-f->pid, SIGKILL);
    poll (NULL, 0, 10);
  }
  close (f->out);
  json_decref (f->hello);
  memset (f, 0, sizeof *f);
}

/* ---- control calls ---- */

struct body {
  char *at;
  size_t len;
};

static size_t
collect (char *bytes, size_t one, size_t n, void *ctx)
{
  struct body *b = ctx;
  char *more = realloc (b->at, b->len + one * n + 1);

  if (!more)
    abort ();
  memcpy (more + b->len, bytes, one * n);
  b->at = more;
  b->len += one * n;
  b->at[b->len] = '\0';
  return one * n;
}

static json_t *
perform (struct fake *f, CURL *easy, const char *method, const char *url, const char *body)
{
  struct body got = { NULL, 0 };
  json_t *answer = NULL;

  curl_easy_setopt (easy, CURLOPT_URL, url);
  curl_easy_setopt (easy, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt (easy, CURLOPT_PROXY, "");
  curl_easy_setopt (easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt (easy, CURLOPT_TIMEOUT, (long) CALL_S);
  curl_easy_setopt (easy, CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt (easy, CURLOPT_WRITEDATA, &got);
  if (body)
    curl_easy_setopt (easy, CURLOPT_POSTFIELDS, body);
  f->status = 0;
  if (curl_easy_perform (easy) == CURLE_OK)
    curl_easy_getinfo (easy, CURLINFO_RESPONSE_CODE, &f->status);
  if (f->status == 200)
    answer = json_loadb (got.at ? got.at : "", got.len, JSON_DECODE_ANY, NULL);
  free (got.at);
  return answer;
}

json_t *
fake_control (struct fake *f, const char *method, const char *path, json_t *body)
{
  AUTO_FREE char *text = body ? json_dumps (body, JSON_COMPACT) : NULL;
  CURL *easy = curl_easy_init ();
  json_t *answer;
  char url[1024];

  if (!easy)
    abort ();
  snprintf (url, sizeof url, "%s/%s", json_str (f->hello, "control", ""), path);
  answer = perform (f, easy, method, url, text);
  curl_easy_cleanup (easy);
  json_decref (body);
  return answer;
}
