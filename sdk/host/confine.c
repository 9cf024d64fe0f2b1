/* confine.c - Landlock: a plugin's process writes below its state folder (and a recording's) only
 *
 * Applied before the plugin is loaded and before any thread starts.  Reading stays free: libraries
 * look for certificates, resolvers and locales in places that nobody can list.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_LINUX_LANDLOCK_H
# include <linux/landlock.h>
#endif

#include "core/log.h"
#include "sdk/host/host.h"

#if defined(HAVE_LINUX_LANDLOCK_H) && defined(SYS_landlock_create_ruleset)

static const uint64_t writes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                               LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                               LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                               LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                               LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

static int
allow (int rules, const char *path, uint64_t access)
{
  AUTO_CLOSE int fd = open (path, O_PATH | O_CLOEXEC);
  struct landlock_path_beneath_attr beneath = { .allowed_access = access, .parent_fd = fd };

  if (fd < 0)
    return -1;
  return (int) syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

static int
restrict_writes (const char *const *folders, size_t n)
{
  struct landlock_ruleset_attr attr = { .handled_access_fs = writes };
  AUTO_CLOSE int rules = (int) syscall (SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

  if (rules < 0 || allow (rules, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE) < 0)
    return -1;
  for (size_t i = 0; i < n; i++)
    if (folders[i] && allow (rules, folders[i], writes) < 0)
      return -1;
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return -1;
  return (int) syscall (SYS_landlock_restrict_self, rules, 0);
}

#else

static int
restrict_writes (const char *const *folders, size_t n)
{
  (void) folders;
  (void) n;
  errno = ENOSYS;
  return -1;
}

#endif

void
confine (struct host *h, const char *state_dir)
{
  const char *const folders[] = { state_dir, h->http.record };

  if (restrict_writes (folders, N_ELEMENTS (folders)) < 0)
    out_log (&h->out, LOG_INFO, "landlock.absent", 0, "error=\"%s\"", strerror (errno));
}
