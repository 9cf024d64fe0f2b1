/* sshkey.c - ssh-keygen and libssh2 must take what we write */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/sshkey.h"
#include "tests/unit/tap.h"

static char dir[] = "/tmp/gpub-sshkey-XXXXXX", path[64], public_path[80];

static void
first_line (const char *command, char *out, size_t size)
{
  FILE *f = popen (command, "r");

  out[0] = '\0';
  if (f && fgets (out, (int) size, f))
    out[strcspn (out, "\n")] = '\0';
  if (f)
    pclose (f);
}

static void
put_file (const char *text, mode_t mode)
{
  int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

  if (fd < 0 || write (fd, text, strlen (text)) < 0)
    perror (path);
  fchmod (fd, mode);
  close (fd);
}

static void
test_files (void)
{
  struct sshkey a, b;
  struct err e = ERR_INIT;
  struct stat st;

  ok (sshkey_load_or_make (&a, dir, "ssh_key", "gpubroker@test", &e) == 0, "a key is made (%s)",
      e.text);
  ok (stat (path, &st) == 0 && (st.st_mode & 0777) == 0600, "only its owner may read it");
  ok (stat (public_path, &st) == 0, "the public half is beside it");
  ok (sshkey_load_or_make (&b, dir, "ssh_key", "other", &e) == 0, "the second time it is read (%s)",
      e.text);
  is_str (b.line, a.line, "and has the same public line, comment included");
  ok (strncmp (a.line, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", 37) == 0,
      "which is an ed25519 line");
  is_str (b.secret, a.secret, "and the same private half");
  sshkey_make (&b, "x", &e);
  ok (strcmp (a.secret, b.secret) != 0, "another key is another key");
}

static void
test_keygen (void)
{
  char command[128], got[256], want[256];
  struct sshkey k;
  FILE *f;

  if (system ("command -v ssh-keygen >/dev/null 2>&1") != 0) {
    printf ("ok %d - ssh-keygen reads the key # SKIP no ssh-keygen here\n", ++tap_n);
    return;
  }
  sshkey_load_or_make (&k, dir, "ssh_key", "x", NULL);
  snprintf (command, sizeof command, "ssh-keygen -y -P '' -f %s", path);
  first_line (command, got, sizeof got);
  is_str (got, k.line, "ssh-keygen reads the key and finds the same public half");
  /* The other direction, and every padding length: comments of eight lengths. */
  for (int i = 1; i <= 8; i++) {
    unlink (path);
    unlink (public_path);
    snprintf (command, sizeof command, "ssh-keygen -q -t ed25519 -N '' -C %.*s -f %s", i,
              "abcdefgh", path);
    if (system (command) != 0)
      break;
    f = fopen (public_path, "r");
    want[0] = '\0';
    if (f && fgets (want, sizeof want, f))
      want[strcspn (want, "\n")] = '\0';
    if (f)
      fclose (f);
    ok (sshkey_load_or_make (&k, dir, "ssh_key", "x", NULL) == 0, "a key of ssh-keygen's is read");
    is_str (k.line, want, "with its public line");
  }
}

static void
refuse (const char *text, mode_t mode, const char *why)
{
  struct err e = ERR_INIT;
  struct sshkey k;

  put_file (text, mode);
  ok (sshkey_load_or_make (&k, dir, "ssh_key", "x", &e) < 0 && e.kind == ERR_INVALID, "%s: %s", why,
      e.text);
  ok (k.secret[0] == '\0' || mode != 0600, "nothing of it is kept");
}

static void
test_refused (void)
{
  struct sshkey k;
  struct err e = ERR_INIT;
  char cut[sizeof k.secret];

  sshkey_make (&k, "x", &e);
  refuse (k.secret, 0644, "a key that others may read is refused");
  refuse ("", 0600, "an empty file is refused, not replaced");
  refuse ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0600,
          "another format is refused");
  snprintf (cut, sizeof cut, "%.200s", k.secret);
  refuse (cut, 0600, "a file cut short is refused");
  unlink (path);
  ok (symlink ("/etc/hostname", path) == 0 && sshkey_load_or_make (&k, dir, "ssh_key", "x", &e) < 0,
      "a symbolic link is not followed");
  ok (sshkey_make (&k, "two words", &e) < 0, "a comment is one word");
}

int
main (void)
{
  char command[64];

  if (!mkdtemp (dir))
    return 1;
  snprintf (path, sizeof path, "%s/ssh_key", dir);
  snprintf (public_path, sizeof public_path, "%s.pub", path);
  test_files ();
  test_keygen ();
  test_refused ();
  snprintf (command, sizeof command, "rm -rf %s", dir);
  ok (system (command) == 0, "cleaned up");
  return done ();
}
