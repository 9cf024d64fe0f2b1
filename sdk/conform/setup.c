/* setup.c - what is judged: the plugin as it describes itself, and a provider out of a
 * configuration
 *
 * The configuration is gpubrokerd's own, read by the same code; only %{NAME} is new: it stands for
 * what the fake said in its first line.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

enum { FILE_MOST = 1024 * 1024, DESCRIBE_MOST = 256 * 1024, VALGRIND_FACTOR = 20 };

extern char **environ;

/* ---- the plugin ---- */

/* What the program prints, errors too; NUL-ended.  0 when it ended well. */
static int
capture (char *const argv[], char *out, size_t size)
{
  posix_spawn_file_actions_t files;
  size_t n = 0;
  ssize_t got;
  int fds[2], status = -1;
  pid_t pid;

  if (pipe2 (fds, O_CLOEXEC) < 0)
    return -1;
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, fds[1], 1);
  posix_spawn_file_actions_adddup2 (&files, fds[1], 2);
  if (posix_spawn (&pid, argv[0], &files, NULL, argv, environ) != 0)
    pid = -1;
  posix_spawn_file_actions_destroy (&files);
  close (fds[1]);
  while (n < size - 1 && (got = read (fds[0], out + n, size - 1 - n)) > 0)
    n += (size_t) got;
  out[n] = '\0';
  close (fds[0]);
  if (pid > 0)
    waitpid (pid, &status, 0);
  return pid > 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : -1;
}

static int
describe (struct kit *k, struct err *e)
{
  AUTO_FREE char *out = malloc (DESCRIBE_MOST);
  char *const argv[] = { (char *) (uintptr_t) k->host, (char *) "--describe", k->plugin, NULL };

  if (!out)
    abort ();
  if (capture (argv, out, DESCRIBE_MOST) < 0) {
    out[strcspn (out, "\n")] = '\0';
    return err_set (e, ERR_INVALID, "%.200s", *out ? out : "gpubroker-provider does not start");
  }
  k->describe = json_loads (out, 0, NULL);
  return k->describe ? 0 : err_set (e, ERR_INTERNAL, "--describe printed no JSON");
}

bool
kit_has_cap (const struct kit *k, const char *cap)
{
  const json_t *c;
  size_t i;

  json_array_foreach (json_object_get (k->describe, "caps"), i, c) {
    if (strcmp (json_string_value (c), cap) == 0)
      return true;
  }
  return false;
}

int64_t
kit_number (const struct kit *k, const char *name)
{
  return json_i64 (k->describe, name, 0);
}

const json_t *
kit_option (const struct kit *k, const char *name)
{
  const json_t *o;
  size_t i;

  json_array_foreach (json_object_get (k->describe, "options"), i, o) {
    if (strcmp (json_str (o, "name", ""), name) == 0)
      return o;
  }
  return NULL;
}

bool
option_is (const json_t *option, const char *flag)
{
  const json_t *f;
  size_t i;

  json_array_foreach (json_object_get (option, "flags"), i, f) {
    if (strcmp (json_string_value (f), flag) == 0)
      return true;
  }
  return false;
}

int64_t
kit_patience (const struct kit *k, int64_t ms)
{
  return k->valgrind ? ms * VALGRIND_FACTOR : ms;
}

/* ---- the configuration ---- */

static char *
read_file (const char *path, struct err *e)
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  char *text = calloc (1, FILE_MOST + 1);
  size_t n = 0;
  ssize_t got;

  if (!text)
    abort ();
  while (fd >= 0 && n < FILE_MOST && (got = read (fd, text + n, FILE_MOST - n)) > 0)
    n += (size_t) got;
  if (fd >= 0 && n > 0 && n < FILE_MOST)
    return text;
  free (text);
  err_set (e, ERR_INVALID, "%s: %s", path, fd < 0 ? strerror (errno) : "empty or too long");
  return NULL;
}

/* The value of %{NAME} at *at, which moves behind it; NULL when the fake said no such thing. */
static const char *
named (const struct fake *f, const char **at, struct err *e)
{
  size_t n = strcspn (*at + 2, "}\n");
  AUTO_FREE char *name = strndup (*at + 2, n);
  const char *value = json_str (f->hello, name, NULL);

  if ((*at)[2 + n] != '}' || !value) {
    err_set (e, ERR_INVALID, "%%{%.60s}: the fake's first line has no such text", name);
    return NULL;
  }
  *at += n + 3;
  return value;
}

static char *
substitute (const struct fake *f, const char *text, struct err *e)
{
  char *out = NULL;
  size_t size = 0;
  FILE *to = open_memstream (&out, &size);

  if (!to)
    abort ();
  while (*text) {
    const char *value;

    if (strncmp (text, "%{", 2) != 0) {
      putc (*text++, to);
    } else if ((value = named (f, &text, e))) {
      fputs (value, to);
    } else {
      fclose (to);
      free (out);
      return NULL;
    }
  }
  fclose (to);
  return out;
}

static int
declared_names (const struct kit *k, const char **names, int most)
{
  const json_t *o;
  size_t i;
  int n = 0;

  json_array_foreach (json_object_get (k->describe, "options"), i, o) {
    if (n < most)
      names[n++] = json_str (o, "name", "");
  }
  return n;
}

static int
take_secrets (struct kit *k, const struct conf_provider *p, struct err *e)
{
  for (size_t i = 0; i < p->nsecrets; i++) {
    struct secret *s = vec_push (&k->secrets);

    s->name = strdup (p->secrets[i].option);
    if (conf_read_secret (&p->secrets[i], &s->bytes, &s->len, e) < 0)
      return -1;
  }
  return 0;
}

static int
take_provider (struct kit *k, struct conf *c, struct err *e)
{
  struct conf_provider *p = NULL;
  const char *names[256];

  for (size_t i = 0; i < c->nproviders && !p; i++)
    if (!k->provider || strcmp (c->providers[i].name, k->provider) == 0)
      p = &c->providers[i];
  if (!p)
    return err_set (e, ERR_INVALID, "%s has no provider%s%s", k->config_file,
                    k->provider ? " " : "", k->provider ? k->provider : "");
  conf_provider_declared (p, names, (size_t) declared_names (k, names, N_ELEMENTS (names)));
  json_object_update (k->options, p->options);
  json_object_update (k->http, p->http);
  return take_secrets (k, p, e);
}

static int
configure (struct kit *k, struct err *e)
{
  AUTO_FREE char *raw = NULL, *text = NULL;
  struct conf c;
  int rc;

  k->options = json_object ();
  k->http = json_object ();
  if (!k->config_file)
    return 0;
  raw = read_file (k->config_file, e);
  text = raw ? substitute (&k->fake, raw, e) : NULL;
  if (!text || conf_parse (text, k->config_file, &c, e) < 0)
    return -1;
  rc = take_provider (k, &c, e);
  conf_free (&c);
  return rc;
}

/* ---- the marks of this run: new ones, or those of the recording ---- */

static int
name_run (struct kit *k, struct err *e)
{
  const char *dir = k->replay ? k->replay : k->record;
  AUTO_JSON json_t *j = NULL;
  char path[PATH_MAX] = "";
  unsigned char r[4];

  if (dir)
    snprintf (path, sizeof path, "%s/run.json", dir);
  if (k->record && mkdir (k->record, 0700) < 0 && errno != EEXIST)
    return err_set (e, ERR_INVALID, "%s: %s", k->record, strerror (errno));
  if (getrandom (r, sizeof r, 0) != sizeof r)
    return err_set (e, ERR_INTERNAL, "getrandom: %s", strerror (errno));
  snprintf (k->run, sizeof k->run, "%02x%02x%02x%02x", r[0], r[1], r[2], r[3]);
  if (k->replay) {
    j = json_load_file (path, 0, NULL);
    if (!json_str (j, "run", NULL))
      return err_set (e, ERR_INVALID, "%s is no recording of --record: no run.json", dir);
    snprintf (k->run, sizeof k->run, "%.8s", json_str (j, "run", ""));
  } else if (k->record) {
    j = json_pack ("{s:s}", "run", k->run);
    if (json_dump_file (j, path, JSON_INDENT (2)) < 0)
      return err_set (e, ERR_INVALID, "%s: %s", path, strerror (errno));
  }
  snprintf (k->owner, sizeof k->owner, "%.8s-c0de-4000-8000-c0f0a0c0de00", k->run);
  return 0;
}

int
kit_setup (struct kit *k, struct err *e)
{
  if (describe (k, e) < 0 || name_run (k, e) < 0)
    return -1;
  if (k->fake_command && fake_start (&k->fake, k->fake_command, e) < 0)
    return -1;
  return configure (k, e);
}

void
kit_free (struct kit *k)
{
  fake_stop (&k->fake);
  for (size_t i = 0; i < k->secrets.n; i++) {
    struct secret *s = &k->secrets.at[i];

    if (s->bytes)
      explicit_bzero (s->bytes, s->len);
    free (s->bytes);
    free (s->name);
  }
  vec_free (&k->secrets);
  json_decref (k->options);
  json_decref (k->http);
  json_decref (k->describe);
  free (k->plugin);
}
