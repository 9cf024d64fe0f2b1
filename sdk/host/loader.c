/* loader.c - find one plugin, check who may write it, load it for good
 *
 * RTLD_LOCAL keeps its symbols from ours; nothing is ever closed, since libraries leave exit
 * handlers and thread destructors behind.
 */
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdk/host/host.h"

/* A provider must at least reach to its last required call. */
#define SIZE_AT_1                                                                                  \
 (offsetof (struct gpub_provider, remove) + sizeof (((struct gpub_provider *) 0)->remove))

#define OPTION_AT_1                                                                                \
 (offsetof (struct gpub_option, help) + sizeof (((struct gpub_option *) 0)->help))

enum { OPTIONS_MAX = 256 };

static int
check_owner (const char *path, struct err *e)
{
  struct stat st;

  if (stat (path, &st) < 0)
    return err_set (e, ERR_INVALID, "%s: %m", path);
  if (st.st_uid != 0 && st.st_uid != getuid ())
    return err_set (e, ERR_INVALID, "%s belongs to uid %u: root or uid %u must own it", path,
                    st.st_uid, getuid ());
  if (st.st_mode & (S_IWGRP | S_IWOTH))
    return err_set (e, ERR_INVALID, "%s is writable by others (mode %04o): chmod go-w it", path,
                    (unsigned) st.st_mode & 07777);
  return 0;
}

/* dir/NAME.so for each folder of GPUB_PROVIDER_PATH, then the installed one. */
static char *
search (const char *name)
{
  const char *path = getenv ("GPUB_PROVIDER_PATH");
  char *found, try[PATH_MAX];

  for (const char *dir = path ? path : ""; *dir;) {
    size_t n = strcspn (dir, ":");

    snprintf (try, sizeof try, "%.*s/%s.so", (int) n, dir, name);
    found = n ? realpath (try, NULL) : NULL;
    if (found)
      return found;
    dir += n + (dir[n] == ':');
  }
  snprintf (try, sizeof try, "%s/%s.so", PROVIDERDIR, name);
  return realpath (try, NULL);
}

static char *
find (const char *plugin, struct err *e)
{
  char *file = strchr (plugin, '/') ? realpath (plugin, NULL) : search (plugin);

  if (!file)
    err_set (e, ERR_INVALID, "plugin '%.100s' not found%s%s", plugin,
             strchr (plugin, '/') ? "" : ": looked in $GPUB_PROVIDER_PATH and ",
             strchr (plugin, '/') ? "" : PROVIDERDIR);
  return file;
}

static int
check_file (const char *file, struct err *e)
{
  char dir[PATH_MAX];

  snprintf (dir, sizeof dir, "%s", file);
  *strrchr (dir, '/') = '\0';
  if (check_owner (file, e) < 0)
    return -1;
  return check_owner (*dir ? dir : "/", e);
}

static int
check_options (const struct gpub_provider *p, struct err *e)
{
  if (p->noptions && (!p->options || p->options_stride < OPTION_AT_1 || p->noptions > OPTIONS_MAX))
    return err_set (e, ERR_INVALID, "its list of options is broken (count %llu, stride %llu)",
                    (unsigned long long) p->noptions, (unsigned long long) p->options_stride);
  for (uint64_t i = 0; i < p->noptions; i++) {
    const struct gpub_option *o = GPUB_AT (struct gpub_option, p->options, p->options_stride, i);

    if (o->size < OPTION_AT_1 || !o->name)
      return err_set (e, ERR_INVALID,
                      "its option %llu has %llu bytes, the least is %zu, or no name",
                      (unsigned long long) i, (unsigned long long) o->size, OPTION_AT_1);
  }
  return 0;
}

static int
check_calls (const struct gpub_provider *p, struct err *e)
{
  static const struct {
    const char *name;
    size_t offset;
  } required[] = {
#define CALL(member) { #member, offsetof (struct gpub_provider, member) }
    CALL (name),   CALL (version), CALL (open), CALL (close), CALL (probe),  CALL (list_offers),
    CALL (create), CALL (get),     CALL (find), CALL (list),  CALL (remove),
#undef CALL
  };

  for (size_t i = 0; i < N_ELEMENTS (required); i++) {
    void *member;

    memcpy (&member, (const char *) p + required[i].offset, sizeof member);
    if (!member)
      return err_set (e, ERR_INVALID, "it lacks the required '%s'", required[i].name);
  }
  return check_options (p, e);
}

static int
adopt (const struct gpub_provider *from, struct gpub_provider *p, struct err *e)
{
  if (!from)
    return err_set (e, ERR_INVALID, "it cannot live with this host's ABI %u", GPUB_ABI);
  if (from->size < offsetof (struct gpub_provider, flags) || from->abi != GPUB_ABI)
    return err_set (e, ERR_INVALID,
                    "its ABI is %u, this host's is %u: rebuild it against this release", from->abi,
                    GPUB_ABI);
  if (from->size < SIZE_AT_1)
    return err_set (e, ERR_INVALID, "its struct gpub_provider has %llu bytes, the least is %zu",
                    (unsigned long long) from->size, SIZE_AT_1);
  memset (p, 0, sizeof *p);
  memcpy (p, from, from->size < sizeof *p ? (size_t) from->size : sizeof *p);
  return check_calls (p, e);
}

int
loader_open (const char *plugin, struct gpub_provider *p, struct err *e)
{
  const struct gpub_provider *(*entry) (uint32_t);
  AUTO_FREE char *file = find (plugin, e);
  void *so, *symbol;

  if (!file || check_file (file, e) < 0)
    return -1;
  so = dlopen (file, RTLD_NOW | RTLD_LOCAL);
  if (!so)
    return err_set (e, ERR_INVALID, "%s", dlerror ());
  symbol = dlsym (so, "gpub_provider_entry");
  if (!symbol)
    return err_set (e, ERR_INVALID, "%s: no gpub_provider_entry: this is no provider plugin", file);
  memcpy (&entry, &symbol, sizeof entry);
  if (adopt (entry (GPUB_ABI), p, e) < 0)
    return err_add (e, "%s", file);
  return 0;
}
